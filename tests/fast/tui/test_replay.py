"""Which kept screen belongs to a record of the audit."""

from aileron_tui.items import Item
from aileron_tui.state.decision_screens import DecisionScreen, DecisionScreens
from tests.support.screens.calls import approval

MOMENT = 1_790_000_000.2567


def test_a_screen_is_found_by_a_record_of_the_same_millisecond() -> None:
    """A record's time holds no parts of a millisecond, so it may lie before the screen's."""
    view, screens = approval(1, MOMENT), DecisionScreens()
    seen = DecisionScreen(at=MOMENT, item=Item(key="a", approval=view))
    screens.add(seen)
    assert screens.find(view.run_id, 1_790_000_000.256) is seen
    assert screens.find(view.run_id, 1_790_000_000.255) is None
    assert screens.find("another", MOMENT + 1) is None
