"""Starting one command, and what stands between it and this worker: the first process of its namespaces.

That one makes the namespaces ready, gives up every right, starts the command and waits for it. When it
ends, however that comes, the kernel ends everything else in its process namespace. It cannot be stopped
from inside, and is not dumpable, so that the command learns nothing from it.

What it and the command report comes through a pipe, as JSON objects by line: `{"failed": sentence}`
(nothing ran), `{"not_found": word}`, `{"status": N}` as `waitpid` has it, and without namespaces
`{"group": N}`, the command's process group.
"""

import contextlib
import json
import os
import signal
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn, Protocol

from aileron_core.connectors.builtin.worker import namespaces
from aileron_core.containment.linux_syscalls import (
    die_with_parent,
    no_new_privileges,
    openat2,
)

_FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_CLOEXEC
_AT_FDCWD = -100
_NO_MAGIC_LINKS, _NO_LINKS = 0x02, 0x04
"""RESOLVE_* of linux/openat2.h."""
_SYSTEM = "/usr/local/bin:/usr/bin:/bin"


class NotStarted(Exception):
    """The command was not started; a sentence says why, and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """What is to run."""

    words: tuple[str, ...]
    program: str | None = None
    """A path; without one the first word is looked up on PATH."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """What the worker found out about its sandbox before anything ran in it."""

    project: Path
    identity: tuple[int, int]
    """The project's device and inode."""
    covers: list[tuple[str, bool]]
    user: int
    group: int

    @classmethod
    def of(cls, project: Path) -> "Box":
        """Return that of this process.

        Raises:
            OSError: the project cannot be reached.
        """
        status = project.stat()
        user, group = namespaces.real_ids()
        return cls(
            project=project,
            identity=(status.st_dev, status.st_ino),
            covers=namespaces.process_covers(),
            user=user,
            group=group,
        )

    def open_project(self) -> int:
        """Return a descriptor of the project.

        Raises:
            NotStarted: another folder is in its place: an earlier command renamed one above it.
        """
        try:
            flags = _NO_LINKS | _NO_MAGIC_LINKS
            handle = openat2(_AT_FDCWD, os.fsencode(self.project), _FOLDER, flags)
        except OSError:
            handle = -1
        status = os.fstat(handle) if handle >= 0 else None
        if status is None or (status.st_dev, status.st_ino) != self.identity:
            raise NotStarted(
                f"{self.project} does not lead to the project any more: an earlier command renamed a "
                "folder above it. Commands run again in a new session."
            )
        return handle


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """A command that was started. What it holds open ends with it."""

    process: int
    """The first process, a child of this one; killing it ends everything."""
    stdout: int
    stderr: int
    reports: int


class Extras(Protocol):
    """What a rehearsal adds; all of it is called in the first process."""

    def arrange(self, box: Box) -> int:
        """Change the mounts; return a descriptor of the project."""
        ...

    def restrict(self) -> tuple[int, ...]:
        """Set limits, when every right is gone and the command is not there; return descriptors that stay open."""
        ...

    def attend(self, child: int, report: Callable[[dict[str, object]], None]) -> int:
        """Wait until the command, a process id, has ended, and return its status; report what it wants meanwhile."""
        ...


def start_command(command: Command, box: Box | None, extras: Extras | None = None) -> Running:
    """Start *command*; without a *box*, as a plain process.

    This process can start none after it.

    Raises:
        OSError: no process, pipe or namespace can be had.
    """
    out, err, reports = os.pipe2(os.O_CLOEXEC), os.pipe2(os.O_CLOEXEC), os.pipe2(os.O_CLOEXEC)
    if box is not None:
        namespaces.unshare(namespaces.NEW_PIDS)
    process = os.fork()
    if process == 0:
        _first_process(command, box, extras, out[1], err[1], reports[1])
    for pipe in (out, err, reports):
        os.close(pipe[1])
    return Running(process=process, stdout=out[0], stderr=err[0], reports=reports[0])


def close_all_but(*kept: int) -> None:
    """Close every descriptor from 3 on that is not *kept*."""
    at = 3
    for each in sorted({*kept}):
        os.closerange(at, each)
        at = each + 1
    os.closerange(at, os.sysconf("SC_OPEN_MAX") if sys.platform != "linux" else 1 << 20)


def _first_process(
    command: Command, box: Box | None, extras: Extras | None, out: int, err: int, reports: int
) -> NoReturn:
    def report(what: dict[str, object]) -> None:
        os.write(reports, json.dumps(what).encode("ascii") + b"\n")

    try:
        die_with_parent(signal.SIGKILL)
        if extras is None:
            close_all_but(out, err, reports)
        _prepare(box, extras)
        kept = extras.restrict() if extras else ()
        close_all_but(out, err, reports, *kept)
        child = os.fork()
        if child == 0:
            _execute(command, out, err, report)
        if box is None:
            report({"group": child})
        for each in (out, err):
            os.close(each)
        report({"status": _wait_for(child) if extras is None else extras.attend(child, report)})
    except NotStarted as error:
        report({"failed": str(error)})
    except OSError as error:
        report({"failed": f"The command could not be shut in ({error}), so it did not run."})
    except BaseException as error:  # noqa: BLE001 - a forked process must not return into our code
        with contextlib.suppress(OSError):
            report({"failed": f"The command did not run: {type(error).__name__}."})
    os._exit(0)


def _prepare(box: Box | None, extras: Extras | None) -> None:
    """Make this process ready to start the command, in the project."""
    if box is None:
        Path.cwd()  # the worker is in the project; this fails where that was removed
        return
    network = namespaces.NEW_NETWORK if extras else 0
    namespaces.unshare(namespaces.NEW_MOUNTS | namespaces.NEW_IPC | network)
    if extras:
        namespaces.make_mounts_private()
    else:  # while it runs, the launcher mounts a repository that it makes, and hides that outside
        namespaces.follow_mounts()
    project = extras.arrange(box) if extras else box.open_project()
    limits = namespaces.mount_own_processes(box.covers)
    namespaces.become_ordinary(box.user, box.group, limits)
    os.close(limits)
    namespaces.drop_capabilities()
    no_new_privileges()
    os.fchdir(project)
    os.close(project)


def _wait_for(child: int) -> int:
    """Reap children, as the first process has to, until *child* has ended; return its status."""
    while True:
        ended, status = os.wait()
        if ended == child:
            return status


def _execute(
    command: Command, out: int, err: int, report: Callable[[dict[str, object]], None]
) -> NoReturn:
    try:
        os.setsid()
        for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        for number, each in enumerate((os.open(os.devnull, os.O_RDONLY), out, err)):
            os.dup2(each, number)
        env = {name: value for name, value in os.environ.items() if name not in ("PWD", "OLDPWD")}
        for path in _candidates(command, env.get("PATH", _SYSTEM)):
            with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                os.execve(path, command.words, env)  # noqa: S606 - exactly these words, no shell
        report({"not_found": command.words[0]})
    except OSError as error:
        report({"failed": f"{command.words[0]} did not start: {os.strerror(error.errno or 0)}."})
    finally:
        os._exit(127)


def _candidates(command: Command, search: str) -> Iterable[str]:
    if command.program is not None:
        return (command.program,)
    if "/" in command.words[0]:
        return (command.words[0],)
    folders = (each for each in search.split(os.pathsep) if each.startswith("/"))
    return (f"{folder}/{command.words[0]}" for folder in folders)
