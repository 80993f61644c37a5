"""The one table of a run's life, driven event by event."""

from collections.abc import Mapping
from typing import ClassVar

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from aileron_core.approval.transitions import FINAL, OPEN, TRANSITIONS, Event, State, advance
from aileron_core.errors import IllegalTransition

# DESIGN 5, as it is drawn there.
DRAWN = """
new -> executing pending awaiting_vault denied failed
awaiting_vault -> pending executing denied expired withdrawn failed awaiting_vault
pending -> checking awaiting_vault denied expired withdrawn pending
checking -> approved pending denied expired withdrawn failed
approved -> executing pending
executing -> completed failed unknown pending awaiting_vault
"""


def _drawn() -> set[tuple[State, State]]:
    edges: set[tuple[State, State]] = set()
    for line in DRAWN.strip().splitlines():
        source, _, targets = line.partition(" -> ")
        edges |= {(State(source), State(target)) for target in targets.split()}
    return edges


def test_the_table_has_exactly_the_edges_that_design_5_draws() -> None:
    """DESIGN 5: no state is reached in another way than the drawing says, and none is missing."""
    assert {(source, target) for (source, _), target in TRANSITIONS.items()} == _drawn()


def test_final_states_are_the_six_ends() -> None:
    """WIRE: `status` to an agent is one of these six once it is final."""
    assert {str(state) for state in FINAL} == {
        "completed", "failed", "unknown", "denied", "expired", "withdrawn",
    }  # fmt: skip
    assert OPEN.isdisjoint(FINAL)


@given(st.sampled_from(State), st.sampled_from(Event))
def test_every_pair_of_state_and_event_either_moves_or_raises(state: State, event: Event) -> None:
    """DESIGN 5: `advance` is total and pure: the same answer each time, or `IllegalTransition`."""
    expected = TRANSITIONS.get((state, event))
    for _ in range(2):
        if expected is None:
            with pytest.raises(IllegalTransition):
                advance(state, event)
        else:
            assert advance(state, event) is expected


def test_the_table_cannot_be_changed_while_it_runs() -> None:
    """DESIGN 5: one table; nothing adds an edge to it."""
    with pytest.raises(TypeError):
        TRANSITIONS[State.PENDING, Event.START] = State.EXECUTING  # type: ignore[index]


class Life(RuleBasedStateMachine):
    """Feeds any event in any state and remembers the way."""

    table: ClassVar[Mapping[tuple[State, Event], State]] = TRANSITIONS

    def __init__(self) -> None:
        super().__init__()
        self.way: list[tuple[State, Event, State]] = []
        self.state = State.NEW

    @rule(event=st.sampled_from(Event))
    def feed(self, event: Event) -> None:
        target = self.table.get((self.state, event))
        if target is None:
            return
        assert self.state not in FINAL, f"{event} left the final state {self.state}"
        self.way.append((self.state, event, target))
        self.state = target

    @invariant()
    def a_person_stands_before_an_effect(self) -> None:
        """Executing comes from approved, approved from checking, checking from a person's yes."""
        for source, event, target in self.way:
            if target is State.EXECUTING:
                # new and awaiting_vault begin what is not gated
                assert source in (State.APPROVED, State.NEW, State.AWAITING_VAULT)
            if target is State.APPROVED:
                assert (source, event) == (State.CHECKING, Event.HOLDS)
            if target is State.CHECKING:
                assert (source, event) == (State.PENDING, Event.APPROVE)
            if target is State.COMPLETED:
                assert source is State.EXECUTING

    @invariant()
    def an_effect_begins_once(self) -> None:
        """After executing a run waits again only if it was brought back on purpose."""
        for source, event, target in self.way:
            if source is State.EXECUTING and target not in FINAL:
                assert event in (Event.ASK_AGAIN, Event.NEED_VAULT)


TestLife = Life.TestCase


@pytest.mark.parametrize(
    ("edge", "target"),
    [
        ((State.PENDING, Event.START), State.EXECUTING),
        ((State.CHECKING, Event.START), State.EXECUTING),
        ((State.PENDING, Event.HOLDS), State.APPROVED),
        ((State.DENIED, Event.APPROVE), State.CHECKING),
        ((State.UNKNOWN, Event.RECOVER), State.PENDING),
    ],
)
def test_a_planted_edge_is_caught_by_the_machine(edge: tuple[State, Event], target: State) -> None:
    """A6: an illegal edge in the table makes the state machine fail."""

    class Planted(Life):
        table: ClassVar[Mapping[tuple[State, Event], State]] = {**TRANSITIONS, edge: target}

    with pytest.raises(AssertionError):
        run_state_machine_as_test(Planted, settings=_SEARCH)


_SEARCH = settings(
    max_examples=3000,
    stateful_step_count=30,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
    print_blob=False,
)


def test_a_gated_run_starts_from_a_persons_yes_and_from_nowhere_else() -> None:
    """The table lets an ungated run start anew or from the vault; a gated one only once approved."""
    for state in State:
        if state is State.APPROVED:
            assert advance(state, Event.START, gated=True) is State.EXECUTING
            continue
        with pytest.raises(IllegalTransition):
            advance(state, Event.START, gated=True)
