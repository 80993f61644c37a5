"""Binds accounts, and gives a call the credential of its account."""

import asyncio
from contextlib import suppress
from dataclasses import replace

from aileron_core.actions.model import ActionFile
from aileron_core.audit.events import AuditEvent
from aileron_core.canonical import JsonObject
from aileron_core.clock import Clock
from aileron_core.connectors.protocol import CredentialRequirement
from aileron_core.console_port.account_intents import BindAccount
from aileron_core.credentials.account_secret import stored_secret
from aileron_core.credentials.binding import (
    OTHER_VALUES,
    Binding,
    CredentialUser,
    binding_name,
    checked_account,
    stored_bindings,
)
from aileron_core.credentials.kinds import (
    AccountCredential,
    ApiKey,
    AwsSignature,
    BasicPassword,
    CheckedCredential,
    EnvironmentValues,
    parse_json_secret,
)
from aileron_core.credentials.oauth import TokenEndpoint
from aileron_core.credentials.oauth_refresh import RecordEvent, TokenRefresher, ended_message
from aileron_core.credentials.oauth_tokens import Tokens, missing_scopes
from aileron_core.credentials.sigv4 import AwsKeys
from aileron_core.devices import CONSOLE, Hand
from aileron_core.errors import (
    AileronError,
    BindingFailed,
    Conflict,
    InvalidRequest,
    NotFound,
    VaultDamaged,
)
from aileron_core.events import EventBus
from aileron_core.vault.secret import Secret
from aileron_core.vault.vault import Vault

_USE_SECONDS = 3600.0
"""How exactly the last use of an account is kept."""


class BindingService:
    """Binds accounts, and gives a call the credential of its account.

    Args:
        record: writes an audit record, or raises `StorageUnavailable`.
        endpoint: renews the tokens of accounts of kind oauth2.
    """

    def __init__(
        self, vault: Vault, clock: Clock, record: RecordEvent, endpoint: TokenEndpoint
    ) -> None:
        self._vault = vault
        self._clock = clock
        self._record = record
        self._changing = asyncio.Lock()
        self.changed: EventBus[None] = EventBus()
        """Published on the core's loop after an account was bound, bound again or revoked."""
        self._refresher = TokenRefresher(
            vault,
            clock,
            record,
            endpoint,
            changing=self._changing,
            changed=lambda: self.changed.publish(None),
        )

    def all(self) -> tuple[Binding, ...]:
        """Return every binding by name. While the vault is locked, nothing of them is verified."""
        return stored_bindings(self._vault)

    def get(self, name: str) -> Binding:
        """Return the binding *name*.

        Raises:
            NotFound: there is none.
        """
        for each in self.all():
            if each.name == name:
                return each
        raise NotFound(
            f"No account {name[:200]!r} is bound. `aileron binding list` shows them all."
        )

    def for_user(self, user: CredentialUser) -> tuple[Binding, ...]:
        """Return the bindings that count for *user*."""
        return tuple(each for each in self.all() if not each.problem(user))

    def name_for(self, user: CredentialUser, identity: str, replaces: str = "") -> str:
        """Return the name of the account that a login gives *user*: a new one, or *replaces*.

        Raises:
            NotFound: there is no account *replaces*.
            Conflict: *user* may not use that one, or there is one of the new name.
            InvalidRequest: the identity cannot be used.
        """
        if replaces:
            if problem := self.get(replaces).problem(user):
                raise Conflict(
                    f"{replaces} cannot be authorized again: {problem}. "
                    f"`aileron binding rebind {replaces}` comes first."
                )
            return replaces
        name = binding_name(user, identity)
        if name in self._vault.entries():
            raise Conflict(
                f"An account {name} is bound already. Give another --identity, or delete that one first."
            )
        return name

    async def bind(self, user: CredentialUser, asked: BindAccount, hand: Hand = CONSOLE) -> Binding:
        """Store what a person entered as an account of *user*, and record it; errors as of `authorize`."""
        stored = stored_secret(asked, user.requirement)
        return await self._setup(
            user, asked.identity, asked.account, stored, region=asked.region, hand=hand
        )

    async def authorize(
        self,
        user: CredentialUser,
        identity: str,
        account: str,
        login: Tokens,
        replaces: str = "",
        hand: Hand = CONSOLE,
    ) -> Binding:
        """Store what a person logged in with as an account of *user*, and record it.

        Args:
            identity: names a new account: `<kind>/<service>/<identity>`; the service is the connector's.
            replaces: the account whose login it takes the place of; empty for a new one.
            hand: with which a person does, here and below.

        Raises:
            NotFound, Conflict: as for `name_for`.
            InvalidRequest: identity, account or secret cannot be used.
            VaultLocked, StorageUnavailable, OSError: nothing was stored.
        """
        stored, scopes = login.to_secret(), login.scopes
        return await self._setup(
            user, identity, account, stored, scopes=scopes, replaces=replaces, hand=hand
        )

    async def _setup(
        self,
        user: CredentialUser,
        identity: str,
        account: str,
        stored: Secret,
        *,
        region: str = "",
        scopes: tuple[str, ...] = (),
        replaces: str = "",
        hand: Hand,
    ) -> Binding:
        need = user.requirement
        async with self._changing:
            name = self.name_for(user, identity, replaces)
            binding = Binding(
                name=name,
                connector=user.identity.fqn,
                connector_hash=user.identity.hash,
                hosts=user.hosts_in(region),
                account=checked_account(account),
                # Also where it replaces another login, maybe of another account, since not every provider
                # says whose it is: no yes to a call with the one before covers it.
                created_at=self._clock.now(),
                region=region,
                scopes=scopes,
                missing_scopes=missing_scopes(need.oauth2, scopes) if need.oauth2 else (),
                names=need.names,
                last_used_at=self.get(name).last_used_at if replaces else None,
            )
            if not binding.hosts:
                raise InvalidRequest(f"{user.identity.fqn} has no host in {region}.")
            if replaces:
                event, summary = AuditEvent.BINDING_REAUTHORIZED, f"authorized {name} again"
            else:
                event, summary = AuditEvent.BINDING_CREATED, f"bound {name}"
            await self._put(binding, event, f"A person {summary}", hand, secret=stored)
        return binding

    async def rebind(self, name: str, user: CredentialUser, hand: Hand = CONSOLE) -> Binding:
        """Let *user*, as it now is, use the account *name*: the connector that it belongs to.

        Another one gets an account of its own, whose secret a person enters: nobody who can reach the
        socket moves a secret to where its owner never sent it.

        Raises:
            NotFound: there is no such account.
            Conflict: it is of another kind, has other values, or belongs to another connector.
            VaultLocked, StorageUnavailable, OSError: nothing changed.
        """
        async with self._changing:
            before = self.get(name)
            if before.kind != user.requirement.kind:
                raise Conflict(
                    f"{name} is of kind {before.kind}, and {user.identity.fqn} asks for "
                    f"{user.requirement.kind}."
                )
            if before.connector not in ("", user.identity.fqn):
                raise Conflict(
                    f"{name} belongs to {before.connector}. Bind an account to {user.identity.fqn} with "
                    "`aileron binding setup`."
                )
            if {*before.names} != {*user.requirement.names}:
                raise Conflict(f"{name} cannot be bound again: {OTHER_VALUES}.")
            after = replace(
                before,
                connector=user.identity.fqn,
                connector_hash=user.identity.hash,
                hosts=user.hosts_in(before.region),
                remembered_for=(),
            )
            summary = f"A person bound {name} again"
            await self._put(after, AuditEvent.BINDING_REBOUND, summary, hand)
        return after

    async def follow(self, before: CredentialUser, user: CredentialUser, hand: Hand) -> None:
        """Let *user* use each account that counts for *before*, the version of it that was accepted until now.

        Whoever calls this knows that they are of one publisher, and that a person was told.

        Raises:
            VaultLocked, StorageUnavailable, OSError: this account, and those behind it, did not move.
        """
        async with self._changing:
            for each in self.all():
                if each.problem(before):
                    continue
                after = replace(each, connector_hash=user.identity.hash, remembered_for=())
                summary = f"{each.name} went with its connector to version {user.identity.version}"
                await self._put(after, AuditEvent.BINDING_REBOUND, summary, hand)

    async def remember(
        self, name: str, user: CredentialUser, action: ActionFile, hand: Hand = CONSOLE
    ) -> None:
        """Have later calls of *action* use the account *name* where several count for *user*.

        It is kept with the account, under the vault's key, and ends where the account, its connector or the action's
        file changes.

        Raises:
            NotFound, Conflict: the account is gone, or does not count for *user*.
            VaultLocked, StorageUnavailable, OSError: nothing changed.
        """
        async with self._changing:
            chosen = self.get(name)
            if problem := chosen.problem(user):
                raise Conflict(f"{name} cannot be used: {problem}. Nothing was changed.")
            for other in self.for_user(user):
                if other.name != name and _without(other, action.name) != other.remembered_for:
                    await self._remember(
                        other,
                        _without(other, action.name),
                        AuditEvent.BINDING_FORGOTTEN,
                        f"{other.name} is no longer chosen for {action.name}",
                        action,
                        hand,
                    )
            await self._remember(
                chosen,
                (*_without(chosen, action.name), action),
                AuditEvent.BINDING_REMEMBERED,
                f"A person chose {name} for later calls of {action.name}",
                action,
                hand,
            )

    async def forget(self, name: str, action: str, hand: Hand = CONSOLE) -> None:
        """Have a person pick again at the next call of *action*.

        Raises:
            NotFound: there is no such account, or it is not remembered for *action*.
            VaultLocked, StorageUnavailable, OSError: nothing changed.
        """
        async with self._changing:
            before = self.get(name)
            known = next((each for each in before.remembered_for if each.name == action), None)
            if known is None:
                raise NotFound(f"{name} is not remembered for an action {action[:200]!r}.")
            await self._remember(
                before,
                _without(before, action),
                AuditEvent.BINDING_FORGOTTEN,
                f"A person ended the remembered account of {action}",
                known,
                hand,
            )

    async def _remember(
        self,
        binding: Binding,
        remembered_for: tuple[ActionFile, ...],
        event: AuditEvent,
        summary: str,
        action: ActionFile,
        hand: Hand,
    ) -> None:
        about: JsonObject = {
            "binding": binding.name,
            "for_action": action.name,
            "action_sha256": action.sha256,
        }
        after = replace(binding, remembered_for=remembered_for)
        await self._put(after, event, summary, hand, about=about)

    async def delete(self, name: str, hand: Hand = CONSOLE) -> None:
        """Delete the account *name* from the vault, and from the copy kept of it. The service is not told.

        Raises:
            NotFound: there is no such account.
            VaultLocked, StorageUnavailable, OSError: it could not be deleted.
        """
        async with self._changing:
            binding = self.get(name)
            # Recorded first: a deletion that then fails is tried again, and recorded again.
            said = {**binding.to_record(), **hand.mark()}
            await self._record(AuditEvent.BINDING_REVOKED, f"A person revoked {name}", said)
            await asyncio.to_thread(self._vault.delete, name)
        self.changed.publish(None)

    async def credential_for(self, binding: Binding, user: CredentialUser) -> CheckedCredential:
        """Return what a call of *user* adds to its requests for the account of *binding*.

        Before each of them it is checked again that the account counts and the vault is unlocked: what
        was revoked, bound again or locked is not sent any more by a call that is going on either.

        Raises:
            VaultLocked: unlock it first.
            BindingFailed: the account is gone, changed, has ended, or cannot be used by *user*.
            NetworkError, ExternalApiError: its login was to be renewed, and the provider did not answer.
        """
        current, secret = await asyncio.to_thread(self._current, binding, user)
        await self._note_use(current)
        credential = await self._credential(current, user.requirement, secret)
        return CheckedCredential(credential, lambda: self.require_current(binding, user))

    async def _note_use(self, binding: Binding) -> None:
        """Keep when the account was used, once an hour: it is written to the disk each time."""
        now = self._clock.now()
        if binding.last_used_at is not None and 0 <= now - binding.last_used_at < _USE_SECONDS:
            return
        async with self._changing:
            found = self._vault.entries().get(binding.name)
            if found is None:
                return
            with suppress(AileronError, OSError):  # the call does not depend on it
                used = {**found, "last_used_at": now}
                await asyncio.to_thread(self._vault.put_metadata, binding.name, used)

    async def refusal(
        self, binding: Binding, user: CredentialUser, credential: CheckedCredential
    ) -> BindingFailed | None:
        """Return what a person has to do now that the service did not accept *credential*.

        None where nothing is: the tokens of a login were renewed, or nobody can say.
        """
        refused, need = credential.credential, user.requirement.oauth2
        if not isinstance(refused, ApiKey) or need is None:
            return BindingFailed(
                f"The service does not accept the credential of {binding.name} any more: it was revoked "
                "there, or has ended. Delete it here too, then bind a new one with `aileron "
                "binding setup`."
            )
        try:
            _, secret = await asyncio.to_thread(self._current, binding, user)
            await self._refresher.current(binding.name, need, secret, rejected=refused.secret)
        except BindingFailed as ended:
            return ended
        except (AileronError, OSError):
            pass
        return None

    def require_current(self, binding: Binding, user: CredentialUser) -> None:
        """Check that *user* may use the account of *binding* now. It may be called on any thread.

        Raises:
            VaultLocked, BindingFailed: as for `credential_for`.
        """
        self._current(binding, user)[1].wipe()

    def _current(self, binding: Binding, user: CredentialUser) -> tuple[Binding, Secret]:
        try:
            secret = self._vault.get(binding.name)
            # Read after the value: of an account that was bound again since, the metadata differs.
            verified = self.get(binding.name)
        except NotFound:
            raise BindingFailed(
                "The account of this call is not bound any more. A person has to bind it again."
            ) from None
        except VaultDamaged:
            raise BindingFailed(
                "The account of this call cannot be decrypted. A person has to bind it again."
            ) from None
        problem = verified.problem(user)
        if problem or verified.consented != binding.consented:
            why = problem or "it was bound again meanwhile"
            raise BindingFailed(f"The account of this call cannot be used: {why}.")
        return verified, secret

    async def _credential(
        self, binding: Binding, need: CredentialRequirement, secret: Secret
    ) -> AccountCredential:
        hosts = frozenset(binding.hosts)
        if need.kind == "api_key":
            return ApiKey(secret=secret, hosts=hosts, header=need.header, format=need.format)
        if need.oauth2 is not None:
            if binding.is_stale:
                raise BindingFailed(ended_message(binding.name))
            tokens = await self._refresher.current(binding.name, need.oauth2, secret)
            return ApiKey(secret=tokens.access_token, hosts=hosts, kind="oauth2")
        parts = parse_json_secret(secret)
        if need.kind == "environment":
            values = {name: Secret(str(parts.get(name, ""))) for name in need.names}
            return EnvironmentValues(values=values, hosts=hosts)
        if need.kind == "basic":
            return BasicPassword(
                user=str(parts.get("user", "")),
                password=Secret(str(parts.get("password", ""))),
                hosts=hosts,
            )
        token = parts.get("session_token")
        keys = AwsKeys(
            access_key_id=str(parts.get("access_key_id", need.access_key_id)),
            secret=Secret(str(parts.get("secret_access_key", ""))),
            session_token=Secret(str(token)) if token else None,
        )
        return AwsSignature(
            keys=keys,
            service=need.service,
            region=binding.region or need.region,
            hosts=hosts,
            clock=self._clock,
        )

    async def _put(
        self,
        binding: Binding,
        event: AuditEvent,
        summary: str,
        hand: Hand,
        *,
        secret: Secret | None = None,
        about: JsonObject | None = None,
    ) -> None:
        """Store *binding*, and put back what was there before where that cannot be recorded.

        Args:
            secret: what it has from now on; None: what it has.
            about: members of the record, in place of those of *binding*.
        """
        name, before = binding.name, self._vault.entries().get(binding.name)
        old = None if before is None else await asyncio.to_thread(self._vault.get, name)
        stored = old if secret is None else secret
        assert stored is not None
        hand.require()
        await asyncio.to_thread(self._vault.put, name, stored, binding.to_metadata())
        try:
            said = {**(about or binding.to_record()), **hand.mark()}
            await self._record(event, summary, said)
        except AileronError:
            if before is None or old is None:
                await asyncio.to_thread(self._vault.delete, name)
            else:
                await asyncio.to_thread(self._vault.put, name, old, before)
            raise
        self.changed.publish(None)


def _without(binding: Binding, action: str) -> tuple[ActionFile, ...]:
    return tuple(each for each in binding.remembered_for if each.name != action)
