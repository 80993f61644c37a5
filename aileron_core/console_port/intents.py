"""What a person asks of the core, and the port that takes it. Each is answered by events, or by `IntentRefused`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias

from aileron_core.console_port.account_intents import (
    AccountIntent,
    ModelKeyIntent,
    NarrowingAccountIntent,
    OwnersAccountIntent,
)
from aileron_core.console_port.devices import DeviceIntent, EndDevice
from aileron_core.console_port.events import CoreEvent, Snapshot
from aileron_core.console_port.standing import FieldTests, GrantTerms
from aileron_core.console_port.view_models import HistoryCursor, HistoryQuery
from aileron_core.vault.secret import Secret


@dataclass(frozen=True, slots=True, kw_only=True)
class Approve:
    """A person's yes to exactly *digest*. `unseen_lines` goes to the audit."""

    approval_id: str
    digest: str
    unseen_lines: int = 0
    grant: GrantTerms | None = None
    """What runs without asking from then on, as a person made it of `OffersView`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deny:
    """A person's no; the agent reads *reason* (at most 2,000 characters, may be empty)."""

    approval_id: str
    reason: str = ""
    grant: GrantTerms | None = None
    """The calls that are denied without asking from then on."""
    on_screen: bool = True
    """Whether the call itself was shown; not so where it was denied as an equal of another."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOffers:
    """Read what can be granted beside a yes to a waiting call; answered by `OffersRead`."""

    approval_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TryShape:
    """Try what a grant with these tests beside a waiting call would do; answered by `ShapeTried`."""

    approval_id: str
    tests: FieldTests


@dataclass(frozen=True, slots=True, kw_only=True)
class EndGrant:
    """End a grant; what it answered and has not begun waits for the person again."""

    grant_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadStanding:
    """Read the grants and the rules for actions; answered by `StandingUpdated`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EditCall:
    """Change arguments of a call that waits, as it was shown with *digest*; its preview is then fetched anew."""

    approval_id: str
    digest: str
    args: Mapping[str, Any]
    """Those to change, by name; None takes one away. All others stay exactly as they are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshPreview:
    """Fetch the preview again."""

    approval_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RefetchPreview:
    """Fetch the preview of a run that ended as `unknown`: how it is at the service now.

    Where that is what was approved, the run is settled: it waits for nobody any more.
    """

    call_id: str
    """`ApprovalView.call_id`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Acknowledge:
    """Take note that a run ended as `unknown`: it waits for nobody any more."""

    call_id: str
    """`ApprovalView.call_id`."""
    looked_at: float | None
    """`LookView.at` of what was shown; None where nobody had looked at the service again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChooseAccount:
    """Have a call that waits for a choice use one of its accounts."""

    approval_id: str
    connector: str
    """Its FQN, `AccountNeed.connector`."""
    binding: str
    """`AccountView.name`."""
    remember: bool = False
    """For later calls of the action too, as long as its file is the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkReadBackSeen:
    """Take note of how the service differs from what was approved."""

    run_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Accept:
    """Accept the file as it is, by the digest that was shown."""

    kind: Literal["action", "connector", "preview", "settings", "policy", "publisher"]
    name: str
    digest: str
    run_seconds: int = 0
    """`RunTimeView.seconds` that was shown with it; 0 where none was."""
    signed_with: str = ""
    """`PublisherView.name_and_key` that was shown with it; empty where no key was."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptSuite:
    """Accept action files, and connectors, that were added together, each by the digest that was shown.

    The suite's other files stand alone from then on.
    """

    suite_id: str
    files: tuple[tuple[str, str], ...]
    """`NotAcceptedView.file` and `digest`."""
    run_seconds: tuple[tuple[str, int], ...] = ()
    """By name, `RunTimeView.seconds` that was shown with a file."""
    signed_with: tuple[tuple[str, str], ...] = ()
    """By name, `PublisherView.name_and_key` that was shown with a file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WithdrawAcceptance:
    """Stop offering what was accepted; agents stop seeing it at once. It can be accepted again."""

    kind: Literal["action", "connector", "preview", "settings", "policy", "publisher"]
    name: str
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseServer:
    """Let an MCP server that ended too often be started again with its next call."""

    name: str
    """The connector's fully qualified name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SetPause:
    """Hold all calls (`on`), or let them go on.

    While paused: gated calls become pending silently, ungated ones are held before their row for
    25 s at most and then refused as `unavailable`; nothing that was approved starts.
    """

    paused: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class UndoRun:
    """Take back what a call of a built-in tool wrote (`ApprovalView.can_undo`)."""

    run_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StopRun:
    """Stop one call while its steps run. Its outcome follows; it may be unknown."""

    run_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StopEverything:
    """Deny all that waits, end every session, stop every guest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EndSession:
    """End a session: its tokens become invalid; its approvals stay open, without a requester."""

    session_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AllowHost:
    """Let a session's sandbox reach a host that it was refused, until the session ends."""

    session_id: str
    host: str
    """`name:port`, as it was shown."""


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
class ReadCall:
    """Read one call whole: what is kept of it, and its records."""

    run_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadHistory:
    """Read at most `limit` rows (200 at most) of the history; answered by `HistoryRead`.

    One reading looks at a bounded part of it, so it may find fewer, or none: `HistoryRead.then` reads on.
    """

    query: HistoryQuery
    start: HistoryCursor | None = None
    """Where an earlier reading ended; None: at the newest."""
    limit: int = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class CountCalls:
    """Count the calls of the last hours (48 at most), by outcome; answered by `CallsCounted`."""

    hours: int = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyAudit:
    """Verify the whole chain, the heads and the rows, off the core's loop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportAudit:
    """Write every record into a new file in the home, off the core's loop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadVault:
    """Read how the vault is; answered by `VaultStatus`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateVault:
    """Create the vault. The passphrase is overwritten after use, as in `UnlockVault`."""

    passphrase: Secret
    import_from: str = ""
    """Absolute path of a vault of version 1, whose passphrase it is; empty for a new vault."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnlockVault:
    """Unlock the vault; answered by `VaultUnlocked` or `VaultRefused`."""

    passphrase: Secret


@dataclass(frozen=True, slots=True, kw_only=True)
class UnlockVaultWithKeyring:
    """Unlock the vault with the key in the system's keyring; answered as `UnlockVault` is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveFile:
    """Remove an action file or a connector from the home; its acceptance ends, however soon it is back.

    Or an offered key of a publisher: what is accepted of that publisher stays.
    """

    kind: Literal["action", "connector", "publisher"]
    file: str
    """The action's file, or the key's, in its folder; the connector's hash."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LockVault:
    """Lock the vault at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangePassphrase:
    """Change the vault's passphrase; it stays locked or unlocked. Both are overwritten after use."""

    old: Secret
    new: Secret


@dataclass(frozen=True, slots=True, kw_only=True)
class SetKeyring:
    """Have the system's keyring keep a key that opens the vault, or not."""

    passphrase: Secret
    on: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TouchVault:
    """Note that a person pressed a key, so that the vault is not locked as unused."""


VaultIntent: TypeAlias = (
    ReadVault
    | CreateVault
    | UnlockVault
    | UnlockVaultWithKeyring
    | LockVault
    | ChangePassphrase
    | SetKeyring
    | TouchVault
)
StandingIntent: TypeAlias = ReadOffers | TryShape | EndGrant | ReadStanding
CommandIntent: TypeAlias = RemoveFile | VaultIntent | AccountIntent | ModelKeyIntent | ReadStanding
"""What a command may ask for: none decides, and none accepts a file."""
NarrowingIntent: TypeAlias = (
    ReadVault | LockVault | RemoveFile | NarrowingAccountIntent | ReadStanding
)
"""Only reads or takes away: a command needs no proof that the person asks."""
OwnersIntent: TypeAlias = (
    SetPause
    | StopEverything
    | EndSession
    | EndDevice
    | Accept
    | AcceptSuite
    | ChooseAccount
    | OwnersAccountIntent
    | LockVault
)
"""What an attached console may ask for besides, with a signature, once it was confirmed as the owner's."""
AttachedIntent: TypeAlias = (
    Approve
    | Deny
    | ReadApprovals
    | ReadRecords
    | ReadRecord
    | ReadCall
    | ReadHistory
    | CountCalls
    | VerifyAudit
    | OwnersIntent
)
"""What an attached console may ask for: it answers calls, with a signature, and reads; and as the owner's more."""
Intent: TypeAlias = (
    Approve
    | Deny
    | EditCall
    | RefreshPreview
    | RefetchPreview
    | Acknowledge
    | ChooseAccount
    | MarkReadBackSeen
    | Accept
    | AcceptSuite
    | WithdrawAcceptance
    | ReleaseServer
    | SetPause
    | StopRun
    | UndoRun
    | StopEverything
    | EndSession
    | AllowHost
    | ReadApprovals
    | ReadRecords
    | ReadRecord
    | ReadCall
    | ReadHistory
    | CountCalls
    | VerifyAudit
    | ExportAudit
    | DeviceIntent
    | StandingIntent
    | CommandIntent
)


class ConsolePort(Protocol):
    """The core, which runs on another thread and loop.

    An intent is handed over and never cancelled from outside, so a screen that goes away cannot stop a
    decision half-way; its answer arrives as an event like any other.
    """

    def submit(self, intent: Intent) -> None:
        """Hand *intent* over and return at once. Answers come as events. After CoreLost: no effect."""
        ...

    def subscribe(self, sink: Callable[[CoreEvent], None]) -> Snapshot:
        """Return the present state and have *sink* called, on the core's thread, for every later event.

        *sink* must return at once (`App.post_message` does). Blocks for at most 5 s.

        Raises:
            Unavailable: the core has ended.
        """
        ...
