"""The connector of the built-in tools: one object for each call, whose ops a worker of the session does."""

import functools
import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Unpack, cast

from aileron_core import __version__
from aileron_core.actions.model import ConnectorIdentity
from aileron_core.canonical import Json, JsonObject, in_utf8
from aileron_core.connectors.builtin.channel import (
    ToolChannel,
    WorkerLost,
    WorkerName,
    WorkerRefused,
)
from aileron_core.connectors.builtin.rehearsed_command import (
    GRACE_SECONDS,
    NOT_KEPT,
    RehearsedCommand,
)
from aileron_core.connectors.builtin.results import (
    agent_text,
    command_preview,
    file_preview,
    place_preview,
)
from aileron_core.connectors.builtin.worker import NEEDED
from aileron_core.connectors.protocol import CallOptions, CredentialRequirement, OpResult
from aileron_core.connectors.stop_request import StopRequest, stopped_by_person
from aileron_core.containment.module_copies import compiled, modules_of, source_of
from aileron_core.errors import (
    AileronError,
    Conflict,
    ConnectorRuntimeError,
    Failure,
    Forbidden,
    InvalidArguments,
    OutcomeUnknown,
    PayloadTooLarge,
    ResourceLimitExceeded,
    Unavailable,
)
from aileron_core.settings import Rehearse

FQN = "builtin://aileron/tools"

_WORKER = "aileron_core.connectors.builtin.worker"
_CHANGES = frozenset(("write", "edit", "bash"))
_EFFECTS = _CHANGES | {"read", "glob", "grep"}
_ANSWER_SECONDS = 20.0
"""How long an op of the files may take; a search ends by itself after 10 s."""
_COMMAND_SECONDS = 10
"""How long a command may run in its rehearsal."""
_FOR_RULES = ("changes", "own_changes")
DEFAULT_TIMEOUT_MS, MAX_TIMEOUT_MS = 120_000, 600_000

_ERRORS: Mapping[str, type[AileronError]] = {
    "invalid_arguments": InvalidArguments,
    "not_found": InvalidArguments,
    "too_large": PayloadTooLarge,
    "forbidden": Forbidden,
    "conflict": Conflict,
    "timed_out": ResourceLimitExceeded,
}


@functools.cache
def identity() -> ConnectorIdentity:
    """Return whose the tools are: the hash is that of the workers' programs."""
    digest = hashlib.sha256()
    for name, _ in modules_of(_WORKER, needed=NEEDED):
        digest.update(f"{name}\0{source_of(name)}\0".encode())
    return ConnectorIdentity(fqn=FQN, version=__version__, hash=f"sha256:{digest.hexdigest()}")


class BuiltinConnector:
    """The built-in tools as one call uses them.

    It remembers what the call's last preview showed, so that the effect is that and nothing else.

    Args:
        channel: to the session's workers; None for a call of the past, of which nothing can run.
        excluded: what a search leaves out (`path_patterns.HiddenPaths`).
        known: what the worker said that the call is about. A file is read or changed only if it is still
            that one, and a command of literal words runs as exactly these, by the program that was found.
        rehearse: which commands are rehearsed, where that can be done: `always` also one that no person is asked
            about.
    """

    hosts: tuple[str, ...] = ()
    credential_requirement: CredentialRequirement | None = None
    account = ""
    consented_account: JsonObject | None = None
    prepared = True

    def __init__(
        self,
        channel: ToolChannel | None,
        *,
        excluded: Sequence[str] = (),
        known: Mapping[str, Any],
        rehearse: Rehearse = "ask",
    ) -> None:
        self._channel = channel
        self._excluded = list(excluded)
        self._known = known
        self._rehearse = rehearse
        self._shown: dict[str, Any] = {}
        self._command = RehearsedCommand(channel or ToolChannel())
        self._undo = ""
        self._only_commits = False
        """What the rules were told of the rehearsal is all that may happen."""

    @property
    def identity(self) -> ConnectorIdentity:
        return identity()

    def hosts_for(self, args: JsonObject) -> tuple[str, ...]:
        return ()

    async def prepare(self, *, background: bool = False) -> None:
        pass

    async def call(self, op: str, args: JsonObject, **how: Unpack[CallOptions]) -> OpResult:
        stop = how.get("stop")
        if how.get("read_only") and op in _CHANGES:
            refused = Forbidden(f"A preview may not use {op}, which changes files.")
            return OpResult(failure=refused.to_failure())
        try:
            output = await self._do(op, args, stop)
            # What the call is about is compared and asked for in the very bytes.
            return OpResult(output=output if op == "inspect" else in_utf8(output), undo=self._undo)
        except WorkerRefused as error:
            return OpResult(failure=refusal(error, stop), reported_by_connector=True)
        except WorkerLost as error:
            if not error.sent:
                return OpResult(failure=Unavailable(error.message).to_failure())
            kind = OutcomeUnknown if op in _CHANGES else ConnectorRuntimeError
            sent = int(op in _CHANGES)
            return OpResult(
                failure=kind(error.message).to_failure(), writes_sent=sent, writes_unanswered=sent
            )

    def call_ended(self) -> None:
        """Have the worker end a rehearsal of the call that is under way, and drop one that was made."""
        self._command.end()

    async def _do(self, op: str, args: JsonObject, stop: StopRequest | None) -> Json:
        if op in _EFFECTS and not self._known:
            raise WorkerRefused("conflict", "No rule has judged this call. Call it again.", {})
        match op:
            case "inspect":  # facts for the rules, never contents
                of_call = cast("Mapping[str, Any]", args["args"])
                if args["tool"] == "Bash":
                    return await self._ask("resolve", {"command": of_call["command"]})
                return await self._ask(op, args)
            case "preview_write" | "preview_edit":
                found = await self._ask(op, {**args, **self._place})
                self._shown = {"expect": found.get("base")}
                return file_preview(found)
            case "preview_read" | "preview_glob" | "preview_grep":
                return await self._preview_place(op.removeprefix("preview_").title(), args)
            case "write" | "edit":
                found = await self._ask(op, {**args, **self._place, **self._shown}, stop)
                self._undo = f"files:{found['undo']}" if found.get("undo") else ""
            case "preview_bash":
                return await self._preview_command(args)
            case "bash":
                found = await self._run_command(args, stop)
            case "rehearse":  # for the rules
                return await self._rehearse_for_rules(args)
            case "glob" | "grep":
                of_search = {**args, **self._place, "excluded": self._excluded}
                found = await self._ask(op, of_search, stop)
            case _:
                found = await self._ask(op, {**args, **self._place}, stop)
        return agent_text(op, found)

    async def _preview_place(self, tool: str, args: JsonObject) -> Json:
        found = await self._ask("inspect", {"tool": tool, "args": args})
        if _place(found) != _place(self._known):
            message = f"The path leads elsewhere by now, to {_place(found)}. Call it again."
            raise WorkerRefused("conflict", message, {})
        return place_preview(found)

    @property
    def _place(self) -> Mapping[str, Any]:
        """The argument of each op of the files by which it does nothing elsewhere than the rules were told."""
        return {"expect_path": _place(self._known)}

    async def _preview_command(self, args: JsonObject) -> Json:
        words = await self._ask("resolve", {"command": args["command"]})
        if why := self._why_not_rehearsed:
            return command_preview(args, words, {"fallback": why})
        is_new, self._only_commits = self._only_commits, False
        if not is_new and not self._command.is_settled and not await self._command.holds():
            await self._try_out(args)
        return command_preview(args, words, self._command.found)

    async def _rehearse_for_rules(self, args: JsonObject) -> Json:
        """Rehearse a command before anybody is asked: unless a person is shown it after that, nothing else runs."""
        if self._why_not_rehearsed:
            return {}
        self._only_commits = True
        await self._try_out(args)
        return {
            name: self._command.found[name] for name in _FOR_RULES if name in self._command.found
        }

    async def _try_out(self, args: JsonObject, stop: StopRequest | None = None) -> None:
        asked = {"command": args["command"], "seconds": _COMMAND_SECONDS}
        await self._command.rehearse(asked, stop)

    async def _run_command(self, args: JsonObject, stop: StopRequest | None) -> dict[str, Any]:
        if self._rehearse == "always" and not self._command.found and not self._why_not_rehearsed:
            await self._try_out(args, stop)
        if self._command.is_kept:
            found = await self._command.commit(stop)
            self._undo = f"commands:{found['undo']}" if found.get("undo") else ""
            return found
        if self._only_commits:
            raise WorkerRefused("conflict", NOT_KEPT, {})
        milliseconds = min(
            int(cast("int", args.get("timeout") or DEFAULT_TIMEOUT_MS)), MAX_TIMEOUT_MS
        )
        words, program = self._known.get("argv"), self._known.get("program")
        exact = {"argv": words, "program": program}
        what = exact if words and program else {"command": args["command"]}
        asked = {**what, "timeout_ms": milliseconds}
        return await self._ask("run", asked, stop, seconds=milliseconds / 1000 + GRACE_SECONDS)

    @property
    def _why_not_rehearsed(self) -> str:
        if self._rehearse == "never":
            return "config.toml says never."
        none: Mapping[str, Any] = {}
        features = self._channel.features if self._channel is not None else none
        if features.get("rehearsal"):
            return ""
        return str(features.get("why_not") or "This session cannot.")

    async def _ask(
        self,
        op: str,
        args: Mapping[str, Any],
        stop: StopRequest | None = None,
        *,
        seconds: float = _ANSWER_SECONDS,
    ) -> dict[str, Any]:
        if self._channel is None:
            raise WorkerLost("This session has no built-in tools any more.", sent=False)
        worker: WorkerName = "commands" if op == "run" else "files"
        return await self._channel.call(worker, op, args, seconds=seconds, stop=stop)


def _place(known: Mapping[str, Any]) -> str | None:
    """Return the real path that a call is about: relative to the project, absolute outside."""
    return known.get("path") or known.get("target")


def refusal(error: WorkerRefused, stop: StopRequest | None) -> Failure:
    """Return the failure of a call that a worker refused."""
    if error.class_ == "stopped" and stop is not None and stop.is_made:
        return stopped_by_person().to_failure()
    kind = _ERRORS.get(error.class_, ConnectorRuntimeError)
    details = in_utf8(dict(error.details))
    return kind(in_utf8(error.message), details=details).to_failure()


def worker_files() -> Mapping[str, bytes]:
    """Return the files of a folder that `python -I` runs as a worker, by their paths in it."""
    return compiled(modules_of(_WORKER, needed=NEEDED))


def write_worker(folder: Path) -> None:
    """Write the files of a worker into *folder*, which is made."""
    for path, content in worker_files().items():
        file = folder / path
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        file.write_bytes(content)
