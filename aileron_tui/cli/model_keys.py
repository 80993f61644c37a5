"""The commands `aileron gateway key ...`: a key is typed unseen, or read from a descriptor or a file."""

from collections.abc import Sequence
from typing import Any

from aileron_core.clock import rfc3339
from aileron_core.console_port.account_intents import ReadModelKeys, RemoveModelKey, SetModelKey
from aileron_core.console_port.account_views import ModelKeysRead, ModelKeyView
from aileron_core.console_port.codec import to_json
from aileron_core.credentials.model_keys import check_base_url
from aileron_core.home.layout import Home
from aileron_core.settings import load_settings
from aileron_core.text import escape
from aileron_tui.cli.accepted import stored_model_keys
from aileron_tui.cli.accounts import confirm, given_secret
from aileron_tui.cli.output import EXIT, CommandContext, local_time
from aileron_tui.cli.process import Given, close_memory, given_passphrase
from aileron_tui.cli.vault import (
    PassphraseRequests,
    ask,
    ask_unseen,
    ensure_unlocked,
    is_running,
    need_console,
)


def set_key(context: CommandContext, provider: str, secret: Given, passphrase: Given) -> int:
    """Store the key of *provider*, after saying where it will be sent."""
    close_memory()
    requests = PassphraseRequests(context, given_passphrase(passphrase))
    need_console(context, "gateway key set")
    base_url = dict(ask(context, ReadModelKeys(), ModelKeysRead).base_urls)[provider]
    check_base_url(base_url)  # before a key is asked for
    context.say(f"The key for {provider} stays in the vault:")
    context.say(f"    sent to  {escape(base_url)}, over TLS, and to no other address")
    context.say("    sent in  requests to models that have a session's placeholder for it")
    key = given_secret(secret)
    requests.prepare()
    key = key or ask_unseen("Key (not shown): ", "secret")
    asked = SetModelKey(provider=provider, base_url=base_url, secret=key)
    stored = requests.ask(asked, ModelKeysRead).keys
    context.show(next(_body(each) for each in stored if each.provider == provider))
    context.say(f"✓ The key for {provider} is in the vault.", fg="green")
    context.say(
        "Agents launched from now on get a placeholder in its place. Remove the key from your shell's "
        "settings and from the agents' own files: `aileron launch AGENT --dry-run` says what is used."
    )
    return EXIT.DONE


def list_keys(context: CommandContext) -> int:
    """Print which providers have a key; it works without a console and while the vault is locked."""
    keys = _keys(context)
    context.show({"items": [_body(each) for each in keys]})
    for each in keys:
        since = f", since {local_time(rfc3339(each.created_at))}" if each.created_at else ""
        mark = "✗" if each.problem else "✓"
        context.say(f"{mark} {escape(each.provider)}  sent to {escape(each.base_url)}{since}")
        if each.problem:
            context.say(f"    not used: {escape(each.problem)}", fg="yellow")
    if not keys:
        context.say("The vault has no key. `aileron gateway key set PROVIDER` stores one.")
    return EXIT.DONE


def remove_key(context: CommandContext, provider: str, *, yes: bool) -> int:
    """Delete the key of *provider* from the vault after a yes."""
    close_memory()
    need_console(context, "gateway key remove")
    confirm(context, f"Delete the key for {provider} from the vault?", yes=yes)
    ensure_unlocked(context)
    ask(context, RemoveModelKey(provider=provider), ModelKeysRead)
    context.show({"removed": provider})
    context.say(f"✓ The key for {provider} was deleted. Requests with a placeholder are refused.")
    context.say("The provider still accepts the key: revoke it there as well.")
    return EXIT.DONE


def _keys(context: CommandContext) -> Sequence[ModelKeyView]:
    """Return the keys; without a console, what the files say."""
    if is_running(context):
        return ask(context, ReadModelKeys(), ModelKeysRead).keys
    return stored_model_keys(context.home, load_settings(Home(context.home).config))


def _body(key: ModelKeyView) -> dict[str, Any]:
    """Return *key* as `--json` prints it."""
    created_at = None if key.created_at is None else rfc3339(key.created_at)
    return {**to_json(key), "created_at": created_at}
