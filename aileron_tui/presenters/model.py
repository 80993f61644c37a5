"""The console's whole state, fed by facts and keys. It draws nothing and sends nothing."""

from collections import deque
from dataclasses import dataclass

from aileron_core.control_plane.port import (
    ApprovalUpdated,
    ApprovalView,
    Approve,
    CoreLost,
    Deny,
    Fact,
    Intent,
    IntentRefused,
    LibraryUpdated,
    Recorded,
    RecordView,
    SessionsUpdated,
    SessionView,
    Snapshot,
    StorageHealth,
    TakeIn,
    Waiting,
)
from aileron_core.text import escape
from aileron_tui.actions import DEFAULT, Registry
from aileron_tui.presenters import wording
from aileron_tui.presenters.arming import Arming
from aileron_tui.presenters.document import agent_name
from aileron_tui.presenters.lines import Line, Piece, line
from aileron_tui.presenters.outside import outside
from aileron_tui.presenters.queue import Item, Queue
from aileron_tui.presenters.reading import Reading
from aileron_tui.presenters.situation import Block, Panel, Situation, View

__all__ = ["Model", "Said", "Token"]

SAID_SECONDS = 4.0
"""How long the voice repeats what just happened; the next key ends it sooner."""
RECORDS_KEPT = 500
DEADLINE_MARGIN = 1.0
"""A yes that arrives later than this before the deadline could lose the race; it is not taken."""

Token = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Said:
    """What the voice reports, until *until* (monotonic seconds)."""

    pieces: Line
    until: float


class Model:
    """One console's state. Times: `now` is epoch seconds, `at` monotonic seconds."""

    def __init__(
        self, snapshot: Snapshot, *, arm_seconds: float, registry: Registry = DEFAULT
    ) -> None:
        self.snapshot = snapshot
        self.registry = registry
        self.queue = Queue()
        self.queue.load(snapshot.approvals, snapshot.held_back, snapshot.problems)
        self.sessions: tuple[SessionView, ...] = snapshot.sessions
        self.actions_ready = snapshot.actions_ready
        self.records: deque[RecordView] = deque(snapshot.records, maxlen=RECORDS_KEPT)
        self.head_words = snapshot.head_words
        self.health = snapshot.health
        self.lost: str | None = None
        self.arming = Arming(rest=arm_seconds)
        self.view: View = "waiting"
        self.panel: Panel = "none"
        self.panel_key: str | None = None
        self.size: tuple[int, int] = (0, 0)
        self.small = False
        self.longer = False
        """The document has more lines than its pane shows."""
        self.list_rows = 0
        """How high the waiting list is, in the layout where that depends on how much waits."""
        self.said: Said | None = None
        self.laid_out: Token | None = None
        """The content whose lines are known; nothing else can be read, so nothing else is offered."""
        self._undrawable: set[Token] = set()
        self.key_at = 0.0
        """When the key that is being handled was pressed."""
        self._key_counted = False
        self._panel_quiet = True
        self._confirmed: Token | None = None
        self._sent: dict[str, tuple[Intent, Token]] = {}
        self._readings: dict[str, tuple[Token, Reading]] = {}

    # What stands on screen

    @property
    def token(self) -> Token:
        """Name everything that, when it differs, makes a decide key rest anew."""
        item = self.queue.current
        content = item.version if item is not None else ()
        state = item.approval.state if item is not None and item.approval is not None else ""
        row = self.queue.index(self.queue.selected)
        moved = self.queue.file_moved(item)
        return (content, state, row, moved, self.list_rows, self.size, self.view, self.panel)

    @property
    def reading(self) -> Reading:
        """Return what of the selected item's present content was on screen."""
        item = self.queue.current
        key, version = (item.key, item.version) if item is not None else ("", ())
        known = self._readings.get(key)
        if known is None or known[0] != version:
            known = (version, Reading())
            self._readings[key] = known
        return known[1]

    @property
    def confirmed(self) -> bool:
        """Return whether the first of two presses was made on what stands on screen."""
        return self._confirmed is not None and self._confirmed == self._content_token()

    def confirm(self) -> None:
        """Note the first of two presses."""
        self._confirmed = self._content_token()

    def take_back(self) -> bool:
        """Any other key: forget the first press. Return whether there was one."""
        had = self._confirmed is not None
        self._confirmed = None
        return had

    def _content_token(self) -> Token:
        item = self.queue.current
        return item.version if item is not None else ()

    def situation(self, now: float, at: float) -> Situation:
        """Return everything that says what a key does now."""
        item = self.queue.current
        reading = self.reading
        return Situation(
            view=self.view,
            panel=self.panel,
            approval=item.approval if item is not None else None,
            held=item.held if item is not None else None,
            block=self._block(item, now),
            deny_block=self._deny_block(item, now),
            armed=self.arming.armed(self.token, at),
            unseen=reading.unseen,
            total=reading.total,
            confirmed=self.confirmed,
            longer=self.longer,
            problem=item is not None and item.problem is not None,
            several=len(self.queue.items) > 1 or self.view != "waiting",
            registry=self.registry,
        )

    def cannot_draw(self, item: Item | None) -> bool:
        """Note that the present content of *item* cannot be drawn: nothing decides it; return whether that is news."""
        if item is None or item.version in self._undrawable:
            return False
        self._undrawable.add(item.version)
        return True

    def _general_block(self, item: Item | None) -> Block:
        if self.lost is not None:
            return "lost"
        if not self.health.writable:
            return "storage"
        if self.small:
            return "small"
        if item is None:
            return "empty"
        return "undrawable" if item.version in self._undrawable else "none"

    def _block(self, item: Item | None, now: float) -> Block:
        general = self._general_block(item)
        if general != "none" or item is None:
            return general
        if item.key in self._sent:
            return "sending"
        if self.laid_out != item.version:
            return "drawing"
        view = item.approval
        if view is None:
            return "none"
        if view.state != "pending":
            states: dict[str, Block] = {"checking": "checking", "awaiting_vault": "vault"}
            return states.get(view.state, "over")
        if view.preview.status == "fetching" or not view.digest:
            return "fetching"
        return "deadline" if _over(view, now) else "none"

    def _deny_block(self, item: Item | None, now: float) -> Block:
        general = self._general_block(item)
        if general != "none" or item is None:
            return general
        view = item.approval
        if view is None:
            return "empty"
        sent = self._sent.get(item.key)
        if sent is not None and isinstance(sent[0], Deny):
            return "sending"
        if view.state not in Waiting:
            return "over"
        return "deadline" if _over(view, now) else "none"

    # Keys

    def key_begins(self, at: float, *, decides: bool, moves: bool) -> bool:
        """A key arrived, pressed at *at*; return whether it is dropped unread.

        Dropped is what comes in one burst with another key, a paste or a script: all but keys that
        move, and in a panel what comes in one burst with the key that opened it.
        """
        self.key_at, self._key_counted = at, False
        self.said = None
        if not decides or self.arming.in_burst(at):
            self.take_back()
        if self.panel != "none" and not self._panel_quiet:
            self._panel_quiet = not self.arming.in_burst(at)
            return not self._panel_quiet
        return self.panel == "none" and not moves and self.arming.in_burst(at)

    def burst(self, at: float) -> None:
        """Several keys came in one read, at *at*; it is told before the first of them."""
        self.take_back()
        self.arming.burst(at)

    def key_ends(self) -> None:
        """The key was handled; unless it was a press that counted, it is one more key now."""
        if not self._key_counted:
            self.arming.key(self.key_at)

    def press(self, at: float) -> bool:
        """A decide key went down; return whether it may come to count."""
        self._key_counted = True
        return self.arming.press(self.token, at)

    def open_panel(self, key: str) -> None:
        """Ask for the reason to deny *key*."""
        self.panel, self.panel_key, self._panel_quiet = "deny", key, False

    def close_panel(self) -> None:
        """The question is gone."""
        self.panel, self.panel_key, self._panel_quiet = "none", None, True

    # Decisions

    def intent(self, action: str, reason: str) -> Intent | None:
        """Return what the press of *action* asks of the core, for the selected item."""
        item = self.queue.current
        if item is None:
            return None
        if action == "take_in" and item.held is not None:
            held = item.held
            return TakeIn(kind=held.kind, name=held.name, digest=held.digest)
        if item.approval is None:
            return None
        if action == "approve":
            unseen = self.reading.unseen
            digest = item.approval.digest
            return Approve(approval_id=item.key, digest=digest, unseen_lines=unseen)
        if action == "deny_enter" and self.panel_key == item.key:
            return Deny(approval_id=item.key, reason=reason)
        return None

    def sending(self, intent: Intent) -> None:
        """Note that *intent* is on its way."""
        item = self.queue.current
        if item is None:
            return
        self._sent[item.key] = (intent, item.version)
        self._confirmed = None
        if item.approval is not None:
            self.queue.decided_here(item.key)

    def say(self, pieces: Line | str, at: float) -> None:
        """Let the voice report *pieces*, our own words or rendered ones."""
        spoken = (Piece(pieces),) if isinstance(pieces, str) else pieces
        self.said = Said(spoken, at + SAID_SECONDS)

    # Facts

    def apply(self, fact: Fact, now: float, at: float) -> bool:
        """Take *fact*; return whether a call came to wait that was not there before."""
        match fact:
            case ApprovalUpdated():
                return self._approval(fact.view, now, at)
            case LibraryUpdated():
                self._library(fact, at)
            case SessionsUpdated():
                self.sessions = fact.sessions
            case Recorded():
                self.records.append(fact.record)
                self.head_words = fact.head_words
            case StorageHealth():
                self.health = fact
            case IntentRefused():
                self._refused(fact)
                self.say(outside(fact.message, "attn"), at)
            case CoreLost():
                self.lost = fact.message
                self._sent.clear()
            case _:
                pass  # answers to what another page asked for
        return False

    def _approval(self, view: ApprovalView, now: float, at: float) -> bool:
        key = view.approval_id
        known = self.queue.get(key)
        before = known.approval if known is not None else None
        arrived = self.queue.apply(view, now)
        sent = self._sent.get(key)
        settled = sent is not None and (
            view.state != "pending" or sent[1] != _version(self.queue, key)
        )
        if settled and not (view.state == "checking" and sent and isinstance(sent[0], Deny)):
            self._sent.pop(key, None)
        if before is None or before.state == view.state:
            return arrived
        if before.state in Waiting and view.state not in Waiting:
            self._ended(view, at)
        elif self.queue.was_mine(key) and view.state == "failed":
            self.say(_failure(view), at)
        elif self.queue.was_mine(key) and view.state == "unknown":
            self.say(
                line(
                    Piece(f"{wording.ROW_STATES[view.state]}: ", "attn"),
                    *outside(view.outcome or view.title),
                ),
                at,
            )
        return arrived

    def _ended(self, view: ApprovalView, at: float) -> None:
        """Report an end, and let the cursor go on where the person decided."""
        mine = self.queue.was_mine(view.approval_id)
        title = escape(view.title)
        if not mine:
            if view.approval_id == self.queue.selected:
                outcome = wording.OUTCOMES.get(view.state, view.state)
                self.say(wording.ended_elsewhere(title, outcome), at)
            return
        if view.state == "denied":
            told = wording.denied(title, agent_name(view), escape(view.reason))
            self.say((Piece(told, "danger"),), at)
        elif view.state == "failed":
            self.say(_failure(view), at)
        else:
            words = f" · {' · '.join(view.words)}" if view.words else ""
            self.say((Piece(wording.approved(title), "ok"), Piece(words, "muted")), at)
        if view.approval_id == self.queue.selected:
            self.queue.advance()

    def _refused(self, fact: IntentRefused) -> None:
        """Give the key back. A refusal that names no approval is about a file that was to be taken in."""
        if self._sent.pop(fact.approval_id, None) is not None:
            return
        for key, (intent, _) in list(self._sent.items()):
            if isinstance(intent, TakeIn):
                del self._sent[key]

    def _library(self, fact: LibraryUpdated, at: float) -> None:
        for key, (intent, _) in list(self._sent.items()):
            if not isinstance(intent, TakeIn):
                continue
            same = [h for h in fact.held_back if (h.kind, h.name) == (intent.kind, intent.name)]
            if not same:
                self.say((Piece(wording.taken_in(escape(intent.name)), "ok"),), at)
            if not same or same[0].digest != intent.digest:
                del self._sent[key]
        self.actions_ready = fact.actions_ready
        self.queue.set_files(fact.held_back, fact.problems)

    def tick(self, now: float, at: float) -> None:
        """Let time pass: reports end, rows whose time is over go."""
        gone = self.queue.tick(now)
        if self.said is not None and self.said.until <= at:
            self.said = None
        for key in [key for key in self._readings if gone and self.queue.get(key) is None]:
            del self._readings[key]


def _failure(view: ApprovalView) -> Line:
    return (Piece(wording.failed(escape(view.title), escape(view.outcome)), "danger"),)


def _over(view: ApprovalView, now: float) -> bool:
    return view.expires_at is not None and view.expires_at - now <= DEADLINE_MARGIN


def _version(queue: Queue, key: str) -> Token:
    item = queue.get(key)
    return item.version if item is not None else ()
