"""Random grants, calls, drifts and revocations through the real store: no effect without a live match at its start."""

import asyncio
import os
import random
from collections import Counter
from collections.abc import Awaitable
from pathlib import Path
from typing import Any, Final

import pytest

from aileron_core.console_port.intents import Approve, EndGrant, SetPause
from aileron_core.errors import AileronError
from aileron_core.runs import LiveRun
from aileron_core.runs.transitions import RunEvent
from tests.support.core_harness import Core, Mailbox, install_examples, open_session, readdress
from tests.support.granting import offers, terms_of

STEPS: Final = 2000 if os.environ.get("HYPOTHESIS_PROFILE") == "deep" else 200
DRAFTS = ("r-8842190447", "r-8842190312")
WHO = ("a@b.example", "x@evil.example", "Anna Brandt <anna.brandt@nordlicht.example>")


async def waiting(core: Core) -> list[LiveRun]:
    await core.until(
        lambda: not any(run.is_tried and not run.is_final for run in core.app.registry)
    )
    return [run for run in core.app.registry if run.row.state == "pending" and run.row.digest]


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
            step = pick.choice(
                ("call",) * 6 + ("grant", "grant", "drift", "revoke", "pause", "deny")
            )
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
                    shapes = (await offers(core, view)).offers
                    if not shapes:
                        continue
                    uses, scope = pick.randint(1, 9), pick.choice(("session", "project"))
                    number = pick.choice((shapes[-1], *shapes)).number
                    terms = await terms_of(core, view, number, uses=uses, scope=scope)
                    await core.do(
                        Approve(approval_id=view.approval_id, digest=view.digest, grant=terms)
                    )
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
