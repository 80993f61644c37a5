"""Binds accounts, and gives a call the credential of its account."""

import asyncio
from contextlib import suppress
from dataclasses import replace

from aileron_core.actions.model import ActionFile
from aileron_core.audit.events import AuditEvent
from aileron_core.canonical import Json
from aileron_core.clock import Clock
from aileron_core.connectors.protocol import CredentialRequirement
from aileron_core.credentials.account_secret import AccountSecret
from aileron_core.credentials.binding import Binding, CredentialUser, binding_name, checked_account
from aileron_core.credentials.kinds import (
    AccountCredential,
    ApiKey,
    AwsSignature,
    BasicPassword,
    BearerToken,
    CheckedCredential,
    parse_json_secret,
)
from aileron_core.credentials.oauth import TokenEndpoint
from aileron_core.credentials.oauth_refresh import RecordEvent, TokenRefresher, ended_message
from aileron_core.credentials.oauth_tokens import Tokens
from aileron_core.credentials.sigv4 import AwsKeys
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
        found = (Binding.from_entry(entry) for entry in self._vault.entries().values())
        return tuple(each for each in found if each is not None)

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

    async def setup(
        self, user: CredentialUser, identity: str, account: str, secret: AccountSecret
    ) -> Binding:
        """Store an account for *user* under `<kind>/<service>/<identity>`; the service is the connector's.

        Raises:
            Conflict: there is one of that name.
            InvalidRequest: identity, account or secret cannot be used.
            VaultLocked, StorageUnavailable, OSError: nothing was stored.
        """
        stored = secret.stored(user.requirement.kind)
        binding = replace(self._new(user, identity, account), region=secret.region)
        hosts = binding.hosts_for(user)
        if not hosts:
            raise InvalidRequest(f"{user.identity.fqn} has no host in {secret.region}.")
        return await self._add(replace(binding, hosts=hosts), stored)

    async def setup_authorized(
        self,
        user: CredentialUser,
        identity: str,
        account: str,
        tokens: Tokens,
        missing: tuple[str, ...],
    ) -> Binding:
        """Store an account of kind oauth2 with the *tokens* that its service gave; errors as of `setup`.

        Args:
            missing: the scopes that were asked for and not granted.
        """
        binding = self._new(user, identity, account)
        granted = replace(binding, scopes=tokens.scopes, missing_scopes=missing)
        return await self._add(granted, tokens.to_secret())

    async def reauthorize(
        self,
        name: str,
        user: CredentialUser,
        account: str,
        tokens: Tokens,
        missing: tuple[str, ...],
    ) -> Binding:
        """Put new *tokens* in place of those of the account *name*.

        Raises:
            NotFound: there is no such account.
            Conflict: *user* may not use it.
            VaultLocked, StorageUnavailable, OSError: nothing changed.
        """
        async with self._changing:
            before = self.get(name)
            if problem := before.problem(user):
                raise Conflict(
                    f"{name} cannot be authorized again: {problem}. Bind it again first."
                )
            after = replace(
                before,
                account=checked_account(account),
                # Another login, maybe of another account: not every provider says whose. No yes to a
                # call with the one before covers it.
                created_at=self._clock.now(),
                scopes=tokens.scopes,
                missing_scopes=missing,
                is_stale=False,
                remembered_for=(),
            )
            await self._put(
                after,
                tokens.to_secret(),
                AuditEvent.BINDING_REAUTHORIZED,
                f"A person authorized {name} again",
            )
        return after

    def check_new(self, user: CredentialUser, identity: str) -> None:
        """Check that an account can be bound under *identity*, before a person is sent anywhere.

        Raises:
            Conflict: there is one of that name.
            InvalidRequest: the identity cannot be used.
        """
        self._check_free(binding_name(user, identity))

    def _new(self, user: CredentialUser, identity: str, account: str) -> Binding:
        return Binding(
            name=binding_name(user, identity),
            connector=user.identity.fqn,
            connector_hash=user.identity.hash,
            hosts=user.hosts,
            account=checked_account(account),
            created_at=self._clock.now(),
        )

    def _check_free(self, name: str) -> None:
        if name in self._vault.entries():
            raise Conflict(
                f"An account {name} is bound already. Give another --identity, or revoke "
                "that one first."
            )

    async def _add(self, binding: Binding, stored: Secret) -> Binding:
        async with self._changing:
            self._check_free(binding.name)
            await self._put(
                binding, stored, AuditEvent.BINDING_CREATED, f"A person bound {binding.name}"
            )
        return binding

    async def rebind(self, name: str, user: CredentialUser) -> Binding:
        """Let *user*, as it now is, use the account *name*: the connector that it belongs to.

        Another one gets an account of its own, whose secret a person enters: nobody who can reach the
        socket moves a secret to where its owner never sent it.

        Raises:
            NotFound: there is no such account.
            Conflict: it is of another kind, or belongs to another connector.
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
            after = replace(
                before,
                connector=user.identity.fqn,
                connector_hash=user.identity.hash,
                hosts=before.hosts_for(user),
                remembered_for=(),
            )
            secret = await asyncio.to_thread(self._vault.get, name)
            await self._put(
                after, secret, AuditEvent.BINDING_REBOUND, f"A person bound {name} again"
            )
        return after

    async def remember(self, name: str, user: CredentialUser, action: ActionFile) -> None:
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
                    await self._set_remembered(
                        other,
                        _without(other, action.name),
                        AuditEvent.BINDING_FORGOTTEN,
                        f"{other.name} is no longer chosen for {action.name}",
                        action,
                    )
            await self._set_remembered(
                chosen,
                (*_without(chosen, action.name), action),
                AuditEvent.BINDING_REMEMBERED,
                f"A person chose {name} for later calls of {action.name}",
                action,
            )
        self.changed.publish(None)

    async def forget(self, name: str, action: str) -> None:
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
            await self._set_remembered(
                before,
                _without(before, action),
                AuditEvent.BINDING_FORGOTTEN,
                f"A person ended the remembered account of {action}",
                known,
            )
        self.changed.publish(None)

    async def _set_remembered(
        self,
        binding: Binding,
        remembered_for: tuple[ActionFile, ...],
        event: AuditEvent,
        summary: str,
        action: ActionFile,
    ) -> None:
        after = replace(binding, remembered_for=remembered_for).to_metadata()
        before = self._vault.entries()[binding.name].metadata
        await asyncio.to_thread(self._vault.put_metadata, binding.name, after)
        about = {
            "binding": binding.name,
            "for_action": action.name,
            "action_sha256": action.sha256,
        }
        try:
            await self._record(event, summary, about)
        except AileronError:
            await asyncio.to_thread(self._vault.put_metadata, binding.name, before)
            raise

    async def revoke(self, name: str) -> None:
        """Delete the account *name* from the vault, and from the copy kept of it. The service is not told.

        Raises:
            NotFound: there is no such account.
            VaultLocked, StorageUnavailable, OSError: it could not be deleted.
        """
        async with self._changing:
            binding = self.get(name)
            # Recorded first: a deletion that then fails is tried again, and recorded again.
            await self._record(
                AuditEvent.BINDING_REVOKED, f"A person revoked {name}", _members(binding)
            )
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
                used = {**found.metadata, "last_used_at": now}
                await asyncio.to_thread(self._vault.put_metadata, binding.name, used)

    async def refusal(
        self, binding: Binding, user: CredentialUser, credential: CheckedCredential
    ) -> BindingFailed | None:
        """Return what a person has to do now that the service did not accept *credential*.

        None where nothing is: the tokens of a login were renewed, or nobody can say.
        """
        if not isinstance(refused := credential.credential, BearerToken):
            return BindingFailed(
                f"The service does not accept the credential of {binding.name} any more: it was revoked "
                "there, or has ended. Bind a new one: first `aileron binding revoke`, then `aileron "
                "binding setup`."
            )
        need = user.requirement.oauth2
        assert need is not None
        try:
            _, secret = await asyncio.to_thread(self._current, binding, user)
            await self._refresher.current(binding.name, need, secret, rejected=refused.token)
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
        if problem or verified != binding:
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
            return BearerToken(token=tokens.access_token, hosts=hosts)
        parts = parse_json_secret(secret)
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

    async def _put(self, binding: Binding, secret: Secret, event: AuditEvent, summary: str) -> None:
        """Store *binding*, and put back what was there before where that cannot be recorded."""
        before = self._vault.entries().get(binding.name)
        old = None if before is None else await asyncio.to_thread(self._vault.get, binding.name)
        await asyncio.to_thread(self._vault.put, binding.name, secret, binding.to_metadata())
        try:
            await self._record(event, summary, _members(binding))
        except AileronError:
            if before is None or old is None:
                await asyncio.to_thread(self._vault.delete, binding.name)
            else:
                await asyncio.to_thread(self._vault.put, binding.name, old, before.metadata)
            raise
        self.changed.publish(None)


def _without(binding: Binding, action: str) -> tuple[ActionFile, ...]:
    return tuple(each for each in binding.remembered_for if each.name != action)


def _members(binding: Binding) -> dict[str, Json]:
    return {
        "binding": binding.name,
        "connector": binding.connector,
        "connector_hash": binding.connector_hash,
        "hosts": list[Json](binding.hosts),
        "account": binding.account,
        **({"region": binding.region} if binding.region else {}),
        **({"scopes": list[Json](binding.scopes)} if binding.scopes else {}),
        **(
            {"missing_scopes": list[Json](binding.missing_scopes)} if binding.missing_scopes else {}
        ),
    }
