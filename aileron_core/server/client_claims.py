"""What an agent's client says of itself and of a call, as the MCP server of this process passes it on.

It comes in the extensions of the ASGI scope. No request over a socket has any that it chose, so the
routes have no field or header for it (WIRE.md), and only what is mounted here can say it.
"""

from collections.abc import Mapping
from typing import Any, TypeAlias, cast

from starlette.types import Scope

__all__ = ["EXTENSION", "ClientClaims", "call_claims", "client_claims"]

ClientClaims: TypeAlias = tuple[tuple[str, str], ...]
"""(our label, the client's text), bounded; the text is as hostile as any."""

EXTENSION = "aileron.claims"
"""`{"client": {label: text}, "call": {label: text}}`."""
_MOST = 8
_LONGEST = 512
"""Characters of one text; of a longer one the beginning is kept, and how long it was."""


def client_claims(scope: Scope) -> ClientClaims:
    """Return what the client says of itself."""
    return _claims(scope, "client")


def call_claims(scope: Scope) -> ClientClaims:
    """Return what the client says of itself and of this call."""
    return (*client_claims(scope), *_claims(scope, "call"))


def _claims(scope: Scope, about: str) -> ClientClaims:
    extensions: Mapping[str, Any] = scope.get("extensions") or {}
    said: Mapping[str, Any] = extensions.get(EXTENSION) or {}
    texts = cast("Mapping[str, str]", said.get(about) or {})
    return tuple((label, _bounded(text)) for label, text in list(texts.items())[:_MOST])


def _bounded(text: str) -> str:
    # A lone surrogate is no text, and could not be put on record.
    whole = text.encode("utf-8", "backslashreplace").decode()
    if len(whole) <= _LONGEST:
        return whole
    return f"{whole[:_LONGEST]}… ({len(whole)} characters)"
