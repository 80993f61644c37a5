"""One call of a server's tool, from what was asked to what came of it, and the tools that were accepted."""

import math
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Final, cast

from aileron_core.canonical import Json, JsonObject, sha256_hex
from aileron_core.connectors.protocol import MAX_DEPTH, Credential, OpResult, is_deeper_than
from aileron_core.connectors.servers.client import (
    Reply,
    ServerFault,
    load,
)
from aileron_core.connectors.servers.definitions import (
    BadListing,
    ToolDefinition,
    described_once,
    differing,
)
from aileron_core.connectors.wasm.json_slices import (
    LEFT_OUT,
    MAX_STRUCTURE_BYTES,
    StructureTooLarge,
)
from aileron_core.errors import (
    SERVER_RESULT,
    AileronError,
    ConnectorRuntimeError,
    HashMismatch,
)

LIST_SECONDS: Final = 20.0

_MAX_MESSAGE = 2000
_TOO_MUCH: Final = f"it has over {MAX_STRUCTURE_BYTES // 1024} KiB besides long texts"


@dataclass(slots=True, kw_only=True, eq=False)
class ServerCall:
    """One call of a tool, between the core's loop and the server's thread."""

    server: str
    tool: str
    args: JsonObject
    is_gated: bool = False
    """A person approved it: the tool is compared right before, and no good answer leaves its effect unknown."""
    is_look: bool = False
    credential: Credential | None = field(default=None, repr=False)
    """Of a remote server: what is added to the request."""
    on_request: Callable[[], None] | None = None
    done: "Future[OpResult]" = field(default_factory=Future[OpResult])
    on_answered: Callable[[bool], None] | None = None
    """Called on the server's thread when it has an answer, with whether it is one."""
    hosts: Callable[[], tuple[str, ...]] = tuple
    """Returns what the server was connected to meanwhile."""
    left_at: float = math.inf
    """On the monotonic clock."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def has_left(self) -> bool:
        return self.left_at < math.inf

    def leave(self) -> bool:
        with self._lock:
            if self.done.done():
                return False
            self.left_at = time.monotonic()
        if self.on_request is not None:
            self.on_request()
        return True

    def end(self, failure: AileronError, *, is_good_answer: bool = False) -> OpResult:
        """End it with *failure*, unless it has ended, and return how it ended; from any thread.

        Args:
            is_good_answer: the server itself said that it failed.
        """
        with self._lock:
            if not self.done.done():
                left = int(self.has_left)
                writes = left if self.is_gated else 0
                self.done.set_result(
                    OpResult(
                        failure=failure.to_failure(),
                        requests_sent=left,
                        writes_sent=writes,
                        writes_unanswered=0 if is_good_answer else writes,
                        reported_by_connector=is_good_answer,
                        hosts_asked=self.hosts(),
                    )
                )
        return self.done.result()

    def answered(self, reply: Reply) -> None:
        result, left_out = _complete(reply.result or {})
        is_answer = reply.result is None or _is_result(result)
        if self.on_answered is not None:
            self.on_answered(is_answer)
        who = f"The MCP server {self.server}"
        if reply.result is None:
            code = f" (error {reply.code})" if reply.code else ""
            did = "did not run" if reply.nothing_ran else "gave no result of"
            message = f"{who} {did} {self.tool}{code}: {reply.message or 'no reason'}"
            self.end(ConnectorRuntimeError(message), is_good_answer=reply.nothing_ran)
            return
        if not is_answer:
            self.end(ConnectorRuntimeError(f"{who} answered {self.tool} with no result."))
            return
        try:
            output = _shown(result, left_out) if self.is_look else _passed_on(result, left_out)
        except StructureTooLarge:
            message = f"{who} answered {self.tool} with more than a preview can show: {_TOO_MUCH}."
            self.end(ConnectorRuntimeError(message), is_good_answer=True)
            return
        if result.get("isError") is True:
            text = "\n".join(_texts(result))
            message = text[:_MAX_MESSAGE] or f"{self.tool} failed and gave no reason."
            details = {} if self.is_look else {SERVER_RESULT: output}
            self.end(ConnectorRuntimeError(message, details=details), is_good_answer=True)
            return
        with self._lock:
            if not self.done.done():
                self.done.set_result(
                    OpResult(
                        output=output,
                        requests_sent=1,
                        writes_sent=int(self.is_gated),
                        hosts_asked=self.hosts(),
                    )
                )


def _complete(result: JsonObject) -> tuple[JsonObject, str]:
    """Return *result* without what was too large to be read, and what that is; '' where it is all there."""
    left_out = [name for name, value in result.items() if value is LEFT_OUT]
    result = {name: value for name, value in result.items() if value is not LEFT_OUT}
    content = result.get("content")
    if isinstance(content, list) and content[-1:] == [LEFT_OUT]:
        kept = result["content"] = content[:-1]
        left_out.append(f"the content after block {len(kept)}" if kept else "all content")
    return result, " and ".join(left_out)


def _is_result(result: JsonObject) -> bool:
    """Return whether a tool has run: the new era has answers that ask for more instead."""
    content = result.get("content")
    blocks = cast("list[Any]", content) if isinstance(content, list) else [None]
    return result.get("resultType", "complete") == "complete" and all(
        isinstance(each, dict) for each in blocks
    )


def _texts(result: JsonObject) -> list[str]:
    blocks = cast("list[dict[str, Any]]", result["content"])
    texts = [each.get("text") for each in blocks if each.get("type") == "text"]
    return [each for each in texts if isinstance(each, str)]


def _passed_on(result: JsonObject, left_out: str) -> JsonObject:
    """Return what an agent is answered with: the server's own blocks, in the shape of MCP's `CallToolResult`."""
    kept = {name: result[name] for name in ("content", "structuredContent") if name in result}
    if left_out:
        note = f"Aileron left out {left_out} of this answer: {_TOO_MUCH}."
        kept["content"] = [*cast("list[Json]", kept["content"]), {"type": "text", "text": note}]
    return {**kept, "isError": result.get("isError") is True}


def _shown(result: JsonObject, left_out: str) -> JsonObject:
    """Return what a preview shows of a result: nothing of it is left out, and what says the same is there once.

    Raises:
        StructureTooLarge: it has more.
    """
    if left_out:
        raise StructureTooLarge(MAX_STRUCTURE_BYTES)
    blocks = cast("list[dict[str, Any]]", result["content"])
    text, structured = "\n".join(_texts(result)), result.get("structuredContent")
    parsed: Json = None
    try:
        parsed = load(text.encode("utf-8", "surrogatepass"))
        if is_deeper_than(MAX_DEPTH - 1, parsed):
            parsed = None
    except StructureTooLarge:
        if f"{text.lstrip()[:1]}{text.rstrip()[-1:]}" in ("{}", "[]"):  # it is no plain text
            raise
    except (ValueError, RecursionError):
        pass
    value = parsed if structured is None else structured
    shown: dict[str, Json] = {"json": value, "text": "\n".join(map(_block_text, blocks))}
    if value != parsed and not (isinstance(value, dict) and [*value.values()] == [text]):
        shown["data"] = value
    return shown


def _block_text(block: Mapping[str, Any]) -> str:
    """Return a block as a person is shown it: its text, or what it is and the hash of its bytes."""
    resource = block.get("resource")
    members = {**block, **cast("JsonObject", resource if isinstance(resource, dict) else {})}
    if isinstance(text := members.get("text"), str):
        return text
    said = [members.get(each) for each in ("type", "uri", "mimeType")]
    if isinstance(data := members.get("data", members.get("blob")), str):
        said.append(f"SHA-256 {sha256_hex(data.encode('utf-8', 'surrogatepass'))}")
    return " ".join(each for each in said if isinstance(each, str))


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerEnd:
    """How a process ended: in which words, and whether the server is to blame."""

    message: str
    is_fault: bool


class PinnedTools:
    """The tools of the server *name* as they were accepted, beside what it lists now.

    Args:
        read: makes the tools of a listing's entries.
        on_differs: called with each new listing in which a tool differs from the accepted ones.
        check: raises `HashMismatch` if what was accepted is not in the store any more.
    """

    def __init__(
        self,
        name: str,
        accepted: tuple[ToolDefinition, ...],
        *,
        read: Callable[[list[Json]], tuple[ToolDefinition, ...]] = described_once,
        on_differs: Callable[[tuple[ToolDefinition, ...]], None] = lambda tools: None,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        self._name, self._accepted, self.check = name, accepted, check
        self._read, self._on_differs = read, on_differs
        self._differing: frozenset[str] = frozenset()
        self.listed: tuple[ToolDefinition, ...] = ()

    def compare(self, listed: list[Json] | None) -> None:
        """Compare with what is *listed* now; None where that is the same as the last time.

        Raises:
            ServerFault: it is no listing.
        """
        if listed is None:
            return
        try:
            self.listed = self._read(listed)
        except BadListing as error:
            raise ServerFault(str(error)) from None
        self._differing = differing(self._accepted, self.listed)
        if self._differing:
            self._on_differs(self.listed)

    def schema(self, tool: str) -> JsonObject:
        """Return the schema of the arguments of *tool*, as it was accepted."""
        return next(each.input_schema for each in self._accepted if each.name == tool)

    def refusal(self, tool: str) -> AileronError | None:
        """Return why *tool* is not called: it is listed, or in the store, otherwise than it was accepted."""
        try:
            self.check()
        except AileronError as error:
            return error
        if tool not in self._differing:
            return None
        return HashMismatch(
            f"The MCP server {self._name} no longer lists {tool} as it was accepted. "
            "Nothing was sent. A person can see the difference in the console.",
            details={"tool": tool},
        )
