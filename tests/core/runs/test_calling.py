"""An agent's calls: which are new, which are the same, how many it may make, and what is compiled for them."""

import asyncio
import contextlib
from collections.abc import Sequence
from pathlib import Path

import pytest

from aileron_core.canonical import Json, JsonObject
from aileron_core.connectors.protocol import Connector, OpResult
from aileron_core.connectors.store import ConnectorStore
from aileron_core.connectors.wasm.connector import WasmConnector
from aileron_core.errors import CapabilityDenied, Conflict, InvalidArguments, NotFound, RateLimited
from aileron_core.runs.gate import GateAnswer
from aileron_core.runs.preview.fetcher import MAX_SHOWN_CHARACTERS, MAX_SHOWN_LINES
from aileron_core.server.agent_api import AgentApi, pending_body
from aileron_core.sessions.model import Session
from tests.support.core_harness import (
    DRAFT,
    PATIENCE,
    SEND_DRAFT,
    UPDATE_DRAFT,
    Core,
    Mailbox,
    Start,
    install_examples,
    run,
    writes,
)
from tests.support.frozen_clock import FrozenClock

SEEDS = ["r-8842190447", "r-8842190312", "r-8842189950", "r-8842189771", "r-8842188204"]


async def test_an_equal_call_is_the_same_until_it_is_told(core: Core, mailbox: Mailbox) -> None:
    view = await core.ask()
    again = await core.call()
    assert (again.attached, again.row.approval_id) == (True, view.approval_id)
    assert again.row.times_asked == 2
    # An agent that asks again and again does not keep the decide keys from arming.
    newest = core.views(view.approval_id)[-1]
    assert (newest.times_asked, newest.version) == (2, view.version)
    for other in (
        await core.call("send-draft", {"draft_id": SEEDS[1]}),
        await core.call(session=await core.another_session()),
    ):
        assert not other.attached
    await core.run(view)
    undelivered = await core.call()
    assert (undelivered.attached, undelivered.row.state) == (True, "completed")
    for _ in range(2):
        await core.app.approvals.mark_delivered(view.approval_id)
    assert len(await core.records("run.delivered")) == 1
    denied = (await core.call()).row
    assert denied.approval_id != view.approval_id
    await core.app.approvals.deny(denied.approval_id, "no")
    # Whoever asks once more is not told to wait for an answer that was given.
    row = (await core.call()).row
    message = pending_body(row, core.app.address.url, attached=True)["message"]
    assert (row.approval_id, row.state) == (denied.approval_id, "denied")
    assert "It has ended" in message
    assert "must approve" not in message
    assert len(mailbox.state()["sent"]) == 1


async def test_the_same_key_is_the_same_run_also_after_its_end_and_a_restart(start: Start) -> None:
    """Another call under it is a conflict; another key makes another run only of what asks nobody."""
    async with start() as core:
        args = {"id": DRAFT}
        twins = await asyncio.gather(*(core.call("get-draft", args, key="k1") for _ in range(4)))
        assert len({twin.row.run_id for twin in twins}) == 1
        assert {twin.row.state for twin in twins} == {"completed"}
        assert sum(not twin.attached for twin in twins) == 1
        assert (await core.call("get-draft", args, key="k1")).attached
        assert not (await core.call("get-draft", args, key="k2")).attached
        assert not (await core.call("get-draft", args)).attached
        other = await core.another_session()
        assert not (await core.call("get-draft", args, key="k1", session=other)).attached
        for action, given in (("get-draft", {"id": SEEDS[1]}), ("list-drafts", {})):
            with pytest.raises(Conflict, match="already used this idempotency key"):
                await core.call(action, given, key="k1")
        first = await core.call(key="s1")
        sent_again = await core.call(key="s1")
        assert sent_again.row.times_asked == 1, "the agent did not repeat it"
        for key in ("s2", None, "s3"):
            equal = await core.call(key=key)
            assert (equal.attached, equal.row.run_id) == (True, first.row.run_id)
        with pytest.raises(Conflict, match="already used this idempotency key"):
            await core.call("send-draft", {"draft_id": SEEDS[1]}, key="s2")
        await core.app.approvals.deny(first.row.approval_id, "")
        ended = await core.call(key="s4")
        assert ended.row.run_id == first.row.run_id, "its end was not delivered yet"
        await core.app.approvals.mark_delivered(first.row.approval_id)
        for key in ("s1", "s2", "s3", "s4"):
            same = await core.call(key=key)
            assert (same.row.run_id, same.row.state) == (first.row.run_id, "denied")
        anew = await core.call(key="s5")
        assert not anew.attached
        session = core.session
    async with start() as core:
        again = await core.call("get-draft", {"id": DRAFT}, key="k1", session=session)
        assert again.row.run_id == twins[0].row.run_id
        again = await core.call(key="s1", session=session)
        assert (again.row.run_id, again.row.state) == (first.row.run_id, "denied")


async def test_a_call_sent_again_is_told_its_end_whatever_would_refuse_it_now(core: Core) -> None:
    """The relay sends calls again after a restart; "nothing ran" would have an agent repeat what ran."""
    first = await core.call("get-draft", {"id": DRAFT}, key="k")
    await core.call(key="s")
    for name in ("get-draft", "send-draft"):
        (core.app.home.actions / f"{name}.md").unlink()
    await core.app.library.poll()
    again = await core.call("get-draft", {"id": DRAFT}, key="k")
    assert (again.attached, again.row.run_id) == (True, first.row.run_id)
    assert (await core.call(key="s")).attached
    for args, key in (({"id": DRAFT}, "other"), ({"id": SEEDS[1]}, "k")):
        with pytest.raises((Conflict, NotFound)):
            await core.call("get-draft", args, key=key)


@pytest.mark.parametrize("keys", [[None] * 8, [None, *"abcd"]], ids=["no key", "keys"])
async def test_equal_calls_at_once_are_one_approval(core: Core, keys: list[str | None]) -> None:
    """Looking a key up takes a moment, in which another call comes."""
    answers = await asyncio.gather(*(core.call(key=key) for key in keys))
    assert len({answer.row.approval_id for answer in answers}) == 1
    assert sum(not answer.attached for answer in answers) == 1


async def test_of_many_keys_of_one_approval_the_newest_are_known(core: Core) -> None:
    """An agent that repeats its call for ever fills no memory with their keys."""
    first = await core.call(key="own")
    for number in range(40):
        await core.call(key=f"k{number}")
    run = core.app.registry.by_key(core.session.session_id, "own")
    assert run.row.run_id == first.row.run_id
    known = [core.app.registry.by_key(core.session.session_id, f"k{n}") for n in range(40)]
    assert known == [None] * 24 + [run] * 16


async def test_a_gated_run_is_kept(
    core: Core, mailbox: Mailbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Attached while undelivered; regression: finished ungated runs pushed it out of memory."""
    monkeypatch.setattr(core.app.registry, "_MAX_RECENT", 4)
    view = await core.ask()
    await core.run(view)
    for _ in range(6):
        await core.call("get-draft", {"id": ""})  # refused by the connector at once
    again = await core.call()
    assert (again.attached, again.row.approval_id) == (True, view.approval_id)
    assert (len(list(core.app.registry)), len(mailbox.state()["sent"])) == (1, 1)


async def test_ends_push_out_no_other_sessions(core: Core, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else its agent would ask a person a second time for what was denied."""
    monkeypatch.setattr(core.app.registry, "_MAX_RECENT", 0)
    monkeypatch.setattr(core.app.registry, "_MAX_UNDELIVERED", 4)

    async def denied(number: int, session: Session | None = None) -> GateAnswer:
        answer = await core.call(args={"draft_id": f"r-{number}"}, session=session)
        await core.app.approvals.deny(answer.row.approval_id, "")
        return answer

    first = await denied(0)
    other = await core.another_session()
    for number in range(6):
        await denied(number, other)
    again = await core.call(args={"draft_id": "r-0"})
    assert (again.attached, again.row.approval_id) == (True, first.row.approval_id)
    assert not (await core.call(args={"draft_id": "r-0"}, session=other)).attached
    assert (await core.call(args={"draft_id": "r-5"}, session=other)).attached


async def test_twenty_wait_and_the_next_is_refused_until_one_is_answered(core: Core) -> None:
    answers = [await core.call(args={"draft_id": f"r-{n}"}) for n in range(20)]
    with pytest.raises(RateLimited, match="20 open gated calls"):
        await core.call(args={"draft_id": "r-20"})
    assert (await core.call(args={"draft_id": "r-3"})).attached
    other = await core.another_session()
    assert (await core.call(args={"draft_id": "r-20"}, session=other)).row.state == "pending"
    assert [r["class"] for r in await core.records("call.refused")] == ["rate_limited"]
    await core.app.approvals.deny(answers[0].row.approval_id, "")
    assert (await core.call(args={"draft_id": "r-20"})).row.state == "pending"


class Held:
    """A connector of the port that is prepared, and answers, only once the test lets it."""

    credential_requirement = consented_account = None
    account = ""

    def __init__(self, real: Connector, output: Json, *, prepared: bool) -> None:
        self.identity, self.hosts, self.hosts_for = real.identity, real.hosts, real.hosts_for
        self.prepared, self.output = prepared, output
        self.inside = self.most = self.waited_for = 0
        self.go = asyncio.Event()

    async def prepare(self, **_options: object) -> None:
        if not self.prepared:
            self.waited_for += 1
            await self.go.wait()
            self.prepared = True

    async def call(self, _op: str, _args: JsonObject, **_options: object) -> OpResult:
        assert self.prepared
        self.inside += 1
        self.most = max(self.most, self.inside)
        await self.go.wait()
        self.inside -= 1
        return OpResult(output=self.output)

    async def until_inside(self, count: int) -> None:
        async with asyncio.timeout(PATIENCE):
            while self.inside < count:
                await asyncio.sleep(0)


def put_in(core: Core, output: Json = None, *, prepared: bool = False) -> Held:
    ((digest, real),) = core.app.library._files.connectors.items()
    held = Held(real, output, prepared=prepared)
    core.app.library._files.connectors = {digest: held}  # type: ignore[dict-item]
    return held


async def test_a_session_has_four_previews_and_eight_ungated_calls_at_once(core: Core) -> None:
    """The others wait for one of them, and another session's do not: each takes a thread of all."""
    waiting = put_in(core, {}, prepared=True)
    answers = [await core.call(args={"draft_id": f"r-{n}"}) for n in range(6)]
    await waiting.until_inside(4)
    # Another session has four of its own, so one cannot starve the other.
    other = await core.another_session()
    answers.append(await core.call(session=other))
    await waiting.until_inside(5)
    calls = [asyncio.ensure_future(core.call("get-draft", {"id": f"r-{n}"})) for n in range(10)]
    await waiting.until_inside(5 + 8)
    calls.append(asyncio.ensure_future(core.call("get-draft", {"id": "r"}, session=other)))
    await waiting.until_inside(5 + 9)
    for _ in range(20):
        await asyncio.sleep(0)
    assert waiting.inside == 5 + 9
    waiting.go.set()
    for answer in answers:
        await core.looked(answer.row.approval_id)
    assert {(await call).row.state for call in calls} == {"completed"}
    assert waiting.most == 5 + 9


async def test_a_session_has_thirty_previews_in_a_minute(core: Core, clock: FrozenClock) -> None:
    """Each preview spends the person's credential before consent."""
    for n in range(31):
        view = await core.ask(f"r-{n}")
        assert ("30 previews" in view.preview.reason) == (n == 30)
        await core.app.approvals.withdraw(core.session.session_id, view.approval_id, "")
    # What a person's key causes is not bounded, and a minute later there is room again.
    view = await core.ask("r-31")
    assert "30 previews" in view.preview.reason
    await core.app.approvals.refresh(view.approval_id)
    assert "404" in core.views(view.approval_id)[-1].preview.reason
    clock.advance(61)
    assert "404" in (await core.ask("r-32")).preview.reason


async def test_what_does_not_fit_is_refused_before_anything_is_written_of_it(core: Core) -> None:
    for args in ({}, {"draft_id": 5}, {"draft_id": "x", "more": 1}, [], "\ud800"):
        with pytest.raises(InvalidArguments):
            await core.call("send-draft", args)  # type: ignore[arg-type]
    with pytest.raises(InvalidArguments):
        await core.call("send-draft", {"draft_id": "CANARY\ud800"})
    with pytest.raises(NotFound, match="no action"):
        await core.call("no-such\x1b[31m\ud800" * 40, {})
    await core.app.gate.refused_calls.sweep(everything=True)
    first, other, equal = await core.records("call.refused")
    assert [first["class"], other["class"]] == ["invalid_arguments", "not_found"]
    assert (equal["class"], equal["count"]) == ("invalid_arguments", 5)
    assert len(other["action"]) <= 128
    assert "CANARY" not in str(await core.records())
    query = "SELECT COUNT(*) FROM runs"
    assert await core.app.database.read(lambda c: c.execute(query).fetchone()) == (0,)


@pytest.mark.core(accept=False)
async def test_what_nobody_accepted_cannot_be_called(core: Core) -> None:
    library = core.app.library
    assert library.ready() == ()
    with pytest.raises(Conflict):
        await core.call("get-draft", {"id": DRAFT})
    not_accepted = {(view.kind, view.name): view for view in library.not_accepted()}
    connector = not_accepted["connector", "local://aileron/mail-drafts@0.1.0"]
    with pytest.raises(Conflict, match="changed while you were reviewing"):
        await library.accept("connector", connector.name, "sha256:0", by="person")
    await library.accept("connector", connector.name, connector.digest, by="person")
    with pytest.raises(Conflict):
        await core.call("get-draft", {"id": DRAFT})
    action = not_accepted["action", "get-draft"]
    await library.accept("action", action.name, action.digest, by="person")
    assert (await core.call("get-draft", {"id": DRAFT})).row.state == "completed"
    expected = [connector.name, "get-draft.md"]
    assert [r["name"] for r in await core.records("library.accepted")] == expected


async def test_a_caller_that_goes_away_leaves_a_whole_run(core: Core, mailbox: Mailbox) -> None:
    """Cancelling a held call never withdraws; regression: memory and row differed."""
    calling = asyncio.ensure_future(core.call())
    await asyncio.sleep(0)  # it is in the gate, its row is not written yet
    calling.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await calling
    again = await core.call()
    assert again.attached
    view = await core.looked(again.row.approval_id)
    assert (await core.run(view)).state == "completed"
    assert len(mailbox.state()["sent"]) == 1


@pytest.mark.actions(send_draft=SEND_DRAFT.replace('["send_draft"]', '["get_draft"]'))
async def test_nobody_is_asked_for_what_would_be_denied(start: Start, mailbox: Mailbox) -> None:
    """A gated action whose op is not among its capabilities: no tool of the agent's, and the list says why."""
    async with start(accept=False) as core:
        waiting = core.app.library.not_accepted()
        (not_accepted,) = (each for each in waiting if each.name == "send-draft")
        assert "send_draft is not among the capabilities" in not_accepted.cannot_run
    async with start() as core:
        with pytest.raises(CapabilityDenied, match="does not list the op send_draft") as caught:
            await core.call()
        assert caught.value.to_failure().details["requested"] == "send_draft"
        (refused,) = await core.records("call.refused")
        assert refused["class"] == "capability_denied"
        assert await core.records("run.requested") == []
        (item,) = (each for each in core.app.library.items() if each.name == "send-draft")
        assert (item.state, item.reason) == ("cannot_run", not_accepted.cannot_run)
        offered = [each["name"] for each in AgentApi(core.app).list_actions(core.session)["items"]]
        assert "get-draft" in offered
        assert "send-draft" not in offered
    assert writes(mailbox) == []


async def test_no_step_runs_where_a_later_one_would_be_denied(home: Path, mailbox: Mailbox) -> None:
    """Half of an action is not what anybody asked for."""
    first = '[[execute]]\nid = "a"\nconnector = "local://aileron/mail-drafts"\nop = "list_drafts"\n'
    text = UPDATE_DRAFT.replace("[[execute]]", f"{first}inputs = {{}}\n\n[[execute]]", 1)
    install_examples(home, update_draft=text.replace('["update_draft"]', '["list_drafts"]'))
    async with Core.open(home, mailbox) as core:
        row = (await core.call("update-draft", {"id": DRAFT})).row
        assert row.failure.class_ == "capability_denied"
    assert writes(mailbox) == []


async def test_a_preview_counts_once_its_connector_is_ready(core: Core, clock: FrozenClock) -> None:
    """The service is not "asked" for ten of at most five seconds while a compiler runs."""
    compiling = put_in(core, {"text": "hello"})
    answer = await core.call()
    approval = answer.row.approval_id or ""
    view = await core.view(approval, lambda v: v.preview.preparing)
    assert (view.preview.status, compiling.most) == ("fetching", 0)
    asked = view.preview.updated_at
    clock.advance(12)
    compiling.go.set()
    view = await core.view(approval, lambda v: not v.preview.preparing, after=view.version)
    assert (view.preview.status, view.preview.updated_at) == ("fetching", asked + 12)
    assert (await core.looked(approval)).preview.status == "ready"


@pytest.mark.actions(update_draft=UPDATE_DRAFT)
async def test_calls_of_other_connectors_do_not_wait_for_one_that_is_prepared(core: Core) -> None:
    """The same session goes on: four previews and eight calls at once were all it had."""
    real = dict(core.app.library._files.connectors)
    compiling = put_in(core)
    for number in range(5):
        await core.call(args={"draft_id": f"r-{number}"})
    waiting = [asyncio.create_task(core.call("update-draft", {"id": DRAFT})) for _ in range(9)]
    async with asyncio.timeout(PATIENCE):
        while compiling.waited_for < 14:
            await asyncio.sleep(0)
    core.app.library._files.connectors = real
    assert (await core.call("get-draft", {"id": DRAFT})).row.state == "completed"
    assert (await core.ask()).preview.status == "ready"
    assert not any(call.done() for call in waiting)
    compiling.go.set()
    assert {(await call).row.state for call in waiting} == {"completed"}


@pytest.mark.parametrize(
    "text", ["x" * (MAX_SHOWN_CHARACTERS + 1), "\n" * MAX_SHOWN_LINES], ids=["long", "lines"]
)
async def test_a_preview_that_nobody_could_read_is_not_drawn(core: Core, text: str) -> None:
    """Drawing megabytes kept the console busy for half a minute; what is not shown may be as large."""
    compiling = put_in(core, {"text": text})
    compiling.go.set()
    view = await core.ask()
    assert (view.preview.status, view.preview.fields) == ("unavailable", ())
    assert "1,048,576 and 20,000 at most" in view.preview.reason
    compiling.output = {"text": text[10:], "raw": text * 2}
    assert (await core.ask("r-2")).preview.status == "ready"


def test_most_used_is_first(home: Path, monkeypatch: pytest.MonkeyPatch, mailbox: Mailbox) -> None:
    install_examples(home)
    store = ConnectorStore(home)
    (mail,) = (each.identity for each in store.list())
    other = store.install_bytes(
        store.read(mail.hash)[0],
        b'[connector]\nname = "local://aileron/other"\nversion = "1.0.0"\n'
        b'[capabilities.network]\nhosts = ["gmail.googleapis.com:443"]\n',
    )
    used = (
        UPDATE_DRAFT.replace("update-draft", "use-other")
        .replace('local://aileron/mail-drafts"', 'local://aileron/other"')
        .replace('version = "0.1.0"\nhash', 'version = "1.0.0"\nhash')
        .replace(mail.hash, other.identity.hash)
    )
    (home / "actions" / "use-other.md").write_text(used, encoding="utf-8")
    prepared: list[str] = []
    first = WasmConnector.prepare

    async def prepare(self: WasmConnector, *, background: bool = False) -> None:
        if background:
            prepared.append(self.identity.fqn)
        await first(self, background=background)

    async def calls(names: Sequence[str], mailbox: Mailbox) -> None:
        prepared.clear()
        async with Core.open(home, mailbox) as core:
            for name in names:
                await core.call(name, {"id": DRAFT})
            await core.until(lambda: len(prepared) == 2 or None)

    monkeypatch.setattr(WasmConnector, "prepare", prepare)
    run(calls(["use-other"] * 2, mailbox))
    run(calls(["get-draft"] * 3, mailbox))
    assert prepared[0] == "local://aileron/other"
    run(calls([], mailbox))
    assert prepared[0] == "local://aileron/mail-drafts"
