"""Bringing new objects from the agent's side to the person's: packed, checked and looked through in boxes."""

import contextlib
import os
import re
import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path

from aileron_core.containment.git.sandboxed_git import GitFailed
from aileron_core.containment.git.session_git_dir import bare
from aileron_core.containment.git.sides import Sides, read_small

_MOST = 4 * 1024 * 1024 * 1024
"""A pack may be this large."""
_RAW_LINK = re.compile(rb":+(?:[0-7]{6} )+160000 (?:[0-9a-f]+ )+[A-Z]+\0([^\0]+)\0")
_HEADER = 12


def take(sides: Sides, wanted: Iterable[str], have: Iterable[str], shallow: Iterable[str]) -> None:
    """Get all that *wanted* leads to and *have* does not into the bare repository beside, checked.

    The agent's objects are packed in one box; another, without anything of the agent's but that pack,
    indexes it strictly and finds every object that it leads to.

    Args:
        sides: the repository.
        wanted: what is new on the agent's side.
        have: what the person's refs lead to.
        shallow: commits that count as having no parent.

    Raises:
        GitFailed: something is missing, broken, or too large.
    """
    bare(sides)
    if marks := "".join(f"{oid}\n" for oid in shallow):
        (sides.check / "shallow").write_text(marks, encoding="ascii")
    given = "".join([*(f"{oid}\n" for oid in wanted), *(f"^{oid}\n" for oid in have)]).encode()
    with tempfile.TemporaryDirectory(dir=sides.place) as folder:
        pack = Path(folder, "new.pack")
        with pack.open("wb") as output:
            words = ("--revs", "--stdout", "--delta-base-offset", "-q")
            sides.agent().into(output, "pack-objects", *words, given=given, most=_MOST)
        with pack.open("rb") as file:
            count = int.from_bytes(file.read(_HEADER)[8:], "big")
        if count:
            seen = f"/i/{Path(folder).name}/new.pack"
            said = sides.checker(write=True).run("index-pack", "--strict", seen)
            name = said.decode("ascii", "replace").strip()
            if not name.isalnum():
                raise GitFailed("git index-pack gave no name.")
            for path in Path(folder).glob("new.*"):
                shutil.move(path, sides.check / "objects" / "pack" / f"pack-{name}{path.suffix}")
    sides.checker().run("rev-list", "--objects", "--quiet", "--stdin", given=given)


def new_links(sides: Sides, wanted: Iterable[str], have: Iterable[str]) -> set[bytes]:
    """Return the paths at which commits that only *wanted* leads to put another repository.

    A merge counts where it differs from each of its parents: what one of them has was looked at there.
    """
    given = "".join([*(f"{oid}\n" for oid in wanted), *(f"^{oid}\n" for oid in have)]).encode()
    words = ("--format=", "--raw", "-z", "--no-abbrev", "--no-renames", "--diff-merges=combined")
    raw = sides.checker().run("log", *words, "--ignore-submodules=none", "--stdin", given=given)
    return {match[1] for match in _RAW_LINK.finditer(raw)}


def tree_links(sides: Sides, commit: str) -> set[bytes]:
    """Return the paths at which the tree of *commit* has another repository."""
    listed = sides.checker().run("ls-tree", "-r", "-z", commit)
    entries = (line.partition(b"\t") for line in listed.split(b"\0"))
    return {path for facts, _, path in entries if facts.startswith(b"160000 ")}


def publish(sides: Sides) -> None:
    """Put the packs that were checked among the person's objects."""
    folder = Path(sides.kept.objects[0], "pack")
    folder.mkdir(exist_ok=True)
    found = list((sides.check / "objects" / "pack").iterdir())
    for path in sorted(
        found, key=lambda each: each.suffix == ".idx"
    ):  # git looks for an index first
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


def new_shallow(sides: Sides) -> tuple[list[str], list[str]]:
    """Return where the agent's history is cut off and the person's is not: at its commits, at theirs."""
    text = (read_small(sides.own / "shallow") or b"").decode("ascii", "replace")
    marks = [oid for oid in text.split() if oid.isalnum() and oid not in sides.kept.shallow]
    if not marks:
        return [], []
    bare(sides)
    given = "".join(f"{oid}\n" for oid in marks).encode()
    answers = sides.checker().run("cat-file", "--batch-check=%(objecttype)", given=given)
    theirs = [line == b"commit" for line in answers.splitlines()]
    pairs = list(zip(marks, theirs, strict=True))
    return [oid for oid, known in pairs if not known], [oid for oid, known in pairs if known]
