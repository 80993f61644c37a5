"""Which provider's API a request is for, and our own errors in the form that its clients expect."""

import json
from collections.abc import Iterable
from typing import Literal, TypeAlias

from aileron_core.credentials.upstreams import Provider

Header: TypeAlias = tuple[bytes, bytes]
GatewayErrorKind: TypeAlias = Literal[
    "unauthorized",
    "forbidden",
    "invalid",
    "too_many",
    "unreachable",
    "timeout",
    "unavailable",
    "locked",
]

_ANTHROPIC = (b"/v1/messages", b"/api/hello", b"/v1/complete")
_OPENAI = (
    b"/v1/responses",
    b"/v1/chat/completions",
    b"/v1/completions",
    b"/v1/embeddings",
    b"/v1/realtime",
)
_GEMINI = (b"/v1beta", b"/v1alpha", b"/upload/v1beta", b"/download/v1beta")
_GEMINI_VERBS = (
    b":generateContent",
    b":streamGenerateContent",
    b":countTokens",
    b":embedContent",
    b":batchEmbedContents",
)


def provider_of(method: bytes, path: bytes, headers: Iterable[Header]) -> Provider:
    """Return whose API *path* belongs to; where it does not say, a header of Anthropic's does.

    Args:
        path: behind our prefix, without the query.
        headers: names as sent.
    """
    if _is_under(path, _GEMINI) or path.endswith(_GEMINI_VERBS):
        return "gemini"
    if _is_under(path, _ANTHROPIC) or (method == b"HEAD" and path in (b"", b"/")):
        return "anthropic"
    if _is_under(path, _OPENAI):
        return "openai"
    if any(name.lower() == b"anthropic-version" for name, _ in headers):
        return "anthropic"
    return "openai"


def _is_under(path: bytes, roots: Iterable[bytes]) -> bool:
    for root in roots:
        if path.startswith(root) and path[len(root) : len(root) + 1] in (b"", b"/"):
            return True
    return False


class GatewayError(Exception):
    """Why a request was not forwarded or had no response: our own sentence, quoting nothing of it."""

    def __init__(self, kind: GatewayErrorKind, message: str) -> None:
        super().__init__(message)
        self.kind: GatewayErrorKind = kind
        self.message = message


_AnthropicType: TypeAlias = tuple[int, str]
_OpenAIType: TypeAlias = tuple[int, str, str | None]
_GeminiStatus: TypeAlias = tuple[int, str]

# Statuses and words as the providers' own error pages list them, so that clients retry what can be
# retried and stop where nothing changes by itself.
_WORDS: dict[GatewayErrorKind, tuple[_AnthropicType, _OpenAIType, _GeminiStatus]] = {
    "unauthorized": (
        (401, "authentication_error"),
        (401, "invalid_request_error", "invalid_api_key"),
        (401, "UNAUTHENTICATED"),
    ),
    "forbidden": (
        (403, "permission_error"),
        (403, "invalid_request_error", "forbidden"),
        (403, "PERMISSION_DENIED"),
    ),
    "invalid": (
        (400, "invalid_request_error"),
        (400, "invalid_request_error", None),
        (400, "INVALID_ARGUMENT"),
    ),
    "too_many": (
        (429, "rate_limit_error"),
        (429, "requests", "rate_limit_exceeded"),
        (429, "RESOURCE_EXHAUSTED"),
    ),
    "unreachable": (
        (502, "api_error"),
        (502, "server_error", None),
        (503, "UNAVAILABLE"),
    ),
    "timeout": (
        (504, "timeout_error"),
        (504, "server_error", None),
        (504, "DEADLINE_EXCEEDED"),
    ),
    "unavailable": (
        (500, "api_error"),
        (503, "server_error", None),
        (503, "UNAVAILABLE"),
    ),
    "locked": (
        (503, "api_error"),
        (503, "server_error", None),
        (503, "UNAVAILABLE"),
    ),
}


def error_body(provider: Provider, fault: GatewayError) -> tuple[int, bytes]:
    """Return the status and the JSON body with which *provider* would report *fault*."""
    anthropic, openai, gemini = _WORDS[fault.kind]
    body: dict[str, object]
    if provider == "anthropic":
        status, type_ = anthropic
        body = {"type": "error", "error": {"type": type_, "message": fault.message}}
    elif provider == "openai":
        status, type_, code = openai
        error = {"message": fault.message, "type": type_, "param": None, "code": code}
        body = {"error": error}
    else:
        status, word = gemini
        body = {"error": {"code": status, "message": fault.message, "status": word}}
    return status, json.dumps(body).encode()
