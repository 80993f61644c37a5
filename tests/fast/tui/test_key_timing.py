"""When what came from the terminal is taken to have come."""

from typing import Any, cast

import pytest

from aileron_tui import key_timing
from aileron_tui.key_timing import KeyTiming
from aileron_tui.terminal.driver import InputReceived


class _Clock:
    def __init__(self) -> None:
        self.at = 100.0

    def monotonic(self) -> float:
        return self.at


class _Model:
    def __init__(self) -> None:
        self.burst_at = 0.0

    def on_burst(self, at: float) -> None:
        self.burst_at = at


def test_a_burst_never_seems_to_come_earlier_than_it_did(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the process stands still while the two clocks are read: its key has to fall into it."""
    clock, model = _Clock(), _Model()
    timing = KeyTiming(cast("Any", None), cast("Any", clock), lock_seconds=0)
    timing._app = cast("Any", type("App", (), {"screen": None}))  # pyright: ignore[reportPrivateUsage]
    late = InputReceived("late")

    def stalled(_event: object) -> float:
        clock.at += 0.5  # the process stands still, and the event is older by as much
        return 0.5

    monkeypatch.setattr(key_timing, "_age", stalled)
    timing.on_input(late, cast("Any", model))
    assert model.burst_at == 100.0
    assert timing.pressed_at(late) == 100.0
