"""`aileron binding setup|reauthorize` for accounts that are authorized at their service, in a browser."""

import contextlib
import os
from dataclasses import replace

import click

from aileron_core.clock import rfc3339
from aileron_core.console_port.account_intents import (
    BeginLogin,
    CancelLogin,
    FinishLogin,
    WaitForLogin,
)
from aileron_core.console_port.account_views import AccountChanged, LoginUpdated, LoginView
from aileron_core.errors import AileronError, ConsoleErrorResponse
from aileron_core.text import escape
from aileron_tui.cli.output import EXIT, CliError, CommandContext, local_time
from aileron_tui.cli.vault import PassphraseRequests, ask, has_terminal, tell
from aileron_tui.terminal.browser import browser_command, open_in_browser

_NOTHING = "Nothing was stored."


def need_person(context: CommandContext) -> None:
    """Raise `CliError` where nobody can see whose account it is, and say yes."""
    if context.json or not has_terminal():
        raise CliError(
            EXIT.USAGE,
            "An account of kind oauth2 is shown to you before it is stored. Run this at a terminal, "
            "without --json.",
        )


def authorize(
    context: CommandContext,
    asked: BeginLogin,
    account: str | None,
    requests: PassphraseRequests,
) -> AccountChanged:
    """Send a person to the service, show whose account it is, and store it after a yes.

    Args:
        account: the person's own name for it, used where the service gives none.
    """
    need_person(context)
    requests.prepare()
    login = _begin(context, asked, requests)
    try:
        _say_where(context, login)
        while login.state == "waiting":
            login = ask(context, WaitForLogin(login_id=login.login_id), LoginUpdated).login
        if login.problem is not None:
            raise CliError(EXIT.FAILED, f"{login.problem.message} {_NOTHING}")
        finish = FinishLogin(login_id=login.login_id, account=_confirmed(context, login, account))
        return ask(context, finish, AccountChanged)
    except BaseException:
        with contextlib.suppress(AileronError):  # it is over already
            tell(context, CancelLogin(login_id=login.login_id))
        raise


def _begin(context: CommandContext, asked: BeginLogin, requests: PassphraseRequests) -> LoginView:
    """Begin: with a device code where there is no browser and the provider gives one.

    A person types the host that would get what the login gives, where it is not known.
    """
    no_browser = browser_command(os.environ) is None
    asked = replace(asked, device=asked.device or no_browser, device_only=asked.device)
    try:
        return requests.ask(asked, LoginUpdated).login
    except ConsoleErrorResponse as error:
        host = error.failure.details.get("token_host")
        if not isinstance(host, str):
            raise
        context.say(escape(error.failure.message), fg="yellow")
    return requests.ask(replace(asked, token_host=_typed_host(host)), LoginUpdated).login


def _typed_host(host: str) -> str:
    typed = _ask(f"The host that may get it ({escape(host)}), typed by you: ").strip()
    if typed != host:
        raise CliError(EXIT.FAILED, f"That is not {host}. {_NOTHING}")
    return host


def _say_where(context: CommandContext, login: LoginView) -> None:
    context.say(f"    asks for   │ {escape(', '.join(login.scopes))}")
    context.say(f"    tokens from {escape(login.token_host)}")
    until = local_time(rfc3339(login.expires_at))
    if login.user_code:
        context.say(f"Open this address on any device, and enter the code, until {until}:")
        context.say(f"    {escape(login.url)}")
        context.say(f"    code │ {escape(login.user_code)}", bold=True)
        return
    context.say(f"Log in at this address, in a browser on this machine, until {until}:")
    context.say(escape(login.url))
    program = browser_command(os.environ)
    if program is not None and _ask("Open it now? [Y/n] ").strip().lower() in ("", "y", "yes"):
        # Other programs of this account can read a program's arguments, and so could answer in your
        # place: the account is shown before it is stored.
        open_in_browser(program, login.url, lambda _: None)
    context.say("Waiting for the browser. Ctrl+C cancels the login.")


def _confirmed(context: CommandContext, login: LoginView, account: str | None) -> str:
    """Show whose account it is, and what was granted; return the person's name for it after a yes."""
    named = account or ""
    if login.account:
        context.say(f"    account    │ {escape(login.account)}", bold=True)
    else:
        context.say("The service does not say whose account this is.")
        named = named or _ask("Your name for it, such as a mail address: ").strip()
        context.say(f"    account    │ {escape(named)}", bold=True)
    if login.missing:
        context.say(f"    not granted │ {escape(', '.join(login.missing))}", fg="yellow")
    if login.ends_at is not None:
        ends_at = local_time(rfc3339(login.ends_at))
        context.say(f"    cannot be renewed: it ends at {ends_at}", fg="yellow")
    if _ask("Is this the account you mean? [y/N] ").strip().lower() not in ("y", "yes"):
        raise CliError(EXIT.FAILED, _NOTHING)
    return named


def _ask(prompt: str) -> str:
    try:
        return str(click.prompt(prompt, default="", show_default=False, prompt_suffix=""))
    except click.Abort:
        raise CliError(EXIT.FAILED, _NOTHING) from None
