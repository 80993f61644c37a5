"""The journals of commits that outlive their session, and the recovery of what a killed one left half done.

Each contained session with built-in tools, and each MCP server whose calls are rehearsed, has a folder in Aileron's home, which no sandbox shows: its
terms (what of the project its commands could write), and the journal, whose descriptor the commands
worker inherits. Who holds the journal's lock is the session: launcher, worker and helpers share it, so
whoever gets it knows that all of them have ended. What is in the journal is then taken back or finished in
a new sandbox of these terms; this process opens nothing of the project.
"""

import contextlib
import fcntl
import json
import os
import tempfile
from collections.abc import Callable, Generator, Iterator, Sequence
from pathlib import Path
from typing import Any

from aileron_core.connectors.builtin.connector import write_worker
from aileron_core.containment.bubblewrap import SANDBOX_DIR, SANDBOX_LAUNCH_DIR
from aileron_core.containment.git.record import SANDBOX_GIT_DIR
from aileron_core.containment.mounts import Mount, mount_arguments
from aileron_core.containment.programs import mount_roots, own_interpreter
from aileron_core.containment.safe_paths import remove_tree
from aileron_core.containment.sandboxed_command import run_sandboxed
from aileron_core.containment.support import find_bwrap
from aileron_core.text import escape
from aileron_core.vault.atomic_file import sync_folder

_TERMS, _JOURNAL, _OUTCOME = "terms.json", "journal", "outcome"
_SECONDS = 60.0
_MAX_ANSWER = 4 << 20
_SHOWN = 5
"""Paths that are named."""


@contextlib.contextmanager
def commit_journal(
    aileron_home: Path,
    session_id: str,
    project: Path,
    mounts: Sequence[Mount],
    say: Callable[[str], None],
) -> Generator[int]:
    """Yield the descriptor of a new journal for the sandbox of *mounts*, and recover what is in it at the end."""
    folder = _parent(aileron_home) / session_id
    folder.mkdir(mode=0o700, parents=True)
    (folder / _TERMS).write_text(json.dumps(_terms(project, mounts)), encoding="utf-8")
    with (folder / _TERMS).open("rb") as terms:
        os.fsync(terms.fileno())
    handle = os.open(folder / _JOURNAL, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    fcntl.flock(handle, fcntl.LOCK_EX)
    try:
        for each in (folder, folder.parent):
            sync_folder(each)
        yield handle
    finally:
        os.close(handle)
        for sentence in recover_commits(aileron_home):
            say(sentence)


def recover_commits(aileron_home: Path) -> Iterator[str]:
    """Take back, or finish, the commits of sessions that have ended; yield a sentence for each."""
    for folder in sorted(_parent(aileron_home).glob("*/")):
        with contextlib.suppress(OSError):  # another process has removed it
            handle = os.open(folder / _JOURNAL, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
            with os.fdopen(handle, "r+b") as journal, contextlib.suppress(BlockingIOError):
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if content := journal.read():
                    yield from _recovered(folder, handle, content)
                elif not (folder / _OUTCOME).exists():
                    remove_tree(folder)


def outcomes(aileron_home: Path) -> Iterator[tuple[str, str]]:
    """Yield session and sentence of each recovery whose folder nobody has removed: it is not on record yet."""
    for outcome in sorted(_parent(aileron_home).glob(f"*/{_OUTCOME}")):
        with contextlib.suppress(FileNotFoundError):
            yield outcome.parent.name, outcome.read_text("utf-8")


def _parent(aileron_home: Path) -> Path:
    return aileron_home / "commits"


def _terms(project: Path, mounts: Sequence[Mount]) -> dict[str, Any]:
    """Return what a sandbox needs that may write what commands could, but no more of it."""
    roots = [each.path for each in mounts if each.how == "writable"]
    roots += [Path(SANDBOX_GIT_DIR)]
    inside = [each for each in mounts if any(each.path.is_relative_to(root) for root in roots)]
    return {
        "project": str(project),
        "mounts": [
            [str(each.path), each.how, str(each.source or each.path), _identity(each)]
            for each in inside
        ],
    }


def _identity(mount: Mount) -> list[int] | None:
    """Return device and inode of what is mounted; None of what is hidden, of which only the path counts."""
    if mount.how == "hidden":
        return None
    status = (mount.source or mount.path).stat()
    return [status.st_dev, status.st_ino]


def _mounts(terms: dict[str, Any]) -> Iterator[Mount]:
    """Yield the mounts of *terms* that still are what they were, reached without a link that came meanwhile.

    Of anything else the steps of the journal fail in the sandbox, and are told.
    """
    for path, how, source, identity in terms["mounts"]:
        mount = Mount(path=Path(path), how=how, why="", source=Path(source))
        if identity is None:
            mount = Mount(path=Path(path), how=how, why="")
        with contextlib.suppress(OSError):
            is_same = identity is None or _identity(mount) == identity
            is_direct = path.startswith(SANDBOX_DIR) or os.path.realpath(path) == path
            if is_same and is_direct and os.path.lexists(source):
                yield mount


def _recovered(folder: Path, handle: int, journal: bytes) -> Iterator[str]:
    try:
        terms = json.loads((folder / _TERMS).read_text("utf-8"))
        project = escape(str(terms["project"]))
        found = _run(terms, journal)
    except (OSError, ValueError, LookupError, TypeError) as error:
        yield (
            f"{escape(str(folder))}: the changes of an approved call were interrupted, and could not "
            f"be taken back ({escape(str(error))}). Aileron tries again at the next start."
        )
        return
    if found is not None:
        sentence = _sentence(project, found)
        (folder / _OUTCOME).write_text(sentence, encoding="utf-8")
        yield sentence
    os.ftruncate(handle, 0)
    os.fsync(handle)


def _run(terms: dict[str, Any], journal: bytes) -> dict[str, Any] | None:
    """Do it in a sandbox.

    Raises:
        OSError, ValueError: it failed.
    """
    if (bwrap := find_bwrap()) is None:
        raise OSError("bubblewrap is not there any more")
    interpreter = own_interpreter()
    roots = mount_roots(interpreter, os.defpath, home=Path.home(), excluded=())
    with tempfile.TemporaryDirectory() as program, tempfile.TemporaryFile() as output:
        write_worker(Path(program))
        mounts = [
            *(Mount(path=each, how="read-only", why="") for each in sorted(roots)),
            Mount(path=Path(SANDBOX_LAUNCH_DIR), how="read-only", why="", source=Path(program)),
            *_mounts(terms),
        ]
        ended = run_sandboxed(
            bwrap,
            # What the commands worker commits in, it may write whatever its mode.
            [*mount_arguments(mounts), "--cap-add", "CAP_DAC_OVERRIDE"],
            [str(interpreter), "-I", SANDBOX_LAUNCH_DIR, "recover", "/"],
            output,
            env={"LC_ALL": "C.UTF-8"},
            stdin=journal,
            max_bytes=_MAX_ANSWER,
            seconds=_SECONDS,
        )
        if ended.problem is not None or ended.code != 0:
            last = ended.stderr.splitlines()[-1:] or [f"exit code {ended.code}"]
            raise OSError(ended.problem or last[0][:200])
        output.seek(0)
        return json.loads(output.read())


def _sentence(project: str, found: dict[str, Any]) -> str:
    what = (
        "all of them had been made, and what was there before was removed"
        if found["done"]
        else "they were taken back, and what was there before is there again"
    )
    left = [escape(str(each)) for each in found["left"]]
    if not left:
        return f"In {project}: the changes of an approved call were interrupted: {what}."
    more = f" and {len(left) - _SHOWN:,} more" if len(left) > _SHOWN else ""
    return (
        f"In {project}: the changes of an approved call were interrupted: {what}, except at "
        f"{', '.join(left[:_SHOWN])}{more}, where something else has changed since. Look there, also for files "
        "whose names begin with .aileron-, which have what was there before."
    )
