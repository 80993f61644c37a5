"""Sets of records that another program may read and must not change, under the vault's key.

A set has one HMAC-SHA256 over all of it and a counter, which the vault keeps: a row that is missing, added
or edited is found, and so is an older copy of the whole set. The HMAC is stored beside the set.
"""

import hmac
import json
from dataclasses import dataclass
from typing import Any, cast

from aileron_core.canonical import Json, canonical
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
