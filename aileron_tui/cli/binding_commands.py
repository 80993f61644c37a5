"""The groups of commands `aileron binding` and `aileron gateway`. Each command imports what it needs when it runs."""

from typing import Any

import click

from aileron_tui.cli import completing
from aileron_tui.cli.options import (
    command_options,
    group_options,
    passphrase_options,
    secret_options,
)
from aileron_tui.cli.output import CommandContext
from aileron_tui.cli.process import Given

_yes = click.option("--yes", is_flag=True, help="Do not ask.")
_client_id = click.option(
    "--client-id",
    metavar="ID",
    help="Your own client id at the provider, for kind oauth2. Asks for the client secret without echo.",
)
_device = click.option(
    "--device",
    is_flag=True,
    help="Log in with a code on another device, where the provider offers it.",
)
_passphrase = passphrase_options("Use the vault's passphrase that")
_binding = click.argument("name", shell_complete=completing.bindings)
_PROVIDERS = ("anthropic", "openai", "gemini")
_provider = click.argument("provider", type=click.Choice(_PROVIDERS))


@click.group()
@group_options
def binding() -> None:
    """Manage accounts, which connectors use at their services."""


@binding.command("setup")
@click.argument("connector", shell_complete=completing.connectors)
@click.option(
    "--identity",
    default="default",
    show_default=True,
    metavar="NAME",
    help="The last part of the account's name, to tell several accounts apart.",
)
@click.option("--account", metavar="TEXT", help="Your own name for it, such as a mail address.")
@click.option(
    "--user",
    "--access-key-id",
    "user",
    metavar="TEXT",
    help="The user name, or the id of an AWS access key.",
)
@click.option(
    "--region",
    metavar="NAME",
    help="The one AWS region that the key is for (default: that of each host).",
)
@secret_options("secret")
@_client_id
@_device
@_passphrase
@command_options
def binding_setup(context: CommandContext, connector: str, **options: Any) -> int:
    """Bind an account to a connector. Asks for the secret without echo.

    The connector has to be accepted. First shows what will be sent where. For kind oauth2 you log in in a browser,
    and the account is shown before it is stored. Creates the vault if there is none, and asks for its passphrase.
    """
    from aileron_tui.cli.accounts import GivenAccount, setup_account

    return setup_account(context, connector, GivenAccount(**options))


@binding.command("list")
@command_options
def binding_list(context: CommandContext) -> int:
    """List the bound accounts. No console is needed."""
    from aileron_tui.cli.accounts import list_accounts

    return list_accounts(context)


@binding.command("inspect")
@_binding
@command_options
def binding_inspect(context: CommandContext, name: str) -> int:
    """Show an account, without its secret."""
    from aileron_tui.cli.accounts import inspect_account

    return inspect_account(context, name)


@binding.command("rebind")
@_binding
@click.option(
    "--connector",
    shell_complete=completing.connectors,
    help="The version of its connector (default: the one that is accepted). For an account without one, such as an imported one: any.",
)
@_yes
@_passphrase
@command_options
def binding_rebind(
    context: CommandContext,
    name: str,
    connector: str | None,
    yes: bool,
    passphrase: Given,
) -> int:
    """Let a changed connector use an account again. Shows what is new, asks, and needs the passphrase."""
    from aileron_tui.cli.accounts import rebind_account

    return rebind_account(context, name, connector, passphrase, yes=yes)


@binding.command("reauthorize")
@_binding
@_client_id
@_device
@_passphrase
@command_options
def binding_reauthorize(context: CommandContext, name: str, **options: Any) -> int:
    """Log in to an account again at its service. Needs the passphrase."""
    from aileron_tui.cli.accounts import GivenAccount, reauthorize_account

    return reauthorize_account(context, name, GivenAccount(**options))


@binding.command("forget")
@_binding
@click.argument("action", shell_complete=completing.ready_actions)
@command_options
def binding_forget(context: CommandContext, name: str, action: str) -> int:
    """Forget the account remembered for an action. Its next call waits until you pick one again."""
    from aileron_tui.cli.accounts import forget_choice

    return forget_choice(context, name, action)


@binding.command("revoke")
@_binding
@_yes
@command_options
def binding_revoke(context: CommandContext, name: str, yes: bool) -> int:
    """Delete an account from the vault. Asks first; the service is not notified."""
    from aileron_tui.cli.accounts import revoke_account

    return revoke_account(context, name, yes=yes)


@click.group()
@group_options
def gateway() -> None:
    """Manage the model providers' API keys in the vault."""


@gateway.group()
@group_options
def key() -> None:
    """Manage model providers' API keys in the vault."""


@key.command("set")
@_provider
@secret_options("key")
@passphrase_options("Use the vault's passphrase that")
@command_options
def key_set(
    context: CommandContext,
    provider: str,
    secret: Given,
    passphrase: Given,
) -> int:
    """Store or replace a provider's key. Asks for the key and the vault's passphrase without echo.

    Says first where it will be sent. Agents launched from then on get a placeholder. Creates the vault if there is none.
    """
    from aileron_tui.cli.model_keys import set_key

    return set_key(context, provider, secret, passphrase)


@key.command("list")
@command_options
def key_list(context: CommandContext) -> int:
    """List the providers that have a key in the vault. No console is needed."""
    from aileron_tui.cli.model_keys import list_keys

    return list_keys(context)


@key.command("remove")
@_provider
@click.option("--yes", is_flag=True, help="Do not ask.")
@command_options
def key_remove(context: CommandContext, provider: str, yes: bool) -> int:
    """Delete a provider's key from the vault. Asks first; the provider is not notified."""
    from aileron_tui.cli.model_keys import remove_key

    return remove_key(context, provider, yes=yes)
