"""What stands between HTTP and the `mcp` package: JSON errors, long texts, and a limit besides the arguments of a call.

The package keeps what a client says of itself for as long as its session lives, as objects: 900 kB of it became
55 MB of memory for each of 32 sessions, and held the loop for half a second.
"""

import asyncio
import gc
import json
import re
import secrets
from collections.abc import Mapping
from json.encoder import encode_basestring
from typing import Any, cast

from starlette.responses import JSONResponse
from starlette.types import Message, Receive, Send

from aileron_core.canonical import slices_in_turns
from aileron_core.errors import AileronError, InvalidRequest, PayloadTooLarge
from aileron_core.tasks import spawn

_MESSAGES = {
    400: "Send one MCP message as Content-Type: application/json.",
    405: "This HTTP method is not supported here. Send a message with POST.",
    406: "The Accept header must list application/json and text/event-stream.",
    413: "The message is too long.",
}
_LONG_TEXT = 64
_PART = 64 * 1024
MAX_METADATA_BYTES = 16 * 1024
"""Bytes of one message without the `arguments` of a `tools/call`; an `initialize` has none."""


def with_json_errors(send: Send) -> Send:
    """Wrap *send*: an error without a JSON body gets one; everything else passes unchanged."""
    replaced = False

    async def send_json(message: Message) -> None:
        nonlocal replaced
        if message["type"] == "http.response.start":
            status: int = message["status"]
            headers: list[tuple[bytes, bytes]] = list(message.get("headers") or ())
            media = dict(headers).get(b"content-type", b"")
            if status >= 400 and not media.startswith(b"application/json"):
                replaced = True
                answer = JSONResponse({"error": _error(status).to_failure().to_json()}, status)
                answer.raw_headers += [field for field in headers if field[0] == b"allow"]
                await send(
                    {"type": "http.response.start", "status": status, "headers": answer.raw_headers}
                )
                await send({"type": "http.response.body", "body": answer.body})
        if not replaced:
            await send(message)

    return send_json


class LongTexts:
    """The long texts of an answer: the `mcp` package is given marks, and they are sent in place of those.

    The package writes an answer in one step: of one of 15 MB, all others would wait for that.
    """

    def __init__(self) -> None:
        self._prefix = secrets.token_hex(9)
        self._texts: list[str] = []
        self._sending = asyncio.Lock()

    def mark(self, value: Any) -> Any:
        """Return *value* with marks in place of its long texts."""
        if isinstance(value, str) and len(value) >= _LONG_TEXT:
            self._texts.append(value)
            return f"{self._prefix}-{len(self._texts) - 1};"
        if isinstance(value, Mapping):
            members = cast("Mapping[str, Any]", value).items()
            return {name: self.mark(each) for name, each in members}
        if isinstance(value, list | tuple):
            return [self.mark(each) for each in cast("list[Any]", value)]
        return value

    def sender(self, send: Send) -> Send:
        """Wrap *send*: what has marks is sent whole, in parts between which others have their turn."""

        async def send_whole(message: Message) -> None:
            if not self._texts:
                await send(message)
                return
            async with self._sending:  # a ping would end up within the text
                if message["type"] == "http.response.start":
                    fields = [each for each in message["headers"] if each[0] != b"content-length"]
                    await send({**message, "headers": fields})
                    return
                body = await asyncio.to_thread(self._filled, message.get("body", b""))
                for at in range(0, len(body), _PART):
                    part = body[at : at + _PART]
                    await send({"type": "http.response.body", "body": part, "more_body": True})
                    await asyncio.sleep(0)
                await send({**message, "body": b""})

        return send_whole

    def _filled(self, body: bytes) -> bytes:
        mark = f"{self._prefix}-([0-9]+);".encode()
        return re.sub(mark, lambda found: _written(self._texts[int(found[1])]), body)


def _written(text: str) -> bytes:
    parts = (encode_basestring(each)[1:-1] for each in slices_in_turns(text))
    return b"".join(each.encode("utf-8", "replace") for each in parts)


def _error(status: int) -> AileronError:
    text = _MESSAGES.get(status, f"The console's MCP server refused this request (HTTP {status}).")
    return PayloadTooLarge(text) if status == 413 else InvalidRequest(text)


async def limit_metadata(receive: Receive) -> Receive:
    """Return a `receive` with the whole body of a message, once it is known to be in bounds.

    Raises:
        PayloadTooLarge: there is too much besides arguments.
        InvalidRequest: it is long and no JSON.
    """
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] != "http.request":
            break
        body += message.get("body", b"")
        if not message.get("more_body", False):
            message = {"type": "http.request", "body": bytes(body), "more_body": False}
            break
    if len(body) > MAX_METADATA_BYTES:
        _check(bytes(body))
    first: list[Message] = [message]

    async def replayed() -> Message:
        return first.pop() if first else await receive()

    return replayed


def _check(body: bytes) -> None:
    collecting = gc.isenabled()
    gc.disable()  # else each few hundred lists in it start a walk: 250 ms instead of 30
    try:
        value: object = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise InvalidRequest("The message is not JSON.") from error
    finally:
        if collecting:
            gc.enable()
    if isinstance(value, dict):
        message = cast("dict[str, Any]", value)
        params = message.get("params")
        if message.get("method") == "tools/call" and isinstance(params, dict):
            cast("dict[str, Any]", params).pop("arguments", None)
    # Counted in characters of ASCII, as it would be sent again.
    if len(json.dumps(value, separators=(",", ":"))) > MAX_METADATA_BYTES:
        raise PayloadTooLarge(
            f"Apart from the arguments of a call, a message may have at most {MAX_METADATA_BYTES} "
            "bytes. Send less about the client (clientInfo, capabilities, _meta)."
        )


def disconnect_when(receive: Receive, closing: asyncio.Event) -> Receive:
    """Wrap *receive* of an open stream: once *closing* is set, it reports a disconnected client."""

    async def inbound() -> Message:
        message = spawn(_message(receive), name="mcp receive")
        stop = spawn(closing.wait(), name="mcp closing")
        try:
            await asyncio.wait([message, stop], return_when=asyncio.FIRST_COMPLETED)
            return message.result() if message.done() else {"type": "http.disconnect"}
        finally:
            message.cancel()
            stop.cancel()

    return inbound


async def receive_empty_body() -> Message:
    return {"type": "http.request", "body": b"", "more_body": False}


async def discard(_message: Message) -> None:
    """Send nothing."""


async def _message(receive: Receive) -> Message:
    return await receive()
