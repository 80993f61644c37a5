"""Gives the common error body to those HTTP errors of the `mcp` package that have no JSON."""

from starlette.responses import JSONResponse
from starlette.types import Message, Send

from aileron_core.errors import AileronError, InvalidRequest, PayloadTooLarge

_MESSAGES = {
    400: "Send one MCP message as Content-Type: application/json.",
    405: "This HTTP method is not supported here. Send a message with POST.",
    406: "The Accept header must list application/json and text/event-stream.",
    413: "The message is too long.",
}


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
