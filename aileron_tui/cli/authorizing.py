"""`aileron binding setup|reauthorize` for accounts that are authorized at their service, in a browser."""

import contextlib
import os
from collections.abc import Mapping
from typing import Any

import click

from aileron_core.errors import AileronError, ConsoleErrorResponse
from aileron_core.home.client import HomeClient
from aileron_core.text import escape
from aileron_tui.cli.output import EXIT, CliError, CommandContext, local_time
from aileron_tui.cli.vault import PassphraseRequests, has_terminal
from aileron_tui.terminal.browser import browser_command, open_in_browser

_WAIT_SECONDS = 25
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
    asked: Mapping[str, Any],
    account: str | None,
    requests: PassphraseRequests,
) -> dict[str, Any]:
    """Send a person to the service, show whose account it is, and store it after a yes.

    Args:
        asked: the body of `POST /v1/bindings/oauth`.
        account: the person's own name for it, used where the service gives none.
    """
    need_person(context)
    requests.prepare()
    view = _begin(context, asked, requests)
    try:
        _say_where(context, view)
        while view["state"] == "waiting":
            view = _post(context, f"/wait?wait={_WAIT_SECONDS}", {"id": view["id"]})
        if view["state"] == "failed":
            raise CliError(EXIT.FAILED, f"{view['problem']} {_NOTHING}")
        named = _confirmed(context, view, account)
        bound: dict[str, Any] = _post(context, "/finish", {"id": view["id"], "account": named})
    except BaseException:
        with contextlib.suppress(AileronError):  # it is over already
            _post(context, "/cancel", {"id": view["id"]})
        raise
    return bound


def _begin(
    context: CommandContext, asked: Mapping[str, Any], requests: PassphraseRequests
) -> dict[str, Any]:
    """Begin: with a device code where there is no browser and the provider gives one.

    A person types the host that would get what the login gives, where it is not known.
    """
    chosen = bool(asked.get("device")) or browser_command(os.environ) is not None
    body = {**asked, "device": True} if not chosen else dict(asked)
    while True:
        try:
            return requests.post("/v1/bindings/oauth", body)
        except ConsoleErrorResponse as error:
            host = error.failure.details.get("token_host")
            if isinstance(host, str) and "token_host" not in body:
                context.say(escape(error.failure.message), fg="yellow")
                body["token_host"] = _typed_host(host)
            elif not chosen and error.failure.class_ in _NO_CODE:
                chosen, body["device"] = True, False  # it gives none, or none for these scopes
            else:
                raise


_NO_CODE = frozenset({"invalid_request", "binding_failed", "external_api_error"})
"""How a provider's refusal to give a device code arrives."""


def _typed_host(host: str) -> str:
    typed = _ask(f"The host that may get it ({escape(host)}), typed by you: ").strip()
    if typed != host:
        raise CliError(EXIT.FAILED, f"That is not {host}. {_NOTHING}")
    return host


def _say_where(context: CommandContext, view: Mapping[str, Any]) -> None:
    context.say(f"    asks for   │ {escape(', '.join(view['scopes']))}")
    context.say(f"    tokens from {escape(view['token_host'])}")
    until = local_time(view["expires_at"])
    if view["user_code"]:
        context.say(f"Open this address on any device, and enter the code, until {until}:")
        context.say(f"    {escape(view['url'])}")
        context.say(f"    code │ {escape(view['user_code'])}", bold=True)
        return
    context.say(f"Log in at this address, in a browser on this machine, until {until}:")
    context.say(escape(view["url"]))
    program = browser_command(os.environ)
    if program is not None and _ask("Open it now? [Y/n] ").strip().lower() in ("", "y", "yes"):
        # Other programs of this account can read a program's arguments, and so could answer in your
        # place: the account is shown before it is stored.
        open_in_browser(program, view["url"], lambda _: None)
    context.say("Waiting for the browser. Ctrl+C cancels the login.")


def _confirmed(context: CommandContext, view: Mapping[str, Any], account: str | None) -> str:
    """Show whose account it is, and what was granted; return the person's name for it after a yes."""
    named = account or ""
    if view["account"]:
        context.say(f"    account    │ {escape(view['account'])}", bold=True)
    else:
        context.say("The service does not say whose account this is.")
        named = named or _ask("Your name for it, such as a mail address: ").strip()
        context.say(f"    account    │ {escape(named)}", bold=True)
    if view["missing"]:
        context.say(f"    not granted │ {escape(', '.join(view['missing']))}", fg="yellow")
    if view["ends_at"]:
        context.say(f"    cannot be renewed: it ends at {local_time(view['ends_at'])}", fg="yellow")
    if _ask("Is this the account you mean? [y/N] ").strip().lower() not in ("y", "yes"):
        raise CliError(EXIT.FAILED, _NOTHING)
    return named


def _ask(prompt: str) -> str:
    try:
        return str(click.prompt(prompt, default="", show_default=False, prompt_suffix=""))
    except click.Abort:
        raise CliError(EXIT.FAILED, _NOTHING) from None


def _post(context: CommandContext, route: str, body: Mapping[str, Any]) -> Any:
    return HomeClient(context.home).request("POST", f"/v1/bindings/oauth{route}", dict(body))[1]
