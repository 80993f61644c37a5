"""What stands between HTTP and the `mcp` package: JSON errors, and a limit besides the arguments of a call.

The package keeps what a client says of itself for as long as its session lives, as objects: 900 kB of it became
55 MB of memory for each of 32 sessions, and held the loop for half a second.
"""

import asyncio
import gc
import json
from typing import Any, cast

from starlette.responses import JSONResponse
from starlette.types import Message, Receive, Send

from aileron_core.errors import AileronError, InvalidRequest, PayloadTooLarge
from aileron_core.tasks import spawn

_MESSAGES = {
    400: "Send one MCP message as Content-Type: application/json.",
    405: "This HTTP method is not supported here. Send a message with POST.",
    406: "The Accept header must list application/json and text/event-stream.",
    413: "The message is too long.",
}
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
