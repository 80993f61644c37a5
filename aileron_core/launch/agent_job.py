"""The agent's parent process: it runs the agent as a job of its own terminal, as a shell runs a command.

    python -I agent_job.py CONTROL SCOPE PROGRAM ARGUMENT...

Only a parent sees that a program stopped, and the kernel lets Ctrl-Z stop only a program that a
process of its own session could continue. The launcher is neither: it is in another session, and
outside the sandbox. CONTROL is the descriptor of a socket to it, which the agent never gets.

Like a shell, this process gives the terminal to the agent's process group or takes it back, as the
launcher asks: the kernel then stops a background agent that reads from its terminal or sets it. A
Ctrl-C reaches the agent alone; bubblewrap would be in its group too, and end.

SCOPE is `sandbox` or `group`: what is frozen before the launcher stops. In a sandbox that is every
process, because whatever watches the agent stops with the launcher.

Runs as a script, from a copy; imports the standard library only.
"""

import contextlib
import ctypes
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Iterator
from typing import NoReturn

FOREGROUND, BACKGROUND, FREEZE = b"F", b"B", b"Z"
"""What the launcher asks for: go on, in the foreground or not; freeze. Another byte is a signal for the agent."""
FROZEN, NOT_FROZEN = b"z", b"n"
"""The answers to `FREEZE`. Another byte is the number of the signal that stopped the agent."""

_FREEZE_SECONDS = 2.0
"""How long processes have to stop; one may be in a system call."""
_PATIENCE = 3.0
"""Seconds that the agent has to end once the launcher is gone."""
_LOOK_SECONDS = 0.005
_STOPPED_STATES = frozenset((b"T", b"t", b"Z", b"X"))
_TERMINAL_STOPS = (signal.SIGTTIN, signal.SIGTTOU)
_IGNORED = (*_TERMINAL_STOPS, signal.SIGTSTP, signal.SIGINT, signal.SIGQUIT)
_WATCHED = (signal.SIGCHLD, signal.SIGTERM, signal.SIGHUP)
_OF_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)
"""Signals that Python ignores, and a program that it executes would ignore too."""
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE = 1, 4


class AgentJob:
    """The agent's process group, and the terminal that it has while it is in the foreground."""

    def __init__(self, control: socket.socket, *, freezes_sandbox: bool) -> None:
        self._control = control
        self._freezes_sandbox = freezes_sandbox
        self._terminal = next((number for number in (0, 1, 2) if os.isatty(number)), None)
        self._agent = 0
        self._code: int | None = None
        """The agent's exit code, once it has ended."""
        self._stopped_by = 0
        """The signal that stopped the agent; 0 while it runs."""
        self._frozen = False
        self._front = 0
        """The group that has the terminal while the agent is in the foreground."""
        self._stopped_before: set[int] = set()
        """Processes that had stopped before the sandbox was frozen, and stay so."""
        self._kill_at: float | None = None

    def run(self, argv: list[str]) -> int:
        """Run *argv* until it ends; return its exit code, 128 plus the number for a signal."""
        woken, writing = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
        for number in _WATCHED:
            signal.signal(number, _note)
        for number in _IGNORED:  # a shell neither stops nor ends with its job
            signal.signal(number, signal.SIG_IGN)
        with contextlib.suppress(PermissionError):  # a session's leader is in a group of its own
            os.setpgid(0, 0)
        self._start(argv)
        sources = [woken, self._control.fileno()]
        while True:
            left = None if self._kill_at is None else max(0.0, self._kill_at - time.monotonic())
            ready, _, _ = select.select(sources, (), (), left)
            if self._kill_at is not None and time.monotonic() >= self._kill_at:
                _signal_group(self._agent, signal.SIGKILL)
                self._kill_at = None
            if woken in ready:
                for number in os.read(woken, 4096):
                    if number != signal.SIGCHLD:
                        self._end(number)
            before = self._stopped_by
            self._look()
            if self._code is not None:
                return self._code
            if self._stopped_by and not before:
                self._say(bytes((self._stopped_by,)))
            if self._control.fileno() in ready and not self._obey():
                sources.remove(self._control.fileno())
                self._end_alone()

    def _start(self, argv: list[str]) -> None:
        """Start the agent in a process group of its own."""
        foreground = self._control.recv(1) != BACKGROUND
        if not foreground:
            self._give_terminal(os.getpgrp())
        self._agent = self._front = os.fork()
        if self._agent == 0:
            os.setpgid(0, 0)
            if foreground:
                self._give_terminal(os.getpgrp())
            self._become(argv)
        with contextlib.suppress(OSError):  # whichever of the two is first
            os.setpgid(self._agent, self._agent)

    def _become(self, argv: list[str]) -> NoReturn:
        """Execute the agent in this forked process; never returns."""
        signal.set_wakeup_fd(-1)
        _control_process(_PR_SET_PDEATHSIG, signal.SIGKILL)  # by then it has had its time to end
        for number in (*_WATCHED, *_IGNORED, *_OF_PYTHON):
            signal.signal(number, signal.SIG_DFL)
        try:
            os.execv(argv[0], argv)  # noqa: S606 - the point: no shell
        except OSError as error:
            why = failed_start(argv[0], error, in_sandbox=self._freezes_sandbox)
            os.write(2, f"aileron launch: {why}\n".encode("utf-8", "replace"))
            os._exit(127 if isinstance(error, FileNotFoundError) else 126)  # as a shell does

    def _obey(self) -> bool:
        """Do what the launcher asks for; return False if it is gone."""
        try:
            asked = self._control.recv(1)
        except OSError:
            return False
        if asked == FREEZE:
            self._say(FROZEN if self._freeze() else NOT_FROZEN)
        elif asked == FOREGROUND:
            if self._stopped_by in _TERMINAL_STOPS:
                self._front = self._agent
            self._give_terminal(self._front)
            self._go_on()
        elif asked == BACKGROUND:
            self._give_terminal(os.getpgrp())
            self._go_on()
        elif asked:
            self._pass(asked[0])
        return bool(asked)

    def _pass(self, number: int) -> None:
        """Send a signal to the agent and to the group that has its terminal."""
        for group in {self._agent, self._terminal_group() or self._agent}:
            _signal_group(group, number)

    def _end(self, number: int) -> None:
        """Have the agent end; kill it if it does not."""
        self._pass(number)
        self._go_on()
        if self._kill_at is None:
            self._kill_at = time.monotonic() + _PATIENCE

    def _end_alone(self) -> None:
        """Have the agent end because the launcher is gone, however that happened."""
        if not self._freezes_sandbox:
            self._end(signal.SIGTERM)
            return
        with contextlib.suppress(ProcessLookupError):
            os.kill(-1, signal.SIGKILL)  # what was frozen is not to run once more, unwatched

    def _freeze(self) -> bool:
        """Stop the agent, or everything in the sandbox; return whether nothing of it runs any more."""
        if self._frozen:
            return True
        self._front = self._terminal_group() or self._front
        if self._freezes_sandbox:
            self._stopped_before = {pid for pid in _others() if is_stopped(pid)}
            _stop_all()
        else:
            _signal_group(self._agent, signal.SIGSTOP)
        self._frozen = True
        deadline = time.monotonic() + _FREEZE_SECONDS
        while not self._has_stopped():
            if self._code is not None or time.monotonic() >= deadline:
                self._go_on()
                return False
            if self._freezes_sandbox:
                self._let_children_start()
            time.sleep(_LOOK_SECONDS)  # nothing tells of the stop of a process that is no child
            if self._freezes_sandbox:
                _stop_all()
        return True

    def _let_children_start(self) -> None:
        """Continue what processes wait for that cannot stop before a new child executes its program (vfork)."""
        waiting = {pid for pid in _others() if b"D" in _thread_states(pid)}
        for pid in [*_others()] if waiting else ():
            if _parent(pid) in waiting and pid not in self._stopped_before:
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGCONT)

    def _has_stopped(self) -> bool:
        self._look()
        if self._code is not None or not self._stopped_by:
            return False
        # Twice: one that was looked at may have been continued by one that was not yet.
        return not self._freezes_sandbox or all(
            is_stopped(pid) for _ in range(2) for pid in _others()
        )

    def _go_on(self) -> None:
        """Continue the agent, and what else was frozen."""
        for pid in [*_others()] if self._frozen and self._freezes_sandbox else ():
            if pid not in self._stopped_before:
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGCONT)
        self._frozen = False
        self._stopped_by = 0
        _signal_group(self._agent, signal.SIGCONT)

    def _look(self) -> None:
        """Note whether the agent has stopped or ended."""
        while self._code is None:
            pid, status = os.waitpid(self._agent, os.WNOHANG | os.WUNTRACED)
            if pid == 0:
                return
            if os.WIFSTOPPED(status):
                self._stopped_by = os.WSTOPSIG(status)
            else:
                code = os.waitstatus_to_exitcode(status)
                self._code = code if code >= 0 else 128 - code

    def _say(self, answer: bytes) -> None:
        with contextlib.suppress(OSError):
            self._control.send(answer)

    def _give_terminal(self, group: int) -> None:
        if self._terminal is not None:
            with contextlib.suppress(OSError):  # the group has ended
                os.tcsetpgrp(self._terminal, group)

    def _terminal_group(self) -> int | None:
        """Return the group that has the terminal, None if that is not one of the agent's."""
        with contextlib.suppress(OSError):
            if self._terminal is not None:
                group = os.tcgetpgrp(self._terminal)
                return group if group > 0 and group != os.getpgrp() else None
        return None


def _note(_number: int, _frame: object) -> None:
    """Do nothing: the wake-up descriptor already has the number."""


def _others() -> Iterator[int]:
    """Yield the processes of this sandbox, except for its first and this one."""
    for name in os.listdir("/proc"):  # noqa: PTH208 - starts sooner
        if name.isdigit() and int(name) not in (1, os.getpid()):
            yield int(name)


def _stop_all() -> None:
    """Stop every process of this sandbox but its first and this one, at once: none can fork or continue another."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(-1, signal.SIGSTOP)


def is_stopped(pid: int) -> bool:
    """Return whether no thread of the process runs."""
    return _thread_states(pid) <= _STOPPED_STATES


def _thread_states(pid: int) -> set[bytes]:
    """Return the states of a process's threads; empty if it has ended."""
    states: set[bytes] = set()
    ended = contextlib.suppress(FileNotFoundError, ProcessLookupError)
    with ended:
        for task in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208 - starts sooner
            with ended:
                states.add(_stat(f"{pid}/task/{task}")[0])
    return states


def _parent(pid: int) -> int:
    """Return the parent of a process; 0 if it has ended."""
    with contextlib.suppress(OSError):
        return int(_stat(str(pid))[1])
    return 0


def _stat(process: str) -> list[bytes]:
    """Return the fields of a process or thread from its state on (proc(5)).

    Raises:
        OSError: it has ended.
    """
    with open(f"/proc/{process}/stat", "rb") as file:  # noqa: PTH123 - starts sooner
        return file.read().rpartition(b")")[2].split()


def _signal_group(group: int, number: int) -> None:
    with contextlib.suppress(OSError):
        os.killpg(group, number)


def failed_start(program: str, error: OSError, *, in_sandbox: bool) -> str:
    """Return why *program* cannot be started, and what to do."""
    if not isinstance(error, FileNotFoundError) or not os.path.exists(program):  # noqa: PTH110 - starts sooner
        why = f"cannot be started: {error.strerror}. Reinstall it"
    elif in_sandbox:
        why = (
            "is a script whose interpreter is not in the sandbox. Install it with the system's "
            "interpreter, or with one in its own folder"
        )
    else:
        why = "is a script whose interpreter does not exist. Reinstall it"
    return f"{program!a} {why}{', or launch with --no-sandbox' if in_sandbox else ''}."


def _control_process(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def main() -> int:
    """Run the agent that the arguments name."""
    control = socket.socket(fileno=int(sys.argv[1]))
    control.set_inheritable(False)
    freezes_sandbox = sys.argv[2] == "sandbox"
    # Else every process of the person's would stop: outside a sandbox the first is root's.
    if freezes_sandbox and (os.getppid() != 1 or os.stat("/proc/1").st_uid != os.getuid()):  # noqa: PTH116
        sys.exit("aileron launch: this is not a sandbox of Aileron's. Nothing was started.")
    # The agent can send it signals, but not take its socket, or have it say that all has stopped.
    _control_process(_PR_SET_DUMPABLE, 0)
    return AgentJob(control, freezes_sandbox=freezes_sandbox).run(sys.argv[3:])


if __name__ == "__main__":
    sys.exit(main())
