"""What an agent's client claims about itself and a call. It is shown, within bounds, and decides nothing.

The MCP server of this process passes it on as a value; the routes read the header `traceparent` alone.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from aileron_core.tracing.spans import RemoteSpan

Claims: TypeAlias = tuple[tuple[str, str], ...]
"""(our label, the client's text), bounded; the text is as hostile as any."""

_MOST = 8
_LONGEST = 512
"""Characters of one text; of a longer one the beginning is kept, and how long it was."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientClaims:
    """What a client claims about itself, and about one call."""

    client: Claims = ()
    call: Claims = ()
    parent: RemoteSpan | None = None
    """Of the call, in the client's own trace."""


NO_CLAIMS = ClientClaims()


def bounded_claims(texts: Mapping[str, str]) -> Claims:
    """Return the first eight of *texts*, each as it can be put on record."""
    return tuple((label, _bounded(text)) for label, text in list(texts.items())[:_MOST])


def _bounded(text: str) -> str:
    # A lone surrogate is not text, and could not be put on record.
    whole = text.encode("utf-8", "backslashreplace").decode()
    if len(whole) <= _LONGEST:
        return whole
    return f"{whole[:_LONGEST]}… ({len(whole)} characters)"
