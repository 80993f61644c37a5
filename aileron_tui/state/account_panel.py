"""The questions about an account, one after the other: what a person types, and what it asks of the core."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal, TypeAlias

from aileron_core.console_port.account_intents import (
    BeginLogin,
    BindAccount,
    named_values,
)
from aileron_core.console_port.account_views import (
    AccountRefused,
    BoundAccountView,
    CredentialUserView,
    LoginView,
)
from aileron_core.console_port.intents import Intent
from aileron_core.vault.secret import Secret

Field: TypeAlias = Literal[
    "identity", "account", "user", "region", "secret", "session_token", "client_id", "client_secret", "token_host",
    "whose",
]  # fmt: skip
_SECRET: frozenset[Field] = frozenset({"secret", "session_token", "client_secret"})
_OPTIONAL: frozenset[Field] = frozenset({"account", "session_token", "client_secret"})


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing to type."""

    field: Field
    text: str
    name: str = ""
    """Of kind environment: that of the value."""

    @property
    def is_secret(self) -> bool:
        return self.field in _SECRET

    @property
    def is_optional(self) -> bool:
        return self.field in _OPTIONAL


class AccountPanel:
    """What is known so far of an account that is being bound, bound again, authorized or deleted."""

    def __init__(self) -> None:
        self.has_browser = True
        """A browser can be opened from here; else a login goes by device code where it can."""
        self.user: CredentialUserView | None = None
        """The connector that will use it."""
        self.bound: BoundAccountView | None = None
        """The account that there is; None for a new one."""
        self.login: LoginView | None = None
        self.is_sent = False
        self.refusal = ""
        self._entries: list[Entry] = []
        self._texts: dict[Field, str] = {}
        self._secrets: dict[str, Secret] = {}

    @property
    def question(self) -> Entry | None:
        """What is to be typed next; None where nothing is."""
        return self._entries[0] if self._entries and not self.is_sent else None

    @property
    def name(self) -> str:
        """The account's, as it will be."""
        if self.bound is not None:
            return self.bound.name
        default = self.user.default_name if self.user is not None else ""
        return default.removesuffix("default") + self._texts.get("identity", "default")

    @property
    def account_named(self) -> str:
        """Whose the login is: as the service says, else as the person named it."""
        said = self.login.account if self.login is not None else ""
        return said or self._texts.get("whose", "")

    @property
    def command(self) -> str:
        """What does the same in a shell, with all its options."""
        if self.bound is not None:
            return f"aileron binding reauthorize {self.bound.name}"
        return f"aileron binding setup {self.user.connector}" if self.user is not None else ""

    @property
    def version(self) -> tuple[object, ...]:
        """What a person must look at anew when it differs."""
        return (self.user, self.bound, self.login, self.question, self.account_named, self.is_sent)

    def open(
        self,
        user: CredentialUserView | None,
        bound: BoundAccountView | None,
        taken: Collection[str] = (),
    ) -> None:
        """The question appears; *taken*: the names of all accounts."""
        self.close()
        self.user, self.bound = user, bound
        if user is not None:
            self._entries = [*_entries(user, bound, taken)]

    def close(self) -> None:
        """The question is gone, and what was typed with it."""
        for each in self._secrets.values():
            each.wipe()
        self._secrets.clear()
        self._texts.clear()
        self._entries = []
        self.user = self.bound = self.login = None
        self.is_sent, self.refusal = False, ""

    def begin(self) -> Intent | None:
        """Return what is asked of the core where nothing is left to type."""
        return None if self._entries or self.login is not None else self._send()

    def enter_text(self, typed: str) -> Intent | None:
        """Take the answer; return what it asks of the core, None where more is to be typed."""
        asked = self._entries[0]
        if not typed.strip() and not asked.is_optional:
            self.refusal = "nothing was typed"
            return None
        self._texts[asked.field] = typed.strip()
        return self._next()

    def enter_secret(self, typed: Secret) -> Intent | None:
        """As `enter_text`, for what is not shown."""
        asked = self._entries[0]
        if not len(typed) and not asked.is_optional:
            self.refusal = "nothing was typed"
            return None
        self._secrets[asked.name or asked.field] = typed
        return self._next()

    def _next(self) -> Intent | None:
        self.refusal = ""
        del self._entries[0]
        return self.begin()

    def _send(self) -> Intent | None:
        if self.user is None:
            return None
        self.is_sent = True
        identity = "" if self.bound is not None else self._texts.get("identity", "default")
        if self.user.kind == "oauth2":
            return BeginLogin(
                connector_hash=self.user.hash,
                identity=identity,
                replaces=self.bound.name if self.bound is not None else "",
                client_id=self._texts.get("client_id", ""),
                client_secret=self._secrets.get("client_secret"),
                token_host=self._texts.get("token_host", ""),
                device=not self.has_browser,
            )
        if self.user.names:
            values = {each: self._secrets.pop(each) for each in [*self._secrets]}
            secret = named_values(values)
        else:
            secret = self._secrets.pop("secret")
        token = self._secrets.pop("session_token", None)
        return BindAccount(
            connector_hash=self.user.hash,
            identity=identity,
            account=self._texts.get("account", ""),
            user=self._texts.get("user", self.user.access_key_id),
            secret=secret,
            session_token=token if token is not None and len(token) else None,
            region=self._texts.get("region", ""),
        )

    def on_login(self, login: LoginView) -> None:
        """A login began, or went on."""
        self.login, self.is_sent = login, False
        self.refusal = "" if login.problem is None else login.problem.message
        if login.state == "authorized" and not self.account_named:
            why = "The service does not say whose account this is. Your name for it:"
            self._entries = [Entry("whose", why)]

    def on_refused(self, event: AccountRefused) -> None:
        """It was not done: what has to be typed again is asked for again."""
        self.is_sent, self.refusal = False, event.message
        user = self.user
        if user is None:
            return
        if event.token_host:
            self._entries = [Entry("token_host", "Type the host that may get the login:")]
        elif user.kind != "oauth2" and self.login is None:
            self._entries = [each for each in _entries(user, self.bound) if each.is_secret]


def _entries(
    user: CredentialUserView, bound: BoundAccountView | None, taken: Collection[str] = ()
) -> list[Entry]:
    is_new, is_login, is_aws = bound is None, user.kind == "oauth2", user.kind == "aws_sigv4"
    has_no_client = is_login and is_new and not user.client_id
    secret = {"basic": "Password:", "aws_sigv4": "Secret access key:"}.get(user.kind, "Key:")
    asked: tuple[tuple[bool, Field, str], ...] = (
        (is_new and user.default_name in taken, "identity", "Last part of the account's name (there is already one called default):"),
        (has_no_client, "client_id", "Your own client id at the service:"),
        (has_no_client, "client_secret", "Its client secret, if there is one (may be empty):"),
        (is_new and not is_login, "account", "Your name for this account, such as a mail address (may be empty):"),
        (user.kind == "basic", "user", "User name:"),
        (is_aws and not user.access_key_id, "user", "Access key id:"),
        (not is_login and user.needs_region, "region", "AWS region, such as us-east-1:"),
        (not is_login and not user.names, "secret", secret),
        (is_aws, "session_token", "Session token, if the key has one (may be empty):"),
    )  # fmt: skip
    return [
        *(Entry(field, text) for holds, field, text in asked if holds),
        *(Entry("secret", f"{each}:", each) for each in user.names),
    ]
