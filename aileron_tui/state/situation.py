"""The situation of the model at one moment, and what keeps a key from deciding: no database, a deadline too near."""

from collections.abc import Iterable

from aileron_core.console_port.account_views import AccountNeed
from aileron_core.console_port.intents import Deny
from aileron_core.console_port.view_models import WAITING_STATES, ApprovalView
from aileron_tui.input.commands import AnyCommand, BlockedBy, KeyContext, RunningCall
from aileron_tui.items import Item
from aileron_tui.state.model import Model
from aileron_tui.state.pending_intents import file_key

COUNTED_FROM = 21
"""Calls of a batch whose number has to be typed before they are approved."""
DEADLINE_MARGIN = 1.0
"""Seconds before the deadline from which on a yes could come too late; it is not accepted."""


class Situation:
    """On what depends what a key may do; what is not here is asked of the `model`."""

    def __init__(self, model: Model, now: float, at: float, reason: str = "") -> None:
        """*now*: epoch seconds, *at*: monotonic ones; *reason*: what stands where something is asked."""
        view, table, item, row = model.view, model.table, model.current_item, None
        shown, reading = model.document_shown, model.reading
        if view == "accounts":
            row = model.accounts.current
        self.model, self.registry, self.now, self.reason = model, model.registry, now, reason
        self.view, self.panel, self.vault = view, model.panel, model.vault.state
        self.item = item
        self.batch = item.batch if item is not None else None
        self.approval = item.approval if item is not None else None
        self.suite = item.suite if item is not None else None
        self.running = running_call(model)
        self.library_item = model.library.current if view == "library" else None
        self.session = model.sessions_table.session if view == "sessions" else None
        self.device = model.sessions_table.device if view == "sessions" else None
        self.asked_device = (
            model.pairing.device(model.panel_key) if model.panel == "device" else None
        )
        self.bound_account = row.bound if row is not None else None
        self.credential_user = row.user if row is not None else None
        """The accepted connector of the selected row there."""
        self.in_table = self.batch is not None and model.queue.in_table
        """The keys that move go to the table of a batch."""
        self.rows = len(model.queue.items) if table is None else len(table)
        if self.batch is not None and self.in_table:
            self.rows = len(self.batch.calls)
        """How many rows there are to move among."""
        self.opened = table is not None and table.opened
        """A row of a list is shown whole."""
        self.blocked_by: BlockedBy = _block(model, now)
        self.deny_blocked_by: BlockedBy = _deny_block(model, item, now)
        self.armed = model.arming.is_armed(model.screen_version, at)
        self.pressed_once = model.pressed_once
        """The command whose first press reported what is unread or unknown."""
        self.others_denied = _waiting(model, model.deny_panel.others, now)
        """The calls that the deny panel counts besides the one that it is about."""
        left_out = self.batch.left_out if self.batch is not None else ()
        ids = (each.call_id for each in item.calls) if item is not None else ()
        self.calls = _waiting(model, (each for each in ids if each not in left_out), now)
        """The calls that an answer is about: of a batch those that are put in."""
        self.document_shown = shown
        self.unseen, self.total = (reading.unseen, reading.total) if shown else (0, 0)
        self.findings: tuple[str, ...] = ()
        """What was found in the selected item that wants a second press: hidden text, look-alikes, a drift."""
        if shown and ((view == "waiting" and table is None) or view == "library"):
            self.findings = model.findings
        if model.panel == "grant":
            self.findings = (*model.grant_panel.findings, *self.findings)
        self.scrollable = shown and model.scrollable
        """The document has more lines than its pane."""

    @property
    def context(self) -> KeyContext:
        if self.panel in ("none", "palette"):
            return "reader" if self.model.reader else self.view
        return self.panel

    @property
    def shows_document(self) -> bool:
        return self.opened or (self.view == "waiting" and self.blocked_by not in ("empty", "small"))

    @property
    def in_document(self) -> bool:
        """The keys that move and search are the document's."""
        return self.opened or self.moves_document

    @property
    def moves_document(self) -> bool:
        """The keys that move rows move the document instead."""
        focused = self.model.document_focused and self.view == "waiting" and not self.in_table
        return self.shows_document and (self.model.reader or focused)

    @property
    def can_change(self) -> bool:
        """The core is there and can write: something can be asked of it."""
        return self.blocked_by not in ("lost", "storage")

    @property
    def unknown_outcome_id(self) -> str:
        """Id of the call whose outcome nobody knows, where one can look again; else empty."""
        view = self.approval
        if self.view == "activity":
            view = self.model.activity.approval
        return view.call_id if view is not None and view.can_fetch_again else ""

    @property
    def account_need(self) -> AccountNeed | None:
        """What the selected call waits for, if it is an account."""
        view = self.approval
        return view.account_need if view is not None and view.state == "awaiting_vault" else None

    @property
    def acceptable(self) -> tuple[str, str] | None:
        """Kind and name of the file that could be accepted here."""
        if self.item is not None and (file := self.item.file) is not None:
            return file.kind, file.name
        return self._library_file("held_back")

    @property
    def withdrawable(self) -> tuple[str, str] | None:
        """Kind and name of the file whose acceptance could be withdrawn here."""
        return self._library_file("ready", "cannot_run")

    def _library_file(self, *states: str) -> tuple[str, str] | None:
        file = self.library_item
        return (file.kind, file.name) if file is not None and file.state in states else None

    def needs_second_press(self, command: AnyCommand) -> bool:
        """Return whether the first press of *command* only says what was not seen, or what was found."""
        if self.pressed_once == command.id:
            return False
        blind = self.approval is not None and self.approval.preview.status == "unavailable"
        return self.unseen > 0 or blind or bool(self.findings) or len(self.calls) >= COUNTED_FROM


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
        return item.key if (item := model.current_item) is not None else ""
    file = model.library.current if model.view == "library" else None
    return file_key(file.kind, file.name) if file is not None else model.sessions_table.key or ""


def _deny_block(model: Model, item: Item | None, now: float) -> BlockedBy:
    general = _general_block(model)
    if general != "none" or item is None:
        return "empty" if general == "none" else general
    view = item.approval
    if view is None:
        return "empty" if item.batch is None else "none"
    if isinstance(model.pending_intents.get(item.key), Deny):
        return "sending"
    if view.state not in WAITING_STATES:
        return "over"
    return "deadline" if _over(view, now) else "none"


def _waiting(model: Model, keys: Iterable[str], now: float) -> tuple[ApprovalView, ...]:
    """Return those of the calls *keys* that can still be answered."""
    sent, items = model.pending_intents, map(model.queue.get, keys)
    calls = (item.approval for item in items if item is not None and item.approval is not None)
    return tuple(
        each
        for each in calls
        if each.state in WAITING_STATES
        and not _over(each, now)
        and not isinstance(sent.get(each.call_id), Deny)
    )


def _over(view: ApprovalView, now: float) -> bool:
    return view.expires_at is not None and view.expires_at - now <= DEADLINE_MARGIN
