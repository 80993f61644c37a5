"""Rules of `policy.toml` and grants answer calls by what was fetched; whatever they do not mean waits for the person."""

import asyncio
import re
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import ExitStack, asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from aileron_core.console_port import intents
from aileron_core.console_port.account_views import AccountNeed
from aileron_core.console_port.standing import FieldTest, GrantTerms
from aileron_core.console_port.view_models import ApprovalView
from aileron_core.errors import Conflict
from aileron_core.policy.model import Decision, Policy, Verdict
from aileron_core.policy.policy_file import parse_policy
from aileron_core.runs import GateAnswer, LiveRun
from aileron_core.runs.grants import Grant
from aileron_core.runs.interfaces import ResolvedAction
from aileron_core.runs.model import RunRecord
from aileron_core.runs.transitions import RunState
from aileron_core.vault.secret import Secret
from aileron_tui.draw.document import approval_blocks
from aileron_tui.draw.text import plain_text
from tests.support.core_harness import (
    DRAFT,
    PASSPHRASE,
    Core,
    Mailbox,
    Start,
    change_rows,
    hold_answers,
    install_examples,
    open_session,
    readdress,
    run_on_request,
    writes,
)
from tests.support.frozen_clock import FrozenClock
from tests.support.granting import call_as_launched, grant, offers_of, terms_of

GET, PUT = f"GET {DRAFT}", f"PUT {DRAFT}"
READDRESS = readdress('reach = ["To"]\n')
ANNA = "Anna Brandt <anna.brandt@nordlicht.example>"
ALLOWED = f"""
[[rule]]
actions = ["readdress"]
decision = "allow"
where = {{ "args.id" = "any", "args.to" = {{ only = ["{ANNA}"] }}, "fetched.To" = {{ is = "{ANNA}" }}, "fetched.Subject" = "any" }}
"""


def policy(text: str) -> Policy:
    """Return the rules of *text*; as of no file, they count without being accepted."""
    return replace(parse_policy(text), text="")


@asynccontextmanager
async def opened(
    home: Path, mailbox: Mailbox, rules: str = "", action: str = READDRESS, **more: Any
) -> AsyncGenerator[Core, None]:
    install_examples(home, readdress=action)
    async with Core.open(home, mailbox, policy=policy(rules), **more) as core:
        await call_as_launched(core)
        yield core


@pytest.fixture
def opens(tmp_path: Path, mailbox: Mailbox) -> Start:
    """Opens a core with the text of `policy.toml` and of `readdress`, and other options of `Core.open`."""
    return partial(opened, tmp_path, mailbox)


async def end(core: Core, answer: GateAnswer) -> RunRecord:
    """Return the run once the agent has its result, or it waits for the person."""
    approval = answer.row.approval_id or ""
    run = core.app.registry.by_approval(approval)
    assert run is not None
    await core.until(lambda: run.is_final or (run.is_waiting and not run.is_tried) or None)
    await core.app.approvals.mark_delivered(approval)
    return run.row


async def called(core: Core, to: str, **more: str) -> RunRecord:
    """Call `readdress`, and return its run as `end` does."""
    return await end(core, await core.call("readdress", {"id": DRAFT, "to": to, **more}))


async def granted(core: Core, to: str = ANNA, **more: Any) -> Grant:
    """Ask for `readdress`, and grant the shape 3 beside the call."""
    return await grant(core, await core.ask_for("readdress", {"id": DRAFT, "to": to}), 3, **more)


async def test_a_rule_answers_unseen_and_is_on_record(opens: Start, mailbox: Mailbox) -> None:
    async with opens(ALLOWED) as core:
        row = await called(core, ANNA)
        assert (row.state, row.decided_by) == ("completed", "policy.toml:2")
        assert (core.views(row.approval_id or ""), writes(mailbox)[-1]) == ([], PUT)
        (record,) = await core.records("approval.standing")
        labels = ["args.id", "args.to", "fetched.To", "fetched.Subject"]
        assert (record["by"], record["looked_at"]) == ("policy.toml:2", labels)
        assert ANNA not in str(await core.records())
    async with opens() as core:  # another console has it of the record
        said = "allowed by policy.toml:2, which looked at args.id, args.to, fetched.To, fetched.Subject"
        assert (await core.opened(row.run_id)).approval.rule == said


@pytest.mark.parametrize(
    ("rule", "args", "state"),
    [
        ('decision = "allow"\nwhere = { "args.id" = "any" }', {"id": DRAFT}, "pending"),
        ('decision = "allow"\nother_args = "any"', {"id": DRAFT, "bcc": "a@b.example"}, "completed"),
        ('decision = "deny"\nwhere = { "args.to" = { within = "evil.example" } }', {"id": DRAFT, "to": "x@EVIL.example"}, "denied"),
        ('decision = "deny"\nwhere = { "fetched.Subject" = { like = "*numbers" } }', {"id": DRAFT}, "denied"),
        ('decision = "deny"\nwhere = { "fetched.Subject" = "absent" }', {"id": DRAFT}, "pending"),
        ('decision = "allow"\nother_args = "any"\nagents = ["codex"]', {"id": DRAFT}, "pending"),
        ('decision = "allow"\nother_args = "any"\ncontained = true', {"id": DRAFT}, "pending"),
        ('decision = "allow"\nother_args = "any"\neffects = ["send"]', {"id": DRAFT}, "pending"),
    ],
)  # fmt: skip
async def test_what_a_rule_does_not_mean_waits_for_the_person(
    opens: Start, mailbox: Mailbox, rule: str, args: dict[str, str], state: str
) -> None:
    async with opens(f'[[rule]]\nactions = ["read*"]\n{rule}') as core:
        answer = await core.call("readdress", args)
        if answer.row.state is RunState.DENIED:
            assert writes(mailbox) == []  # by its arguments alone, before anything is fetched
            assert state == "denied"
        else:
            assert (await end(core, answer)).state == state


async def test_a_rule_asks_without_a_preview_and_of_what_is_free(opens: Start) -> None:
    rules = (
        '[[rule]]\nactions = ["readdress"]\ndecision = "deny"\nwhere = { "fetched.To" = "absent" }\n'
        '[[rule]]\nactions = ["get-draft"]\ndecision = "ask"\nreason = "I look at mail myself"\n'
        '[[rule]]\nactions = ["list-*"]\ndecision = "deny"\n'
    )
    async with opens(rules) as core:
        lost = await end(core, await core.call("readdress", {"id": "r-1"}))
        assert lost.state == "pending"
        (view,) = core.views(lost.approval_id or "")
        assert view.rule == "a field that policy.toml:1 is about cannot be read"
        asked = await end(core, await core.call("get-draft", {"id": DRAFT}))
        assert (asked.state, asked.gated) == ("pending", True)
        denied = await core.call("list-drafts", {})
        assert denied.row.state == "denied"
    named = (
        '[[rule]]\nactions = ["get-*"]\neffects = ["read"]\ndecision = "allow"\nother_args = "any"\n'
        '[[rule]]\nactions = ["get-*"]\ndecision = "allow"\nwhere = { "args.id" = { within = "a.example" } }\n'
    )
    async with opens(named) as core:  # what a read's address could carry away
        ids = (DRAFT, "https://a.example/x", "https://evil.example/?secret", "evil.example/?secret")
        states = [(await core.call("get-draft", {"id": each})).row.state for each in ids]
        assert states == ["completed", "failed", "pending", "pending"]
        for run in [each for each in core.app.registry if each.is_waiting]:
            assert (await end(core, GateAnswer(row=run.row, attached=False))).state == "pending"


async def test_a_grant_answers_calls_of_its_shape_alone(opens: Start, mailbox: Mailbox) -> None:
    async with opens() as core:
        view = await core.ask_for("readdress", {"id": DRAFT, "to": ANNA})
        offered = await offers_of(core, view)
        assert [each.number for each in offered.offers] == [1, 3]
        made = await grant(core, view, 3)
        (record,) = await core.records("approval.approved")
        assert record["grant"]["tests"]["fetched.To"] == "is"
        row = await end(core, await core.call("readdress", {"id": DRAFT, "to": ANNA}, key="again"))
        assert (row.state, row.decided_by) == ("completed", "grant g1")
        assert (made.view.used, made.view.calls) == (1, (row.run_id,))
        # An argument that was not there, another recipient by now, another session: each asks.
        more = await called(core, ANNA, bcc=ANNA)
        mailbox.control(change={"id": DRAFT, "to": "anna.brandt@nordl1cht.example"})
        other = await called(core, "x@y.example")
        await call_as_launched(core)
        mailbox.control(change={"id": DRAFT, "to": ANNA})
        session = await called(core, ANNA)
        assert [each.state for each in (more, other, session)] == ["pending"] * 3
        (view,) = core.views(more.approval_id or "")
        assert view.rule == "grant g1 does not answer this, because of args.bcc"


async def test_a_call_that_came_back_is_tried_no_more(
    opens: Start, tmp_path: Path, mailbox: Mailbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not after the vault was locked and unlocked, and not by another console."""
    async with opens(ALLOWED) as core:
        with monkeypatch.context() as once:
            once.setattr(core.app.standing, "still_holds", lambda _: False)
            answer = await core.call("readdress", {"id": DRAFT, "to": ANNA})
            assert (await end(core, answer)).state == "pending"
        need = AccountNeed(connector="x", reason="locked", kind="", candidates=())
        with monkeypatch.context() as locked:
            locked.setattr(core.app.accounts, "assign", lambda connectors, *_: (connectors, need))
            await core.app.account_waits.sweep()
        await core.app.account_waits.sweep()
        assert (await end(core, answer)).state == "pending"
    async with Core.open(tmp_path, mailbox, policy=policy(ALLOWED)) as core:
        await core.looked(answer.row.approval_id)
        assert (await end(core, answer)).state == "pending"
        assert PUT not in writes(mailbox)


async def test_an_argument_changes_nothing_of_what_a_call_reaches(opens: Start) -> None:
    """The fetched recipient is the same; the argument says who becomes it."""
    changes = 'changes = { To = "${args.to}" }\nreach = ["To"]\n'
    async with opens(action=readdress(changes)) as core:
        await granted(core)
        row = await called(core, "x@evil.example")
        assert row.state == "pending"


async def test_no_grant_is_used_more_often_than_it_says(opens: Start, mailbox: Mailbox) -> None:
    async with opens() as core:
        made = await granted(core, uses=7, scope="project")
        sessions = [(await open_session(core.app, opened_by="launch")).session for _ in range(5)]
        args = [{"id": DRAFT, "to": f"{n}@a.example"} for n in range(10)]
        calls = [core.call("readdress", a, session=each) for a in args for each in sessions]
        ended = [await end(core, each) for each in await asyncio.gather(*calls)]
        ran = [row for row in ended if row.decided_by == "grant g1"]
        assert len(ran) <= 7
        assert made.view.used == writes(mailbox).count(PUT) - 1 == len(ran)
        assert {row.state for row in ended} <= {"completed", "pending"}


@pytest.mark.parametrize("stop", ["revoke", "pause", "lock", "session", "all"])
async def test_a_call_whose_grant_ended_waits(opens: Start, mailbox: Mailbox, stop: str) -> None:
    held = list[Callable[[], Awaitable[None]]]()
    with ExitStack() as stack:

        def failpoint(name: str) -> None:
            if name == "after approval.standing":
                held.append(stack.enter_context(hold_answers(mailbox, GET)))

        async with opens(failpoint=failpoint) as core:
            core.app.vault.create(Secret(PASSPHRASE))
            made = await granted(core)
            answer = await core.call("readdress", {"id": DRAFT, "to": "x@y.example"})
            await core.until(lambda: held or None)
            await held[0]()
            if stop == "session":
                await core.app.session_service.end(core.session.session_id, "over", by="person")
            else:
                stops = {"pause": intents.SetPause(paused=True), "lock": intents.LockVault()}
                stops |= {
                    "revoke": intents.EndGrant(grant_id=made.view.grant_id),
                    "all": intents.StopEverything(),
                }
                await core.do(stops[stop])
            stack.close()
            row = await end(core, answer)
            assert row.state == ("denied" if stop == "all" else "pending")
            assert writes(mailbox).count(PUT) == 1


async def test_a_grant_ends_beside_what_drifts(opens: Start, mailbox: Mailbox) -> None:
    async with opens() as core:
        view = await core.ask_for("readdress", {"id": DRAFT, "to": ANNA})
        terms = await terms_of(core, view, 3)
        mailbox.control(change={"id": DRAFT, "to": "mallory@evil.example"})
        await core.app.approvals.approve(view.approval_id, view.digest, grant=terms)
        await core.looked(view.approval_id, after=view.version)
        await core.until(lambda: not list(core.app.standing.grants) or None)
        (record,) = await core.until_record("grant.ended")
        assert record["summary"] == "The grant g1 ended: the call beside it waits again"


async def test_a_grant_rests_until_a_difference_is_seen(opens: Start, mailbox: Mailbox) -> None:
    """The service stored another recipient: there is a row, and later calls of the shape wait."""
    changes = 'changes = { To = "${args.to}" }\nreach = ["Subject"]\n'
    async with opens(action=readdress(changes)) as core:
        view = await core.ask_for("readdress", {"id": DRAFT, "to": "one@a.example"})
        made = await grant(core, view, 3)
        await core.read_back(view)
        eve = {"change": {"id": DRAFT, "to": "eve@evil.example"}}
        change = partial(run_on_request, mailbox, GET, lambda: mailbox._state.apply(eve))
        run_on_request(mailbox, PUT, change)
        row = await called(core, "two@a.example")
        assert row.decided_by == "grant g1"
        seen = await core.until(lambda: (core.views(row.approval_id or "") or [None])[-1])
        assert made.view.rests == "the service holds something else"
        later = await called(core, "c@a.example")
        assert later.state == "pending"
        await core.do(intents.MarkReadBackSeen(run_id=seen.run_id))
        assert made.view.rests == ""


async def test_a_session_that_opened_itself_has_no_grants(opens: Start, tmp_path: Path) -> None:
    """Though it says that it is the agent, at the place, for which one was made."""
    async with opens() as core:
        await granted(core, scope="project")
        own, core.session = core.session, (await open_session(core.app)).session
        row = await called(core, ANNA)
        assert row.state == "pending"
        view = await core.looked(row.approval_id)
        assert "opened itself" in (await offers_of(core, view)).why_none
        core.session = own  # whose grant ends with the file of its action
        other = READDRESS.replace("0.1.0", "0.1.1", 1)
        (tmp_path / "actions" / "readdress.md").write_text(other)
        await core.app.library.load()
        await core.app.library.accept_all()
        (record,) = await core.until_record("grant.ended")
        assert record["summary"] == "The grant g1 ended: its action has changed"
        row = await called(core, ANNA)
        assert row.state == "pending"


async def test_a_denial_that_stands_goes_over_a_rule_that_allows(opens: Start) -> None:
    """Also for the agent's own session; without a row. The agent reads that it is a boundary."""
    async with opens(ALLOWED.replace("readdress", "read*")) as core:
        core.session = (await open_session(core.app)).session
        view = await core.ask_for("readdress", {"id": DRAFT, "to": "x@y.example"})
        tests = (("args.to", FieldTest("is", ("x@y.example",))),)
        other = (("args.to", FieldTest("is", ("else@y.example",))),)
        stands = GrantTerms(decision="deny", tests=tests, seconds=60, uses=100)
        with pytest.raises(Conflict, match="not one of those"):
            await core.app.approvals.deny(view.approval_id, "", grant=replace(stands, tests=other))
        await core.app.approvals.deny(view.approval_id, "no", grant=stands)
        await core.app.approvals.mark_delivered(view.approval_id)
        for to, by in (("X@y.example", "grant d1"), (ANNA, "policy.toml:2")):
            row = await called(core, to)
            assert (row.decided_by, core.views(row.approval_id or "")) == (by, [])
            said = row.failure.message if row.failure is not None else ""
            boundary = r"A person denied calls like this until ..:..\. Nothing ran\. Do not try .*"
            assert re.fullmatch(boundary if by == "grant d1" else "", said)


async def test_no_grant_is_made_that_was_not_offered(opens: Start) -> None:
    async with opens('[[rule]]\nactions = ["re*"]\ndecision = "ask"\ngrants = false\n') as core:
        view = await core.ask_for("readdress", {"id": DRAFT})
        assert "policy.toml:1 has it asked" in (await offers_of(core, view)).why_none
        view = await core.ask()
        terms = await terms_of(core, view, 1)
        wrong = {"fetched.To": FieldTest("is", ("someone else",)), "fetched.Body": FieldTest("any")}
        for key, test in wrong.items():
            tests = tuple((k, test if k == key else t) for k, t in terms.tests)
            other = replace(terms, tests=tests)
            with pytest.raises(Conflict, match="Nothing was decided"):
                await core.app.approvals.approve(view.approval_id, view.digest, grant=other)
        assert core.live(view).row.state == "pending"


async def test_no_grant_runs_what_a_denying_rule_could_not_read(opens: Start) -> None:
    rule = '[[rule]]\nactions = ["readdress"]\ndecision = "deny"\nwhere = { "args.to" = { within = "evil.example" } }\n'
    subject = readdress('reach = ["Subject"]\n')
    async with opens(rule, action=subject) as core:
        await granted(core, "sam@helio.example")
        fine = await called(core, "jo@helio.example")
        odd = {"id": DRAFT, "to": "x@evil.example; y@helio.example"}
        asked = await end(core, await core.call("readdress", odd))
        assert (fine.decided_by, asked.state) == ("grant g1", "pending")


async def test_a_call_that_may_be_answered_is_in_no_list(
    opens: Start, mailbox: Mailbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not in the console's, nor in the review page's, nor does the agent read that a person is asked."""
    async with opens(ALLOWED) as core:
        with hold_answers(mailbox, GET) as reached:
            answer = await core.call("readdress", {"id": DRAFT, "to": ANNA})
            await reached()
            lists = (core.app.publisher.first_waiting(), core.app.publisher.first_approvals())
            assert [found for found, _ in lists] == [(), ()]
            assert core.app.console.status()["pending"] == 0
        assert (await end(core, answer)).state == "completed"
        need = AccountNeed(connector="x", reason="locked", kind="", candidates=())
        with monkeypatch.context() as locked:
            locked.setattr(core.app.accounts, "assign", lambda connectors, *_: (connectors, need))
            waits = await core.call("readdress", {"id": DRAFT, "to": ANNA})
        await core.app.account_waits.sweep()
        row = await end(core, waits)
        assert row.decided_by == "policy.toml:2"
        assert core.views(row.approval_id or "")[-1].state == "completed"


async def test_a_grant_rests_after_an_unknown_outcome(
    opens: Start, mailbox: Mailbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    action = readdress('reach = ["To"]\n').replace("idempotent = true\n", "")
    async with opens(action=action) as core:
        made = await granted(core, "a@a.example", changed={"fetched.To": FieldTest("any")})
        both, carry_out = asyncio.Event(), core.app.approvals.runner.run

        async def once_both_are_answered(run: LiveRun) -> None:
            await both.wait()
            await carry_out(run)

        monkeypatch.setattr(core.app.approvals.runner, "run", once_both_are_answered)
        args = [{"id": each, "to": "b@a.example"} for each in (DRAFT, "r-8842190312")]
        answers = [await core.call("readdress", each) for each in args]
        await core.until(lambda: len(made.reserved) == 2 or None)
        mailbox.control(lose_answer="update")
        both.set()
        ended = [await end(core, each) for each in answers]
        lost, held = sorted(ended, key=lambda each: each.state != "unknown")  # either may go first
        assert (lost.state, held.state) == ("unknown", "pending")
        assert made.view.rests == "outcome unknown"
        assert (await called(core, "c@a.example")).state == "pending"
        await core.do(intents.Acknowledge(call_id=lost.approval_id or "", looked_at=None))
        assert made.view.rests == ""


async def test_a_grant_ends_with_its_time_which_no_use_of_it_renews(opens: Start) -> None:
    clock = FrozenClock()
    subject = readdress('reach = ["Subject"]\n')
    async with opens(action=subject, clock=clock) as core:
        made = await granted(core, "a@a.example", seconds=900)
        ends_at = made.view.ends_at
        clock.advance(890)
        used = await called(core, "b@a.example")
        assert (used.decided_by, made.view.ends_at) == ("grant g1", ends_at)
        clock.advance(11)
        late = await called(core, "c@a.example")
        assert late.state == "pending"
        (record,) = await core.until_record("grant.ended")
        assert record["summary"] == "The grant g1 ended: its time is over"


async def test_no_row_makes_a_grant(opens: Start, tmp_path: Path, mailbox: Mailbox) -> None:
    """Nor does one that says that a grant answered a call; and with the console each grant is gone."""
    async with opens() as core:
        view = await core.ask_for("readdress", {"id": DRAFT, "to": ANNA})
        change_rows(tmp_path, "UPDATE runs SET decided_by = 'grant g1', state = 'approved'")
        again = await called(core, ANNA)
        assert (again.run_id, again.state) == (view.run_id, "pending")
    async with opens() as core:
        view = await core.ask_for("readdress", {"id": DRAFT, "to": "sam@helio.example"})
        await grant(core, view, 1, scope="project")
        before = writes(mailbox).count(PUT)
    async with opens() as core:
        assert list(core.app.standing.grants) == []
        row = await called(core, ANNA)
        assert (row.state, writes(mailbox).count(PUT)) == ("pending", before)


RULE = "files of this name may hold secrets"


def have_rules_say(core: Core, decision: Decision, monkeypatch: pytest.MonkeyPatch) -> None:
    find = core.app.library.find
    verdict = Verdict(decision=decision, reason=RULE, about="a/.env")

    def judged(name: str) -> ResolvedAction:
        return replace(find(name), verdict=verdict)

    monkeypatch.setattr(core.app.library, "find", judged)


def drawn_rule(view: ApprovalView) -> str:
    rows = [block for block in approval_blocks(view, 0.0) if plain_text(block.label) == "RULES"]
    return "".join(plain_text(block.pieces) for block in rows)


async def test_an_item_says_why_it_is_asked(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    async with start() as core:
        have_rules_say(core, "ask", monkeypatch)
        view = await core.ask()
        assert drawn_rule(view) == f"asked because: {RULE}: a/.env"
        (record,) = await core.records("run.requested")
        assert record["rule"] == RULE
    async with start() as core:
        again = await core.looked(view.approval_id)
        assert drawn_rule(again) == f"asked because: {RULE}"
        await core.run(again)
    async with start() as core:
        assert drawn_rule((await core.opened(view.run_id)).approval) == f"asked because: {RULE}"


async def test_what_ran_or_was_denied_says_why(core: Core, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of other calls no rule is said."""
    assert drawn_rule(await core.ask()) == ""
    have_rules_say(core, "allow", monkeypatch)
    ran = await core.call("list-drafts", {})
    have_rules_say(core, "deny", monkeypatch)
    denied = await core.call("list-drafts", {})
    assert [denied.row.state, denied.row.gated] == ["denied", False]
    shown = (await core.opened(ran.row.run_id)).approval
    assert drawn_rule(shown) == f"ran without asking because: {RULE}: a/.env"
    shown = (await core.opened(denied.row.run_id)).approval
    assert drawn_rule(shown) == f"denied because: {RULE}: a/.env"
    (record,) = await core.records("run.denied_by_rule")
    assert record["rule"] == RULE
