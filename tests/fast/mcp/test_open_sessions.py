"""Which MCP sessions are remembered, and when they are forgotten."""

from unittest.mock import Mock

from aileron_mcp.open_sessions import IDLE_SECONDS, OpenSessions


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_another_owners_session_is_nobodys() -> None:
    """Neither is it counted as used, nor can it be closed."""
    opened = OpenSessions(lambda _: True)
    opened.open("a", "1", 0)
    with opened.in_use("b", "1") as used:
        assert used is None
    opened.close("b", "1")
    assert opened.get("a", "1") is not None
    opened.close("a", "1")
    assert opened.get("a", "1") is None


def test_what_was_idle_for_too_long_is_forgotten_and_what_has_a_stream_is_not() -> None:
    clock = Clock()
    opened = OpenSessions(lambda _: True, clock=clock)
    opened.open("a", "idle", 0)
    opened.open("a", "streaming", 0)
    with opened.in_use("a", "streaming"):
        clock.now = IDLE_SECONDS + 61
        opened.open("a", "new", 0)
        assert opened.get("a", "idle") is None
        assert opened.get("a", "streaming") is not None


def test_those_of_an_ended_session_are_forgotten() -> None:
    """Else a console that lives long would keep something of every agent there ever was."""
    is_open = Mock(return_value=True)
    opened = OpenSessions(is_open)
    opened.open("a", "1", 0)
    is_open.side_effect = lambda owner: owner != "a"
    opened.open("b", "2", 0)
    assert opened.get("a", "1") is None
    assert len(list(opened)) == 1
