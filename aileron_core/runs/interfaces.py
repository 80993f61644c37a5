"""What the gate needs from the rest of the core: accepted actions, accounts, and its limits with their defaults."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from aileron_core.actions.model import Action, ActionFile, ActionLimits, ConnectorIdentity
from aileron_core.canonical import JsonObject
from aileron_core.connectors.protocol import Connector
from aileron_core.console_port.account_views import AccountNeed
from aileron_core.devices import Hand
from aileron_core.policy.model import Verdict
from aileron_core.runs.model import RunRecord

OpenContents: TypeAlias = Callable[[RunRecord], Awaitable[tuple[RunRecord, str]]]
"""Returns a run with what it contained, and why it has not, as a sentence; '' where it has."""
Failpoint = Callable[[str], None]
"""Called with the name of each step of a run's life. Tests of crashes stop the process in it."""


def no_failpoint(_name: str) -> None:
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedAction:
    """An accepted action with the connectors that it names."""

    action: Action
    connectors: Mapping[str, Connector]
    """By FQN, exactly the version and hash that the action names."""
    verdict: Verdict | None = None
    """What the rules say of this call of a built-in tool; None for every other."""
    routed: tuple[str, ...] = ()
    """Those of its hosts that `--route` sends elsewhere, as `host:port -> address:port`."""

    @property
    def hosts(self) -> tuple[str, ...]:
        """Return every `host:port` that its connectors may reach, sorted."""
        return tuple(sorted({host for each in self.connectors.values() for host in each.hosts}))

    @property
    def file(self) -> ActionFile:
        """Return the action as it was accepted, for the choices that are remembered for it."""
        return ActionFile(name=self.action.name, sha256=self.action.sha256)

    @property
    def run_seconds_accepted(self) -> int | None:
        """Return how long a run may take, where a person accepted that beside the file; else None."""
        limits = self.action.limits
        usual = limits.has_wall_seconds or limits.wall_seconds == ActionLimits().wall_seconds
        return None if usual else limits.wall_seconds

    @property
    def consented_accounts(self) -> tuple[JsonObject, ...]:
        """Return what a yes covers of those bindings, in the same order."""
        return tuple(
            each.consented_account
            for each in self.connectors.values()
            if each.consented_account is not None
        )

    @property
    def accounts(self) -> tuple[str, ...]:
        """Return the bindings whose credentials its calls carry, in the order of its connectors."""
        return tuple(each.account for each in self.connectors.values() if each.account)


class Accounts(Protocol):
    """The accounts of the vault. A digest covers which one each connector of a call was given."""

    def assign(
        self, connectors: Mapping[str, Connector], choices: Mapping[str, str], action: ActionFile
    ) -> tuple[Mapping[str, Connector], AccountNeed | None]:
        """Return *connectors*, each with its account, or why that cannot be yet.

        Args:
            connectors: by FQN, with or without accounts of an earlier time.
            choices: by FQN, the binding that a person picked for this call.
            action: what is called.
        """
        ...

    def require_current(self, connectors: Iterable[Connector]) -> None:
        """Check that each of *connectors* may use the account now that it was given.

        Raises:
            VaultLocked, BindingFailed: one may not.
        """
        ...

    async def remember(
        self,
        name: str,
        connectors: Iterable[Connector],
        fqn: str,
        action: ActionFile,
        hand: Hand,
    ) -> None:
        """Have later calls of *action* use the account *name* for its connector *fqn*; *hand*: a person's.

        Raises:
            VaultLocked, StorageUnavailable, OSError: it could not be remembered.
        """
        ...


class Library(Protocol):
    """The actions and connectors that a person accepted."""

    def find(self, name: str, session_id: str = "") -> ResolvedAction:
        """Return the accepted action *name*.

        Args:
            session_id: whose call it is. Only with it a built-in tool can run.

        Raises:
            NotFound: there is none.
            Conflict: its file, or a connector of it, is not accepted, or broken.
        """
        ...

    def accepted_reads(self, identity: ConnectorIdentity, op: str) -> Mapping[str, str]:
        """Return what *op* of exactly this connector may read by POST in previews, and who accepted each."""
        ...

    async def offer_read(self, identity: ConnectorIdentity, read: str) -> bool:
        """Offer a person to accept *read*, which was just refused; True where it counts already."""
        ...

    async def changed_since(self, resolved: ResolvedAction) -> str:
        """Read action file and connectors from disk again; return what differs as a sentence, or ''."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class GateSettings:
    """Limits and times (`docs/wire.md#defaults`); seconds unless named otherwise."""

    expires_seconds: float = 1800.0
    """0: approvals never expire."""
    pending_per_session: int = 20
    argument_bytes: int = 16 * 2**20
    """Of one session, as stored, of calls that wait or have ended."""
    previews_at_once: int = 4
    previews_per_minute: int = 30
    preview_seconds: float = 5.0
    read_back_delay_seconds: float = 1.0
    """From the end of a run to the one reading of what the service then holds."""
    reason_characters: int = 2000
