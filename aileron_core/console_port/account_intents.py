"""What a person asks about accounts and model providers' keys, in the console and by commands.

In the console a key press stands for the passphrase. Answered by `AccountsUpdated`, `AccountChanged`,
`LoginUpdated` or `ModelKeysRead`; in the console by `AccountRefused` too.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from aileron_core.vault.secret import Secret

OFF_RECORD: Final = {"off_record": True}
"""Of a field that no record holds: where its intent is signed, a commitment to it is, as to a `Secret`."""


def named_values(values: Mapping[str, Secret]) -> Secret:
    """Return the *values* of an account of kind environment, which are overwritten, as one secret: a JSON object."""
    # What is no text becomes lone surrogates, which the core refuses.
    texts = {name: each.reveal().decode(errors="surrogateescape") for name, each in values.items()}
    for each in values.values():
        each.wipe()
    return Secret(json.dumps(texts))


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadAccounts:
    """Read the bound accounts, and the accepted connectors that ask for one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BindAccount:
    """Bind an account to the connector of exactly this hash. Secrets are overwritten after use."""

    connector_hash: str
    identity: str
    account: str
    secret: Secret
    """Of kind environment: all values, as `named_values` makes them."""
    user: str = field(default="", metadata=OFF_RECORD)
    session_token: Secret | None = None
    region: str = ""
    """Of kind aws_sigv4: the one region that it is for; empty for that of each host."""
    passphrase: Secret | None = None
    """The vault's, from a command."""

    def wipe(self) -> None:
        """Overwrite the account's secrets."""
        self.secret.wipe()
        if self.session_token is not None:
            self.session_token.wipe()


@dataclass(frozen=True, slots=True, kw_only=True)
class RebindAccount:
    """Let the connector of exactly this hash, which was shown, use the account again."""

    name: str
    connector_hash: str
    passphrase: Secret | None = None
    """The vault's, from a command."""


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
    device_only: bool = False
    """A person asked for the code: where the provider gives none, nothing begins."""
    passphrase: Secret | None = None
    """The vault's, from a command."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitForLogin:
    """Answer with a login once it does not wait any more, or as it is after 25 seconds."""

    login_id: str = field(metadata=OFF_RECORD)


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishLogin:
    """Store the account that was shown; *account*: the person's name for it, where the service gives none."""

    login_id: str = field(metadata=OFF_RECORD)
    """Only who began the login knows it."""
    account: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelLogin:
    """Forget a login, and all that the service gave for it."""

    login_id: str = field(metadata=OFF_RECORD)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadModelKeys:
    """Read which providers have a key in the vault, and where each provider's requests go."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SetModelKey:
    """Store a provider's key for the address that its requests go to. The key is overwritten after use."""

    provider: str
    base_url: str
    """As it was shown."""
    secret: Secret
    passphrase: Secret | None = None
    """The vault's, from a command."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveModelKey:
    """Delete a provider's key from the vault. The provider is not notified."""

    provider: str


AccountIntent: TypeAlias = (
    ReadAccounts
    | BindAccount
    | RebindAccount
    | RevokeAccount
    | ForgetChoice
    | BeginLogin
    | WaitForLogin
    | FinishLogin
    | CancelLogin
)
ModelKeyIntent: TypeAlias = ReadModelKeys | SetModelKey | RemoveModelKey
NarrowingAccountIntent: TypeAlias = (
    ReadAccounts | RevokeAccount | ForgetChoice | ReadModelKeys | RemoveModelKey
)
"""Only reads or takes away."""
OwnersAccountIntent: TypeAlias = (
    BindAccount
    | RebindAccount
    | RevokeAccount
    | ForgetChoice
    | BeginLogin
    | FinishLogin
    | CancelLogin
)
WideningIntent: TypeAlias = BindAccount | RebindAccount | BeginLogin | SetModelKey
"""Lets a secret be used that was not, or in another way: a command has to prove that the person asks."""
