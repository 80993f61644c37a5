"""The worker that runs and rehearses commands.

It does nothing with a command itself: for each one it forks a helper, which answers for it, so that
commands run side by side and one can be stopped without the others.
"""

import contextlib
import errno
import fcntl
import functools
import os
import select
import signal
import socket
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from aileron_core.connectors.builtin.worker import namespaces
from aileron_core.connectors.builtin.worker.arguments import Arguments, OpFailed
from aileron_core.connectors.builtin.worker.first_process import (
    Box,
    Command,
    close_all_but,
    start_command,
)
from aileron_core.connectors.builtin.worker.frames import (
    BrokenFrame,
    Unbuffered,
    frame_bytes,
    read_frame,
    write_frame,
)
from aileron_core.connectors.builtin.worker.journal import Journal
from aileron_core.connectors.builtin.worker.overlays import (
    MEMORY,
    mount_memory,
    pin_mount_points,
)
from aileron_core.connectors.builtin.worker.rehearsal import AT_WORK, rehearse
from aileron_core.connectors.builtin.worker.supervision import Supervision, adopt_orphans
from aileron_core.containment.safe_paths import remove_tree

SANDBOXED = "sandboxed"
"""The argument after the project that says that this worker is in the sandbox made for it."""

_MAX_WORD = 128 * 1024 - 1
"""Bytes of one word of a command line, a limit of Linux."""
_MAX_HELPERS = 16
_DEFAULT_MS, _MAX_MS = 120_000, 600_000
_MAX_REHEARSALS = 4
"""That wait for an answer."""
_MAX_UNDOS = 8
"""Commits that can be taken back; each keeps at most 64 MiB."""
_SECONDS = 10
"""Of a command that is rehearsed, at most."""
_REHEARSAL_SECONDS = 60.0
"""From the request for a rehearsal to its answer: waiting, running, and reading what was left."""
_TOO_LONG = "Reading what it changed takes longer than the 60 s of a rehearsal."
_NO_TURN = "The session's other commands took the 60 s in which it could be rehearsed."
_STOPPED = OpFailed("stopped", "The command was stopped before it ended.")
_TRIED = Command(words=("sh", "-c", ":"), program="/bin/sh")
_TRY_SECONDS = 10.0


def serve(project: Path, more: Sequence[str] = ()) -> None:
    """Answer requests from standard input until it ends, and leave nothing running.

    Args:
        more: `SANDBOXED` in the sandbox of `aileron_core.containment.bubblewrap`, with `=` and the
            descriptor of a journal where it has to outlive this process, then the other folders
            whose changes a rehearsal shows.

    Raises:
        OSError: the sandbox is not as it has to be.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the launcher's, who closes our input then
    box, shown, memory = None, [Path(each) for each in more[1:]], -1
    sandboxed, _, journal = (more[0] if more else "").partition("=")
    if sandboxed == SANDBOXED:
        namespaces.set_dumpable(False)
        pin_mount_points(project, shown)
        namespaces.show_mounts()
        memory = mount_memory()
        box = Box.of(project)
    else:
        os.chdir(project)
    if sandboxed and not journal:
        journal = str(os.memfd_create("journal"))
    worker = _Worker(box, shown, memory, int(journal or -1))
    worker.say_ready()
    worker.serve()


@dataclass(slots=True)
class _Helper:
    """A forked process that attends to one command."""

    request: int
    process: int
    control: socket.socket
    folder: str = ""
    """Of a rehearsal: its name in the memory that they share."""
    answered: bool = False
    cancelled: bool = False
    reads: bool = False
    """It reads what its command left, which stops only with it."""
    commits: bool = False
    rehearsal: str | None = None
    """What it keeps for a commit."""
    undo: str | None = None
    """What it keeps to take a commit back."""


class _Worker:
    def __init__(self, box: Box | None, shown: Sequence[Path], memory: int, journal: int) -> None:
        self._box = box
        self._shown = shown
        self._memory = memory
        self._journal = journal
        self._waiting: deque[_Wanted] = deque()
        self._why_not = "Without a sandbox, commands cannot be rehearsed."
        self._helpers: dict[int, _Helper] = {}
        """By the descriptor of its control socket."""
        self._requests = Unbuffered(0)

    def say_ready(self) -> None:
        """Try a command, and say what this worker can do.

        Raises:
            OSError: it did not run.
        """
        tried = self._try(lambda control: self._run(_TRIED, _TRY_SECONDS, control))
        if tried.get("result", {}).get("exit_code") != 0:
            raise OSError(errno.EPERM, f"No command runs in this sandbox: {tried}")
        if (box := self._box) is not None:
            until = time.monotonic() + _REHEARSAL_SECONDS
            wanted = _Wanted(0, _TRIED, _TRY_SECONDS, until)
            tried = self._try(lambda control: self._rehearse(wanted, box, control), wanted.name)
            result = tried.get("result", {})
            self._why_not = (
                ""
                if result.get("exit_code") == 0
                else result.get("fallback") or f"No command can be rehearsed: {tried}"
            )
        features: dict[str, Any] = {
            "rehearsal": not self._why_not,
            "why_not": self._why_not,
        }
        write_frame(1, {"ready": True, "features": features})

    def _try(
        self, body: Callable[[socket.socket], dict[str, Any]], folder: str = ""
    ) -> dict[str, Any]:
        """Return what a helper answers, and wait until it has ended."""
        helper = self._fork(0, body, folder)
        try:
            answer = {"reads": True}
            while "reads" in answer:
                answer = read_frame(Unbuffered(helper.control.fileno())) or {}
            return answer
        finally:
            self._forget(helper)

    def serve(self) -> None:
        with contextlib.suppress(BrokenFrame, BrokenPipeError):
            while True:
                self._begin_waiting()
                ready, _, _ = select.select([0, *self._helpers], (), ())
                for number in ready:
                    if (helper := self._helpers.get(number)) is not None:  # not input, not gone
                        self._hear(helper)
                if 0 in ready:
                    frame = read_frame(self._requests)
                    if frame is None:
                        break
                    self._take(frame)
        for helper in self._helpers.values():
            helper.control.close()
        for helper in self._helpers.values():
            if self._box is None or helper.commits:  # else the kernel ends them
                os.waitpid(helper.process, 0)

    def _hear(self, helper: _Helper) -> None:
        """Pass an answer on, or see that a helper has ended."""
        frame = None
        with contextlib.suppress(BrokenFrame, ConnectionError):
            frame = read_frame(Unbuffered(helper.control.fileno()))
        if frame is not None and "reads" in frame:
            helper.reads = True
            if helper.cancelled:
                self._stop_reading(helper)
            return
        if frame is not None:
            helper.answered, helper.reads, helper.commits = True, False, False
            helper.rehearsal = frame.get("result", {}).get("rehearsal")
            helper.undo = frame.get("result", {}).get("undo")
            self._drop_oldest_undo()
            write_frame(1, {**frame, "id": helper.request})
            return
        status = self._forget(helper)
        if not helper.answered and helper.reads and status == signal.SIGALRM:
            write_frame(1, {"id": helper.request, "result": {"fallback": _TOO_LONG}})
        elif not helper.answered and helper.commits:
            self._fork(helper.request, lambda control: _recovered(Journal(self._journal)))
        elif not helper.answered:
            problem = OpFailed("io", "What attended to the command has ended. Try again.")
            write_frame(1, {"id": helper.request, "error": problem.to_json()})

    def _forget(self, helper: _Helper) -> int:
        """Let it end, and return how it did, as `waitpid` has it."""
        del self._helpers[helper.control.fileno()]
        helper.control.close()
        _, status = os.waitpid(helper.process, 0)
        if self._memory >= 0:
            used = {each.folder for each in self._helpers.values()}
            for name in {*os.listdir(self._memory)} - used:  # noqa: PTH208 - of the open folder
                remove_tree(Path(f"/proc/self/fd/{self._memory}/{name}"))
        return status

    def _stop_reading(self, helper: _Helper) -> None:
        os.kill(helper.process, signal.SIGKILL)
        self._forget(helper)
        write_frame(1, {"id": helper.request, "error": _STOPPED.to_json()})

    def _take(self, frame: dict[str, Any]) -> None:
        if "cancel" in frame:
            self._cancel(frame["cancel"])
            return
        try:
            self._begin(frame["id"], frame["op"], Arguments(frame.get("args") or {}))
        except OpFailed as problem:
            write_frame(1, {"id": frame["id"], "error": problem.to_json()})
        except OSError as error:
            problem = OpFailed("io", f"The command did not start: {error.strerror}. Try again.")
            write_frame(1, {"id": frame["id"], "error": problem.to_json()})

    def _cancel(self, request: int) -> None:
        for wanted in [each for each in self._waiting if each.request == request]:
            self._waiting.remove(wanted)
            write_frame(1, {"id": request, "error": _STOPPED.to_json()})
        for helper in [*self._helpers.values()]:
            if helper.request != request or helper.answered:
                continue
            helper.cancelled = True
            if helper.reads:
                self._stop_reading(helper)
                continue
            with contextlib.suppress(OSError):
                helper.control.send(frame_bytes({"op": "cancel"}))

    def _begin(self, request: int, op: str, args: Arguments) -> None:
        if op in ("commit", "check", "discard", "undo"):
            self._decide(request, op, args.text("undo" if op == "undo" else "rehearsal"))
            return
        if op not in ("run", "rehearse"):
            raise OpFailed("unsupported", f"This worker has no operation {op}.")
        at_work = sum(not each.answered for each in self._helpers.values())
        if at_work + len(self._waiting) >= _MAX_HELPERS:
            raise OpFailed(
                "io", f"{_MAX_HELPERS} commands run already. Wait until one of them has ended."
            )
        command = _command(args)
        if op == "rehearse":
            if self._box is None or self._why_not:
                write_frame(1, {"id": request, "result": {"fallback": self._why_not}})
                return
            seconds = float(min(args.number("seconds", _SECONDS, least=1), _SECONDS))
            until = time.monotonic() + _REHEARSAL_SECONDS
            self._waiting.append(_Wanted(request, command, seconds, until))
            return
        milliseconds = args.number("timeout_ms", _DEFAULT_MS, least=1)
        if milliseconds > _MAX_MS:
            raise OpFailed("invalid_arguments", f"timeout_ms may be at most {_MAX_MS}.")
        self._fork(request, lambda control: self._run(command, milliseconds / 1000, control))

    def _begin_waiting(self) -> None:
        """Begin the rehearsals whose turn it is."""
        while (box := self._box) is not None and self._waiting:
            if (
                sum(bool(each.folder) and not each.answered for each in self._helpers.values())
                >= AT_WORK
            ):
                return
            wanted = self._waiting.popleft()
            if time.monotonic() > wanted.until - wanted.seconds:
                write_frame(1, {"id": wanted.request, "result": {"fallback": _NO_TURN}})
                continue
            self._make_room()
            self._fork(
                wanted.request,
                functools.partial(self._rehearse, wanted, box),
                wanted.name,
            )

    def _make_room(self) -> None:
        """Drop the oldest of what is kept, where it is too many or too much: undos first."""
        while kept := [each for each in self._helpers.values() if each.answered and each.folder]:
            rehearsals = [each for each in kept if each.rehearsal is not None]
            room = os.statvfs(f"/proc/self/fd/{self._memory}")
            is_enough = (
                room.f_bavail * room.f_frsize > MEMORY // 2 and room.f_favail > room.f_files // 2
            )
            if is_enough and len(rehearsals) < _MAX_REHEARSALS:
                return
            # A rehearsal may be of a call that nobody answers any more; one that is still asked is
            # made again before it is committed.
            others = [each for each in kept if each.rehearsal is None]
            first = rehearsals if is_enough or not others else others
            self._forget(first[0])

    def _drop_oldest_undo(self) -> None:
        undos = [each for each in self._helpers.values() if each.undo is not None]
        for helper in undos[:-_MAX_UNDOS]:
            self._forget(helper)

    def _decide(self, request: int, op: str, name: str) -> None:
        """Commit a rehearsal, compare what is below it, take a commit back, or drop a rehearsal."""
        for helper in [*self._helpers.values()]:
            if name == (helper.undo if op == "undo" else helper.rehearsal):
                break
        else:
            what = "commit" if op == "undo" else "rehearsal"
            raise OpFailed("not_found", f"There is no {what} {name} any more.")
        if op == "discard":
            self._forget(helper)
            write_frame(1, {"id": request, "result": {}})
            return
        helper.request, helper.answered = request, False
        if op != "check":
            helper.commits = True
            helper.rehearsal = helper.undo = None
        helper.control.sendall(frame_bytes({"op": op}))

    def _rehearse(self, wanted: "_Wanted", box: Box, control: socket.socket) -> dict[str, Any]:
        """Rehearse a command, and wait for what a person decides; of request 0, for nothing."""
        name = wanted.name
        turn = os.open(f"/proc/self/fd/{self._memory}", os.O_RDONLY | os.O_CLOEXEC)

        def before_reading() -> None:
            _end_in(wanted.until - time.monotonic())
            control.sendall(frame_bytes({"reads": True}))
            fcntl.flock(turn, fcntl.LOCK_EX)  # so that the memory that this takes is taken once

        answer, rehearsal = rehearse(
            wanted.command,
            box,
            self._shown,
            wanted.seconds,
            control,
            (self._memory, name),
            before_reading,
        )
        _end_in(0)
        os.close(turn)
        if rehearsal is None or wanted.request == 0:
            return answer
        try:
            # With the longest id that the answer can get.
            data = frame_bytes({"id": 1 << 53, "result": {"rehearsal": name, **answer}})
        except BrokenFrame:
            return {"fallback": "It prints or changes more than can be shown."}
        control.sendall(data)
        del answer, data
        while _next_op(control, "check", "commit") == "check":
            _end_in(_REHEARSAL_SECONDS)
            held = {"rehearsal": name, "holds": rehearsal.holds()}
            _end_in(0)
            control.sendall(frame_bytes({"result": held}))
        committed = rehearsal.commit(Journal(self._journal))
        if not rehearsal.can_undo:
            return committed
        control.sendall(frame_bytes({"result": {**committed, "undo": name}}))
        _next_op(control, "undo")
        return rehearsal.undo()

    def _fork(
        self, request: int, body: Callable[[socket.socket], dict[str, Any]], folder: str = ""
    ) -> _Helper:
        """Have *body* run in a helper, which gets a socket to this process, and answer *request*."""
        ours, theirs = socket.socketpair()
        process = os.fork()
        if process == 0:
            _help(theirs, body, (self._memory, self._journal))
        theirs.close()
        helper = self._helpers[ours.fileno()] = _Helper(request, process, ours, folder)
        return helper

    def _run(self, command: Command, seconds: float, control: socket.socket) -> dict[str, Any]:
        if self._box is None:
            adopt_orphans()
        running = start_command(command, self._box)
        attended = Supervision(running, control, is_plain=self._box is None)
        attended.attend(seconds)
        return attended.outcome()


@dataclass(frozen=True, slots=True)
class _Wanted:
    """A rehearsal that was asked for."""

    request: int
    command: Command
    seconds: float
    """How long the command may take."""
    until: float
    """When all of it has to be done (monotonic)."""

    @property
    def name(self) -> str:
        return f"r{self.request}"


def _end_in(seconds: float) -> None:
    """Have the kernel end this process after *seconds*; 0: not any more."""
    left = max(seconds, 0.001) if seconds else 0
    signal.setitimer(signal.ITIMER_REAL, left)


def _help(
    control: socket.socket,
    body: Callable[[socket.socket], dict[str, Any]],
    kept: Sequence[int],
) -> NoReturn:
    try:
        nothing = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1):  # what the launcher has at the other end, nobody but the worker holds
            os.dup2(nothing, number)
        close_all_but(control.fileno(), *(each for each in kept if each >= 0))
        try:
            answer = {"result": body(control)}
        except OpFailed as problem:
            answer = {"error": problem.to_json()}
        except OSError as error:
            failed = OpFailed("io", f"The command could not be run: {error}. Try again.")
            answer = {"error": failed.to_json()}
        control.sendall(frame_bytes(answer))
    except BaseException as error:  # noqa: BLE001 - a forked process must not return into our code
        print(f"{type(error).__name__} in a helper of the commands worker", file=sys.stderr)  # noqa: T201
    finally:
        os._exit(0)


def _recovered(journal: Journal) -> dict[str, Any]:
    """Take back, or finish, what a helper that was ended had begun to commit.

    Raises:
        OpFailed: always; it says what there is now.
    """
    found = journal.recover() or {"done": False, "left": []}
    now = "All of them had been made." if found["done"] else "Nothing was changed."
    if left := found["left"]:
        now = (
            f"They were {'made' if found['done'] else 'taken back'}, but not at {', '.join(left)}."
        )
    raise OpFailed("io", f"What made the command's changes was ended. {now}")


def _next_op(control: socket.socket, *awaited: str) -> str:
    """Return which of the *awaited* comes; end this helper if nothing does.

    A cancel that comes too late to end what it was meant for decides nothing.
    """
    while (frame := read_frame(Unbuffered(control.fileno()))) is not None:
        if frame["op"] in awaited:
            return str(frame["op"])
    os._exit(0)


def _command(args: Arguments) -> Command:
    """Return what *args* ask to run.

    Raises:
        OpFailed: `invalid_arguments`.
    """
    text, words = args.optional_text("command"), args.texts("argv")
    if (text is None) == (not words):
        raise OpFailed("invalid_arguments", "Give either command or argv.")
    program = args.optional_text("program")
    if text is not None:
        shell = "/bin/bash" if Path("/bin/bash").exists() else "/bin/sh"
        words, program = (Path(shell).name, "-c", text), shell
    for word in words:
        if "\0" in word or len(word.encode("utf-8", "surrogateescape")) > _MAX_WORD:
            raise OpFailed(
                "invalid_arguments",
                f"A word of the command has a null byte, or more than {_MAX_WORD} bytes.",
            )
    if not words[0] or (text is not None and not text.strip()):
        raise OpFailed("invalid_arguments", "The command is empty.")
    return Command(words=words, program=program)
