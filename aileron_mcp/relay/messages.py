"""JSON-RPC: splitting the client's input into messages, which may be sent twice, the relay's own responses, and writing to the client."""

import json
import os
import re
import select
import threading
import time
from collections.abc import Callable, Generator
from typing import Any, NoReturn, cast

from aileron_mcp.relay.http_client import HttpConnection

LINE_LIMIT = 4 * 1024 * 1024  # bytes of one message on stdin
PARSE_ERROR, INVALID_REQUEST, INTERNAL_ERROR, NO_CONSOLE = -32700, -32600, -32603, -32000
LIST_CHANGED = "notifications/tools/list_changed"
_HARMLESS = ("check_action_status", "withdraw_action")  # also if they come twice
_FOR_RELAY = "aileron.relay"  # the logger of what the console tells the relay alone
NOT_JSON = b"null"
VISIBLE_ASCII = re.compile(r"[\x21-\x7e]+")
_VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
_CLIENT_KEY = "io.modelcontextprotocol/clientInfo"
_NAMED_BY = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}

Message = dict[str, Any]


class Call:
    """One request of the client that has not been answered."""

    def __init__(self, message: Message, raw: bytes) -> None:
        self.id = message["id"]
        self.method = str(message["method"])
        self.raw = raw
        parameters = message.get("params")
        self.params: Message = cast("Message", parameters) if isinstance(parameters, dict) else {}
        meta = self.params.get("_meta")
        of_meta: Message = cast("Message", meta) if isinstance(meta, dict) else {}
        version = of_meta.get(_VERSION_KEY)
        self.protocol_version = version if isinstance(version, str) else None  # None: old era
        client = of_meta.get(_CLIENT_KEY, self.params.get("clientInfo"))
        name = cast("Message", client).get("name") if isinstance(client, dict) else None
        text = name.encode("utf-8", "replace").decode() if isinstance(name, str) else ""
        self.client_name = " ".join(text.split())  # as it calls itself
        self.finished = False  # answered or cancelled: nothing more is written for it
        self.acknowledged = False
        self.accepted = threading.Event()  # the console has begun to answer
        self.connection: HttpConnection | None = None
        self.began = time.monotonic()
        self.idempotency_key = os.urandom(16).hex()  # names a tool call, however often it is sent
        self.sent_as: str | None = None  # the token of the attempt that may have run it
        self.may_have_run = False
        self.approval_id = ""  # of what it waits for, once the console has said so

    @property
    def key(self) -> str:
        return json.dumps(self.id)

    @property
    def is_of_action(self) -> bool:
        """Whether it may have an effect that must not happen twice."""
        return self.method == "tools/call" and self.params.get("name") not in _HARMLESS

    def retry_headers(self) -> dict[str, str]:
        """Return what makes every attempt at a call the same call (docs/wire.md#identical-calls)."""
        if self.method != "tools/call":
            return {}
        waited = f"{time.monotonic() - self.began:.1f}"
        return {"Idempotency-Key": self.idempotency_key, "Aileron-Waited": waited}

    def new_era_headers(self) -> dict[str, str]:
        """Return the headers that a server of the new era routes by."""
        if self.protocol_version is None:
            return {}
        headers = {
            "MCP-Protocol-Version": header_value(self.protocol_version),
            "Mcp-Method": header_value(self.method),
        }
        name = self.params.get(_NAMED_BY.get(self.method, ""))
        if isinstance(name, str):
            headers["Mcp-Name"] = header_value(name)
        return headers


def header_value(value: str) -> str:
    """Return *value* fit for a header: unchanged, or as base64 in the form that MCP defines."""
    plain = VISIBLE_ASCII.fullmatch(value.replace(" ", "_")) and value == value.strip()
    if plain and not value.startswith("=?base64?"):
        return value
    import base64

    return f"=?base64?{base64.b64encode(value.encode('utf-8', 'replace')).decode()}?="


def parse_json(data: bytes) -> object:
    """Return the value of one JSON text in UTF-8.

    Raises:
        ValueError: it is none.
    """
    try:
        return json.loads(data.decode(), parse_constant=_no_number)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _no_number(word: str) -> NoReturn:
    raise ValueError(f"{word} is not JSON")


def parse_object(data: bytes) -> Message:
    try:
        value = parse_json(data)
    except ValueError:
        return {}
    return cast("Message", value) if isinstance(value, dict) else {}


def header_safe(value: object) -> str | None:
    """Return *value* if a header can hold it unchanged."""
    return value if isinstance(value, str) and VISIBLE_ASCII.fullmatch(value) else None


def is_response(message: Message) -> bool:
    if message.get("jsonrpc") != "2.0" or "method" in message:
        return False
    error = message.get("error")
    if not isinstance(error, dict):
        return "result" in message and "error" not in message
    code, text = (cast("Message", error).get(name) for name in ("code", "message"))
    return "result" not in message and isinstance(code, int) and isinstance(text, str)


def waiting_approval(message: Message) -> str | None:
    """Return the approval that a call waits for, where *message* tells the relay that; else None."""
    parameters = message.get("params")
    told = cast("Message", parameters) if isinstance(parameters, dict) else {}
    if message.get("method") != "notifications/message" or told.get("logger") != _FOR_RELAY:
        return None
    return str(told.get("data"))


def is_request_or_notification(message: Message) -> bool:
    return message.get("jsonrpc") == "2.0" and isinstance(message.get("method"), str)


def error_reason(answer: Message, status: int) -> str:
    error = answer.get("error")
    message = cast("Message", error).get("message") if isinstance(error, dict) else None
    return message if isinstance(message, str) and message else f"HTTP {status}"


def to_json_line(value: object) -> bytes:
    """Return *value* as JSON on one line; what JSON cannot hold becomes null."""
    try:
        return json.dumps(value, separators=(",", ":"), allow_nan=False).encode()
    except (ValueError, RecursionError):
        return NOT_JSON


def error_response(id_: object, code: int, message: str, data: object = None) -> Message:
    error: Message = {"code": code, "message": message}
    if data is not None:
        error["data"] = data
    return {"jsonrpc": "2.0", "id": id_, "error": error}


def lost_response(call: Call, why: str) -> Message:
    """Return the answer to a request that cannot go on, because of *why*: what is known of it, what to do."""
    if call.may_have_run:
        return _unknown_outcome_response(call)
    if call.is_of_action:
        why = f"{why} This call did not run, so it is safe to repeat it."
    return error_response(call.id, NO_CONSOLE, why)


def _unknown_outcome_response(call: Call) -> Message:
    """Return the result of a call that may have run, or wait for a person."""
    if call.approval_id:
        message = (
            f"The console stopped while this call waited for a person, as {call.approval_id}. What"
            " became of it is not known here. Do not repeat it. Call check_action_status with this"
            " approval_id, or ask the user to look for it in the Aileron console."
        )
    else:
        message = (
            "The console stopped during this call, so its outcome is not known here: it may have"
            " run. Do not repeat it. Ask the user to look at the Aileron console."
        )
    failure: Message = {
        "class": "outcome_unknown",
        "message": message,
        "retriable": False,
        "boundary": "gate",
        "audit_id": None,
        "details": {"approval_id": call.approval_id} if call.approval_id else {},
    }
    result: Message = {
        "content": [{"type": "text", "text": message}],
        "structuredContent": {"status": "unknown", "error": failure},
        "isError": True,
        "resultType": "complete",
    }
    return {"jsonrpc": "2.0", "id": call.id, "result": result}


class LineSplitter:
    """Cuts stdin into lines; one that is too long is thrown away as it comes."""

    _ID_FIRST = re.compile(
        rb'\s*\{\s*"jsonrpc"\s*:\s*"2\.0"\s*,\s*"id"\s*:\s*(\d{1,18}|"[^"\\]{1,99}")\s*,'
    )
    _ID_LAST = re.compile(rb',\s*"id"\s*:\s*(\d{1,18}|"[^"\\]{1,99}")\s*\}\s*$')

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._searched = 0
        self._head: bytes | None = None  # of the line that is being thrown away

    def feed(self, data: bytes) -> Generator[tuple[bytes, bool]]:
        """Yield each line that *data* completes, and whether it was within the limit.

        One that was not is yielded as the JSON text of its id, `null` where that cannot be seen.
        """
        self._buffer += data
        while (end := self._buffer.find(b"\n", self._searched)) >= 0:
            line = bytes(self._buffer[:end])
            del self._buffer[: end + 1]
            self._searched = 0
            if self._head is None and len(line) <= LINE_LIMIT:
                yield line, True
            else:
                yield self._id(line), False
            self._head = None
        if len(self._buffer) > LINE_LIMIT:
            self._head = self._head or bytes(self._buffer[:512])
            del self._buffer[:-512]
        self._searched = len(self._buffer)

    def _id(self, line: bytes) -> bytes:
        match = self._ID_FIRST.match(self._head or line[:512]) or self._ID_LAST.search(line[-512:])
        return match[1] if match else b"null"


_LINE_BREAK = re.compile(rb"[\r\n]")


class ClientOutput:
    """Writes messages to the client."""

    def __init__(self, on_closed: Callable[[], None]) -> None:
        self._on_closed = on_closed
        self._lock = threading.Lock()

    def write(self, message: Message) -> None:
        self._write_line(to_json_line(message))

    def forward(self, message: Message, raw: bytes) -> None:
        """Write what the console sent unchanged, if it is one line."""
        self._write_line(to_json_line(message) if _LINE_BREAK.search(raw) else raw)

    def respond(self, call: Call, message: Message, raw: bytes) -> None:
        """Write the response to *call*: as *raw* where that is the message on one line.

        An error about a message as a whole comes without its id, so the id is put in.
        """
        id_ = message.get("id")
        if raw and type(id_) is type(call.id) and id_ == call.id and not _LINE_BREAK.search(raw):
            self._write_line(raw)
            return
        line = to_json_line({**message, "id": call.id})
        if line == NOT_JSON:
            problem = "The console's answer contains values that JSON does not allow."
            line = to_json_line(error_response(call.id, INTERNAL_ERROR, problem))
        self._write_line(line)

    def _write_line(self, data: bytes) -> None:
        line = memoryview(data + b"\n")
        with self._lock:
            while line:
                try:
                    line = line[os.write(1, line) :]
                except BlockingIOError:
                    select.select([], [1], [])
                except OSError:
                    self._on_closed()
                    return
