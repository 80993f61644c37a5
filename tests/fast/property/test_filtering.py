"""The filter language takes any text, loses nothing of it, and narrows."""

from hypothesis import given
from hypothesis import strategies as st

from aileron_tui.state.filter import EVERYTHING, FilterFields, parse

FIELDS = ("agent", "action", "state")
NOW = 1_000_000.0

terms = st.one_of(
    st.text(alphabet=st.characters(exclude_characters=' "\t\n\r'), min_size=1, max_size=8),
    st.sampled_from(
        ["agent:codex", "agent:codex,goose", "action:send", "state:pending", "age:5m", "age:>2h",
         "age:", "age:soon", "effect:pay", "agent:", "agent:,", ":", "a:b:c", '"two words"',
         '"open', 'agent:"a b"', "AGENT:Codex", "age:<90s", "age:999999d", "age:1min"]
    ),
)  # fmt: skip
rows = st.builds(
    FilterFields,
    text=st.text(max_size=20),
    fields=st.fixed_dictionaries(
        {"agent": st.sampled_from(["codex", "goose", "x"]), "state": st.text(max_size=5)}
    ),
    at=st.floats(min_value=0, max_value=NOW),
)


@given(st.text(max_size=60))
def test_any_text_is_a_filter_or_is_explained(text: str) -> None:
    parsed = parse(text, FIELDS)
    assert parsed.text == text
    assert all(problem.endswith(".") and problem.isprintable() for problem in parsed.problems)
    assert isinstance(parsed.query.matches(FilterFields(text="a"), NOW), bool)


@given(st.lists(terms, max_size=5))
def test_every_term_takes_part_or_is_reported(parts: list[str]) -> None:
    parsed = parse(" ".join(parts), FIELDS)
    query = parsed.query
    found = len(query.words) + len(query.fields) + len(query.ages) + len(parsed.problems)
    joined = '"open' in parts  # an open quote takes what follows into one word
    assert found == len(parts) or joined


@given(st.lists(terms, max_size=4), terms, rows)
def test_one_more_term_shows_no_more_rows_and_an_empty_filter_every_row(
    parts: list[str], more: str, row: FilterFields
) -> None:
    text = " ".join(part for part in parts if part != '"open')
    before, after = parse(text, FIELDS), parse(f"{text} {more}", FIELDS)
    if after.query.matches(row, NOW):
        assert before.query.matches(row, NOW)
    if len(after.problems) > len(before.problems):
        assert after.query == before.query
    assert parse("   ", FIELDS).query == EVERYTHING
    assert EVERYTHING.matches(row, NOW)
    assert not EVERYTHING


@given(st.integers(0, 10_000), st.integers(1, 5_000))
def test_younger_and_older_than_an_age_share_no_row_and_leave_none(age: int, limit: int) -> None:
    row = FilterFields(text="", at=NOW - age)
    younger = parse(f"age:{limit}s", FIELDS).query.matches(row, NOW)
    older = parse(f"age:>{limit}s", FIELDS).query.matches(row, NOW)
    assert younger != older
    assert younger == (age <= limit)


def test_a_field_is_looked_for_in_its_own_text_alone() -> None:
    """`agent:codex` finds the agent, not a mail about codex; words find any of it."""
    row = FilterFields(text="a mail about Goose", fields={"agent": "Codex"}, at=NOW)
    assert parse("agent:cod", FIELDS).query.matches(row, NOW)
    assert parse("agent:pi,codex goose", FIELDS).query.matches(row, NOW)
    assert not parse("agent:goose", FIELDS).query.matches(row, NOW)
    assert not parse("action:send", FIELDS).query.matches(row, NOW)
    assert parse('"about goose"', FIELDS).query.matches(row, NOW)
