"""Claims on their way into the core: bounded, storable, in order, and never more than was said."""

from hypothesis import example, given
from hypothesis import strategies as st

from aileron_core.canonical import canonical
from aileron_core.server.agent_api import bounded_claims

SAID = st.dictionaries(st.text(min_size=1, max_size=8), st.text(alphabet=st.characters()))


@given(SAID)
@example({"client": "codex \ud800"})
def test_whatever_was_said_can_be_put_on_record(said: dict[str, str]) -> None:
    """Lone surrogates too; in the order in which it was said."""
    found = bounded_claims(said)
    assert canonical([list(pair) for pair in found])
    assert [label for label, _ in found] == list(said)[:8]


def test_number_and_length_are_bounded_and_a_cut_is_said() -> None:
    """Eight, 512 characters each, then how many there were."""
    found = bounded_claims({str(number): "x" * 10_000 for number in range(100)})
    assert len(found) == 8
    assert {text for _, text in found} == {"x" * 512 + "… (10000 characters)"}
    assert bounded_claims({"client": "y" * 512}) == (("client", "y" * 512),)
