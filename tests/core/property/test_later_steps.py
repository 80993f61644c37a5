"""For any ids, order and references: a question shows and covers what the step then is given."""

from dataclasses import replace
from pathlib import Path

from hypothesis import assume, example, given
from hypothesis import strategies as st

from aileron_core.actions.interpolate import op_arguments, template_problems
from aileron_core.actions.load import load_action
from aileron_core.actions.model import Action, Step
from aileron_core.canonical import Json
from aileron_core.errors import MissingValue
from aileron_core.runs.interfaces import ResolvedAction
from aileron_core.runs.live_run import LiveRun, PreviewResult
from aileron_core.runs.model import Progress, RunRecord
from aileron_core.runs.transitions import RunState
from aileron_core.sessions.model import Session

FILE = Path(__file__).parents[3] / "examples" / "actions" / "send-draft.md"
ACTION = load_action(FILE.read_bytes(), FILE.name)
NAMES = ("a", "a.b", "a.b.a", "b", "args.a")
PATHS = ("a", "b", "a.b", "b.a")
LEAF = st.one_of(st.integers(0, 9), st.text(alphabet="ab${}.", max_size=6))


def nested(depth: int, leaf: Json) -> Json:
    """Return an output in which every path of `a` and `b` leads somewhere."""
    return {name: nested(depth - 1, leaf) for name in "ab"} if depth else leaf


def inputs(earlier: tuple[str, ...]) -> st.SearchStrategy[dict[str, Json]]:
    """Draw templates over what *earlier* steps return."""
    piece = st.one_of(st.just("${args.draft_id}"), st.text(alphabet="ab.", max_size=3))
    if earlier:
        referred = st.tuples(st.sampled_from(earlier), st.sampled_from(PATHS))
        piece = st.one_of(referred.map(lambda pair: f"${{{pair[0]}.{pair[1]}}}"), piece)
    text = st.lists(piece, min_size=1, max_size=2).map("".join)
    value = st.one_of(text, st.lists(text, max_size=2), st.dictionaries(st.just("z"), text))
    return st.dictionaries(st.sampled_from(("x", "${a.b}")), value, min_size=1)


@st.composite
def chains(draw: st.DrawFn) -> tuple[Action, dict[str, Json]]:
    """Draw an action that loads, and what each of its steps returns."""
    ids = draw(st.lists(st.sampled_from(NAMES), unique=True, min_size=2, max_size=5))
    steps: list[Step] = []
    for each in ids:
        earlier = tuple(step.id for step in steps)
        given_ = draw(inputs(earlier))
        assume(not list(template_problems(given_, declared=ACTION.input_names, steps=earlier)))
        steps.append(replace(ACTION.steps[0], id=each, inputs=given_, idempotent=False))
    return replace(ACTION, steps=tuple(steps)), {each: nested(4, draw(LEAF)) for each in ids}


def run_at(action: Action, progress: Progress | None) -> LiveRun:
    """Return a run of *action* that stands at *progress*."""
    row = RunRecord(
        run_id="run-1",
        session_id="ses-1",
        action=action.name,
        action_sha256=action.sha256,
        args={"draft_id": "${a.b}"},
        args_sha256="",
        gated=True,
        state=RunState.PENDING,
        requested_at=0.0,
        progress=progress,
    )
    loaded = ResolvedAction(action=action, connectors={})
    return LiveRun(row=row, session=SESSION, resolved=loaded, preview=PreviewResult(status="none"))


SESSION = Session(
    session_id="ses-1",
    agent="test",
    label="",
    cwd="/",
    pid=None,
    executable="",
    opened_by="launch",
    token_hash="",
    gateway_hash="",
    opened_at=0.0,
    expires_at=1.0,
)


def longer_id_later() -> tuple[Action, dict[str, Json]]:
    """Return a chain in which a later step's id is the longer reading of a reference."""
    templates: dict[str, dict[str, Json]] = {"a": {}, "b": {"x": "${a.b.a}"}, "a.b": {}}
    steps = tuple(
        replace(ACTION.steps[0], id=each, inputs=given_, idempotent=False)
        for each, given_ in templates.items()
    )
    return replace(ACTION, steps=steps), {each: nested(4, each) for each in templates}


@given(chains())
@example(longer_id_later())
def test_a_question_holds_what_the_step_is_given(drawn: tuple[Action, dict[str, Json]]) -> None:
    """Before each step, and for each that is done after any later one, both are the same."""
    action, returned = drawn
    args = {"draft_id": "${a.b}"}
    outputs: dict[str, Json] = {}
    got: dict[str, object] = {}
    for step in action.steps:
        progress = Progress(steps=dict(outputs), halted_before=step.id, elapsed=0.0)
        held = run_at(action, progress)
        for before in action.steps:
            if before.id in got:
                assert held.step_inputs(before, progress) == got[before.id]
        try:
            given_ = op_arguments(step, args, outputs, action.input_names)
        except MissingValue:
            return  # the run ends here, before any question
        assert held.step_inputs(step, progress) == given_
        got[step.id] = given_
        outputs[step.id] = returned[step.id]


@given(chains())
def test_no_step_that_an_earlier_output_changes_goes_without_a_question(
    drawn: tuple[Action, dict[str, Json]],
) -> None:
    """What the first question shows as it stands is what runs, whatever the steps return."""
    action, returned = drawn
    args: dict[str, Json] = {"draft_id": "${a.b}"}
    held = run_at(action, None)
    for index, step in enumerate(action.steps):
        outputs = {each.id: returned[each.id] for each in action.steps[:index]}
        if step.id in held.halting_steps():
            continue
        assert held.step_inputs(step, None) == op_arguments(step, args, outputs, action.input_names)
