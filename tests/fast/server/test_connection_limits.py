"""Which connection is closed where all sessions together have too many."""

import pytest

from aileron_core.server import http_protocol
from aileron_core.server.http_protocol import ConnectionLimits


class Connection:
    """One that only says whether it is idle, and whether it was closed."""

    def __init__(self, *, is_idle: bool) -> None:
        self.is_idle = is_idle
        self.is_closed = False

    def drop(self) -> None:
        self.is_closed = True


@pytest.mark.parametrize("is_idle", [True, False])
def test_the_session_with_most_connections_pays_whoever_came_last(
    is_idle: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
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
