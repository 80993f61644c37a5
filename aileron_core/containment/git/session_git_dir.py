"""Creating the git directory that a session uses in place of the person's."""

import shutil
from collections.abc import Iterable
from pathlib import Path

from aileron_core.containment.git.record import SANDBOX_GIT_DIR
from aileron_core.containment.git.sandboxed_git import GitFailed
from aileron_core.containment.git.session_repository import SessionRepository, read_small_file
from aileron_core.containment.git.settings import (
    GitSetting,
    allowed_settings,
    config_text,
    unsupported_reason,
)

OPERATION_FILES = ("MERGE_HEAD", "MERGE_MSG", "MERGE_MODE", "CHERRY_PICK_HEAD", "REVERT_HEAD")
"""What a merge, cherry-pick or revert under way consists of: the session continues it."""


def make_session_git_dir(repository: SessionRepository, settings: Iterable[GitSetting]) -> None:
    """Make the session's git directory, and record the state that it begins with.

    Args:
        repository: the repository; its folder does not exist yet.

    Raises:
        GitFailed: repositories of this kind are not supported.
    """
    record, own = repository.record, repository.session_git_dir
    if any(repository.git_dir.glob("sharedindex.*")):
        raise GitFailed("it has a split index")
    settings = list(settings)
    if why := unsupported_reason(settings):
        raise GitFailed(why)
    for folder in ("objects/info", "objects/pack", "refs/heads", "refs/tags", "info"):
        (own / folder).mkdir(mode=0o700, parents=True)
    allowed = allowed_settings(settings)
    for path in (own / "config", repository.folder / "config"):
        path.write_text(config_text(allowed), encoding="utf-8", errors="surrogateescape")
    record.settings = sorted({name for name, _ in allowed})
    plain, symbolic = repository.person_refs()
    record.refs = {name: oid for name, oid in plain.items() if not name.startswith("refs/aileron/")}
    record.head = repository.person_head()
    packed = "".join(f"{oid} {name}\n" for name, oid in record.refs.items())
    (own / "packed-refs").write_text(packed, encoding="utf-8", errors="surrogateescape")
    for name, target in symbolic.items():
        _write(own / name, f"ref: {target}\n".encode("utf-8", "surrogateescape"))
    for path in (own / "HEAD", repository.folder / "HEAD"):
        path.write_text(f"{record.head}\n", encoding="utf-8")
    inside = [repository.objects_inside(number) for number in range(len(record.objects))]
    (own / "objects" / "info" / "alternates").write_text("\n".join(inside) + "\n", encoding="utf-8")
    _copy_files(repository)
    make_quarantine(repository)
    repository.base_entries()  # an index that cannot be read is found now, not at the end


def _copy_files(repository: SessionRepository) -> None:
    own = repository.session_git_dir
    of_each = (repository.common_dir / "shallow", repository.common_dir / "info" / "exclude")
    for path in (*of_each, repository.git_dir / "info" / "sparse-checkout"):
        if (data := read_small_file(path)) is not None:
            _write(own / ("" if path.parent.name != "info" else "info") / path.name, data)
    repository.record.shallow = (
        (read_small_file(own / "shallow") or b"").decode("ascii", "replace").split()
    )
    for name in OPERATION_FILES:
        if (data := read_small_file(repository.git_dir / name)) is not None:
            _write(own / name, data)
            _write(repository.folder / "state" / name, data)
    if (stash := read_small_file(repository.common_dir / "logs" / "refs" / "stash")) is not None:
        _write(own / "logs" / "refs" / "stash", stash)
        _write(repository.folder / "stash", stash)
    if (repository.git_dir / "index").is_file():
        shutil.copyfile(repository.git_dir / "index", repository.base_index)
        shutil.copyfile(repository.base_index, own / "index")
    if repository.record.is_file:
        (repository.folder / "gitfile").write_text(
            f"gitdir: {SANDBOX_GIT_DIR}/{repository.record.number}\n"
        )


def make_quarantine(repository: SessionRepository) -> None:
    """Make an empty bare repository in which new objects will be verified."""
    shutil.rmtree(repository.quarantine, ignore_errors=True)
    for folder in ("objects/info", "objects/pack", "refs"):
        (repository.quarantine / folder).mkdir(mode=0o700, parents=True)
    (repository.quarantine / "HEAD").write_text("ref: refs/heads/main\n", encoding="utf-8")
    shutil.copyfile(repository.folder / "config", repository.quarantine / "config")


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.write_bytes(data)
