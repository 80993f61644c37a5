"""What the core reports to a front end: a snapshot first, then each change as an event, in order."""

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from aileron_core.console_port.account_views import (
    AccountChanged,
    AccountRefused,
    AccountsUpdated,
    LoginUpdated,
    ModelKeysRead,
)
from aileron_core.console_port.devices import DevicesUpdated, DeviceView, LinkMade
from aileron_core.console_port.standing import (
    FieldTests,
    GrantView,
    OffersView,
    RuleView,
    TriedShape,
)
from aileron_core.console_port.view_models import (
    ApprovalView,
    CallView,
    HistoryCall,
    HistoryCursor,
    HistoryQuery,
    HourOfCalls,
    LibraryItemView,
    NotAcceptedView,
    RecordView,
    SessionView,
)
from aileron_core.errors import Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageHealth:
    """Whether the database and the audit can be written. When not, nothing can run or be decided."""

    writable: bool
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class VaultStatus:
    """The vault: whether there is one, whether it is locked, and what is wrong with it."""

    state: Literal["absent", "locked", "unlocked"]
    problem: str = ""
    """Our own sentence: which of its files is damaged, and which is used."""
    entries: int = 0
    failed_attempts: int = 0
    """Wrong passphrases since it was last unlocked, over restarts."""
    failed_since: float | None = None
    """When the first of them was given."""
    unattended: bool = False
    """Unlocked, in a console whose start did so without anybody's key; always shown."""
    has_keyring: bool = False
    """A key for it is in the system's keyring."""
    keyring_opens: bool = False
    """`UnlockVaultWithKeyring` needs no passphrase."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VaultRefused:
    """The vault did not do what `CreateVault`, `UnlockVault` or `UnlockVaultWithKeyring` asked."""

    message: str
    wait_seconds: float = 0
    """For how long another attempt is refused unseen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VaultUnlocked:
    """`CreateVault`, `UnlockVault` or `UnlockVaultWithKeyring` succeeded."""

    failed_attempts: int
    """Wrong passphrases before it, to be said."""
    failed_since: float | None
    problem: str = ""
    """What was wrong with the vault's files, to be said: the next write mends them."""
    imported: int | None = None
    """Entries read from a vault of version 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Everything a front end draws first; events published after it are later than it."""

    version: str
    home: str
    url: str
    routes: tuple[str, ...]
    """`host:port -> address:port`, from `--route`; always shown as a warning."""
    accepted_installed: bool
    """Started with `--accept-installed`; always shown."""
    approvals: tuple[ApprovalView, ...]
    """The open ones that came first, in order of arrival, and the last ended ones (at most 200)."""
    sessions: tuple[SessionView, ...]
    not_accepted: tuple[NotAcceptedView, ...]
    problems: tuple[Problem, ...]
    actions_ready: int
    records: tuple[RecordView, ...]
    """The newest records, oldest first (at most 500)."""
    head_words: tuple[str, str] | None
    """Two words of the audit's head, for the footer."""
    health: StorageHealth = field(default_factory=lambda: StorageHealth(writable=True))
    library: tuple[LibraryItemView, ...] = ()
    """Everything installed in the home: actions by name, then connectors."""
    paused_at: float | None = None
    """Since when all calls are held; None while they go on."""
    approvals_remaining: int = 0
    """How many open calls follow those of `approvals`; `ReadApprovals` reads on."""
    vault: VaultStatus = field(default_factory=lambda: VaultStatus(state="absent"))
    accounts: AccountsUpdated = field(default_factory=AccountsUpdated)
    settings_accepted: bool = True
    """`config.toml` is known to be the person's: there is no vault, or it has verified with its key."""
    inspects_models: bool = False
    """With `[gateway] inspect`, the names of tools that models call are read; always shown."""
    devices: tuple[DeviceView, ...] = ()
    grants: tuple[GrantView, ...] = ()
    rules: tuple[RuleView, ...] = ()
    """Those of `policy.toml` for actions."""
    attached: str = ""
    """The hand of an attached console, such as `attached 2`; empty in the console itself."""
    is_owners: bool = False
    """An attached console was confirmed as the owner's (`OwnersIntent`)."""
    elsewhere: str = ""
    """The machine of the home, as an attached console reaches it over ssh; empty on the same one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalUpdated:
    """An approval is new or differs from before."""

    view: ApprovalView


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionsUpdated:
    """The open sessions, whole."""

    sessions: tuple[SessionView, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LibraryUpdated:
    """What is accepted, not accepted or broken among actions and connectors, whole."""

    not_accepted: tuple[NotAcceptedView, ...]
    problems: tuple[Problem, ...]
    actions_ready: int
    library: tuple[LibraryItemView, ...] = ()
    settings_accepted: bool = True
    """As in `Snapshot`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StandingUpdated:
    """The grants and the rules for actions are these now."""

    grants: tuple[GrantView, ...]
    rules: tuple[RuleView, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantEnded:
    """A grant answers no more calls; `why` is a clause."""

    grant_id: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OffersRead:
    """Answers `ReadOffers`."""

    offers: OffersView


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapeTried:
    """Answers `TryShape`."""

    approval_id: str
    tests: FieldTests
    tried: TriedShape


@dataclass(frozen=True, slots=True, kw_only=True)
class PauseChanged:
    """A person paused all calls at `paused_at`, or (None) let them go on."""

    paused_at: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class EverythingStopped:
    """What `StopEverything` did."""

    denied: int
    sessions_ended: int
    runs_stopped: int
    """Running guests that were stopped; a step that is not idempotent ends as `unknown`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalsRead:
    """Part of the answer to `ReadApprovals`, in order of arrival; *left* more follow."""

    views: tuple[ApprovalView, ...]
    remaining: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordsRead:
    """The answer to `ReadRecords`, oldest first; `total` is how many records there are in all."""

    records: tuple[RecordView, ...]
    before_seq: int | None
    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordRead:
    """The answer to `ReadRecord`: the whole body as stored (JCS text, hostile), and its hashes."""

    seq: int
    body: str
    hash: str
    prev: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRead:
    """The answer to `ReadCall`; `call` is None where no such call is on record."""

    run_id: str
    call: CallView | None


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryRead:
    """The answer to `ReadHistory`: rows that match, newest first, each list by itself."""

    query: HistoryQuery
    start: HistoryCursor | None
    calls: tuple[HistoryCall, ...]
    records: tuple[RecordView, ...]
    """Refused calls, and with `query.lifecycle` what else happened. None is older than where `then` goes on."""
    then: HistoryCursor | None
    """Where the next reading starts; None: this one came to the first call."""
    searched: int
    """How many calls it looked at."""
    searched_to: float | None
    """Epoch seconds of the oldest of them; None if it looked at none."""
    total: int
    """How many calls there are in all."""
    sealed: int = 0
    """Of those that words were looked for in: whose contents could not be read, as they are sealed."""
    not_kept: int = 0
    """Of the same: whose contents are deleted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallsCounted:
    """The answer to `CountCalls`: the hours that end at `until`, the newest last."""

    until: float
    hours: tuple[HourOfCalls, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditExported:
    """The answer to `ExportAudit`: how many records stand in the new file."""

    records: int
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditVerified:
    """The answer to `VerifyAudit`; `problems` are our own sentences."""

    records: int
    problems: tuple[str, ...]
    at: float
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """A record was committed."""

    record: RecordView
    head_words: tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class IntentRefused:
    """An intent did nothing; `message` is the sentence for the status line."""

    call_id: str
    """`ApprovalView.call_id` of the call that it was about; empty where it was about none."""
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CoreLost:
    """The core's thread has ended while the App lives. Nothing can be decided any more."""

    message: str


CoreEvent: TypeAlias = (
    ApprovalUpdated
    | SessionsUpdated
    | LibraryUpdated
    | StandingUpdated
    | GrantEnded
    | OffersRead
    | ShapeTried
    | PauseChanged
    | EverythingStopped
    | ApprovalsRead
    | RecordsRead
    | RecordRead
    | CallRead
    | HistoryRead
    | CallsCounted
    | AuditExported
    | AuditVerified
    | Recorded
    | StorageHealth
    | VaultStatus
    | VaultRefused
    | VaultUnlocked
    | AccountsUpdated
    | AccountChanged
    | AccountRefused
    | LoginUpdated
    | ModelKeysRead
    | LinkMade
    | DevicesUpdated
    | IntentRefused
    | CoreLost
)
