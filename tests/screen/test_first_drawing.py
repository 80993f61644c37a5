"""What the keys say before an item's lines are known."""

from aileron_core.console_port.intents import Approve
from aileron_tui.pages.command import availability
from aileron_tui.pages.registry import DEFAULT_REGISTRY
from aileron_tui.pages.status_line import status_line
from aileron_tui.state.model import Model
from aileron_tui.state.situation import Situation
from tests.support.screens.calls import snapshot


def test_nothing_is_offered_or_called_seen_before_the_items_lines_are_laid_out() -> None:
    """With no lines laid out none are unseen; that must not read as all of them seen."""
    model = Model(snapshot(0.0), arm_seconds=0.4, registry=DEFAULT_REGISTRY)
    item = model.queue.current
    assert item is not None
    model.arming.on_drawn(model.screen_version, 0.0)

    before = Situation(model, 0.0, 10.0)
    assert not availability(DEFAULT_REGISTRY.command("approve"), before).shown
    assert "".join(piece.text for piece in status_line(before, None, width=80)) == ""

    model.laid_out_version = item.version
    after = Situation(model, 0.0, 10.0)
    assert availability(DEFAULT_REGISTRY.command("approve"), after).decides_now
    (intent,) = DEFAULT_REGISTRY.command("approve").intents(after)
    assert isinstance(intent, Approve)
