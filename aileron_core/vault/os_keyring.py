"""The keyring of the operating system, in which a person may have a key of the vault kept.

Its backends are chosen here by name: the settings file and the plug-ins that the package `keyring` goes by
are any program's to write, and would bring that program's code into this process.
"""

import base64
from collections.abc import Callable
from importlib import import_module
from typing import Final, Protocol, TypeVar

from aileron_core.errors import AileronError, KeyringUnavailable
from aileron_core.vault.secret import Secret

_T = TypeVar("_T")
_SERVICE: Final = "aileron vault"
_BACKENDS: Final = (
    "keyring.backends.macOS:Keyring",
    "keyring.backends.SecretService:Keyring",
    "keyring.backends.kwallet:DBusKeyring",
)


class KeyringBackend(Protocol):
    """What is used of `keyring.backend.KeyringBackend`."""

    def get_password(self, service: str, username: str) -> str | None: ...
    def set_password(self, service: str, username: str, password: str) -> None: ...
    def delete_password(self, service: str, username: str) -> None: ...


def find_backend() -> KeyringBackend:
    """Return the keyring of this computer.

    Raises:
        KeyringUnavailable: it has none, or the package `keyring` is not installed.
    """
    for name in _BACKENDS:
        module, _, class_name = name.partition(":")
        try:
            backend = getattr(import_module(module), class_name)
        except ImportError:
            raise KeyringUnavailable(
                "The package for the keyring is not installed: `pip install aileron[keyring]`."
            ) from None
        if backend.viable:
            return backend()
    raise KeyringUnavailable("No keyring is running on this computer.")


class OsKeyring:
    """Keeps one key for each vault. Its methods block, maybe on a question that the keyring asks.

    Args:
        find: returns the keyring; called for each use, before the vault is opened.
    """

    def __init__(self, find: Callable[[], KeyringBackend] = find_backend) -> None:
        self._find = find

    def load(self, vault: bytes) -> Secret:
        """Return the key of *vault*, which is named by its public key.

        Raises:
            KeyringUnavailable: it is locked, fails, or has no such key.
        """
        found = _tried("read", lambda: self._find().get_password(_SERVICE, vault.hex()))
        try:
            return Secret(base64.b64decode(found or "", validate=True))
        except ValueError:
            return Secret(b"")  # as a key that opens nothing

    def store(self, vault: bytes, key: Secret) -> None:
        """Keep *key* for *vault*.

        Raises:
            KeyringUnavailable: it is locked, or fails.
        """
        text = base64.b64encode(key.reveal()).decode()
        _tried("written", lambda: self._find().set_password(_SERVICE, vault.hex(), text))

    def delete(self, vault: bytes) -> None:
        """Delete the key of *vault*.

        Raises:
            KeyringUnavailable: it is locked, fails, or has none.
        """
        _tried("written", lambda: self._find().delete_password(_SERVICE, vault.hex()))


def _tried(done: str, use: Callable[[], _T]) -> _T:
    try:
        return use()
    except AileronError:
        raise
    except Exception as error:  # noqa: BLE001 - each backend has its own; a text may quote the key
        kind = type(error).__name__
    raise KeyringUnavailable(f"The keyring of this computer cannot be {done} ({kind}).")
