"""The questions about the vault: its passphrase, the account of a call; and which calls wait for an answer."""

from collections.abc import Iterable

from aileron_core.console_port.account_views import AccountNeed
from aileron_core.console_port.intents import (
    CreateVault,
    Intent,
    UnlockVault,
    UnlockVaultWithKeyring,
)
from aileron_core.console_port.view_models import ApprovalView
from aileron_core.errors import InvalidRequest
from aileron_core.vault.secret import Secret, check_passphrase
from aileron_tui import words

ENTER_AFTER_SECONDS = 0.4
"""How long the question about a passphrase stands before `enter` counts."""


class CallsWithoutAccount:
    """Calls that wait for the vault or an account, in order of arrival."""

    def __init__(self, views: Iterable[ApprovalView] = ()) -> None:
        self._waiting: dict[str, ApprovalView] = {}
        for view in views:
            self.update(view)

    def update(self, view: ApprovalView) -> None:
        if view.state == "awaiting_vault" and view.account_need is not None:
            self._waiting[view.call_id] = view
        else:
            self._waiting.pop(view.call_id, None)

    @property
    def count(self) -> int:
        return len(self._waiting)

    @property
    def locked(self) -> int:
        """How many wait for nothing else than the vault."""
        return len(self._needs())

    @property
    def ungated(self) -> int:
        """How many of these run once it is unlocked, without asking anybody."""
        return sum(not view.gated and len(need.candidates) == 1 for view, need in self._needs())

    @property
    def accounts(self) -> tuple[AccountNeed, ...]:
        """What these need, each once."""
        found = {(need.connector, need.candidates): need for _, need in self._needs()}
        return tuple(found.values())

    def _needs(self) -> list[tuple[ApprovalView, AccountNeed]]:
        pairs = ((view, view.account_need) for view in self._waiting.values())
        return [
            (view, need) for view, need in pairs if need is not None and need.reason == "locked"
        ]


class VaultPanel:
    """What the panel of the passphrase knows. Times are monotonic seconds."""

    def __init__(self) -> None:
        self.is_sent = False
        """The vault is looking at a passphrase."""
        self.creates = False
        """It was asked to be created, not unlocked."""
        self.refusal = ""
        """Why the last passphrase did nothing: the core's sentence, which quotes none of it."""
        self._first: Secret | None = None
        self._opened_at = 0.0
        self._retry_at = 0.0

    def open(self, at: float, *, creates: bool) -> None:
        """The question appears, about creating the vault or about unlocking it."""
        self.close()
        self.creates, self.refusal, self._opened_at = creates, "", at

    def close(self) -> None:
        """The question is gone, and what was typed with it."""
        if self._first is not None:
            self._first.wipe()
        self._first = None

    @property
    def asks_again(self) -> bool:
        """The same passphrase is asked for once more."""
        return self._first is not None

    def wait_left(self, at: float) -> float:
        """Return for how many seconds the vault looks at no passphrase."""
        return max(0.0, self._retry_at - at)

    def too_early(self, at: float) -> bool:
        """Return whether the question stands too short for `enter` to be meant for it."""
        return at - self._opened_at < ENTER_AFTER_SECONDS

    def enter(self, typed: Secret) -> Intent | None:
        """Take what was *typed*; return what it asks of the core, None where it is to be typed again.

        Nothing typed asks for the keyring: it is sent only where that may open the vault.
        """
        self.refusal = ""
        if not self.creates:
            self.is_sent = True
            return UnlockVault(passphrase=typed) if len(typed) else UnlockVaultWithKeyring()
        first, self._first = self._first, None
        if first is None:
            try:
                check_passphrase(typed)
            except InvalidRequest as error:
                typed.wipe()
                self.refusal = error.message
            else:
                self._first = typed
            return None
        if first != typed:
            first.wipe()
            typed.wipe()
            self.refusal = words.vault.DIFFERENT
            return None
        first.wipe()
        self.is_sent = True
        return CreateVault(passphrase=typed)

    def on_answer(self) -> None:
        """The vault looked at it."""
        self.is_sent = False

    def on_refused(self, message: str, wait_seconds: float, at: float) -> None:
        """The vault did not do what was asked, for the reason *message*."""
        self.is_sent, self.refusal = False, message
        self._retry_at = at + wait_seconds


class AccountChoice:
    """Which account of those offered is picked for a call."""

    def __init__(self) -> None:
        self.need: AccountNeed | None = None
        """What was offered when the question appeared."""
        self.index = 0

    def open(self, need: AccountNeed) -> None:
        self.need, self.index = need, 0

    def move(self, rows: int) -> None:
        self.select(self.index + rows)

    def select(self, index: int) -> None:
        """Pick the account number *index*, from 0; the last one where there are fewer."""
        last = len(self.need.candidates) - 1 if self.need is not None else 0
        self.index = min(max(index, 0), last)

    @property
    def binding(self) -> str:
        """Name of the account that is picked."""
        return self.need.candidates[self.index].name if self.need is not None else ""
