"""A remote MCP server over streamable HTTP: every message is one POST of the outgoing client's, and nothing else is open.

So no notification of another listing arrives. The tools are listed before each gated call, and before
any other one where the last listing is a minute old.
"""

import base64
import logging
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from copy import copy
from dataclasses import replace
from typing import Any, Final, cast

from aileron_core.canonical import Json, JsonObject
from aileron_core.connectors.http.call import AnswerMeaning, OutgoingCall
from aileron_core.connectors.http.client import OutgoingClient, OutgoingRequest, OutgoingResponse
from aileron_core.connectors.http.scrubber import Scrubber
from aileron_core.connectors.http.target import parse_target
from aileron_core.connectors.protocol import Credential, OpResult
from aileron_core.connectors.servers.call import (
    LIST_SECONDS,
    PinnedTools,
    ServerCall,
    ServerEnd,
)
from aileron_core.connectors.servers.client import (
    LIST_TOOLS,
    NEW_ERA,
    McpClient,
    Reply,
    ServerFault,
    encoded,
    load_message,
    may_hold,
    not_offered,
    reply_in,
    scrubbed,
)
from aileron_core.connectors.servers.definitions import (
    BadListing,
    ToolDefinition,
    from_listing,
)
from aileron_core.errors import AileronError, ConnectorRuntimeError, InternalError, Unavailable

_log = logging.getLogger(__name__)
_FRESH_SECONDS: Final = 60.0
_GOODBYE_SECONDS: Final = 1.5
_CALL_SECONDS: Final = 3600.0
"""Longer than any call's limit, at which it is given up."""
_MAX_CALLS: Final = 32
_MAX_ASKED: Final = 20
"""Of a server's own requests in one answer."""
_PLAIN: Final = re.compile(r"(?!=\?base64\?)[!-~]([ -~]*[!-~])?")
_REFUSALS: Final = {
    401: "it wants a key (`aileron server add --header` names its header), or another one",
    403: "it does not let this account in",
    404: "it is not at this address, or has ended the session",
    405: "it takes no POST, as a server of the older HTTP+SSE, which Aileron does not speak",
}


class _Answer:
    """Finds the answer to the request *id_* in what a POST is answered with: a JSON text, or events.

    Args:
        known: what it is where its bytes are the same.
        asked: takes the answer to each request of the server's own.
    """

    def __init__(
        self,
        id_: int,
        scrubber: Scrubber,
        known: Reply | None,
        asked: Callable[[JsonObject], None],
        *,
        is_listing: bool,
    ) -> None:
        self._id, self._scrubber, self._asked = id_, scrubber, asked
        self._is_listing = is_listing
        self._known, self._expected = known, known and known.line_with(id_)
        self._count = 0
        self._line: list[bytes] = []
        self._data: list[bytes] = []
        self.reply: Reply | None = None

    def feed(self, chunk: bytes) -> bool:
        """Read a part of a stream of events, and return whether the answer has come."""
        first, *others = chunk.split(b"\n")
        self._line.append(first)
        for each in others:
            line, self._line = b"".join(self._line).removesuffix(b"\r"), [each]
            if line.startswith(b"data:"):
                self._data.append(line[5:].removeprefix(b" "))
            elif not line and self._data:
                data, self._data = b"\n".join(self._data), []
                self.read(data)
        return self.reply is not None

    def read(self, data: bytes) -> None:
        data = self._scrubber.scrub(data)
        if data == self._expected:
            self.reply = self._known
            return
        message: Any = None
        with suppress(ValueError, RecursionError):
            found = load_message(data, is_listing=self._is_listing)
            message = scrubbed(found, self._scrubber) if may_hold(data, self._scrubber) else found
        if not isinstance(message, dict):
            return
        members = cast("JsonObject", message)
        id_, method = members.get("id"), members.get("method")
        if method is None:
            if id_ == self._id or (id_ is None and "error" in members):
                self.reply = reply_in(members, data, self._id)
        elif isinstance(id_, str | int) and self._count < _MAX_ASKED:
            self._count += 1
            self._asked(not_offered(id_, method))


class HttpClient(McpClient):
    """Speaks with the server at *url*, on one thread at a time; `stop` may be called on any.

    Args:
        credential: added to each request.
    """

    def __init__(self, url: str, outgoing: OutgoingClient, credential: Credential | None) -> None:
        super().__init__()
        self._url, self._outgoing, self._credential = url, outgoing, credential
        self._scrubber = Scrubber(() if credential is None else credential.secrets())
        self._session = ""
        self._has_session_ended = False
        self._call: OutgoingCall | None = None
        self._is_stopped = False
        self.hosts_asked: tuple[str, ...] = ()

    def for_call(self, credential: Credential | None) -> "HttpClient":
        """Return one that goes on with the same session."""
        client, new = copy(self), HttpClient(self._url, self._outgoing, credential)
        for name in ("_credential", "_scrubber", "_call", "_is_stopped", "hosts_asked"):
            setattr(client, name, getattr(new, name))
        return client

    def stop(self) -> None:
        """End the present request, and let no other one leave."""
        self._is_stopped = True
        if self._call is not None:
            self._call.stop()

    def list_tools(self, deadline: float) -> list[Json] | None:
        """Return as `McpClient` does, in a new session where there is none or the server has ended it."""
        if not self.era:
            self.initialize(deadline)
        try:
            return super().list_tools(deadline)
        except ServerFault:
            if not self._has_session_ended:
                raise
        self._session, self._has_session_ended, self._pages = "", False, []
        self.era = ""
        self.initialize(deadline)
        return super().list_tools(deadline)

    def call_tool(self, call: ServerCall, schema: JsonObject) -> Reply:
        """Return the answer to *call*, whose arguments have the *schema*.

        Raises:
            ServerFault: there is none.
            AileronError: as of `OutgoingClient.send`.
        """
        headers: dict[str, str] = {}
        if self.era == NEW_ERA:
            headers = {"Mcp-Name": _header(call.tool), **dict(_parameters(schema, call.args))}
        params: JsonObject = {"name": call.tool, "arguments": call.args}
        deadline = self._outgoing.clock.monotonic() + _CALL_SECONDS
        return self.request("tools/call", params, deadline, headers=headers, call=call)

    def request(
        self,
        method: str,
        params: JsonObject,
        deadline: float,
        known: Reply | None = None,
        *,
        headers: Mapping[str, str] | None = None,
        call: ServerCall | None = None,
    ) -> Reply:
        id_ = next(self._ids)
        answer = _Answer(id_, self._scrubber, known, self._reply, is_listing=method == LIST_TOOLS)
        if self.era == NEW_ERA:
            headers = {"Mcp-Method": method, **(headers or {})}
        body = self._asked(id_, method, params)
        response, nothing_ran = self._post(body, deadline, headers, answer.feed, call)
        if answer.reply is None:
            answer.read(response.body)
        status = response.status
        self._has_session_ended = status == 404 and bool(self._session)
        if method == "initialize":
            self._session = response.header(b"mcp-session-id").decode("latin-1")
        if (reply := answer.reply) is None:
            if status < 300:
                raise ServerFault("gave no answer that can be read")
            said = (
                f"{_REFUSALS[status]} (HTTP {status})" if status in _REFUSALS else f"HTTP {status}"
            )
            reply = Reply(message=said)
        return replace(reply, nothing_ran=True) if nothing_ran and reply.result is None else reply

    def _post(
        self,
        message: JsonObject | None,
        deadline: float,
        headers: Mapping[str, str] | None = None,
        on_events: Callable[[bytes], bool] = lambda chunk: True,
        call: ServerCall | None = None,
    ) -> tuple[OutgoingResponse, bool]:
        """Send *message*, or where there is none the end of the session; return whether nothing was done, too."""
        effects: list[str] = []

        def sending(_method: str, place: str) -> None:
            if call is not None and not call.leave():
                raise Unavailable("The call was given up. Nothing was sent.")
            self.hosts_asked = tuple(dict.fromkeys((*self.hosts_asked, place)))

        def said(_method: str, _place: str, meaning: AnswerMeaning) -> None:
            effects.append(meaning.effect)

        sent = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
        sent |= {"Mcp-Session-Id": self._session} if self._session else {}
        sent |= {"Mcp-Protocol-Version": self.era} if self.era else {}
        self._call = OutgoingCall(self._outgoing.clock, deadline, sending, said)
        if self._is_stopped:
            self._call.stop()
        try:
            response = self._outgoing.send(
                OutgoingRequest(
                    method="POST" if message is not None else "DELETE",
                    url=self._url,
                    headers={**sent, **(headers or {})},
                    body=None if message is None else encoded(message),
                ),
                self._call,
                allowed=(parse_target(self._url).host_port,),
                credential=self._credential,
                scrubber=self._scrubber,
                on_events=on_events,
                on_own_connection=call is not None and call.is_gated,
            )
        except ValueError as error:
            raise ServerFault(f"cannot be sent this: {error}") from None
        return response, effects[-1] == "refused" and not self._call.became_get

    def _notify(self, method: str, params: JsonObject) -> None:
        self.post_quietly({"method": method, "params": params})

    def post_quietly(self, message: JsonObject | None) -> None:
        """Send what nothing is answered to, or where it is None the end of the session; whether or not it arrives."""
        deadline = self._outgoing.clock.monotonic() + _GOODBYE_SECONDS
        with suppress(AileronError, ServerFault):
            self._post(message, deadline)

    def _reply(self, message: JsonObject) -> None:
        # On another thread: this one is reading, and a tool may wait for it.
        post = self.for_call(self._credential).post_quietly
        threading.Thread(target=post, args=(message,), daemon=True).start()

    def say_goodbye(self) -> None:
        """End the session, if the server takes that."""
        if self._session:
            self.post_quietly(None)


def _header(value: str) -> str:
    """Return *value* as a header has it in the new era."""
    if not value or _PLAIN.fullmatch(value):
        return value
    return f"=?base64?{base64.b64encode(value.encode('utf-8', 'replace')).decode()}?="


def _parameters(schema: JsonObject, args: JsonObject) -> Iterator[tuple[str, str]]:
    """Yield the headers of those arguments that the server wants to see in one, too (`x-mcp-header`)."""
    properties = schema.get("properties")
    for name, each in properties.items() if isinstance(properties, Mapping) else ():
        value = args.get(name)
        if not isinstance(each, Mapping):
            continue
        if isinstance(value, Mapping):
            yield from _parameters(each, value)
        elif isinstance(header := each.get("x-mcp-header"), str) and value is not None:
            text = str(value).lower() if isinstance(value, bool) else str(value)
            yield f"Mcp-Param-{header}", _header(text)


class RemoteServer:
    """The calls of a remote server with one account, each on a thread; it has the methods of `ServerProcess`.

    Args:
        on_end: called on a thread once no call of it is left.
    """

    def __init__(
        self,
        name: str,
        url: str,
        outgoing: OutgoingClient,
        *,
        pins: PinnedTools,
        credential: Credential | None,
        on_end: Callable[["RemoteServer", ServerEnd], None],
    ) -> None:
        self.name, self._pins, self._on_end, self._clock = name, pins, on_end, outgoing.clock
        self.ready: Future[AileronError | None] = Future()
        self.ready.set_result(None)  # a session begins with the first call
        self._client, self._credential = HttpClient(url, outgoing, credential), credential
        self._listed_at = float("-inf")
        self._listing, self._lock = threading.Lock(), threading.Lock()
        self._open: dict[ServerCall, HttpClient | None] = {}
        self._takes_calls = True
        self._has_ended = threading.Event()
        self._threads = ThreadPoolExecutor(_MAX_CALLS, thread_name_prefix=f"mcp server {name}")

    @property
    def takes_calls(self) -> bool:
        return self._takes_calls

    def submit(self, call: ServerCall) -> bool:
        """Have *call* made; False where no more are taken. From any thread."""
        with self._lock:
            if self._takes_calls:
                self._open[call] = None
                self._threads.submit(self._run, call)
            return self._takes_calls

    def give_up(self, call: ServerCall, failure: AileronError, *, is_hung: bool) -> OpResult:
        """End *call* as `ServerProcess.give_up` does; another call is on another connection."""
        result = call.end(failure)
        with self._lock:
            client = self._open.get(call)
        if client is not None:
            client.stop()
        return result

    def retire(self) -> None:
        """Take no further call, and end the session once the present ones have ended."""
        with self._lock:
            self._takes_calls, was_taking = False, self._takes_calls
            if was_taking and not self._open:
                self._threads.submit(self._end)

    def close(self) -> None:
        """End every call now; `join` waits for that."""
        self.retire()
        with self._lock:
            clients = [*self._open.items()]
        for call, client in clients:
            call.end(Unavailable(f"The MCP server {self.name} is not called any more."))
            if client is not None:
                client.stop()

    def join(self, seconds: float) -> None:
        self._has_ended.wait(max(0.0, seconds))

    def _end(self) -> None:
        self._client.for_call(self._credential).say_goodbye()
        self._on_end(self, ServerEnd(message="was ended", is_fault=False))
        self._threads.shutdown(wait=False)
        self._has_ended.set()

    def _run(self, call: ServerCall) -> None:
        try:
            if not call.done.done():
                client = self._client_for(call)
                if (refusal := self._pins.refusal(call.tool)) is not None:
                    call.end(refusal)
                else:
                    call.answered(client.call_tool(call, self._pins.schema(call.tool)))
        except ServerFault as fault:
            call.end(ConnectorRuntimeError(f"The MCP server {self.name} {fault}."))
        except AileronError as error:
            error.retriable &= not call.has_left  # what may have run is not repeated
            call.end(error)
        except Exception as fault:  # noqa: BLE001 - the edge of a thread; its text may quote a secret
            _log.error("a call of a remote MCP server ended with %s", type(fault).__name__)
            call.end(InternalError("An internal error of Aileron ended a call of an MCP server."))
        with self._lock:
            del self._open[call]
            is_last = not self._takes_calls and not self._open
        if is_last:
            self._end()

    def _client_for(self, call: ServerCall) -> HttpClient:
        """Return what *call* is made with, once the tools have been compared where that is due."""
        with self._listing:
            client = self._client.for_call(call.credential)
            call.hosts = lambda: client.hosts_asked
            with self._lock:
                self._open[call] = client
            now = self._clock.monotonic()
            if call.is_gated or now - self._listed_at > _FRESH_SECONDS:
                self._pins.compare(client.list_tools(now + LIST_SECONDS))
                self._client, self._listed_at = client, now
            return client


def list_remote(
    outgoing: OutgoingClient, name: str, url: str, credential: Credential | None
) -> tuple[ToolDefinition, ...]:
    """List the tools of a remote server once. Blocks.

    Raises:
        Unavailable: it cannot be reached, or does not list.
        AileronError: as of `OutgoingClient.send`.
    """
    client = HttpClient(url, outgoing, credential)
    try:
        listed = client.list_tools(outgoing.clock.monotonic() + LIST_SECONDS)
        return from_listing(listed or ())
    except (ServerFault, BadListing) as fault:
        raise Unavailable(f"The MCP server {name} {fault}.") from None
    finally:
        client.say_goodbye()
