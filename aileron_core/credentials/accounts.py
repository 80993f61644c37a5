"""Which account each connector of a call uses; why the call has to wait where there is none, or more than one."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Final, Literal, Protocol, Unpack

from aileron_core.actions.model import ActionFile, ConnectorIdentity
from aileron_core.canonical import JsonObject
from aileron_core.connectors.builtin.connector import FQN
from aileron_core.connectors.http.target import parse_target
from aileron_core.connectors.manifest import CLIENT_PLACEHOLDER
from aileron_core.connectors.protocol import (
    ACCOUNT,
    CallOptions,
    Connector,
    CredentialRequirement,
    OpResult,
    WrappedConnector,
)
from aileron_core.console_port.account_views import (
    AccountNeed,
    AccountView,
    BoundAccount,
    BoundAccountView,
    CredentialUserView,
)
from aileron_core.credentials.binding import (
    LOGIN_ENDED,
    OTHER_VALUES,
    Binding,
    CredentialUser,
    binding_name,
)
from aileron_core.devices import Hand
from aileron_core.errors import AileronError, Conflict, Failure, InvalidRequest, NotFound

if TYPE_CHECKING:
    from aileron_core.credentials.bindings import BindingService
    from aileron_core.vault.vault import Vault

_REMEDIES: Final[Mapping[str, Literal["reauthorize", "revoke"]]] = {
    LOGIN_ENDED: "reauthorize",
    OTHER_VALUES: "revoke",
}
"""By problem: what `aileron binding` does about it; about any other, `rebind`."""


class AsksForCredential(Protocol):
    """A connector, installed or ready to be called, that may ask for a credential."""

    @property
    def identity(self) -> ConnectorIdentity: ...
    @property
    def hosts(self) -> tuple[str, ...]: ...
    @property
    def credential_requirement(self) -> CredentialRequirement | None: ...


class ConnectorWithAccount(WrappedConnector):
    """A connector whose calls carry the credential of one account."""

    def __init__(self, inner: Connector, binding: Binding, bindings: "BindingService") -> None:
        super().__init__(inner)
        self.binding = binding
        self._bindings = bindings

    @property
    def account(self) -> str:
        return self.binding.name

    @property
    def consented_account(self) -> JsonObject:
        return self.binding.consented

    async def call(self, op: str, args: JsonObject, **how: Unpack[CallOptions]) -> OpResult:
        user = credential_user(self.inner)
        assert user is not None
        try:
            credential = await self._bindings.credential_for(self.binding, user)
        except AileronError as error:
            return OpResult(failure=self._unnamed(error))
        how["credential"] = credential
        result = await self.inner.call(op, args, **how)
        if result.failure is None or not credential.is_refused:
            return result
        refusal = await self._bindings.refusal(self.binding, user, credential)
        return result if refusal is None else replace(result, failure=self._unnamed(refusal))

    def _unnamed(self, error: AileronError) -> Failure:
        """Return *error* without the account's name, since the agent is answered with it."""
        failure = error.to_failure()
        message = failure.message.replace(self.binding.name, ACCOUNT)
        return replace(failure, message=message, details={})


class AccountService:
    """Gives the connectors of a call their accounts.

    Args:
        routed: the `host:port` entries that `--route` sends to this machine, which get no credential.
        unverified: why no call may begin, because what was accepted has not verified; None if it has.
    """

    def __init__(
        self,
        vault: "Vault",
        bindings: "BindingService",
        routed: Collection[str],
        unverified: Callable[[], Literal["locked", "settings"] | None],
    ) -> None:
        self._vault = vault
        self._bindings = bindings
        self._routed = frozenset(routed)
        self._unverified = unverified

    def assign(
        self,
        connectors: Mapping[str, Connector],
        choices: Mapping[str, str],
        action: ActionFile,
    ) -> tuple[Mapping[str, Connector], AccountNeed | None]:
        """Return *connectors*, each with its account, or why that cannot be yet.

        Args:
            connectors: by FQN, with or without accounts of an earlier time.
            choices: by FQN, the binding that a person picked for this call.
            action: what is called. A choice that a person had remembered for exactly this file counts next.
        """
        assigned: dict[str, Connector] = {}
        for fqn, connector in connectors.items():
            plain = connector.inner if isinstance(connector, ConnectorWithAccount) else connector
            user = credential_user(plain)
            if user is None or self._routed.issuperset(user.hosts):
                assigned[fqn] = plain
                continue
            found = self._pick(user, choices.get(fqn), action)
            if isinstance(found, AccountNeed):
                return connectors, found
            assigned[fqn] = ConnectorWithAccount(plain, found, self._bindings)
        # What is part of the program was accepted with it; of files only the vault's key can tell.
        if FQN not in assigned and (why := self._unverified()) is not None:
            return connectors, AccountNeed(reason=why, connector=next(iter(connectors)), kind="")
        return assigned, None

    def require_current(self, connectors: Iterable[Connector]) -> None:
        """Check that each of *connectors* may use the account now that it was given.

        Raises:
            VaultLocked, BindingFailed: one may not.
        """
        for each in connectors:
            if isinstance(each, ConnectorWithAccount):
                user = credential_user(each)
                assert user is not None
                self._bindings.require_current(each.binding, user)

    async def remember(
        self,
        name: str,
        connectors: Iterable[Connector],
        fqn: str,
        action: ActionFile,
        hand: Hand,
    ) -> None:
        """Have later calls of *action* use the account *name* for its connector *fqn*; errors as of `BindingService.remember`."""
        users = {user.identity.fqn: user for user in credential_users(connectors)}
        await self._bindings.remember(name, users[fqn], action, hand)

    def _pick(
        self, user: CredentialUser, choice: str | None, action: ActionFile
    ) -> Binding | AccountNeed:
        fqn, kind = user.identity.fqn, user.requirement.kind
        candidates = self._bindings.for_user(user)
        if not candidates:
            return self._unbound(user)
        shown = tuple(map(shown_account, candidates))
        if self._vault.state != "unlocked":
            return AccountNeed(reason="locked", connector=fqn, kind=kind, candidates=shown)
        picked = [each for each in candidates if choice is None or each.name == choice]
        if choice is None and len(picked) > 1:
            picked = [each for each in picked if action in each.remembered_for]
        if len(picked) == 1:
            return picked[0]
        return AccountNeed(reason="choice", connector=fqn, kind=kind, candidates=shown)

    def _unbound(self, user: CredentialUser) -> AccountNeed:
        fqn, kind = user.identity.fqn, user.requirement.kind
        need = AccountNeed(
            reason="unbound", connector=fqn, kind=kind, command=f"aileron binding setup {fqn}"
        )
        for each in self._bindings.all():
            if (each.connector, each.kind) == (fqn, kind):
                problem = each.problem(user)
                return replace(
                    need,
                    problem=f"{each.name} cannot be used: {problem}",
                    command=f"aileron binding {_REMEDIES.get(problem, 'rebind')} {each.name}",
                )
        return need


def shown_account(binding: Binding) -> AccountView:
    return AccountView(name=binding.name, account=binding.account)


def credential_users(connectors: Iterable[AsksForCredential]) -> tuple[CredentialUser, ...]:
    return tuple(user for each in connectors if (user := credential_user(each)) is not None)


def find_user(connectors: Iterable[AsksForCredential], name: str) -> CredentialUser:
    """Return the one of the accepted *connectors* that is called *name*.

    Raises:
        NotFound: none is.
        Conflict: several are.
        InvalidRequest: it asks for no credential.
    """
    found = [each for each in connectors if name in each.identity.names]
    if not found:
        raise NotFound(
            f"No accepted connector is called {name[:200]!r}. `aileron connector list` shows those that are "
            "installed; accept one in the console."
        )
    if len(found) > 1:
        refs = ", ".join(sorted(each.identity.ref for each in found))
        raise Conflict(f"{len(found)} accepted connectors are called {name}: {refs}. Name one.")
    user = credential_user(found[0])
    if user is None:
        raise InvalidRequest(f"{found[0].identity.ref} asks for no credential: nothing to bind.")
    return user


def credential_user(connector: AsksForCredential) -> CredentialUser | None:
    """Return *connector* as one that asks for a credential; None where it asks for none."""
    need = connector.credential_requirement
    if need is None:
        return None
    return CredentialUser(identity=connector.identity, requirement=need, hosts=connector.hosts)


def account_view(
    binding: Binding, users: Iterable[CredentialUser], accepted: Collection[str]
) -> BoundAccountView:
    """Return *binding* as it is shown.

    Args:
        users: the accepted connectors that ask for a credential.
        accepted: the digests of the accepted action files.
    """
    problem = binding.problem_among(users)
    return BoundAccountView(
        **{each.name: getattr(binding, each.name) for each in fields(BoundAccount)},
        problem=problem,
        remedy=_REMEDIES.get(problem, "rebind") if problem else "",
        remembered_for=tuple(
            each.name for each in binding.remembered_for if each.sha256 in accepted
        ),
    )


def user_view(user: CredentialUser) -> CredentialUserView:
    """Return a connector that asks for an account."""
    need, login = user.requirement, user.requirement.oauth2
    usable = login is not None and login.client_secret != CLIENT_PLACEHOLDER
    return CredentialUserView(
        connector=user.identity.fqn,
        ref=user.identity.ref,
        hash=user.identity.hash,
        kind=need.kind,
        hosts=user.hosts,
        header=need.header,
        scope=need.scope,
        access_key_id=need.access_key_id,
        client_id=login.client_id if login is not None and usable else "",
        default_name=binding_name(user, "default"),
        scopes=login.scopes if login is not None else (),
        login_host=_host(login.authorize_url) if login is not None else "",
        token_host=_host(login.token_url) if login is not None else "",
        needs_region=user.needs_region,
        names=need.names,
    )


def _host(url: str) -> str:
    try:
        return parse_target(url).host_port
    except ValueError:
        return url  # a login is refused then
