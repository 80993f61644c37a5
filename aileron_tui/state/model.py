"""The console's whole state (view, panel, a first press), fed by events and keys. It draws and sends nothing."""

from collections import deque
from dataclasses import dataclass
from math import inf
from typing import cast

from aileron_core.console_port.events import ApprovalsRead, Snapshot
from aileron_core.console_port.intents import (
    Acknowledge,
    Approve,
    Deny,
    EndSession,
    Intent,
    ReadApprovals,
    RefreshPreview,
)
from aileron_core.console_port.view_models import (
    FINAL_STATES,
    ApprovalView,
    RecordView,
    SessionView,
)
from aileron_tui.draw.guide import GuideLine
from aileron_tui.draw.text import Line, Piece
from aileron_tui.input.arming import AFTER_SECONDS, Arming
from aileron_tui.input.commands import Change, CommandRegistry, View
from aileron_tui.items import Item
from aileron_tui.state.account_panel import AccountPanel
from aileron_tui.state.decision_screens import DecisionScreen, DecisionScreens, ReadingProgress
from aileron_tui.state.deny_panel import DenyPanel
from aileron_tui.state.edit_form import EditForm
from aileron_tui.state.filter import ITEM_FIELDS, ParsedFilter, parse
from aileron_tui.state.grant_panel import GrantPanel
from aileron_tui.state.list_parts import DecidedTable
from aileron_tui.state.opened_call import OpenedCall
from aileron_tui.state.pairing import Pairing
from aileron_tui.state.pending_intents import PendingIntents, intent_key
from aileron_tui.state.queue import Queue
from aileron_tui.state.tables.accounts import AccountsTable
from aileron_tui.state.tables.activity import ActivityTable
from aileron_tui.state.tables.audit import AuditTable
from aileron_tui.state.tables.library import LibraryTable
from aileron_tui.state.tables.rules import RulesTable
from aileron_tui.state.tables.sessions import SessionsTable
from aileron_tui.state.tables.table import AnyTable
from aileron_tui.state.vault_panel import AccountChoice, CallsWithoutAccount, VaultPanel

MESSAGE_SECONDS = 4.0
"""How long the status line repeats what just happened; the next key ends it sooner."""
RECORDS_KEPT = 500
BESIDE_FROM = 150
"""Columns from which on a list has the page of its selected row beside it."""
_WAITING_PARTS = 6
"""Of how many parts `Model.screen_version` is in the waiting list."""

Version = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Subject:
    """What the keys are about: its key, and what a person must look at anew when it differs."""

    key: str
    version: Version


@dataclass(frozen=True, slots=True)
class StatusMessage:
    """A message of the status line, shown until *until* (monotonic seconds); no key ends it before *kept_until*."""

    pieces: Line
    until: float
    kept_until: float = 0.0
    refusal: bool = False
    """Says why a key did nothing: shown before everything else."""


class Model:
    """One console's state. Times: `now` is epoch seconds, `at` monotonic seconds."""

    def __init__(
        self,
        snapshot: Snapshot,
        *,
        arm_seconds: float,
        registry: CommandRegistry,
        now: float = 0.0,
    ) -> None:
        self.snapshot = snapshot
        self.registry = registry
        self.queue = Queue()
        self.queue.load(
            snapshot.approvals,
            snapshot.not_accepted,
            snapshot.problems,
            more=snapshot.approvals_remaining,
            library=snapshot.library,
        )
        self._deferred: dict[str, ApprovalView] = {}
        self.sessions: tuple[SessionView, ...] = snapshot.sessions
        self.actions_ready = snapshot.actions_ready
        self.records: deque[RecordView] = deque(snapshot.records, maxlen=RECORDS_KEPT)
        self.head_words = snapshot.head_words
        self.health = snapshot.health
        self.paused_at = snapshot.paused_at
        self.vault = snapshot.vault
        self.settings_accepted = snapshot.settings_accepted
        self.settings_withheld: tuple[str, ...] = ()
        """Names of settings of `config.toml` that are not in force (`SettingsInForce`)."""
        self.account_waits = CallsWithoutAccount(snapshot.approvals)
        self.vault_panel = VaultPanel()
        self.account_choice = AccountChoice()
        self.account_panel = AccountPanel()
        self.edit_form = EditForm()
        """The one that was opened last."""
        self.activity = ActivityTable(snapshot.records, now)
        for view in snapshot.approvals:
            self.activity.add_approval(view)
        self.decision_screens = DecisionScreens()
        self.opened_call = OpenedCall(self.decision_screens)
        self.decided = DecidedTable()
        self.decided.update(self.queue.decided, now)
        self.audit = AuditTable(snapshot.records)
        self.library = LibraryTable(snapshot.library, snapshot.problems, now)
        self.pairing = Pairing(snapshot.devices)
        self.sessions_table = SessionsTable(snapshot.sessions, snapshot.devices, now)
        self.accounts = AccountsTable(snapshot.accounts, now)
        self.rules = RulesTable(snapshot.grants, snapshot.rules, now)
        self.tables: dict[View, AnyTable] = {
            "activity": self.activity,
            "audit": self.audit,
            "library": self.library,
            "sessions": self.sessions_table,
            "accounts": self.accounts,
            "rules": self.rules,
        }
        self.refetched: dict[str, ApprovalView] = {}
        """Calls whose preview is being fetched again, as they were when that was asked for."""
        self.looked_at: dict[str, float] = {}
        """When each call of unknown outcome was last looked at again, as far as that was reported."""
        self.core_lost: str | None = None
        self.arming = Arming(rest=arm_seconds)
        self.view: View = "waiting"
        self.panel = "none"
        """The name of the question at the foot, or `palette`."""
        self.panel_key: str | None = None
        self.size: tuple[int, int] = (0, 0)
        self.too_small = False
        self.scrollable = False
        """The document has more lines than its pane shows."""
        self.preview_row: int | None = None
        """The line at which the whole new preview begins, below what changed of the selected call."""
        self.has_wraps = False
        """A line of the document goes on in the next one."""
        self.show_wrap_marks = False
        """The person wants to see which lines do."""
        self.list_rows = 0
        """How high the waiting list is, in the layout where that depends on how much waits."""
        self.status_message: StatusMessage | None = None
        self.guide: GuideLine | None = None
        """What a demo says about the item; None in any other console."""
        self.laid_out_version: Version | None = None
        """The content whose lines are known; nothing else can be read, so nothing else is offered."""
        self._undrawable: set[Version] = set()
        self.key_at = 0.0
        """When the key that is being handled was pressed."""
        self.key_name = ""
        """Which key is being handled."""
        self.key_in_burst = False
        self._key_counted = False
        self._panel_quiet = True
        self._panel_at = 0.0
        self._confirmed: tuple[str, Version] | None = None
        self.pending_intents = PendingIntents()
        self.deny_panel = DenyPanel(snapshot.approvals)
        self.grant_panel = GrantPanel()
        self._readings: dict[tuple[str, bool], tuple[Version, ReadingProgress]] = {}
        self._unfolded: str | None = None
        self._read_whole: str | None = None
        self._search: tuple[str, str] = ("", "")
        self.document_focused = False
        """The keys that move go to the document of the waiting list, not to its rows."""
        self.matches = 0
        """How many matches of the search are in the document."""
        self.links = 0
        """How many links are in the document."""
        self.has_marks = False
        """Something in the document is drawn as a mark."""
        self.is_converted = False
        """Something in it is drawn as another text than its source."""
        self.findings: tuple[str, ...] = ()
        """What was found in the item whose lines are known (`laid_out_version`), most dangerous first."""
        self.ending_agents: dict[str, str] = {}
        """Agents of the sessions that are to end."""
        self.marked_seen = ""
        """The opened run whose difference from what was approved was reported as seen."""

    # What is on screen

    @property
    def table(self) -> AnyTable | None:
        """The rows that have the cursor; None where it is the waiting list."""
        if self.view == "waiting" and self.decided.active:
            return self.decided
        return self.tables.get(self.view)

    @property
    def current_item(self) -> Item | None:
        """The row of the waiting list that the keys are about; None where another list has the cursor."""
        return self.queue.current if self.view == "waiting" and self.table is None else None

    def turn_to_call(self) -> None:
        """Note which call is shown whole; what is kept of it is then read (`OpenedCall.next_read`)."""
        run_id, until = "", inf
        if self.view == "waiting":
            item = self.current_item
            done = item.approval if item is not None else None
            if done is not None and done.state != "completed":
                done = None  # how another one ended is in the item already
            view = self.decided.current if self.table is not None else done
            run_id = view.run_id if view is not None else ""
        elif self.view == "activity" and (self.activity.opened or self.beside):
            run_id = self.activity.run_id
        elif self.view == "rules":
            run_id = self.rules.shown_run
        elif self.view == "audit" and self.audit.shows_call(beside=self.beside):
            record = self.audit.current
            run_id = (record.run_id or "") if record is not None else ""
            until = record.at if record is not None else inf
        self.opened_call.open(run_id, until)

    @property
    def subject(self) -> Subject | None:
        """What the keys are about; None where nothing is selected."""
        table = self.table
        if table is None:
            item = self.queue.current
            return Subject(item.key, item.version) if item is not None else None
        key = table.key
        return Subject(f"{self.view} {key}", table.version) if key is not None else None

    @property
    def beside(self) -> bool:
        """A table has the page of its selected row beside it; keys are about that once it is opened."""
        return self.size[0] >= BESIDE_FROM

    @property
    def document_shown(self) -> bool:
        """A document is on screen, or about to be."""
        table = self.table
        return self.subject is not None and (table is None or table.opened)

    @property
    def screen_version(self) -> Version:
        """Return everything whose change starts the rest before a decide key anew (see `Arming`).

        Only what the keys are about is in it: an agent that makes rows come and go must not keep a
        person from stopping it.
        """
        if self.panel in ("stop", "stop_run", "end"):
            return (self.panel, self.panel_key, self.size)
        if self.panel == "device":
            return (self.panel, self.size, self.pairing.version(self.panel_key))
        subject, table = self.subject, self.table
        paused = self.paused_at is not None
        asked: Version = (self.panel,)
        if self.panel:
            asked = (self.panel, self.account_choice.index, self.account_panel.version)
        if self.panel in ("grant", "deny"):
            asked = (
                self.panel,
                self.grant_panel.version,
                self.deny_panel.stands,
                self.deny_panel.terms,
            )
        surroundings = (self.view, asked, self.size, self.unfolded, self.reader, paused)
        content = subject.version if subject is not None else ()
        if table is not None:
            row: Version = (content, table.index, table.opened) if table.decides else ()
            if table.opened and not table.decides:
                row = (content,)  # and not its place: rows come in above it
            return (row, surroundings)
        item = self.queue.current
        state = item.state if item is not None else ""
        number = self.queue.index(self.queue.selected)
        return (content, state, number, self.queue.file_changed(item), self.list_rows, surroundings)

    @property
    def last_change(self) -> Change:
        """What moved last on screen, or is about to."""
        drawn = self.arming.change_before(self.screen_version)
        before, after = (cast("Version", each or ()) for each in drawn)
        if len(before) != len(after) or before[-1:] != after[-1:]:
            return "screen"  # another view, question or size
        if len(after) < _WAITING_PARTS:
            return "list"
        was, content = cast("Version", before[0]), cast("Version", after[0])
        if content[:1] != was[:1]:
            return "cursor"
        state, file_changed = after[1] != before[1], after[3] != before[3]
        return "item" if content != was or state or file_changed else "list"

    @property
    def unfolded(self) -> bool:
        """The document shows every mark with its code point."""
        subject = self.subject
        return subject is not None and subject.key == self._unfolded

    def unfold(self) -> None:
        """Show code points, or again as it was."""
        subject = self.subject
        shown = self.unfolded
        self._unfolded = subject.key if subject is not None and not shown else None

    @property
    def reader(self) -> bool:
        """The document has the whole screen; nothing is decided there."""
        subject = self.subject
        shown = subject is not None and subject.key == self._read_whole
        return shown and self.document_shown and not self.too_small

    def read_whole(self, *, whole: bool) -> None:
        """Give the document the whole screen, or the list and the head their places again."""
        subject = self.subject
        self._read_whole = subject.key if subject is not None and whole else None

    @property
    def search_text(self) -> str:
        """What is searched for in the present document; empty: nothing."""
        subject = self.subject
        return self._search[1] if subject is not None and self._search[0] == subject.key else ""

    def search(self, text: str) -> None:
        subject = self.subject
        self._search = (subject.key if subject is not None else "", text)

    @property
    def replayed(self) -> DecisionScreen | None:
        """The screen of an earlier time that the page of an opened call shows."""
        opened = self.table is not None and self.table.opened and self.opened_call.call is not None
        return self.opened_call.screen if opened else None

    @property
    def reading(self) -> ReadingProgress:
        """Return what of the selected item's present content was on screen, in its present form."""
        seen = self.replayed
        if seen is not None and seen.reading is not None and seen.unfolded == self.unfolded:
            return seen.reading
        subject = self.subject
        key, version = (subject.key, subject.version) if subject is not None else ("", ())
        drawn_as = (key, self.unfolded)
        known = self._readings.get(drawn_as)
        if known is None or known[0] != version:
            known = (version, ReadingProgress())
            self._readings[drawn_as] = known
        return known[1]

    @property
    def pressed_once(self) -> str:
        """Return the action that was pressed once on the present item; empty without one."""
        if self._confirmed is None or self._confirmed[1] != self._subject_version():
            return ""
        return self._confirmed[0]

    def note_first_press(self, action: str) -> None:
        self._confirmed = (action, self._subject_version())

    def is_second_press(self, key: str) -> bool:
        """Return whether *key* is the one that was pressed once and may be pressed again."""
        action = self.pressed_once
        return bool(action) and key in self.registry.command(action).keys

    def forget_first_press(self) -> bool:
        """Forget the first press, after any other key; return whether there was one."""
        had = self._confirmed is not None
        self._confirmed = None
        return had

    def _subject_version(self) -> Version:
        subject = self.subject
        return subject.version if subject is not None else ()

    @property
    def filtered(self) -> bool:
        """There is a filter on the present list, understood or not."""
        return bool(self.parsed_filter.text.strip())

    @property
    def parsed_filter(self) -> ParsedFilter:
        table = self.table
        return self.queue.parsed_filter if table is None else table.parsed_filter

    @property
    def filter_fields(self) -> tuple[str, ...]:
        """What the filter of the present list knows, besides words and `age:`."""
        table = self.table
        return ITEM_FIELDS if table is None else table.fields

    def set_filter(self, text: str, now: float) -> None:
        """Show the rows of the present list that the filter *text* lets through, the cursor on the first.

        Rows move under the hand: the rest before a key decides starts over.
        """
        parsed, table = parse(text, self.filter_fields), self.table
        if table is None:
            self.queue.set_filter(parsed, now)
        else:
            table.set_filter(parsed, now)
        self.forget_first_press()
        self.arming.reset()

    @property
    def row_counts(self) -> tuple[int, int]:
        """How many rows of the present list the filter lets through, and how many there are."""
        rows = self.queue if self.table is None else self.table
        return rows.matching, rows.total

    # Calls that were not read yet

    def next_read(self) -> ReadApprovals | None:
        """Return the reading that brings the rest of the calls; None where all are here."""
        calls = [view for view in self.snapshot.approvals if view.state not in FINAL_STATES]
        if not self.queue.unread_count or not calls:
            return None
        return ReadApprovals(requested_at=calls[-1].requested_at, run_id=calls[-1].run_id)

    def defer_update(self, view: ApprovalView) -> None:
        """Keep an update of a call that was not read yet; it is read in its turn."""
        self._deferred[view.call_id] = view

    def add_approvals(self, event: ApprovalsRead) -> None:
        self.queue.load_more(event.views, event.remaining)
        for view in event.views:
            self._deferred.pop(view.call_id, None)
        if not event.remaining:
            # Updates of calls that were not among those read, as after a step of the clock, are not lost.
            late, self._deferred = tuple(self._deferred.values()), {}
            self.queue.load_more((view for view in late if view.state not in FINAL_STATES), 0)
        for view in event.views:
            self.activity.add_approval(view)
            self.deny_panel.update(view)
            self.account_waits.update(view)

    def mark_undrawable(self, version: Version) -> bool:
        """Record that this content cannot be drawn, so that nothing decides it; return whether that is new."""
        if not version or version in self._undrawable:
            return False
        self._undrawable.add(version)
        return True

    def is_undrawable(self, version: Version) -> bool:
        return version in self._undrawable

    # Keys

    def begin_key(self, at: float, *, decides: bool, moves: bool) -> bool:
        """A key arrived, pressed at *at*; return whether it is dropped unread.

        Dropped is what comes in one burst with another key, a paste or a script: all but keys that
        move, and in a panel what comes in one burst with the key that opened it.
        """
        self.key_at, self._key_counted = at, False
        self.key_in_burst = self.arming.in_burst(at)
        if self.status_message is not None and self.status_message.kept_until <= at:
            self.status_message = None
        if not decides or self.arming.in_burst(at):
            self.forget_first_press()
        if self.panel != "none" and not self._panel_quiet:
            # By time alone: a paste into the open field comes in one read, and is wanted.
            self._panel_quiet = at - self._panel_at >= AFTER_SECONDS
            self._panel_at = at
            return not self._panel_quiet
        return self.panel == "none" and not moves and self.arming.in_burst(at)

    def on_burst(self, at: float) -> None:
        """Several keys came in one read, at *at*; called before the first of them."""
        self.forget_first_press()
        self.arming.on_burst(at)

    def end_key(self) -> None:
        """The key was handled; unless it was a press that counted, it counts as input."""
        if not self._key_counted:
            self.arming.on_key(self.key_at)

    def press(self, at: float) -> bool:
        """A decide key went down; return whether it may come to count."""
        self._key_counted = True
        return self.arming.press(self.screen_version, at)

    def drops_paste(self, at: float) -> bool:
        """Return whether a paste at *at* came in one burst with the key that asked for a passphrase."""
        asked = self.panel == "passphrase" and not self._panel_quiet
        return asked and at - self._panel_at < AFTER_SECONDS

    def open_panel(self, panel: str, key: str = "") -> None:
        """Ask something first; *key* is what the question is about."""
        self.panel, self.panel_key, self._panel_quiet = panel, key, False
        self._panel_at = self.key_at

    def close_panel(self) -> None:
        self.panel, self.panel_key, self._panel_quiet = "none", None, True

    def switch_to(self, view: View) -> None:
        item = self.current_item
        call = item.approval if item is not None else None
        if view == "accounts" and call is not None and call.account_need is not None:
            self.accounts.select_connector(call.account_need.connector)
        self.view = view
        self._read_whole = None
        self.forget_first_press()
        self.arming.reset()

    # Decisions

    def mark_sent(self, intent: Intent) -> None:
        about, key = None, intent_key(intent) or ""
        if isinstance(intent, Approve | Deny | Acknowledge):
            about = self.queue.get(key)
        self.pending_intents.add(
            intent, about.version if about is not None else self._subject_version()
        )
        self._confirmed = None
        if isinstance(intent, Approve | Deny | Acknowledge):
            self.queue.mark_decided_here(key)
        elif isinstance(intent, RefreshPreview):
            item = self.queue.get(intent.approval_id)
            if item is not None and item.approval is not None:
                self.refetched[item.key] = item.approval
        elif isinstance(intent, EndSession):
            session = self.sessions_table.session
            self.ending_agents[intent.session_id] = session.agent if session is not None else ""

    def say(self, pieces: Line | str, at: float, *, hold: float = MESSAGE_SECONDS) -> None:
        """Show *pieces*, which hold no raw text, in the status line for *hold* seconds, or until the next key."""
        message = (Piece(pieces),) if isinstance(pieces, str) else pieces
        self.status_message = StatusMessage(message, at + hold)

    def refuse(self, sentence: str, at: float, *, hold: float = 0.0) -> None:
        """Show why a key did nothing, before anything else; for *hold* seconds no key ends it."""
        pieces = (Piece(sentence, "attn"),)
        self.status_message = StatusMessage(pieces, at + MESSAGE_SECONDS, at + hold, refusal=True)

    def forget_refusal(self) -> None:
        """What kept a key from working is over: the sentence on it no longer holds."""
        if self.status_message is not None and self.status_message.refusal:
            self.status_message = None

    # Time

    def tick(self, at: float) -> None:
        """Let time pass: reports end. No row leaves: that takes a key."""
        if self.status_message is not None and self.status_message.until <= at:
            self.status_message = None

    def sweep(self, now: float) -> None:
        """A key was handled: rows whose time is over leave, and those that a filter lets through no more.

        Not while a press is not settled: the rows below would move, and cancel it.
        """
        if self.arming.awaits_silence:
            return
        for table in self.tables.values():
            table.filter_again(now)
        if self.queue.sweep(now):
            self._forget_readings()

    def _forget_readings(self) -> None:
        """Drop what was read of calls that are gone; of other lists little is kept anyway."""
        subject = self.subject
        kept = subject.key if subject is not None else ""
        for drawn_as in list(self._readings):
            if drawn_as[0] != kept and self.queue.get(drawn_as[0]) is None:
                del self._readings[drawn_as]
