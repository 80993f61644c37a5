"""Mounting a folder over another in a sandbox that runs: a short program that joins the sandbox's namespaces.

    python -I -m aileron_core.containment.sandbox_mounts NAMESPACE < mounts

A program of its own, because only a process without threads can join a user namespace. Once it has
joined it opens what it was told and nothing else, without following links: everything that it can
reach is as the agent has arranged it. What is opened has to be what was named outside (device and
inode), so that the agent can at most have itself served badly.
"""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from pathlib import Path, PurePosixPath

from aileron_core.containment.linux_syscalls import bind_mount, join_namespace

_SECONDS = 20
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
    children = Path(f"/proc/{bwrap}/task/{bwrap}/children").read_text(encoding="ascii").split()
    if not children:
        raise ProcessLookupError
    return os.open(f"/proc/{children[0]}/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)


def mount_in_sandbox(namespace: int, mounts: Sequence[SandboxMount]) -> list[str | None]:
    """Mount each of *mounts* in the mount namespace *namespace*; return for each why it failed, None if it did not."""
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-m", __name__, str(namespace)],
            input=json.dumps([astuple(each) for each in mounts]).encode("ascii"),
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd="/", timeout=_SECONDS,
            pass_fds=(namespace,), check=True,
        )  # fmt: skip
        return json.loads(done.stdout)
    except (OSError, ValueError, subprocess.SubprocessError):
        return ["the sandbox cannot be joined"] * len(mounts)


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


def _mount(
    folder: str, source: str, source_id: list[int], target: str, target_id: list[int]
) -> None:
    handle = os.open("/", _FLAGS | os.O_DIRECTORY)
    for part in PurePosixPath(folder).parts[1:]:
        above = handle
        handle = os.open(part, _FLAGS | os.O_DIRECTORY, dir_fd=above)
        os.close(above)
    bind_mount(_open(handle, source, source_id), _open(handle, target, target_id))


def main() -> None:
    """Join the namespace, make the mounts, and print for each why it failed or null."""
    mounts = json.load(sys.stdin)
    join_namespace(int(sys.argv[1]), "mnt")
    results: list[str | None] = []
    for each in mounts:
        try:
            _mount(*each)  # what it leaves open ends with this program
            results.append(None)
        except OSError as error:
            results.append(error.strerror)
    sys.stdout.write(json.dumps(results))


if __name__ == "__main__":
    main()
