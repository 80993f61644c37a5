"""What a front end shows of accounts: those that are bound, who may use or needs one, and a login that goes on."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from aileron_core.errors import Failure

LoginState: TypeAlias = Literal["waiting", "authorized", "failed"]
AccountChange: TypeAlias = Literal["bound", "rebound", "revoked", "forgotten", "authorized"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountView:
    """A bound account."""

    name: str
    """Of the binding, `<kind>/<service>/<identity>`."""
    account: str
    """The person's own name for it, or the service's; may be empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountNeed:
    """Why a call waits for the vault or an account.

    `locked`: the vault is. `settings`: `config.toml` is not the accepted one. `unbound`: none counts for the connector. `choice`: a person picks one.
    """

    reason: Literal["locked", "settings", "unbound", "choice"]
    connector: str
    """Its FQN."""
    kind: str
    """Empty where no account is needed."""
    candidates: tuple[AccountView, ...] = ()
    problem: str = ""
    """For `unbound`: why the account that there is does not count, and its name."""
    command: str = ""
    """For `unbound`: what a person types in a shell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundAccount(AccountView):
    """An account in the vault, without its secret. While the vault is locked, nothing of it is verified."""

    connector: str
    """FQN of the one that may use it; empty for an imported one that belongs to none yet."""
    connector_hash: str
    hosts: tuple[str, ...]
    created_at: float
    """Epoch seconds; 0 where it is not known."""
    region: str = ""
    """Of kind aws_sigv4: the only one that it is used in; empty for that of each host."""
    scopes: tuple[str, ...] = ()
    """Of kind oauth2: what was granted, as of the last renewal."""
    missing_scopes: tuple[str, ...] = ()
    """What its connector asks for and was not granted."""
    names: tuple[str, ...] = ()
    """Of kind environment: those of its values."""
    is_stale: bool = False
    """Its service does not accept it any more."""
    last_used_at: float | None = None
    """When a call last got its credential, epoch seconds, to the hour; None: never."""

    @property
    def kind(self) -> str:
        return self.name.partition("/")[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundAccountView(BoundAccount):
    """One as it is shown."""

    problem: str
    """Why it cannot be used, our own clause; empty if it can."""
    remedy: str
    """The command of `aileron binding` that has it be used again, or makes room for one that can be; or empty."""
    remembered_for: tuple[str, ...]
    """The actions whose calls use it without asking which account."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CredentialUserView:
    """An accepted connector that asks for an account."""

    connector: str
    """Its FQN."""
    ref: str
    """With its version."""
    hash: str
    kind: str
    hosts: tuple[str, ...]
    """Where a credential would be sent."""
    header: str
    """Of kind api_key: the header that it is sent in."""
    scope: str
    """What its author says that it is for; hostile."""
    access_key_id: str
    """Of kind aws_sigv4, where the manifest names one."""
    client_id: str
    """Of kind oauth2: the connector's own registration; empty where a person has to give theirs."""
    default_name: str
    """The name of an account of the identity `default`."""
    scopes: tuple[str, ...] = ()
    """Of kind oauth2: the permissions that its manifest asks for; hostile."""
    login_host: str = ""
    """Of kind oauth2: the `host:port` where a person logs in."""
    token_host: str = ""
    """Of kind oauth2: the `host:port` that gets what the login gives."""
    needs_region: bool = False
    """Of kind aws_sigv4: neither its manifest nor a host names an AWS region."""
    names: tuple[str, ...] = ()
    """Of kind environment: those of the values that the server is started with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginView:
    """A login at a service, of kind oauth2, that goes on. What a service says is hostile.

    Nothing in it is secret but `url`, for whoever might answer in a person's place.
    """

    login_id: str
    state: LoginState
    url: str
    """Where the person goes."""
    user_code: str
    """What they enter there, of a device code; empty in a browser on this machine."""
    scopes: tuple[str, ...]
    """Asked for."""
    token_host: str
    expires_at: float
    """Epoch seconds; until then the state has to change."""
    account: str = ""
    """Whose it is, as the service says; empty where it does not."""
    missing: tuple[str, ...] = ()
    """Asked for by the manifest, and not granted."""
    ends_at: float | None = None
    """When the login ends for good; None if it is renewed or does not end."""
    problem: Failure | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountsUpdated:
    """The bound accounts by name, and the accepted connectors that ask for one, whole."""

    accounts: tuple[BoundAccountView, ...] = ()
    users: tuple[CredentialUserView, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountChanged:
    """What a person asked for was done."""

    change: AccountChange
    name: str
    account: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountRefused:
    """It was not done; nothing changed."""

    message: str
    token_host: str = ""
    """The host that has to be typed first, as nothing says that it is the provider's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginUpdated:
    """A login began, was authorized or failed."""

    login: LoginView


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelKeyView:
    """A model provider's key in the vault, without its value. While the vault is locked, nothing of it is verified."""

    provider: str
    base_url: str
    """The one address that it is sent to."""
    created_at: float | None
    """Epoch seconds."""
    problem: str
    """Why no request may carry it, our own clause; empty if one may."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelKeysRead:
    """The keys by provider, and where each provider's requests go, whole."""

    keys: tuple[ModelKeyView, ...]
    base_urls: tuple[tuple[str, str], ...]
