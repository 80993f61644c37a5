"""Limits the size of what a client sends besides the arguments of a call.

The `mcp` package keeps what a client says of itself for as long as its session lives, as objects:
900 kB of it became 55 MB of memory for each of 32 sessions, and held the loop for half a second.
"""

import gc
import json
from typing import Any, cast

from starlette.types import Message, Receive

from aileron_core.errors import InvalidRequest, PayloadTooLarge

MAX_METADATA_BYTES = 16 * 1024
"""Bytes of one message without the `arguments` of a `tools/call`; an `initialize` has none."""


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
