"""What a front end holds of the core: facts come back, intents go over, nothing is awaited.

The App runs on another thread and loop (DESIGN 10). An intent is handed over and never cancelled
from outside, so a screen that goes away cannot stop a decision half-way; its answer arrives as a
fact like any other. All values are frozen: they cross threads.

Text in these values is hostile unless a field says otherwise; `aileron_core.text` draws it.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias

from aileron_core.console_port.view_models import (
    FINAL_STATES,
    WAITING_STATES,
    ApprovalView,
    Containment,
    DriftView,
    FieldChangeView,
    FieldView,
    LibraryItemView,
    NotAcceptedView,
    PreviewView,
    ProcessView,
    RecordView,
    SessionView,
    ShownState,
    StepView,
    SuiteView,
    TrafficView,
)
from aileron_core.errors import Problem

__all__ = [
    "FINAL_STATES",
    "WAITING_STATES",
    "Accept",
    "AcceptSuite",
    "ApprovalUpdated",
    "ApprovalView",
    "ApprovalsRead",
    "Approve",
    "AuditExported",
    "AuditVerified",
    "ConsolePort",
    "Containment",
    "CoreEvent",
    "CoreLost",
    "Deny",
    "DriftView",
    "EndSession",
    "EverythingStopped",
    "ExportAudit",
    "FetchAgain",
    "FieldChangeView",
    "FieldView",
    "Intent",
    "IntentRefused",
    "LibraryItemView",
    "LibraryUpdated",
    "NotAcceptedView",
    "PauseChanged",
    "PreviewView",
    "ProcessView",
    "ReadApprovals",
    "ReadRecord",
    "ReadRecords",
    "RecordRead",
    "RecordView",
    "Recorded",
    "RecordsRead",
    "Refresh",
    "SessionView",
    "SessionsUpdated",
    "SetPause",
    "ShownState",
    "Snapshot",
    "StepView",
    "StopEverything",
    "StorageHealth",
    "SuiteView",
    "TrafficView",
    "VerifyAudit",
    "WithdrawAcceptance",
]


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
    """The open ones that came first, in order of arrival, and the last ended ones (at most 200)."""
    sessions: tuple[SessionView, ...]
    held_back: tuple[NotAcceptedView, ...]
    problems: tuple[Problem, ...]
    actions_ready: int
    records: tuple[RecordView, ...]
    """The newest records, oldest first (at most 500)."""
    head_words: tuple[str, str] | None
    """Two words of the audit's head, for the footer."""
    health: StorageHealth = field(default_factory=lambda: StorageHealth(writable=True))
    library: tuple[LibraryItemView, ...] = ()
    """Everything that lies in the home: actions by name, then connectors."""
    paused_at: float | None = None
    """Since when all calls are held; None while they go on."""
    more: int = 0
    """How many open calls follow those of `approvals`; `ReadApprovals` reads on."""


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

    held_back: tuple[NotAcceptedView, ...]
    problems: tuple[Problem, ...]
    actions_ready: int
    library: tuple[LibraryItemView, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PauseChanged:
    """Fact: a person paused all calls at `paused_at`, or (None) let them go on."""

    paused_at: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class EverythingStopped:
    """Fact: what `StopEverything` did."""

    denied: int
    sessions_ended: int
    runs_stopped: int
    """Running guests that were stopped; a step that is not idempotent ends as `unknown`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalsRead:
    """Fact: part of the answer to `ReadApprovals`, in order of arrival; *left* more follow."""

    views: tuple[ApprovalView, ...]
    left: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordsRead:
    """Fact: the answer to `ReadRecords`, oldest first; `total` is how many records there are in all."""

    records: tuple[RecordView, ...]
    before_seq: int | None
    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordRead:
    """Fact: the answer to `ReadRecord`: the whole body as stored (JCS text, hostile), and its hashes."""

    seq: int
    body: str
    hash: str
    prev: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditExported:
    """Fact: the answer to `ExportAudit`: how many records stand in the new file."""

    records: int
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditVerified:
    """Fact: the answer to `VerifyAudit`; `problems` are our own sentences."""

    records: int
    problems: tuple[str, ...]
    at: float
    seconds: float


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


CoreEvent: TypeAlias = (
    ApprovalUpdated
    | SessionsUpdated
    | LibraryUpdated
    | PauseChanged
    | EverythingStopped
    | ApprovalsRead
    | RecordsRead
    | RecordRead
    | AuditExported
    | AuditVerified
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
class FetchAgain:
    """Fetch the preview of a run that ended as `unknown`: how it is at the service now."""

    approval_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Accept:
    """Accept the held-back file as it is, by the digest that was shown."""

    kind: Literal["action", "connector", "preview"]
    name: str
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptSuite:
    """Accept action files that were added together, each by the digest that was shown.

    The suite's other files stand alone from then on.
    """

    suite_id: str
    files: tuple[tuple[str, str], ...]
    """Name in the folder of action files, and digest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WithdrawAcceptance:
    """Stop offering what was taken in; agents stop seeing it at once. `t` takes it in again."""

    kind: Literal["action", "connector", "preview"]
    name: str
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SetPause:
    """Hold all calls (`on`), or let them go on.

    While paused: gated calls become pending silently, ungated ones are held before their row for
    25 s at most and then refused as `unavailable`; nothing that was approved starts.
    """

    on: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class StopEverything:
    """Deny all that waits, end every session, stop every guest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EndSession:
    """End a session: its tokens open nothing any more; its approvals stay, its requester is gone."""

    session_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadApprovals:
    """Read every open call behind the one that was asked for at `requested_at` by `run_id`."""

    requested_at: float
    run_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadRecords:
    """Read at most `limit` records before `before_seq` (None: the newest)."""

    before_seq: int | None = None
    limit: int = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadRecord:
    """Read one record whole."""

    seq: int


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyAudit:
    """Verify the whole chain, the heads and the rows, off the core's loop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportAudit:
    """Write every record into a new file in the home, off the core's loop."""


Intent: TypeAlias = (
    Approve
    | Deny
    | Refresh
    | FetchAgain
    | Accept
    | AcceptSuite
    | WithdrawAcceptance
    | SetPause
    | StopEverything
    | EndSession
    | ReadApprovals
    | ReadRecords
    | ReadRecord
    | VerifyAudit
    | ExportAudit
)


class ConsolePort(Protocol):
    """The core, from another thread."""

    def submit(self, intent: Intent) -> None:
        """Hand *intent* over and return at once. Answers come as facts. After CoreLost: no effect."""
        ...

    def subscribe(self, sink: Callable[[CoreEvent], None]) -> Snapshot:
        """Return the present state and have *sink* called, on the core's thread, for every later fact.

        *sink* must return at once (`App.post_message` does). Blocks for at most 5 s.

        Raises:
            Unavailable: the core has ended.
        """
        ...
