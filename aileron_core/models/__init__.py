"""The wire formats of models' APIs, whole and streamed, read and written without any I/O.

A `Format` reads an agent's request and changes it; a `StreamReader` gives the events of an answer
with what they say in one vocabulary (`neutral.py`) beside their own bytes; a `StreamWriter` makes
one stream for a client of one or more answers. What is not understood passes unchanged.
"""

from aileron_core.models.anthropic_messages import ANTHROPIC_MESSAGES
from aileron_core.models.chat_completions import CHAT_COMPLETIONS
from aileron_core.models.format import Format, StreamReader, StreamWriter
from aileron_core.models.openai_responses import OPENAI_RESPONSES

FORMATS: dict[str, Format] = {
    each.name: each for each in (ANTHROPIC_MESSAGES, CHAT_COMPLETIONS, OPENAI_RESPONSES)
}

__all__ = [
    "ANTHROPIC_MESSAGES",
    "CHAT_COMPLETIONS",
    "FORMATS",
    "OPENAI_RESPONSES",
    "Format",
    "StreamReader",
    "StreamWriter",
]
