"""The keys that the history is sealed to: a pair for each day. Whoever holds them is given to the core."""

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

    def private_key(self, day: str) -> bytes | None:
        """Return the key that opens *day*; None while locked, and for a day whose key was destroyed."""
        ...

    def destroy(self, day: str) -> None:
        """Destroy the private key of *day* for good, wherever it is kept; once gone, nothing happens.

        It works while locked.
        """
        ...


class NoVault:
    """There is no vault, so there is no key: nothing is sealed, and nothing goes to disk."""

    locked = False

    def public_key(self, day: str) -> bytes | None:
        _ = day
        return None

    def private_key(self, day: str) -> bytes | None:
        _ = day
        return None

    def destroy(self, day: str) -> None:
        """Do nothing: there is none."""
