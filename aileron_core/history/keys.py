"""The keys that the history is sealed to: a pair for each day. Whoever holds them is given to the core."""

from collections.abc import Sequence
from typing import Protocol


class HistoryKeys(Protocol):
    """A pair of X25519 keys for each day, each key as its 32 raw bytes. A day is a UTC date, `2026-07-14`.

    Called on any thread. Every method may raise `OSError` where the keys cannot be reached.
    """

    @property
    def locked(self) -> bool:
        """Whether the private keys are out of reach until a person unlocks them."""
        ...

    def public_key(self, day: str) -> bytes | None:
        """Return the key that *day* is sealed to, made on first use; None where nothing is to be kept.

        It works while locked. A day whose key was destroyed has none again.
        """
        ...

    def private_keys(self, day: str) -> Sequence[bytes]:
        """Return the keys that open *day*: none while locked, and for a day whose keys were destroyed.

        A day has another one from its first unlock on, where the first was made while locked.
        """
        ...

    def days(self) -> Sequence[str]:
        """Return the days that have a private key. It works while locked."""
        ...

    def destroy(self, day: str) -> None:
        """Destroy the private keys of *day* for good, wherever they are kept; once gone, nothing happens.

        It works while locked.
        """
        ...
