"""What a command does in a situation, and why it does nothing: what footer, keys, palette and refusals go by."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from aileron_core.console_port.view_models import ApprovalView
from aileron_core.devices import answered
from aileron_core.text import escape
from aileron_tui import words
from aileron_tui.input.arming import Obstacle
from aileron_tui.input.commands import AnyCommand, BlockedBy, Change
from aileron_tui.state.situation import Situation

_said = words.status
_BLOCKS: Mapping[BlockedBy, str] = {
    "lost": _said.LOST,
    "storage": "the audit cannot be written",
    "small": "this pane is too small",
    "empty": _said.NO_ITEM,
    "sending": "your decision is being sent",
    "checking": "this is being checked once more before it runs",
    "fetching": "the preview is still being fetched",
    "deadline": "its deadline has passed",
    "drawing": "the item is still being formatted",
    "undrawable": "this item cannot be shown",
}
_NOT_ATTACHED = ("edit_call", "grant", "deny_standing", "refresh", "export")
"""What the console itself does, besides all that needs its core: an attached one answers calls and reads."""
_OVER_PAGES = ({"palette"}, {"help"})


@dataclass(frozen=True, slots=True)
class Availability:
    """What one key does now: whether the footer shows it, and whether its next press decides.

    `asks`: the key works, and asks something first (its label gets `…`).
    `decides_now`: the very next press decides. Neither: it is there, and does nothing yet.
    """

    shown: bool
    decides_now: bool = False
    asks: bool = False

    @property
    def has_effect(self) -> bool:
        return self.shown and (self.decides_now or self.asks)


_ABSENT = Availability(shown=False)
_PLAIN = Availability(shown=True, asks=True)


def availability(command: AnyCommand, now: Situation) -> Availability:
    here = now.context in command.contexts or set(command.contexts) in _OVER_PAGES
    if now.panel == "palette" or not here or _why_not(command, now):
        return _ABSENT
    if not command.decides:
        return _PLAIN
    if command.after and now.view != "waiting" and not now.opened:
        return _PLAIN  # it opens the row, which it decides about once that is open
    if command.after == "read" and now.needs_second_press(command):
        return _PLAIN
    return Availability(shown=True, decides_now=now.armed)


def _why_not(command: AnyCommand, now: Situation) -> str:
    asks_core = command.needs in ("core", "owner")
    if asks_core and not now.can_change:
        return blocked(now, now.blocked_by)
    start = now.model.snapshot
    if start.attached and (asks_core or command.id in _NOT_ATTACHED):
        if command.id == "unlock_vault":
            return command.why_not(now) or _said.unlock_there(words.vault.there(now.vault))
        if not start.is_owners:
            return _said.ATTACHED
        if command.needs != "owner":
            return _said.OWNERS
    if command.needs == "document" and not now.shows_document:
        return "no document is shown"
    return command.why_not(now)


def unless(holds: Callable[[Situation], object], why: str) -> Callable[[Situation], str]:
    """Return what says *why* a command does nothing, unless something *holds*."""
    return lambda now: "" if holds(now) else why


def blocked(now: Situation, by: BlockedBy) -> str:
    """Return what *by* keeps a person from doing; empty for nothing."""
    view = now.approval
    match by:
        case "none":
            return ""
        case "vault":
            need = now.account_need
            return words.vault.REFUSED[need.reason if need is not None else "locked"]
        case "over" if view is not None and view.awaits_acknowledgement:
            return "its outcome is unknown"
        case "over":
            ended = view is None or view.ended_at is not None
            return whose_answer(view) or (_said.ENDED if ended else "this is already decided")
        case "checking" if view is not None and words.views.is_elsewhere(view.hand):
            return whose_answer(view)
        case "lost" if now.model.snapshot.attached:
            return _said.CUT_OFF
        case _:
            return _BLOCKS[by]


def whose_answer(view: ApprovalView | None) -> str:
    """Return whose answer to a call counted, and when, as a clause; empty where no person's did."""
    if view is None or view.decided_by != "person" or view.decided_at is None:
        return ""
    return answered(words.views.by("person", escape(view.hand)), view.state, view.decided_at)


def call_blocked(now: Situation, by: BlockedBy) -> str:
    """Return why nothing can be done about the selected call, which is blocked *by* something, or is none."""
    if now.batch is not None and not now.calls:
        return _said.NONE_PUT_IN
    if now.approval is None and now.batch is None and now.blocked_by in ("none", "drawing"):
        return _said.NO_CALL
    return blocked(now, by)


def not_approved(now: Situation) -> str:
    """Return why the selected call cannot be approved now, as a clause; empty where it can."""
    # While all calls are held the core takes no yes: it would run something later.
    if now.model.paused_at is not None and now.blocked_by == "none":
        return f"all calls are on hold. {now.registry.key_label('go_on')} resumes them"
    return call_blocked(now, now.blocked_by)


# Refusals


def too_soon(key: str, obstacle: Obstacle, moved: Change) -> str:
    """Return why a press of *key*, its label, did not count; *moved*: what was drawn last."""
    if obstacle == "unfocused":
        return f"This pane was not in focus. Go to it, then press {key} again."
    return _said.again(_said.TOO_SOON[moved if obstacle == "drawn" else obstacle], key)


def refusal(commands: tuple[AnyCommand, ...], key: str, now: Situation) -> str:
    """Return why *key*, its label, does nothing in the situation *now*; *commands* are those that it has here."""
    why = _why_not(commands[0], now) if commands else ""
    if not why and now.panel not in ("none", "palette"):
        why = "answer the question first"
    elif not why and now.model.reader:
        leave = now.registry.key_label("reader_leave")
        why = f"this page is only for reading; {leave} goes back"
    if not commands and not why:
        return f"{key} does nothing here. {now.registry.key_label('help')} lists the keys."
    return _said.did_nothing(key, why or _said.ONLY_ROW)


def no_move(command: AnyCommand, key: str, *, in_document: bool) -> str:
    """Return why *command*, which moves or reads on, moved nothing; *in_document*: it moves no rows."""
    why = command.at_end
    if in_document:
        why = {_said.LAST_ROW: _said.AT_END, _said.FIRST_ROW: _said.AT_START}.get(why, why)
    return _said.did_nothing(key, why)
