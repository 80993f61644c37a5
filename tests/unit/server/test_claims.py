"""Claims on their way into the core: bounded, storable, in order, and never more than was said."""

from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from aileron_core.canonical import canonical
from aileron_core.server.client_claims import EXTENSION, call_claims, client_claims

SAID = st.dictionaries(st.text(min_size=1, max_size=8), st.text(alphabet=st.characters()))


def scope(said: Any) -> dict[str, Any]:
    return {"type": "http", "extensions": {EXTENSION: said}}


@given(SAID, SAID)
@example({"client": "codex \ud800"}, {"call": "\udfff"})
def test_whatever_was_said_can_be_put_on_record(
    client: dict[str, str], call: dict[str, str]
) -> None:
    """C5: lone surrogates too; who it is comes first, then the call."""
    found = call_claims(scope({"client": client, "call": call}))
    assert canonical([list(pair) for pair in found])
    assert found[: len(client_claims(scope({"client": client})))] == client_claims(
        scope({"client": client})
    )
    assert [label for label, _ in found] == [*list(client)[:8], *list(call)[:8]]


def test_number_and_length_are_bounded_and_a_cut_is_said() -> None:
    """C5: eight of each kind, 512 characters, then how many there were."""
    many = {str(number): "x" * 10_000 for number in range(100)}
    found = call_claims(scope({"client": many, "call": many}))
    assert len(found) == 16
    assert {text for _, text in found} == {"x" * 512 + "… (10000 characters)"}
    assert client_claims(scope({"client": {"client": "y" * 512}})) == (("client", "y" * 512),)


def test_a_request_without_the_extension_claims_nothing() -> None:
    """What comes over a socket has no such extension."""
    for bare in ({"type": "http"}, {"type": "http", "extensions": None}, scope(None), scope({})):
        assert call_claims(bare) == ()
