"""HTTP errors of the `mcp` package that have no JSON of their own, said in the one error body (WIRE.md)."""

from collections.abc import Iterable
from typing import cast

from aileron_core.canonical import Json
from aileron_core.errors import AileronError, InvalidRequest, PayloadTooLarge
from aileron_mcp.lazy_mount import Message, Send, send_json

__all__ = ["in_one_body"]

_SAYS = {
    400: "Send one message of the protocol as Content-Type: application/json.",
    405: "This method is not answered here: send a message with POST.",
    406: "Accept has to name application/json and text/event-stream.",
    413: "The message is too long.",
}


def in_one_body(send: Send) -> Send:
    """Wrap *send*: an error without a JSON body gets one; everything else passes as it is."""
    replaced = False

    async def spoken(message: Message) -> None:
        nonlocal replaced
        if message["type"] == "http.response.start":
            status = int(message["status"])
            headers = list(cast("Iterable[tuple[bytes, bytes]]", message.get("headers") or ()))
            media = dict(headers).get(b"content-type", b"")
            if status >= 400 and not media.startswith(b"application/json"):
                replaced = True
                allow = [field for field in headers if field[0] == b"allow"]
                body: Json = {"error": _error(status).to_failure().to_json()}
                await send_json(send, status, body, allow)
        if not replaced:
            await send(message)

    return spoken


def _error(status: int) -> AileronError:
    says = _SAYS.get(status, f"The console's MCP server refuses this request (HTTP {status}).")
    return PayloadTooLarge(says) if status == 413 else InvalidRequest(says)
