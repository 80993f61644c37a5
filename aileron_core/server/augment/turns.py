"""What an answer of a model asks for, and how it stands in a history. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass

from aileron_core.models import Format
from aileron_core.models.json_values import JsonDict, objects_of
from aileron_core.models.neutral import Answer, ToolCall
from aileron_core.server.augment.catalogue import Offer

_RUN_BY_PROVIDER = frozenset(
    {
        "web_search_call",
        "file_search_call",
        "code_interpreter_call",
        "image_generation_call",
        "mcp_call",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """The calls of one answer that somebody has to make."""

    ours: tuple[ToolCall, ...] = ()
    has_agents: bool = False
    """The agent has calls to make too, so this answer goes to it."""


def read_turn(format_: Format, answer: Answer, offer: Offer) -> Turn:
    """Return what *answer* asks for; one that was cut short or failed asks for nothing."""
    ours = tuple(call for call in answer.calls if offer.is_ours(call.name))
    if answer.stop.kind != "tools" or not ours:
        return Turn()
    others = len(ours) < len(answer.calls) or any(
        kind not in _RUN_BY_PROVIDER for kind in _other_calls(format_.turn(answer))
    )
    return Turn(ours=ours, has_agents=others)


def items_of(
    format_: Format, request: JsonDict, answer: Answer, offer: Offer, *, without: str = ""
) -> list[JsonDict]:
    """Return *answer* as the model's history has it, whole and in order.

    Args:
        without: `ours` or `agents`: leave those calls out, of which there will be no result.
    """
    if without:
        ours = without == "ours"

        def kept(name: str) -> str | None:
            return None if offer.is_ours(name) == ours else name

        answer = format_.answer_of(format_.joined([answer], kept))
    return [item for item in format_.turn(answer) if _can_be_sent(item, request)]


def _can_be_sent(item: JsonDict, request: JsonDict) -> bool:
    """Whether the provider takes *item* back: it knows no reasoning that it neither stored nor encrypted."""
    unstored = item.get("type") == "reasoning" and request.get("store") is False
    return not unstored or bool(item.get("encrypted_content"))


def _other_calls(items: Iterable[JsonDict]) -> Iterable[str]:
    """Give the kinds of calls in *items* that are of no function."""
    for item in items:
        kind = item.get("type")
        if isinstance(kind, str) and kind.endswith("_call") and kind != "function_call":
            yield kind
        if any("function" not in call for call in objects_of(item, "tool_calls")):
            yield "custom"
        if item.get("function_call"):
            yield "custom"
