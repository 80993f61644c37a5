"""The commands `aileron vault ...`: the passphrase is asked for, never in an argument or in what is printed."""

import contextlib
import getpass
import os
import sys
from collections.abc import Generator
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import click

from aileron_core.clock import SystemClock, rfc3339
from aileron_core.console_port.account_intents import WideningIntent
from aileron_core.console_port.codec import event_from_frame, to_frame
from aileron_core.console_port.events import CoreEvent, VaultStatus, VaultUnlocked
from aileron_core.console_port.intents import (
    ChangePassphrase,
    CommandIntent,
    CreateVault,
    LockVault,
    ReadVault,
    SetKeyring,
    UnlockVault,
)
from aileron_core.errors import ConsoleErrorResponse, ConsoleUnavailable, InvalidRequest
from aileron_core.home.client import HomeClient
from aileron_core.home.layout import Home
from aileron_core.home.owner import OwnerNotVerified, lock_owner
from aileron_core.text import escape
from aileron_core.vault.history_keys import VaultHistoryKeys
from aileron_core.vault.secret import Secret, check_passphrase
from aileron_core.vault.vault import Unlocked, Vault
from aileron_tui.cli.output import EXIT, UNATTENDED, CliError, CommandContext, local_time
from aileron_tui.cli.process import Given, close_memory, given_passphrase

_Event = TypeVar("_Event", bound=CoreEvent)
_PROMPT = "Passphrase of the vault: "
_OTHER_VERSION = "The console that runs is of another version of Aileron. Restart it."
_IN_KEYRING = (
    "The system's keyring keeps a key of the vault. After a start with `aileron console --keyring`, or once "
    "the passphrase was typed in a console, U and enter unlock it without."
)


def create_vault(context: CommandContext, passphrase: Given, import_from: str | None) -> int:
    """Create the vault, with a console or without one."""
    close_memory()
    source = None if import_from is None else Path(import_from).expanduser().absolute()
    if source is not None and not source.is_file():
        raise CliError(EXIT.USAGE, f"There is no file {source}. Name a vault of upstream Aileron.")
    running = is_running(context)
    if (state := _state(context, running=running).state) != "absent" and source is None:
        raise CliError(
            EXIT.FAILED,
            f"There is a vault already; it is {state}. `aileron vault unlock` unlocks it.",
        )
    if source is None and (upstream := context.home / "secrets.json").is_file():
        click.echo(
            f"{escape(str(upstream))} looks like a vault of upstream Aileron. "
            "`aileron vault init --import FILE` makes a vault of it; a vault that is there cannot read it later.",
            err=True,
        )
    secret = given_passphrase(passphrase)
    if secret is None and source is not None:
        secret = ask_unseen(f"Passphrase of {source.name}: ")
    secret = secret or _ask_twice("New passphrase")
    if running:
        asked = CreateVault(passphrase=secret, import_from=str(source or ""))
        imported = ask(context, asked, VaultUnlocked).imported
        return _say_created(context, "unlocked", imported, source)
    import asyncio

    created = asyncio.run(_create_alone(Home(context.home), secret, source))
    return _say_created(context, "locked", created.imported, source)


async def _create_alone(home: Home, passphrase: Secret, source: Path | None) -> Unlocked:
    """Create the vault of a home that no console has open, on record."""
    from aileron_core.app import open_vault

    async with open_vault(home) as vault:
        return await vault.create(passphrase, way="command line", import_from=source)


def _say_created(
    context: CommandContext, state: str, imported: int | None, source: Path | None
) -> int:
    file = context.home / "vault.json"
    context.show({"file": str(file), "state": state, "imported": imported})
    context.say(f"✓ {escape(str(file))} is your vault; it is {state}.", fg="green")
    if imported is not None:
        noun = "entry" if imported == 1 else "entries"
        context.say(f"{imported} {noun} came from {escape(str(source))}, which stays as it was.")
    context.say("Nobody can open it without the passphrase, and nobody can reset it: keep it safe.")
    return EXIT.DONE


def unlock_vault(context: CommandContext, passphrase: Given) -> int:
    """Unlock the vault of the running console."""
    close_memory()
    state = _state(context, running=need_console(context, "vault unlock")).state
    if state == "absent":
        raise CliError(EXIT.FAILED, "There is no vault. Create one with `aileron vault init`.")
    if state == "unlocked":
        return _say_done(context, "The vault is unlocked already.", state)
    secret = given_passphrase(passphrase) or ask_unseen(_PROMPT)
    done = ask(context, UnlockVault(passphrase=secret), VaultUnlocked)
    if context.json:
        vault = _body(_state(context, running=True)) | {"problem": done.problem}
        since = rfc3339(done.failed_since) if done.failed_since is not None else None
        failed = {"failed_attempts": done.failed_attempts, "failed_since": since}
        context.show({"vault": vault, **failed, "imported": done.imported})
    context.say("✓ The vault is unlocked.", fg="green")
    _say_failed(context, done)
    if done.problem:
        context.say(escape(done.problem), fg="yellow")
    return EXIT.DONE


@contextlib.contextmanager
def opened_history(context: CommandContext, given: Given) -> Generator[VaultHistoryKeys]:
    """Open the keys of the history in this process; the vault of a running console stays as it is.

    Raises:
        WrongPassphrase, RateLimited, VaultAbsent, VaultDamaged: the vault could not be opened.
    """
    close_memory()
    vault = Vault(context.home, SystemClock())
    failed = vault.unlock(given_passphrase(given) or ask_unseen(_PROMPT)).failed
    _say_failed(context, VaultUnlocked(failed_attempts=failed.count, failed_since=failed.since))
    try:
        yield VaultHistoryKeys(vault, context.home)
    finally:
        vault.lock()


def lock_vault(context: CommandContext) -> int:
    """Lock the vault of the running console."""
    was = _state(context, running=need_console(context, "vault lock")).state == "unlocked"
    tell(context, LockVault())
    return _say_done(
        context, "✓ The vault is locked." if was else "It was locked already.", "locked"
    )


def show_vault(context: CommandContext) -> int:
    """Print how the vault is; it works without a console."""
    running = is_running(context)
    vault = _state(context, running=running)
    context.show({**_body(vault), "console": running})
    if vault.state == "absent":
        context.say("There is no vault. Create one with `aileron vault init`.")
        return EXIT.DONE
    noun = "entry" if vault.entries == 1 else "entries"
    how = UNATTENDED if vault.unattended else f"The vault is {vault.state}."
    context.say(f"{how} It has {vault.entries} {noun}.")
    if vault.has_keyring:
        context.say(_IN_KEYRING)
    if not running:
        context.say("No console is running. Whenever one starts, the vault is locked.")
    _say_failed(context, vault)
    if vault.problem:
        context.say(escape(vault.problem), fg="yellow")
    return EXIT.DONE


def change_passphrase(context: CommandContext) -> int:
    """Ask for the old and a new passphrase, and change it in the running console."""
    close_memory()
    state = _state(context, running=need_console(context, "vault change-passphrase")).state
    if state == "absent":
        raise CliError(EXIT.FAILED, "There is no vault. Create one with `aileron vault init`.")
    old = ask_unseen(_PROMPT)
    new = _ask_twice("New passphrase")
    tell(context, ChangePassphrase(old=old, new=new))
    return _say_done(
        context,
        "✓ The passphrase was changed. Copies of vault.json from before still open with the old one.",
        state,
    )


def set_keyring(context: CommandContext, switch: str) -> int:
    """Ask for the passphrase, and have the system's keyring keep a key of the vault, or not."""
    close_memory()
    need_console(context, "vault keyring")
    on = switch == "on"
    tell(context, SetKeyring(passphrase=ask_unseen(_PROMPT), on=on))
    said = f"✓ {_IN_KEYRING}" if on else "✓ The passphrase alone opens the vault."
    return _say_done(context, said, _state(context, running=True).state)


def _say_done(context: CommandContext, sentence: str, state: str) -> int:
    context.show({"state": state})
    context.say(sentence)
    return EXIT.DONE


def _say_failed(context: CommandContext, of: VaultStatus | VaultUnlocked) -> None:
    if of.failed_attempts:
        noun = "wrong passphrase was" if of.failed_attempts == 1 else "wrong passphrases were"
        since = local_time(rfc3339(of.failed_since or 0))
        context.say(f"{of.failed_attempts} {noun} given since {since}.", fg="yellow")


def need_console(context: CommandContext, command: str) -> bool:
    """Return True; the vault is unlocked in a console's memory and nowhere else.

    Raises:
        ConsoleUnavailable: none runs.
    """
    if not is_running(context):
        raise ConsoleUnavailable(
            f"No console runs on {context.home}, and `aileron {command}` needs one. "
            "Start it with `aileron console` in another pane."
        )
    return True


def is_running(context: CommandContext) -> bool:
    """Return whether a console has the home open."""
    try:
        return lock_owner(context.home) is not None
    except OwnerNotVerified as error:
        raise ConsoleUnavailable(str(error)) from error


def tell(context: CommandContext, intent: CommandIntent) -> CoreEvent | None:
    """Have the running console carry out *intent*; return the event that answers it, if one does.

    Raises:
        ConsoleUnavailable: no console owns the home, it went away, or it is of another version.
        ConsoleErrorResponse: it did nothing.
    """
    answer: Any = HomeClient(context.home).request("POST", "/v1/intents", to_frame(intent))[1]
    try:
        return None if answer is None else event_from_frame(answer)
    except ValueError as error:
        raise ConsoleUnavailable(_OTHER_VERSION) from error


def ask(context: CommandContext, intent: CommandIntent, kind: type[_Event]) -> _Event:
    """Return what `tell` does, an event of this *kind*; errors as of `tell`."""
    answer = tell(context, intent)
    if not isinstance(answer, kind):
        raise ConsoleUnavailable(_OTHER_VERSION)
    return answer


def _state(context: CommandContext, *, running: bool) -> VaultStatus:
    """Return how the vault is; without a console, what the files say."""
    if running:
        return ask(context, ReadVault(), VaultStatus)
    vault = Vault(context.home, SystemClock())
    failed = vault.failed_attempts
    return VaultStatus(
        state=vault.state,
        problem=vault.problem,
        entries=len(vault.entries()),
        failed_attempts=failed.count,
        failed_since=failed.since if failed.count else None,
        has_keyring=vault.has_keyring,
    )


def _body(vault: VaultStatus) -> dict[str, Any]:
    """Return *vault* as `--json` prints it."""
    since = vault.failed_since
    return {
        "state": vault.state,
        "problem": vault.problem,
        "entries": vault.entries,
        "failed_attempts": vault.failed_attempts,
        "failed_since": None if since is None else rfc3339(since),
        "unattended": vault.unattended,
        "keyring": vault.has_keyring,
    }


def ensure_unlocked(context: CommandContext, given: Secret | None = None) -> Secret | None:
    """Unlock the running console's vault, or create one; return the passphrase, None if it was unlocked.

    Args:
        given: the passphrase of an option, which is then not asked for.

    Raises:
        CliError: nobody can be asked.
    """
    state = _state(context, running=True).state
    if state == "unlocked":
        return None
    if not has_terminal() and (given is None or state == "absent"):
        command = "init" if state == "absent" else "unlock"
        what = "There is no vault" if state == "absent" else "The vault is locked"
        raise CliError(EXIT.FAILED, f"{what}. Run `aileron vault {command}` first.")
    if state == "locked":
        passphrase = given or ask_unseen(_PROMPT)
        _say_failed(context, ask(context, UnlockVault(passphrase=passphrase), VaultUnlocked))
        return passphrase
    click.echo(
        "There is no vault yet. It keeps your accounts, encrypted, under a passphrase of yours that "
        "nobody can reset.",
        err=True,
    )
    passphrase = given or _ask_twice("Passphrase for a new vault")
    tell(context, CreateVault(passphrase=passphrase))
    click.echo(
        f"✓ {escape(str(context.home / 'vault.json'))} is your vault; it is unlocked.", err=True
    )
    return passphrase


class PassphraseRequests:
    """Intents that need the vault's passphrase each: typed once for a command, or given by an option.

    Args:
        given: what an option or the environment has; None: a person types it.
    """

    def __init__(self, context: CommandContext, given: Secret | None) -> None:
        self._context = context
        self._given = given
        self._known = given

    def prepare(self) -> None:
        """Unlock or create the vault if need be, and have a passphrase; errors as of `ensure_unlocked`."""
        self._known = ensure_unlocked(self._context, self._given) or self._given
        self._known = self._known or ask_unseen(_PROMPT)

    def ask(self, intent: WideningIntent, kind: type[_Event]) -> _Event:
        """Return what the console answers. A wrong passphrase that was typed is asked for again, twice."""
        for left in (2, 1, 0):
            passphrase = self._known or ask_unseen(_PROMPT)
            try:
                answer = ask(self._context, replace(intent, passphrase=passphrase), kind)
            except ConsoleErrorResponse as error:
                # Only its details tell it from another refusal: the class is one for all of them.
                wrong = "attempts" in error.failure.details and error.failure.class_ == "forbidden"
                if not wrong or self._given is not None or not left:
                    raise
                self._known = None
                click.echo(escape(error.failure.message), err=True)
                continue
            self._known = passphrase
            return answer
        raise AssertionError("the last attempt raises")


def ask_unseen(prompt: str, what: str = "passphrase") -> Secret:
    """Return what a person types at the terminal, unseen; *what* it is, for messages.

    Raises:
        CliError: there is no terminal, or what was typed is no text.
    """
    if not has_terminal():
        raise CliError(
            EXIT.USAGE,
            f"The {what} is typed at a terminal, and there is none. Give it with --{what}-fd or "
            f"--{what}-file.",
        )
    try:
        return Secret(getpass.getpass(prompt))
    except (EOFError, UnicodeError):
        raise CliError(EXIT.FAILED, f"No {what} was given. Nothing was changed.") from None


def _ask_twice(what: str) -> Secret:
    first = ask_unseen(f"{what} (at least 8 characters): ")
    try:
        check_passphrase(first)
    except InvalidRequest as error:
        raise CliError(EXIT.USAGE, f"{error.message} Nothing was changed.") from None
    second = ask_unseen("The same again: ")
    if first != second:
        raise CliError(EXIT.USAGE, "The two passphrases differ. Nothing was changed.")
    second.wipe()
    return first


def has_terminal() -> bool:
    """Return whether a person can be asked."""
    if sys.stdin.isatty():
        return True
    with contextlib.suppress(OSError):
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC))
        return True
    return False
