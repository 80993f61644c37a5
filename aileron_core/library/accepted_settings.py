"""The settings of `config.toml` under the vault's key: they decide where model traffic goes, and what a launch gets.

Without a vault they count as they are. With one, they count once they have verified in this process, or
a person accepted them; until then every call waits, and what widens or misleads is not in force.
A copy of the accepted file is kept in the home, so that a change can be shown beside it; it counts for what
it is only if its hash is what was signed.
"""

import asyncio
import logging
import sqlite3
from pathlib import Path
from typing import Final

from aileron_core.audit.events import AuditEvent
from aileron_core.audit.record import AuditRecord
from aileron_core.canonical import sha256_hex
from aileron_core.clock import Clock, parse_rfc3339, rfc3339
from aileron_core.console_port import AcceptedBeforeView, FileContentView, NotAcceptedView
from aileron_core.errors import Conflict, StorageUnavailable, VaultDamaged, VaultLocked
from aileron_core.library import acceptance
from aileron_core.library.settings_comparison import compare_settings
from aileron_core.storage.database import Database, Tx
from aileron_core.vault.atomic_file import read_private_file, replace_file
from aileron_core.vault.authenticated_sets import AuthenticatedSet, SetMac
from aileron_core.vault.vault import Vault

KIND: Final = "settings"
NAME: Final = "config.toml"
_SET: Final = "settings"
_COPY: Final = Path("store", "accepted-config.toml")
_MAX_BYTES: Final = 4 * 1024 * 1024
_log = logging.getLogger(__name__)


class AcceptedSettings:
    """Whether the settings that this process was started with are those that a person accepted.

    Args:
        text: of `config.toml`, as it was read; empty where there is none.
        home: the folder that the copy is kept in.
    """

    def __init__(
        self, database: Database, vault: Vault, clock: Clock, text: str, home: Path
    ) -> None:
        self._database = database
        self._vault = vault
        self._clock = clock
        self._text = text
        self.sha256 = sha256_hex(text.encode())
        self._set = AuthenticatedSet(vault, _SET)
        self._copy = home / _COPY
        self._before: AcceptedBeforeView | None = None
        self._changing = asyncio.Lock()
        self.count = False
        """They are what was accepted; true for good once they have verified."""
        self.problem = ""
        """Why they do not count, as a clause; empty where they do, or the vault is locked."""

    async def load(self) -> None:
        """Verify them, unless the vault is locked; called at the start, and when it was unlocked.

        Raises:
            StorageUnavailable: what was found could not be recorded; they do not count.
        """
        async with self._changing:
            if self.count and not self._vault.is_new:
                return  # what this process was started with does not change
            mac = await self._database.read(lambda c: acceptance.load_mac(c, _SET))
            try:
                why, is_first = await asyncio.to_thread(self._check, mac)
            except VaultLocked:
                return
            if is_first:
                await self._sign(
                    AuditEvent.LIBRARY_AUTHENTICATED, f"The vault's key protects {NAME}"
                )
            elif why and why != self.problem:
                await self._database.write(
                    lambda tx: tx.record(
                        self._record(
                            AuditEvent.LIBRARY_UNVERIFIED, f"{NAME} is not what was accepted: {why}"
                        )
                    )
                )
            self._before = await self._accepted_before(mac) if why else None
            self.count, self.problem = not why, why
            if not why and self._vault.state != "absent":
                await asyncio.to_thread(self._keep_copy)

    async def _accepted_before(self, mac: str | None) -> AcceptedBeforeView:
        """Return what was accepted instead, as far as the copy is what was signed last."""
        try:
            data = await asyncio.to_thread(read_private_file, self._copy, _MAX_BYTES)
        except OSError:
            data = None
        if data is not None:
            digest, text = sha256_hex(data), data.decode("utf-8", "backslashreplace")
            try:
                why = await asyncio.to_thread(self._set.check, digest, mac)
                at = await self._database.read(lambda c: _accepted_at(c, digest))
                if not why and at is not None:
                    return AcceptedBeforeView(
                        name=NAME,
                        digest=digest,
                        accepted_at=at,
                        text=text,
                        changes=compare_settings(text, self._text),
                    )
            except (VaultLocked, VaultDamaged, OSError, ValueError, sqlite3.Error):
                pass  # the whole file is shown instead
        return AcceptedBeforeView(name=NAME, digest="", accepted_at=0.0, text=None)

    def _keep_copy(self) -> None:
        data = self._text.encode()
        try:
            if read_private_file(self._copy, _MAX_BYTES) != data:
                self._copy.parent.mkdir(mode=0o700, exist_ok=True)
                replace_file(self._copy, data)
        except OSError as error:
            # A later change is shown without a difference then, and says so.
            _log.warning("no copy of %s could be kept: %s", NAME, type(error).__name__)

    def _check(self, mac: str | None) -> tuple[str, bool]:
        state = self._vault.state
        if state == "absent":
            return "" if mac is None else "the vault that authenticated it is gone", False
        try:
            if self._vault.is_new and self._set.is_unsigned():
                return (
                    ("", True) if self.count or mac is None else ("another vault signed it", False)
                )
            return self._set.check(self.sha256, mac), False
        except VaultDamaged as error:
            return error.message, False
        except OSError as error:
            return f"the vault could not be written: {error.strerror}", False

    def not_accepted(self) -> tuple[NotAcceptedView, ...]:
        """Return what a person is asked to accept, if they do not count."""
        if not self.problem:
            return ()
        return (
            NotAcceptedView(
                kind=KIND,
                name=NAME,
                file=NAME,
                digest=self.sha256,
                change="changed",
                gated=None,
                connector="",
                hosts=(),
                content=FileContentView(text=self._text, before=self._before),
            ),
        )

    async def accept(self, digest: str) -> None:
        """Record that a person accepts exactly these settings.

        Raises:
            Conflict: there is nothing to accept, or other settings were shown.
            VaultLocked: unlock it first; nothing is accepted.
            StorageUnavailable: it could not be written.
        """
        async with self._changing:
            if not self.problem or digest != self.sha256:
                raise Conflict(f"{NAME} does not wait to be accepted any more. Nothing changed.")
            await self._sign(AuditEvent.LIBRARY_ACCEPTED, f"Accepted the settings of {NAME}")
            self.count, self.problem = True, ""
            await asyncio.to_thread(self._keep_copy)

    async def _sign(self, event: AuditEvent, summary: str) -> None:
        mac: SetMac | None = None
        if self._vault.state != "absent":
            mac = await asyncio.to_thread(self._set.sign, self.sha256)

        def unit(tx: Tx) -> None:
            acceptance.save_mac(tx, _SET, None if mac is None else mac.to_text())
            tx.record(self._record(event, summary))

        await self._database.write(unit)
        if mac is not None:
            try:
                await asyncio.to_thread(self._set.confirm, mac)
            except OSError as error:
                raise StorageUnavailable(
                    f"It is on record, but the vault could not be written: {error.strerror}."
                ) from error

    def _record(self, event: AuditEvent, summary: str) -> AuditRecord:
        at = rfc3339(self._clock.now())
        extra = {"set": _SET, "kind": KIND, "name": NAME, "digest": self.sha256}
        return AuditRecord(at=at, event=event, summary=summary, extra={**extra})


def _accepted_at(connection: sqlite3.Connection, digest: str) -> float | None:
    """Return when the settings with *digest* were accepted last, or first signed; None if no record says so."""
    found = connection.execute(
        "SELECT at FROM audit WHERE run IS NULL AND event IN (?, ?) "
        "AND json_extract(body, '$.set') = ? AND json_extract(body, '$.digest') = ? "
        "ORDER BY seq DESC LIMIT 1",
        (AuditEvent.LIBRARY_ACCEPTED, AuditEvent.LIBRARY_AUTHENTICATED, _SET, digest),
    ).fetchone()
    return None if found is None else parse_rfc3339(str(found[0]))
