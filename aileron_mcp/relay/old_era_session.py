"""The MCP session of the old era, reopened where a restarted console no longer has it."""

import threading
from contextlib import suppress
from typing import cast

from aileron_mcp.relay.aileron_session import (
    STREAM_RETRY_SECONDS,
    AileronSession,
    RequestDenied,
)
from aileron_mcp.relay.http_client import ConnectionDropped, read_events
from aileron_mcp.relay.messages import (
    LIST_CHANGED,
    VISIBLE_ASCII,
    Call,
    ClientOutput,
    Message,
    error_reason,
    header_safe,
    is_request_or_notification,
    parse_object,
)


class OldEraSession:
    """The client's handshake, and the session that the console opened for it."""

    def __init__(
        self, aileron: AileronSession, output: ClientOutput, stop: threading.Event
    ) -> None:
        self._aileron = aileron
        self._output = output
        self._stop = stop
        self._initialize: bytes | None = None
        self._initialized: bytes | None = None  # the client's notifications/initialized
        self._session_id: str | None = None
        self._protocol_version: str | None = None
        self._reopening = threading.RLock()
        self._initialize_done = threading.Event()  # no `initialize` is on its way
        self._initialize_done.set()
        self.reopened = 0
        """How often the session was opened again."""

    def begin_initialize(self, raw: bytes) -> None:
        """Forget the session before: the client has sent *raw*, an `initialize`."""
        self._initialize_done.clear()
        self._session_id = None
        self._initialize, self._initialized = raw, None

    def end_initialize(self) -> None:
        """Let the client's other messages go out."""
        self._initialize_done.set()

    def wait_for_initialize(self) -> None:
        self._initialize_done.wait()

    def store_session_id(self, value: str | None) -> None:
        """Keep the console's `Mcp-Session-Id`; without one there is no session."""
        self._session_id = header_safe(value)

    def store_protocol_version(self, answer: Message) -> None:
        """Keep the version that the answer to `initialize` settles."""
        result = answer.get("result")
        if isinstance(result, dict):
            version = cast("Message", result).get("protocolVersion")
            self._protocol_version = header_safe(version)

    def request_headers(self, token: str | None, call: Call | None = None) -> dict[str, str]:
        """Return the headers of a request to `/mcp`, of either era."""
        headers = {
            "Accept": "application/json, text/event-stream",
            "Content-Type": "application/json",
        }
        if token is not None:
            if VISIBLE_ASCII.fullmatch(token) is None:
                raise RequestDenied(
                    "The session token contains invalid characters. Start the agent again."
                )
            headers["Authorization"] = f"Bearer {token}"
        if call is not None:
            headers |= call.retry_headers()
        if call is not None and call.protocol_version is not None:
            return {**headers, **call.new_era_headers()}
        if self._session_id is not None and (call is None or call.method != "initialize"):
            headers["Mcp-Session-Id"] = self._session_id
            if self._protocol_version is not None:
                headers["MCP-Protocol-Version"] = self._protocol_version
        return headers

    def notify(self, raw: bytes) -> None:
        """Post a message that has no answer; the new era has none that its server would read."""
        self.wait_for_initialize()
        if self._session_id is not None:
            self._post_once(raw)

    def notify_initialized(self, raw: bytes) -> None:
        """Post the end of the client's handshake; the first time, also keep the standing stream."""
        self.wait_for_initialize()
        if self._session_id is None:
            return
        is_first = self._initialized is None
        self._initialized = raw  # before it is sent: whoever opens the session again sends it too
        self._post_once(raw)
        if is_first:
            self._read_stream_forever()

    def _post_once(self, raw: bytes) -> None:
        with suppress(ConnectionDropped, RequestDenied):  # what still matters of it is replayed
            self._post(raw)

    def _post(self, raw: bytes) -> None:
        connection, token = self._aileron.connect()
        with connection:
            connection.request("POST", "/mcp", self.request_headers(token), raw)

    def reopen(self, reopened_before: int) -> None:
        """Replay the client's `initialize` to a console that has forgotten its session.

        Args:
            reopened_before: what `reopened` was when the lost session was used.
        """
        with self._reopening:
            if self.reopened != reopened_before:
                return  # another thread has just done it
            if self._initialize is None:
                raise RequestDenied(
                    "There is no MCP session for this message. The client must send initialize first."
                )
            connection, token = self._aileron.connect()
            call = Call(parse_object(self._initialize), self._initialize)
            with connection:
                headers = self.request_headers(token, call)
                status = connection.request("POST", "/mcp", headers, call.raw)
                session_id = header_safe(connection.headers.get("mcp-session-id"))
                body = connection.read_body()
            if status == 401:
                self._aileron.renew_token(token)
                return
            if status != 200 or session_id is None:
                reason = error_reason(parse_object(body), status)
                raise RequestDenied(f"The console refused to continue this session: {reason}")
            self._session_id = session_id
            if self._initialized is not None:
                self._post(self._initialized)
            self.reopened += 1

    def _read_stream_forever(self) -> None:
        """Keep the standing stream open; it brings list changes."""
        was_open = False
        pause = STREAM_RETRY_SECONDS
        while not self._stop.is_set():
            try:
                if self._read_stream(was_open):
                    was_open, pause = True, STREAM_RETRY_SECONDS
            except ConnectionDropped:
                pass
            except RequestDenied:
                pause = min(2 * pause, 30.0)  # the next request says why to the client
            self._stop.wait(pause)

    def _read_stream(self, was_open: bool) -> bool:
        """Read the standing stream to its end; return whether it was there."""
        reopened_before = self.reopened
        connection, token = self._aileron.connect()
        with connection:
            status = connection.request("GET", "/mcp", self.request_headers(token))
            if status == 200:
                if was_open or self.reopened:
                    # Not the first stream, or not of the console that was asked first: what the
                    # client knows of the tools may be out of date.
                    self._output.write({"jsonrpc": "2.0", "method": LIST_CHANGED})
                with suppress(ConnectionDropped):
                    for data in read_events(connection.read_chunks()):
                        if is_request_or_notification(message := parse_object(data)):
                            self._output.forward(message, data)
                return True
        if status == 401:
            self._aileron.renew_token(token)
        elif status == 404:
            self.reopen(reopened_before)
        return False

    def close(self) -> None:
        """End the session, if there is one; one attempt."""
        if self._session_id is not None:
            headers = {
                "Mcp-Session-Id": self._session_id,
                **self._aileron.authorization_header(),
            }
            self._aileron.send_last_request("DELETE", "/mcp", headers)
