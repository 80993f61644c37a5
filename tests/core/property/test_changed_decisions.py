"""Only the decision that was signed is read; a question covers what its step is given; no grant outlives its match."""

import asyncio
import json
import os
import random
from collections import Counter
from collections.abc import Awaitable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from aileron_core.actions.interpolate import op_arguments, template_problems
from aileron_core.actions.load import load_action
from aileron_core.actions.model import Action, Step
from aileron_core.canonical import Json
from aileron_core.console_port.intents import Approve, EndGrant, SetPause
from aileron_core.devices.signed import Decision, SignedDecision
from aileron_core.errors import AileronError, MissingValue
from aileron_core.runs.interfaces import ResolvedAction
from aileron_core.runs.live_run import LiveRun, PreviewResult
from aileron_core.runs.model import Progress, RunRecord
from aileron_core.runs.transitions import RunEvent, RunState
from aileron_core.sessions.model import Session
from tests.support.core_harness import Core, Mailbox, install_examples, open_session, readdress
from tests.support.granting import offers_of, terms_of
from tests.support.paired_devices import new_key, point_of, sign

DECISION: dict[str, Any] = {
    "home": "/home/ana/.aileron", "approval": "act-20261129T120000-0123456789abcdef",
    "digest": "ab" * 32, "shown": "cd" * 32, "verdict": "deny", "reason": "ef" * 32, "unseen": 3,
    "device": "dev-0123456789abcdef", "at": 1_796_000_000_000,
}  # fmt: skip
MUTATIONS = 100_000
_VALUES: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2**53, 2**53 - 1, 1.0, 1e300, "", "approve", "deny", "Deny", "\ud800",
    "\u202e", "x" * 5000, [], {}, ["deny"], "ab" * 32, "AB" * 32,
)  # fmt: skip


def mutated(draw: random.Random, text: str, signature: str) -> tuple[Any, str]:
    kind = draw.randrange(6)
    if kind == 0:  # one character of the text
        at = draw.randrange(len(text))
        text = text[:at] + chr(draw.randrange(32, 127)) + text[at + 1 :]
    elif kind == 1:  # one digit of the signature
        at = draw.randrange(len(signature))
        signature = signature[:at] + draw.choice("0123456789abcdef") + signature[at + 1 :]
    try:
        decision: Any = json.loads(text)
    except ValueError:
        return text, signature
    if not isinstance(decision, dict):
        return decision, signature
    if kind == 2:
        decision[draw.choice([*decision])] = draw.choice(_VALUES)
    elif kind == 3:
        del decision[draw.choice([*decision])]
    elif kind == 4:
        decision[draw.choice(("more", "Verdict", "remember", ""))] = draw.choice(_VALUES)
    elif kind == 5:
        first, second = draw.sample([*decision], 2)
        decision[first], decision[second] = decision[second], decision[first]
    return decision, signature


def test_of_100_000_changed_decisions_none_is_another_one_that_holds() -> None:
    """Each is refused as unreadable or unsigned, or is word for word what was signed."""
    key = new_key()
    point, signed = point_of(key), Decision.from_json(dict(DECISION))
    text, signature = json.dumps(DECISION), sign(key, signed.text()).hex()
    assert SignedDecision(decision=signed, key=point, signature=bytes.fromhex(signature)).holds
    draw, read, held = random.Random(32), 0, 0
    for _ in range(MUTATIONS):
        changed, mark = mutated(draw, text, signature)
        try:
            decision = Decision.from_json(changed)
        except ValueError:
            continue
        read += 1
        if decision == signed and mark == signature:
            held += 1  # what was changed was a blank, or put back
            continue
        found = SignedDecision(decision=decision, key=point, signature=bytes.fromhex(mark))
        assert not found.holds, changed
    assert MUTATIONS / 5 < read < MUTATIONS
    assert held < read / 4


FILE = Path(__file__).parents[3] / "examples" / "actions" / "send-draft.md"
ACTION = load_action(FILE.read_bytes(), FILE.name)
NAMES = ("a", "a.b", "a.b.a", "b", "args.a")
PATHS = ("a", "b", "a.b", "b.a")
LEAF = st.one_of(st.integers(0, 9), st.text(alphabet="ab${}.", max_size=6))


def step_of(id_: str, inputs: dict[str, Json]) -> Step:
    return replace(ACTION.steps[0], id=id_, inputs=inputs, idempotent=False)


def nested(depth: int, leaf: Json) -> Json:
    """Return an output in which every path of `a` and `b` leads somewhere."""
    return {name: nested(depth - 1, leaf) for name in "ab"} if depth else leaf


def inputs(earlier: tuple[str, ...]) -> st.SearchStrategy[dict[str, Json]]:
    piece = st.one_of(st.just("${args.draft_id}"), st.text(alphabet="ab.", max_size=3))
    if earlier:
        referred = st.tuples(st.sampled_from(earlier), st.sampled_from(PATHS))
        piece = st.one_of(referred.map(lambda pair: f"${{{pair[0]}.{pair[1]}}}"), piece)
    text = st.lists(piece, min_size=1, max_size=2).map("".join)
    value = st.one_of(text, st.lists(text, max_size=2), st.dictionaries(st.just("z"), text))
    return st.dictionaries(st.sampled_from(("x", "${a.b}")), value, min_size=1)


@st.composite
def chains(draw: st.DrawFn) -> tuple[Action, dict[str, Json]]:
    ids = draw(st.lists(st.sampled_from(NAMES), unique=True, min_size=2, max_size=5))
    steps: list[Step] = []
    for each in ids:
        earlier = tuple(step.id for step in steps)
        given_ = draw(inputs(earlier))
        assume(not list(template_problems(given_, declared=ACTION.input_names, steps=earlier)))
        steps.append(step_of(each, given_))
    return replace(ACTION, steps=tuple(steps)), {each: nested(4, draw(LEAF)) for each in ids}


def run_at(action: Action, progress: Progress | None) -> LiveRun:
    row = RunRecord(
        run_id="run-1", session_id="ses-1", action=action.name, action_sha256=action.sha256,
        args=ARGS, args_sha256="", gated=True, state=RunState.PENDING, requested_at=0.0,
        progress=progress,
    )  # fmt: skip
    loaded = ResolvedAction(action=action, connectors={})
    return LiveRun(row=row, session=SESSION, resolved=loaded, preview=PreviewResult(status="none"))


ARGS: dict[str, Json] = {"draft_id": "${a.b}"}
SESSION = Session(
    session_id="ses-1", agent="test", label="", cwd="/", pid=None, executable="", opened_by="launch",
    token_hash="", gateway_hash="", opened_at=0.0, expires_at=1.0,
)  # fmt: skip


def longer_id_later() -> tuple[Action, dict[str, Json]]:
    """Return a chain in which a later step's id is the longer reading of a reference."""
    templates: dict[str, dict[str, Json]] = {"a": {}, "b": {"x": "${a.b.a}"}, "a.b": {}}
    steps = tuple(step_of(each, given_) for each, given_ in templates.items())
    return replace(ACTION, steps=steps), {each: nested(4, each) for each in templates}


@given(chains())
@example(longer_id_later())
def test_a_question_holds_what_the_step_is_given(drawn: tuple[Action, dict[str, Json]]) -> None:
    """What the first question shows as it stands is what runs, whatever the steps return."""
    action, returned = drawn
    first = run_at(action, None)
    outputs: dict[str, Json] = {}
    got: dict[str, object] = {}
    for step in action.steps:
        progress = Progress(steps=dict(outputs), halted_before=step.id, elapsed=0.0)
        held = run_at(action, progress)
        for before in action.steps:
            if before.id in got:
                assert held.step_inputs(before, progress) == got[before.id]
        try:
            given_ = op_arguments(step, ARGS, outputs, action.input_names)
        except MissingValue:
            return  # the run ends here, before any question
        assert held.step_inputs(step, progress) == given_
        assert step.id in first.halting_steps() or first.step_inputs(step, None) == given_
        got[step.id] = given_
        outputs[step.id] = returned[step.id]


STEPS: Final = 2000 if os.environ.get("HYPOTHESIS_PROFILE") == "deep" else 200
ACTS = ("call",) * 6 + ("grant", "grant", "drift", "revoke", "pause", "deny")
DRAFTS = ("r-8842190447", "r-8842190312")
WHO = ("a@b.example", "x@evil.example", "Anna Brandt <anna.brandt@nordlicht.example>")


async def waiting(core: Core) -> list[LiveRun]:
    runs = core.app.registry
    await core.until(lambda: not any(run.is_tried and not run.is_final for run in runs))
    return [run for run in runs if run.row.state == "pending" and run.row.digest]


async def test_no_effect_begins_by_a_grant_that_does_not_mean_it_then(
    tmp_path: Path, mailbox: Mailbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    pick = random.Random(7)
    install_examples(tmp_path, readdress=readdress('reach = ["Subject"]\n'))
    async with Core.open(tmp_path, mailbox) as core:
        sessions = [(await open_session(core.app, opened_by="launch")).session for _ in range(2)]
        grants, meant = core.app.standing.grants, dict[str, int]()

        store, wrong = core.app.approvals.store, list[str]()
        transition = store.transition

        def begun(run: LiveRun, event: RunEvent, *args: Any, **changes: Any) -> Awaitable[None]:
            # A grant that ends while this is written ended after the run began: so the record says too.
            stands = not core.app.pause.is_on and (not run.answered_by or grants.holds(run))
            if event is RunEvent.START and not stands:
                wrong.append(run.row.run_id)
            return transition(run, event, *args, **changes)

        monkeypatch.setattr(store, "transition", begun)
        for _ in range(STEPS):
            step = pick.choice(ACTS)
            try:
                if step == "call":
                    args = {"id": pick.choice(DRAFTS), "to": pick.choice(WHO)}
                    if pick.random() < 0.3:
                        args["bcc"] = pick.choice(WHO)
                    await core.call("readdress", args, session=pick.choice(sessions))
                    for _ in range(pick.choice((0, 20))):  # until it is being checked, perhaps
                        if any(grant.reserved for grant in grants):
                            break
                        await asyncio.sleep(0.001)
                elif step in ("grant", "deny"):
                    runs = await waiting(core)
                    if not runs:
                        continue
                    if step == "deny":
                        for run in runs:
                            await core.app.approvals.deny(run.row.approval_id or "", "no")
                        continue
                    view = core.app.publisher.view(pick.choice(runs))
                    shapes = (await offers_of(core, view)).offers
                    if not shapes:
                        continue
                    uses, scope = pick.randint(1, 9), pick.choice(("session", "project"))
                    number = pick.choice((shapes[-1], *shapes)).number
                    terms = await terms_of(core, view, number, uses=uses, scope=scope)
                    of = {"approval_id": view.approval_id, "digest": view.digest}
                    await core.do(Approve(**of, grant=terms))
                    meant[f"grant g{grants._made}"] = uses
                elif step == "drift":
                    mailbox.control(change={"id": pick.choice(DRAFTS), "to": pick.choice(WHO)})
                elif step == "revoke":
                    busy = [grant for grant in grants if grant.reserved] or [*grants]
                    if busy:
                        await core.do(EndGrant(grant_id=pick.choice(busy).view.grant_id))
                else:
                    await core.do(SetPause(paused=True))
                    await asyncio.sleep(pick.choice((0, 0.01)))
                    await core.do(SetPause(paused=False))
            except AileronError:
                continue
            for run in core.app.registry:
                if run.is_final and run.row.approval_id:
                    await core.app.approvals.mark_delivered(run.row.approval_id)
        await waiting(core)
        ended, used, by = set[str](), Counter[str](), dict[str, str]()
        for record in await core.records():
            match record["event"]:
                case "grant.ended":
                    ended.add(f"grant {record['grant']}")
                case "approval.standing":
                    by[record["run"]] = record["by"]
                case "approval.approved":
                    by.pop(record["run"], None)
                case "run.started" if record["run"] in by:
                    assert by[record["run"]] not in ended
                    used[by[record["run"]]] += 1
        assert used
        assert not wrong
        assert all(count <= meant[grant] for grant, count in used.items())
