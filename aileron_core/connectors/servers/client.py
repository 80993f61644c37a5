"""JSON-RPC with one MCP server over its pipes, done by the one thread that lives as long as the server.

A line is parsed as a guest's output is, so that no answer holds the interpreter lock for long.
"""

import itertools
import json
import operator
import os
import re
import select
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, cast

from aileron_core import __version__
from aileron_core.canonical import Json, JsonObject
from aileron_core.clock import Clock
from aileron_core.connectors.http.scrubber import Scrubber
from aileron_core.connectors.protocol import MIB
from aileron_core.connectors.servers.definitions import MAX_BYTES, MAX_PAGES, MAX_TOOLS
from aileron_core.connectors.servers.started import Started
from aileron_core.connectors.wasm.json_slices import (
    MAX_STRUCTURE_BYTES,
    StructureTooLarge,
    finite,
    load_json,
    replace_half_pairs,
)
from aileron_core.text import escape

MAX_LINE: Final = 16 * MIB
_MAX_UNASKED, _MAX_UNASKED_BYTES = 2_000, 4 * MIB
_MAX_STDERR_BYTES = 128 * 1024
"""In a second; more is read later."""
_MAX_REPLIES = 1_000
"""To a server's own requests, while it reads none of them."""
_READ_BYTES = 64 * 1024
_LOG_LINE = 2 * 1024
_MAX_MESSAGE = 2_000
OLD_ERAS: Final = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
NEW_ERA: Final = "2026-07-28"
_CLIENT: Final[JsonObject] = {"name": "aileron", "version": __version__}
INITIALIZE: Final[JsonObject] = {
    "protocolVersion": OLD_ERAS[0],
    "capabilities": {},
    "clientInfo": _CLIENT,
}
META: Final[JsonObject] = {
    "io.modelcontextprotocol/protocolVersion": NEW_ERA,
    "io.modelcontextprotocol/clientInfo": _CLIENT,
    "io.modelcontextprotocol/clientCapabilities": {},
}
"""Of each request of the new era, which has no `initialize`."""
_NOTHING_RAN: Final = (-32601, -32602)
"""Method not found, invalid params: errors of JSON-RPC that come before anything is done."""
LIST_TOOLS: Final = "tools/list"
_BRACKET: Final = re.compile(rb'"(?:[^"\\]|\\.)*+"|[][{}]')
_TOOL_DEPTH: Final = 4
"""A tool is an object in the array `tools` of the object `result` of a message."""
_MAX_DEPTH: Final = 100
_TURN_SECONDS: Final = 0.0001
"""After which other threads get their turn while a large answer is read; the interpreter gives it five times later."""
_FIRST_ID: Final = 1_700_000_001
"""A number of ten digits occurs in hardly any listing; see `Reply.line_with`."""


class ServerFault(Exception):
    """What a server did after which it is not spoken to any more; the message is the end of a sentence about it."""


class ServerEnded(ServerFault):
    """It was ended by Aileron, or there is no time left."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """An answer: a result, or the code and message, escaped, of a JSON-RPC error."""

    id_: int = 0
    line: bytes = field(default=b"", repr=False)
    result: JsonObject | None = None
    code: int = 0
    message: str = ""
    nothing_ran: bool = False
    """It is a refusal, which comes before anything is done."""

    def line_with(self, id_: int) -> bytes | None:
        """Return the line of the same answer to another request; None where its id may also be something else.

        Before each gated request the tools are listed again: an answer of the same bytes but for its id is
        not parsed.
        """
        ours = str(self.id_).encode()
        return self.line.replace(ours, str(id_).encode()) if self.line.count(ours) == 1 else None


class Exchange(Protocol):
    """A request that may be sent, and what becomes of its answer; all on the client's thread."""

    def leave(self) -> bool:
        """Return whether to send it: called right before its first byte may reach the server."""
        ...

    def answered(self, reply: Reply) -> None: ...


class _OwnRequest:
    """One of the client's own, for whose answer its thread waits."""

    reply: Reply | None = None

    def leave(self) -> bool:
        return True

    def answered(self, reply: Reply) -> None:
        self.reply = reply


class _Allowance:
    """How much is read in a second of what nobody asked for."""

    def __init__(self, lines: int, size: int) -> None:
        self._limits = lines, size
        self._began = 0.0
        self._lines = self._size = 0

    def take(self, size: int, now: float) -> None:
        if now - self._began >= 1.0:
            self._began, self._lines, self._size = now, 0, 0
        self._lines += 1
        self._size += size

    def wait(self, now: float) -> float:
        """Return for how many seconds nothing more may be read."""
        is_used_up = self._lines >= self._limits[0] or self._size >= self._limits[1]
        return max(0.0, self._began + 1.0 - now) if is_used_up else 0.0


class McpClient(ABC):
    """What every server is asked first: the era of the protocol, and its tools.

    A subclass carries the requests, on the calling thread.
    """

    def __init__(self) -> None:
        self._ids = itertools.count(_FIRST_ID)
        self._pages: list[Reply] = []
        self.era = ""
        self.is_stale = True
        """It said that its list of tools has changed, or has not been asked for it."""

    @abstractmethod
    def request(
        self, method: str, params: JsonObject, deadline: float, known: Reply | None = None
    ) -> Reply:
        """Send one of the client's own requests and return its answer: *known* itself where its bytes are the same.

        Raises:
            ServerFault: none came.
        """

    @abstractmethod
    def _notify(self, method: str, params: JsonObject) -> None: ...

    def _asked(self, id_: int, method: str, params: JsonObject) -> JsonObject:
        if self.era == NEW_ERA:
            params = {**params, "_meta": META}
        return {"id": id_, "method": method, "params": params}

    def initialize(self, deadline: float) -> None:
        """Agree on the era of the protocol.

        Raises:
            ServerFault: it refuses, or speaks none that is known.
        """
        reply = self.request("initialize", INITIALIZE, deadline)
        if reply.result is not None:
            self.era = str(reply.result.get("protocolVersion"))[:40]
            if self.era not in OLD_ERAS:
                raise ServerFault(f"speaks MCP {self.era!r}, which Aileron does not")
            self._notify("notifications/initialized", {})
            return
        self.era = NEW_ERA
        found = self.request("server/discover", {}, deadline)
        versions = (found.result or {}).get("supportedVersions")
        if not isinstance(versions, list) or NEW_ERA not in versions:
            raise ServerFault(f"refused to begin: {reply.message or 'it gave no reason'}")

    def list_tools(self, deadline: float) -> list[Json] | None:
        """Return the tools that it lists now; None where they are the same as the last time.

        Raises:
            ServerFault: it lists too much, or nothing.
        """
        self.is_stale = False
        before, pages = self._pages, list[Reply]()
        tools: list[Json] = []
        size, cursor = 0, None
        while not pages or cursor is not None:
            if len(pages) == MAX_PAGES:
                raise ServerFault(f"lists its tools on more than {MAX_PAGES} pages")
            known = before[len(pages)] if len(pages) < len(before) else None
            params: JsonObject = {} if cursor is None else {"cursor": cursor}
            page = self.request(LIST_TOOLS, params, deadline, known)
            if page.result is None:
                said = page.message or "it gave no reason"
                raise ServerFault(f"refused to list its tools: {said}")
            cursor = page.result.get("nextCursor")
            if cursor is not None and not isinstance(cursor, str):
                raise ServerFault("lists its tools with a wrong cursor")
            pages.append(page)
            size += len(page.line)
            listed = page.result.get("tools")
            if not isinstance(listed, list):
                raise ServerFault("answered the question for its tools with no list")
            tools += listed
            if size > MAX_BYTES:
                raise ServerFault(f"describes its tools in more than {MAX_BYTES // MIB} MiB")
            if len(tools) > MAX_TOOLS:
                raise ServerFault(f"lists more than {MAX_TOOLS:,} tools")
        self._pages = pages
        is_same = len(pages) == len(before) and all(map(operator.is_, pages, before))
        return None if is_same else tools


class StdioClient(McpClient):
    """Speaks with *started*, on the calling thread alone.

    Args:
        wake: a pipe's end; a byte in it ends `pump`.
        on_stderr: takes each line that is not part of the protocol.
        is_over: whether the server is to be ended.
    """

    def __init__(
        self,
        started: Started,
        *,
        wake: int,
        on_stderr: Callable[[bytes], None],
        is_over: Callable[[], bool],
        scrubber: Scrubber,
        clock: Clock,
    ) -> None:
        super().__init__()
        process = started.process
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        self._stdin, self._stdout = process.stdin.fileno(), process.stdout.fileno()
        self._stderr, self._wake = process.stderr.fileno(), wake
        os.set_blocking(self._stdin, False)
        self._on_stderr, self._is_over = on_stderr, is_over
        self._scrubber, self._clock = scrubber, clock
        self._open: dict[int, Exchange] = {}
        self._given_up: set[int] = set()
        self._out: deque[tuple[bytes, Exchange | None]] = deque()
        self._written = 0
        self._replies = 0
        self._lines: deque[bytes] = deque()
        self._parts: list[bytes] = []
        self._size = 0
        self._stderr_part = b""
        self._unasked = _Allowance(_MAX_UNASKED, _MAX_UNASKED_BYTES)
        self._said = _Allowance(2**30, _MAX_STDERR_BYTES)
        self._expected: tuple[bytes, int, Reply] | None = None
        self._listing = 0
        """The id of the request that lists the tools, while it is open."""

    def initialize(self, deadline: float) -> None:
        super().initialize(deadline)
        if self.era == NEW_ERA:
            listen: JsonObject = {"notifications": {"toolsListChanged": True}}
            subscription = self.send("subscriptions/listen", listen, _OwnRequest())
            del self._open[subscription]
            self._given_up.add(subscription)  # nobody waits for its answer, which is its end

    def request(
        self, method: str, params: JsonObject, deadline: float, known: Reply | None = None
    ) -> Reply:
        own = _OwnRequest()
        id_ = self.send(method, params, own)
        self._listing = id_ if method == LIST_TOOLS else 0
        if known is not None and (line := known.line_with(id_)) is not None:
            self._expected = line, id_, known
        while own.reply is None:
            remaining = deadline - self._clock.monotonic()
            if remaining <= 0:
                what = "list its tools" if self._listing else f"answer {method}"
                raise ServerFault(f"did not {what} in time")
            self.pump(remaining)
        self._expected, self._listing = None, 0
        return own.reply

    def send(self, method: str, params: JsonObject, exchange: Exchange) -> int:
        """Queue a request and return its id; `pump` writes it."""
        id_ = next(self._ids)
        self._open[id_] = exchange
        self._send(self._asked(id_, method, params), exchange)
        return id_

    def give_up(self, exchange: Exchange) -> None:
        """Tell the server that nobody waits for the answer of a request any more."""
        for id_, each in self._open.items():
            if each is exchange:
                del self._open[id_]
                self._given_up.add(id_)
                self._notify("notifications/cancelled", {"requestId": id_})
                return

    def say_goodbye(self) -> None:
        """Write what is left to write, if it takes that now: the end of a server's input is where it ends by itself."""
        with suppress(ServerFault):
            self._write()

    def _send(self, message: JsonObject, exchange: Exchange | None = None) -> None:
        self._out.append((encoded(message) + b"\n", exchange))

    def _notify(self, method: str, params: JsonObject) -> None:
        self._send({"method": method, "params": params})

    def pump(self, seconds: float) -> None:
        """Write and read what can be now; wait up to *seconds* for it, or until woken.

        Raises:
            ServerFault: it ended, or did what ends it.
        """
        self._write()
        if self._read_lines():
            seconds = 0.0
        now = self._clock.monotonic()
        quiet, mute = self._unasked.wait(now), self._said.wait(now)
        poll = select.poll()
        poll.register(self._wake, select.POLLIN)
        if not quiet:
            poll.register(self._stdout, select.POLLIN)
        if not mute and self._stderr >= 0:
            poll.register(self._stderr, select.POLLIN)
        if self._out:
            poll.register(self._stdin, select.POLLOUT)
        seconds = min(seconds, *(each for each in (quiet, mute) if each), 3600.0)
        ready = {each for each, _ in poll.poll(max(0.0, seconds) * 1000)}
        if self._wake in ready:
            os.read(self._wake, 4096)
        if self._is_over():
            raise ServerEnded("was ended")
        if self._stderr in ready:
            self._read_stderr()
        if self._stdout in ready:
            self._read_stdout()
        self._read_lines()

    def _write(self) -> None:
        while self._out:
            line, exchange = self._out[0]
            if self._written == 0 and exchange is not None and not exchange.leave():
                self._out.popleft()
                self._open = {id_: each for id_, each in self._open.items() if each is not exchange}
                continue
            try:
                # A view: what is left of a large one is not copied each time.
                self._written += os.write(self._stdin, memoryview(line)[self._written :])
            except BlockingIOError:
                return
            except BrokenPipeError:
                raise ServerFault("closed its standard input") from None
            if self._written == len(line):
                self._out.popleft()
                self._written = 0
        self._replies = 0

    def _read_stderr(self) -> None:
        chunk = os.read(self._stderr, _READ_BYTES)
        if not chunk:
            self._stderr = -1
            return
        self._said.take(len(chunk), self._clock.monotonic())
        *lines, self._stderr_part = (self._stderr_part + chunk).split(b"\n")
        if len(self._stderr_part) > _LOG_LINE:
            part = self._scrubber.scrub(self._stderr_part)
            cut = max(0, len(part) - self._scrubber.longest + 1)  # the rest may begin a secret
            lines.append(part[:cut])
            self._stderr_part = part[cut:]
        for line in lines:
            self._log_line(line)

    def _log_line(self, line: bytes) -> None:
        """Hand a line over in parts: escaping a long one would hold the interpreter lock.

        Its secrets are removed before, so that none is in two parts.
        """
        line = self._scrubber.scrub(line)
        for start in range(0, len(line), _LOG_LINE):
            self._on_stderr(line[start : start + _LOG_LINE])

    def rest_of_stderr(self) -> None:
        """Read what a server that has ended has said last."""
        if self._stderr >= 0:
            os.set_blocking(self._stderr, False)
            with suppress(BlockingIOError):
                self._read_stderr()
        if self._stderr_part:
            self._log_line(self._stderr_part)
            self._stderr_part = b""

    def _read_stdout(self) -> None:
        chunk = os.read(self._stdout, _READ_BYTES)
        if not chunk:
            raise ServerFault("ended")
        first, *others = chunk.split(b"\n")
        self._parts.append(first)
        self._size += len(first)
        if self._size > MAX_LINE:
            raise ServerFault(f"sent a line of more than {MAX_LINE // MIB} MiB")
        for each in others:
            self._lines.append(b"".join(self._parts))
            self._parts, self._size = [each], len(each)

    def _read_lines(self) -> bool:
        """Read what has arrived, and return whether anything had; the rest waits while it is too much."""
        is_any = False
        while self._lines and not self._unasked.wait(self._clock.monotonic()):
            is_any = True
            if line := self._lines.popleft().strip():
                self._read_line(line)
            else:
                self._unasked.take(1, self._clock.monotonic())
        return is_any

    def _read_line(self, line: bytes) -> None:
        if self._expected is not None and line == self._expected[0]:
            _, id_, reply = self._expected
            self._open.pop(id_).answered(reply)
            return
        message = self._parsed(line)
        id_ = None if message is None else message.get("id")
        if message is not None and "method" not in message and id_ is not None:
            self._answer(cast("Any", id_), line, message)
            return
        self._unasked.take(len(line), self._clock.monotonic())
        if message is None or "method" not in message:
            self._log_line(line)  # a program that prints beside the protocol
        elif id_ is not None:
            self._reply(id_, message["method"])
        elif message["method"] == "notifications/tools/list_changed":
            self.is_stale = True

    def _parsed(self, line: bytes) -> JsonObject | None:
        try:
            message = self._listed(line) or self._value(line, is_listing=False)
        except StructureTooLarge as error:
            # Whose answer it is, without reading it.
            meant = [id_ for id_ in self._open if str(id_).encode() in line]
            if not meant:
                return None
            if len(meant) != 1:
                raise ServerFault(f"sent what cannot be read: {error}") from None
            return {"id": meant[0], "error": {"message": f"its answer is too large: {error}"}}
        except (ValueError, RecursionError):
            if line.startswith(b"{") and self._open:  # may be the answer that somebody waits for
                raise ServerFault("sent a message that is no JSON, or nested too deeply") from None
            return None
        return cast("JsonObject", message) if isinstance(message, dict) else None

    def _listed(self, line: bytes) -> JsonObject | None:
        """Return the answer to the open request that lists the tools; None where *line* is something else."""
        if not self._listing or str(self._listing).encode() not in line:
            return None
        try:
            message = self._value(line, is_listing=True)
        except RecursionError:
            message = self._value(without_deep_tools(line), is_listing=True)
        if not isinstance(message, dict):
            return None
        found = cast("JsonObject", message)
        return found if found.get("id") == self._listing else None

    def _value(self, line: bytes, *, is_listing: bool) -> Any:
        """Return the JSON value of *line* without secrets."""
        value = load_message(line, is_listing=is_listing)
        return scrubbed(value, self._scrubber) if may_hold(line, self._scrubber) else value

    def _answer(self, id_: Any, line: bytes, message: JsonObject) -> None:
        is_ours = type(id_) is int
        if is_ours and id_ in self._given_up:
            self._given_up.discard(id_)
            return
        exchange = self._open.pop(id_, None) if is_ours else None
        if exchange is None:
            raise ServerFault("answered a request that it was not sent")
        exchange.answered(reply_in(message, line, id_))

    def _reply(self, id_: Json, method: Json) -> None:
        """Answer a request of the server's own: nothing but a ping is offered."""
        if self._replies >= _MAX_REPLIES or not isinstance(id_, str | int) or len(str(id_)) > 200:
            return
        self._replies += 1
        self._send(not_offered(id_, method))


def encoded(message: JsonObject) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **message}, separators=(",", ":")).encode()


def reply_in(message: JsonObject, line: bytes, id_: int) -> Reply:
    """Return the answer to the request *id_* that is the *message* of a *line*."""
    result, error = message.get("result"), message.get("error")
    if isinstance(result, dict) or not isinstance(error, dict):  # what is neither is no good answer
        return Reply(id_=id_, line=line, result=result if isinstance(result, dict) else {})
    members = cast("Mapping[str, Any]", error)
    code, text = members.get("code"), members.get("message")
    return Reply(
        code=code if type(code) is int else 0,
        message=escape(text[:_MAX_MESSAGE]) if isinstance(text, str) else "",
        nothing_ran=code in _NOTHING_RAN,
    )


def not_offered(id_: str | int, method: Json) -> JsonObject:
    """Return the answer to a request of a server's own: nothing but a ping is offered."""
    none: JsonObject = {"code": -32601, "message": "Aileron does not offer this."}
    return {"id": id_, **({"result": {}} if method == "ping" else {"error": none})}


def load(
    data: bytes, max_structure: int = MAX_STRUCTURE_BYTES, *, spare: str = "", shorten: str = ""
) -> Any:
    """Return the JSON value of *data* without holding the interpreter lock for long; see `load_json`."""
    go_on = _turns()

    def read(data: bytes) -> Any:
        return load_json(
            data,
            go_on,
            convert_long_string=lambda long: long.text(go_on),
            parse_float=finite,
            errors="replace",
            max_structure=max_structure,
            spare=spare,
            shorten=shorten,
        )

    try:
        return read(data)
    except StructureTooLarge:
        raise
    except ValueError:
        if rb"\ud" not in data and rb"\uD" not in data:
            raise
        return read(replace_half_pairs(data, go_on))


def load_message(data: bytes, *, is_listing: bool) -> Any:
    """Return the message that *data* is; of a large answer as many blocks as may be, and of those alone."""
    if is_listing:
        return load(data, MAX_BYTES)
    return load(data, spare="structuredContent", shorten="content")


def _turns() -> Callable[[], None]:
    """Return what is called between two slices, and gives other threads their turn from time to time."""
    last = time.perf_counter()

    def go_on() -> None:
        nonlocal last
        if time.perf_counter() - last > _TURN_SECONDS:
            time.sleep(0)
            last = time.perf_counter()

    return go_on


def without_deep_tools(listing: bytes) -> bytes:
    """Return the answer to `tools/list` with null in place of each tool that is nested too deeply to be read."""
    kept: list[bytes] = []
    depth = deepest = began = end = 0
    for found in _BRACKET.finditer(listing):
        if found[0] in b"[{":
            depth, deepest = depth + 1, max(deepest, depth + 1)
            if depth == _TOOL_DEPTH:
                began, deepest = found.start(), depth
        elif found[0] in b"]}":
            if depth == _TOOL_DEPTH and deepest > _MAX_DEPTH:
                kept += [listing[end:began], b"null"]
                end = found.end()
            depth -= 1
    return b"".join((*kept, listing[end:]))


def may_hold(line: bytes, scrubber: Scrubber) -> bool:
    """Return whether a text in the JSON of *line* may hold a secret: any character can be written as an escape."""
    return scrubber.finds(line) or (scrubber.longest > 0 and b"\\" in line)


def scrubbed(value: Any, scrubber: Scrubber) -> Any:
    """Return JSON without the secrets in its texts, however deep; objects and arrays are changed in place."""

    def clean(item: Any) -> Any:
        if isinstance(item, str):
            return scrubber.scrub(item.encode()).decode("utf-8", "replace")
        if isinstance(item, dict | list):
            left.append(cast("dict[str, Any] | list[Any]", item))
        return cast("Any", item)

    left: list[dict[str, Any] | list[Any]] = []
    value = clean(value)
    while left:
        each = left.pop()
        if isinstance(each, list):
            each[:] = map(clean, each)
        else:
            members = [*each.items()]
            each.clear()
            each.update({clean(name): clean(item) for name, item in members})
    return value
