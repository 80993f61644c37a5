"""The agent's standard streams: a pseudo-terminal or pipes of its own, and what carries bytes between those and ours."""

import contextlib
import errno
import fcntl
import os
import pty
import select
import stat
import struct
import termios
import time
from dataclasses import dataclass, field

from aileron_core.launch.terminal import TerminalState

_CHUNK = 65536
_DRAIN = 0.5
"""Seconds in which the last output of an agent that has ended is still passed on."""
_LAST = 1024 * 1024
"""Bytes of that output which are passed on however long it takes: what a pipe can hold."""
_LFLAG = 3


@dataclass(slots=True, kw_only=True, eq=False)
class Pump:
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
class StandardStreams:
    """What the agent gets as its three standard descriptors, and the pumps between those and ours."""

    master: int = -1
    terminals: tuple[int, ...] = ()
    """Our descriptors that are the person's terminal."""
    given: dict[int, int] = field(default_factory=dict[int, int])
    """Descriptor of the child -> descriptor here that it gets."""
    pumps: list[Pump] = field(default_factory=list[Pump])

    def close_given(self) -> None:
        """Close the descriptors that only the child uses."""
        for descriptor in {*self.given.values()}:
            os.close(descriptor)

    def end(self, pump: Pump) -> None:
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

    def is_raw(self) -> bool:
        """Return whether the agent reads single keys from its terminal, as one that draws a screen does."""
        with contextlib.suppress(OSError, termios.error):
            return self.master >= 0 and not termios.tcgetattr(self.master)[_LFLAG] & termios.ICANON
        return False

    def resize(self, *, rows_less: int = 0) -> None:
        """Give the agent's terminal the size of the person's, or another that it notices."""
        if not self.terminals:
            return
        with contextlib.suppress(OSError):
            size = fcntl.ioctl(self.terminals[0], termios.TIOCGWINSZ, b"\0" * 8)
            rows, columns, width, height = struct.unpack("4H", size)
            if rows > rows_less:
                size = struct.pack("4H", rows - rows_less, columns, width, height)
                fcntl.ioctl(self.master, termios.TIOCSWINSZ, size)

    def pass_output(self, *, seconds: float = 0.0) -> None:
        """Forward what the agent has written, without waiting for surviving processes of its own.

        Args:
            seconds: how long more may still come.
        """
        until = time.monotonic() + seconds
        rounds = _LAST // _CHUNK
        while outwards := [pump for pump in self.pumps if not pump.inwards]:
            rounds -= 1
            left = until - time.monotonic()
            sources = [pump.source for pump in outwards]
            ready, _, _ = select.select(sources, (), (), max(0.0, left))
            if not ready or (left <= 0 and rounds < 0):
                return
            for pump in outwards:
                if pump.source in ready and not pump.carry():
                    self.end(pump)

    def drain(self) -> None:
        """Forward the last output of an agent that has ended."""
        self.pass_output(seconds=_DRAIN)


def open_streams(seen: TerminalState, *, foreground: bool) -> StandardStreams:
    """Open a pseudo-terminal for the descriptors that are terminals, and pipes for those that are files.

    Args:
        seen: what is forwarded to the person's terminal is scanned into it.
        foreground: whether the terminal is the launcher's; its modes may be those of a shell's
            prompt else.
    """
    ours = tuple(number for number in (0, 1, 2) if os.isatty(number))
    streams = StandardStreams(terminals=ours)
    if ours:
        streams.master, slave = pty.openpty()
        os.set_blocking(streams.master, False)
        streams.resize()
        with contextlib.suppress(termios.error):
            modes, default = termios.tcgetattr(ours[0]), termios.tcgetattr(slave)
            default[_LFLAG] |= modes[_LFLAG] & termios.TOSTOP
            termios.tcsetattr(slave, termios.TCSANOW, modes if foreground else default)
        streams.given |= dict.fromkeys(ours, slave)
        shown = next((number for number in (1, 2) if number in ours), 0)
        streams.pumps.append(Pump(source=streams.master, target=shown, inwards=False, seen=seen))
        if 0 in ours:
            streams.pumps.append(Pump(source=0, target=streams.master, inwards=True))
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


def _pipe(standard: StandardStreams, number: int) -> None:
    if number == 2 and 1 in standard.given and os.path.sameopenfile(1, 2):
        standard.given[2] = standard.given[1]  # one pipe keeps the order in which they are written
        return
    reading, writing = os.pipe2(os.O_CLOEXEC)
    ours, theirs = (writing, reading) if number == 0 else (reading, writing)
    os.set_blocking(ours, False)
    standard.given[number] = theirs
    source, target = (0, ours) if number == 0 else (ours, number)
    standard.pumps.append(Pump(source=source, target=target, inwards=number == 0))


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
