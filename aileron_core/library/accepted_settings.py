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
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from aileron_core.audit.events import AuditEvent
from aileron_core.audit.record import AuditRecord
from aileron_core.canonical import sha256_hex
from aileron_core.clock import Clock, parse_rfc3339, rfc3339
from aileron_core.console_port.file_views import (
    AcceptanceChangeView,
    AcceptedBeforeView,
    FileContentView,
)
from aileron_core.console_port.view_models import NotAcceptedView
from aileron_core.errors import (
    Conflict,
    FileProblems,
    Problem,
    VaultLocked,
)
from aileron_core.library import acceptance
from aileron_core.library.authenticated_records import OTHER_VAULT, SignedSet
from aileron_core.library.settings_comparison import (
    compare_policies,
    compare_settings,
    settings_sha256,
)
from aileron_core.policy.model import Policy, Rule
from aileron_core.policy.policy_file import NAME, parse_policy, rules_in_force
from aileron_core.storage.database import Database
from aileron_core.vault.atomic_file import read_private_file, replace_file
from aileron_core.vault.vault import Vault

SettingsKind = Literal["settings", "policy"]
_MAX_BYTES: Final = 4 * 1024 * 1024
_log = logging.getLogger(__name__)
_MAX_POLICY_BYTES: Final = 256 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingsFile:
    """One of the files, and what is particular to it."""

    kind: SettingsKind
    """Of its item; also the name of its set under the vault's key."""
    name: str
    noun: str
    """What a record calls it, before its name."""
    compare: Callable[[str, str], tuple[AcceptanceChangeView, ...]]
    """Says what differs between an accepted text and another; raises ValueError if it cannot read one."""
    needs_acceptance: bool
    """It does not count as it is even where there is no vault."""

    def copy_in(self, home: Path) -> Path:
        return home / "store" / f"accepted-{self.name}"


CONFIG: Final = SettingsFile(
    kind="settings",
    name="config.toml",
    noun="settings of",
    compare=compare_settings,
    needs_acceptance=False,
)
POLICY: Final = SettingsFile(
    kind="policy",
    name="policy.toml",
    noun="rules of",
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
        self._set = SignedSet(database, vault, file.kind)
        self._copy = file.copy_in(home)
        self._before: AcceptedBeforeView | None = None
        self._changing = asyncio.Lock()
        self.count = False
        """It is what was accepted; true for good once it has verified."""
        self.problem = ""
        """Why it does not count, as a clause; empty where it does, or the vault is locked."""

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
            kind, name = self.file.kind, self.file.name
            mac, accepted = await self._database.read(
                lambda c: (acceptance.load_mac(c, kind), acceptance.load_accepted(c, kind))
            )
            last = [*accepted][-1] if accepted else None
            try:
                why, is_first = await asyncio.to_thread(self._check, mac, last)
            except VaultLocked:
                return
            before: AcceptedBeforeView | None = None
            was_accepted = last is not None or mac is not None or not self.file.needs_acceptance
            if is_first:
                await self._sign(
                    AuditEvent.LIBRARY_AUTHENTICATED, f"The vault's key protects {name}"
                )
            elif why and was_accepted:
                before = await asyncio.to_thread(self._accepted_before, mac, accepted, last)
            only_looks = before is not None and self._differs_in_looks_alone(before)
            if only_looks:
                why, before = "", None
            if why and why != self.problem and was_accepted:
                await self._database.write(
                    lambda tx: tx.record(
                        self._record(
                            AuditEvent.LIBRARY_UNVERIFIED, f"{name} is not what was accepted: {why}"
                        )
                    )
                )
            self._before = before
            self.count, self.problem = not why, why
            if not why and not only_looks and self._keeps_copy(last):
                await asyncio.to_thread(self._keep_copy)

    def _keeps_copy(self, last: str | None) -> bool:
        return last is not None if self.file.needs_acceptance else self._vault.state != "absent"

    def _accepted_before(
        self, mac: str | None, accepted: Mapping[str, str], last: str | None
    ) -> AcceptedBeforeView:
        """Return what was accepted instead, as far as the copy is what was signed last."""
        name = self.file.name
        try:
            data = read_private_file(self._copy, _MAX_BYTES)
            if data is None:
                raise FileNotFoundError
            digest, text = sha256_hex(data), data.decode("utf-8", "backslashreplace")
            without_vault = self._vault.state == "absent"
            if digest == last if without_vault else not self._set.check(digest, mac, None)[0]:
                return AcceptedBeforeView(
                    name=name,
                    digest=digest,
                    accepted_at=parse_rfc3339(accepted[digest]),
                    text=text,
                    changes=self.file.compare(text, self._text),
                )
        except (VaultLocked, OSError, ValueError, KeyError):
            pass  # the whole file is shown instead
        return AcceptedBeforeView(name=name, digest="", accepted_at=0.0, text=None)

    def _differs_in_looks_alone(self, before: AcceptedBeforeView) -> bool:
        if self.file.kind != "settings" or before.text is None or self._vault.state == "absent":
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

    def _check(self, mac: str | None, last: str | None) -> tuple[str, bool]:
        """Return why it does not count, and whether the vault's key is to protect it from now on.

        Args:
            last: the digest that is on record as accepted last.
        """
        unsigned: tuple[str, bool] | None = None
        nobody = "nobody has accepted it" if self._text else ""
        if self.file.needs_acceptance:
            if self._vault.state == "absent" and mac is None:
                changed = "" if last == self.sha256 else "it was changed"
                return (changed if last is not None else nobody), False
            # The vault itself says that nothing was accepted with it.
            first = self._vault.is_new and self.count and last is not None
            unsigned = "" if self.count else nobody, first
        elif self._vault.is_new:
            unsigned = ("", True) if self.count or mac is None else (OTHER_VAULT, False)
        return self._set.check(self.sha256, mac, unsigned)

    def not_accepted(self) -> tuple[NotAcceptedView, ...]:
        """Return what a person is asked to accept, if it does not count."""
        if not self.problem:
            return ()
        return (
            NotAcceptedView(
                kind=self.file.kind,
                name=self.file.name,
                file=self.file.name,
                digest=self.sha256,
                change="changed" if self._before is not None else "new",
                content=FileContentView(text=self._text, before=self._before),
            ),
        )

    async def accept(self, digest: str) -> None:
        """Record that a person accepts exactly these bytes.

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
            summary = f"Accepted the {self.file.noun} {self.file.name}"
            await self._sign(AuditEvent.LIBRARY_ACCEPTED, summary)
            await asyncio.to_thread(self._keep_copy)

    async def _sign(self, event: AuditEvent, summary: str) -> None:
        def then() -> None:
            self.count, self.problem = True, ""

        record = self._record(event, summary)
        await self._set.write(self.sha256, lambda tx, _: tx.record(record), then)

    def _record(self, event: AuditEvent, summary: str) -> AuditRecord:
        at = rfc3339(self._clock.now())
        kind, name = self.file.kind, self.file.name
        extra = {"set": kind, "kind": kind, "name": name, "digest": self.sha256}
        return AuditRecord(at=at, event=event, summary=summary, extra={**extra})


class PolicyInForce:
    """What the built-in tools' calls are judged by.

    Before `policy.toml` is accepted, what it denies and asks counts, and what was accepted before it denies and
    asks counts too; nothing that either allows does.
    """

    def __init__(self, accepted: AcceptedSettings, policy: Policy) -> None:
        self._accepted = accepted
        self._policy = policy

    def rules(self) -> tuple[Rule, ...]:
        if self._accepted.count:
            return rules_in_force(self._policy)
        try:
            before = parse_policy(self._accepted.accepted_before)
        except FileProblems:  # an earlier version of Aileron could read it
            before = Policy()
        kept = (*self._policy.restrictions().rules, *before.restrictions().rules)
        return rules_in_force(Policy(rules=kept))


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
