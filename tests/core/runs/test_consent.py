"""What a person's yes covers, exactly what stood on the screen; and of several answers at most one wins."""

import asyncio
import base64
import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from aileron_core.console_port.view_models import ApprovalView
from aileron_core.errors import Conflict, NotFound
from aileron_core.settings import Settings
from tests.support.core_harness import (
    DRAFT,
    UPDATE_DRAFT,
    Core,
    Mailbox,
    Start,
    change_rows,
    hold_answers,
    install_examples,
    readdress,
    writes,
)
from tests.support.frozen_clock import FrozenClock


async def test_a_yes_sends_what_was_shown_and_tells_its_words(core: Core, mailbox: Mailbox) -> None:
    view = await core.ask()
    assert (view.steps, view.op) == ((), "send_draft")
    shown = {field.label: field.value for field in view.preview.fields}
    assert shown["Subject"] == "Q3 numbers"
    assert shown["To"] == "Anna Brandt <anna.brandt@nordlicht.example>"
    assert mailbox.state()["sent"] == []
    end = await core.run(view)
    assert (end.state, end.words) == ("completed", view.words)
    completed = (await core.records("run.completed"))[0]
    assert (completed["words"], completed["digest"]) == (list(view.words or ()), view.digest)
    row = await core.result(view.approval_id)
    assert row.words == view.words
    assert [sent["draft_id"] for sent in mailbox.state()["sent"]] == [DRAFT]
    # preview, recheck, effect: the recheck is the last thing before the effect
    assert writes(mailbox) == [f"GET {DRAFT}", f"GET {DRAFT}", "POST send"]


async def test_a_changed_field_stops_the_send_and_is_shown(core: Core, mailbox: Mailbox) -> None:
    view = await core.ask()
    mailbox.control(change={"id": DRAFT, "to": "mallory@evil.example"})
    await core.approve(view)
    back = await core.back(view)
    changed = {c.label: (c.before, c.after) for c in back.drift.changed}
    assert changed["To"] == ("Anna Brandt <anna.brandt@nordlicht.example>", "mallory@evil.example")
    assert back.drift.words_before == view.words
    assert back.words != view.words
    assert back.digest != view.digest
    assert back.decided_at is None
    assert mailbox.state()["sent"] == []
    # The old yes is void, a new one covers the new content.
    with pytest.raises(Exception, match="The call changed while you answered"):
        await core.approve(view)
    assert (await core.run(back)).state == "completed"
    assert [sent["to"] for sent in mailbox.state()["sent"]] == ["mallory@evil.example"]


UNSHOWN_BCC = 'Bcc = "message.payload.headers.Bcc"\n'


@pytest.mark.parametrize(
    ("hidden", "change", "path"),
    [("", {"subject": "Q3 numbers"}, "message.id"), (UNSHOWN_BCC, {"bcc": "eve@x"}, "headers")],
    ids=["the same words, written anew", "a Bcc that the action file hides"],
)
async def test_a_change_in_no_field_stops_the_send(
    start: Start, mailbox: Mailbox, home: Path, hidden: str, change: dict[str, str], path: str
) -> None:
    file = home / "actions" / "send-draft.md"
    text = file.read_text(encoding="utf-8")
    assert hidden in text
    file.write_text(text.replace(hidden, ""), encoding="utf-8")
    async with start() as core:
        view = await core.ask()
        assert not hidden or "Bcc" not in {field.label for field in view.preview.fields}
        mailbox.control(change={"id": DRAFT, **change})
        await core.approve(view)
        drift = (await core.back(view)).drift
        assert drift.changed == ()
        assert any(path in each for each in drift.other_paths)
        assert mailbox.state()["sent"] == []


def _edit_args(home: Path, view: ApprovalView) -> None:
    args = json.dumps({"draft_id": "r-8842189771"})
    change_rows(home, f"UPDATE runs SET args = '{args}' WHERE approval_id = '{view.approval_id}'")


def _remove_file(home: Path, _view: ApprovalView) -> None:
    (home / "actions" / "send-draft.md").unlink()


def _edit_connector(home: Path, _view: ApprovalView) -> None:
    (path,) = (home / "store" / "connectors" / "sha256").glob("*/connector.wasm")
    path.write_bytes(path.read_bytes() + b"\x00\x03\x01x\x00")


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (_edit_args, "another program changed this run in the database (args)"),
        (_remove_file, "the action file send-draft.md was removed"),
        (_edit_connector, "the files of the connector local://aileron/mail-drafts were changed"),
    ],
    ids=["argument", "action file", "connector"],
)
async def test_what_the_digest_covers_may_not_change_before_the_effect(
    core: Core, mailbox: Mailbox, home: Path, change: Callable[..., None], sentence: str
) -> None:
    view = await core.ask()
    change(home, view)
    end = await core.run(view)
    assert (end.state, (await core.failure(view)).class_) == ("failed", "conflict")
    assert sentence in end.outcome
    assert "POST send" not in writes(mailbox)


@pytest.mark.actions(readdress=readdress('changes = { To = "${args.to}" }\n'))
async def test_a_change_is_shown_with_the_value_that_is_then_sent(core: Core) -> None:
    args = {"id": DRAFT, "to": "ana@example.com", "bcc": "mallory@evil.example"}
    view = await core.ask_for("readdress", args)
    fetched = {field.label: field.value for field in view.preview.fields}
    assert fetched["To"] == "Anna Brandt <anna.brandt@nordlicht.example>"
    assert [(new.label, new.value) for new in view.new_values] == [("To", "ana@example.com")]
    assert {field.value for field in view.other_arguments} == {DRAFT, "mallory@evil.example"}
    assert len(view.arguments) == 3
    assert (await core.run(view)).state == "completed"
    again = await core.ask_for("readdress", {"id": DRAFT, "to": "ben@example.com"})
    assert {f.label: f.value for f in again.preview.fields}["To"] == "ana@example.com"


async def test_a_change_that_is_shown_otherwise_is_covered_by_another_digest(home: Path) -> None:
    """Same call, same reading, same secret: nothing but what the file says of the new value differs."""
    digests: list[str] = []
    one, other = (f'changes = {{ {label} = "${{args.to}}" }}\n' for label in ("To", "Subject"))
    for changes in ("", one, other, one):
        install_examples(home, readdress=readdress(changes))
        with Mailbox() as mailbox:
            async with Core.open(home, mailbox) as core:
                view = await core.ask_for("readdress", {"id": DRAFT, "to": "ana@example.com"})
                run = core.live(view)
                run.nonce = "00" * 16
                row = replace(run.row, expires_at=None)
                digests.append(run.consent(run.preview, row)[0])
    assert (digests[1], len(set(digests))) == (digests[3], 3)


async def test_a_refresh_that_finds_a_change_needs_a_new_yes(core: Core, mailbox: Mailbox) -> None:
    view = await core.ask()
    await core.app.approvals.refresh(view.approval_id)
    same = core.views(view.approval_id)[-1]
    assert (same.digest, same.drift) == (view.digest, None)
    mailbox.control(change={"id": DRAFT, "subject": "Q4 numbers"})
    await core.app.approvals.refresh(view.approval_id)
    other = core.views(view.approval_id)[-1]
    assert [c.label for c in other.drift.changed] == ["Subject"]
    with pytest.raises(Conflict, match="The call changed"):
        await core.approve(view)
    assert (await core.run(other)).state == "completed"
    assert mailbox.state()["sent"][0]["subject"] == "Q4 numbers"


async def test_a_preview_that_came_or_went_counts_as_changed(core: Core, mailbox: Mailbox) -> None:
    """Nothing is sent on a yes that was given blind, or to what can be seen no more; if it stays so, it counts."""
    mailbox.control(fail={"op": "get", "status": 503, "times": 1})
    view = await core.ask()
    assert (view.preview.status, "503" in view.preview.reason) == ("unavailable", True)
    await core.approve(view)
    back = await core.back(view)
    assert back.preview.status == "ready"
    assert back.digest != view.digest
    mailbox.control(fail={"op": "get", "status": 500, "times": 1})
    await core.approve(back)
    gone = await core.back(back)
    assert "500" in gone.drift.unavailable
    assert mailbox.state()["sent"] == []
    mailbox.control(fail={"op": "get", "status": 500, "times": 1})
    assert (await core.run(gone)).state == "completed"


@pytest.mark.parametrize(
    ("headers", "shown", "count"),
    [
        ([("BCC", "eve@evil.example")], "eve@evil.example", 1),
        ([("bcc", "eve@evil.example")], "eve@evil.example", 1),
        (
            [("Bcc", "archive@nordlicht.example"), ("BCC", "eve@evil.example")],
            "archive@nordlicht.example\neve@evil.example",
            2,
        ),
    ],
)
async def test_every_bcc_that_a_mail_goes_to_stands_in_the_item(
    core: Core, mailbox: Mailbox, headers: list[tuple[str, str]], shown: str, count: int
) -> None:
    lines = [
        "To: Anna <a@b.example>",
        "Subject: Q3",
        *(f"{n}: {v}" for n, v in headers),
        "",
        "Hello",
    ]
    raw = base64.urlsafe_b64encode("\r\n".join(lines).encode()).decode()
    view = await core.ask(mailbox._state.create(raw).id)
    (bcc,) = (field for field in view.preview.fields if field.label == "Bcc")
    assert (bcc.missing, bcc.value, bcc.count) == (False, shown, count)
    assert (await core.run(view)).state == "completed"
    (sent,) = mailbox.state()["sent"]
    assert sent["bcc"] == shown.replace("\n", ", ")


async def refused_decision(answer: Awaitable[object]) -> object:
    with pytest.raises(Conflict) as caught:
        await answer
    return caught.value.details.get("outcome")


async def test_a_second_answer_is_refused_and_names_the_first(core: Core, mailbox: Mailbox) -> None:
    """And a reason is cut at 2,000 characters."""
    view = await core.ask()
    await core.app.approvals.deny(view.approval_id, "ä" * 3000)
    denied = await core.ended(view)
    assert (denied.state, denied.reason, denied.decided_by) == ("denied", "ä" * 2000, "person")
    withdraw = core.app.approvals.withdraw(core.session.session_id, view.approval_id, "")
    deny = core.app.approvals.deny(view.approval_id, "")
    assert {await refused_decision(each) for each in (core.approve(view), deny, withdraw)} == {
        "denied"
    }
    assert [r["state"] for r in await core.records("approval.denied")] == ["denied"]
    assert mailbox.state()["sent"] == []


async def test_of_many_answers_at_once_exactly_one_wins(core: Core, mailbox: Mailbox) -> None:
    view = await core.ask()
    ends = await asyncio.gather(*(core.approve(view) for _ in range(5)), return_exceptions=True)
    assert sum(end is None for end in ends) == 1
    assert all(end is None or isinstance(end, Conflict) for end in ends)
    assert (await core.ended(view)).state == "completed"
    assert len(mailbox.state()["sent"]) == 1


async def test_a_no_while_it_is_checked_wins(core: Core, mailbox: Mailbox) -> None:
    view = await core.ask()
    with hold_answers(mailbox, f"GET {DRAFT}") as reached:
        await core.approve(view)
        assert core.views(view.approval_id)[-1].state == "checking"
        assert await refused_decision(core.approve(view)) == "checking"
        await reached()
        await core.app.approvals.deny(view.approval_id, "stop")
    # Served only once the carrier has let the connector go.
    await core.call("list-drafts", {})
    assert (await core.ended(view)).state == "denied"
    assert (mailbox.state()["sent"], writes(mailbox).count(f"GET {DRAFT}")) == ([], 2)


@pytest.mark.actions(update_draft=UPDATE_DRAFT)
async def test_no_run_comes_between_recheck_and_effect(core: Core, mailbox: Mailbox) -> None:
    other = await core.another_session()
    view = await core.ask()
    mailbox.control(delay_seconds={"get": 0.2, "send": 0.2})
    await core.approve(view)
    update = asyncio.ensure_future(
        core.call("update-draft", {"id": DRAFT, "to": "m@evil.example"}, session=other)
    )
    assert (await core.ended(view)).state == "completed"
    # The draft is gone: the write came after the effect.
    assert (await update).row.state == "failed"
    assert writes(mailbox)[:4] == [f"GET {DRAFT}", f"GET {DRAFT}", "POST send", f"GET {DRAFT}"]
    assert "anna" in mailbox.state()["sent"][0]["to"]


@pytest.mark.actions(update_draft=UPDATE_DRAFT)
async def test_while_the_draft_flips_only_what_was_shown_is_sent(
    core: Core, mailbox: Mailbox
) -> None:
    """Of three writers at once none comes between the reading that the digest was compared with and the effect."""
    other = await core.another_session()
    came_back = 0

    async def flip(*names: str) -> None:
        while came_back < 3:
            for name in names:
                args = {"id": DRAFT, "to": f"{name}@evil.example"}
                assert (await core.call("update-draft", args, session=other)).row.state in states

    states = {"completed", "failed"}  # once it was sent, there is no draft
    flipping = [asyncio.ensure_future(flip("eve", name)) for name in ("ann", "ben", "cid")]
    await core.until_record("run.completed", 4)
    shown = view = await core.ask()
    while view.ended_at is None:
        await core.approve(view)
        shown, after = view, view.version + 1
        view = await core.view(
            view.approval_id, lambda v: v.state == "pending" or v.ended_at is not None, after=after
        )
        came_back += 1 if view.ended_at is None else 3
    await asyncio.gather(*flipping)
    assert view.state == "completed"
    (sent,) = mailbox.state()["sent"]
    assert sent["to"] in {field.value for field in shown.preview.fields}
    seen = writes(mailbox)
    at = seen.index("POST send")
    assert (seen.count("POST send"), seen[at - 1]) == (1, f"GET {DRAFT}")
    assert f"PUT {DRAFT}" in seen[:at]


async def test_approving_before_the_first_answer_does_nothing(core: Core, mailbox: Mailbox) -> None:
    with hold_answers(mailbox, f"GET {DRAFT}"):
        answer = await core.call()
        approval_id = answer.row.approval_id or ""
        assert answer.row.state == "pending"
        with pytest.raises(Conflict, match="still being fetched"):
            await core.app.approvals.approve(approval_id, "")
    view = await core.looked(approval_id)
    with pytest.raises(Conflict, match="The call changed"):
        await core.app.approvals.approve(approval_id, "")
    assert (await core.run(view)).state == "completed"


async def test_only_the_requester_withdraws_before_it_begins(core: Core, mailbox: Mailbox) -> None:
    view = await core.ask()
    other = await core.another_session()
    for session_id, approval_id in (
        (other.session_id, view.approval_id),
        (core.session.session_id, "act-20260101T000000-0000000000000000"),
    ):
        with pytest.raises(NotFound, match="This session has no approval"):
            await core.app.approvals.withdraw(session_id, approval_id, "")
        with pytest.raises(NotFound, match="This session has no approval"):
            await core.app.approvals.wait_for_result(session_id, approval_id, 0)
    row = await core.app.approvals.withdraw(core.session.session_id, view.approval_id, "a\ud800b")
    assert (row.state, row.reason) == ("withdrawn", "a?b")
    assert await refused_decision(core.approve(view)) == "withdrawn"
    # Its answer told the agent, so an equal call asks anew.
    again = await core.call()
    assert not again.attached
    assert again.row.approval_id != view.approval_id
    assert mailbox.state()["sent"] == []


@pytest.mark.core(settings=Settings(expires_seconds=60))
async def test_a_late_yes_does_nothing(core: Core, mailbox: Mailbox, clock: FrozenClock) -> None:
    first, second = await core.ask(), await core.ask("r-8842190312")
    assert first.expires_at == clock.now() + 60
    clock.advance(59.9)
    await core.app.approvals.expire_overdue()
    assert core.views(first.approval_id)[-1].state == "pending"
    clock.advance(0.1)
    assert await refused_decision(core.approve(first)) == "expired"
    await core.app.approvals.expire_overdue()
    for view in (first, second):
        assert (await core.ended(view)).state == "expired"
    assert mailbox.state()["sent"] == []


@pytest.mark.core(settings=Settings(expires_seconds=60))
async def test_a_deadline_in_a_recheck(start: Start, mailbox: Mailbox, clock: FrozenClock) -> None:
    def late(step: str) -> None:
        if step == "after approval.approved":
            clock.advance(60)

    async with start(failpoint=late) as core:
        view = await core.ask()
        assert (await core.run(view)).state == "expired"
    assert mailbox.state()["sent"] == []


@pytest.mark.core(settings=Settings(expires_seconds=0))
async def test_without_a_deadline_it_waits_for_ever(core: Core, clock: FrozenClock) -> None:
    view = await core.ask()
    assert view.expires_at is None
    assert (await core.app.console.snapshot()).settings_accepted
    clock.advance(10 * 365 * 86400)
    await core.app.approvals.expire_overdue()
    assert (await core.run(view)).state == "completed"


async def test_the_end_of_a_session_leaves_its_approval_and_marks_it(core: Core) -> None:
    view = await core.ask()
    assert not view.requester_gone
    await core.app.session_service.end(core.session.session_id, "it was ended")
    gone = core.views(view.approval_id)[-1]
    assert (gone.state, gone.requester_gone) == ("pending", True)
    assert core.app.sessions.authenticate(core.token) is None
    assert (await core.run(gone)).state == "completed"
