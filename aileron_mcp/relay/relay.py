"""The program `aileron-mcp`, the relay itself: forwards the client's messages and their responses, across restarts of the console.

All of them are sent again then; `messages.py` says how a tool call runs once all the same (`retry_headers`).
"""

import json
import os
import select
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import NoReturn, cast

import aileron_mcp.relay
from aileron_mcp.relay.aileron_session import (
    MAX_ATTEMPTS,
    AileronSession,
    RequestDenied,
)
from aileron_mcp.relay.console_finder import CONNECT_SECONDS, ConsoleFinder, ConsoleUnavailable
from aileron_mcp.relay.http_client import ConnectionDropped, HttpConnection, read_events
from aileron_mcp.relay.messages import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    LINE_LIMIT,
    LIST_CHANGED,
    PARSE_ERROR,
    Call,
    ClientOutput,
    LineSplitter,
    Message,
    error_reason,
    error_response,
    is_request_or_notification,
    is_response,
    lost_response,
    parse_json,
    parse_object,
    to_json_line,
    waiting_approval,
)
from aileron_mcp.relay.old_era_session import OldEraSession

_SUBSCRIPTION_KEY = "io.modelcontextprotocol/subscriptionId"
_ACKNOWLEDGED = "notifications/subscriptions/acknowledged"


class Relay:
    """Forwards between one client on stdio and the console, a thread for each open request."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._stop = threading.Event()
        self._finder = ConsoleFinder(environ, self._stop)
        self._aileron = AileronSession(environ, self._finder, self._start, self._stop)
        self._output = ClientOutput(on_closed=lambda: self._finish(0))
        self._old_era = OldEraSession(self._aileron, self._output, self._stop)
        self._lock = threading.Lock()  # of the table of calls and the exit code
        self._calls: dict[str, Call] = {}
        self._exit_code: int | None = None
        self._exit_message: str | None = None
        self._wake_read, self._wake_write = os.pipe()

    def run(self) -> int:
        """Serve until stdin ends, a signal comes or the console stays away; return the exit code."""
        # The kernel may hand a signal to any thread; only this descriptor wakes this one then.
        os.set_blocking(self._wake_write, False)
        signal.set_wakeup_fd(self._wake_write, warn_on_full_buffer=False)
        signal.signal(signal.SIGTERM, self._on_signal)
        signal.signal(signal.SIGINT, self._on_signal)
        lines = LineSplitter()
        while self._exit_code is None:
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
            for line, is_whole in lines.feed(data):
                if is_whole:
                    self._receive(line)
                else:
                    problem = f"The message is longer than {LINE_LIMIT} bytes."
                    self._output.write(error_response(json.loads(line), INVALID_REQUEST, problem))
        return self._close()

    def _close(self) -> int:
        self._stop.set()
        code = self._exit_code or 0
        if self._exit_message is not None:
            for call in list(self._calls.values()):
                self._reply(call, lost_response(call, self._exit_message))
            os.write(2, f"aileron-mcp: {self._exit_message}\n".encode("utf-8", "replace"))
            return code
        self._old_era.close()
        self._aileron.close()
        return code

    def _finish(self, code: int, message: str | None = None) -> None:
        """Have the main thread end; the first reason counts. Also called from a signal handler."""
        if self._exit_code is None:
            self._exit_code, self._exit_message = code, message
            os.write(self._wake_write, b".")

    def _on_signal(self, number: int, _: object) -> None:
        self._finish(130 if number == signal.SIGINT else 0)

    def _start(self, target: Callable[..., None], *arguments: object) -> None:
        threading.Thread(target=self._guarded, args=(target, arguments), daemon=True).start()

    def _guarded(self, target: Callable[..., None], arguments: tuple[object, ...]) -> None:
        try:
            target(*arguments)
        except ConsoleUnavailable as error:
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
            self._output.write(
                error_response(None, PARSE_ERROR, "This line is not one JSON value.")
            )
            return
        if not isinstance(message, list):
            self._dispatch(message, line)
        elif not message:
            self._output.write(error_response(None, INVALID_REQUEST, "A batch must not be empty."))
        else:
            # 2025-03-26 has batches; the server does not, so each goes alone.
            for part in cast("list[object]", message):
                self._dispatch(part, to_json_line(part))

    def _dispatch(self, message: object, raw: bytes) -> None:
        if not isinstance(message, dict):
            self._output.write(
                error_response(None, INVALID_REQUEST, "A message must be a JSON object.")
            )
            return
        fields = cast("Message", message)
        id_ = fields.get("id")
        is_valid_id = isinstance(id_, str | int) and not isinstance(id_, bool)
        if not isinstance(fields.get("method"), str):
            if is_valid_id and ("result" in fields or "error" in fields):
                self._start(self._old_era.notify, raw)
            else:
                problem = "A message must be a request, a notification or a response."
                self._output.write(
                    error_response(id_ if is_valid_id else None, INVALID_REQUEST, problem)
                )
        elif "id" not in fields:
            self._accept_notification(fields, raw)
        elif not is_valid_id:
            self._output.write(
                error_response(None, INVALID_REQUEST, "An id must be a string or an integer.")
            )
        else:
            self._accept_request(Call(fields, raw))

    def _accept_request(self, call: Call) -> None:
        with self._lock:
            is_in_use = self._calls.setdefault(call.key, call) is not call
        if is_in_use:
            self._output.write(
                error_response(call.id, INVALID_REQUEST, "An open request already uses this id.")
            )
            return
        self._aileron.client_name = self._aileron.client_name or call.client_name
        if call.method == "initialize" and call.protocol_version is None:
            self._old_era.begin_initialize(call.raw)
        self._start(self._serve_request, call)

    def _accept_notification(self, message: Message, raw: bytes) -> None:
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
        elif message["method"] == "notifications/initialized":
            self._start(self._old_era.notify_initialized, raw)
        else:
            self._start(self._old_era.notify, raw)

    def _cancel(self, call: Call, raw: bytes) -> None:
        call.finished = True
        if call.protocol_version is None and call.connection is not None:
            call.accepted.wait(CONNECT_SECONDS)  # the console must know the request first
            self._old_era.notify(raw)
        if call.connection is not None:
            call.connection.abort()

    # -- what goes to the console

    def _serve_request(self, call: Call) -> None:
        """Carry one request to its answer, over restarts of the console.

        A tool call has a key, by which the next console knows one that the last one took already.
        """
        try:
            if call.method != "initialize":
                self._old_era.wait_for_initialize()
            attempts = 0
            while not call.finished and not self._try_once(call):
                attempts += 1
                # A standing stream is reopened for as long as there is a console.
                if attempts >= MAX_ATTEMPTS and call.method != "subscriptions/listen":
                    raise RequestDenied(
                        "The console keeps closing the connection. Try again in a minute."
                    )
                self._stop.wait(min(1.0, 0.05 * 2 ** min(attempts, 5)))
        except RequestDenied as error:
            self._reply(call, lost_response(call, str(error)))
        except ConsoleUnavailable as error:
            self._finish(69, str(error))
            return  # and stay in the table, to be answered at the end
        finally:
            if call.method == "initialize":
                self._old_era.end_initialize()
        with self._lock:
            if self._calls.get(call.key) is call:  # else its id is another request's by now
                del self._calls[call.key]

    def _try_once(self, call: Call) -> bool:
        """Send the request once; return True if nothing is left to do for it."""
        reopened_before = self._old_era.reopened
        connection, token = self._aileron.connect()
        call.accepted.clear()
        before = call.may_have_run, call.sent_as
        try:
            with connection:
                call.connection = connection
                if call.finished:
                    return True
                if call.may_have_run and token != call.sent_as:  # its key is another session's
                    raise RequestDenied("The session of this call has ended.")
                if call.is_of_action:  # whoever ends this wait from now on must not call it safe
                    call.may_have_run, call.sent_as = True, token
                status = connection.request(
                    "POST", "/mcp", self._old_era.request_headers(token, call), call.raw
                )
                call.accepted.set()
                is_old_era = call.protocol_version is None and call.method != "initialize"
                if status != 401 and not (status == 404 and is_old_era):
                    return self._read_answer(call, connection, was_sent_before=before[0])
        except ConnectionDropped as dropped:
            if not dropped.sent:
                call.may_have_run, call.sent_as = before
            return call.finished
        # A 401 or a lost session: it did not run, so it is sent again.
        call.may_have_run, call.sent_as = before
        if status == 401:
            self._aileron.renew_token(token)
        else:
            with suppress(ConnectionDropped):
                self._old_era.reopen(reopened_before)
        return False

    def _read_answer(
        self, call: Call, connection: HttpConnection, *, was_sent_before: bool
    ) -> bool:
        if call.method == "initialize":
            self._old_era.store_session_id(connection.headers.get("mcp-session-id"))
        if not connection.headers.get("content-type", "").startswith("text/event-stream"):
            body = connection.read_body()
            answer = parse_object(body)
            reason = error_reason(answer, connection.status)
            if is_response(answer):
                self._respond(call, answer, body)
            elif was_sent_before:  # a refusal of this attempt says nothing of the one before
                self._reply(call, lost_response(call, reason))
            else:
                error = answer.get("error")
                self._reply(call, error_response(call.id, INTERNAL_ERROR, reason, error))
            return True
        for data in read_events(connection.read_chunks()):
            self._forward(call, data)
            if call.finished:
                return True
        raise ConnectionDropped(sent=True)

    def _forward(self, call: Call, data: bytes) -> None:
        message = parse_object(data)
        if is_response(message):
            self._respond(call, message, data)
        elif not is_request_or_notification(message):
            return
        elif (approval := waiting_approval(message)) is not None:
            call.approval_id = approval
        elif message["method"] != _ACKNOWLEDGED or not call.acknowledged:
            call.acknowledged = call.acknowledged or message["method"] == _ACKNOWLEDGED
            if not call.finished:
                self._output.forward(message, data)
        else:
            # Reopened after a restart: what the client knows of the tools may be out of date.
            meta = {"_meta": {_SUBSCRIPTION_KEY: call.id}}
            self._output.write({"jsonrpc": "2.0", "method": LIST_CHANGED, "params": meta})

    # -- what goes to the client

    def _respond(self, call: Call, message: Message, raw: bytes) -> None:
        """Pass the console's response on; the one to `initialize` settles the version."""
        if call.method == "initialize":
            self._old_era.store_protocol_version(message)
        self._reply(call, message, raw)

    def _reply(self, call: Call, message: Message, raw: bytes = b"") -> None:
        """Answer a request, once: with *raw* where that is the message on one line."""
        with self._lock:
            if call.finished:
                return
            call.finished = True
            self._calls.pop(call.key, None)
        self._output.respond(call, message, raw)


def describe_bug(error: Exception) -> str:
    """Return a sentence with the error's type and place. Its text stays out: it may quote arguments."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    place = "nowhere"
    if trace is not None:
        file = os.path.basename(trace.tb_frame.f_code.co_filename)  # noqa: PTH119 - no pathlib
        place = f"{file}:{trace.tb_lineno}"
    return f"This is a bug in Aileron ({type(error).__name__} in {place}). Please report it."


def _usage(arguments: list[str]) -> NoReturn:
    if arguments == ["--version"]:
        from importlib.metadata import version

        text, code = f"aileron-mcp {version('aileron')}", 0
    elif arguments in (["--help"], ["-h"]):
        text, code = aileron_mcp.relay.__doc__ or "", 0
    else:
        text, code = (
            "Usage: aileron-mcp [--home DIR | --help | --version]. DIR is Aileron's home.",
            2,
        )
    os.write(2 if code else 1, f"{text.strip()}\n".encode())
    sys.exit(code)


def main() -> int:
    environ = dict(os.environ)
    match sys.argv[1:]:
        case []:
            pass
        case ["--home", home] if home:
            environ["AILERON_HOME"] = home
        case arguments:
            _usage(arguments)
    try:
        return Relay(environ).run()
    except Exception as error:  # noqa: BLE001 - the top of the program: no traceback on an agent's screen
        os.write(2, f"aileron-mcp: {describe_bug(error)}\n".encode())
        return 70
