"""JSON-RPC: splitting the client's input into messages, which may be sent twice, and the relay's own responses."""

import json
import re
import threading
from collections.abc import Generator
from typing import Any, NoReturn, cast

from aileron_mcp.relay.http_client import HttpConnection

LINE_LIMIT = 4 * 1024 * 1024  # bytes of one message on stdin
PARSE_ERROR, INVALID_REQUEST, INTERNAL_ERROR, NO_CONSOLE = -32700, -32600, -32603, -32000
LIST_CHANGED = "notifications/tools/list_changed"
NOT_JSON = b"null"
VISIBLE_ASCII = re.compile(r"[\x21-\x7e]+")
_VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
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
        version = cast("Message", meta).get(_VERSION_KEY) if isinstance(meta, dict) else None
        self.protocol_version = version if isinstance(version, str) else None  # None: old era
        self.finished = False  # answered or cancelled: nothing more is written for it
        self.acknowledged = False
        self.accepted = threading.Event()  # the console has begun to answer
        self.connection: HttpConnection | None = None

    @property
    def key(self) -> str:
        return json.dumps(self.id)

    @property
    def is_repeatable(self) -> bool:
        return self.method != "tools/call" or self.params.get("name") == "check_action_status"

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


def unknown_outcome_response(call: Call) -> Message:
    """Return the result of a call whose connection dropped: it may have run, or wait for a person."""
    message = (
        "The console stopped during this call, so its outcome is not known here: it may have run,"
        " or wait for a person. Do not repeat it. Use check_action_status if you have an"
        " approval_id, or ask the user to look at the Aileron console."
    )
    failure: Message = {
        "class": "outcome_unknown",
        "message": message,
        "retriable": False,
        "boundary": "gate",
        "audit_id": None,
        "details": {},
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
