"""What a front end holds of the core: facts come back, intents go over, nothing is awaited.

The App runs on another thread and loop (DESIGN 10). An intent is handed over and never cancelled
from outside, so a screen that goes away cannot stop a decision half-way; its answer arrives as a
fact like any other. All values are frozen: they cross threads.

Text in these values is hostile unless a field says otherwise; `aileron_core.text` draws it.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias

from aileron_core.errors import Problem

__all__ = [
    "ApprovalUpdated",
    "ApprovalView",
    "Approve",
    "ConsolePort",
    "CoreLost",
    "Deny",
    "DriftView",
    "Fact",
    "FieldChange",
    "FieldView",
    "HeldBackView",
    "Intent",
    "IntentRefused",
    "LibraryUpdated",
    "PreviewView",
    "RecordView",
    "Recorded",
    "Refresh",
    "SessionView",
    "SessionsUpdated",
    "Snapshot",
    "StorageHealth",
    "TakeIn",
    "Waiting",
]

RunState = Literal[
    "new",
    "awaiting_vault",
    "pending",
    "checking",
    "approved",
    "executing",
    "completed",
    "failed",
    "unknown",
    "denied",
    "expired",
    "withdrawn",
]
Waiting: frozenset[str] = frozenset({"pending", "awaiting_vault", "checking"})
"""States in which a person's answer is still out, or is being checked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldView:
    """One labelled value. `value` is raw text from outside; `missing` draws as n/a."""

    label: str
    value: str = ""
    missing: bool = False
    multiline: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PreviewView:
    """What Aileron fetched itself.

    `none`: the action declares no preview. `fetching`: asked at `since`, at most `limit_seconds`.
    `unavailable`: `reason` says why.
    """

    status: Literal["none", "fetching", "ready", "unavailable"]
    fields: tuple[FieldView, ...] = ()
    gist: str = ""
    """One line from the action file's template over the fetched fields; empty without one."""
    reason: str = ""
    host: str = ""
    since: float = 0.0
    """Epoch seconds at which it was asked for (fetching) or answered (otherwise)."""
    limit_seconds: float = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldChange:
    """A shown field that differs. `None` is n/a or, where the preview went away, nothing."""

    label: str
    before: str | None
    after: str | None
    multiline: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DriftView:
    """Two readings that differ, set once a recheck or refresh found a difference."""

    before_at: float
    after_at: float
    changed: tuple[FieldChange, ...]
    same_count: int
    other_paths: tuple[str, ...]
    """Paths outside the shown fields that differ, as dotted paths (a Bcc, say)."""
    other_count: int
    """How many such paths there are in all; `other_paths` holds the first 50."""
    words_before: tuple[str, str, str] | None
    unavailable: str = ""
    """Set where a preview was there before and is not now: the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalView:
    """One gated run as the console shows it, from asking to its end."""

    approval_id: str
    run_id: str
    state: RunState
    version: int
    """Grows whenever what a person should look at differs; decide keys arm anew for each."""
    requested_at: float
    expires_at: float | None
    """Epoch seconds; None for no deadline."""

    session_id: str
    agent: str
    """The launcher's name for it, or what a self-opened session said (then `self_opened`)."""
    session_label: str
    cwd: str
    self_opened: bool
    contained: bool
    requester_gone: bool
    times_asked: int

    action: str
    """The accepted action's name (ours: pinned)."""
    title: str
    """The first heading of the accepted action file, or its name."""
    effect: str
    """READ CREATE CHANGE DELETE SEND PAY RUN, or ASK where the file says none."""
    connector: str
    op: str
    hosts: tuple[str, ...]
    """`host:port` of every connector it uses."""
    routed: tuple[str, ...]
    """Those of `hosts` that `--route` sends elsewhere, as `host:port -> address:port`."""

    sent: tuple[FieldView, ...]
    """The agent's arguments, in the declared order."""
    preview: PreviewView
    drift: DriftView | None
    digest: str
    """Hex; empty until the preview's first answer. An approval names the digest it saw."""
    words: tuple[str, str, str] | None
    note: str = ""
    """Our own sentence on its history, for example that the console stopped before it began."""

    decided_at: float | None = None
    decided_by: str = ""
    reason: str = ""
    """What the person wrote on denying."""
    outcome: str = ""
    """Our own sentence on how it ended, for failed and unknown; empty otherwise."""
    ended_at: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionView:
    """A launched agent, as far as known."""

    session_id: str
    agent: str
    label: str
    cwd: str
    pid: int | None
    executable: str
    self_opened: bool
    contained: bool
    opened_at: float
    connected: bool
    """Its hold stream is open."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldBackView:
    """A file that lies in the home and that nobody has taken in, or not in this form."""

    kind: Literal["action", "connector"]
    name: str
    file: str
    digest: str
    why: Literal["new", "changed"]
    gated: bool | None
    """None for a connector."""
    connector: str
    hosts: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordView:
    """One committed audit record. `summary` is ours; quoted parts in it were rendered."""

    seq: int
    at: float
    event: str
    run_id: str | None
    session_id: str | None
    action: str | None
    actor: str
    """`person`, `agent`, `aileron`."""
    agent: str
    summary: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageHealth:
    """Fact: whether the database and the audit can be written. When not, nothing can run or be decided."""

    writable: bool
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Everything a front end draws first; facts after it are later than it."""

    version: str
    home: str
    url: str
    routes: tuple[str, ...]
    """`host:port -> address:port`, from `--route`; a standing warning on screen."""
    accepted_installed: bool
    """Started with `--accept-installed`; a standing line on screen."""
    approvals: tuple[ApprovalView, ...]
    """Open ones in order of arrival, and the last ended ones (at most 200)."""
    sessions: tuple[SessionView, ...]
    held_back: tuple[HeldBackView, ...]
    problems: tuple[Problem, ...]
    actions_ready: int
    records: tuple[RecordView, ...]
    """The newest records, oldest first (at most 500)."""
    head_words: tuple[str, str] | None
    """Two words of the audit's head, for the footer."""
    health: StorageHealth = field(default_factory=lambda: StorageHealth(writable=True))


# Facts


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalUpdated:
    """Fact: an approval is new or differs from before."""

    view: ApprovalView


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionsUpdated:
    """Fact: the open sessions, whole."""

    sessions: tuple[SessionView, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LibraryUpdated:
    """Fact: what is taken in, held back or broken among actions and connectors, whole."""

    held_back: tuple[HeldBackView, ...]
    problems: tuple[Problem, ...]
    actions_ready: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """Fact: a record was committed."""

    record: RecordView
    head_words: tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class IntentRefused:
    """Fact: an intent did nothing; `message` is the sentence for the voice line."""

    approval_id: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CoreLost:
    """Fact: the core's thread has ended while the App lives. Nothing can be decided any more."""

    message: str


Fact: TypeAlias = (
    ApprovalUpdated
    | SessionsUpdated
    | LibraryUpdated
    | Recorded
    | StorageHealth
    | IntentRefused
    | CoreLost
)


# Intents


@dataclass(frozen=True, slots=True, kw_only=True)
class Approve:
    """A person's yes to exactly *digest*. `unseen_lines` goes to the audit."""

    approval_id: str
    digest: str
    unseen_lines: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Deny:
    """A person's no; the agent reads *reason* (at most 2,000 characters, may be empty)."""

    approval_id: str
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refresh:
    """Fetch the preview again."""

    approval_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TakeIn:
    """Accept the held-back file as it is, by the digest that was shown."""

    kind: Literal["action", "connector"]
    name: str
    digest: str


Intent: TypeAlias = Approve | Deny | Refresh | TakeIn


class ConsolePort(Protocol):
    """The core, from another thread."""

    def submit(self, intent: Intent) -> None:
        """Hand *intent* over and return at once. Answers come as facts. After CoreLost: no effect."""
        ...

    def subscribe(self, sink: Callable[[Fact], None]) -> Snapshot:
        """Return the present state and have *sink* called, on the core's thread, for every later fact.

        *sink* must return at once (`App.post_message` does). Blocks for at most 5 s.

        Raises:
            Unavailable: the core has ended.
        """
        ...
