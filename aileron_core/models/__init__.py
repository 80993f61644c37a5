"""The wire formats of models' APIs, whole and streamed, read and written without any I/O.

A `Format` reads and changes an agent's request; a `StreamReader` turns the bytes of a streamed answer
into events, each with its own bytes and its meaning in one vocabulary (`neutral.py`); a `StreamWriter`
joins one or more answers to one stream for a client. What is not understood passes unchanged.
"""

from collections.abc import Mapping

from aileron_core.models.anthropic_messages import ANTHROPIC_MESSAGES
from aileron_core.models.chat_completions import CHAT_COMPLETIONS
from aileron_core.models.format import Format, StreamReader, StreamWriter
from aileron_core.models.openai_responses import OPENAI_RESPONSES

FORMATS: dict[str, Format] = {
    each.name: each for each in (ANTHROPIC_MESSAGES, CHAT_COMPLETIONS, OPENAI_RESPONSES)
}
BY_PATH: Mapping[bytes, Format] = {
    b"/v1/messages": ANTHROPIC_MESSAGES,
    b"/v1/chat/completions": CHAT_COMPLETIONS,
    b"/v1/responses": OPENAI_RESPONSES,
}
"""Those of requests, by the path behind the gateway's prefix."""

__all__ = [
    "ANTHROPIC_MESSAGES",
    "BY_PATH",
    "CHAT_COMPLETIONS",
    "FORMATS",
    "OPENAI_RESPONSES",
    "Format",
    "StreamReader",
    "StreamWriter",
]
