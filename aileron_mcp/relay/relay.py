"""The relay itself: forwards the client's messages and the answers, also over a restart of the console."""

import json
import os
import re
import select
import signal
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import cast

from aileron_mcp.relay.aileron_session import STREAM_PAUSE, TRIES, AileronSession, Denied
from aileron_mcp.relay.console_finder import CONNECT_SECONDS, ConsoleFinder, NoConsole
from aileron_mcp.relay.http_client import Dropped, HttpConnection, read_events
from aileron_mcp.relay.messages import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    LINE_LIMIT,
    NO_CONSOLE,
    NOT_JSON,
    PARSE_ERROR,
    VISIBLE,
    Call,
    LineSplitter,
    Message,
    error_answer,
    error_reason,
    is_answer,
    is_for_the_client,
    one_line,
    outcome_unknown,
    parse_json,
    parse_object,
    visible,
)

_SUBSCRIPTION_KEY = "io.modelcontextprotocol/subscriptionId"
_LIST_CHANGED = "notifications/tools/list_changed"
_ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
_BREAK = re.compile(rb"[\r\n]")


class Relay:
    """Forwards between one client on stdio and the console, a thread for each open request."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._stop = threading.Event()
        self._finder = ConsoleFinder(environ, self._stop)
        self._aileron = AileronSession(environ, self._finder, self._start, self._stop)
        self._lock = threading.Lock()  # of the table of calls and the exit code
        self._calls: dict[str, Call] = {}
        self._code: int | None = None
        self._sentence: str | None = None
        self._wake_read, self._wake_write = os.pipe()
        self._writing = threading.Lock()
        # The old era's session: what the client said first, and what the console made of it.
        self._greeting: bytes | None = None
        self._greeted: bytes | None = None  # the client's notifications/initialized
        self._mcp_session: str | None = None
        self._version: str | None = None
        self._epoch = 0
        self._handshake = threading.RLock()
        self._settled = threading.Event()  # no `initialize` is on its way
        self._settled.set()

    def run(self) -> int:
        """Serve until stdin ends, a signal comes or the console stays away; return the exit code."""
        # The kernel may hand a signal to any thread; only this descriptor wakes this one then.
        os.set_blocking(self._wake_write, False)
        signal.set_wakeup_fd(self._wake_write, warn_on_full_buffer=False)
        signal.signal(signal.SIGTERM, self._on_signal)
        signal.signal(signal.SIGINT, self._on_signal)
        lines = LineSplitter()
        while self._code is None:
            ready, _, _ = select.select([0, self._wake_read], [], [])
            if self._wake_read in ready:
                os.read(self._wake_read, 64)
                continue
            try:
                data = os.read(0, 1 << 16)
            except BlockingIOError:
                continue
            except OSError:
                data = b""
            if not data:
                self._finish(0)
            for line, whole in lines.feed(data):
                if whole:
                    self._receive(line)
                else:
                    problem = f"The message is longer than {LINE_LIMIT} bytes."
                    self._write(error_answer(json.loads(line), INVALID_REQUEST, problem))
        return self._close()

    def _close(self) -> int:
        self._stop.set()
        code = self._code or 0
        if self._sentence is not None:
            for call in list(self._calls.values()):
                self._reply(call, error_answer(call.id, NO_CONSOLE, self._sentence))
            os.write(2, f"aileron-mcp: {self._sentence}\n".encode("utf-8", "replace"))
            return code
        if self._mcp_session is not None:
            headers = {"Mcp-Session-Id": self._mcp_session, **self._aileron.authorization()}
            self._aileron.farewell("DELETE", "/mcp", headers)
        self._aileron.end()
        return code

    def _finish(self, code: int, sentence: str | None = None) -> None:
        """Have the main thread end; the first reason counts. Also called from a signal handler."""
        if self._code is None:
            self._code, self._sentence = code, sentence
            os.write(self._wake_write, b".")

    def _on_signal(self, number: int, _: object) -> None:
        self._finish(130 if number == signal.SIGINT else 0)

    def _start(self, target: Callable[..., None], *arguments: object) -> None:
        threading.Thread(target=self._guarded, args=(target, arguments), daemon=True).start()

    def _guarded(self, target: Callable[..., None], arguments: tuple[object, ...]) -> None:
        try:
            target(*arguments)
        except NoConsole as error:
            self._finish(69, str(error))
        except Exception as error:  # noqa: BLE001 - the top of a thread; silence would hang the client
            self._finish(70, describe_bug(error))

    # -- what comes from the client

    def _receive(self, line: bytes) -> None:
        if not line.strip():
            return
        try:
            message = parse_json(line)
        except ValueError:
            self._write(error_answer(None, PARSE_ERROR, "This line is not one JSON text."))
            return
        if not isinstance(message, list):
            self._dispatch(message, line)
        elif not message:
            self._write(error_answer(None, INVALID_REQUEST, "A batch may not be empty."))
        else:
            # 2025-03-26 has batches; the server does not, so each goes alone.
            for part in cast("list[object]", message):
                self._dispatch(part, one_line(part))

    def _dispatch(self, message: object, raw: bytes) -> None:
        if not isinstance(message, dict):
            self._write(error_answer(None, INVALID_REQUEST, "A message must be a JSON object."))
            return
        fields = cast("Message", message)
        id_ = fields.get("id")
        good_id = isinstance(id_, str | int) and not isinstance(id_, bool)
        if not isinstance(fields.get("method"), str):
            if good_id and ("result" in fields or "error" in fields):
                self._start(self._notify, raw, False)
            else:
                problem = "A message must be a request, a notification or a response."
                self._write(error_answer(id_ if good_id else None, INVALID_REQUEST, problem))
        elif "id" not in fields:
            self._notification(fields, raw)
        elif not good_id:
            self._write(
                error_answer(None, INVALID_REQUEST, "An id must be a string or an integer.")
            )
        else:
            self._request(Call(fields, raw))

    def _request(self, call: Call) -> None:
        with self._lock:
            taken = self._calls.setdefault(call.key, call) is not call
        if taken:
            self._write(
                error_answer(call.id, INVALID_REQUEST, "This id is in use by an open request.")
            )
            return
        if call.method == "initialize" and call.version is None:
            self._settled.clear()
            self._mcp_session = None
            self._greeting, self._greeted = call.raw, None
        self._start(self._serve, call)

    def _notification(self, message: Message, raw: bytes) -> None:
        if message["method"] == "notifications/cancelled":
            parameters = message.get("params")
            id_ = (
                cast("Message", parameters).get("requestId")
                if isinstance(parameters, dict)
                else None
            )
            with self._lock:
                call = self._calls.get(json.dumps(id_))
            # Some clients cancel what has long been answered: that concerns nobody.
            if call is not None:
                self._start(self._cancel, call, raw)
        else:
            self._start(self._notify, raw, message["method"] == "notifications/initialized")

    def _cancel(self, call: Call, raw: bytes) -> None:
        call.over = True
        if call.version is None and call.connection is not None:
            call.begun.wait(CONNECT_SECONDS)  # the console must know the request first
            self._notify(raw, False)
        if call.connection is not None:
            call.connection.abort()

    # -- what goes to the console

    def _notify(self, raw: bytes, greeted: bool) -> None:
        """Post a message that has no answer; the new era has none that its server would read."""
        self._settled.wait()
        if self._mcp_session is None:
            return
        first = greeted and self._greeted is None
        if greeted:
            self._greeted = raw  # before it is sent: whoever greets a new console tells it this too
        with suppress(Dropped, Denied):  # after a restart, what still matters of it is replayed
            self._post(raw)
        if first:
            self._start(self._stream)

    def _post(self, raw: bytes) -> int:
        connection, token = self._aileron.connect()
        with connection:
            return connection.request("POST", "/mcp", self._headers(token), raw)

    def _headers(self, token: str | None, call: Call | None = None) -> dict[str, str]:
        headers = {
            "Accept": "application/json, text/event-stream",
            "Content-Type": "application/json",
        }
        if token is not None:
            if VISIBLE.fullmatch(token) is None:
                raise Denied(
                    "The session token has characters that no token has: start the agent again."
                )
            headers["Authorization"] = f"Bearer {token}"
        if call is not None and call.version is not None:
            return {**headers, **call.era_headers()}
        if self._mcp_session is not None and (call is None or call.method != "initialize"):
            headers["Mcp-Session-Id"] = self._mcp_session
            if self._version is not None:
                headers["MCP-Protocol-Version"] = self._version
        return headers

    def _serve(self, call: Call) -> None:
        """Carry one request to its answer, over restarts of the console where that is safe."""
        try:
            if call.method != "initialize":
                self._settled.wait()
            tries = 0
            while not call.over and not self._attempt(call):
                tries += 1
                # A standing stream is reopened for as long as there is a console.
                if tries >= TRIES and call.method != "subscriptions/listen":
                    raise Denied("The console does not keep the connection; try again in a minute.")
                self._stop.wait(min(1.0, 0.05 * 2 ** min(tries, 5)))
        except Denied as error:
            self._reply(call, error_answer(call.id, NO_CONSOLE, str(error)))
        except NoConsole as error:
            self._finish(69, str(error))
            return  # and stay in the table, to be answered at the end
        finally:
            if call.method == "initialize":
                self._settled.set()
        with self._lock:
            if self._calls.get(call.key) is call:  # else its id is another request's by now
                del self._calls[call.key]

    def _attempt(self, call: Call) -> bool:
        """Send the request once; return True if nothing is left to do for it."""
        epoch = self._epoch
        connection, token = self._aileron.connect()
        try:
            with connection:
                call.connection = connection
                if call.over:
                    return True
                status = connection.request("POST", "/mcp", self._headers(token, call), call.raw)
                call.begun.set()
                old = call.version is None and call.method != "initialize"
                if status != 401 and not (status == 404 and old):
                    return self._read_answer(call, connection)
        except Dropped as dropped:
            if dropped.sent and not call.repeatable:
                self._reply(call, outcome_unknown(call))
            return call.over
        # A 401 or a lost session: it did not run, so it is sent again.
        if status == 401:
            self._renew(token)
        else:
            with suppress(Dropped):
                self._greet_again(epoch)
        return False

    def _renew(self, token: str | None) -> None:
        if not self._aileron.renew(token):
            raise Denied(
                "The console does not know this session (any more): start the agent again,"
                " with a token of an open session or with none."
            )

    def _read_answer(self, call: Call, connection: HttpConnection) -> bool:
        if call.method == "initialize":
            self._mcp_session = visible(connection.headers.get("mcp-session-id"))
        if not connection.headers.get("content-type", "").startswith("text/event-stream"):
            self._answer_in_json(call, connection.status, connection.body())
            return True
        for data in read_events(connection.chunks()):
            self._forward(call, data)
            if call.over:
                return True
        raise Dropped(sent=True)

    def _answer_in_json(self, call: Call, status: int, body: bytes) -> None:
        answer = parse_object(body)
        if is_answer(answer):
            self._note_version(call, answer)
            self._reply(call, answer, body)
        else:
            reason = error_reason(answer, status)
            self._reply(call, error_answer(call.id, INTERNAL_ERROR, reason, answer.get("error")))

    def _forward(self, call: Call, data: bytes) -> None:
        message = parse_object(data)
        if is_answer(message):
            self._note_version(call, message)
            self._reply(call, message, data)
        elif not is_for_the_client(message):
            return
        elif message["method"] != _ACKNOWLEDGED or not call.acknowledged:
            call.acknowledged = call.acknowledged or message["method"] == _ACKNOWLEDGED
            if not call.over:
                self._pass_on(message, data)
        else:
            # Reopened after a restart: what the client knows of the tools may be out of date.
            meta = {"_meta": {_SUBSCRIPTION_KEY: call.id}}
            self._write({"jsonrpc": "2.0", "method": _LIST_CHANGED, "params": meta})

    def _note_version(self, call: Call, answer: Message) -> None:
        result = answer.get("result")
        if call.method == "initialize" and isinstance(result, dict):
            self._version = visible(cast("Message", result).get("protocolVersion"))

    # -- the old era's session

    def _greet_again(self, epoch: int) -> None:
        """Replay the client's `initialize` to a console that has forgotten its session."""
        with self._handshake:
            if self._epoch != epoch:
                return  # another thread has just done it
            if self._greeting is None:
                raise Denied(
                    "The console has no session for this: the client must initialize first."
                )
            connection, token = self._aileron.connect()
            call = Call(parse_object(self._greeting), self._greeting)
            with connection:
                status = connection.request("POST", "/mcp", self._headers(token, call), call.raw)
                session = visible(connection.headers.get("mcp-session-id"))
                body = connection.body()
            if status == 401:
                self._renew(token)
                return
            if status != 200 or session is None:
                raise Denied(
                    f"The console refused to go on with this session: {error_reason(parse_object(body), status)}"
                )
            self._mcp_session = session
            if self._greeted is not None:
                self._post(self._greeted)
            self._epoch += 1

    def _stream(self) -> None:
        """Keep the old era's standing stream open; it brings list changes."""
        opened = False
        pause = STREAM_PAUSE
        while not self._stop.is_set():
            try:
                if self._read_stream(opened):
                    opened, pause = True, STREAM_PAUSE
            except Dropped:
                pass
            except Denied:
                pause = min(2 * pause, 30.0)  # the next request says why to the client
            self._stop.wait(pause)

    def _read_stream(self, opened: bool) -> bool:
        """Read the standing stream to its end; return whether it was there."""
        epoch = self._epoch
        connection, token = self._aileron.connect()
        with connection:
            status = connection.request("GET", "/mcp", self._headers(token))
            if status == 200:
                if opened or self._epoch:
                    # Not the first stream, or not of the console that was asked first: what the
                    # client knows of the tools may be out of date.
                    self._write({"jsonrpc": "2.0", "method": _LIST_CHANGED})
                with suppress(Dropped):
                    for data in read_events(connection.chunks()):
                        if is_for_the_client(message := parse_object(data)):
                            self._pass_on(message, data)
                return True
        if status == 401:
            self._renew(token)
        elif status == 404:
            self._greet_again(epoch)
        return False

    # -- what goes to the client

    def _reply(self, call: Call, message: Message, raw: bytes = b"") -> None:
        """Answer a request, once: with *raw* where that is the message on one line.

        An error about a message as a whole comes without its id, so the id is put in.
        """
        with self._lock:
            if call.over:
                return
            call.over = True
            self._calls.pop(call.key, None)
        id_ = message.get("id")
        if raw and type(id_) is type(call.id) and id_ == call.id and not _BREAK.search(raw):
            self._write_line(raw)
            return
        line = one_line({**message, "id": call.id})
        if line == NOT_JSON:
            problem = "The console's answer holds what JSON does not."
            line = one_line(error_answer(call.id, INTERNAL_ERROR, problem))
        self._write_line(line)

    def _pass_on(self, message: Message, data: bytes) -> None:
        """Write what the console sent as it came, if it is one line."""
        self._write_line(one_line(message) if _BREAK.search(data) else data)

    def _write(self, message: Message) -> None:
        self._write_line(one_line(message))

    def _write_line(self, data: bytes) -> None:
        line = memoryview(data + b"\n")
        with self._writing:
            while line:
                try:
                    line = line[os.write(1, line) :]
                except BlockingIOError:
                    select.select([], [1], [])
                except OSError:
                    self._finish(0)  # nobody reads any more
                    return


def describe_bug(error: Exception) -> str:
    """Return a sentence with the error's type and place. Its text stays out: it may quote arguments."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    place = "nowhere"
    if trace is not None:
        file = os.path.basename(trace.tb_frame.f_code.co_filename)  # noqa: PTH119 - no pathlib
        place = f"{file}:{trace.tb_lineno}"
    return f"This is a bug of Aileron ({type(error).__name__} in {place}): please report it."
