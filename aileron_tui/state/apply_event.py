"""What each event of the core changes in the console's state, and the status line's report of it."""

from collections.abc import Sequence

from aileron_core.audit.events import AuditEvent
from aileron_core.console_port.account_views import (
    AccountChanged,
    AccountRefused,
    AccountsUpdated,
    LoginUpdated,
)
from aileron_core.console_port.devices import DevicesUpdated, LinkMade
from aileron_core.console_port.events import (
    ApprovalsRead,
    ApprovalUpdated,
    AuditExported,
    AuditVerified,
    CallRead,
    CallsCounted,
    CoreEvent,
    CoreLost,
    EverythingStopped,
    GrantEnded,
    HistoryRead,
    IntentRefused,
    LibraryUpdated,
    OffersRead,
    PauseChanged,
    Recorded,
    RecordRead,
    RecordsRead,
    SessionsUpdated,
    ShapeTried,
    StandingUpdated,
    StorageHealth,
    VaultRefused,
    VaultStatus,
    VaultUnlocked,
)
from aileron_core.console_port.intents import Accept, AcceptSuite, WithdrawAcceptance
from aileron_core.console_port.view_models import WAITING_STATES, ApprovalView, SessionView
from aileron_core.text import escape
from aileron_tui import words
from aileron_tui.draw.document import agent_name
from aileron_tui.draw.foreign_text import foreign_text
from aileron_tui.draw.read_back import look_failure
from aileron_tui.draw.text import Line, Piece, line
from aileron_tui.draw.times import clock_minutes
from aileron_tui.state.model import Model
from aileron_tui.state.pending_intents import intent_key

AROUND_SECONDS = 60.0
"""How long it stays said that a session went around the gate, unless a key ends it."""
WRONG_BEFORE_SECONDS = 60.0
"""How long it stays said that wrong passphrases were given, unless a key ends it."""


def apply_event(model: Model, event: CoreEvent, now: float, at: float) -> bool:
    """Apply *event* to *model*; return whether it brought a new waiting call.

    *now* is epoch seconds, *at* monotonic seconds.
    """
    match event:
        case ApprovalUpdated():
            return _approval(model, event.view, now, at)
        case ApprovalsRead():
            model.add_approvals(event)
        case Recorded():
            _recorded(model, event, now, at)
        case LibraryUpdated():
            _library(model, event, now, at)
        case SessionsUpdated():
            _sessions(model, event, now, at)
        case RecordsRead() | RecordRead() | CallRead() | HistoryRead() | CallsCounted():
            _read(model, event, now)
        case AuditVerified():
            model.audit.on_verified(event)
        case AccountsUpdated() | AccountChanged() | AccountRefused() | LoginUpdated():
            _accounts(model, event, now, at)
        case VaultStatus() | VaultRefused() | VaultUnlocked():
            _vault(model, event, at)
        case LinkMade() | DevicesUpdated():
            _devices(model, event, now, at)
        case OffersRead() | ShapeTried() | StandingUpdated():
            _grants(model, event, now, at)
        case _:
            _whole(model, event, at)
    return False


def _read(
    model: Model,
    event: RecordsRead | RecordRead | CallRead | HistoryRead | CallsCounted,
    now: float,
) -> None:
    match event:
        case RecordsRead():
            model.audit.add_page(event, now)
        case RecordRead():
            model.audit.add_body(event)
        case CallRead():
            model.opened_call.on_read(event)
        case HistoryRead():
            model.activity.add_page(event, now)
        case CallsCounted():
            model.activity.on_counted(event)


def _recorded(model: Model, event: Recorded, now: float, at: float) -> None:
    record = event.record
    model.records.append(record)
    model.head_words = event.head_words
    model.activity.add(record, now)
    model.audit.add(record, now)
    model.opened_call.on_change(record.run_id)
    if record.event == AuditEvent.RUN_UNDONE:
        model.say((Piece(words.status.undone(escape(record.action or "")), "ok"),), at)


def _whole(model: Model, event: CoreEvent, at: float) -> None:
    match event:
        case StorageHealth():
            model.health = event
        case PauseChanged():
            model.paused_at = event.paused_at
            model.forget_refusal()
        case AuditExported():
            model.say(audit_exported(event), at)
        case EverythingStopped():
            model.say(everything_stopped(event), at)
        case GrantEnded():
            model.say((Piece(words.rules.ended(event.grant_id, event.why), "attn"),), at)
        case IntentRefused():
            model.pending_intents.on_refused(event.call_id)
            model.audit.on_refused()
            if not event.call_id:  # no reading is about one call
                model.activity.on_refused()
                model.opened_call.on_refused()
            model.refetched.pop(event.call_id, None)
            if event.call_id == model.edit_form.key:
                model.edit_form.problem = event.message
            if model.panel == "pair" and not model.pairing.is_made:
                model.close_panel()
            if model.panel == "grant" and model.grant_panel.tried is None:
                model.close_panel()  # nothing more is known of the call
            model.say(foreign_text(event.message, "attn"), at)
        case CoreLost():
            model.core_lost = event.message
            model.pending_intents.clear()
            model.vault_panel.on_answer()
        case _:
            pass  # the others are taken one by one


def _vault(model: Model, event: VaultStatus | VaultRefused | VaultUnlocked, at: float) -> None:
    panel = model.vault_panel
    match event:
        case VaultStatus():
            if (model.vault.state, event.state) == ("unlocked", "locked"):
                model.say(words.vault.locked_now(), at)
            if (model.vault.state, event.state) == ("locked", "unlocked"):
                model.activity.read_again()
                model.opened_call.on_change(model.opened_call.run_id)
            model.vault = event
        case VaultUnlocked():
            opened = Piece(words.vault.opened(created=panel.creates), "ok")
            panel.on_answer()
            told: list[Piece] = []
            if event.failed_attempts:
                since = clock_minutes(event.failed_since) if event.failed_since else ""
                wrong = words.vault.wrong_before(event.failed_attempts, since)
                told += [Piece(f" {wrong}", "attn")]
            if event.problem:
                told += [Piece(" "), *foreign_text(event.problem, "attn")]
            if told:
                model.say((opened, *told), at, hold=WRONG_BEFORE_SECONDS)
            else:
                model.say((opened,), at)
        case VaultRefused():
            panel.on_refused(event.message, event.wait_seconds, at)
            if model.panel != "passphrase":
                model.say(foreign_text(event.message, "attn"), at)


def _accounts(
    model: Model,
    event: AccountsUpdated | AccountChanged | AccountRefused | LoginUpdated,
    now: float,
    at: float,
) -> None:
    panel = model.account_panel
    match event:
        case AccountsUpdated():
            model.accounts.update(event, now)
        case AccountChanged():
            if panel.is_sent or model.panel == "login":
                panel.close()
                model.close_panel()
            account = escape(event.account or event.name)
            model.say((Piece(words.vault.done(event.change, account), "ok"),), at)
        case AccountRefused():
            panel.on_refused(event)
            if model.panel not in ("bind", "login"):
                model.say(foreign_text(event.message, "attn"), at)
            elif panel.question is not None:
                model.open_panel("bind")
        case LoginUpdated():
            known = panel.login is not None and panel.login.login_id == event.login.login_id
            if model.panel in ("bind", "login") and (panel.is_sent or known):
                panel.on_login(event.login)
                model.open_panel("bind" if panel.question is not None else "login")


def _approval(model: Model, view: ApprovalView, now: float, at: float) -> bool:
    key, queue = view.call_id, model.queue
    known = queue.get(key)
    if known is None and queue.unread_count and not view.awaits_acknowledgement:
        model.defer_update(view)  # it is read later, in its turn
        return False
    before = known.approval if known is not None else None
    if queue.is_new_difference(view):
        model.say(read_back_differs(view), at)
    _refetched(model, view, at)
    _looked_again(model, view, at)
    arrived = queue.update(view, now)
    model.opened_call.on_change(view.run_id)
    if view.decided_at is not None or view.ended_at is not None:
        model.decided.update(queue.decided, now)
    model.activity.add_approval(view)
    model.deny_panel.update(view)
    model.account_waits.update(view)
    item = queue.get(key)
    model.pending_intents.on_approval(view, item.version if item is not None else ())
    if before is not None and before.awaits_acknowledgement and not view.awaits_acknowledgement:
        if not view.is_settled:
            model.say(acknowledged(view), at)
        if view.call_id == queue.selected and not view.is_settled:  # that the person wants to see
            queue.advance()
    if before is None or before.state == view.state:
        return arrived
    if before.state in WAITING_STATES and view.state not in WAITING_STATES:
        _ended(model, view, at)
    elif before.state == "checking" and view.drift is not None and key != queue.selected:
        counts = model.deny_panel.count(key, "changed")
        model.say(ended_here(view, counts["approved"], counts["changed"]), at)
    elif queue.was_decided_here(key) and (failure := approved_run_failure(view)) is not None:
        model.say(failure, at)
    return arrived


def _refetched(model: Model, view: ApprovalView, at: float) -> None:
    """Report a preview that was fetched again and is the same: nothing else on screen says so."""
    before, preview = model.refetched.get(view.call_id), view.preview
    if before is None:
        return
    fetched = preview.status != "fetching" and preview.updated_at > before.preview.updated_at
    if view.state in WAITING_STATES and not fetched:
        return
    del model.refetched[view.call_id]
    same = preview.fields == before.preview.fields and view.drift == before.drift
    if fetched and same and preview.status == before.preview.status == "ready":
        model.say(same_preview(view), at)


def _looked_again(model: Model, view: ApprovalView, at: float) -> None:
    """Report what a look at the service showed, once."""
    look = view.look
    if (
        look is None
        or look.preview.status == "none"
        or model.looked_at.get(view.call_id) == look.at
    ):
        return
    model.looked_at[view.call_id] = look.at
    model.say(looked_again(view, model.registry.key_label("acknowledge")), at)


def _ended(model: Model, view: ApprovalView, at: float) -> None:
    """Report an end, and let the cursor go on where the person decided."""
    item = model.queue.current
    selected = item is not None and item.key == view.call_id
    elsewhere = words.views.is_elsewhere(view.hand)  # though a key was pressed here as well
    if model.queue.was_decided_here(view.call_id) and not elsewhere:
        outcome = "denied" if view.state == "denied" else "approved"
        counts = model.deny_panel.count(view.call_id, outcome)
        model.say(ended_here(view, counts[outcome], counts["changed"]), at)
        if selected:
            model.queue.advance()
    elif selected:
        model.say(ended_elsewhere(view), at)


def _library(model: Model, event: LibraryUpdated, now: float, at: float) -> None:
    done = tuple(model.pending_intents.take_finished_files(event))
    for each in done:
        model.say(acceptance_changed(each), at)
    model.actions_ready = event.actions_ready
    model.settings_accepted = event.settings_accepted
    model.queue.set_files(event.not_accepted, event.problems, event.library)
    if model.queue.selected_is_over and model.queue.selected in map(intent_key, done):
        model.queue.advance()
    model.library.update(event.library, event.problems, now)


def newly_around(before: Sequence[SessionView], after: Sequence[SessionView]) -> list[SessionView]:
    """Return the sessions that have gone around the gate now, and had not before."""
    known = {each.session_id for each in before if each.went_around}
    return [each for each in after if each.went_around and each.session_id not in known]


def _sessions(model: Model, event: SessionsUpdated, now: float, at: float) -> None:
    for session in newly_around(model.sessions, event.sessions):
        tool = escape(session.went_around[-1].tool)
        said = Piece(f": {words.views.called_around(tool)}.", "attn")
        agent = foreign_text(session.agent, "attn")
        model.say(line(Piece("▲ ", "attn"), *agent, said), at, hold=AROUND_SECONDS)
    model.sessions = event.sessions
    model.sessions_table.update(event.sessions, model.pairing.devices, now)
    for allowed in model.pending_intents.take_allowed_hosts(event.sessions):
        model.say((Piece(words.status.may_reach(escape(allowed.host)), "ok"),), at)
    for session_id in model.pending_intents.take_ended_sessions(event.sessions):
        model.say(session_ended(model.ending_agents.pop(session_id, "")), at)


def _devices(model: Model, event: LinkMade | DevicesUpdated, now: float, at: float) -> None:
    """Ask about the device that redeemed the link which is shown; of any other only say that it is there."""
    if isinstance(event, LinkMade):
        model.pairing.on_link(event)
        return
    before, said = model.pairing.devices, words.devices
    came = model.pairing.update(event.devices)
    model.sessions_table.update(model.sessions, event.devices, now)
    for each in before:
        device = model.pairing.device(each.device_id)
        if device is None:
            model.say(said.ended(each.words), at)
        elif device.confirmed and not each.confirmed:
            model.say((Piece(said.confirmed(device.words), "ok"),), at)
    if came is not None and model.panel == "pair":
        model.open_panel("device", came.device_id)
    elif came is not None:
        view, key = (model.registry.key_label(e) for e in ("view_sessions", "confirm_device"))
        model.say((Piece(said.wants_to_pair(came.kind, view, key), "attn"),), at)


def _grants(
    model: Model,
    event: OffersRead | ShapeTried | StandingUpdated,
    now: float,
    at: float,
) -> None:
    match event:
        case StandingUpdated(grants=grants, rules=rules):
            model.rules.update(grants, rules, now)
        case OffersRead(offers=offers):
            model.forget_refusal()
            if model.grant_panel.on_offers(offers) or model.deny_panel.on_offers(offers):
                model.refuse(escape(offers.why_none), at)
        case ShapeTried():
            model.forget_refusal()
            model.grant_panel.on_tried(event)


def audit_exported(event: AuditExported) -> Line:
    """Return the report of an exported audit: how many records, and the file's path."""
    return line(Piece(f"✓ {words.views.exported(event.records)} ", "ok"), *foreign_text(event.path))


def ended_here(view: ApprovalView, calls: int = 1, changed: int = 0) -> Line:
    """Return the report of what the person decided; *calls*: how many one press answered, *changed*: that wait again."""
    title = escape(view.title)
    if view.state in ("expired", "withdrawn"):
        return ended_elsewhere(view)  # that came before the person's answer
    if view.state == "denied":
        text = words.status.denied(title, agent_name(view), escape(view.reason), calls)
        return (Piece(text, "danger"),)
    if view.state == "failed":
        return _failure(view)
    digest_words = f" · {' · '.join(view.words)}" if view.words and calls == 1 else ""
    done = words.status.approved(title, calls) if calls else ""
    waits = words.status.changed_and_wait(changed) if changed else ""
    return line(Piece(done, "ok"), Piece(digest_words, "muted"), Piece(waits, "attn"))


def ended_elsewhere(view: ApprovalView) -> Line:
    """Return the report of an end that no key of this console brought about."""
    outcome = words.item.OUTCOMES.get(view.state, view.state)
    return (Piece(words.status.ended_elsewhere(escape(view.title), outcome, escape(view.hand))),)


def approved_run_failure(view: ApprovalView) -> Line | None:
    """Return the report of a run that the person approved and that went wrong; None otherwise."""
    if view.state == "failed":
        return _failure(view)
    if view.state == "unknown":
        outcome = foreign_text(view.outcome or view.title)
        return line(Piece(f"{words.item.ROW_STATES[view.state]}: ", "attn"), *outcome)
    return None


def acknowledged(view: ApprovalView) -> Line:
    """Return the report of an unknown outcome that a person took note of."""
    return (Piece(words.status.acknowledged(escape(view.title)), "ok"),)


def looked_again(view: ApprovalView, acknowledge_key: str) -> Line:
    """Return the report of a look at the service of a call whose outcome is unknown."""
    look = view.look
    if look is None or view.is_settled:
        return (Piece(words.status.settled(words.item.wanted(view.approval_id)), "ok"),)
    if look.preview.status == "unavailable":
        return look_failure(look)
    if look.comparison is not None:
        labels = [escape(label) for label in look.comparison.labels]
        return (Piece(words.status.still_differs(labels), "attn"),)
    key = acknowledge_key if view.awaits_acknowledgement else ""
    return (Piece(words.item.cannot_tell(key), "attn"),)


def same_preview(view: ApprovalView) -> Line:
    """Return the report that the preview was fetched again and is as it was."""
    return (Piece(words.status.same_preview(changed_before=view.drift is not None), "ok"),)


def read_back_differs(view: ApprovalView) -> Line:
    """Return the report that the service does not hold what was approved."""
    return (Piece(words.status.read_back_differs(escape(view.title)), "attn"),)


def acceptance_changed(intent: Accept | AcceptSuite | WithdrawAcceptance) -> Line:
    """Return the report of a file that counts now, or does not any more; or of several."""
    if isinstance(intent, AcceptSuite):
        of_actions = sum(file.endswith(".md") for file, _ in intent.files)
        counts = (of_actions, len(intent.files) - of_actions)
        return (Piece(words.files.suite_accepted(*counts), "ok"),)
    name = escape(intent.name)
    text = (
        words.files.accepted(name)
        if isinstance(intent, Accept)
        else words.files.acceptance_withdrawn(intent.kind, name)
    )
    return (Piece(text, "ok"),)


def session_ended(agent: str) -> Line:
    return (Piece(words.status.session_ended(escape(agent)), "ok"),)


def everything_stopped(event: EverythingStopped) -> Line:
    text = words.bars.everything_stopped(event.denied, event.sessions_ended, event.runs_stopped)
    return (Piece(text, "danger"),)


def _failure(view: ApprovalView) -> Line:
    return (Piece(words.status.failed(escape(view.title), escape(view.outcome)), "danger"),)
