"""Running the agent in the foreground on a pseudo-terminal of its own.

The person's terminal is never the agent's: an agent that holds it can type into the shell behind it
(THREATS H7, E6). Bytes, size and signals are passed on, and what is left unread at the end is
thrown away, so that no answer to a terminal query lands in the shell.
"""

import contextlib
import errno
import fcntl
import os
import pty
import select
import signal
import struct
import sys
import termios
import time
import tty
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, NoReturn

from aileron_core.containment.linux import die_with_parent

__all__ = ["run_foreground"]

_CHUNK = 65536
_FORWARDED = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT)
_PATIENCE = 3.0
"""Seconds that the agent has after a signal that ends the launcher, before it is killed."""
_DRAIN = 0.5
"""Seconds in which the last output of an agent that has ended is still passed on."""
_LINGER = 0.1
"""Seconds in which a terminal may still answer what the agent asked; then its answer is thrown away."""
_NOT_FOUND, _NOT_EXECUTABLE = 127, 126


@dataclass(slots=True, kw_only=True)
class _Terminal:
    """What of our three descriptors is the person's terminal, and the pair that stands in for it."""

    master: int = -1
    slave: int = -1
    given: dict[int, int] = field(default_factory=dict[int, int])
    """Descriptor of the child -> descriptor here that it gets."""


def run_foreground(
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: str,
    prepare: Callable[[], None] = lambda: None,
    started: Callable[[], None] = lambda: None,
) -> int:
    """Run *argv* until it ends and return its exit code (128 and the number for a signal).

    Each of our three standard descriptors that is a terminal is one of a new pseudo-terminal for
    the agent; the others (a pipe, a file) are passed on. For the main thread.

    Args:
        argv: the program by its absolute path, and its arguments.
        env: the whole environment.
        cwd: where it starts.
        prepare: called in the child just before exec; must not allocate much.
        started: called once it runs; threads may be started from then on, and not before.
    """
    terminal = _terminal()
    with _signals() as signalled:
        child = os.fork()
        if child == 0:
            _become(terminal, argv, env, cwd, prepare)
        if terminal.slave >= 0:
            os.close(terminal.slave)
        try:
            started()
            with _raw(sys.stdin.fileno() if terminal.master >= 0 and os.isatty(0) else -1):
                return _attend(child, terminal.master, signalled)
        finally:
            if terminal.master >= 0:
                os.close(terminal.master)


def _terminal() -> _Terminal:
    """Return a new pseudo-terminal of the size of ours, where one of our descriptors is a terminal."""
    ours = [fd for fd in (0, 1, 2) if os.isatty(fd)]
    if not ours:
        return _Terminal()
    master, slave = pty.openpty()
    _copy_size(ours[0], master)
    with contextlib.suppress(termios.error):
        termios.tcsetattr(slave, termios.TCSANOW, termios.tcgetattr(ours[0]))
    return _Terminal(master=master, slave=slave, given=dict.fromkeys(ours, slave))


def _copy_size(source: int, target: int) -> None:
    with contextlib.suppress(OSError):
        size = fcntl.ioctl(source, termios.TIOCGWINSZ, b"\0" * 8)
        if struct.unpack("4H", size)[0]:
            fcntl.ioctl(target, termios.TIOCSWINSZ, size)


def _become(
    terminal: _Terminal,
    argv: Sequence[str],
    env: Mapping[str, str],
    cwd: str,
    prepare: Callable[[], None],
) -> NoReturn:
    """Turn this new process into the agent; never returns."""
    code = _NOT_EXECUTABLE
    try:
        os.setsid()
        if terminal.slave >= 0:
            fcntl.ioctl(terminal.slave, termios.TIOCSCTTY, 0)
            for number, here in terminal.given.items():
                os.dup2(here, number)
        for number in (*_FORWARDED, signal.SIGPIPE, signal.SIGWINCH, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        os.chdir(cwd)
        os.closerange(3, min(os.sysconf("SC_OPEN_MAX"), 65536))
        prepare()
        die_with_parent(signal.SIGTERM)
        os.execve(argv[0], list(argv), dict(env))  # noqa: S606 - the point: no shell
    except FileNotFoundError:
        code = _NOT_FOUND
    except BaseException as error:  # noqa: BLE001 - a forked process must not return into our code
        os.write(
            2, f"aileron launch: {argv[0]} did not start ({error})\n".encode("utf-8", "replace")
        )
    os._exit(code)


@contextlib.contextmanager
def _raw(terminal: int) -> Generator[None, None, None]:
    """Hand every byte of the person's terminal over as it comes; put it back and flush at the end."""
    if terminal < 0:
        yield
        return
    before = termios.tcgetattr(terminal)
    try:
        tty.setraw(terminal, termios.TCSAFLUSH)
        yield
    finally:
        time.sleep(_LINGER)
        termios.tcsetattr(terminal, termios.TCSAFLUSH, before)


@contextlib.contextmanager
def _signals() -> Generator[int, None, None]:
    """Yield a descriptor from which the numbers of arriving signals can be read."""
    reading, writing = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)

    def note(_number: int, _frame: FrameType | None) -> None:
        """The wake-up descriptor has it already."""

    watched = (*_FORWARDED, signal.SIGWINCH, signal.SIGCHLD)
    before: dict[int, Any] = {number: signal.signal(number, note) for number in watched}
    woken = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    try:
        yield reading
    finally:
        signal.set_wakeup_fd(woken)
        for number, handler in before.items():
            signal.signal(number, handler)
        os.close(reading)
        os.close(writing)


def _attend(child: int, master: int, signalled: int) -> int:
    """Pass bytes and signals on until the child has ended; return its exit code."""
    typing = os.isatty(0) and master >= 0
    killing_at: float | None = None
    with _nonblocking(master):
        while True:
            sources = [
                signalled,
                *([master] if master >= 0 else ()),
                *([0] if typing else ()),
            ]
            timeout = None if killing_at is None else max(0.0, killing_at - time.monotonic())
            ready, _, _ = select.select(sources, (), (), timeout)
            if killing_at is not None and time.monotonic() >= killing_at:
                _to_group(child, signal.SIGKILL)
                killing_at = None
            if master in ready and not _pass_on(master, 1):
                master = -1
            if 0 in ready and typing:
                typing = _pass_on(0, master) if master >= 0 else False
            if signalled in ready:
                for number in _arrived(signalled):
                    killing_at = _handle(number, child, master, killing_at)
            ended = _reaped(child)
            if ended is not None:
                _drain(master)
                return ended


def _handle(number: int, child: int, master: int, killing_at: float | None) -> float | None:
    if number == signal.SIGWINCH and master >= 0:
        _copy_size(next(fd for fd in (0, 1, 2) if os.isatty(fd)), master)
    elif number in _FORWARDED:
        _to_group(_foreground(child, master), number)
        if number != signal.SIGINT and killing_at is None:
            return time.monotonic() + _PATIENCE
    return killing_at


def _foreground(child: int, master: int) -> int:
    """Return the process group that a signal is for: the agent's, also inside a sandbox."""
    with contextlib.suppress(OSError):
        if master >= 0 and (group := os.tcgetpgrp(master)) > 0:
            return group
    return child


def _to_group(group: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def _arrived(signalled: int) -> Iterator[int]:
    with contextlib.suppress(BlockingIOError):
        yield from os.read(signalled, 4096)


def _reaped(child: int) -> int | None:
    pid, status = os.waitpid(child, os.WNOHANG)
    if pid == 0:
        return None
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def _pass_on(source: int, target: int) -> bool:
    """Copy what is there; return whether the source may have more."""
    try:
        data = os.read(source, _CHUNK)
    except BlockingIOError:
        return True
    except OSError as error:
        if error.errno == errno.EIO:  # the last process on the pseudo-terminal closed it
            return False
        raise
    if not data:
        return False
    _write_all(target, data)
    return True


def _write_all(target: int, data: bytes) -> None:
    """Write *data*; where the reader does not take it, wait, and give up where it is gone."""
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(target, view) :]
        except BlockingIOError:
            select.select((), (target,), (), 1.0)
        except OSError:
            return


@contextlib.contextmanager
def _nonblocking(master: int) -> Generator[None, None, None]:
    if master >= 0:
        os.set_blocking(master, False)
    yield


def _drain(master: int) -> None:
    """Pass on the last output of an agent that has ended; a grandchild that stays is not waited for."""
    if master < 0:
        return
    until = time.monotonic() + _DRAIN
    while (left := until - time.monotonic()) > 0:
        ready, _, _ = select.select([master], (), (), left)
        if not ready or not _pass_on(master, 1):
            return
