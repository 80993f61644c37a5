"""Rehearsing a call of an MCP server: the server runs on overlays, and a person's yes commits what that changed.

The worker is that of the built-in tools' commands, in a sandbox with what the server's box has. Each
rehearsal starts the server anew, calls the tool once and ends it: nothing of it is in a process's memory.
"""

import asyncio
import contextlib
import json
import logging
import os
import secrets
import threading
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, Unpack, cast

from aileron_core.actions.interpolate import interpolate
from aileron_core.canonical import Json, JsonObject, in_utf8
from aileron_core.clock import SystemClock
from aileron_core.connectors.builtin.channel import ToolChannels, WorkerLost, WorkerRefused
from aileron_core.connectors.builtin.commit_recovery import commit_journal
from aileron_core.connectors.builtin.connector import refusal, write_worker
from aileron_core.connectors.builtin.rehearsed_command import NOT_KEPT, RehearsedCommand
from aileron_core.connectors.builtin.results import rehearsed_changes
from aileron_core.connectors.builtin.worker_process import START_SECONDS, ToolWorker
from aileron_core.connectors.http.scrubber import Scrubber
from aileron_core.connectors.protocol import (
    MAX_DEPTH,
    CallOptions,
    Connector,
    OpResult,
    WrappedConnector,
    is_deeper_than,
)
from aileron_core.connectors.servers.box import NAMES, BoxContents, BoxedServers, open_box
from aileron_core.connectors.servers.call import ServerCall
from aileron_core.connectors.servers.client import INITIALIZE, META, Reply, load
from aileron_core.connectors.servers.definitions import (
    BadListing,
    ToolDefinition,
    differing,
    from_listing,
)
from aileron_core.connectors.servers.process import LOGS, ServerLog
from aileron_core.connectors.servers.table import NOW, ServerTable
from aileron_core.containment.bubblewrap import SANDBOX_LAUNCH_DIR, worker_sandbox_argv
from aileron_core.containment.module_copies import source_of
from aileron_core.containment.mounts import Mount
from aileron_core.containment.programs import mount_roots, own_interpreter
from aileron_core.containment.safe_paths import remove_tree
from aileron_core.errors import (
    AileronError,
    Failure,
    Forbidden,
    HashMismatch,
    OutcomeUnknown,
    Unavailable,
)
from aileron_core.tasks import spawn
from aileron_core.text import escape

_log = logging.getLogger(__name__)
_SCRIPT, _WORKER, _REQUESTS = "one_call.py", "worker", "requests"
_CALL_SECONDS: Final = 10
"""How long a server may take in a rehearsal, its start included."""
_JOIN_SECONDS: Final = 5.0


class _Worker:
    """A commands worker, and the thread that starts it and reads it: bubblewrap ends with that thread."""

    def __init__(self, of: "Rehearsals") -> None:
        self.key = f"{of.name}-{secrets.token_hex(8)}"
        self.channel = of.channels.get(self.key)
        self._of = of
        self._folders = [Path(each) for each in of.table.files_write]
        self._private = of.home / "run" / "rehearsals" / f"{os.getpid()}-{self.key}"
        self._contents: BoxContents
        self._process: ToolWorker
        self._loop = asyncio.get_running_loop()
        self._ready, self._over = Future[None](), Future[None]()
        for each in (self._ready, self._over):
            each.set_running_or_notify_cancel()  # the thread ends them, whoever waits or gives up
        self._thread = threading.Thread(target=self._run, name=self.key, daemon=True)

    @property
    def is_good(self) -> bool:
        """Whether it runs, on the very folders that the table's paths lead to."""
        return not self._over.done() and self._contents.is_as_checked

    async def start(self) -> None:
        """Start it, and return when it is ready.

        Raises:
            AileronError: it did not start.
        """
        self._thread.start()
        try:
            await asyncio.wrap_future(self._ready)
        except BaseException:
            self._of.channels.close(self.key)
            raise
        self.channel.attach(self._process.features)
        spawn(self._carry(), name="carry to the rehearsals of a server")

    async def _carry(self) -> None:
        calls = spawn(self._pass_on(), name="pass on what is to be rehearsed")
        await asyncio.wrap_future(self._over)
        calls.cancel()
        self._of.channels.close(self.key)
        self._of.ended(self.key)

    async def _pass_on(self) -> None:
        while True:
            self._process.send((await self.channel.frames.get())["frame"])

    def _run(self) -> None:
        try:
            with contextlib.ExitStack() as stack:
                self._start(stack)
                self._ready.set_result(None)
                for frame in self._process.frames():
                    with contextlib.suppress(RuntimeError):  # the core has ended
                        self._loop.call_soon_threadsafe(self.channel.receive, "commands", frame)
        except Exception as error:  # noqa: BLE001 - the edge of a thread
            if not isinstance(error, AileronError):
                error = Unavailable(
                    f"What rehearses its calls did not start ({escape(str(error))})."
                )
            if not self._ready.done():
                self._ready.set_exception(error)
        self._over.set_result(None)

    def _start(self, stack: contextlib.ExitStack) -> None:
        if not self._folders:
            raise Unavailable("It has no folder that it could change.")
        if single := [each for each in self._folders if not each.is_dir()]:
            raise Unavailable(
                f"{escape(str(single[0]))} is a single file: calls are rehearsed where its folder is listed."
            )
        self._contents = contents = self._of.boxes.contents(self._of.table, "write")
        self._write_private()
        stack.callback(remove_tree, self._private)
        interpreter = own_interpreter()
        roots = mount_roots(interpreter, os.defpath, home=Path.home(), excluded=(self._of.home,))
        shown = {
            Path(SANDBOX_LAUNCH_DIR): self._private,
            **{Path("/etc", each): self._private / each for each in NAMES},
            **dict(zip(roots, roots, strict=True)),
        }
        why = "to rehearse its calls"
        mounts = [
            *contents.mounts,
            *(
                Mount(path=path, how="read-only", why=why, source=each)
                for path, each in shown.items()
            ),
        ]
        calls = os.memfd_create("calls")
        stack.callback(os.close, calls)
        os.write(calls, contents.support.seccomp_filter)
        os.lseek(calls, 0, os.SEEK_SET)
        journal = stack.enter_context(
            commit_journal(self._of.home, self.key, self._folders[0], mounts, _log.warning)
        )
        self._process = ToolWorker(
            "commands",
            worker_sandbox_argv(
                [contents.support.bwrap, "--unshare-net", "--seccomp", str(calls)],
                mounts,
                [str(interpreter), "-I", f"{SANDBOX_LAUNCH_DIR}/{_WORKER}"],
                self._folders,
                journal,
            ),
            env=contents.env,
            cwd="/",
            errors=self._private / "errors",
            inherited=(journal, calls),
        )
        stack.callback(self._process.wait)
        stack.callback(self._process.close_input)
        self._process.wait_until_ready(time.monotonic() + START_SECONDS)
        os.close(open_box(self._process.pid, contents.checked))
        self._process.start_writing()

    def _write_private(self) -> None:
        write_worker(self._private / _WORKER)
        script = source_of("aileron_core.connectors.servers.one_call")
        for name, text in {**NAMES, _SCRIPT: script}.items():
            (self._private / name).write_text(text, encoding="utf-8")
        (self._private / _REQUESTS).mkdir(mode=0o700)

    @contextlib.contextmanager
    def request(self, tool: ToolDefinition, args: JsonObject) -> Generator[Mapping[str, Any]]:
        """Yield the command that calls *tool*, whose arguments are in a file: any user can read a command line.

        Raises:
            Unavailable: that file cannot be written.
        """
        asked = {
            "program": self._contents.program,
            "env": {**self._contents.env, **self._of.table.env},
            "cwd": str(self._contents.home),
            "initialize": INITIALIZE,
            "meta": META,
            "tool": tool.members(),
            "arguments": args,
        }
        name = f"{_REQUESTS}/{secrets.token_hex(8)}"
        file = self._private / name
        try:
            try:
                with file.open(
                    "x", encoding="ascii"
                ) as opened:  # in a folder that is the user's alone
                    json.dump(asked, opened)
            except OSError as error:
                raise Unavailable(f"Its request cannot be written: {error.strerror}.") from None
            words = [f"{SANDBOX_LAUNCH_DIR}/{each}" for each in (_SCRIPT, name)]
            program = str(own_interpreter())
            yield {"argv": [program, "-I", *words], "program": program, "seconds": _CALL_SECONDS}
        finally:
            file.unlink(missing_ok=True)

    async def close(self) -> None:
        """End it with all that it keeps; what is being committed is done before."""
        self._process.close_input()
        await asyncio.to_thread(self._thread.join, _JOIN_SECONDS)


class Rehearsals:
    """The rehearsals of one server's calls, of all sessions; their worker starts at the first.

    Args:
        name: of the server.
        definitions: its tools as they were accepted.
        boxes: what starts the server for real.
        home: Aileron's.
        channels: where a worker is reached, for an undo.
        differs: called with a listing in which a tool that was to be called is another one.
        ended: called with the name that `channels` had a worker by, once that has ended with what it kept.
    """

    def __init__(
        self,
        name: str,
        table: ServerTable,
        definitions: Sequence[ToolDefinition],
        *,
        boxes: BoxedServers,
        home: Path,
        channels: ToolChannels,
        differs: Callable[[tuple[ToolDefinition, ...]], object],
        ended: Callable[[str], object],
    ) -> None:
        self.name, self.table, self.differs = name, table, differs
        self.definitions = {each.name: each for each in definitions}
        self.boxes, self.home, self.channels, self.ended = boxes, home, channels, ended
        self._log = ServerLog(home / LOGS / f"{name}.log", Scrubber(()), SystemClock())
        self._lock = asyncio.Lock()
        self._worker: _Worker | None = None
        self._is_closed = False

    async def worker(self) -> _Worker:
        """Return the worker; it is started where none runs, or one on folders that are others by now.

        Raises:
            AileronError: it cannot be started.
        """
        await asyncio.to_thread(self.boxes.verify, self.table)
        async with self._lock:
            if self._is_closed:
                raise Unavailable("The server is not accepted any more, or the console is closing.")
            if self._worker is not None and not self._worker.is_good:
                await self._worker.close()
                self._worker = None
            if self._worker is None:
                worker = _Worker(self)
                await worker.start()
                self._worker = worker
            return self._worker

    async def close(self) -> None:
        """End the worker with all that it keeps, and start no other; what is being committed is done before."""
        self._is_closed = True
        async with self._lock:
            if self._worker is not None:
                await self._worker.close()
        self._log.close()

    def log(self, said: str) -> None:
        """Write what a rehearsed server wrote to its standard error to the server's log. Blocks."""
        for line in in_utf8(said).encode().splitlines():
            self._log.write(line)


def _of_another_group(folders: Iterable[str]) -> str:
    """Return the first of *folders* that is not of the person's own group, which alone is there in a box; '' without one."""
    for each in folders:
        with contextlib.suppress(OSError):  # said where it is started
            if Path(each).stat().st_gid != os.getegid():
                return each
    return ""


class RehearsingConnector(WrappedConnector):
    """An MCP server as one call uses it: a person is shown the rehearsal of a tool that asks, and their yes commits that.

    Args:
        inner: the server itself: for the other tools, and for what cannot be rehearsed.
    """

    def __init__(self, inner: Connector, rehearsals: Rehearsals) -> None:
        super().__init__(inner)
        self._rehearsals = rehearsals
        self._worker: _Worker | None = None
        self._command: RehearsedCommand | None = None
        self._answer: JsonObject = {}
        self._refusal: Failure | None = None
        """Why the call may not be made at all."""
        self._is_real = False
        """A person was shown that it is called for real."""

    def call_ended(self) -> None:
        """Have the worker end a rehearsal of the call that is under way, and drop one that was made."""
        if self._command is not None:
            self._command.end()

    async def call(self, op: str, args: JsonObject, **how: Unpack[CallOptions]) -> OpResult:
        if self._rehearsals.table.word(op) != "ask":
            return await self.inner.call(op, args, **how)
        is_effect = not how.get("read_only")
        try:
            return await (self._commit if is_effect else self._preview)(op, args, how)
        except WorkerRefused as error:
            return OpResult(failure=refusal(error, how.get("stop")), reported_by_connector=True)
        except WorkerLost as error:
            sent = int(is_effect and error.sent)
            failure = (OutcomeUnknown if sent else Unavailable)(error.message).to_failure()
            return OpResult(failure=failure, writes_sent=sent, writes_unanswered=sent)

    async def _preview(self, op: str, args: JsonObject, how: CallOptions) -> OpResult:
        self._refusal, self._is_real = None, False
        try:
            command = await self._rehearsed(op, args)
        except (Forbidden, HashMismatch) as error:
            self._refusal = error.to_failure()
            return OpResult(failure=self._refusal)
        except AileronError as error:
            self._command = None  # it goes with its worker
            return await self._look(op, args, error.message, how)
        answer = self._result(op, is_look=True)
        if answer.failure is not None:
            said = "The tool failed. Approving changes nothing, and gives the agent this answer."
            return OpResult(output={"rehearsal": said, "text": answer.failure.message})
        said = "The tool answered. Approving keeps exactly these changes; it is not called again."
        shown = cast("dict[str, Json]", answer.output)
        changes = rehearsed_changes(command.found)
        return OpResult(output=in_utf8({"rehearsal": said, **shown, **changes}))

    async def _rehearsed(self, op: str, args: JsonObject) -> RehearsedCommand:
        """Return the rehearsal of the call, made anew where what it was made on has changed.

        Raises:
            Forbidden, HashMismatch: the call may not be made.
            AileronError: this machine cannot rehearse it.
            WorkerRefused, WorkerLost: see `ToolChannel.call`.
        """
        if others := _of_another_group(self._rehearsals.table.files_write):
            raise Unavailable(f"{others} belongs to another group: the kernel copies no such file.")
        worker = await self._rehearsals.worker()
        if why := worker.channel.features.get("why_not"):
            raise Unavailable(str(why))
        if self._command is None or self._worker is not worker:
            self._worker, self._command = worker, RehearsedCommand(worker.channel)
        command, pinned = self._command, self._rehearsals.definitions[op]
        if not command.is_settled and not await command.holds():
            self._answer = {}
            with worker.request(pinned, args) as asked:
                await command.rehearse(asked)
            await asyncio.to_thread(self._rehearsals.log, command.found.get("stderr", ""))
            if not command.is_settled and (made := self._repository(command)):
                command.drop(f"It changes {made}, a repository of git's that is not listed.")
            if not command.is_settled:
                self._take_answer(pinned, command)
        if (
            command.is_settled
        ):  # the server's own doing, by which it may not come to be called for real
            raise Forbidden(
                f"{command.found['fallback']} Nothing was changed. Where its calls are to be made without "
                "a rehearsal, set rehearse = false for the server."
            )
        return command

    def _repository(self, command: RehearsedCommand) -> str:
        """Return what has changed in a repository that is not listed itself: one that was there is read-only."""
        listed = [Path(each) for each in self._rehearsals.table.files_write]
        own = [each for each in listed if ".git" in each.parts]
        for change in command.found["changes"]:
            path = listed[0] / change["path"]
            if ".git" in path.parts and not any(path.is_relative_to(each) for each in own):
                return str(change["path"])
        return ""

    def _take_answer(self, pinned: ToolDefinition, command: RehearsedCommand) -> None:
        """Take what the script printed.

        Raises:
            HashMismatch: the tool is not the one that was accepted.
        """
        try:
            said: dict[str, Any] = load(command.found["stdout"].encode("utf-8", "replace"))
            listed = from_listing(said.get("listed", ()))
            answer = said.get("answer")
            answer = None if answer is None else {**answer}
            if is_deeper_than(MAX_DEPTH, answer):
                raise ValueError("nobody could be shown it")
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            # It can also be forged.
            command.drop(
                "The server answered nonsense, or over the 256 KiB that a rehearsal keeps."
            )
        except BadListing as error:
            command.drop(f"The server {escape(str(error))}.")
        else:
            if "failed" in said:
                command.drop(f"The server {escape(str(said['failed']))}.")
            elif answer is None or differing([pinned], listed):
                command.drop()
                self._rehearsals.differs(listed)
                raise HashMismatch(
                    f"{pinned.name} of the MCP server {self._rehearsals.name} is not the tool that was "
                    "accepted. Nothing was changed."
                )
            else:
                self._answer = answer
                if self._result(pinned.name).failure is not None:
                    command.drop()

    def _result(self, op: str, *, is_look: bool = False) -> OpResult:
        """Return what the server answered; as it ran on overlays, nothing of that is unknown."""
        call = ServerCall(server=self._rehearsals.name, tool=op, args={}, is_look=is_look)
        result, error = self._answer.get("result"), self._answer.get("error")
        members = cast("Mapping[str, Any]", error if isinstance(error, dict) else {})
        reply = Reply(
            result=cast("JsonObject", result) if isinstance(result, dict) else None,
            code=members.get("code", 0),
            message=str(members.get("message", "")),
        )
        call.answered(reply)
        return call.done.result()

    async def _look(self, op: str, args: JsonObject, why: str, how: CallOptions) -> OpResult:
        """Return why there is no rehearsal, and what the server's own read answers, where the table names one."""
        said: dict[str, Json] = {
            "rehearsal": f"Not rehearsed. {why} Approving calls the tool for real."
        }
        self._is_real = True
        preview = self._rehearsals.table.previews.get(op)
        if preview is None:
            return OpResult(output=said)
        declared = self._rehearsals.definitions[op].properties
        filled = interpolate(preview.args, args, {}, declared=declared)
        read = await self.inner.call(preview.op, filled, **how)
        return replace(read, output={**said, NOW: read.output})

    async def _commit(self, op: str, args: JsonObject, how: CallOptions) -> OpResult:
        if self._refusal is not None:
            return OpResult(failure=self._refusal)
        if self._is_real:
            return await self.inner.call(op, args, **how)
        command, worker = self._command, self._worker
        if command is None or worker is None or not command.found:
            raise WorkerRefused("conflict", NOT_KEPT, {})
        answer = self._result(op)
        if answer.failure is not None:
            return answer
        undo = (await command.commit(how.get("stop"))).get("undo")
        return replace(answer, undo=f"commands:{undo}@{worker.key}" if undo else "")
