"""Running the agent in the foreground on a pseudo-terminal and pipes of its own.

The person's terminal is never the agent's: an agent that holds it can type into the shell behind it.
Nor is a file that our input or output was directed to: an agent that holds it can write where it
should read, and read and change what was there before. Bytes, size and signals are passed on.
"""

import contextlib
import errno
import fcntl
import os
import pty
import select
import signal
import stat
import struct
import termios
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, NoReturn

from aileron_core.containment.linux import die_with_parent
from aileron_core.launch.terminal import TerminalState, raw_terminal

_CHUNK = 65536
_FORWARDED = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT)
_PATIENCE = 3.0
"""Seconds that the agent has after a signal that ends the launcher, before it is killed."""
_DRAIN = 0.5
"""Seconds in which the last output of an agent that has ended is still passed on."""
_LAST = 1024 * 1024
"""Bytes of that output which are passed on however long it takes: what a pipe can hold."""
_NOT_FOUND, _NOT_EXECUTABLE = 127, 126


@dataclass(slots=True, kw_only=True, eq=False)
class _Pump:
    """One direction in which bytes are carried."""

    source: int
    target: int
    inwards: bool
    """To the agent, which need not take it: what it has not taken yet waits in `pending`."""
    seen: TerminalState | None = None
    """Where what is carried to the person's terminal is noted."""
    pending: memoryview = field(default_factory=lambda: memoryview(b""))

    def carry(self) -> bool:
        """Copy what is there, or give what waits; return whether there may be more."""
        if self.pending:
            return self._give()
        try:
            data = os.read(self.source, _CHUNK)
        except BlockingIOError:
            return True
        except OSError as error:
            if error.errno == errno.EIO:  # the last process on the pseudo-terminal closed it
                return False
            raise
        if not data:
            return False
        if self.inwards:
            self.pending = memoryview(data)
            return self._give()
        if self.seen is not None:
            self.seen.take(data)
        _write_all(self.target, data)
        return True

    def _give(self) -> bool:
        try:
            self.pending = self.pending[os.write(self.target, self.pending) :]
        except BlockingIOError:
            return True
        except OSError:  # the agent reads no more
            return False
        return True


@dataclass(slots=True, kw_only=True)
class _StandardStreams:
    """What stands in for our three descriptors, and the ways between those and ours."""

    master: int = -1
    terminals: tuple[int, ...] = ()
    """Those of ours that are the person's terminal."""
    given: dict[int, int] = field(default_factory=dict[int, int])
    """Descriptor of the child -> descriptor here that it gets."""
    ways: list[_Pump] = field(default_factory=list[_Pump])

    def close_given(self) -> None:
        """Close what is the child's alone."""
        for descriptor in {*self.given.values()}:
            os.close(descriptor)

    def end(self, way: _Pump) -> None:
        """Carry no more that way; the agent reads the end of what came by a pipe."""
        self.ways.remove(way)
        if self.master not in (way.source, way.target):
            os.close(way.target if way.inwards else way.source)
        elif not way.inwards:
            self.ways = [each for each in self.ways if each.target != self.master]

    def close(self) -> None:
        """Close what is left."""
        for way in [*self.ways]:
            self.end(way)
        if self.master >= 0:
            os.close(self.master)


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
    the agent, each that is a file is a pipe; others (a pipe, a socket, a device such as /dev/null)
    are passed on. For the main thread.

    Args:
        argv: the program by its absolute path, and its arguments.
        env: the whole environment.
        cwd: where it starts.
        prepare: called in the child just before exec; must not allocate much.
        started: called once it runs; threads may be started from then on, and not before.
    """
    seen = TerminalState()
    standard = _standard(seen)
    with _signals() as signalled:
        child = os.fork()
        if child == 0:
            _become(standard, argv, env, cwd, prepare)
        standard.close_given()
        try:
            started()
            with raw_terminal(standard.terminals, seen):
                return _attend(child, standard, signalled)
        finally:
            standard.close()


def _standard(seen: TerminalState) -> _StandardStreams:
    """Return a new pseudo-terminal of the size of ours where one of our descriptors is a terminal, and pipes."""
    ours = tuple(number for number in (0, 1, 2) if os.isatty(number))
    found = _StandardStreams(terminals=ours)
    if ours:
        found.master, slave = pty.openpty()
        os.set_blocking(found.master, False)
        _copy_size(ours[0], found.master)
        with contextlib.suppress(termios.error):
            termios.tcsetattr(slave, termios.TCSANOW, termios.tcgetattr(ours[0]))
        found.given |= dict.fromkeys(ours, slave)
        shown = next((number for number in (1, 2) if number in ours), 0)
        found.ways.append(_Pump(source=found.master, target=shown, inwards=False, seen=seen))
        if 0 in ours:
            found.ways.append(_Pump(source=0, target=found.master, inwards=True))
    for number in (0, 1, 2):
        if _is_file(number):
            _pipe(found, number)
    return found


def _is_file(number: int) -> bool:
    """Tell whether a descriptor is one that could be opened again in another way, under /proc."""
    try:
        mode = os.fstat(number).st_mode
    except OSError:  # closed
        return False
    return stat.S_ISREG(mode) or stat.S_ISBLK(mode) or stat.S_ISDIR(mode)


def _pipe(standard: _StandardStreams, number: int) -> None:
    if number == 2 and 1 in standard.given and os.path.sameopenfile(1, 2):
        standard.given[2] = standard.given[1]  # one pipe keeps the order in which they are written
        return
    reading, writing = os.pipe2(os.O_CLOEXEC)
    ours, theirs = (writing, reading) if number == 0 else (reading, writing)
    os.set_blocking(ours, False)
    standard.given[number] = theirs
    source, target = (0, ours) if number == 0 else (ours, number)
    standard.ways.append(_Pump(source=source, target=target, inwards=number == 0))


def _copy_size(source: int, target: int) -> None:
    with contextlib.suppress(OSError):
        size = fcntl.ioctl(source, termios.TIOCGWINSZ, b"\0" * 8)
        if struct.unpack("4H", size)[0]:
            fcntl.ioctl(target, termios.TIOCSWINSZ, size)


def _become(
    standard: _StandardStreams,
    argv: Sequence[str],
    env: Mapping[str, str],
    cwd: str,
    prepare: Callable[[], None],
) -> NoReturn:
    """Turn this new process into the agent; never returns."""
    code = _NOT_EXECUTABLE
    try:
        os.setsid()
        if standard.terminals:
            fcntl.ioctl(standard.given[standard.terminals[0]], termios.TIOCSCTTY, 0)
        for number, here in standard.given.items():
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


def _attend(child: int, standard: _StandardStreams, signalled: int) -> int:
    """Pass bytes and signals on until the child has ended; return its exit code."""
    killing_at: float | None = None
    while True:
        sources = [way.source for way in standard.ways if not way.pending]
        targets = [way.target for way in standard.ways if way.pending]
        timeout = None if killing_at is None else max(0.0, killing_at - time.monotonic())
        ready, takes, _ = select.select([signalled, *sources], targets, (), timeout)
        if killing_at is not None and time.monotonic() >= killing_at:
            _to_group(child, signal.SIGKILL)
            killing_at = None
        for way in [*standard.ways]:
            able = way.target in takes if way.pending else way.source in ready
            if able and way in standard.ways and not way.carry():
                standard.end(way)
        if signalled in ready:
            for number in _arrived(signalled):
                killing_at = _handle(number, child, standard, killing_at)
        ended = _reaped(child)
        if ended is not None:
            _drain(standard)
            return ended


def _handle(
    number: int, child: int, standard: _StandardStreams, killing_at: float | None
) -> float | None:
    if number == signal.SIGWINCH and standard.terminals:
        _copy_size(standard.terminals[0], standard.master)
    elif number in _FORWARDED:
        _to_group(_foreground(child, standard.master), number)
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


def _drain(standard: _StandardStreams) -> None:
    """Pass on the last output of an agent that has ended; a grandchild that stays is not waited for."""
    until = time.monotonic() + _DRAIN
    rounds = _LAST // _CHUNK
    while outwards := [way for way in standard.ways if not way.inwards]:
        rounds -= 1
        left = until - time.monotonic()
        sources = [way.source for way in outwards]
        ready, _, _ = select.select(sources, (), (), max(0.0, left))
        if not ready or (left <= 0 and rounds < 0):
            return
        for way in outwards:
            if way.source in ready and not way.carry():
                standard.end(way)
