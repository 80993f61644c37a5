"""What an agent asks of its model: whether that is augmented, and what is added to it. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from aileron_core.models import ANTHROPIC_MESSAGES, Format
from aileron_core.models.json_values import JsonDict, object_of, parse_object
from aileron_core.server.augment.catalogue import Offer
from aileron_core.server.augment.digests import ReadHistory

MOST_PARTS = 20_000
"""Messages, parts of them and tools: each takes time, for its digest and its place, however small it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentRequest:
    """A request as it came."""

    format: Format
    value: JsonDict
    """Neither it nor anything in it may be changed."""
    reason: str | None
    """Why it passes without our tools, as a clause; None where it gets them."""
    earlier: str
    """The id of the answer that it goes on from, if the provider keeps its conversation."""
    history: ReadHistory
    size: int
    """Bytes that it came in."""


def read_request(format_: Format, body: bytes | bytearray) -> AgentRequest:
    """Read *body*, which takes about 10 ms for each MB.

    Raises:
        ModelFormatError: it is not of the format.
    """
    value = parse_object(body, "the request to the model")
    reason = unaugmented_reason(format_, value)
    answer = _earlier_answer(format_, value)
    own = format_.history(value) if reason is None or answer else []
    if _parts_of(own, value) > MOST_PARTS:
        reason, answer, own = (
            f"it has over {MOST_PARTS} messages, parts of them and tools",
            "",
            [],
        )
    return AgentRequest(
        format=format_,
        value=value,
        reason=reason,
        earlier=answer,
        history=ReadHistory.of(own, answer),
        size=len(body),
    )


def unaugmented_reason(format_: Format, request: JsonDict) -> str | None:
    """Return why *request* passes without our tools, as a clause; None where it gets them.

    Raises:
        ModelFormatError: it is not of the format.
    """
    if request.get("background"):
        return "it runs in the background (`background`)"
    if request.get("conversation"):
        return "its conversation is stored at the provider (`conversation`)"
    count = request.get("n")
    if isinstance(count, int) and count > 1:
        return "it asks for several answers (`n`)"
    if request.get("functions") is not None:
        return "it uses `functions`, which cannot be mixed with tools"
    if format_.tool_choice(request) == "forced":
        return "it forces a tool (`tool_choice`)"
    return None


def with_offer(format_: Format, request: JsonDict, offer: Offer) -> JsonDict:
    """Return *request* with our tools after its own; all else stays where and as it is.

    Raises:
        ModelFormatError: it is not of the format.
    """
    changed = format_.renamed(request, offer.renamed) if offer.renamed else request
    return format_.with_tools(changed, offer.tools) if offer.tools else changed


def _parts_of(own: Sequence[JsonDict], request: JsonDict) -> int:
    lists = [each.get(key) for each in own for key in ("content", "tool_calls", "output")]
    return len(own) + sum(
        len(cast("list[Any]", each))
        for each in (*lists, request.get("tools"))
        if isinstance(each, list)
    )


def thread_of(format_: Format, request: JsonDict) -> JsonDict:
    """Return how the provider of Messages keeps the conversation; empty where it does not."""
    return object_of(request, "thread") if format_ is ANTHROPIC_MESSAGES else {}


def going_on_from(format_: Format, request: JsonDict, answer_id: str) -> JsonDict:
    """Return *request* with another id in the place of the one that it goes on from."""
    if thread := thread_of(format_, request):
        return {**request, "thread": {**thread, "previous_message_id": answer_id}}
    return {**request, "previous_response_id": answer_id}


def _earlier_answer(format_: Format, request: JsonDict) -> str:
    thread = thread_of(format_, request)
    named = thread.get("previous_message_id") if thread else request.get("previous_response_id")
    return named if isinstance(named, str) else ""
