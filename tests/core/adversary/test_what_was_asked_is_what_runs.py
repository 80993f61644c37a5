"""Later steps: what the last question showed and covered is exactly what the op was given."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from aileron_core.actions.interpolate import json_text
from aileron_core.canonical import Json
from aileron_core.console_port.view_models import ApprovalView, StepView
from aileron_core.runs.model import RunRecord
from tests.support.core_harness import Core, install_examples
from tests.support.echoes import ECHO, SAYS, chained, install_connectors

Chain = tuple[str, str, bool, str | None]

FIRST: Chain = ("a", ECHO, True, 'x = "SEEN"\nn = 9007199254740991\nlist = [1, { to = "eve" }]')
LAST = "send"
_SEND = {
    "the whole string": 'y = "${a.args.x}"',
    "its type": 'y = "${a.args.list}"',
    "inside text": 'y = "to ${a.args.x} and ${a.args.list}"',
    "an array of tables": 'y = [{ to = "${a.args.x}" }]',
    "a key": '"${a.args.x}" = "${a.args.x}"',
    "an absent argument": 'y = "${a.args.x}"\nbcc = "${args.bcc}"\ncc = ["${args.bcc}"]',
    "an argument that looks like a reference": 'y = "${a.args.x}"\nz = "${args.trick}"',
}


def sent(step: StepView) -> dict[str, str]:
    """Return what a person reads of *step*'s inputs."""
    return {field.label: field.value for field in step.inputs}


def as_drawn(args: Mapping[str, Json]) -> dict[str, str]:
    """Return the op's arguments as a person would have to read them: a list of texts line by line."""

    def as_text(value: Json) -> str:
        if value and isinstance(value, list) and all(isinstance(each, str) for each in value):
            return "\n".join(str(each) for each in value)
        return value if isinstance(value, str) else json_text(value, indent=2)

    return {name: as_text(value) for name, value in args.items()}


def step(view: ApprovalView, step_id: str) -> StepView:
    """Return one step of *view*."""
    return next(each for each in view.steps if each.step_id == step_id)


def received(row: RunRecord, step_id: str) -> dict[str, Any]:
    """Return what the op of an echoing step was given."""
    assert row.output is not None
    steps: Any = row.output["steps"]
    return steps[step_id]["args"]


async def answered(core: Core, view: ApprovalView) -> ApprovalView:
    """Approve *view* and return the next question, or the end."""
    await core.approve(view)
    return await core.view(
        view.approval_id,
        lambda v: v.ended_at is not None or v.state == "pending",
        after=view.version,
    )


async def all_the_way(
    core: Core, args: Mapping[str, Json], questions: int
) -> tuple[list[ApprovalView], RunRecord]:
    """Say yes to *questions* questions of `chain`; return each as it was shown, and the end."""
    answer = await core.call("chain", args)
    assert answer.row.approval_id is not None
    views = [await core.looked(answer.row.approval_id)]
    for _ in range(questions):
        views.append(await answered(core, views[-1]))
    over = views.pop()
    assert over.ended_at is not None
    row = await core.result(over.approval_id)
    return views, row


def put_chain(home: Path, *steps: Chain, says: bytes = b"{}", more: str = "") -> None:
    """Furnish *home* with the action `chain` of *steps*."""
    install_examples(home)
    inputs: Sequence[tuple[str, str, bool]] = (("bcc", "string", False), ("trick", "string", False))
    text = chained(install_connectors(home, says=says), *steps, inputs=inputs, more=more)
    (home / "actions" / "chain.md").write_text(text, encoding="utf-8")


@pytest.mark.parametrize("given", _SEND.values(), ids=_SEND)
async def test_what_the_last_question_shows_is_what_the_op_is_given(home: Path, given: str) -> None:
    """The resolved arguments, wherever in the inputs an earlier output stands."""
    put_chain(home, FIRST, (LAST, ECHO, False, given))

    async with Core.open(home) as core:
        trick = "${a.args.x} ${args.bcc} ${"
        (first, second), row = await all_the_way(core, {"trick": trick}, 2)
        got = received(row, LAST)
        assert step(second, LAST).status == "asked"
        assert sent(step(second, LAST)) == as_drawn(got)
        assert "${a." in json.dumps(sent(step(first, LAST)))
        assert "${a." not in json.dumps(list(got.values())).replace("${a.args.x} ${args", "")
        assert second.digest != first.digest


@pytest.mark.parametrize(
    ("steps", "asked"),
    [
        ((FIRST, (LAST, ECHO, False, 'y = "${a.args.x}"'), ("a.args", ECHO, False, 'x = "z"')), 2),
        (
            (
                FIRST,
                ("a.args", ECHO, True, 'x = "longer"'),
                (LAST, ECHO, False, 'y = "${a.args.args.x}"'),
            ),
            2,
        ),
        (
            (
                FIRST,
                (LAST, ECHO, False, 'y = "${a.args.x}"'),
                ("a.args", ECHO, False, 'x = "${a.args.x}"'),
                ("b", ECHO, False, 'x = "${a.args.args.x}"'),
            ),
            4,
        ),
    ],
    ids=["a longer id comes later", "a longer id came earlier", "both in turn"],
)
async def test_ids_with_dots_are_read_alike_in_the_question_and_in_the_run(
    home: Path, steps: tuple[Chain, ...], asked: int
) -> None:
    """A reference means the longest id among the steps before it, also while a later one is open."""
    put_chain(home, *steps)

    async with Core.open(home) as core:
        views, row = await all_the_way(core, {}, asked)
        for view in views[1:]:
            now = next(each for each in view.steps if each.status == "asked")
            assert sent(now) == as_drawn(received(row, now.step_id))
        assert len({view.digest for view in views}) == len(views)


@pytest.mark.parametrize(
    ("output", "text"),
    [
        (b'{"v":9223372036854775807}', "9223372036854775807"),
        (b'{"v":-170141183460469231731687303715884105728}', None),
        (b'{"v":1e400}', None),
        (b'{"v":"${args.bcc} ${a.v} ${"}', "${args.bcc} ${a.v} ${"),
        (b'{"v":"\\ud800 alone"}', None),
        (b'{"v":{"\\ud800":1}}', None),
        (b'{"v":null}', None),
        (b'{"v":NaN}', None),
        (b'{"v":' + b"[" * 60 + b"]" * 60 + b"}", None),
        (b'{"v":"\\u202e\\u0000\\u001b[2J"}', "\u202e\x00\x1b[2J"),
    ],
    ids=[
        "64 bits",
        "128 bits",
        "infinite",
        "like a reference",
        "half a pair",
        "half a pair in a key",
        "null",
        "not a number",
        "deep",
        "control characters",
    ],
)
async def test_a_hostile_output_is_shown_and_covered_as_it_is_or_ends_the_run(
    home: Path, output: bytes, text: str | None
) -> None:
    """What no digest can cover is never run; what can be is shown whole."""
    put_chain(home, ("a", SAYS, True, None), (LAST, ECHO, False, 'y = "${a.v}"'), says=output)

    async with Core.open(home) as core:
        answer = await core.call("chain", {})
        assert answer.row.approval_id is not None
        second = await answered(core, await core.looked(answer.row.approval_id))
        row = await core.result(second.approval_id)
        if second.ended_at is not None:
            assert text is None
            assert second.state == "failed"
            assert row.failure is not None
            assert row.output is None
            return
        if text is not None:
            assert sent(step(second, LAST)) == {"y": text}
        over = await answered(core, second)
        assert over.state == "completed"
        row = await core.result(second.approval_id)
        assert sent(step(second, LAST)) == as_drawn(received(row, LAST))


async def test_seven_mebibytes_of_output_are_covered_whole(home: Path) -> None:
    """A large answer in a question is neither cut nor in the way of the end."""
    size = 7 * 2**20
    output = b'{"v":"' + b"x" * size + b'"}'
    put_chain(home, ("a", SAYS, True, None), (LAST, ECHO, False, 'y = "${a.v}"'), says=output)

    async with Core.open(home) as core:
        (_, second), row = await all_the_way(core, {}, 2)
        assert len(sent(step(second, LAST))["y"]) == size
        assert len(received(row, LAST)["y"]) == size


async def test_thirty_steps_ask_thirty_times_and_each_runs_once(home: Path) -> None:
    """Each question is about one step, with what all before it returned."""
    steps: list[Chain] = [("s0", ECHO, False, 'x = "0"')]
    steps += [(f"s{n}", ECHO, False, f'x = "{n} after ${{s{n - 1}.args.x}}"') for n in range(1, 30)]
    put_chain(home, *steps)

    async with Core.open(home) as core:
        views, row = await all_the_way(core, {}, 30)
        for number, view in enumerate(views[1:], start=1):
            now = step(view, f"s{number}")
            assert now.status == "asked"
            assert sent(now) == as_drawn(received(row, now.step_id))
            done = [each.step_id for each in view.steps if each.status == "done"]
            assert done == [f"s{n}" for n in range(number)]
        assert len({view.digest for view in views}) == 30


async def test_a_step_without_inputs_gets_the_arguments_of_the_call_and_asks_nothing(
    home: Path,
) -> None:
    """Without a table of inputs the op gets the call's arguments; the first yes has seen them."""
    put_chain(home, FIRST, (LAST, ECHO, False, None), ("end", ECHO, False, ""))

    async with Core.open(home) as core:
        _, row = await all_the_way(core, {"bcc": "${a.args.x}"}, 1)
        assert received(row, LAST) == {"bcc": "${a.args.x}"}
        assert received(row, "end") == {}
