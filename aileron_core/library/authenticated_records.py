"""Acceptance records in memory and in the database, authenticated with the vault's key once there is a vault.

Without a vault a row counts that the audit accounts for (`aileron_core.library.acceptance`). With one, all
rows of a set must besides be what was signed last, or none of them counts: a set has one HMAC-SHA256 over all of
it and a counter, which the vault keeps, so that a row that is missing, added or edited is found, and so is an
older copy of the whole set. While the vault is locked nothing can be verified: the records are listed, and calls wait.
"""

import asyncio
import hmac
import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, cast

from aileron_core.audit.events import AuditEvent
from aileron_core.audit.record import AuditRecord
from aileron_core.canonical import Json, canonical
from aileron_core.clock import Clock, rfc3339
from aileron_core.errors import Conflict, StorageUnavailable, VaultDamaged, VaultLocked
from aileron_core.library import acceptance
from aileron_core.library.acceptance import KINDS, AcceptanceRecord, RecordKey, SetName
from aileron_core.storage.database import Database, Tx
from aileron_core.vault.vault import Vault


@dataclass(frozen=True, slots=True)
class SetMac:
    """What is stored beside a set."""

    counter: int
    mac: str
    """Hexadecimal."""

    def to_text(self) -> str:
        return json.dumps({"counter": self.counter, "mac": self.mac})

    @classmethod
    def parse(cls, text: str) -> "SetMac | None":
        """Return what *text* states; None where it is none."""
        try:
            found: Any = json.loads(text)
        except (ValueError, RecursionError):
            return None
        if not isinstance(found, dict):
            return None
        fields = cast("dict[str, Any]", found)
        counter, mac = fields.get("counter"), fields.get("mac")
        if type(counter) is not int or not isinstance(mac, str) or not mac.isascii():
            return None
        return cls(counter, mac)


class AuthenticatedSet:
    """The set *name* of one home. Its methods need the unlocked vault, and raise `VaultLocked` without.

    To change a set: `sign` the new content, store both in one transaction, then `confirm`. Where the
    program ends in between, `check` confirms.
    """

    def __init__(self, vault: Vault, name: str) -> None:
        self._vault = vault
        self._name = name

    def is_unsigned(self) -> bool:
        """Return whether nothing was ever signed with this vault."""
        return self._vault.counter(self._name) is None

    def sign(self, content: Json) -> SetMac:
        """Return the HMAC of *content* as the set's next state."""
        return self._sign(content, (self._vault.counter(self._name) or 0) + 1)

    def confirm(self, mac: SetMac) -> None:
        """Have earlier states of the set count no more; blocks on the disk.

        Raises:
            OSError: the vault cannot be written.
        """
        self._vault.set_counter(self._name, mac.counter)

    def check(self, content: Json, stored: str | None) -> str:
        """Return why *content* is not what was signed last, as a clause; empty if it is. Blocks on the disk.

        Args:
            stored: the HMAC that is kept beside the set, as `SetMac.to_text` wrote it; None where there is nothing.
        """
        counter = self._vault.counter(self._name)
        mac = None if stored is None else SetMac.parse(stored)
        if counter is None:
            return "it was not authenticated with this vault"
        if mac is None:
            return "its HMAC is gone or damaged"
        if mac.counter < counter:
            return "it was replaced by an older copy"
        if not hmac.compare_digest(mac.mac, self._sign(content, mac.counter).mac):
            return "it was changed"
        if mac.counter > counter + 1:
            return "the vault was replaced by an older copy"
        if mac.counter > counter:  # the last change was stored, and not confirmed
            self.confirm(mac)
        return ""

    def _sign(self, content: Json, counter: int) -> SetMac:
        key = self._vault.derive_key(f"authenticated set: {self._name}")
        text = canonical({"set": self._name, "counter": counter, "content": content})
        return SetMac(counter, hmac.digest(key, text, "sha256").hex())


_MOST_NAMES = 5
"""Named in an alarm; the others are counted."""
_NOUNS: Final[Mapping[SetName, str]] = {
    "accepted files": "what was accepted",
    "accepted projects": "what was accepted of projects",
    "settings": "what was accepted of config.toml",
    "policy": "what was accepted of policy.toml",
}
_POLICY: Final = ("policy", "policy.toml")
_SIGNED_BARE: Final = ("settings", "policy")
"""Sets of one row, of which versions before schema 7 signed the digest alone."""


class SignedSet:
    """A set of a home under the vault's key once there is a vault: its HMAC is kept in the database.

    Args:
        name: the set's, in the vault and in the database; promised once released.
    """

    def __init__(self, database: Database, vault: Vault, name: str) -> None:
        self._database = database
        self._vault = vault
        self._set = AuthenticatedSet(vault, name)
        self._name = name

    def check(
        self, content: Json, mac: str | None, unsigned: tuple[str, bool] | None
    ) -> tuple[str, bool]:
        """Return why *content* does not count as a clause, and whether it has still to be signed. Blocks.

        Args:
            content: as it was signed.
            mac: what is kept beside it.
            unsigned: the answer where the vault never signed this set; None: that is no reason for it to count.

        Raises:
            VaultLocked: nothing can be said before it is unlocked.
        """
        if self._vault.state == "absent":
            return "" if mac is None else "the vault that authenticated it is gone", False
        try:
            if unsigned is not None and self._set.is_unsigned():
                return unsigned
            return self._set.check(content, mac), False
        except VaultDamaged as error:
            return error.message, False
        except OSError as error:
            return f"the vault could not be written: {error.strerror}", False

    async def write(
        self, content: Json, unit: Callable[[Tx, bool], object], then: Callable[[], None]
    ) -> None:
        """Sign *content*, where there is a vault, and run *unit*, which writes it and records that.

        Args:
            content: of the whole set, as it is afterwards.
            unit: is told whether it was signed.
            then: called once it is written.

        Raises:
            VaultLocked: nothing was written.
            StorageUnavailable: it could not be written, or the vault could not, as the message says.
        """
        mac: SetMac | None = None
        if self._vault.state != "absent":
            mac = await asyncio.to_thread(self._set.sign, content)

        def whole(tx: Tx) -> None:
            unit(tx, mac is not None)
            acceptance.save_mac(tx, self._name, None if mac is None else mac.to_text())

        await self._database.write(whole)
        then()
        if mac is not None:
            try:
                await asyncio.to_thread(self._set.confirm, mac)
            except OSError as error:
                raise StorageUnavailable(
                    f"It is done and on record, but the vault could not be written ({error.strerror}): "
                    "a copy of the state before would be taken for it. Free some space, then accept "
                    "something again."
                ) from error


class AuthenticatedRecords:
    """The acceptance records of the set *name*."""

    def __init__(self, database: Database, vault: Vault, clock: Clock, name: SetName) -> None:
        self._database = database
        self._vault = vault
        self._clock = clock
        self._set = SignedSet(database, vault, name)
        self._name = name
        self._noun = _NOUNS[name]
        self._kinds = frozenset(kind for kind, each in KINDS.items() if each.set == name)
        self._records: dict[RecordKey, AcceptanceRecord] = {}
        self._changing = asyncio.Lock()
        self._loaded = False
        self.problem = ""
        """Why nothing that was accepted earlier counts, as a sentence; empty while it does."""

    @property
    def records(self) -> Mapping[RecordKey, AcceptanceRecord]:
        return MappingProxyType(self._records)

    @property
    def waits_for_vault(self) -> bool:
        """Whether nothing of it may be relied upon before the vault is unlocked."""
        return not self._loaded or self._vault.state == "locked"

    async def load_recorded(self) -> Collection[AcceptanceRecord]:
        """Return what counts, and what would if another program put its row or the HMAC back."""
        if not self.problem:  # asked twice a second: the audit is read only where it says more
            return self._records.values()
        recorded = self._mine(await self._database.read(acceptance.load_recorded))
        return (_by_key(recorded) | self._records).values()

    async def remove(self, removed: Mapping[AcceptanceRecord, AuditRecord]) -> None:
        """Have *removed* be accepted no more, also while the vault is locked or nothing counts.

        Their records say so alone then: the set is signed without them once it verifies.

        Raises:
            StorageUnavailable: it could not be written.
        """
        try:
            await self.change(delete=removed)
        except (VaultLocked, Conflict):

            def unit(tx: Tx) -> None:
                for record in removed.values():
                    tx.record(record)

            await self._database.write(unit)
            for each in removed:
                self._records.pop(each.key, None)

    async def load(self, first: AcceptanceRecord | None = None) -> None:
        """Read the records, verify them unless the vault is locked, and raise an alarm where they do not.

        Args:
            first: what counted without a row, and gets one where a new vault signs the set.

        Raises:
            StorageUnavailable: an alarm, or the first signature, could not be recorded; nothing counts then.
        """
        async with self._changing:
            rows, mac, accounted, recorded_at = await self._database.read(
                lambda c: (
                    self._mine(acceptance.load_rows(c)),
                    acceptance.load_mac(c, self._name),
                    self._mine(acceptance.load_records(c)),
                    acceptance.load_times(c) if self._name in _SIGNED_BARE else {},
                )
            )
            if self._vault.state == "locked":
                self._loaded, self._records = False, _by_key(accounted)
                return
            # Without a vault the rows counted; what one signed before this one does not.
            counted = (
                ("", True)
                if self._loaded or mac is None
                else ("another vault authenticated it", False)
            )
            unsigned = counted if self._vault.is_new else None
            is_lost = self._name == "policy" and not accounted and _POLICY in recorded_at
            if self._name == "policy" and not (rows or self._records or is_lost):
                unsigned = "", False  # nobody has accepted one, which is no alarm
            try:
                why, is_first = await asyncio.to_thread(
                    self._set.check, _content(rows), mac, unsigned
                )
                is_one = len(accounted) == len(rows) == 1
                if why and is_one and _is_as_recorded(rows[0], recorded_at):
                    bare, _ = await asyncio.to_thread(self._set.check, rows[0].digest, mac, None)
                    why, is_first = (why, False) if bare else ("", True)
                if is_lost and not why:
                    why, is_first = "its row is not what is on record", False
            except VaultLocked:  # locked again meanwhile
                self._loaded = False
                return
            if is_first:
                await self._sign(self._records if self._loaded else _by_key(accounted), first)
            elif not why and self._vault.state == "unlocked" and len(accounted) < len(rows):
                await self._sign(_by_key(accounted))  # some were removed while it was locked
            elif why:
                self._records = {}
                await self._alarm(why, rows)
            else:
                self._records, self.problem = _by_key(accounted), ""
            self._loaded = True

    def _mine(self, records: Iterable[AcceptanceRecord]) -> list[AcceptanceRecord]:
        return [each for each in records if each.kind in self._kinds]

    async def change(
        self,
        *,
        save: Mapping[AcceptanceRecord, AuditRecord] = MappingProxyType({}),
        delete: Mapping[AcceptanceRecord, AuditRecord] = MappingProxyType({}),
    ) -> None:
        """Have the keys of *delete* be accepted no more, then those of *save*, each with its record.

        Raises:
            VaultLocked: there is a vault, and it is locked. Nothing changed.
            Conflict: nothing counts that could be deleted. Nothing changed.
            StorageUnavailable: it could not be written.
        """
        async with self._changing:
            if self.waits_for_vault:
                raise VaultLocked(
                    "The vault is locked, and its key protects what is accepted. Unlock it first. "
                    "Nothing changed."
                )
            if not (save or self._records):  # signing the empty set would delete the other rows
                raise Conflict(f"Nothing of {self._noun} counts. Nothing changed.")

            def unit(tx: Tx) -> None:
                for each, record in delete.items():
                    acceptance.delete_record(tx, each.kind, each.name)
                    tx.record(record)
                for each, record in save.items():
                    acceptance.save_record(tx, each)
                    tx.record(record)

            gone = _by_key(delete)
            after = {key: each for key, each in self._records.items() if key not in gone}
            await self._write(unit, after | _by_key(save))

    async def _sign(
        self, records: dict[RecordKey, AcceptanceRecord], first: AcceptanceRecord | None = None
    ) -> None:
        after, summary = records, f"The vault's key protects {self._noun} from now on"
        extra: dict[str, Json] = {"set": self._name}
        if first is not None:
            after = {**records, first.key: first}
            extra |= {"kind": first.kind, "name": first.name, "digest": first.digest}
        extra["count"] = len(after)
        record = self._record(AuditEvent.LIBRARY_AUTHENTICATED, summary, extra)

        def unit(tx: Tx) -> None:
            if first is not None:
                acceptance.save_record(tx, first)
            tx.record(record)

        await self._write(unit, after)

    async def _write(
        self, unit: Callable[[Tx], object], after: dict[RecordKey, AcceptanceRecord]
    ) -> None:
        def whole(tx: Tx, is_signed: bool) -> None:
            unit(tx)
            if is_signed or self.problem:
                # The alarm named what had not verified; signed is what counts, and nothing else.
                acceptance.delete_others(tx, self._kinds, after)

        def then() -> None:
            self._records, self.problem = after, ""

        await self._set.write(_content(after.values()), whole, then)

    async def _alarm(self, why: str, rows: Sequence[AcceptanceRecord]) -> None:
        """Say once, and on record, that nothing of the set counts."""
        names = sorted(each.name for each in rows)
        shown = ", ".join(names[:_MOST_NAMES])
        more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
        named = f" ({shown}{more})" if names else ""
        problem = (
            f"{self._noun.capitalize()} cannot be relied upon{named}: {why}. None of it counts. Look "
            "at each, and accept it again."
        )
        if problem == self.problem:
            return
        summary = f"{self._noun.capitalize()} does not count any more: {why}"
        extra: dict[str, Json] = {"set": self._name, "names": list[Json](names)}
        record = self._record(AuditEvent.LIBRARY_UNVERIFIED, summary, extra)
        await self._database.write(lambda tx: tx.record(record))
        self.problem = problem

    def _record(self, event: AuditEvent, summary: str, extra: dict[str, Json]) -> AuditRecord:
        at = rfc3339(self._clock.now())
        return AuditRecord(at=at, event=event, summary=summary, extra=extra)


def _is_as_recorded(row: AcceptanceRecord, recorded_at: Mapping[RecordKey, str]) -> bool:
    """Return whether *row* is, besides its digest, what the migration to schema 7 made of its record."""
    try:
        at = rfc3339(row.accepted_at)
    except (ValueError, OverflowError, OSError):
        return False
    return recorded_at.get(row.key) == at and row.accepted_by == "person"


def _by_key(records: Iterable[AcceptanceRecord]) -> dict[RecordKey, AcceptanceRecord]:
    return {each.key: each for each in records}


def _content(records: Iterable[AcceptanceRecord]) -> Json:
    """Return what is signed: every column but the number of the row's audit record, in one order."""
    return [
        [each.kind, each.name, each.digest, each.accepted_at, each.accepted_by]
        for each in sorted(records, key=lambda each: (each.kind, each.name))
    ]
