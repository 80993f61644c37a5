"""What a person's yes covers: exactly what stood on the screen, and nothing that changed since."""

import base64
import json
from dataclasses import replace
from pathlib import Path

import pytest

from aileron_core.canonical import Json
from aileron_core.console_port.view_models import ApprovalView
from aileron_core.errors import Conflict
from tests.support.core_harness import (
    DRAFT,
    UPDATE_DRAFT,
    Core,
    Mailbox,
    Start,
    change_rows,
    install_examples,
    readdress,
    writes,
)


async def test_a_yes_sends_what_was_shown_and_tells_the_three_words(
    core: Core, mailbox: Mailbox
) -> None:
    """The digest's three words stand on the screen, in the audit and in the row."""
    view = await core.ask()
    assert (view.steps, view.op) == ((), "send_draft")
    shown = {field.label: field.value for field in view.preview.fields}
    assert shown["Subject"] == "Q3 numbers"
    assert shown["To"] == "Anna Brandt <anna.brandt@nordlicht.example>"
    assert mailbox.state()["sent"] == []
    end = await core.run(view)
    assert (end.state, end.words) == ("completed", view.words)
    completed = (await core.records("run.completed"))[0]
    assert completed["words"] == list(view.words or ())
    assert completed["digest"] == view.digest
    row = await core.result(view.approval_id)
    assert row.words == view.words
    assert [sent["draft_id"] for sent in mailbox.state()["sent"]] == [DRAFT]
    # preview, recheck, effect: the recheck is the last thing before the effect
    assert writes(mailbox) == [f"GET {DRAFT}", f"GET {DRAFT}", "POST send"]


async def test_a_changed_shown_field_stops_the_send_and_is_shown(
    core: Core, mailbox: Mailbox
) -> None:
    """The recheck finds another recipient; nothing is sent, before and after show."""
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


async def test_a_change_outside_the_shown_fields_stops_the_send_and_is_named(
    core: Core, mailbox: Mailbox
) -> None:
    """What no field shows (here the size of a message whose text got a blank) counts too."""
    view = await core.ask()
    # Written anew with the same words: nothing that is shown differs, the message's id does.
    mailbox.control(change={"id": DRAFT, "subject": "Q3 numbers"})
    await core.approve(view)
    back = await core.back(view)
    assert back.drift.changed == ()
    assert "message.id" in back.drift.other_paths
    assert mailbox.state()["sent"] == []


UNSHOWN_BCC = 'Bcc = "message.payload.headers.Bcc"\n'


async def test_a_bcc_that_no_field_shows_stops_the_send(
    start: Start, mailbox: Mailbox, home: Path
) -> None:
    """A Bcc added between prompt and yes is found although the action file hides it."""
    path = home / "actions" / "send-draft.md"
    text = path.read_text(encoding="utf-8")
    assert UNSHOWN_BCC in text
    path.write_text(text.replace(UNSHOWN_BCC, ""), encoding="utf-8")
    async with start() as core:
        view = await core.ask()
        assert "Bcc" not in {field.label for field in view.preview.fields}
        mailbox.control(change={"id": DRAFT, "bcc": "mallory@evil.example"})
        await core.approve(view)
        back = await core.back(view)
        assert back.drift.changed == ()
        assert any("headers" in place for place in back.drift.other_paths)
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
    core: Core, mailbox: Mailbox, home: Path, change: object, sentence: str
) -> None:
    """Argument or connector changed, or the action file gone, between prompt and yes: nothing is sent."""
    view = await core.ask()
    assert callable(change)
    change(home, view)
    end = await core.run(view)
    assert end.state == "failed"
    assert sentence in end.outcome
    failure = await core.failure(view)
    assert failure.class_ == "conflict"
    assert mailbox.state()["sent"] == []
    assert "POST send" not in writes(mailbox)


@pytest.mark.actions(update_draft=UPDATE_DRAFT)
async def test_a_session_that_flips_the_draft_never_writes_between_recheck_and_effect(
    core: Core, mailbox: Mailbox
) -> None:
    """GET of the recheck and POST of the effect are neighbours in the mailbox's log."""
    other = await core.another_session()
    stop = False
    flips = 0

    async def flip() -> None:
        nonlocal flips
        while not stop:
            to = ("anna.brandt@nordlicht.example", "mallory@evil.example")[flips % 2]
            args = {"id": DRAFT, "to": to}
            answer = await core.call("update-draft", args, session=other)
            flips += answer.row.state == "completed"

    import asyncio

    flipping = [asyncio.ensure_future(flip()) for _ in range(3)]
    # The first yes may meet no change at all, and then the flipping is over.
    while flips <= 3:
        await asyncio.sleep(0)
    view = await core.ask()
    for _ in range(200):
        if (flips and view.ended_at) or len(flipping) == 0:
            break
        await core.approve(view)
        # Each yes either sends or comes back changed; three tries, then the flipping ends.
        after = view.version
        view = await core.view(
            view.approval_id,
            lambda v, after=after: (
                v.version > after + 1 and (v.state == "pending" or v.ended_at is not None)
            ),
        )
        if view.ended_at is None and flips > 12:
            stop = True
            await asyncio.gather(*flipping)
    stop = True
    await asyncio.gather(*flipping)
    assert view.state == "completed"
    assert flips > 3
    seen = writes(mailbox)
    at = seen.index("POST send")
    assert seen.count("POST send") == 1
    assert seen[at - 1] == f"GET {DRAFT}"
    assert f"PUT {DRAFT}" in seen[:at]


async def _asked(core: Core, args: dict[str, Json]) -> ApprovalView:
    return await core.ask_for("readdress", args)


@pytest.mark.actions(readdress=readdress('changes = { To = "${args.to}" }\n'))
async def test_a_change_is_shown_with_the_value_that_is_then_sent(core: Core) -> None:
    """Old and new of each field that changes, and apart from them whatever else the agent sent."""
    args = {"id": DRAFT, "to": "ana@example.com", "bcc": "mallory@evil.example"}
    view = await _asked(core, args)
    fetched = {field.label: field.value for field in view.preview.fields}
    assert fetched["To"] == "Anna Brandt <anna.brandt@nordlicht.example>"
    assert [(new.label, new.value) for new in view.new_values] == [("To", "ana@example.com")]
    assert {field.value for field in view.other_arguments} == {DRAFT, "mallory@evil.example"}
    assert len(view.arguments) == 3
    assert (await core.run(view)).state == "completed"
    again = await _asked(core, {"id": DRAFT, "to": "ben@example.com"})
    assert {f.label: f.value for f in again.preview.fields}["To"] == "ana@example.com"


async def test_a_change_that_is_shown_otherwise_is_covered_by_another_digest(home: Path) -> None:
    """Same call, same reading, same secret: nothing but what the file says of the new value differs."""
    digests: list[str] = []
    one, other = (f'changes = {{ {label} = "${{args.to}}" }}\n' for label in ("To", "Subject"))
    for changes in ("", one, other, one):
        install_examples(home, readdress=readdress(changes))
        with Mailbox() as mailbox:
            async with Core.open(home, mailbox) as core:
                view = await _asked(core, {"id": DRAFT, "to": "ana@example.com"})
                run = core.live(view)
                run.nonce = "00" * 16
                row = replace(run.row, expires_at=None)
                digests.append(run.consent(run.preview, row)[0])
    assert digests[1] == digests[3]
    assert len(set(digests)) == 3


async def test_a_refresh_that_finds_a_change_needs_a_new_yes(core: Core, mailbox: Mailbox) -> None:
    """Refresh disarms approve in the same way; without a difference it shows no drift."""
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


async def test_an_unavailable_preview_can_still_be_approved_if_it_stays_so(
    core: Core, mailbox: Mailbox
) -> None:
    mailbox.control(fail={"op": "get", "status": 503, "times": 2})
    view = await core.ask()
    assert view.preview.status == "unavailable"
    assert "503" in view.preview.reason
    assert (await core.run(view)).state == "completed"


async def test_a_preview_that_came_or_went_counts_as_changed(core: Core, mailbox: Mailbox) -> None:
    """Nothing is sent on a yes that was given blind, or to what can be seen no more."""
    mailbox.control(fail={"op": "get", "status": 503, "times": 1})
    view = await core.ask()
    await core.approve(view)
    back = await core.back(view)
    assert back.preview.status == "ready"
    assert back.digest != view.digest
    mailbox.control(fail={"op": "get", "status": 500, "times": 1})
    await core.approve(back)
    gone = await core.back(back)
    assert "500" in gone.drift.unavailable
    assert mailbox.state()["sent"] == []


def _draft(mailbox: Mailbox, *bcc: tuple[str, str]) -> str:
    """Put a draft with these headers into *mailbox* and return its id."""
    lines = ["To: Anna <anna@nordlicht.example>", "Subject: Q3", *(f"{n}: {v}" for n, v in bcc)]
    raw = "\r\n".join([*lines, "", "Hello"]).encode()
    return mailbox._state.create(base64.urlsafe_b64encode(raw).decode()).id


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
    view = await core.ask(_draft(mailbox, *headers))
    (bcc,) = (field for field in view.preview.fields if field.label == "Bcc")
    assert (bcc.missing, bcc.value, bcc.count) == (False, shown, count)
    assert (await core.run(view)).state == "completed"
    (sent,) = mailbox.state()["sent"]
    assert sent["bcc"] == shown.replace("\n", ", ")
