"""A history in the shapes that SDKs give it back in."""

from typing import Any

import pytest

from aileron_core.server.augment.digests import HistoryDigest, digest_of, units_of

CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"a": 1, "b": 2}'}}
SAME: list[tuple[list[dict[str, Any]], list[dict[str, Any]]]] = [
    (
        [{"role": "assistant", "content": "ab"}],
        [{"role": "assistant", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b", "citations": None}]}],
    ),
    (
        [{"role": "assistant", "content": [{"type": "thinking", "thinking": "t"}, {"type": "text", "text": "a"}]}],
        [{"role": "assistant", "content": "a"}],
    ),
    (
        [{"role": "user", "content": [{"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}]}],
        [{"role": "user", "content": "a"}],
    ),
    (
        [{"role": "assistant", "content": None, "tool_calls": [CALL]}],
        [{"role": "assistant", "tool_calls": [{**CALL, "function": {"name": "f", "arguments": '{"b":2,"a":1}'}}], "refusal": None}],
    ),
    (
        [{"type": "message", "role": "assistant", "id": "m", "status": "completed", "content": [{"type": "output_text", "text": "a"}]}],
        [{"type": "reasoning", "id": "r", "summary": []}, {"role": "assistant", "content": "a"}],
    ),
    (
        [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": "r"}]}],
        [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": [{"type": "text", "text": "r"}]}]}],
    ),
    (
        [{"type": "function_call", "call_id": "c", "id": "x", "name": "f", "arguments": "{}"}],
        [{"type": "function_call", "call_id": "c", "name": "f", "arguments": "", "status": "completed"}],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("one", "other"), SAME)
def test_what_says_the_same_has_one_digest(one: Any, other: Any) -> None:
    assert digest_of(one) == digest_of(other)


@pytest.mark.parametrize(
    "item",
    [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": "b"},
        {"role": "tool", "tool_call_id": "c", "content": "r"},
        {"role": "tool", "tool_call_id": "c", "content": "other"},
        {"role": "tool", "tool_call_id": "d", "content": "r"},
        {"role": "assistant", "tool_calls": [CALL]},
        {"type": "function_call_output", "call_id": "e", "output": "r"},
        {"role": "user", "content": [{"type": "image", "source": "1"}]},
        {"role": "user", "content": [{"type": "image", "source": "2"}]},
        {"role": "assistant", "content": 5, "tool_calls": "hostile"},
        {"type": 5, "role": ["hostile"]},
    ],
)
def test_what_says_something_else_has_another(item: Any) -> None:
    """And a hostile shape is read too."""
    assert digest_of([item]) != digest_of([{"role": "assistant", "content": "a"}])
    assert digest_of([item, item]) != digest_of([item]) or item.get("content") == 5


@pytest.mark.parametrize("kind", ["item_reference", "image_generation_call"])
def test_references_differ_by_what_they_refer_to(kind: str) -> None:
    """Of all else the id is the provider's alone, and an SDK may leave it out."""
    one, other = ({"type": kind, "id": id_} for id_ in ("a", "b"))
    assert digest_of([one]) != digest_of([other])
    assert digest_of([{**one, "result": "x"}]) == digest_of([{**other, "result": "x"}])


def test_a_long_history_of_one_speaker_is_read_in_one_pass() -> None:
    """In time that grows with its square, an agent could hold up the whole console."""
    digest = HistoryDigest()
    seen = set[str]()
    for number in range(50_000):
        digest.add(units_of({"role": "user", "content": f"{number} {'x' * 500}"}))
        seen.add(digest.value)
    assert len(seen) == 50_000


def test_reading_on_is_reading_from_the_beginning() -> None:
    items = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
    digest = HistoryDigest("seed").extended(items[:1])
    before = digest.value
    assert digest.extended(items[1:]).value == HistoryDigest("seed").extended(items).value
    assert digest.value == before != HistoryDigest("").extended(items[:1]).value
