"""Transferring new git objects from the session to the person: packed, then verified in a quarantine."""

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path

from aileron_core.containment.git.record import OBJECT_ID_PATTERN
from aileron_core.containment.git.sandboxed_git import GitFailed
from aileron_core.containment.git.session_repository import (
    SessionRepository,
    peeled,
    read_small_file,
)

_MAX_PACK_BYTES = 4 * 1024 * 1024 * 1024
_HEADER = 12


def fetch_objects(
    repository: SessionRepository,
    wanted: Iterable[str],
    have: Iterable[str],
    shallow: Iterable[str],
) -> None:
    """Fetch the objects that *wanted* reaches and *have* does not into the quarantine, and verify them there.

    One sandbox packs the agent's objects. A second one, which sees nothing of the agent's but that
    pack, indexes it strictly and walks to every object that it reaches.

    Args:
        wanted: ids of objects that are new on the agent's side.
        have: ids that the person's refs name.
        shallow: commits that count as having no parent.

    Raises:
        GitFailed: something is missing, broken or too large.
    """
    repository.make_quarantine()
    if marks := "".join(f"{oid}\n" for oid in shallow):
        (repository.quarantine / "shallow").write_text(marks, encoding="ascii")
    stdin = "".join([*(f"{oid}\n" for oid in wanted), *(f"^{oid}\n" for oid in have)]).encode()
    with tempfile.TemporaryDirectory(dir=repository.folder) as folder:
        pack = Path(folder, "new.pack")
        with pack.open("wb") as output:
            words = ("--revs", "--stdout", "--delta-base-offset", "-q")
            repository.agent_git().run_into(
                output, "pack-objects", *words, stdin=stdin, max_bytes=_MAX_PACK_BYTES
            )
        with pack.open("rb") as file:
            count = int.from_bytes(file.read(_HEADER)[8:], "big")
        if count:
            inside = f"/i/{Path(folder).name}/new.pack"
            printed = repository.quarantine_git(write=True).run("index-pack", "--strict", inside)
            name = printed.decode("ascii", "replace").strip()
            if not name.isalnum():
                raise GitFailed("git index-pack did not print the name of the pack.")
            for path in Path(folder).glob("new.*"):
                shutil.move(
                    path, repository.quarantine / "objects" / "pack" / f"pack-{name}{path.suffix}"
                )
    repository.quarantine_git().run("rev-list", "--objects", "--quiet", "--stdin", stdin=stdin)


def migrate_objects(repository: SessionRepository) -> None:
    """Move the verified packs from the quarantine to the person's object store."""
    folder = Path(repository.record.objects[0], "pack")
    folder.mkdir(exist_ok=True)
    packs = list((repository.quarantine / "objects" / "pack").iterdir())
    # A pack counts from the moment that its index is there, so the index comes last.
    for path in sorted(packs, key=lambda each: each.suffix == ".idx"):
        target = folder / path.name
        if target.exists():
            continue
        handle, name = tempfile.mkstemp(prefix="tmp_pack_", dir=folder)
        try:
            with os.fdopen(handle, "wb") as file, path.open("rb") as source:
                shutil.copyfileobj(source, file)
                file.flush()
                os.fsync(handle)
            Path(name).chmod(0o444)
            Path(name).replace(target)
        finally:
            with contextlib.suppress(FileNotFoundError):
                Path(name).unlink()


def new_shallow_commits(repository: SessionRepository) -> tuple[list[str], list[str]]:
    """Return the agent's new shallow commits: those that the person lacks, and those that the person has."""
    data = read_small_file(repository.session_git_dir / "shallow") or b""
    words = data.decode("ascii", "replace").split()
    known = {*repository.record.shallow}
    marks = [oid for oid in words if OBJECT_ID_PATTERN.match(oid) and oid not in known]
    if not marks:
        return [], []
    repository.make_quarantine()
    kinds = peeled(repository.quarantine_git(), {oid: oid for oid in marks})
    have = [oid for oid in marks if kinds[oid][0] == "commit"]
    return [oid for oid in marks if kinds[oid][0] != "commit"], have
