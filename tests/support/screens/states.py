"""States of the console, short to write: calls, files and records in the order in which they wait."""

from dataclasses import replace
from typing import Any

from aileron_core.console_port import field_views
from aileron_core.console_port.account_views import AccountNeed, AccountView
from aileron_core.console_port.events import Recorded, Snapshot
from aileron_core.console_port.view_models import ApprovalView, NotAcceptedView, RecordView
from tests.support.screens.calls import NOW, approval, snapshot

AS_APPROVED = field_views.ReadBack(status="held", at=NOW - 3, compared=3)
TO = field_views.FieldView(label="To", value="ana@example.com")
DRAFT = "\n".join(["Hi all,", *(f"This is line {n}." for n in range(2, 20)), "Ana"])


FQN = "github://aileron/mail"
WORK = AccountView(name="api_key/mail/work", account="ana@example.com")
HOME = AccountView(name="api_key/mail/home", account="ana@home.example")


def snapshot_of(
    *views: ApprovalView, held: tuple[NotAcceptedView, ...] = (), **changes: object
) -> Snapshot:
    return replace(snapshot(NOW), approvals=views, not_accepted=held, **changes)


def mail(number: int = 1, **changes: object) -> ApprovalView:
    return approval(number, NOW, **changes)


def key_of(number: int) -> str:
    return mail(number).approval_id


def short(number: int = 1, **changes: object) -> ApprovalView:
    """A mail that fits any screen, so that it is read as soon as it is drawn."""
    view = mail(number)
    brief = replace(view.preview, fields=view.preview.fields[:3])
    return replace(view, **{"preview": brief, **changes})


def body(text: str, form: str = "", **changes: object) -> ApprovalView:
    """Such a mail, of which a service says *text* alone, in the format *form*."""
    view = short(**changes)
    field = field_views.FieldView(label="Body", value=text, format=form, multiline=True)
    return replace(view, preview=replace(view.preview, fields=(field,)))


def need(reason: Any = "locked", *candidates: AccountView, problem: str = "") -> AccountNeed:
    """The vault, or an account for the connector `FQN`."""
    command = f"aileron binding setup {FQN}" if reason == "unbound" else ""
    return AccountNeed(
        reason=reason, connector=FQN, kind="api_key", candidates=candidates, problem=problem,
        command=command,
    )  # fmt: skip


def held_call(what: AccountNeed, number: int = 1, **changes: object) -> ApprovalView:
    """A call that waits for *what*."""
    nothing = field_views.PreviewView(status="none")
    view = short(number, state="awaiting_vault", digest="", words=None, preview=nothing)
    return replace(view, account_need=what, **changes)


def denied(number: int, **changes: object) -> ApprovalView:
    """A call that an earlier console decided: what was shown of it is not kept."""
    ended: dict[str, Any] = {"state": "denied", "decided_at": NOW - 500, "ended_at": NOW - 500}
    shown = short(number, decided_by="person", reason="not to the board", **ended)
    return replace(shown, **{"preview": field_views.PreviewView(status="none"), **changes})


def change(
    *new: field_views.FieldView,
    other: tuple[field_views.FieldView, ...] | None = None,
    **changes: object,
) -> ApprovalView:
    """Return a draft that is to get the values *new*."""
    rest = (field_views.FieldView(label="Draft", value="r-8842190312"),) if other is None else other
    view = short(
        effect="CHANGE", action="readdress-draft", title="Readdress a draft", new_values=new,
        other_arguments=rest,
        arguments=(*rest, *(replace(field, label=field.label.lower()) for field in new)),
    )  # fmt: skip
    fields = (
        field_views.FieldView(label="To", value="ben@northwind.example"),
        field_views.FieldView(label="Subject", value="Workshop in May"),
        field_views.FieldView(label="Body", value=DRAFT, multiline=True),
    )
    preview = replace(view.preview, fields=fields, gist="Workshop in May")
    return replace(view, **{"preview": preview, **changes})


def differing(found: str) -> field_views.ReadBack:
    """Return a reading after the run in which *found* stands where `TO` was approved."""
    field = field_views.ReadBackDifference(
        approved=TO, found=replace(TO, value=found), from_agent=True
    )
    return replace(AS_APPROVED, status="differs", differing=(field,), labels=("To",))


def record(seq: int, event: str = "run.started", **changes: object) -> RecordView:
    view = RecordView(
        seq=seq, at=NOW, event=event, run_id=f"run-{seq:026d}", session_id=None,
        action="send-draft", actor="aileron", agent="codex", summary=f"this is record {seq}",
    )  # fmt: skip
    return replace(view, **changes)


def recorded_event(seq: int, event: str = "run.started", **changes: object) -> Recorded:
    return Recorded(record=record(seq, event, **changes), head_words=("olive", "pixel"))


class Undrawable(str):
    """Text that every presenter fails on; what it says must not get into a log."""

    __slots__ = ()

    def split(self, *_: object, **__: object) -> list[str]:
        raise RuntimeError("what nobody may log")
