"""The one table of a run's life, driven event by event."""

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aileron_core.console_port.view_models import FINAL_STATES, ShownState
from aileron_core.errors import IllegalTransition
from aileron_core.runs.transitions import FINAL, OPEN, TRANSITIONS, RunEvent, RunState, advance

# The states and what leads from one to the next, written down once more.
DRAWN = """
new -> executing pending awaiting_vault denied failed
awaiting_vault -> pending executing denied expired withdrawn failed awaiting_vault
pending -> checking awaiting_vault denied expired withdrawn pending
checking -> approved pending denied expired withdrawn failed
approved -> executing pending
executing -> completed failed unknown pending awaiting_vault
"""


def test_the_table_has_exactly_the_edges_drawn_here_and_six_ends_and_cannot_be_changed() -> None:
    lines = [line.partition(" -> ") for line in DRAWN.strip().splitlines()]
    drawn = {(source, target) for source, _, targets in lines for target in targets.split()}
    assert {(str(source), str(target)) for (source, _), target in TRANSITIONS.items()} == drawn
    final = {str(state) for state in FINAL}
    assert final == {"completed", "failed", "unknown", "denied", "expired", "withdrawn"}
    assert final == FINAL_STATES
    assert set(get_args(ShownState)) == {str(state) for state in RunState}
    assert OPEN.isdisjoint(FINAL)
    with pytest.raises(TypeError):
        TRANSITIONS[RunState.PENDING, RunEvent.START] = RunState.EXECUTING  # type: ignore[index]


@given(st.sampled_from(RunState), st.sampled_from(RunEvent))
def test_each_state_and_event_either_moves_or_raises(state: RunState, event: RunEvent) -> None:
    expected = TRANSITIONS.get((state, event))
    for _ in range(2):
        if expected is None:
            with pytest.raises(IllegalTransition):
                advance(state, event)
        else:
            assert advance(state, event) is expected


def test_a_gated_run_starts_once_from_a_persons_yes_and_from_nowhere_else() -> None:
    """Executing comes from approved, approved from checking, checking from a person's yes.

    After executing a run waits again only if it was brought back on purpose.
    """
    for (source, event), target in TRANSITIONS.items():
        assert source not in FINAL, f"{event} left the final state {source}"
        if target is RunState.EXECUTING:
            # new and awaiting_vault begin what is not gated
            assert source in (RunState.APPROVED, RunState.NEW, RunState.AWAITING_VAULT)
        if target is RunState.APPROVED:
            assert (source, event) == (RunState.CHECKING, RunEvent.RECHECK_MATCHED)
        if target is RunState.CHECKING:
            assert (source, event) == (RunState.PENDING, RunEvent.APPROVE)
        if target is RunState.COMPLETED:
            assert source is RunState.EXECUTING
        if source is RunState.EXECUTING and target not in FINAL:
            assert event in (RunEvent.ASK_AGAIN, RunEvent.NEED_VAULT)
    for state in RunState:
        if state is RunState.APPROVED:
            assert advance(state, RunEvent.START, gated=True) is RunState.EXECUTING
            continue
        with pytest.raises(IllegalTransition):
            advance(state, RunEvent.START, gated=True)
