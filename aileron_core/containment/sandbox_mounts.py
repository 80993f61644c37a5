"""Changing the mounts of a sandbox that runs: a short program that joins the sandbox's namespaces.

    python -I -m aileron_core.containment.sandbox_mounts NAMESPACE [read-only|writable] < mounts

It mounts folders on others, or has what is mounted be read-only or writable.

A program of its own, because only a process without threads can join a user namespace. Once it has
joined it opens what it was told and nothing else, without following links: everything that it can
reach is as the agent has arranged it. So it imports nothing any more, and has no traceback printed, which
would read its own source there. What is opened has to be what was named outside (device and inode, or the
mount's number), so that the agent can at most have itself served badly.
"""

import contextlib
import errno
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from aileron_core.containment.linux_syscalls import (
    bind_mount,
    join_namespace,
    set_mount_read_only,
)

_SECONDS = 20
_BUSY_SECONDS = 0.5
_FLAGS = os.O_RDONLY | getattr(os, "O_PATH", 0) | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxMount:
    """One entry of a folder that is to be mounted on another entry of it."""

    folder: str
    """Absolute; the same outside and in the sandbox."""
    source: str
    source_identity: list[int]
    """Device and inode."""
    target: str
    target_identity: list[int]


def sandbox_namespace(bwrap: int) -> int:
    """Open the mount namespace of the sandbox that the process *bwrap* started; return the descriptor.

    Raises:
        OSError: it has none, or none yet.
    """
    return os.open(f"/proc/{first_process(bwrap)}/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)


def first_process(bwrap: int) -> int:
    """Return the first process in the sandbox that the process *bwrap* started.

    Raises:
        OSError: there is none, or none yet.
    """
    children = Path(f"/proc/{bwrap}/task/{bwrap}/children").read_text(encoding="ascii").split()
    if not children:
        raise ProcessLookupError
    return int(children[0])


def mounts_below(process: int, folders: Iterable[Path]) -> dict[int, tuple[Path, bool]]:
    """Return the mounts at or below *folders* as *process* has them: where, and whether it may write through it.

    Raises:
        OSError: it has ended.
    """
    folders, found = [*folders], dict[int, tuple[Path, bool]]()
    for line in Path(f"/proc/{process}/mountinfo").read_bytes().splitlines():
        number, _, _, _, name, options, *_ = line.split(b" ")
        plain = re.sub(rb"\\([0-7]{3})", lambda code: bytes([int(code[1], 8)]), name)
        path = Path(os.fsdecode(plain))
        if any(path.is_relative_to(each) for each in folders):
            found[int(number)] = path, b"rw" in options.split(b",")
    return found


def mount_in_sandbox(namespace: int, mounts: Sequence[SandboxMount]) -> list[str | None]:
    """Mount each of *mounts* in the mount namespace *namespace*; return for each why it failed, None if it did not."""
    done = _run(namespace, [astuple(each) for each in mounts])
    return ["the sandbox cannot be joined"] * len(mounts) if done is None else done


def set_read_only(namespace: int, mounts: Mapping[int, Path], *, read_only: bool) -> bool:
    """Have all of *mounts* be read-only, or writable again, in the mount namespace *namespace*.

    Args:
        mounts: their paths in the sandbox, by their number.

    Returns:
        Whether that was done; if not, those that were are as before again, as far as they can be.
    """
    asked = [[number, str(path)] for number, path in mounts.items()]
    return _run(namespace, asked, "read-only" if read_only else "writable") is True


def _run(namespace: int, asked: object, *how: str) -> Any:
    """Return what the program answers; None where it could not do it."""
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-m", __name__, str(namespace), *how],
            input=json.dumps(asked).encode("ascii"),
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd="/", timeout=_SECONDS,
            pass_fds=(namespace,), check=True,
        )  # fmt: skip
        return json.loads(done.stdout)
    except (OSError, ValueError, subprocess.SubprocessError):
        return None


def _open(folder: int, name: str, identity: list[int]) -> int:
    """Open *name* in *folder*.

    Raises:
        OSError: it is not the one with *identity*.
    """
    handle = os.open(name, _FLAGS, dir_fd=folder)
    status = os.fstat(handle)
    if [status.st_dev, status.st_ino] != identity:
        raise FileNotFoundError(0, "it is another one by now")
    return handle


def _open_folder(folder: str) -> int:
    handle = os.open("/", _FLAGS | os.O_DIRECTORY)
    for part in PurePosixPath(folder).parts[1:]:
        above = handle
        handle = os.open(part, _FLAGS | os.O_DIRECTORY, dir_fd=above)
        os.close(above)
    return handle


def _mount(
    folder: str, source: str, source_id: list[int], target: str, target_id: list[int]
) -> None:
    handle = _open_folder(folder)
    bind_mount(_open(handle, source, source_id), _open(handle, target, target_id))


def _mount_each(mounts: list[Any]) -> list[str | None]:
    """Make the mounts, and return for each why it failed."""
    results: list[str | None] = []
    for each in mounts:
        try:
            _mount(*each)  # what it leaves open ends with this program
            results.append(None)
        except OSError as error:
            results.append(error.strerror)
    return results


def _set_read_only(mounts: list[tuple[int, str]], *, read_only: bool, numbers: int) -> bool:
    done: list[int] = []
    until = time.monotonic() + _BUSY_SECONDS
    try:
        for number, path in mounts:
            place = PurePosixPath(path)
            mount = os.open(place.name, _FLAGS, dir_fd=_open_folder(str(place.parent)))
            info = os.read(os.open(str(mount), os.O_RDONLY, dir_fd=numbers), 4096)
            if b"mnt_id:\t%d\n" % number not in info:
                raise FileNotFoundError(0, "it is another one by now")
            _set(mount, until, read_only=read_only)
            done.append(mount)
    except OSError:
        for mount in done:
            with contextlib.suppress(OSError):
                set_mount_read_only(mount, read_only=not read_only)
        return False
    return True


def _set(mount: int, until: float, *, read_only: bool) -> None:
    """Do it once nothing is written there, tried *until* then: what is open longer than a moment is left open.

    Raises:
        OSError: something is.
    """
    while True:
        try:
            set_mount_read_only(mount, read_only=read_only)
        except OSError as error:
            if error.errno != errno.EBUSY or time.monotonic() > until:
                raise
            time.sleep(_BUSY_SECONDS / 20)
        else:
            return


def main() -> None:
    """Join the namespace, do what is asked, and print whether, or for each why it failed."""
    asked = json.load(sys.stdin)
    namespace, *how = sys.argv[1:]
    numbers = os.open("/proc/self/fdinfo", os.O_RDONLY | os.O_DIRECTORY)
    sys.path.clear()
    code = 1
    try:
        join_namespace(int(namespace), "mnt")
        done = (
            _set_read_only(asked, read_only=how == ["read-only"], numbers=numbers)
            if how
            else _mount_each(asked)
        )
        os.write(1, json.dumps(done).encode("ascii"))
        code = 0
    finally:
        os._exit(code)


if __name__ == "__main__":
    main()
