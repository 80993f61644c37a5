"""What the formats do alike: texts that grow, usage added up, errors, events changed in part."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from aileron_core.errors import ModelFormatError
from aileron_core.models.json_values import JsonDict, integer_of, object_of
from aileron_core.models.neutral import Answer, Event, Failed, Limits, Usage
from aileron_core.models.sse import encode_event


class Pieces(list[str]):
    """A text that is still growing."""


def grow(target: dict[str, Any], more: JsonDict) -> None:
    """Add *more* to *target*: texts and lists are appended, objects merged, all else replaced."""
    for key, value in more.items():
        old = target.get(key)
        if value is None and old is not None:
            continue
        if isinstance(value, str):
            if isinstance(old, Pieces):
                old.append(value)
            else:
                target[key] = Pieces([value])
        elif isinstance(value, list) and isinstance(old, list) and not isinstance(old, Pieces):
            cast("list[Any]", old).extend(cast("list[Any]", value))
        elif isinstance(value, dict):
            inner = target[key] = cast("JsonDict", old) if isinstance(old, dict) else {}
            grow(inner, cast("JsonDict", value))
        else:
            target[key] = list(cast("list[Any]", value)) if isinstance(value, list) else value


def grown(value: Any) -> Any:
    """Return *value* with each growing text whole."""
    if isinstance(value, Pieces):
        return "".join(value)
    if isinstance(value, dict):
        return {key: grown(item) for key, item in cast("JsonDict", value).items()}
    return value


def joined_usage(usages: Sequence[JsonDict]) -> JsonDict:
    """Return the last of *usages* with the output tokens of all added up."""
    joined = dict(usages[-1])
    for usage in usages[:-1]:
        for key in ("output_tokens", "completion_tokens", "total_tokens"):
            more = usage.get("output_tokens" if "output_tokens" in usage else "completion_tokens")
            if isinstance(joined.get(key), int) and isinstance(more, int):
                joined[key] += more
        for key in ("output_tokens_details", "completion_tokens_details", "server_tool_use"):
            if isinstance(usage.get(key), dict):
                joined[key] = _sum(joined.get(key), usage[key])
    return joined


def _sum(left: Any, right: Any) -> Any:
    if isinstance(left, dict) and isinstance(right, dict):
        ours, theirs = cast("JsonDict", left), cast("JsonDict", right)
        return {key: _sum(ours.get(key), theirs.get(key)) for key in ours | theirs}
    if isinstance(left, int) and isinstance(right, int):
        return left + right
    return cast("Any", right if left is None else left)


def usage_of(body: JsonDict, input_key: str, output_key: str) -> Usage:
    """Return the usage of a whole answer of OpenAI's."""
    usage = object_of(body, "usage")
    return Usage(input=integer_of(usage, input_key) or 0, output=integer_of(usage, output_key) or 0)


def check_calls(count: int, limits: Limits) -> None:
    """Raise ModelFormatError for more than *limits* allow."""
    if count > limits.calls:
        raise ModelFormatError(f"The model's answer has more than {limits.calls} calls.")


def rename_at(value: JsonDict, names: Mapping[str, str]) -> JsonDict:
    """Return *value* with another `name`, or itself."""
    name = value.get("name")
    if isinstance(name, str) and name in names:
        return {**value, "name": names[name]}
    return value


def error_of(body: JsonDict) -> Failed | None:
    """Return the `error` member of *body*, an object or a sentence."""
    error = body.get("error")
    if not error:
        return None
    if isinstance(error, dict):
        found = cast("JsonDict", error)
        kind, message = found.get("type") or found.get("code"), found.get("message")
        return Failed(str(kind) if isinstance(kind, str | int) else "", str(message or ""))
    return Failed("", str(error) if isinstance(error, str) else "")


def type_of(event: Event) -> str:
    """Return the type that an event's data or its name gives it."""
    kind = event.data.get("type") if event.data else None
    return kind if isinstance(kind, str) and kind else event.name


def joined_body(answers: Sequence[Answer], shared: Sequence[str]) -> JsonDict:
    """Return the last answer's body with the *shared* members of the first, and the usage of all."""
    first, last = answers[0].body, answers[-1].body
    joined = last | {key: first[key] for key in shared if key in first}
    if last.get("usage"):
        joined["usage"] = joined_usage([object_of(answer.body, "usage") for answer in answers])
    return joined


def encode_like(event: Event, data: JsonDict) -> bytes:
    """Return *event* with *data*; its own bytes if that is what it had."""
    return event.raw if data is event.data else encode_event(data, event.name)
