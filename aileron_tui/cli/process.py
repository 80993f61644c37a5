"""What a console's process does first: closes its memory, drops variables that could press keys, prints a line."""

import contextlib
import os
import resource
import shutil
import sys
from collections.abc import Callable, Generator
from pathlib import Path
from typing import TYPE_CHECKING

from aileron_core.errors import InvalidRequest
from aileron_core.text import escape

if TYPE_CHECKING:
    from aileron_core.vault.secret import Secret

Given = tuple[int | None, str | None]
"""How something was given that nobody types: the descriptor or the file that has it."""

_PR_SET_DUMPABLE = 4


def close_memory() -> None:
    """Close memory and environment to other programs of this user, on Linux (docs/architecture.md#the-process)."""
    # No core dump either, where the system has no such switch.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


_from_environment: "Secret | None" = None


def take_passphrase_variable() -> None:
    """Keep the vault's passphrase of the environment for `given_passphrase`, and overwrite it there."""
    global _from_environment  # noqa: PLW0603 - the environment is one as well
    from aileron_core.vault.unattended import take_passphrase_variable as take

    close_memory()
    _from_environment = take()


def given_passphrase(given: Given) -> "Secret | None":
    """Return the passphrase that was given unattended; None without one.

    Raises:
        InvalidRequest: it was given twice, or what should have it cannot be used.
    """
    descriptor, file = given
    if descriptor is None and file is None:
        return _from_environment
    if (descriptor is not None and file is not None) or _from_environment is not None:
        raise InvalidRequest(
            "The passphrase was given twice. Use one of --passphrase-fd, --passphrase-file and "
            "AILERON_VAULT_PASSPHRASE."
        )
    from aileron_core.vault import unattended

    if descriptor is not None:
        return unattended.read_secret_descriptor(descriptor)
    return unattended.read_secret_file(Path(file or ""))


def drop_key_variables() -> None:
    """Drop the variables by which an environment could press keys or load code in the console.

    `TEXTUAL_PRESS` presses keys, `TEXTUAL_DRIVER` imports a module, `TEXTUAL_LOG` and `TEXTUAL_SCREENSHOT`
    write what is on screen to a file, `ESCDELAY` moves keys in time. A folder's own settings (direnv)
    may set them without anybody looking.
    """
    for name in [name for name in os.environ if name.startswith("TEXTUAL") or name == "ESCDELAY"]:
        del os.environ[name]


@contextlib.contextmanager
def opening_line(home: Path) -> Generator[Callable[[], None]]:
    """Print that *home* is being opened; yield what erases the line, as the end of the context does.

    A terminal shows it while the rest is imported. Where the console draws on none, nothing is
    printed.
    """
    terminal = next((each for each in (sys.stderr, sys.stdout) if each.isatty()), None)
    with contextlib.suppress(ValueError):
        home = Path("~") / home.relative_to(Path.home())
    # A line that wrapped could not be erased.
    text = escape(f"aileron: opening {home} ...")[: shutil.get_terminal_size().columns - 1]
    shown = terminal is not None and sys.stdin.isatty() and sys.stdout.isatty()

    def erase() -> None:
        nonlocal shown
        if shown and terminal is not None:
            terminal.write(f"\r{' ' * len(text)}\r")
            terminal.flush()
        shown = False

    if shown and terminal is not None:
        terminal.write(text)
        terminal.flush()
    try:
        yield erase
    finally:
        erase()
