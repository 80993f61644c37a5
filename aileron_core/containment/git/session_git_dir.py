"""Making the git folder that a session has in place of the person's."""

import shutil
from collections.abc import Mapping
from pathlib import Path

from aileron_core.containment.git.record import INSIDE_GIT
from aileron_core.containment.git.sandboxed_git import GitFailed
from aileron_core.containment.git.settings import allowed, effective, unfit, written
from aileron_core.containment.git.sides import Sides, read_small

STATE = ("MERGE_HEAD", "MERGE_MSG", "MERGE_MODE", "CHERRY_PICK_HEAD", "REVERT_HEAD")
"""A merge, or a pick, that is under way; the session goes on with it."""


def make(sides: Sides, bwrap: str, env: Mapping[str, str]) -> None:
    """Make the stand-in of one repository, and note in its record what both sides begin with.

    Args:
        sides: the repository; its place does not exist yet.
        bwrap: bubblewrap.
        env: the person's, which tells where their global settings lie.

    Raises:
        GitFailed: the repository cannot be had so.
    """
    kept, own = sides.kept, sides.own
    if any(sides.git.glob("sharedindex.*")):
        raise GitFailed("its index is split over several files")
    settings = effective(bwrap, sides.git, env)
    if why := unfit(settings):
        raise GitFailed(why)
    for folder in ("objects/info", "objects/pack", "refs/heads", "refs/tags", "info"):
        (own / folder).mkdir(mode=0o700, parents=True)
    given = allowed(settings)
    for path in (own / "config", sides.place / "config"):
        path.write_text(written(given), encoding="utf-8", errors="surrogateescape")
    kept.settings = sorted({name for name, _ in given})
    plain, symbolic = sides.person_refs()
    kept.refs = {name: oid for name, oid in plain.items() if not name.startswith("refs/aileron/")}
    kept.head = sides.person_head()
    packed = "".join(f"{oid} {name}\n" for name, oid in kept.refs.items())
    (own / "packed-refs").write_text(packed, encoding="utf-8", errors="surrogateescape")
    for name, led in symbolic.items():
        _write(own / name, f"ref: {led}\n".encode("utf-8", "surrogateescape"))
    for path in (own / "HEAD", sides.place / "HEAD"):
        path.write_text(f"{kept.head}\n", encoding="utf-8")
    seen = [sides.objects_inside(number) for number in range(len(kept.objects))]
    (own / "objects" / "info" / "alternates").write_text("\n".join(seen) + "\n", encoding="utf-8")
    _copy_files(sides)
    bare(sides)
    sides.base_entries()  # an index that cannot be read is found now, not at the end


def _copy_files(sides: Sides) -> None:
    own = sides.own
    of_each = (sides.common / "shallow", sides.common / "info" / "exclude")
    for path in (*of_each, sides.git / "info" / "sparse-checkout"):
        if (data := read_small(path)) is not None:
            _write(own / ("" if path.parent.name != "info" else "info") / path.name, data)
    sides.kept.shallow = (read_small(own / "shallow") or b"").decode("ascii", "replace").split()
    for name in STATE:
        if (data := read_small(sides.git / name)) is not None:
            _write(own / name, data)
            _write(sides.place / "state" / name, data)
    if (stash := read_small(sides.common / "logs" / "refs" / "stash")) is not None:
        _write(own / "logs" / "refs" / "stash", stash)
        _write(sides.place / "stash", stash)
    if (sides.git / "index").is_file():
        shutil.copyfile(sides.git / "index", sides.base_index)
        shutil.copyfile(sides.base_index, own / "index")
    if sides.kept.is_file:
        (sides.place / "gitfile").write_text(f"gitdir: {INSIDE_GIT}/{sides.kept.number}\n")


def bare(sides: Sides) -> None:
    """Make the bare repository in which what is new will be checked."""
    shutil.rmtree(sides.check, ignore_errors=True)
    for folder in ("objects/info", "objects/pack", "refs"):
        (sides.check / folder).mkdir(mode=0o700, parents=True)
    (sides.check / "HEAD").write_text("ref: refs/heads/main\n", encoding="utf-8")
    shutil.copyfile(sides.place / "config", sides.check / "config")


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.write_bytes(data)
