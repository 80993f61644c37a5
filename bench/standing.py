"""Rules and grants: reading and matching a call of 20 fields, and trying a new shape on the last 500 answers.

Floors: of the call, the SHA-256 of its arguments that each call is compared by anyway; of the past, the same sealed
screens opened and read as JSON, and nothing else.
"""

import asyncio
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from aileron_core.actions.model import Action, Approval, Input, Preview, Step
from aileron_core.console_port.field_views import FieldView, PreviewView
from aileron_core.console_port.intents import Deny
from aileron_core.console_port.standing import FieldTest
from aileron_core.history.sealing import unseal_with_day
from aileron_core.policy.shapes import misfits
from aileron_core.policy.values import values_of
from aileron_core.runs.model import args_hash
from aileron_core.vault.secret import Secret
from bench.support import Aims, amount
from examples.mailbox import Mailbox
from tests.support.core_harness import DRAFT, PASSPHRASE, Core, install_examples, open_session

ROUNDS = amount(2000, check=20)
ANSWERS = amount(500, check=20)
TEXT = "Hi Anna, here are the figures before the meeting on Thursday. Best, Jana. " * 3
TESTS = ("is", "plain", "any", "only")


def _seconds(do: Callable[[], object], rounds: int) -> float:
    began = time.perf_counter()
    for _ in range(rounds):
        do()
    return (time.perf_counter() - began) / rounds


def _match(aims: Aims) -> None:
    names = [f"a{number}" for number in range(10)]
    action = Action(
        name="act", version="1.0.0", source="local://a/b@1.0.0", requires=(), intent="x",
        inputs=tuple(Input(name=each, type="string", description="x") for each in names),
        steps=(Step(id="s", connector="local://a/b", op="o"),),
        approval=Approval(preview=Preview(op="look", render=tuple((each, each) for each in names))),
    )  # fmt: skip
    given = [FieldView(label=each, value=TEXT) for each in names]
    preview = PreviewView(status="ready", fields=tuple(given))
    arguments = dict.fromkeys(names, TEXT)
    values = values_of(action, given, preview)
    fixed = {"is": (TEXT,), "only": (TEXT, "x"), "plain": ("2000",), "any": ()}
    shape = {key: FieldTest(TESTS[at % 4], fixed[TESTS[at % 4]]) for at, key in enumerate(values)}
    assert not misfits(shape, values)
    floor = _seconds(lambda: args_hash(arguments, None), ROUNDS)
    took = _seconds(lambda: misfits(shape, values_of(action, given, preview)), ROUNDS)
    matched = _seconds(lambda: misfits(shape, values), ROUNDS)
    print(
        f"  20 fields: read and matched {took * 1e6:.0f} us, matched alone {matched * 1e6:.0f} us"
    )
    print(f"  ratio to the floor (hash of the arguments, {floor * 1e6:.0f} us): {took / floor:.1f}")
    aims.at_most("20 fields read and matched, us", took * 1e6, 200)


async def _past(aims: Aims, home: Path, mailbox: Mailbox) -> None:
    install_examples(home)
    async with Core.open(home, mailbox) as core:
        core.app.vault.create(Secret(PASSPHRASE))
        await core.until_record("library.authenticated", 3)
        for number in range(ANSWERS):
            if number % 10 == 0:
                core.session = (await open_session(core.app, opened_by="launch")).session
            view = await core.ask()
            await core.do(Deny(approval_id=view.approval_id, reason="no"))
            await core.app.approvals.mark_delivered(view.approval_id)
        past, action = core.app.grants.past, core.app.library.find("send-draft").action
        tests = (("args.draft_id", FieldTest("is", (DRAFT,))),)
        screens = await past.screens.newest(ANSWERS)
        began = time.perf_counter()
        for each in screens:
            json.dumps(unseal_with_day(each.row.sealed, each.row.label, past.screens.keys))
        floor = time.perf_counter() - began
        took = list[float]()
        for _ in range(3):
            began = time.perf_counter()
            _, looked_at, _ = await past.matching(action, tests)
            took.append(time.perf_counter() - began)
        assert looked_at == ANSWERS
    print(f"  {ANSWERS} answers tried: first {took[0] * 1e3:.0f} ms, then {took[-1] * 1e3:.0f} ms")
    print(f"  ratio to the floor (opened as JSON, {floor * 1e3:.0f} ms): {took[0] / floor:.1f}")
    aims.at_most("first trial, ms", took[0] * 1e3, 500)
    aims.at_most("later trial, ms", took[-1] * 1e3, 100)


def main() -> None:
    aims = Aims()
    print("standing: rules and grants")
    _match(aims)
    with tempfile.TemporaryDirectory() as folder, Mailbox() as mailbox:
        asyncio.run(_past(aims, Path(folder), mailbox))
    aims.report()
