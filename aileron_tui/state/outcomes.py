"""The status line's reports of events: outcomes of what the person did or looks at."""

from aileron_core.console_port.events import AuditExported, EverythingStopped
from aileron_core.console_port.intents import Accept, AcceptSuite, WithdrawAcceptance
from aileron_core.console_port.view_models import ApprovalView
from aileron_core.text import escape
from aileron_tui import words
from aileron_tui.draw.document import agent_name
from aileron_tui.draw.foreign_text import foreign_text
from aileron_tui.draw.text import Line, Piece, line
from aileron_tui.draw.unknown_outcome import look_failure


def audit_exported(event: AuditExported) -> Line:
    """Return the report of an exported audit: how many records, and the file's path."""
    return line(Piece(f"✓ {words.views.exported(event.records)} ", "ok"), *foreign_text(event.path))


def ended_here(view: ApprovalView, calls: int = 1) -> Line:
    """Return the report of what the person decided; *calls*: how many one press denied so far."""
    title = escape(view.title)
    if view.state in ("expired", "withdrawn"):
        return ended_elsewhere(view)  # that came before the person's answer
    if view.state == "denied":
        text = words.status.denied(title, agent_name(view), escape(view.reason), calls)
        return (Piece(text, "danger"),)
    if view.state == "failed":
        return _failure(view)
    digest_words = f" · {' · '.join(view.words)}" if view.words else ""
    return (Piece(words.status.approved(title), "ok"), Piece(digest_words, "muted"))


def ended_elsewhere(view: ApprovalView) -> Line:
    """Return the report of an end that no key of this console brought about."""
    outcome = words.item.OUTCOMES.get(view.state, view.state)
    return (Piece(words.status.ended_elsewhere(escape(view.title), outcome)),)


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
        return (Piece(words.files.suite_accepted(len(intent.files)), "ok"),)
    name = escape(intent.name)
    text = (
        words.files.accepted(name)
        if isinstance(intent, Accept)
        else words.files.acceptance_withdrawn(intent.kind, name)
    )
    return (Piece(text, "ok"),)


def session_ended(agent: str) -> Line:
    return (Piece(words.status.session_ended(escape(agent)), "ok"),)


def host_allowed(host: str) -> Line:
    return (Piece(words.status.host_allowed(escape(host)), "ok"),)


def everything_stopped(event: EverythingStopped) -> Line:
    text = words.panels.everything_stopped(event.denied, event.sessions_ended, event.runs_stopped)
    return (Piece(text, "danger"),)


def _failure(view: ApprovalView) -> Line:
    return (Piece(words.status.failed(escape(view.title), escape(view.outcome)), "danger"),)
