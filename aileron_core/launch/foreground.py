"""Running the agent in the foreground on a pseudo-terminal and pipes of its own.

The agent never gets the person's terminal: with it, it could type into the shell behind. Nor does
it get a file that Aileron's input or output was redirected to: it could write to its input, and
read and change what a file already held. Instead bytes, window size and signals are forwarded.
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

from aileron_core.containment.linux_syscalls import die_with_parent
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
    """One direction of byte forwarding between two descriptors."""

    source: int
    target: int
    inwards: bool
    """Whether to the agent, which may not read: what it has not read yet waits in `pending`."""
    seen: TerminalState | None = None
    """Scans what is forwarded to the person's terminal."""
    pending: memoryview = field(default_factory=lambda: memoryview(b""))

    def carry(self) -> bool:
        """Read and forward what is there, or write what is pending; return whether more may follow."""
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
            self.seen.scan(data)
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
    """What the agent gets as its three standard descriptors, and the pumps between those and ours."""

    master: int = -1
    terminals: tuple[int, ...] = ()
    """Our descriptors that are the person's terminal."""
    given: dict[int, int] = field(default_factory=dict[int, int])
    """Descriptor of the child -> descriptor here that it gets."""
    pumps: list[_Pump] = field(default_factory=list[_Pump])

    def close_given(self) -> None:
        """Close the descriptors that only the child uses."""
        for descriptor in {*self.given.values()}:
            os.close(descriptor)

    def end(self, pump: _Pump) -> None:
        """Stop *pump*; if it fed a pipe, the agent reads end of file."""
        self.pumps.remove(pump)
        if self.master not in (pump.source, pump.target):
            os.close(pump.target if pump.inwards else pump.source)
        elif not pump.inwards:
            self.pumps = [each for each in self.pumps if each.target != self.master]

    def close(self) -> None:
        """Stop all pumps and close the pseudo-terminal."""
        for pump in [*self.pumps]:
            self.end(pump)
        if self.master >= 0:
            os.close(self.master)


def run_foreground(
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: str,
    prepare: Callable[[], None] = lambda: None,
    started: Callable[[int], None] = lambda _: None,
) -> int:
    """Run *argv* until it ends and return its exit code (128 plus the number for a signal).

    Where one of our standard descriptors is a terminal, the agent gets a new pseudo-terminal; where
    it is a file, a pipe. Others (a pipe, a socket, a device such as /dev/null) are inherited. Main
    thread only.

    Args:
        argv: the program by its absolute path, and its arguments.
        prepare: called in the child just before exec; must not allocate much.
        started: called with its process id once it runs; no thread may be started before.
    """
    seen = TerminalState()
    standard = _standard(seen)
    with _signals() as signalled:
        child = os.fork()
        if child == 0:
            _become(standard, argv, env, cwd, prepare)
        standard.close_given()
        try:
            started(child)
            with raw_terminal(standard.terminals, seen):
                return _attend(child, standard, signalled)
        finally:
            standard.close()


def _standard(seen: TerminalState) -> _StandardStreams:
    """Open a pseudo-terminal for the descriptors that are terminals, and pipes for those that are files."""
    ours = tuple(number for number in (0, 1, 2) if os.isatty(number))
    streams = _StandardStreams(terminals=ours)
    if ours:
        streams.master, slave = pty.openpty()
        os.set_blocking(streams.master, False)
        _copy_size(ours[0], streams.master)
        with contextlib.suppress(termios.error):
            termios.tcsetattr(slave, termios.TCSANOW, termios.tcgetattr(ours[0]))
        streams.given |= dict.fromkeys(ours, slave)
        shown = next((number for number in (1, 2) if number in ours), 0)
        streams.pumps.append(_Pump(source=streams.master, target=shown, inwards=False, seen=seen))
        if 0 in ours:
            streams.pumps.append(_Pump(source=0, target=streams.master, inwards=True))
    for number in (0, 1, 2):
        if _is_file(number):
            _pipe(streams, number)
    return streams


def _is_file(number: int) -> bool:
    """Return whether the descriptor could be reopened with other rights through /proc/self/fd."""
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
    standard.pumps.append(_Pump(source=source, target=target, inwards=number == 0))


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
    """Execute the agent in this forked process; never returns."""
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
        """Do nothing: the wake-up descriptor already has the number."""

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
    """Forward bytes and signals until the child has ended; return its exit code."""
    killing_at: float | None = None
    while True:
        sources = [pump.source for pump in standard.pumps if not pump.pending]
        targets = [pump.target for pump in standard.pumps if pump.pending]
        timeout = None if killing_at is None else max(0.0, killing_at - time.monotonic())
        ready, takes, _ = select.select([signalled, *sources], targets, (), timeout)
        if killing_at is not None and time.monotonic() >= killing_at:
            _to_group(child, signal.SIGKILL)
            killing_at = None
        for pump in [*standard.pumps]:
            able = pump.target in takes if pump.pending else pump.source in ready
            if able and pump in standard.pumps and not pump.carry():
                standard.end(pump)
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
    """Return the process group to signal: the terminal's foreground group, also inside a sandbox."""
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
    """Write all of *data*, waiting for a slow reader; give up if the reader is gone."""
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(target, view) :]
        except BlockingIOError:
            select.select((), (target,), (), 1.0)
        except OSError:
            return


def _drain(standard: _StandardStreams) -> None:
    """Forward the last output of an agent that has ended, without waiting for surviving grandchildren."""
    until = time.monotonic() + _DRAIN
    rounds = _LAST // _CHUNK
    while outwards := [pump for pump in standard.pumps if not pump.inwards]:
        rounds -= 1
        left = until - time.monotonic()
        sources = [pump.source for pump in outwards]
        ready, _, _ = select.select(sources, (), (), max(0.0, left))
        if not ready or (left <= 0 and rounds < 0):
            return
        for pump in outwards:
            if pump.source in ready and not pump.carry():
                standard.end(pump)
