"""Which requests are augmented, and what is added to one. Pure."""

from collections.abc import Mapping

from aileron_core.models import ANTHROPIC_MESSAGES, CHAT_COMPLETIONS, OPENAI_RESPONSES, Format
from aileron_core.models.json_values import JsonDict
from aileron_core.server.augment.catalogue import Offer

FORMATS: Mapping[bytes, Format] = {
    b"/v1/messages": ANTHROPIC_MESSAGES,
    b"/v1/chat/completions": CHAT_COMPLETIONS,
    b"/v1/responses": OPENAI_RESPONSES,
}
"""By the path behind the gateway's prefix."""


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
