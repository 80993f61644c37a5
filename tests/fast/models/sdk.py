"""The providers' own SDKs as readers of bytes: what a client makes of an answer.

They take a second each to import, so only a process that uses them does.
"""

import functools
from collections.abc import Callable, Iterator
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


def _dumped(events: Iterator[Any]) -> list[Json]:
    return [event.to_dict(mode="json") for event in events]


def _anthropic_events() -> list[Json]:
    stream = _anthropic().messages.create(model="m", max_tokens=9, messages=_QUESTION, stream=True)
    return _dumped(iter(stream))


def _chat_events() -> list[Json]:
    stream = _openai().chat.completions.create(model="m", messages=_QUESTION, stream=True)
    return _dumped(iter(stream))


def _responses_events() -> list[Json]:
    return _dumped(iter(_openai().responses.create(model="m", input="?", stream=True)))


def _anthropic_final() -> Json:
    with _anthropic().messages.stream(model="m", max_tokens=9, messages=_QUESTION) as stream:
        return stream.get_final_message().to_dict(mode="json")


def _chat_final() -> Json:
    with _openai().chat.completions.stream(model="m", messages=_QUESTION) as stream:
        for _ in stream:
            pass
        return stream.current_completion_snapshot.to_dict(mode="json")


def _responses_final() -> Json:
    with _openai().responses.stream(model="m", input="?") as stream:
        return stream.get_final_response().to_dict(mode="json")


_EVENTS: dict[str, Callable[[], list[Json]]] = {
    "anthropic_messages": _anthropic_events,
    "chat_completions": _chat_events,
    "openai_responses": _responses_events,
}
_FINAL: dict[str, Callable[[], Json]] = {
    "anthropic_messages": _anthropic_final,
    "chat_completions": _chat_final,
    "openai_responses": _responses_final,
}
_WHOLE: dict[str, Callable[[], Any]] = {
    "anthropic_messages": lambda: _anthropic().messages.create(
        model="m", max_tokens=9, messages=_QUESTION
    ),
    "chat_completions": lambda: _openai().chat.completions.create(model="m", messages=_QUESTION),
    "openai_responses": lambda: _openai().responses.create(model="m", input="?"),
}


def events(name: str, stream: bytes) -> list[Json]:
    """Return the events that the SDK of the format *name* reads."""
    _answer[0] = (stream, "text/event-stream")
    return _EVENTS[name]()


def final(name: str, stream: bytes) -> Json:
    """Return the answer that the SDK puts together."""
    _answer[0] = (stream, "text/event-stream")
    return _FINAL[name]()


def whole(name: str, body: bytes) -> Json:
    """Return the answer that the SDK reads whole."""
    _answer[0] = (body, "application/json")
    return _WHOLE[name]().to_dict(mode="json")


def error(name: str, stream: bytes) -> str:
    """Return the error that the SDK ends with, which that of Responses gives as its last event."""
    import anthropic
    import openai

    try:
        return events(name, stream)[-1]["message"]
    except (anthropic.APIError, openai.APIError) as found:
        return str(found)
