"""What a person asks about accounts in the console. Answered by `AccountChanged`, `LoginUpdated` or `AccountRefused`."""

from dataclasses import dataclass
from typing import TypeAlias

from aileron_core.vault.secret import Secret


@dataclass(frozen=True, slots=True, kw_only=True)
class BindAccount:
    """Bind an account to the connector of exactly this hash. Secrets are overwritten after use."""

    connector_hash: str
    identity: str
    account: str
    secret: Secret
    user: str = ""
    session_token: Secret | None = None
    region: str = ""
    """Of kind aws_sigv4: the one region that it is for; empty for that of each host."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RebindAccount:
    """Let the connector of exactly this hash, which was shown, use the account again."""

    name: str
    connector_hash: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RevokeAccount:
    """Delete an account from the vault."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgetChoice:
    """Have a person pick again which account the next call of *action* uses."""

    name: str
    action: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BeginLogin:
    """Begin a login at a service, of kind oauth2; nothing is stored before `FinishLogin`."""

    connector_hash: str
    identity: str = ""
    """Of a new account."""
    replaces: str = ""
    """Name of the account that is authorized again; empty for a new one."""
    client_id: str = ""
    """The person's own registration at the service; empty: the connector's."""
    client_secret: Secret | None = None
    token_host: str = ""
    """As the person typed it, where it is not known to be the provider's."""
    device: bool = False
    """There is no browser here: with a device code, where the provider gives one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishLogin:
    """Store the account that was shown; *account*: the person's name for it, where the service gives none."""

    login_id: str
    account: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelLogin:
    """Forget a login, and all that the service gave for it."""

    login_id: str


AccountIntent: TypeAlias = (
    BindAccount
    | RebindAccount
    | RevokeAccount
    | ForgetChoice
    | BeginLogin
    | FinishLogin
    | CancelLogin
)
