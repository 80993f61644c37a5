"""Reading a request's body and a client's claims, with whatever bytes come; what sessions share of what there is."""

import asyncio
import json
import math
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from starlette.requests import Request

from aileron_core.canonical import canonical
from aileron_core.errors import InvalidRequest
from aileron_core.server import http_protocol
from aileron_core.server.agent_api import bounded_claims
from aileron_core.server.bodies import Keywords
from aileron_core.server.http_protocol import ConnectionLimits
from aileron_core.server.request_parsing import RequestBody, json_object
from aileron_core.server.shares import Shares
from tests.support.any_values import json_values

KEYS = st.sampled_from(["a", "b", "c"])
JSON = json_values()


def read_object(body: bytes, media: str = "application/json") -> dict[str, Any]:
    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    headers = [(b"content-type", media.encode())]
    scope = {"type": "http", "method": "POST", "path": "/", "headers": headers}
    return asyncio.run(json_object(Request(scope, receive), ("a", "b")))


@given(st.binary())
def test_any_bytes_are_an_object_or_an_invalid_request(body: bytes) -> None:
    try:
        found = read_object(body)
    except InvalidRequest as error:
        error.message.encode()
    else:
        assert set(found) <= {"a", "b"}


@given(st.dictionaries(KEYS, JSON))
def test_what_was_sent_is_what_is_read_and_unknown_keys_are_refused(body: dict[str, Any]) -> None:
    data = json.dumps(body).encode()
    if "c" in body:
        with pytest.raises(InvalidRequest, match="'c'"):
            read_object(data)
    else:
        assert read_object(data) == body


@given(st.lists(st.tuples(KEYS, st.integers()), min_size=1))
def test_a_key_that_stands_twice_is_refused_at_any_depth(pairs: list[tuple[str, int]]) -> None:
    """Two readers of one body must not see two bodies."""
    inner = "{" + ", ".join(f"{json.dumps(key)}: {value}" for key, value in pairs) + "}"
    data = f'{{"a": [{inner}]}}'.encode()
    if len({key for key, _ in pairs}) < len(pairs):
        with pytest.raises(InvalidRequest, match="twice"):
            read_object(data)
    else:
        assert read_object(data) == {"a": [dict(pairs)]}


@given(JSON, st.integers(-5, 5), st.integers(-5, 5))
def test_numbers_are_within_their_bounds_or_refused(value: Any, low: int, high: int) -> None:
    """A truth value is no number; a fraction is no whole one."""
    body = RequestBody({"a": value}, {"a": Keywords(minimum=low, maximum=high)})
    for reader in (body.number, body.whole_number):
        try:
            found = reader("a")
        except InvalidRequest:
            continue
        assert found is None or low <= found <= high
        assert not isinstance(value, bool)
        if reader == body.whole_number and found is not None:
            assert isinstance(found, int)
            assert math.isclose(found, value)


@given(JSON | st.text(st.characters(categories=["Cs", "L"])))
def test_text_is_of_its_length_and_can_be_encoded_or_is_refused(value: Any) -> None:
    """A lone surrogate passes JSON and is no text."""
    try:
        found = RequestBody({"a": value}, {"a": Keywords(min_length=1, max_length=10)}).text("a")
    except InvalidRequest:
        return
    assert 1 <= len(found) <= 10
    found.encode()


SAID = st.dictionaries(st.text(min_size=1, max_size=8), st.text(alphabet=st.characters()))


@given(SAID)
@example({"client": "codex \ud800"})
def test_whatever_was_said_can_be_put_on_record(said: dict[str, str]) -> None:
    found = bounded_claims(said)
    assert canonical([list(pair) for pair in found])
    assert [label for label, _ in found] == list(said)[:8]


def test_number_and_length_are_bounded_and_a_cut_is_said() -> None:
    found = bounded_claims({str(number): "x" * 10_000 for number in range(100)})
    assert len(found) == 8
    assert {text for _, text in found} == {"x" * 512 + "… (10000 characters)"}
    assert bounded_claims({"client": "y" * 512}) == (("client", "y" * 512),)


SESSIONS = st.sampled_from("abcde")


@given(st.lists(st.tuples(SESSIONS, st.integers(1, 60)), max_size=60), st.integers(1, 12))
def test_a_session_has_its_equal_part_always(asked: list[tuple[str, int]], wanted: int) -> None:
    """With five others that take all they get, a sixth has a sixth of it."""
    shares = Shares(72)
    for session, amount in asked:
        if shares.fits(session, amount):
            shares.add(session, amount)
        assert shares.held(session) <= shares.each
    assert shares.fits("new", wanted)


@given(st.lists(st.tuples(SESSIONS, st.integers(1, 60)), max_size=60))
def test_all_together_hold_little_more_than_there_is(asked: list[tuple[str, int]]) -> None:
    """Half, half, a third, a quarter, a fifth: the bound that the class states."""
    shares = Shares(60)
    for session, amount in asked:
        if shares.fits(session, amount):
            shares.add(session, amount)
    assert sum(map(shares.held, "abcde")) <= 60 + 20 + 15 + 12


def test_what_is_given_back_can_be_had_again() -> None:
    shares = Shares(10)
    shares.add("a", 5)
    assert not shares.fits("a")
    shares.give_back("a", 5)
    assert shares.fits("a", 5)
    assert shares.held("a") == 0


class Connection:
    """One that only says whether it is idle, and whether it was closed."""

    def __init__(self, *, is_idle: bool) -> None:
        self.is_idle = is_idle
        self.is_closed = False

    def drop(self) -> None:
        self.is_closed = True


@pytest.mark.parametrize("is_idle", [True, False])
def test_who_has_most_connections_pays(is_idle: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where it uses all of them: the newest one, of another session, was closed in their place."""
    monkeypatch.setattr(http_protocol, "_share", lambda part: 12 // part)
    limits = ConnectionLimits()
    greedy = [Connection(is_idle=is_idle) for _ in range(4)]
    for each in greedy:
        limits.add(each, "greedy")
    late = Connection(is_idle=False)
    limits.add(late, "late")
    assert not late.is_closed
    assert [each.is_closed for each in greedy].count(True) == 1
