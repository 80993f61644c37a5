"""The audit's head under the vault's key: whoever rewrites the whole record cannot sign its new head.

While the vault is unlocked, each commit signs the head it makes, in the database and in `audit.head`; the
vault keeps the number of a record that was signed, and the head has the vault's generation. So an older
copy of one is found by the other. What was signed last is compared with both when the vault is unlocked,
before anything new is signed, and at each verification.
"""

import hmac
import json
import sqlite3
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self, cast

from aileron_core.audit.events import AuditEvent
from aileron_core.audit.head import read_signed_head
from aileron_core.audit.record import ChainHead
from aileron_core.clock import Clock
from aileron_core.errors import VaultDamaged, VaultLocked
from aileron_core.storage.database import SIGNED_HEAD
from aileron_core.vault.vault import Vault

_COUNTER = "audit"
_LABEL = "audit head"
_ANCHOR_SECONDS = 60
_OF_VAULT = (
    AuditEvent.VAULT_CREATED,
    AuditEvent.VAULT_UNLOCKED,
    AuditEvent.VAULT_PASSPHRASE_CHANGED,
    AuditEvent.VAULT_KEYRING_ALLOWED,
    AuditEvent.VAULT_KEYRING_FORGOTTEN,
    AuditEvent.VAULT_REPLACED,
)
"""The events that have the vault's generation."""


@dataclass(frozen=True, slots=True, order=True)
class SignedHead:
    """A head of the record as the vault's key signed it."""

    seq: int
    hash: str
    """Hexadecimal."""
    generation: int
    """The vault's, when it was signed."""

    @classmethod
    def parse(cls, text: str | None) -> tuple[Self, str] | None:
        """Return the head that *text* states, and its HMAC; None where it states none."""
        try:
            found: Any = json.loads(text or "null")
        except (ValueError, RecursionError):
            return None
        if not isinstance(found, dict):
            return None
        fields = cast("dict[str, Any]", found)
        numbers = [fields.get("seq"), fields.get("generation")]
        texts = [fields.get("hash"), fields.get("mac")]
        if not all(type(each) is int for each in numbers):
            return None
        if not all(isinstance(each, str) for each in texts):
            return None
        return cls(fields["seq"], fields["hash"], fields["generation"]), fields["mac"]


class HeadSigning:
    """Signs the head of one home's audit, and says whether the record still has what was signed."""

    def __init__(self, vault: Vault, home: Path, clock: Clock) -> None:
        self._vault = vault
        self._home = home
        self._clock = clock
        self._may_sign = False
        """What was signed before has been compared since the vault was unlocked."""
        self._signed = 0
        self._anchored = 0
        self._anchor_due = 0.0
        self.alarm = ""
        """How the record differed from what had been signed, as a sentence; empty where it did not."""

    def sign(self, head: ChainHead) -> str | None:
        """Return what is stored of *head* once signed; None while the vault is locked. On any thread."""
        if not self._may_sign:
            return None
        try:
            signed = SignedHead(head.seq, head.hash.hex(), self._vault.generation)
            mac = self._mac(signed)
        except VaultLocked:
            self._may_sign = False
            return None
        self._signed = head.seq
        return json.dumps(asdict(signed) | {"mac": mac}, separators=(",", ":"))

    def begin(self) -> None:
        """Sign from the next commit on: what there was has been compared."""
        self._may_sign = True

    def end(self) -> None:
        """Sign nothing any more until `begin`: the vault was locked."""
        self._may_sign = False

    @property
    def anchor_is_due(self) -> bool:
        """Whether there is something to `anchor`: once a minute at most."""
        return (
            self._may_sign
            and self._signed > self._anchored
            and (self._anchored == 0 or self._clock.monotonic() >= self._anchor_due)
        )

    def anchor(self) -> None:
        """Have the vault keep the number of the newest record that was signed.

        From then on a signed head of fewer records is an older copy. Blocks on the disk.

        Raises:
            VaultDamaged, OSError: as for `Vault.set_counter`.
        """
        signed = self._signed
        if not self._may_sign or signed <= self._anchored:
            return
        with suppress(VaultLocked):
            self._vault.set_counter(_COUNTER, signed)
            self._anchored = signed
            self._anchor_due = self._clock.monotonic() + _ANCHOR_SECONDS

    def problem(self, connection: sqlite3.Connection) -> str:
        """Return how the record differs from what was signed last, as a sentence; empty where it does not.

        Also where nothing was ever signed with this vault, and while it is locked, which nobody can tell.
        """
        try:
            least = self._vault.counter(_COUNTER)
            if least is None:
                return ""
            signed = self._newest(connection)
        except VaultLocked:
            return ""
        except VaultDamaged as error:
            return error.message
        if signed is None:
            return "The signed heads of the record are gone or were changed."
        if signed.seq < least:
            return (
                f"The record was signed up to {least}; the signed head is an older one, of "
                f"{signed.seq}."
            )
        query = "SELECT hash FROM audit WHERE seq = ?"
        found = connection.execute(query, (signed.seq,)).fetchone()
        if found is None:
            return f"Record {signed.seq} was signed with the vault's key, and is gone."
        if not isinstance(found[0], bytes) or found[0].hex() != signed.hash:
            return (
                f"Record {signed.seq} is not the one that was signed with the vault's key: the record "
                "was rewritten."
            )
        return ""

    def vault_problem(self, connection: sqlite3.Connection) -> str:
        """Return that the vault is older than the record, as a sentence; empty where it is not, or is locked."""
        try:
            self._vault.derive_key(_LABEL)  # while locked, nothing verified the generation
            now, signed = self._vault.generation, self._newest(connection)
        except VaultLocked:
            return ""
        on_record = max(_recorded_generation(connection), signed.generation if signed else 0)
        if now >= on_record:
            return ""
        return (
            f"The vault is an older copy: it was changed {on_record - now} times since. Accounts and "
            "a passphrase that were taken away since are back. Look at each account, and change the "
            "passphrase if it is an old one."
        )

    def _newest(self, connection: sqlite3.Connection) -> SignedHead | None:
        """Return the newest head that the vault's key signed."""
        stored = connection.execute(
            "SELECT value FROM meta WHERE key = ?", (SIGNED_HEAD,)
        ).fetchone()
        texts = (None if stored is None else str(stored[0]), read_signed_head(self._home))
        parsed = filter(None, map(SignedHead.parse, texts))
        return max(
            (
                head
                for head, mac in parsed
                if hmac.compare_digest(self._mac(head).encode(), mac.encode())
            ),
            default=None,
        )

    def _mac(self, head: SignedHead) -> str:
        text = f"{head.seq} {head.hash} {head.generation}"
        return hmac.digest(self._vault.derive_key(_LABEL), text.encode(), "sha256").hex()


def _recorded_generation(connection: sqlite3.Connection) -> int:
    """Return the highest generation of the vault on record, since an older copy was last found.

    A passphrase can be changed while the vault is locked, when no head is signed.
    """
    marks, highest = ", ".join("?" * len(_OF_VAULT)), 0
    rows = connection.execute(
        f"SELECT event, body FROM audit WHERE event IN ({marks}) ORDER BY seq DESC",  # noqa: S608 - marks
        _OF_VAULT,
    )
    for event, body in rows:
        try:
            found = json.loads(body).get("generation")
        except (ValueError, TypeError, AttributeError, RecursionError):
            continue  # the verification of the chain names it
        highest = max(highest, found if type(found) is int else 0)
        if event == AuditEvent.VAULT_REPLACED:
            break
    return highest
