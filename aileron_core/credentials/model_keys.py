"""API keys of model providers, kept in the vault for the gateway: one for each provider, for one base URL."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

from aileron_core.audit.events import AuditEvent
from aileron_core.clock import Clock
from aileron_core.credentials.account_secret import AccountSecret
from aileron_core.credentials.oauth_refresh import RecordEvent
from aileron_core.errors import InvalidRequest, NotFound
from aileron_core.vault.secret import Secret
from aileron_core.vault.vault import EntryInfo, Vault

_FOLDER: Final = "model_key/"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelKey:
    """A key without its value. While the vault is locked, nothing of it is verified."""

    provider: str
    base_url: str
    """The one address that it is sent to."""
    created_at: float
    """Epoch seconds."""

    @classmethod
    def from_entry(cls, entry: EntryInfo) -> "ModelKey | None":
        """Return the key that a vault's *entry* is; None if it is none."""
        if not entry.path.startswith(_FOLDER):
            return None
        fields = cast("Mapping[str, Any]", entry.metadata)
        created: Any = fields.get("created_at")
        return cls(
            provider=entry.path.removeprefix(_FOLDER),
            base_url=str(fields.get("base_url", "")),
            created_at=float(created) if isinstance(created, int | float) else 0.0,
        )

    def problem(self, base_urls: Mapping[str, str]) -> str:
        """Return why no request may carry it as a clause, empty if one may.

        Args:
            base_urls: where each provider's requests go.
        """
        if base_urls.get(self.provider) == self.base_url:
            return ""
        return f"requests to {self.provider} go to {base_urls.get(self.provider, 'no address')} now"


def stored_model_keys(vault: Vault) -> tuple[ModelKey, ...]:
    """Return the keys of *vault* by provider; it may be locked."""
    found = (ModelKey.from_entry(entry) for entry in vault.entries().values())
    return tuple(each for each in found if each is not None)


def check_base_url(base_url: str) -> None:
    """Raise InvalidRequest for one to which no key is sent."""
    if not base_url.startswith("https://"):
        raise InvalidRequest(
            f"{base_url} is not https, so no key is sent there. Set an https address under "
            "[gateway] in config.toml."
        )


class ModelKeys:
    """Stores keys, and gives the gateway the one for a request.

    Args:
        record: writes an audit record, or raises `StorageUnavailable`.
    """

    def __init__(self, vault: Vault, clock: Clock, record: RecordEvent) -> None:
        self._vault = vault
        self._clock = clock
        self._record = record
        self._changing = asyncio.Lock()

    def all(self) -> tuple[ModelKey, ...]:
        return stored_model_keys(self._vault)

    def usable(self, base_urls: Mapping[str, str]) -> tuple[str, ...]:
        """Return the providers that have a key for where their requests go; `ModelKey.problem` has the argument."""
        return tuple(each.provider for each in self.all() if not each.problem(base_urls))

    async def set(self, provider: str, base_url: str, secret: Secret) -> ModelKey:
        """Store the key of *provider* for *base_url*, in place of one that it had.

        Raises:
            InvalidRequest: it cannot be sent in a header, or *base_url* is not https.
            VaultLocked, StorageUnavailable, OSError: nothing was stored.
        """
        check_base_url(base_url)
        stored = AccountSecret(value=secret).stored("api_key")
        key = ModelKey(provider=provider, base_url=base_url, created_at=self._clock.now())
        async with self._changing:
            self._vault.derive_key("model keys")  # raises where it is locked, before the record
            # Recorded first: what then cannot be stored is tried again, and recorded again.
            await self._record(
                AuditEvent.GATEWAY_KEY_SET,
                f"A person stored a key for {provider}",
                {"provider": provider, "base_url": base_url},
            )
            await asyncio.to_thread(
                self._vault.put,
                _FOLDER + provider,
                stored,
                {"type": "model_key", "base_url": base_url, "created_at": key.created_at},
            )
        return key

    async def remove(self, provider: str) -> None:
        """Delete the key of *provider*, from the copy kept of the vault as well. The provider is not told.

        Raises:
            NotFound: there is none.
            VaultLocked, StorageUnavailable, OSError: it could not be deleted.
        """
        async with self._changing:
            if provider not in {each.provider for each in self.all()}:
                raise NotFound(
                    f"The vault has no key for {provider[:64]!r}. `aileron gateway key list` shows them all."
                )
            await self._record(
                AuditEvent.GATEWAY_KEY_REMOVED,
                f"A person removed the key for {provider}",
                {"provider": provider},
            )
            await asyncio.to_thread(self._vault.delete, _FOLDER + provider)

    def get(self, provider: str, base_url: str) -> Secret:
        """Return the key of *provider*, for a request to *base_url*.

        Raises:
            VaultLocked: unlock it first.
            VaultDamaged: the entry was changed by another program.
            NotFound: there is none, or it is for another address.
        """
        secret = self._vault.get(_FOLDER + provider)
        # Read after the value: what the open vault lists then is verified.
        if provider not in self.usable({provider: base_url}):
            secret.wipe()
            raise NotFound(f"The key for {provider} is for another address than {base_url}.")
        return secret
