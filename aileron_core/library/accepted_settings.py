"""The settings files of a home, which count in exactly the bytes that a person accepted: `config.toml`, `policy.toml`.

With a vault, each counts once it has verified with the vault's key in this process, or a person accepted it.
Without one, `config.toml` counts as it is, and `policy.toml` if its hash is the one on record as accepted last.
One that differs from the accepted `config.toml` in how the console looks alone counts as well.
Until `config.toml` counts, every call waits, and what widens or misleads is not in force; until `policy.toml`
does, it only restricts.
A copy of the accepted file is kept in the home, so that a change can be shown beside it; it counts for what
it is only if its hash is what was signed, or is on record.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Final, Literal

from aileron_core.actions.model import Action
from aileron_core.audit.events import AuditEvent
from aileron_core.canonical import sha256_hex
from aileron_core.clock import Clock
from aileron_core.console_port.file_views import (
    AcceptanceChangeView,
    AcceptedBeforeView,
    FileContentView,
)
from aileron_core.console_port.standing import TriedShape
from aileron_core.console_port.view_models import NotAcceptedView
from aileron_core.devices import CONSOLE, Hand
from aileron_core.errors import Conflict, FileProblems, Problem
from aileron_core.library.acceptance import KINDS, AcceptanceRecord
from aileron_core.library.authenticated_records import AuthenticatedRecords
from aileron_core.library.settings_comparison import (
    compare_policies,
    compare_settings,
    settings_sha256,
)
from aileron_core.policy.model import ActionRule, Policy, Rule
from aileron_core.policy.policy_file import NAME, parse_policy, rules_in_force, unknown_fields
from aileron_core.storage.database import Database
from aileron_core.vault.atomic_file import read_private_file, replace_file
from aileron_core.vault.vault import Vault

SettingsKind = Literal["settings", "policy"]
_MAX_BYTES: Final = 4 * 1024 * 1024
_UNKNOWN: Final = "it names a field that no accepted action has"
_UNTIL_MENDED: Final = "Until the file is fixed and the console is restarted, the rule asks."
_log = logging.getLogger(__name__)
_MAX_POLICY_BYTES: Final = 256 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingsFile:
    """One of the files, and what is particular to it."""

    kind: SettingsKind
    """Of its item and its row; also the name of its set under the vault's key."""
    name: str
    compare: Callable[[str, str], tuple[AcceptanceChangeView, ...]]
    """Says what differs between an accepted text and another; raises ValueError if it cannot read one."""
    needs_acceptance: bool
    """It does not count as it is even where there is no vault."""

    def copy_in(self, home: Path) -> Path:
        return home / "store" / f"accepted-{self.name}"


CONFIG: Final = SettingsFile(
    kind="settings",
    name="config.toml",
    compare=compare_settings,
    needs_acceptance=False,
)
POLICY: Final = SettingsFile(
    kind="policy",
    name="policy.toml",
    compare=compare_policies,
    needs_acceptance=True,
)


class AcceptedSettings:
    """Whether a settings file that this process was started with is the one that a person accepted.

    Args:
        text: of the file, as it was read; empty where there is none.
        home: the folder that the copy is kept in.
    """

    def __init__(
        self,
        database: Database,
        vault: Vault,
        clock: Clock,
        text: str,
        home: Path,
        file: SettingsFile = CONFIG,
    ) -> None:
        self._database = database
        self._vault = vault
        self._clock = clock
        self._text = text
        self.file = file
        self.sha256 = sha256_hex(text.encode())
        self._stored = AuthenticatedRecords(database, vault, clock, file.kind)
        self._copy = file.copy_in(home)
        self._before: AcceptedBeforeView | None = None
        self._changing = asyncio.Lock()
        self.count = False
        """It is what was accepted; true for good once it has verified."""
        self.problem = ""
        """Why it does not count; empty where it does, or the vault is locked."""
        self.tried: TriedShape | None = None
        """Which of a person's answers its rules would have given; None where that was not looked at."""

    @property
    def accepted_before(self) -> str:
        """The text that was accepted in place of this one, as far as it is known; empty otherwise."""
        return (self._before.text or "") if self._before is not None and self.problem else ""

    @property
    def settings_in_force(self) -> str:
        """The hash of what `config.toml` sets, less its looks; empty where it does not count."""
        return settings_sha256(self._text) if self.count else ""

    async def load(self) -> None:
        """Verify it, unless the vault is locked; called at the start, and when it was unlocked.

        Raises:
            StorageUnavailable: what was found could not be recorded; it does not count.
        """
        async with self._changing:
            if self.count and not self._vault.is_new:
                return  # what this process was started with does not change
            counted = self.count and not self.file.needs_acceptance
            await self._stored.load(self._own(by="") if counted else None)
            if self._stored.waits_for_vault:
                return
            accepted = self._stored.records.get((self.file.kind, self.file.name))
            why, before = self._why_not(accepted), None
            was_accepted = (
                bool(self._stored.problem) or accepted is not None or not self.file.needs_acceptance
            )
            if why and was_accepted:
                before = await asyncio.to_thread(self._accepted_before, accepted)
            only_looks = before is not None and self._differs_in_looks_alone(before)
            if only_looks:
                why, before = "", None
            if why and why not in (self.problem, self._stored.problem) and was_accepted:
                summary = f"{self.file.name} is not what was accepted: {why}"
                record = self._own(by="").to_audit(
                    AuditEvent.LIBRARY_UNVERIFIED,
                    self._clock.now(),
                    summary,
                    {"set": self.file.kind},
                )
                await self._database.write(lambda tx: tx.record(record))
            self._before = before
            self.count, self.problem = not why, why
            has_copy = accepted if self.file.needs_acceptance else self._vault.state != "absent"
            if not why and not only_looks and has_copy:
                await asyncio.to_thread(self._keep_copy)

    def _why_not(self, accepted: AcceptanceRecord | None) -> str:
        """Return why it does not count beside what is *accepted*; empty where it does."""
        if self._stored.problem:
            return self._stored.problem
        if not self.file.needs_acceptance and self._vault.state == "absent":
            return ""
        if accepted is None:
            is_nothing = self.file.needs_acceptance and not self._text
            return "" if is_nothing else "nobody has accepted it"
        return "" if accepted.digest == self.sha256 else "it was changed"

    def _accepted_before(self, accepted: AcceptanceRecord | None) -> AcceptedBeforeView:
        """Return what was accepted instead, as far as the copy is that."""
        name = self.file.name
        try:
            data = read_private_file(self._copy, _MAX_BYTES)
            if data is not None and accepted is not None and sha256_hex(data) == accepted.digest:
                text = data.decode("utf-8", "backslashreplace")
                return AcceptedBeforeView(
                    name=name,
                    digest=accepted.digest,
                    accepted_at=accepted.accepted_at,
                    text=text,
                    changes=self.file.compare(text, self._text),
                )
        except (OSError, ValueError):
            pass  # the whole file is shown instead
        return AcceptedBeforeView(name=name, digest="", accepted_at=0.0, text=None)

    def _differs_in_looks_alone(self, before: AcceptedBeforeView) -> bool:
        if self.file.kind != "settings" or before.text is None:
            return False
        return settings_sha256(before.text) == settings_sha256(self._text)

    def _keep_copy(self) -> None:
        data = self._text.encode()
        try:
            if read_private_file(self._copy, _MAX_BYTES) != data:
                self._copy.parent.mkdir(mode=0o700, exist_ok=True)
                replace_file(self._copy, data)
        except OSError as error:
            # A later change is shown without a difference then, and says so.
            _log.warning("no copy of %s could be kept: %s", self.file.name, type(error).__name__)

    def not_accepted(self) -> tuple[NotAcceptedView, ...]:
        """Return what a person is asked to accept, if it does not count."""
        if not self.problem:
            return ()
        is_first = self._before is None and self.file.kind == "policy"
        changes = self.file.compare("", self._text) if is_first else ()
        allows = tuple(each for each in changes if each.direction == "wider")
        return (
            NotAcceptedView(
                kind=self.file.kind,
                name=self.file.name,
                file=self.file.name,
                digest=self.sha256,
                change="changed" if self._before is not None else "new",
                content=FileContentView(text=self._text, before=self._before, allows=allows),
                tried=self.tried,
            ),
        )

    async def accept(self, digest: str, hand: Hand = CONSOLE) -> None:
        """Record that a person accepts exactly these bytes, with *hand*.

        Raises:
            Conflict: there is nothing to accept, or other bytes were shown.
            VaultLocked: unlock it first; nothing is accepted.
            StorageUnavailable: it could not be written.
        """
        async with self._changing:
            if not self.problem or digest != self.sha256:
                raise Conflict(
                    f"{self.file.name} does not wait to be accepted any more. Nothing changed."
                )
            own, noun = self._own(by="person"), KINDS[self.file.kind].noun
            record = own.to_audit(
                AuditEvent.LIBRARY_ACCEPTED,
                own.accepted_at,
                f"Accepted the {noun} {own.name}",
                hand.mark(),
            )
            await self._stored.change(save={own: record})
            self.count, self.problem = True, ""
            await asyncio.to_thread(self._keep_copy)

    def _own(self, by: str) -> AcceptanceRecord:
        """Return the acceptance of the file as it is, now."""
        return AcceptanceRecord(
            kind=self.file.kind,
            name=self.file.name,
            digest=self.sha256,
            accepted_at=self._clock.now(),
            accepted_by=by,
        )


class PolicyInForce:
    """What calls are judged by: of the built-in tools by `rules`, of actions by `action_rules`.

    Before `policy.toml` is accepted, what it denies and asks counts, and what was accepted before it denies and
    asks counts too; nothing that either allows does.
    """

    def __init__(self, accepted: AcceptedSettings, policy: Policy) -> None:
        self._accepted = accepted
        self._written = self._policy = policy
        self.problems: tuple[Problem, ...] = ()
        """Fields that rules name and no accepted action that they are about has."""

    def follow(self, actions: Sequence[Action]) -> None:
        """Judge by the accepted *actions*: a rule that names a field which none of those has asks about all of them."""
        unknown = unknown_fields(self._written, actions)
        self.problems = tuple(
            replace(each, severity="warning", message=f"{each.message}. {_UNTIL_MENDED}")
            for each in chain.from_iterable(unknown.values())
        )
        rules = (
            replace(rule, decision="ask", where={}, reason=_UNKNOWN)
            if rule.source in unknown and rule.decision != "allow"  # one that allows never fits
            else rule
            for rule in self._written.action_rules
        )
        self._policy = replace(self._written, action_rules=tuple(rules))

    def rules(self) -> tuple[Rule, ...]:
        return rules_in_force(self._in_force())

    def action_rules(self) -> tuple[ActionRule, ...]:
        return self._in_force().action_rules

    def _in_force(self) -> Policy:
        if self._accepted.count:
            return self._policy
        try:
            before = parse_policy(self._accepted.accepted_before).restrictions()
        except FileProblems:  # an earlier version of Aileron could read it
            before = Policy()
        now = self._policy.restrictions()
        return Policy(
            rules=(*now.rules, *before.rules),
            action_rules=(*now.action_rules, *before.action_rules),
        )


def load_policy(path: Path) -> Policy:
    """Return what *path* says; a policy without rules if there is no such file.

    Raises:
        FileProblems: it cannot be read, is not TOML, or says what Aileron does not know.
    """
    try:
        with path.open("rb") as opened:
            data = opened.read(_MAX_POLICY_BYTES + 1)
        if len(data) > _MAX_POLICY_BYTES:
            raise ValueError(f"it is larger than {_MAX_POLICY_BYTES} bytes")
        text = data.decode("utf-8")
    except FileNotFoundError:
        return Policy()
    except (OSError, ValueError) as error:
        problem = Problem(file=NAME, message=f"cannot be read: {error}", class_="parse_error")
        raise FileProblems([problem]) from error
    return parse_policy(text)
