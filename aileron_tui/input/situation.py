"""What each key would do at this moment, and whether it takes a second press: what footer and keys go by."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from aileron_core.console_port.account_views import (
    AccountNeed,
    BoundAccountView,
    CredentialUserView,
)
from aileron_core.console_port.view_models import (
    ApprovalView,
    LibraryItemView,
    NotAcceptedView,
    SessionView,
)
from aileron_tui.input.commands import (
    COMMANDS,
    DEFAULT_REGISTRY,
    PANEL_CONTEXTS,
    CommandRegistry,
    KeyContext,
)
from aileron_tui.items import SuiteFiles

View = Literal["waiting", "activity", "audit", "library", "sessions", "accounts"]
Panel = Literal[
    "none", "deny", "filter", "stop", "stop_run", "end", "search", "link", "palette",
    "passphrase", "account", "bind", "login", "rebind", "revoke",
]  # fmt: skip
BlockedBy = Literal[
    "none",
    "lost",
    "storage",
    "small",
    "empty",
    "sending",
    "checking",
    "vault",
    "over",
    "fetching",
    "deadline",
    "drawing",
    "undrawable",
]
"""Reasons for which nothing can be approved here, however long one waits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningCall:
    """A call whose steps run now."""

    run_id: str
    name: str
    """Its title, or its action's name: foreign text."""
    started_at: float
    """Epoch seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """Everything on which depends what a key may do now."""

    view: View = "waiting"
    panel: Panel = "none"
    approval: ApprovalView | None = None
    file: NotAcceptedView | None = None
    suite: SuiteFiles | None = None
    file_changed: bool = False
    """The call's action file has changed since the request, and the change is not accepted."""
    is_problem: bool = False
    """The selected row is a problem of a file: there is nothing to decide."""
    ended_call: ApprovalView | None = None
    """The call of the selected row of view 2, if it is known."""
    can_undo: bool = False
    """What the opened call of view 2 wrote may be taken back."""
    running: RunningCall | None = None
    """The selected call, while its steps run."""
    library_item: LibraryItemView | None = None
    """The selected action or connector of view 4."""
    session: SessionView | None = None
    """The selected session of view 5."""
    rows: int = 0
    """How many rows there are to move among."""
    opened: bool = False
    """A row of a list is shown whole."""
    filtered: bool = False
    """Rows of the list are left out."""
    following: bool | None = None
    """The cursor stays on the newest row; None where rows do not come in at the top."""
    has_marks: bool = False
    """Something in the document is drawn as a mark, or it is drawn unfolded."""
    is_converted: bool = False
    """Something in it is drawn as another text than its source."""
    unfolded: bool = False
    """The document shows code points, and nothing folded."""
    has_full_preview: bool = False
    """The document shows the changes, and below them the whole new preview."""
    has_wraps: bool = False
    """A line of the document goes on in the next one."""
    paused_at: float | None = None
    verifying: bool = False
    is_call_record: bool = False
    """The selected record is about a call."""
    replayed: bool = False
    """The screen of an earlier time is shown, in which a call was decided."""
    record_shown: bool = False
    """The record itself is shown in place of its call."""
    decisions: int = 0
    """How many decided calls view 1 lists."""
    blocked_by: BlockedBy = "empty"
    deny_blocked_by: BlockedBy = "empty"
    armed: bool = False
    focused: bool = True
    """The terminal has not said that the pane lost the focus; without it no key decides."""
    equal_count: int = 0
    """How many equal calls the deny panel counts besides the one that it is about."""
    has_earlier_reason: bool = False
    has_later_reason: bool = False
    """There is a reason to bring back; one was brought back."""
    unseen: int = 0
    total: int = 0
    findings: tuple[str, ...] = ()
    """What was found in the selected item that wants a second press: hidden text, look-alikes, a drift."""
    pressed_once: str = ""
    """The action whose first press reported what is unread or unknown."""
    scrollable: bool = False
    """The document has more lines than its pane."""
    has_next_scene: bool = False
    """The demo that guides this console has another scene."""
    reader: bool = False
    """The document has the whole screen; there nothing is decided."""
    document_focused: bool = False
    """The keys that move go to the document, not to the list."""
    has_matches: bool = False
    """A search found something in the document."""
    links: int = 0
    """How many links the document has."""
    bound_account: BoundAccountView | None = None
    """The selected account of the list of accounts."""
    credential_user: CredentialUserView | None = None
    """The accepted connector of the selected row there."""
    login_state: Literal["", "waiting", "authorized", "failed"] = ""
    """How the login is that a panel shows; empty without one."""
    vault: Literal["absent", "locked", "unlocked"] = "absent"
    waiting_for_accounts: int = 0
    """How many calls wait for the vault or an account."""
    passphrase_again: bool = False
    """The passphrase of a new vault was typed once, and is asked for again."""
    passphrase_sent: bool = False
    """The vault is looking at a passphrase."""
    registry: CommandRegistry = field(default_factory=lambda: DEFAULT_REGISTRY)
    """The keys that this console gives to the actions."""

    @property
    def context(self) -> KeyContext:
        if self.panel in ("none", "palette"):
            return "reader" if self.reader else self.view
        return self.panel

    @property
    def has_several_rows(self) -> bool:
        return self.rows > 1

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
        focused = self.document_focused and self.view == "waiting"
        return self.shows_document and (self.reader or focused)

    @property
    def can_change(self) -> bool:
        """The core is there and can write: something can be asked of it."""
        return self.blocked_by not in ("lost", "storage")

    @property
    def can_be_remembered(self) -> bool:
        """A yes to the selected call can cover equal calls of its session too."""
        return self.approval is not None and self.approval.can_be_remembered

    @property
    def unknown_outcome_id(self) -> str:
        """Id of the call whose outcome nobody knows, where one can look again; else empty."""
        view = self.approval if self.view == "waiting" else self.ended_call
        return view.call_id if view is not None and view.can_fetch_again else ""

    @property
    def account_need(self) -> AccountNeed | None:
        """What the selected call waits for, if it is an account."""
        view = self.approval if self.view == "waiting" else None
        return view.account_need if view is not None and view.state == "awaiting_vault" else None

    @property
    def needs_unlocking(self) -> bool:
        """The vault is locked; or there is none, and a call waits for an account that it would keep."""
        if self.vault == "absent":
            return self.waiting_for_accounts > 0
        return self.vault == "locked"

    @property
    def can_bind(self) -> bool:
        """An account can be stored for the connector of the selected row."""
        ready = self.vault == "unlocked" and self.can_change
        return self.view == "accounts" and self.credential_user is not None and ready

    @property
    def can_rebind(self) -> bool:
        """The selected account does not count for its connector as that is now."""
        bound, user = self.bound_account, self.credential_user
        if bound is None or user is None or not self.can_bind:
            return False
        return (bound.connector_hash, bound.hosts) != (user.hash, user.hosts)

    @property
    def has_choice(self) -> bool:
        """A person has to pick the account of the selected call."""
        need = self.account_need
        return need is not None and need.reason == "choice" and self.deny_blocked_by == "none"

    @property
    def acceptable(self) -> tuple[str, str] | None:
        """Kind and name of the file that could be accepted here."""
        if self.view == "waiting" and self.file is not None:
            return self.file.kind, self.file.name
        if (
            self.view == "library"
            and self.library_item is not None
            and self.library_item.state == "held_back"
        ):
            return self.library_item.kind, self.library_item.name
        return None

    @property
    def withdrawable(self) -> tuple[str, str] | None:
        """Kind and name of the file whose acceptance could be withdrawn here."""
        if (
            self.view == "library"
            and self.library_item is not None
            and self.library_item.state in ("ready", "cannot_run")
        ):
            return self.library_item.kind, self.library_item.name
        return None

    def needs_second_press(self, action: str) -> bool:
        """Return whether the first press of *action* only says what was not seen, or what was found."""
        if self.pressed_once == action:
            return False
        blind = self.approval is not None and self.approval.preview.status == "unavailable"
        return self.unseen > 0 or blind or bool(self.findings)


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
_REFRESHABLE: frozenset[BlockedBy] = frozenset({"none", "deadline"})


def availability(action: str, now: Situation) -> Availability:
    if now.panel != "none":
        return _in_panel(action, now)
    if action in _OF_QUESTIONS or (now.reader and not _is_of_reader(action, now)):
        return _ABSENT
    if (decided := _deciding(action, now)) is not None:
        return decided
    return _PLAIN if _offered(action, now) else _ABSENT


def _is_of_reader(action: str, now: Situation) -> bool:
    return "reader" in now.registry.command(action).contexts


def _deciding(action: str, now: Situation) -> Availability | None:
    """Return what a key that decides does; None for any other key."""
    match action:
        case "approve" | "approve_session":
            # While all calls are held the core takes no yes: it would run something later.
            possible = _has_call(now) and now.paused_at is None
            possible = possible and (action == "approve" or now.can_be_remembered)
            return _decide(action, now) if possible else _ABSENT
        case "acknowledge":
            view = now.approval if now.view == "waiting" else None
            # Its state alone is the news: nothing of it needs to have been read to the end.
            possible = view is not None and view.awaits_acknowledgement and now.blocked_by == "over"
            return Availability(shown=True, decides_now=now.armed) if possible else _ABSENT
        case "accept":
            possible = now.acceptable is not None or now.suite is not None
            return _file(action, now) if possible else _ABSENT
        case "accept_rest":
            possible = now.suite is not None and bool(
                now.suite.ungated_effects and now.suite.other_files
            )
            return _file(action, now) if possible else _ABSENT
        case "withdraw_acceptance":
            return _file(action, now) if now.withdrawable is not None else _ABSENT
        case "allow_host":
            possible = now.session is not None and now.session.host_to_allow is not None
            return _host(action, now) if possible else _ABSENT
        case "undo_run":
            # The person has seen what it wrote before, or did not have to: nothing has to be read here.
            possible = now.can_undo and now.blocked_by == "none"
            return Availability(shown=True, decides_now=now.armed) if possible else _ABSENT
        case "go_on":
            possible = now.paused_at is not None and now.can_change
            return Availability(shown=True, decides_now=now.armed) if possible else _ABSENT
        case _:
            return None


def _decide(action: str, now: Situation) -> Availability:
    if now.blocked_by != "none":
        return _ABSENT
    if now.needs_second_press(action):
        return Availability(shown=True, asks=True)
    return Availability(shown=True, decides_now=now.armed)


def _file(action: str, now: Situation) -> Availability:
    """In a list the key opens the file's facts; once they are open, it decides."""
    if action == "withdraw_acceptance" and now.opened and now.blocked_by == "none":
        # It allows less: nothing of the file needs to have been read for that.
        return Availability(shown=True, decides_now=now.armed)
    if now.view == "waiting" or now.opened:
        return _decide(action, now)
    return _PLAIN if now.blocked_by == "none" else _ABSENT


def _host(action: str, now: Situation) -> Availability:
    """In the list the key opens the session; once that is open, it decides."""
    if now.opened:
        return _decide(action, now)
    return _PLAIN if now.blocked_by == "none" else _ABSENT


def _has_call(now: Situation) -> bool:
    return now.view == "waiting" and now.approval is not None


def _is_gated_call(now: Situation) -> bool:
    """Return whether the selected call has an approval, and with that a page."""
    return _has_call(now) and now.approval is not None and bool(now.approval.approval_id)


def _can_refetch(now: Situation) -> bool:
    view = now.approval if now.view == "waiting" else None
    return view is not None and view.preview.status != "none" and now.blocked_by in _REFRESHABLE


_READS = ("read_on", "read_back", "line_down", "line_up")
_MOVES = ("next", "previous", "first", "last", "page_up", "page_down")
_OFFERED: Mapping[str, Callable[[Situation], bool]] = {
    **dict.fromkeys(_READS, lambda now: now.shows_document and now.scrollable),
    **dict.fromkeys(
        _MOVES, lambda now: now.scrollable if now.moves_document else now.has_several_rows
    ),
    "read_whole": lambda now: now.shows_document and not now.reader,
    "reader_leave": lambda now: now.reader,
    "switch_pane": lambda now: now.view == "waiting" and now.shows_document,
    "search": lambda now: now.shows_document and now.in_document,
    "next_match": lambda now: now.shows_document and now.has_matches,
    "previous_match": lambda now: now.shows_document and now.has_matches,
    "document_start": lambda now: now.shows_document and now.scrollable,
    "document_end": lambda now: now.shows_document and now.scrollable,
    "links": lambda now: now.shows_document and now.links > 0,
    "deny": lambda now: _has_call(now) and now.deny_blocked_by == "none",
    "refresh": _can_refetch,
    "look_again": lambda now: bool(now.unknown_outcome_id) and now.can_change,
    "open_review": lambda now: _is_gated_call(now) and now.blocked_by not in ("lost", "small"),
    "copy": lambda now: now.shows_document,
    "pager": lambda now: now.shows_document,
    "unfold": lambda now: now.shows_document and now.has_marks,
    "whole": lambda now: now.shows_document and now.scrollable and now.has_full_preview,
    "wrap_marks": lambda now: now.shows_document and now.has_wraps,
    "order": lambda now: now.view == "waiting" and now.has_several_rows and not now.opened,
    "decided": lambda now: now.decisions > 0 and now.blocked_by not in ("lost", "small"),
    "open": lambda now: now.view != "waiting" and now.rows > 0 and not now.opened,
    "back": lambda now: now.opened or now.filtered or bool(now.pressed_once),
    "follow": lambda now: now.following is False and not now.opened,
    "filter": lambda now: (now.rows > 0 or now.filtered) and not now.in_document,
    "verify": lambda now: now.view == "audit" and now.blocked_by != "lost" and not now.verifying,
    "show_record": lambda now: now.is_call_record and now.blocked_by not in ("lost", "small"),
    "end_session": lambda now: now.session is not None and now.can_change,
    "pause": lambda now: now.paused_at is None and now.can_change,
    "stop_everything": lambda now: now.can_change,
    "stop_run": lambda now: now.running is not None and now.can_change,
    "unlock_vault": lambda now: now.needs_unlocking and now.can_change,
    "lock_vault": lambda now: now.vault == "unlocked" and now.can_change,
    "choose_account": lambda now: now.has_choice and now.can_change,
    "bind_account": lambda now: now.can_bind,
    "rebind_account": lambda now: now.can_rebind,
    "log_in_again": lambda now: (
        now.can_bind
        and not now.can_rebind
        and now.bound_account is not None
        and now.bound_account.kind == "oauth2"
    ),
    "revoke_account": lambda now: (
        now.bound_account is not None and now.vault == "unlocked" and now.can_change
    ),
    "forget_choice": lambda now: (
        now.bound_account is not None
        and bool(now.bound_account.remembered_for)
        and now.vault == "unlocked"
        and now.can_change
    ),
    "next_scene": lambda now: now.has_next_scene and now.can_change,
}
"""When a key that decides nothing does something; one that is not named here always does."""


def _offered(action: str, now: Situation) -> bool:
    offered = _OFFERED.get(action)
    return offered is None or offered(now)


_DENY_ACTIONS = frozenset({"deny_enter", "deny_equal", "reason_earlier", "reason_later"})
_ACCOUNT_MOVES = frozenset({"account_next", "account_previous", "account_number"})
_OF_QUESTIONS = frozenset(each.id for each in COMMANDS if set(each.contexts) <= set(PANEL_CONTEXTS))


def _in_panel(action: str, now: Situation) -> Availability:
    if action == f"{now.panel}_leave":
        return _PLAIN
    if action in _DENY_ACTIONS and now.panel == "deny":
        return _in_deny_panel(action, now)
    if action in _ACCOUNT_MOVES:
        return _PLAIN if now.panel == "account" else _ABSENT
    if action == "login_open":
        return _PLAIN if now.panel == "login" and now.login_state == "waiting" else _ABSENT
    if action == "link_next":
        return _PLAIN if now.panel == "link" and now.links > 1 else _ABSENT
    if action != f"{now.panel}_enter" and (action, now.panel) != ("account_remember", "account"):
        return _ABSENT
    if now.panel in ("filter", "search", "link"):
        return _PLAIN
    if now.panel == "bind":
        return _PLAIN if now.can_change else _ABSENT
    if now.panel == "login" and now.login_state != "authorized":
        return _ABSENT
    if now.panel == "passphrase":
        return _ABSENT if now.passphrase_sent or not now.can_change else _PLAIN
    gone = (
        (now.panel == "end" and now.session is None)
        or (now.panel == "account" and not now.has_choice)
        or (now.panel == "rebind" and not now.can_rebind)
        or (now.panel == "stop_run" and now.running is None)
    )
    if gone or not now.can_change:
        return _ABSENT
    return Availability(shown=True, decides_now=now.armed)


def _in_deny_panel(action: str, now: Situation) -> Availability:
    match action:
        case "reason_earlier":
            return _PLAIN if now.has_earlier_reason else _ABSENT
        case "reason_later":
            return _PLAIN if now.has_later_reason else _ABSENT
        case _:
            nobody = action == "deny_equal" and not now.equal_count
            if nobody or now.deny_blocked_by != "none":
                return _ABSENT
            return Availability(shown=True, decides_now=now.armed)
