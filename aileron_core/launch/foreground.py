"""Running the agent in the foreground on a pseudo-terminal and pipes of its own.

The agent never gets the person's terminal: with it, it could type into the shell behind. Nor does
it get a file that Aileron's input or output was redirected to: it could write to its input, and
read and change what a file already held. Instead bytes, window size and signals are forwarded.

To the person's shell, launcher and agent are one job: they stop and go on together, and the agent
has the terminal only while the launcher is in its foreground. `agent_job` is the agent's parent.
"""

import contextlib
import errno
import fcntl
import os
import pty
import select
import signal
import socket
import stat
import struct
import termios
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, NoReturn

from aileron_core.containment.linux_syscalls import die_with_parent
from aileron_core.containment.programs import own_interpreter
from aileron_core.launch.agent_job import BACKGROUND, FOREGROUND, FREEZE, FROZEN, NOT_FROZEN
from aileron_core.launch.terminal import PersonTerminal, TerminalState

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


_CONTROL = 3
"""The descriptor by which `agent_job` has its socket to us."""
_FORWARDED = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT)
_WATCHED = (signal.SIGWINCH, signal.SIGCHLD, signal.SIGTSTP, signal.SIGCONT)
_TERMINAL_STOPS = (signal.SIGTTIN, signal.SIGTTOU)
_PATIENCE = 3.0
"""Seconds that the agent has after a signal that ends the launcher, before it is killed."""
_STOP_PATIENCE = 1.0
"""Seconds that it has to stop by itself when the launcher is stopped from outside."""
_FREEZE_SECONDS = 4.0
"""How long `agent_job` may take to freeze everything; it gives up sooner."""
_CONTINUED_SECONDS = 0.2
"""Seconds in which a process that has stopped, and goes on, learns that it did."""
_REDRAW_SECONDS = 0.1
"""How long the agent's window has another size, so that an agent draws anew that did not know that it stopped."""
_NOT_FOUND, _NOT_EXECUTABLE = 127, 126


def job_argv(script: str, *, sandbox: bool) -> list[str]:
    """Return the beginning of a command line that runs the rest of it as a job.

    Args:
        script: `agent_job.py`, where the job will see it.
        sandbox: whether it runs in a sandbox, all of which is frozen when the launcher stops.
    """
    scope = "sandbox" if sandbox else "group"
    return [str(own_interpreter()), "-I", script, str(_CONTROL), scope]


def run_foreground(
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: str,
    prepare: Callable[[], None] = lambda: None,
    started: Callable[[int], None] = lambda _: None,
    paused: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> int:
    """Run *argv* until it ends and return its exit code (128 plus the number for a signal).

    Where one of our standard descriptors is a terminal, the agent gets a new pseudo-terminal; where
    it is a file, a pipe. Others (a pipe, a socket, a device such as /dev/null) are inherited. Main
    thread only.

    Args:
        argv: the program by its absolute path, and its arguments; with what `job_argv` returns
            before the agent's, launcher and agent stop and go on together.
        prepare: called in the child just before exec; must not allocate much.
        started: called with its process id once it runs; no thread may be started before.
        paused: entered before the launcher stops, left when it goes on.
    """
    seen = TerminalState()
    terminal = PersonTerminal([number for number in (0, 1, 2) if os.isatty(number)], seen)
    foreground = terminal.is_foreground()
    streams = open_streams(seen, foreground=foreground)
    control, theirs = socket.socketpair()
    control.send(FOREGROUND if foreground else BACKGROUND)
    with _signals() as signalled, control:
        child = os.fork()
        if child == 0:
            _become(streams, theirs.fileno(), argv, env, cwd, prepare)
        theirs.close()
        streams.close_given()
        try:
            started(child)
            if foreground:
                terminal.take(discards_input=True)
            return _Attendance(
                child=child,
                streams=streams,
                terminal=terminal,
                control=control,
                signalled=signalled,
                paused=paused,
            ).run()
        finally:
            terminal.give_back()
            streams.close()


def _become(
    standard: StandardStreams,
    control: int,
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
        control = fcntl.fcntl(control, fcntl.F_DUPFD, _CONTROL + 1)
        for number, here in standard.given.items():
            os.dup2(here, number)
        os.dup2(control, _CONTROL)
        for number in (*_FORWARDED, *_WATCHED, *_TERMINAL_STOPS, signal.SIGPIPE):
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        os.chdir(cwd)
        os.closerange(_CONTROL + 1, min(os.sysconf("SC_OPEN_MAX"), 65536))
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

    before: dict[int, Any] = {
        number: signal.signal(number, note) for number in (*_FORWARDED, *_WATCHED)
    }
    # Nothing may stop this process without the agent: it would run unwatched.
    before |= {number: signal.signal(number, signal.SIG_IGN) for number in _TERMINAL_STOPS}
    woken = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    try:
        yield reading
    finally:
        signal.set_wakeup_fd(woken)
        for number, handler in before.items():
            signal.signal(number, handler)
        os.close(reading)
        os.close(writing)


@dataclass(slots=True, kw_only=True, eq=False)
class _Attendance:
    """What goes on from the agent's start to its end."""

    child: int
    streams: StandardStreams
    terminal: PersonTerminal
    control: socket.socket
    signalled: int
    paused: Callable[[], AbstractContextManager[None]]
    sources: list[socket.socket] = field(init=False)
    """The control socket, until the job has ended."""
    waiting: list[int] = field(default_factory=list[int])
    """Signals that have arrived and are not handled yet."""
    killing_at: float | None = None
    stopping_at: float | None = None
    """When an agent is frozen that was asked to stop."""
    resizing_at: float | None = None

    def __post_init__(self) -> None:
        self.sources = [self.control]

    def run(self) -> int:
        """Forward bytes and signals until the child has ended; return its exit code."""
        while True:
            ready, takes = self._wait()
            for pump in [*self.streams.pumps]:
                able = pump.target in takes if pump.pending else pump.source in ready
                able = able and pump in self.streams.pumps and self._may_carry(pump)
                if able and not pump.carry():
                    self.streams.end(pump)
            if self.control in ready:
                self._hear()
            self.waiting += self._arrived()
            while self.waiting:
                self._handle(self.waiting.pop(0))
            self._do_what_is_due()
            ended = _reaped(self.child)
            if ended is not None:
                self.streams.drain()
                return ended

    def _wait(self) -> tuple[list[int | socket.socket], list[int]]:
        """Wait until something can be done; return what can be read, and what takes bytes."""
        pumps = [pump for pump in self.streams.pumps if not pump.pending]
        # What is typed while another program has the terminal is that program's.
        pumps = [pump for pump in pumps if self.terminal.is_taken or not self._is_typed(pump)]
        targets = [pump.target for pump in self.streams.pumps if pump.pending]
        due = [self.killing_at, self.stopping_at, self.resizing_at]
        left = [max(0.0, at - time.monotonic()) for at in due if at is not None]
        sources: list[int | socket.socket] = [self.signalled, *self.sources]
        sources += [pump.source for pump in pumps]
        ready, takes, _ = select.select(sources, targets, (), min(left, default=None))
        return ready, takes

    def _is_typed(self, pump: Pump) -> bool:
        return pump.inwards and pump.source in self.streams.terminals

    def _do_what_is_due(self) -> None:
        now = time.monotonic()
        if self.killing_at is not None and now >= self.killing_at:
            self.killing_at = None
            for group in (_foreground_group(self.streams.master), self.child):
                _kill_group(group)
        if self.resizing_at is not None and now >= self.resizing_at:
            self.resizing_at = None
            self.streams.resize()
        if self.stopping_at is not None and now >= self.stopping_at:
            self._stop(signal.SIGTSTP)

    def _may_carry(self, pump: Pump) -> bool:
        """Return whether *pump* may carry now, after what a change of the foreground calls for."""
        if pump.source not in (self.streams.master, *self.streams.terminals):
            return True
        if self.terminal.is_taken != self.terminal.is_foreground():
            self._go_on()  # nobody tells a job that runs in the background that it no longer does
        if self.terminal.is_taken:
            return True
        if not pump.inwards and self.streams.is_raw():
            self._stop(signal.SIGTTOU)  # it ignores that signal, and would draw over the shell
            return False
        return not pump.inwards

    def _hear(self) -> None:
        """Read what the job says: which signal stopped the agent."""
        said = self._received()
        if not said:
            self.sources.clear()
        for each in said:
            if bytes((each,)) in (FROZEN, NOT_FROZEN):
                continue
            if self.killing_at is not None:
                self._tell(BACKGROUND)  # it is to end, and for that it has to run
            elif each in _TERMINAL_STOPS and self.terminal.is_foreground():
                self._go_on()
            else:
                self._stop(each if each in _TERMINAL_STOPS else signal.SIGTSTP)

    def _stop(self, number: int) -> None:
        """Stop agent and launcher, as *number* stops a program; return when they go on."""
        self.stopping_at = None
        if self.terminal.is_taken:
            self.streams.pass_output()
        continued = True
        if self._freeze():
            with self.paused():
                if self.terminal.is_taken:
                    self.streams.pass_output()
                self.terminal.give_back()
                continued = self._stop_own_group(number)
        self._go_on()
        if not continued and number in _TERMINAL_STOPS and not self.terminal.is_foreground():
            # No shell is there to give it the terminal it wants.
            self.waiting.append(signal.SIGHUP)

    def _freeze(self) -> bool:
        """Have everything stopped that could change something meanwhile; return whether it has."""
        self._tell(FREEZE)
        deadline = time.monotonic() + _FREEZE_SECONDS
        while (left := deadline - time.monotonic()) > 0 and self.sources:
            if select.select(self.sources, (), (), left)[0]:
                said = self._received()
                if not said:
                    self.sources.clear()
                if FROZEN in said or NOT_FROZEN in said:
                    return FROZEN in said
        return False

    def _stop_own_group(self, number: int) -> bool:
        """Stop this process and the others of its job; return whether they were, and go on now."""
        self.waiting += self._arrived()
        handler = signal.getsignal(number)
        signal.signal(number, signal.SIG_DFL)
        os.kill(0, number)
        signal.signal(number, handler)
        deadline = time.monotonic() + _CONTINUED_SECONDS
        while (left := deadline - time.monotonic()) > 0:
            select.select([self.signalled], (), (), left)
            arrived = self._arrived()
            self.waiting += [each for each in arrived if each != signal.SIGCONT]
            if signal.SIGCONT in arrived:
                return True
        return False

    def _go_on(self) -> None:
        """Have the agent go on, with the terminal or without it."""
        self.stopping_at = None
        if not self.terminal.is_foreground():
            self.terminal.lose()
            self._tell(BACKGROUND)
            return
        with contextlib.suppress(OSError, termios.error):  # it may be gone
            self.terminal.take()
        redraws = self.streams.is_raw()
        self.streams.resize(rows_less=int(redraws))
        if redraws:
            self.resizing_at = time.monotonic() + _REDRAW_SECONDS
        self._tell(FOREGROUND)

    def _handle(self, number: int) -> None:
        if number == signal.SIGWINCH:
            self.streams.resize()
        elif number == signal.SIGTSTP and self.killing_at is None:
            self._tell(bytes((number,)))
            self.stopping_at = time.monotonic() + _STOP_PATIENCE
        elif number == signal.SIGCONT and not self.terminal.is_as_left():
            self._go_on()
        elif number in _FORWARDED:
            self._tell(bytes((number,)))
            if number != signal.SIGINT and self.killing_at is None:
                self.killing_at = time.monotonic() + _PATIENCE

    def _tell(self, asked: bytes) -> None:
        with contextlib.suppress(OSError):  # the job has ended
            self.control.send(asked)

    def _received(self) -> bytes:
        try:
            return self.control.recv(64)
        except OSError:
            return b""

    def _arrived(self) -> list[int]:
        try:
            return [*os.read(self.signalled, 4096)]
        except BlockingIOError:
            return []


def _foreground_group(master: int) -> int:
    """Return the process group that has the agent's terminal, also inside a sandbox; 0 without one."""
    with contextlib.suppress(OSError):
        return os.tcgetpgrp(master)
    return 0


def _kill_group(group: int) -> None:
    if group > 0:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)


def _reaped(child: int) -> int | None:
    pid, status = os.waitpid(child, os.WNOHANG)
    if pid == 0:
        return None
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code
