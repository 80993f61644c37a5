"""The keys that decide: about calls, files, sessions."""

from collections.abc import Iterable

from aileron_core.console_port.intents import (
    Accept,
    AcceptSuite,
    Acknowledge,
    AllowHost,
    RefetchPreview,
    RefreshPreview,
    ReleaseServer,
    RemoveFile,
    SetPause,
    UndoRun,
    WithdrawAcceptance,
)
from aileron_core.console_port.view_models import NotAcceptedView
from aileron_tui import words
from aileron_tui.input.commands import VIEWS, Command
from aileron_tui.pages.command import blocked, call_blocked, not_approved, unless
from aileron_tui.pages.device_questions import ended
from aileron_tui.pages.grant_questions import ask_grant
from aileron_tui.pages.page import Page
from aileron_tui.pages.questions import approved
from aileron_tui.pages.waiting import WaitingPage
from aileron_tui.state.edit_form import EditForm
from aileron_tui.state.situation import Situation

_Key = Command[Situation, Page]
_said = words.status
_NO_DEVICE = words.devices.NOT_A_DEVICE


def _free(now: Situation) -> bool:
    return now.blocked_by == "none"


# Calls


def _counted(verb: str, now: Situation) -> str:
    return f"{verb} {len(now.calls)}" if now.batch is not None else ""


def _not_granted(now: Situation) -> str:
    return _said.BATCH_GRANTED if now.batch is not None else not_approved(now)


def _known_outcome(now: Situation) -> str:
    return "its outcome is known" if now.rows else _said.NO_ITEM


def _acknowledged(now: Situation) -> Iterable[Acknowledge]:
    if now.item is not None and now.approval is not None and now.item.is_unacknowledged:
        look = now.approval.look
        yield Acknowledge(call_id=now.item.key, looked_at=look.at if look is not None else None)


def _not_acknowledged(now: Situation) -> str:
    # Its state alone is the news: nothing of it needs to have been read to the end.
    view = now.approval
    waits = view is not None and view.awaits_acknowledgement and now.blocked_by == "over"
    return "" if waits else _known_outcome(now)


def _no_refetch(now: Situation) -> str:
    if now.batch is not None:
        return _said.SEVERAL_CALLS
    if now.approval is not None and now.approval.preview.status == "none":
        return "this has no preview to fetch"
    return "" if now.blocked_by == "deadline" else call_blocked(now, now.blocked_by)


def _ask_deny(page: WaitingPage) -> None:
    item = page.model.queue.current
    if item is not None and item.calls:
        page.model.deny_panel.open(item.calls[0])
        page.panel.ask("deny", item.key, placeholder="optional")


_fixed = unless(
    lambda now: now.approval and now.approval.inputs,
    "the arguments of a built-in tool, and of what has begun, cannot be changed",
)


def _ask_edit(page: WaitingPage) -> None:
    if (view := page.situation.approval) is not None:
        page.model.edit_form = EditForm(view)
        page.panel.ask("edit", view.call_id)


def _ask_stop_run(page: Page) -> None:
    if (running := page.situation.running) is not None:
        if page.view == "activity":  # else the next call would take the cursor
            page.model.activity.stop_following()
        page.panel.ask("stop_run", running.run_id)


def _undone(now: Situation) -> Iterable[UndoRun]:
    if run_id := _undoable(now):
        yield UndoRun(run_id=run_id)


def _undoable(now: Situation) -> str:
    """Return the id of the call that can be undone: the open one, or one that has just ended; '' for none."""
    # The person has seen what it wrote before, or did not have to: nothing has to be read here.
    if now.view == "waiting":
        ended = now.approval if now.blocked_by == "over" else None
        return ended.run_id if ended is not None and ended.can_undo else ""
    call = now.model.opened_call.call if now.view == "activity" and now.opened else None
    return (
        now.model.opened_call.run_id
        if call is not None and call.approval.can_undo and _free(now)
        else ""
    )


# Files


def _not_accepted(now: Situation) -> str:
    is_file = now.acceptable is not None or now.suite is not None
    if not is_file and now.can_change:
        return _said.NO_FILE if now.rows else _said.NO_ITEM
    return blocked(now, now.blocked_by)


def _no_rest(now: Situation) -> str:
    if now.suite is None:
        return _not_accepted(now) or _said.NO_FILE
    rest = now.suite.ungated_effects and now.suite.other_files and _free(now)
    return "" if rest else "nothing here has to be reviewed first"


def _accepted(now: Situation) -> Iterable[Accept | AcceptSuite]:
    if now.suite is not None:
        yield from _suite(now, rest=False)
        return
    file = now.item.file if now.item is not None else now.library_item
    if file is not None:
        seconds = file.run_time.seconds if file.run_time is not None else 0
        yield Accept(
            kind=file.kind,
            name=file.name,
            digest=file.digest,
            run_seconds=seconds,
            signed_with=file.publisher.name_and_key
            if file.publisher and file.kind != "publisher"
            else "",
        )


def _suite(now: Situation, *, rest: bool) -> Iterable[AcceptSuite]:
    if (suite := now.suite) is not None:
        files = suite.other_files if rest else suite.files
        shown = tuple((each.file, each.digest) for each in (*suite.new_connectors, *files))
        id_ = suite.suite.suite_id
        yield AcceptSuite(
            suite_id=id_,
            files=shown,
            run_seconds=suite.run_seconds,
            signed_with=suite.signed_with,
        )


def _offered_key(now: Situation) -> NotAcceptedView | None:
    file = now.item.file if now.item is not None and now.item.is_waiting else None
    return file if file is not None and file.kind == "publisher" else None


def _declined(now: Situation) -> Iterable[RemoveFile]:
    if (file := _offered_key(now)) is not None:
        yield RemoveFile(kind="publisher", file=file.file.rpartition("/")[2])


def _withdrawn(now: Situation) -> Iterable[WithdrawAcceptance]:
    if (file := now.library_item) is not None:
        yield WithdrawAcceptance(kind=file.kind, name=file.name, digest=file.digest)


def _released(now: Situation) -> Iterable[ReleaseServer]:
    if (server := now.library_item) is not None:
        yield ReleaseServer(name=server.connector)


# Sessions


def _allowed(now: Situation) -> Iterable[AllowHost]:
    session = now.session
    if session is not None and session.host_to_allow is not None:
        yield AllowHost(session_id=session.session_id, host=session.host_to_allow)


def _no_host(now: Situation) -> str:
    if now.device is not None:
        return words.devices.IS_CONFIRMED
    asks = now.session is not None and now.session.host_to_allow is not None and _free(now)
    return "" if asks else "this session asks for no host that could be allowed"


def _ask_about_device(page: Page) -> None:
    if (device := page.situation.device) is not None:
        page.panel.ask("device", device.device_id)


def _ask_end(page: Page) -> None:
    session = page.model.sessions_table.session
    if session is not None:
        page.panel.ask("end", session.session_id)


DECIDING = (
    _Key(
        "go_on", ("P",), "resume", VIEWS, "resume the calls on hold", decides=True, fixed=True, footer_rank=8,
        needs="owner", why_not=unless(lambda now: now.model.paused_at is not None, "no calls are on hold"),
        intents=lambda _: (SetPause(paused=False),),
    ),
    _Key(
        "approve", ("a",), "approve", ("waiting",), "approve exactly what is on screen", decides=True,
        footer_rank=10, after="read", label_now=lambda now: _counted("approve", now),
        why_not=not_approved, intents=approved,
    ),
    Command[Situation, WaitingPage](
        "put_in", ("x",), "in/out", ("waiting",), "put a call of a batch in, or leave it out", footer_rank=31,
        never_with="decline_key",
        why_not=unless(lambda now: now.in_table, _said.NO_BATCH), do=WaitingPage.put_in,
    ),
    Command[Situation, WaitingPage](
        "open_batch", ("enter",), "choose calls", ("waiting",), "go into the table of a batch; again: open one call",
        fixed=True, footer_rank=32, label_now=lambda now: "one call" if now.in_table else "",
        why_not=unless(lambda now: now.batch, _said.NO_BATCH), do=WaitingPage.open_batch,
    ),
    _Key(
        "grant", ("A",), "grant", ("waiting",), "approve, and let later calls like it run without asking; asks first",
        asks=True, footer_rank=12, mouse=False, why_not=_not_granted, do=lambda page: ask_grant(page.panel),
    ),
    _Key(
        "accept", ("t",), "accept", ("waiting", "library"), "accept the file, exactly as it is", decides=True,
        footer_rank=20, after="read", needs="owner", phrase="accept it", why_not=_not_accepted, intents=_accepted,
    ),
    _Key(
        "accept_rest", ("T",), "accept the rest", ("waiting",),
        "accept what was added together, except what to review first", decides=True,
        footer_rank=20, after="read", needs="owner", why_not=_no_rest, intents=lambda now: _suite(now, rest=True),
    ),
    _Key(
        "decline_key", ("x",), "decline", ("waiting",),
        "decline an offered key of a publisher: the accepted one stays", decides=True, footer_rank=21,
        needs="core", never_with="whole",
        why_not=unless(lambda now: _offered_key(now) and _free(now), "no key is offered here"), intents=_declined,
    ),
    _Key(
        "start_again", ("s",), "start again", ("library",), "have an MCP server that ended too often started again",
        footer_rank=20, needs="core",
        why_not=unless(
            lambda now: now.library_item is not None and now.library_item.is_held,
            "no MCP server that ended too often is selected",
        ),
        intents=_released,
    ),
    _Key(
        "withdraw_acceptance", ("x",), "withdraw", ("library",),
        "withdraw the acceptance: agents can no longer see it", decides=True, footer_rank=21,
        after="opened", needs="core", phrase="withdraw its acceptance",  # it allows less: nothing of the file needs to have been read
        why_not=unless(
            lambda now: now.withdrawable is not None and _free(now), "there is no acceptance to withdraw here"
        ),
        intents=_withdrawn,
    ),
    _Key(
        "allow_host", ("t",), "allow the host", ("sessions",),
        "let the session reach the host that it was refused, until it ends", decides=True, footer_rank=21,
        after="read", needs="core", never_with="confirm_device",
        why_not=_no_host, intents=_allowed,
    ),
    _Key(
        "confirm_device", ("t",), "confirm the device", ("sessions",),
        "show the words of a device that asks to be paired; asks first", asks=True, footer_rank=21,
        needs="core",
        why_not=unless(lambda now: now.device and not now.device.confirmed, _NO_DEVICE),
        do=_ask_about_device,
    ),
    _Key(
        "end_session", ("x",), "end the session", ("sessions",), "end the session; asks first", asks=True,
        footer_rank=22, needs="owner", never_with="end_device",
        why_not=unless(lambda now: now.session, _said.NO_SESSION), do=_ask_end,
    ),
    _Key(
        "end_device", ("x",), "end the pairing", ("sessions",), "end the device's pairing, at once",
        footer_rank=22, needs="owner", why_not=unless(lambda now: now.device, _NO_DEVICE), intents=ended,
    ),
    Command[Situation, WaitingPage](
        "deny", ("d",), "deny", ("waiting",), "deny, with a reason that the agent will read", asks=True,
        footer_rank=30, label_now=lambda now: _counted("deny", now), why_not=lambda now: call_blocked(now, now.deny_blocked_by), do=_ask_deny,
    ),
    Command[Situation, WaitingPage](
        "edit_call", ("e",), "edit", ("waiting",), "change the arguments before you answer", asks=True,
        footer_rank=32, do=_ask_edit, why_not=lambda now: call_blocked(now, now.blocked_by) or _fixed(now),
    ),
    Command[Situation, WaitingPage](
        "whole", ("x",), "whole", ("waiting",), "show the whole new preview; again: the changes",
        footer_rank=35, needs="document", never_with="put_in",
        why_not=unless(
            lambda now: now.scrollable and now.item is not None and now.model.preview_row is not None,
            "no new preview is shown here",
        ),
        do=WaitingPage.show_whole,
    ),
    _Key(
        "refresh", ("r",), "refetch", ("waiting",), "fetch the preview again", footer_rank=40,
        why_not=_no_refetch,
        intents=lambda now: (RefreshPreview(approval_id=now.item.key),) if now.item else (),
    ),
    _Key(
        "look_again", ("l",), "look again", ("waiting", "activity"),
        "look at the service again after an unknown outcome", footer_rank=6, needs="core",
        why_not=lambda now: "" if now.unknown_outcome_id else _known_outcome(now),
        intents=lambda now: (RefetchPreview(call_id=now.unknown_outcome_id),),
        said=words.views.LOOKING_AGAIN,
    ),
    _Key(
        "acknowledge", ("m",), "acknowledge", ("waiting",),
        "acknowledge an unknown outcome: the call no longer waits", decides=True, footer_rank=7,
        needs="core", why_not=_not_acknowledged, intents=_acknowledged,
    ),
    _Key(
        "stop_run", ("X",), "stop the run", ("waiting", "activity"),
        "stop the call that is running; asks first", asks=True, footer_rank=11, needs="core",
        why_not=unless(lambda now: now.running, _said.NOT_RUNNING), do=_ask_stop_run,
    ),
    _Key(
        "undo_run", ("z",), "undo", ("waiting", "activity"), "take back what this call wrote",
        decides=True, footer_rank=9, needs="core", phrase="undo it",
        why_not=unless(
            _undoable,
            "nothing here can be undone: open a call that wrote files in view 2, while what was there before is kept",
        ),
        intents=_undone,
    ),
)  # fmt: skip
