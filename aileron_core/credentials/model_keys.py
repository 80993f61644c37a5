"""API keys of model providers, kept in the vault for the gateway: one for each provider, for one base URL."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Final, cast

from aileron_core.audit.events import AuditEvent
from aileron_core.canonical import JsonObject
from aileron_core.clock import Clock
from aileron_core.console_port.account_intents import (
    ModelKeyIntent,
    ReadModelKeys,
    RemoveModelKey,
    SetModelKey,
)
from aileron_core.console_port.account_views import ModelKeysRead, ModelKeyView
from aileron_core.credentials.account_secret import stored_key
from aileron_core.credentials.oauth_refresh import RecordEvent
from aileron_core.credentials.upstreams import find_provider
from aileron_core.errors import Conflict, InvalidRequest, NotFound
from aileron_core.vault.secret import Secret, wiped
from aileron_core.vault.vault import Vault

_FOLDER: Final = "model_key/"


def stored_model_keys(vault: Vault, base_urls: Mapping[str, str]) -> tuple[ModelKeyView, ...]:
    """Return the keys of *vault* by provider; it may be locked.

    Args:
        base_urls: where each provider's requests go.
    """
    return tuple(
        _view(path.removeprefix(_FOLDER), metadata, base_urls)
        for path, metadata in vault.entries().items()
        if path.startswith(_FOLDER)
    )


def _view(provider: str, metadata: JsonObject, base_urls: Mapping[str, str]) -> ModelKeyView:
    fields = cast("Mapping[str, Any]", metadata)
    base_url = str(fields.get("base_url", ""))
    created: Any = fields.get("created_at")
    now = base_urls.get(provider, "no address")
    return ModelKeyView(
        provider=provider,
        base_url=base_url,
        created_at=(float(created) or None) if isinstance(created, int | float) else None,
        problem="" if now == base_url else f"requests to {provider} go to {now} now",
    )


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
        base_urls: where each provider's requests go.
        settings_count: whether the settings that may say so are known to be the person's.
    """

    def __init__(
        self,
        vault: Vault,
        clock: Clock,
        record: RecordEvent,
        base_urls: Mapping[str, str],
        settings_count: Callable[[], bool],
    ) -> None:
        self._vault = vault
        self._clock = clock
        self._record = record
        self._base_urls = base_urls
        self._settings_count = settings_count
        self._changing = asyncio.Lock()

    def all(self) -> tuple[ModelKeyView, ...]:
        return stored_model_keys(self._vault, self._base_urls)

    def usable(self) -> tuple[str, ...]:
        """Return the providers that have a key for where their requests go."""
        return tuple(each.provider for each in self.all() if not each.problem)

    async def answer(self, intent: ModelKeyIntent) -> ModelKeysRead:
        """Carry out *intent*; return all keys as they are then.

        Raises:
            Conflict: requests go elsewhere than was shown, or nobody can tell.
            InvalidRequest, NotFound, VaultLocked, StorageUnavailable, OSError: nothing changed.
        """
        match intent:
            case ReadModelKeys():
                pass
            case SetModelKey():
                with wiped(intent.secret):
                    await self._set_as_shown(intent)
            case RemoveModelKey():
                await self.remove(intent.provider)
        return ModelKeysRead(keys=self.all(), base_urls=tuple(self._base_urls.items()))

    async def _set_as_shown(self, intent: SetModelKey) -> None:
        provider = find_provider(intent.provider)
        if not self._settings_count():
            raise Conflict(
                "config.toml may say where model requests go, and is not verified. Accept it in the console first."
            )
        base_url = self._base_urls[provider]
        if intent.base_url != base_url:
            raise Conflict(
                f"Requests to {provider} go to {base_url} now. Nothing was stored; start again."
            )
        await self.set(provider, base_url, intent.secret)

    async def set(self, provider: str, base_url: str, secret: Secret) -> None:
        """Store the key of *provider* for *base_url*, in place of one that it had.

        Raises:
            InvalidRequest: it cannot be sent in a header, or *base_url* is not https.
            VaultLocked, StorageUnavailable, OSError: nothing was stored.
        """
        check_base_url(base_url)
        stored = stored_key(secret)
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
                {"type": "model_key", "base_url": base_url, "created_at": self._clock.now()},
            )

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
        if all((each.provider, each.base_url) != (provider, base_url) for each in self.all()):
            secret.wipe()
            raise NotFound(f"The key for {provider} is for another address than {base_url}.")
        return secret
