"""A secret value that no log, exception, screen or file shows by accident, and what a new passphrase has to be."""

import hmac
from collections.abc import Generator
from contextlib import contextmanager
from typing import NoReturn

from aileron_core.errors import InvalidRequest

MIN_PASSPHRASE = 8
"""Characters."""
_MAX_PASSPHRASE = 1024


class Secret:
    """Bytes that are read with `reveal` alone: repr, str, format, pickle and JSON never give them.

    Two are compared in constant time. `wipe` overwrites them; Python may have made copies of what
    `reveal` returned.
    """

    __slots__ = ("_value",)

    def __init__(self, value: bytes | bytearray | str) -> None:
        self._value = bytearray(value.encode() if isinstance(value, str) else value)

    def reveal(self) -> bytes:
        """Return the bytes, as a copy that nothing overwrites."""
        return bytes(self._value)

    def reveal_text(self) -> str:
        """Return the bytes as text.

        Raises:
            ValueError: they are not UTF-8. The message quotes none of them.
        """
        try:
            return self._value.decode()
        except UnicodeDecodeError:
            pass  # its text and its attributes hold the value
        raise ValueError("the secret is not text in UTF-8")

    def view(self) -> memoryview:
        """Return the bytes without a copy, to be read only; `wipe` fails while a view is held."""
        return memoryview(self._value).toreadonly()

    def wipe(self) -> None:
        """Overwrite the bytes and empty the secret; a second time nothing happens."""
        self._value[:] = bytes(len(self._value))
        self._value.clear()

    def __len__(self) -> int:
        return len(self._value)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Secret):
            return NotImplemented
        return hmac.compare_digest(self._value, other._value)

    __hash__ = None  # type: ignore[assignment]  # a hash in a dict would be a way to guess it

    def __repr__(self) -> str:
        return "Secret(...)"

    def __format__(self, spec: str) -> str:
        return repr(self)

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("a Secret is neither pickled nor copied")


def check_passphrase(passphrase: Secret) -> None:
    """Refuse a new passphrase that is too short or too long.

    Raises:
        InvalidRequest: it is.
    """
    with passphrase.view() as view:
        characters = sum(byte & 0xC0 != 0x80 for byte in view)
        size = len(view)
    if characters < MIN_PASSPHRASE or size > _MAX_PASSPHRASE:
        raise InvalidRequest(
            f"A passphrase has at least {MIN_PASSPHRASE} characters, and at most {_MAX_PASSPHRASE} bytes."
        )


@contextmanager
def wiped(*passphrases: Secret) -> Generator[None]:
    """Overwrite *passphrases* at the end of the context."""
    try:
        yield
    finally:
        for each in passphrases:
            each.wipe()
