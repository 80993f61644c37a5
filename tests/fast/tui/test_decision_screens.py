"""Which kept screen belongs to a record of the audit, and how many are kept."""

from dataclasses import replace

from aileron_tui.items import Item
from aileron_tui.state.decision_screens import (
    CHARACTERS_KEPT,
    SCREENS_KEPT,
    DecisionScreen,
    DecisionScreens,
)
from tests.support.screens.states import short

MOMENT = 1_790_000_000.2567


def test_each_decision_about_a_call_has_its_own_screen() -> None:
    """Approved, changed, approved again: each record shows what stood there at its own time.

    A record's time holds no parts of a millisecond, so it may lie before the screen's.
    """
    screens = DecisionScreens()
    first, second = short(), replace(short(), version=9)
    for at, view in ((MOMENT, first), (MOMENT + 10, second)):
        screens.add(DecisionScreen(at=at, item=Item(key=view.approval_id, approval=view)))
    run = first.run_id
    assert screens.find(run, 1_790_000_000.255) is None
    assert screens.find(run, 1_790_000_000.256).item.approval is first
    assert screens.find(run, MOMENT + 5).item.approval is first
    assert screens.find(run, MOMENT + 10).item.approval is second
    assert screens.find("run-of-another", MOMENT + 20) is None
    assert screens.find(None, MOMENT + 20) is None


def test_few_screens_are_kept_and_not_more_text_than_memory_allows() -> None:
    """The oldest go; the last one stays, however large."""
    screens = DecisionScreens()
    views = [short(number + 1) for number in range(SCREENS_KEPT + 1)]
    for at, view in enumerate(views):
        screens.add(DecisionScreen(at=at, item=Item(key=view.approval_id, approval=view)))
    assert screens.find(views[0].run_id, 1e9) is None
    assert screens.find(views[1].run_id, 1e9) is not None
    field = replace(views[0].preview.fields[0], value="x" * (CHARACTERS_KEPT + 1))
    huge = replace(views[0], preview=replace(views[0].preview, fields=(field,)))
    screens.add(DecisionScreen(at=1e6, item=Item(key=huge.approval_id, approval=huge)))
    assert screens.find(huge.run_id, 1e9) is not None
    assert screens.find(views[-1].run_id, 1e9) is None
