"""Vaults whose passphrase costs next to nothing to try: real ones take a sixth of a second each time."""

import asyncio
import contextlib
from collections.abc import Generator
from functools import wraps
from pathlib import Path
from typing import Any

import pytest

from aileron_core.app import open_vault
from aileron_core.home.layout import Home
from aileron_core.vault.secret import Secret
from aileron_core.vault.vault import Vault
from aileron_core.vault.vault_file import KdfParameters

PHRASE = "correct horse battery"
"""What opens the vaults of these tests."""
KNOWN = {"AILERON_VAULT_PASSPHRASE": PHRASE}
"""A person's environment in which no command asks for it."""
CHEAP = KdfParameters(salt=b"", iterations=1, memory_kib=64, lanes=1)
"""What Argon2id costs with the parameters of a real vault is the matter of the vault's own tests."""


@contextlib.contextmanager
def cheap_passphrases() -> Generator[None]:
    """Have every passphrase that this process sets be a cheap one; its cost stands in the vault's file."""
    real = Vault.__init__

    @wraps(real)
    def with_cheap(vault: Vault, *args: Any, **named: Any) -> None:
        real(vault, *args, **{"kdf": CHEAP, **named})

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Vault, "__init__", with_cheap)
        yield


def make_vault(home: Path, phrase: str) -> None:
    """Do what `aileron vault init` does while no console runs."""

    async def create() -> None:
        async with open_vault(Home(home)) as vault:
            await vault.create(Secret(phrase), way="command line", import_from=None)

    with cheap_passphrases():
        asyncio.run(create())
