"""What a new passphrase has to be, and that one which was used is overwritten."""

from collections.abc import Generator
from contextlib import contextmanager

from aileron_core.errors import InvalidRequest
from aileron_core.vault.secret import Secret

MIN_PASSPHRASE = 8
"""Characters."""
_MAX_PASSPHRASE = 1024


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
