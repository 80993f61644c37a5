"""A history in the shapes that SDKs give it back in."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aileron_core.server.augment.digests import HistoryDigest, ReadHistory, digest_of, units_of

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
    """Who said what, calls and results."""
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
    """A copy reads on by itself."""
    items = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
    digest = HistoryDigest("seed").extended(items[:1])
    before = digest.value
    assert digest.extended(items[1:]).value == HistoryDigest("seed").extended(items).value
    assert digest.value == before != HistoryDigest("").extended(items[:1]).value


@given(st.lists(st.lists(st.integers(0, 5), max_size=14), min_size=2, max_size=4), st.data())
def test_a_history_reads_the_same_behind_a_previous_one(
    turns: list[list[int]], data: st.DataObject
) -> None:
    """One that goes on from it, repeats it, begins otherwise or is another; each behind the one before."""
    items = [{"role": ("user", "assistant")[n % 2], "content": "ab"[n // 3]} for n in range(6)]
    history: list[dict[str, Any]] = []
    previous = None
    for added in turns:
        history = [*history[: data.draw(st.integers(0, 99))], *(items[n] for n in added)]
        seed = data.draw(st.sampled_from(["", "", "", "msg_1"]))
        alone = ReadHistory.of(history, seed)
        behind = ReadHistory.of(history, seed, previous)
        assert behind.items == alone.items
        assert behind.digest.value == alone.digest.value
        assert behind.digest.extended(items).value == alone.digest.extended(items).value
        previous = behind


def test_what_a_previous_history_has_is_not_read_again() -> None:
    """Also where its last item is another now, and behind one that was asked twice."""
    items = [{"role": "user", "content": str(n)} for n in range(40)]
    previous = ReadHistory.of(items[:30])
    moved = {**items[29], "cache_control": {}}
    for following in (items[:30], items, [*items[:29], moved, *items[30:]]):
        read = ReadHistory.of(following, "", previous)
        assert [a is b for a, b in zip(read.items, previous.items, strict=False)][:29] == [
            True
        ] * 29
        previous = ReadHistory.of(items[:30], "", previous)
