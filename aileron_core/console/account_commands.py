"""What a person does with accounts, in the console and by commands."""

from collections.abc import Iterable
from dataclasses import replace

from aileron_core.connectors.store import InstalledConnector
from aileron_core.console_port.account_intents import (
    AccountIntent,
    BeginLogin,
    BindAccount,
    CancelLogin,
    FinishLogin,
    ForgetChoice,
    ReadAccounts,
    RebindAccount,
    RevokeAccount,
    WaitForLogin,
)
from aileron_core.console_port.account_views import (
    AccountChange,
    AccountChanged,
    AccountRefused,
    AccountsUpdated,
    LoginUpdated,
    LoginView,
)
from aileron_core.console_port.events import CoreEvent, LibraryUpdated, VaultStatus
from aileron_core.credentials.accounts import account_view, credential_users, find_user, user_view
from aileron_core.credentials.authorization import AuthorizationService
from aileron_core.credentials.binding import Binding
from aileron_core.credentials.bindings import BindingService
from aileron_core.devices import CONSOLE, Hand
from aileron_core.errors import (
    AileronError,
    BindingFailed,
    ExternalApiError,
    InvalidRequest,
    StorageUnavailable,
)
from aileron_core.events import EventBus
from aileron_core.library.home_library import HomeLibrary
from aileron_core.tasks import spawn

_WAIT_SECONDS = 25.0


class AccountCommands:
    """Carries out what a person asks about accounts, and publishes the accounts whenever they change."""

    def __init__(
        self,
        bindings: BindingService,
        authorizations: AuthorizationService,
        library: HomeLibrary,
        events: EventBus[CoreEvent],
    ) -> None:
        self._bindings = bindings
        self._authorizations = authorizations
        self._library = library
        self._events = events
        bindings.changed.subscribe(lambda _: events.publish(self.accounts()))
        events.subscribe(self._follow)

    def _follow(self, event: CoreEvent) -> None:
        if isinstance(event, LibraryUpdated | VaultStatus):
            self._events.publish(self.accounts())

    def accounts(self) -> AccountsUpdated:
        """Return every account, and every accepted connector that asks for one."""
        users = credential_users(self._library.accepted_connectors())
        accepted = {each.sha256 for each in self._library.ready()}
        return AccountsUpdated(
            accounts=tuple(account_view(each, users, accepted) for each in self._bindings.all()),
            users=tuple(user_view(each) for each in users),
        )

    async def follow(
        self, successions: Iterable[tuple[InstalledConnector, InstalledConnector]], hand: Hand
    ) -> None:
        """Let accounts go with their connectors to the newer ones that were accepted since, by a person with *hand*."""
        accepted = {each.identity.hash for each in self._library.accepted_connectors()}
        for pair in successions:
            old, new = credential_users(pair)
            if new.identity.hash not in accepted:
                continue
            try:
                await self._bindings.follow(old, new, hand)
            except (AileronError, OSError) as error:  # the files are accepted all the same
                reason = error.message if isinstance(error, AileronError) else error.strerror
                message = f"An account of {old.identity.fqn} did not go along: {reason}"
                self._events.publish(AccountRefused(message=message))

    async def carry_out(
        self, intent: AccountIntent, answers: EventBus[CoreEvent], hand: Hand
    ) -> None:
        """Carry out *intent* for a console, and follow a login that it begins.

        `AccountRefused` says why it did nothing, and quotes no secret.

        Args:
            answers: to that console alone.
            hand: with which a person asks, there.

        Raises:
            StorageUnavailable: the audit cannot be written.
        """
        try:
            answer = await self.answer(intent, hand)
        except StorageUnavailable:
            raise
        except AileronError as error:
            host = error.details.get("token_host", "")
            answers.publish(AccountRefused(message=error.message, token_host=str(host)))
        except OSError as error:
            message = f"The vault could not be written: {error.strerror}. Nothing changed."
            answers.publish(AccountRefused(message=message))
        else:
            if answer is not None:
                answers.publish(answer)
            if isinstance(answer, LoginUpdated):
                spawn(self._follow_login(answer.login.login_id, answers), name="follow a login")

    async def answer(
        self, intent: AccountIntent, hand: Hand = CONSOLE
    ) -> AccountsUpdated | AccountChanged | LoginUpdated | None:
        """Carry out *intent*; return what it says to who asked.

        Raises:
            AileronError, OSError: nothing changed. No message quotes a secret.
        """
        match intent:
            case ReadAccounts():
                return self.accounts()
            case BindAccount():
                return await self._bind(intent, hand)
            case RebindAccount():
                user = find_user(self._library.accepted_connectors(), intent.connector_hash)
                return _changed("rebound", await self._bindings.rebind(intent.name, user, hand))
            case RevokeAccount():
                account = self._bindings.get(intent.name)
                await self._bindings.delete(intent.name, hand)
                return _changed("revoked", account)
            case ForgetChoice():
                await self._bindings.forget(intent.name, intent.action, hand)
                return _changed("forgotten", self._bindings.get(intent.name))
            case BeginLogin():
                return LoginUpdated(login=await self._begin(intent))
            case WaitForLogin():
                login = await self._authorizations.wait(intent.login_id, _WAIT_SECONDS)
                return LoginUpdated(login=login)
            case FinishLogin():
                bound = await self._authorizations.finish(intent.login_id, intent.account, hand)
                return _changed("authorized", bound)
            case CancelLogin():
                self._authorizations.cancel(intent.login_id)
                return None

    async def _bind(self, intent: BindAccount, hand: Hand) -> AccountChanged:
        try:
            user = find_user(self._library.accepted_connectors(), intent.connector_hash)
            return _changed("bound", await self._bindings.bind(user, intent, hand))
        finally:
            intent.wipe()

    async def _begin(self, intent: BeginLogin) -> LoginView:
        user = find_user(self._library.accepted_connectors(), intent.connector_hash)
        try:
            return await self._authorizations.begin(user, intent)
        except (InvalidRequest, BindingFailed, ExternalApiError):
            if not intent.device or intent.device_only:
                raise
            # It gives no device code, or none for these scopes.
            return await self._authorizations.begin(user, replace(intent, device=False))

    async def _follow_login(self, login_id: str, answers: EventBus[CoreEvent]) -> None:
        """Publish how the login *login_id* goes on, once it does not wait any more."""
        while True:
            try:
                view = await self._authorizations.wait(login_id, _WAIT_SECONDS)
            except AileronError:
                return  # it was cancelled, or the vault was locked
            if view.state != "waiting":
                answers.publish(LoginUpdated(login=view))
                return


def _changed(change: AccountChange, binding: Binding) -> AccountChanged:
    return AccountChanged(change=change, name=binding.name, account=binding.account)
