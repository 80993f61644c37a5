"""The group of commands `aileron gateway`. Each command imports what it needs when it runs."""

import click

from aileron_tui.cli.options import command_options, group_options, passphrase_options, paths
from aileron_tui.cli.output import CommandContext

_PROVIDERS = ("anthropic", "openai", "gemini")
_provider = click.argument("provider", type=click.Choice(_PROVIDERS))


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
@click.option(
    "--secret-fd",
    type=click.IntRange(0),
    metavar="N",
    help="Read the key from file descriptor N.",
)
@click.option(
    "--secret-file",
    metavar="PATH",
    shell_complete=paths,
    help="Read the key from a file that only you can read (0600), in no project.",
)
@passphrase_options("Use the vault's passphrase that")
@command_options
def key_set(
    context: CommandContext,
    provider: str,
    secret_fd: int | None,
    secret_file: str | None,
    passphrase_fd: int | None,
    passphrase_file: str | None,
) -> int:
    """Store or replace a provider's key. Asks for the key and the vault's passphrase without echo.

    Says first where it will be sent. Agents launched from then on get a placeholder. Creates the vault if there is none.
    """
    from aileron_tui.cli.model_keys import set_key

    passphrase = (passphrase_fd, passphrase_file)
    return set_key(context, provider, (secret_fd, secret_file), passphrase)


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
