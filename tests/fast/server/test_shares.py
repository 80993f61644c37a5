"""What sessions share: whoever holds more than an equal part is refused, or loses a connection, and nobody else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aileron_core.server import http_protocol
from aileron_core.server.http_protocol import ConnectionLimits
from aileron_core.server.shares import Shares

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
