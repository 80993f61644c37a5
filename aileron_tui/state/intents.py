"""The intents that the press of a key submits, for the item on screen."""

from aileron_core.console_port.account_intents import FinishLogin, RebindAccount, RevokeAccount
from aileron_core.console_port.intents import (
    Accept,
    AcceptSuite,
    Acknowledge,
    AllowHost,
    Approve,
    ChooseAccount,
    Deny,
    EndSession,
    Intent,
    LockVault,
    MarkReadBackSeen,
    RefetchPreview,
    RefreshPreview,
    SetPause,
    StopEverything,
    StopRun,
    UndoRun,
    WithdrawAcceptance,
)
from aileron_core.console_port.view_models import ApprovalView
from aileron_tui.items import SuiteFiles
from aileron_tui.state.model import Model
from aileron_tui.state.situation import equal_calls, running_call


def intents_of(model: Model, action: str, reason: str, now: float) -> tuple[Intent, ...]:
    """Return all that the press of *action* asks of the core: for equal calls each its own denial."""
    if action != "deny_equal":
        intent = intent_of(model, action, reason)
        return (intent,) if intent is not None else ()
    first = intent_of(model, "deny_enter", reason)
    if first is None:
        return ()
    return first, *(
        Deny(approval_id=key, reason=reason, on_screen=False) for key in equal_calls(model, now)
    )


def seen_difference(model: Model) -> MarkReadBackSeen | None:
    """Return, once, that the person opened a call of which the service holds something else."""
    opened = model.table is not None and model.table.opened
    call = model.opened_call.call if opened else None
    view = call.approval if call is not None else None
    read = view.read_back if view is not None else None
    if view is None or read is None or not read.waits_to_be_seen:
        model.marked_seen = ""
        return None
    if model.core_lost is not None or model.marked_seen == view.run_id:
        return None
    model.marked_seen = view.run_id
    return MarkReadBackSeen(run_id=view.run_id)


def intent_of(model: Model, action: str, reason: str = "") -> Intent | None:
    """Return what the press of *action* asks of the core; None where there is nothing to ask."""
    match action:
        case "pause" | "go_on":
            return SetPause(paused=action == "pause")
        case "stop_enter":
            return StopEverything()
        case "lock_vault":
            return LockVault()
        case "stop_run_enter":
            running = running_call(model)
            asked = running is not None and model.panel_key == running.run_id
            return StopRun(run_id=running.run_id) if running is not None and asked else None
        case "end_enter":
            return _end_session(model)
        case "allow_host":
            return _allow_host(model)
        case "undo_run":
            opened = model.opened_call
            can_undo = opened.call is not None and opened.call.can_undo
            return UndoRun(run_id=opened.run_id) if model.view == "activity" and can_undo else None
        case "accept" | "accept_rest" if (suite := _suite(model)) is not None:
            files = suite.files if action == "accept" else suite.other_files
            shown = tuple((each.file, each.digest) for each in files)
            return AcceptSuite(
                suite_id=suite.suite.suite_id, files=shown, run_seconds=suite.run_seconds
            )
        case "rebind_enter" | "revoke_enter" | "login_enter":
            return _about_an_account(model, action)
        case "accept" | "withdraw_acceptance":
            return _about_a_file(model, action)
        case _:
            return _about_a_call(model, action, reason)


def _end_session(model: Model) -> Intent | None:
    asked = model.panel_key if model.panel == "end" else None
    return EndSession(session_id=asked) if asked and asked == model.sessions_table.key else None


def _allow_host(model: Model) -> Intent | None:
    session = model.sessions_table.current if model.view == "sessions" else None
    host = session.host_to_allow if session is not None else None
    if session is None or host is None:
        return None
    return AllowHost(session_id=session.session_id, host=host)


def _about_an_account(model: Model, action: str) -> Intent | None:
    """Return what a yes in a panel asks, about exactly what the panel showed."""
    panel, row = model.account_panel, model.accounts.current
    if action == "login_enter":
        login, account = panel.login, panel.account_named
        if login is None or login.state != "authorized" or not account:
            return None
        return FinishLogin(login_id=login.login_id, account=account)
    if row is None or row.bound is None or row.bound != panel.bound:
        return None
    if action == "revoke_enter":
        return RevokeAccount(name=row.bound.name)
    if row.user is None or row.user != panel.user:
        return None
    return RebindAccount(name=row.bound.name, connector_hash=row.user.hash)


def _suite(model: Model) -> SuiteFiles | None:
    item = model.current_item
    return item.suite if item is not None else None


def _about_a_file(model: Model, action: str) -> Intent | None:
    if model.view == "waiting":
        item = model.current_item
        file = item.file if item is not None and action == "accept" else None
    else:
        file = model.library.current
    if file is None:
        return None
    if action == "withdraw_acceptance":
        return WithdrawAcceptance(kind=file.kind, name=file.name, digest=file.digest)
    seconds = file.run_time.seconds if file.run_time is not None else 0
    return Accept(kind=file.kind, name=file.name, digest=file.digest, run_seconds=seconds)


def _about_a_call(model: Model, action: str, reason: str) -> Intent | None:
    item = model.current_item
    if item is None or item.approval is None:
        return None
    if action in ("approve", "approve_session"):
        return Approve(
            approval_id=item.key,
            digest=item.approval.digest,
            unseen_lines=model.reading.unseen,
            remember=action == "approve_session",
        )
    if action == "acknowledge" and item.is_unacknowledged:
        look = item.approval.look
        return Acknowledge(call_id=item.key, looked_at=look.at if look is not None else None)
    if action == "refresh":
        return RefreshPreview(approval_id=item.key)
    if action == "look_again":
        return RefetchPreview(call_id=item.approval.call_id)
    if action == "deny_enter" and model.panel_key == item.key:
        return Deny(approval_id=item.key, reason=reason)
    if action in ("account_enter", "account_remember") and model.panel_key == item.key:
        return choose_account(model, item.approval, remember=action == "account_remember")
    return None


def choose_account(
    model: Model, view: ApprovalView, *, remember: bool = False
) -> ChooseAccount | None:
    """Return the pick among what is still offered exactly as it was when the question appeared."""
    choice = model.account_choice
    if choice.need is None or choice.need != view.account_need:
        return None
    return ChooseAccount(
        approval_id=view.approval_id,
        connector=choice.need.connector,
        binding=choice.binding,
        remember=remember,
    )
