"""The voice: one line that says what the next key would do, or why not yet."""

from aileron_core.control_plane.port import ApprovalView
from aileron_core.text import escape
from aileron_tui.presenters import wording
from aileron_tui.presenters.lines import Line, Piece, line
from aileron_tui.presenters.model import Said
from aileron_tui.presenters.situation import Situation

__all__ = ["voice"]

ENDS_SOON_SECONDS = 60


def voice(now: Situation, said: Said | None, epoch: float) -> Line:
    """Return what to say in the situation *now*, at *epoch* seconds, by CONSOLE 9's precedence."""
    if now.block == "lost":
        return (Piece(wording.LOST, "danger"),)
    if now.block == "storage":
        return (Piece(wording.STORAGE_STOPS, "danger"),)
    if now.confirmed and now.block == "none":
        return _confirmed(now)
    present = _ends_soon(now, epoch) + _present(now)
    if said is None:
        return present
    warned = bool(now.unseen) or now.block != "none" or present[0].role == "attn"
    if not warned or now.block == "empty":
        return said.pieces
    # What just happened, and beside it the first sentence on what stands there now.
    return line(*said.pieces, "   ", *present[:1])


def _ends_soon(now: Situation, epoch: float) -> Line:
    view = now.approval
    if view is None or view.expires_at is None or now.block not in ("none", "fetching"):
        return ()
    rest = view.expires_at - epoch
    if rest > ENDS_SOON_SECONDS:
        return ()
    return (Piece(wording.ends_soon(int(rest)), "danger"), Piece(" "))


def _confirmed(now: Situation) -> Line:
    key, verb = ("a", "approve") if now.approval is not None else ("t", "take it in")
    if now.unseen:
        text = wording.unseen_pressed(now.unseen, now.total, key, verb)
    else:
        text = wording.blind_pressed(key)
    return (Piece(text, "attn"),)


def _present(now: Situation) -> Line:
    view = now.approval
    match now.block:
        case "empty" | "small" | "drawing":
            return (Piece(""),)
        case "sending":
            return (Piece(wording.SENDING, "muted"),)
        case "undrawable":
            return (Piece(wording.UNDRAWABLE, "danger"),)
        case "checking":
            return (Piece(wording.RECHECKING, "muted"),)
        case "vault":
            return (Piece(wording.VAULT, "attn"),)
        case "fetching":
            return (Piece(wording.LOOKING),)
        case "deadline":
            return (Piece(wording.DEADLINE_OVER, "attn"),)
        case "over":
            return _over(view)
        case _:
            return _decidable(now)


def _over(view: ApprovalView | None) -> Line:
    if view is None:
        return (Piece(""),)
    if view.state == "unknown":
        return (Piece(wording.UNKNOWN_OUTCOME, "attn"),)
    if view.state == "failed":
        return (Piece(wording.failed(escape(view.title), escape(view.outcome)), "danger"),)
    return (Piece(wording.ROW_STATES.get(view.state, "") + ".", "muted"),)


def _decidable(now: Situation) -> Line:
    if now.problem:
        return (Piece(wording.PROBLEM_READ, "muted"),)
    if now.unseen:
        count = Piece(wording.unseen(now.unseen, now.total), "attn")
        return line(count, " ", wording.READ_ON if now.longer else "")
    if now.held is not None:
        text = wording.take_in(now.held.kind, escape(now.held.name))
        return line(Piece(wording.ALL_SEEN, "ok"), " ", Piece(text, "strong"))
    view = now.approval
    if view is None:
        return (Piece(""),)
    verb = wording.runs(f"{escape(view.connector)}.{escape(view.op)}")
    if view.preview.status == "unavailable":
        return (Piece(wording.blind(verb), "attn"),)
    if view.drift is not None:
        return (Piece(wording.changed(verb), "attn"),)
    return line(Piece(wording.ALL_SEEN, "ok"), " ", Piece(wording.ready(verb), "strong"))
