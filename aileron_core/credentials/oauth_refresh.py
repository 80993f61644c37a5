"""Renews the access tokens of accounts: in time, once for all calls that wait, and on record."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias

from aileron_core.audit.events import AuditEvent
from aileron_core.canonical import Json, JsonObject
from aileron_core.clock import Clock
from aileron_core.connectors.protocol import OAuth2Requirement
from aileron_core.credentials.oauth import TokenEndpoint, TokenRefused
from aileron_core.credentials.oauth_tokens import REFRESH_SECONDS, Tokens, missing_scopes
from aileron_core.errors import AileronError, BindingFailed, NetworkError, NotFound
from aileron_core.tasks import spawn
from aileron_core.vault.secret import Secret
from aileron_core.vault.vault import Vault
from aileron_core.vault.vault_store import VaultEntries

RecordEvent: TypeAlias = Callable[[AuditEvent, str, Mapping[str, Json]], Awaitable[None]]
"""Writes an audit record: its event, summary, and further members."""


class TokenRefresher:
    """Gives the tokens of an account as a call needs them.

    Args:
        changing: held while an account in the vault is changed.
        changed: called after one is found to have ended at its service.
    """

    def __init__(
        self,
        vault: Vault,
        clock: Clock,
        record: RecordEvent,
        endpoint: TokenEndpoint,
        *,
        changing: asyncio.Lock,
        changed: Callable[[], None],
    ) -> None:
        self._vault = vault
        self._clock = clock
        self._record = record
        self._endpoint = endpoint
        self._changing = changing
        self._changed = changed
        self._running: dict[str, asyncio.Task[Tokens | AileronError]] = {}
        self._tried: dict[str, float] = {}
        """When each account was last renewed before its time; monotonic seconds."""

    async def current(
        self, name: str, need: OAuth2Requirement, secret: Secret, *, rejected: Secret | None = None
    ) -> Tokens:
        """Return the tokens of the account *name*, renewed where they end within a minute.

        Args:
            secret: what the vault keeps of it.
            rejected: an access token that the service did not accept, which is renewed as well; once a
                minute at most, whatever the service says.

        Raises:
            BindingFailed: it has ended, or cannot be renewed; the message says what to do.
            NetworkError, ExternalApiError: the provider did not answer; trying again may help.
            VaultLocked, StorageUnavailable, OSError: the new tokens could not be kept.
        """
        tokens = Tokens.from_secret(secret)
        if tokens.token_url != need.token_url:
            raise BindingFailed(
                f"The account {name} was authorized for another token endpoint than its connector's. "
                + _next_step(name)
            )
        now = self._clock.now()
        if not tokens.is_due(now) and (rejected is None or tokens.access_token != rejected):
            return tokens
        if tokens.refresh_token is None:
            if tokens.is_over(now) or rejected is not None:
                raise BindingFailed(f"The login of {name} has ended. {_next_step(name)}")
            return tokens
        task = self._running.get(name)
        if task is None:
            if rejected is not None and not self._may_try(name):
                return tokens
            task = spawn(self._renewed(name, need, rejected), name=f"refresh of {name}")
            self._running[name] = task
            task.add_done_callback(lambda _: self._running.pop(name, None))
        renewed = await asyncio.shield(task)
        if isinstance(renewed, Tokens):
            return renewed
        if isinstance(renewed, NetworkError) and not tokens.is_over(self._clock.now()):
            return tokens
        raise renewed

    def _may_try(self, name: str) -> bool:
        now = self._clock.monotonic()
        if now - self._tried.get(name, -REFRESH_SECONDS) < REFRESH_SECONDS:
            return False
        self._tried[name] = now
        return True

    async def _renewed(
        self, name: str, need: OAuth2Requirement, rejected: Secret | None
    ) -> Tokens | AileronError:
        try:
            # The vault may be locked before the provider answers: the new tokens are kept all the same.
            with self._vault.kept_open() as entries:
                return await self._renew(name, need, rejected, entries)
        except AileronError as error:
            return error
        except OSError as error:
            return BindingFailed(
                f"The renewed login of {name} could not be kept: {error.strerror}."
            )

    async def _renew(
        self,
        name: str,
        need: OAuth2Requirement,
        rejected: Secret | None,
        entries: VaultEntries,
    ) -> Tokens:
        # Read again: a renewal may have ended since the caller read it.
        secret = await asyncio.to_thread(entries.get, name)
        tokens = Tokens.from_secret(secret)
        is_due = tokens.is_due(self._clock.now()) or tokens.access_token == rejected
        if not is_due or tokens.refresh_token is None:
            return tokens
        refresh = tokens.refresh_token.reveal_text()
        try:
            answer = await self._endpoint.grant(
                tokens.token_url, tokens.client, "refresh_token", refresh_token=refresh
            )
        except TokenRefused as refused:
            if refused.is_revoked:
                summary = f"The service does not accept the login of {name} any more"
                stale: JsonObject = {"status": "stale"}
                await self._store(
                    entries, name, secret, secret, stale, AuditEvent.BINDING_STALE, summary, {}
                )
                self._changed()
                raise BindingFailed(ended_message(name)) from None
            raise BindingFailed(
                f"The login of {name} could not be renewed: {refused.message}. {_next_step(name)}"
            ) from None
        renewed = tokens.renewed(answer, self._clock.now())
        scopes: JsonObject = {
            "scopes": list(renewed.scopes),
            "missing_scopes": list(missing_scopes(need, renewed.scopes)),
        }
        event, summary = AuditEvent.BINDING_REFRESHED, f"The login of {name} was renewed"
        await self._store(
            entries, name, secret, renewed.to_secret(), scopes, event, summary, scopes
        )
        return renewed

    async def _store(
        self,
        entries: VaultEntries,
        name: str,
        before: Secret,
        after: Secret,
        metadata: JsonObject,
        event: AuditEvent,
        summary: str,
        about: JsonObject,
    ) -> None:
        """Store *after* with *metadata*, beside what is said of it, in place of *before*; then record it.

        Raises:
            BindingFailed: the account was revoked or authorized again meanwhile.
        """
        async with self._changing:
            try:
                now = await asyncio.to_thread(entries.get, name)
            except NotFound:
                now = None
            if now != before:
                raise BindingFailed(
                    f"The account {name} was changed while it was renewed. Try again."
                )
            said = {**entries.metadata(name), **metadata}
            # Stored first: the provider may take the old refresh token no more.
            await asyncio.to_thread(entries.put, name, after, said)
            await self._record(event, summary, {"binding": name, **about})


def ended_message(name: str) -> str:
    """Return that the service takes the account no more, and what to do."""
    return f"The service does not accept the login of {name} any more. {_next_step(name)}"


def _next_step(name: str) -> str:
    return f"Log in again with `aileron binding reauthorize {name}`."
