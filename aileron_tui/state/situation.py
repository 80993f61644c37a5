"""The situation of the model at this moment, and what keeps a key from deciding: no database, a deadline too near."""

from aileron_core.console_port.intents import Deny
from aileron_core.console_port.view_models import WAITING_STATES, ApprovalView
from aileron_tui.input.situation import BlockedBy, RunningCall, Situation
from aileron_tui.items import Item
from aileron_tui.state.model import Model
from aileron_tui.state.pending_intents import file_key

DEADLINE_MARGIN = 1.0
"""Seconds before the deadline from which on a yes could come too late; it is not accepted."""


def situation_of(model: Model, now: float, at: float) -> Situation:
    table, item = model.table, model.current_item
    waiting = model.view == "waiting" and table is None
    reading, shown = model.reading, model.document_shown
    asked = model.deny_panel.reasons if model.panel == "deny" else None
    account = model.accounts.current if model.view == "accounts" else None
    login = model.account_panel.login
    return Situation(
        view=model.view,
        panel=model.panel,
        approval=item.approval if item is not None else None,
        file=item.file if item is not None else None,
        suite=item.suite if item is not None else None,
        file_changed=model.queue.file_changed(item),
        is_problem=item is not None and item.problem is not None,
        ended_call=model.activity.approval if model.view == "activity" else None,
        can_undo=_can_undo(model),
        running=running_call(model),
        library_item=model.library.current if model.view == "library" else None,
        session=model.sessions_table.current if model.view == "sessions" else None,
        rows=len(model.queue.items) if table is None else len(table),
        opened=table is not None and table.opened,
        filtered=model.filtered,
        following=table.following if table is not None else None,
        has_marks=shown and (model.has_marks or model.is_converted or model.unfolded),
        is_converted=shown and model.is_converted,
        unfolded=shown and model.unfolded,
        paused_at=model.paused_at,
        verifying=model.audit.verifying,
        is_call_record=model.view == "audit" and model.audit.is_of_call,
        replayed=model.replayed is not None,
        record_shown=model.view == "audit" and model.audit.record_shown,
        decisions=len(model.decided) if model.view == "waiting" else 0,
        blocked_by=_block(model, now),
        deny_blocked_by=_deny_block(model, item, now),
        armed=model.arming.is_armed(model.screen_version, at),
        focused=model.arming.focused,
        equal_count=len(equal_calls(model, now)) if asked is not None else 0,
        has_earlier_reason=asked is not None and asked.has_earlier,
        has_later_reason=asked is not None and asked.has_later,
        unseen=reading.unseen if shown else 0,
        total=reading.total if shown else 0,
        findings=model.findings if shown and (waiting or model.view == "library") else (),
        pressed_once=model.pressed_once,
        scrollable=shown and model.scrollable,
        has_next_scene=model.guide is not None and model.guide.has_next,
        has_full_preview=waiting and shown and model.preview_row is not None,
        has_wraps=shown and model.has_wraps,
        reader=model.reader,
        document_focused=model.document_focused,
        has_matches=shown and bool(model.search_text) and model.matches > 0,
        links=model.links if shown else 0,
        bound_account=account.bound if account is not None else None,
        credential_user=account.user if account is not None else None,
        login_state=login.state if login is not None else "",
        vault=model.vault.state,
        waiting_for_accounts=model.account_waits.count,
        passphrase_again=model.vault_panel.asks_again,
        passphrase_sent=model.vault_panel.is_sent,
        registry=model.registry,
    )


def _can_undo(model: Model) -> bool:
    call = model.opened_call.call if model.view == "activity" else None
    return call is not None and call.can_undo


def running_call(model: Model) -> RunningCall | None:
    """Return the selected call of view 1 or 2, while its steps run."""
    if model.view == "activity":
        return model.activity.running
    item, decided = model.current_item, model.decided
    view = item.approval if item is not None else decided.current if decided.active else None
    if model.view != "waiting" or view is None or view.state != "executing":
        return None
    began = view.started_at if view.started_at is not None else view.requested_at
    return RunningCall(run_id=view.run_id, name=view.title, started_at=began)


def _general_block(model: Model) -> BlockedBy:
    if model.core_lost is not None:
        return "lost"
    if not model.health.writable:
        return "storage"
    if model.too_small:
        return "small"
    subject = model.subject
    if subject is None:
        return "empty"
    return "undrawable" if model.is_undrawable(subject.version) else "none"


def _block(model: Model, now: float) -> BlockedBy:
    general, subject = _general_block(model), model.subject
    if general != "none" or subject is None:
        return general
    if model.pending_intents.get(_sending_key(model)) is not None:
        return "sending"
    if model.document_shown and model.laid_out_version != subject.version:
        return "drawing"
    item = model.current_item
    view = item.approval if item is not None else None
    if view is None:
        return "over" if item is not None and item.is_over else "none"
    if view.state != "pending":
        states: dict[str, BlockedBy] = {"checking": "checking", "awaiting_vault": "vault"}
        return states.get(view.state, "over")
    if view.preview.status == "fetching" or not view.digest:
        return "fetching"
    return "deadline" if _over(view, now) else "none"


def _sending_key(model: Model) -> str:
    """Return under what key an intent about the selected row is on its way."""
    if model.view == "waiting":
        return (model.queue.selected or "") if model.table is None else ""
    file = model.library.current if model.view == "library" else None
    return file_key(file.kind, file.name) if file is not None else model.sessions_table.key or ""


def _deny_block(model: Model, item: Item | None, now: float) -> BlockedBy:
    general = _general_block(model)
    if general != "none" or item is None:
        return "empty" if general == "none" else general
    view = item.approval
    if view is None:
        return "empty"
    if isinstance(model.pending_intents.get(item.key), Deny):
        return "sending"
    if view.state not in WAITING_STATES:
        return "over"
    return "deadline" if _over(view, now) else "none"


def equal_calls(model: Model, now: float) -> tuple[str, ...]:
    """Return the calls that may be denied together with the one that the deny panel is about."""
    counted = (model.queue.get(key) for key in model.deny_panel.equal_calls)
    return tuple(
        item.key
        for item in counted
        if item is not None
        and model.pending_intents.get(item.key) is None
        and _deny_block(model, item, now) == "none"
    )


def _over(view: ApprovalView, now: float) -> bool:
    return view.expires_at is not None and view.expires_at - now <= DEADLINE_MARGIN
