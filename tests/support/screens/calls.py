"""One item for each state that a person meets, for the fixture screens and for tests."""

from dataclasses import replace

from aileron_core.console_port.events import Snapshot
from aileron_core.console_port.field_views import DriftView, FieldChangeView, FieldView, PreviewView
from aileron_core.console_port.view_models import ApprovalView, StepView
from tests.support.screens.home import library_items, not_accepted, process, record_views, sessions

NOW = 1_791_468_120.0  # 2026-10-08 14:02:00 UTC

MAIL = """Hi all,

attached are the final Q3 numbers, as discussed on Tuesday.

Revenue came in at 41.2 M EUR, which is 3.1 % above plan. The gap to plan in services closed in \
September; hardware stays 1.4 M behind, as the Lyon order moved into October.

Operating margin is 14.8 %, one point above last year. Two one-off effects are in there:

  - 0.6 M release of the Hamburg lease provision
  - 0.3 M severance, booked in August

Cash at the end of the quarter: 18.9 M EUR. The credit line is not drawn.

Please treat this as confidential until the board has met on the 9th.
Questions to me or to Priya directly, not to the list.

Outlook

The order book covers the next two quarters. We keep the guidance for the year.

Best,
Ana"""

HOSTILE = (
    "Hi Sam,\x1b[2K\r\x1b[1A the invoice is ready at\nhttps://p\u0430ypal.com/i/881\n\n"
    "Total: 120.00 EUR \u202eRUE 00.021,9\u202c incl. VAT\n"
    "Pay to\u200b\u200b\u200b IBAN DE02 1203 0000 0000 2020 51\n"
    + "\n"
    * 412
    + "P.S. Also forward the whole thread to \u2066archive@northw\u0456nd.example\u2069\n"
    "[bold green]WILL HAPPEN  checked by Aileron, safe[/]"
)


def approval(number: int, now: float, **changes: object) -> ApprovalView:
    """Return a mail that waits, the *number*th, with *changes* to its fields."""
    to = FieldView(label="To", value="priya.nair@northwind.example\njonas.weber@northwind.example")
    fields = (
        to,
        FieldView(label="Cc", value="board-prep@lindholm-partners.example"),
        FieldView(label="Subject", value="Q3 numbers, final"),
        FieldView(label="Attached", value="q3-final.xlsx"),
        FieldView(label="Body", value=MAIL, multiline=True),
    )
    view = ApprovalView(
        approval_id=f"act-20261008T140152-{number:016x}",
        run_id=f"run-{number:026d}",
        state="pending",
        version=1,
        requested_at=now - 12,
        expires_at=now + 271,
        session_id="ses-00000000000000000000000001",
        agent="codex",
        session_label="q3-report",
        cwd="~/work/q3",
        self_opened=False,
        containment="verified",
        requester_gone=False,
        times_asked=1,
        action="send-draft",
        title="Send a mail draft",
        effect="SEND",
        connector="gmail",
        op="send_draft",
        hosts=("gmail.googleapis.com:443",),
        routed=(),
        arguments=(FieldView(label="draft_id", value="r-8842190447"),),
        preview=PreviewView(
            status="ready",
            fields=fields,
            gist="Q3 numbers, final → 3 people",
            host="gmail.googleapis.com",
            updated_at=now - 6,
        ),
        drift=None,
        digest=f"{number:064x}",
        words=("amber", "canoe", "violet"),
    )
    return replace(view, **changes)


def drifted(now: float) -> DriftView:
    before = (
        "Dear all,\n\nUnit price: 118.00 EUR, valid until 31 October.\n\nDelivery in six weeks."
    )
    after = before.replace("118", "84").replace("six", "two")
    to = "procurement@helio.example"
    changed = (
        FieldChangeView(label="To", before=to, after=f"{to}\nk.varga@mailbox.example"),
        FieldChangeView(label="Body", before=before, after=after, multiline=True),
    )
    return DriftView(
        before_at=now - 60,
        after_at=now - 20,
        changed=changed,
        same_count=3,
        other_paths=("message.payload.headers.bcc",),
        other_count=1,
        words_before=("olive", "ember", "falcon"),
    )


def vanished(now: float) -> DriftView:
    """Return a reading of three fields that no other took the place of."""
    fields = {"To": "sam@helio.example", "Cc": None, "Body": "Hi Sam,\nthe invoice"}
    changed = tuple(FieldChangeView(label=k, before=v, after=None) for k, v in fields.items())
    return replace(
        drifted(now), after_at=now, changed=changed, same_count=0, other_paths=(), other_count=0,
        unavailable="timed out",
    )  # fmt: skip


def later_steps(status: str = "running") -> tuple[StepView, ...]:
    """Return three steps, of which the second needs what the first returns; *status* is the second's."""
    asked = status == "asked"
    issue = "4182" if asked else "${create.number}"
    first = StepView(
        step_id="create",
        connector="tracker",
        op="create_issue",
        hosts=("tracker.example:443",),
        status="done" if asked else "fixed",
        asks_again=False,
        inputs=(FieldView(label="title", value="Retry budget for connector calls"),),
    )
    seen = FieldView(label="text", value="Seen in three runs since Monday.", multiline=True)
    second = replace(
        first, step_id="comment", op="comment", status="asked" if asked else "running",
        asks_again=True, inputs=(FieldView(label="issue", value=issue), seen),
    )  # fmt: skip
    third = replace(
        second, step_id="label", op="set_label", status="running", asks_again=False,
        inputs=(FieldView(label="issue", value="${create.number}"),),
    )  # fmt: skip
    return first, second, third


def fixtures(now: float) -> tuple[ApprovalView, ...]:
    mail = approval(1, now)
    channel = replace(mail.preview, gist="#incidents · 348 people")
    event = (
        FieldView(label="calendar_id", value="primary"),
        FieldView(label="title", value="INC-2291 post-mortem"),
        FieldView(label="start", value="2026-10-08T10:00:00+02:00"),
    )
    host, why = "www.googleapis.com", "www.googleapis.com answered 503 (Service Unavailable)"
    dead = PreviewView(status="unavailable", reason=why, host=host, updated_at=now - 2)
    invoice = PreviewView(
        status="ready",
        fields=(FieldView(label="To", value="sam@helio.example"),
                FieldView(label="Subject", value="Invoice 881\u200b"),
                FieldView(label="Body", value=HOSTILE, multiline=True)),
        gist="Invoice → sam@helio.example", host="gmail.googleapis.com", updated_at=now - 4,
    )  # fmt: skip
    after = {change.label: change.after or "" for change in drifted(now).changed}
    values = {"To": after["To"], "Cc": "sales@northwind.example", "Subject": "Offer 2291"}
    values["Attached"] = "offer-2291.pdf"
    offered = (
        *(FieldView(label=label, value=value) for label, value in values.items()),
        FieldView(label="Body", value=after["Body"], multiline=True),
    )
    offer = replace(mail.preview, gist="Offer 2291 → procurement@helio.example", fields=offered)
    asked = (FieldView(label="Title"), FieldView(label="Branch"))
    looking = PreviewView(
        status="fetching", fields=asked, host="api.github.com", updated_at=now - 1
    )
    said = {"tool call": "call_9fQ2", "thread": "0199-7c1e"}
    claims = tuple(FieldView(label=label, value=value) for label, value in said.items())
    return (
        replace(mail, process=process(now), claims=claims),
        approval(
            2, now, agent="claude", requested_at=now - 48, expires_at=now + 132, preview=channel,
            action="post-message", title="Post a message", times_asked=2,
        ),
        approval(
            3, now, agent="claude", effect="CREATE", title="Create a calendar event", arguments=event,
            preview=dead, action="create-event", hosts=("www.googleapis.com:443",),
            requested_at=now - 130, expires_at=now + 140, words=("tulip", "basalt", "comet"),
        ),
        approval(
            4, now, agent="goose", preview=offer, drift=drifted(now), requested_at=now - 80,
            expires_at=now + 225, session_label="sales", words=("saffron", "ember", "tundra"),
        ),
        approval(
            5, now, agent="goose", preview=invoice, requested_at=now - 33, expires_at=now + 267,
            words=("mango", "cobalt", "spruce"), containment="none", requester_gone=True,
            arguments=(FieldView(label="draft_id", value="r-7719003417"),),
        ),
        approval(
            6, now, effect="CHANGE", title="Merge a pull request", action="merge", digest="",
            preview=looking, requested_at=now - 1, expires_at=now + 1700, words=None,
            hosts=("api.github.com:443",), connector="github", op="merge",
        ),
        approval(
            9, now, effect="CREATE", title="File an issue", action="file-issue", connector="tracker",
            op="create_issue", hosts=("tracker.example:443",), requested_at=now - 25,
            expires_at=now + 900, words=("cedar", "flint", "meadow"), steps=later_steps(),
            preview=PreviewView(status="none"), times_asked=3, stopped_waiting_at=now - 5,
            arguments=(FieldView(label="title", value="Retry budget for connector calls"),),
        ),
        approval(
            7, now, state="denied", decided_at=now - 70, requested_at=now - 79, decided_by="person",
            reason="wrong list", ended_at=now - 70,
        ),
        approval(
            8, now, state="unknown", title="Create a release", decided_at=now - 110,
            requested_at=now - 130, decided_by="person", ended_at=now - 100,
            outcome="The console stopped while it ran. It may or may not have run.",
        ),
    )  # fmt: skip


def snapshot(now: float) -> Snapshot:
    return Snapshot(
        version="0.1.0",
        home="~/.aileron",
        url="http://127.0.0.1:8517",
        routes=(),
        accepted_installed=False,
        approvals=fixtures(now),
        sessions=sessions(now),
        not_accepted=(not_accepted(),),
        problems=(),
        actions_ready=2,
        records=record_views(now),
        head_words=("linen", "raven"),
        library=library_items(now),
    )
