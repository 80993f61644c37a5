"""The providers' own SDKs as readers of bytes: what a client makes of an answer.

They take a second each to import, so only a process that uses them does.
"""

import functools
from typing import Any

import httpx2

Json = dict[str, Any]
_QUESTION: Any = [{"role": "user", "content": "?"}]
_answer = [(b"", "")]


def _respond(_request: httpx2.Request) -> httpx2.Response:
    body, kind = _answer[0]
    return httpx2.Response(200, content=body, headers={"content-type": kind})


@functools.cache
def _anthropic() -> Any:
    from anthropic import Anthropic

    client = httpx2.Client(transport=httpx2.MockTransport(_respond))
    return Anthropic(api_key="k", base_url="http://model", http_client=client, max_retries=0)


@functools.cache
def _openai() -> Any:
    from openai import OpenAI

    client = httpx2.Client(transport=httpx2.MockTransport(_respond))
    return OpenAI(api_key="k", base_url="http://model/v1", http_client=client, max_retries=0)


def _ask(name: str, **options: Any) -> Any:
    if name == "anthropic_messages":
        return _anthropic().messages.create(model="m", max_tokens=9, messages=_QUESTION, **options)
    if name == "chat_completions":
        return _openai().chat.completions.create(model="m", messages=_QUESTION, **options)
    return _openai().responses.create(model="m", input="?", **options)


def events_read(name: str, stream: bytes) -> list[Json]:
    _answer[0] = (stream, "text/event-stream")
    return [event.to_dict(mode="json") for event in _ask(name, stream=True)]


def final(name: str, stream: bytes) -> Json:
    _answer[0] = (stream, "text/event-stream")
    if name == "anthropic_messages":
        with _anthropic().messages.stream(model="m", max_tokens=9, messages=_QUESTION) as read:
            return read.get_final_message().to_dict(mode="json")
    if name == "chat_completions":
        with _openai().chat.completions.stream(model="m", messages=_QUESTION) as read:
            list(read)
            return read.current_completion_snapshot.to_dict(mode="json")
    with _openai().responses.stream(model="m", input="?") as read:
        return read.get_final_response().to_dict(mode="json")


def whole(name: str, body: bytes) -> Json:
    _answer[0] = (body, "application/json")
    return _ask(name).to_dict(mode="json")


def error(name: str, stream: bytes) -> str:
    """Return the error that the SDK ends with, which that of Responses gives as its last event."""
    import anthropic
    import openai

    try:
        return events_read(name, stream)[-1]["message"]
    except (anthropic.APIError, openai.APIError) as found:
        return str(found)
