"""The groups of commands `aileron vault`, `aileron binding` and `aileron gateway`."""

import click
from click import argument, option

from aileron_tui.cli import completing
from aileron_tui.cli.options import (
    OneOf,
    flag,
    group,
    passphrase_options,
    paths,
    secret_options,
)

_yes = flag("--yes", "Do not ask.")
_client_id = option(
    "--client-id",
    metavar="ID",
    help="Your own client id at the provider, for kind oauth2. Asks for the client secret without echo.",
)
_device = flag("--device", "Log in with a code on another device, where the provider offers it.")
_passphrase = passphrase_options("Use the vault's passphrase that")
_binding = argument("name", shell_complete=completing.bindings)
_provider = argument("provider", type=click.Choice(("anthropic", "openai", "gemini")))

vault = group(
    "vault",
    "Manage the vault: your accounts' secrets.",
    examples=("aileron vault init", "aileron vault unlock"),
)
vault.add(
    "init",
    "vault.create_vault",
    "Create the vault. No console is needed.",
    option("--import", "import_from", metavar="FILE", shell_complete=paths, help="Read a vault of upstream Aileron (secrets.json), with its passphrase. It stays as it is."),
    passphrase_options("Use the passphrase that"),
    examples=("aileron vault init", "aileron vault init --import ~/.aileron/secrets.json"),
)  # fmt: skip
vault.add(
    "unlock",
    "vault.unlock_vault",
    "Unlock the vault of the running console.",
    passphrase_options("Use the passphrase that"),
    examples=("aileron vault unlock", "aileron vault unlock --passphrase-file ~/passphrase"),
)
vault.add(
    "lock",
    "vault.lock_vault",
    "Lock the vault of the running console at once.",
    examples=("aileron vault lock",),
)
vault.add(
    "status",
    "vault.show_vault",
    "Show whether there is a vault, and whether it is locked.",
    examples=("aileron vault status", "aileron vault status --json"),
)
vault.add(
    "change-passphrase",
    "vault.change_passphrase",
    "Change the passphrase of the vault.",
    examples=("aileron vault change-passphrase",),
)
vault.add(
    "keyring",
    "vault.set_keyring",
    "Let the system's keyring unlock the vault, or stop that.",
    argument("switch", type=OneOf(("on", "off")), metavar="on|off"),
    examples=("aileron vault keyring on", "aileron vault keyring off"),
)

binding = group(
    "binding",
    "Manage accounts, which connectors use at their services.",
    examples=("aileron binding setup todoist", "aileron binding list"),
)
binding.add(
    "setup",
    "accounts.setup_account",
    """Bind an account to a connector. Asks for the secret without echo.

    The connector has to be accepted. First shows what will be sent where. For kind oauth2 you log in in a browser,
    and the account is shown before it is stored. For an MCP server each value that it needs is asked for; a file or
    descriptor holds the value, or a JSON object of several. Creates the vault if there is none, and asks for its
    passphrase.
    """,
    argument("connector", shell_complete=completing.connectors),
    option("--identity", default="default", show_default=True, metavar="NAME", help="The last part of the account's name, to tell several accounts apart."),
    option("--account", metavar="TEXT", help="Your own name for it, such as a mail address."),
    option("--user", "--access-key-id", "user", metavar="TEXT", help="The user name, or the id of an AWS access key."),
    option("--region", metavar="NAME", help="The one AWS region that the key is for (default: that of each host)."),
    secret_options("secret"),
    _client_id,
    _device,
    _passphrase,
    examples=(
        "aileron binding setup todoist",
        "aileron binding setup todoist --identity work --account ana@example.com --secret-file ~/key",
    ),
)  # fmt: skip
binding.add(
    "list",
    "accounts.list_accounts",
    "List the bound accounts. No console is needed.",
    examples=("aileron binding list", "aileron binding list --json"),
)
binding.add(
    "inspect",
    "accounts.inspect_account",
    "Show an account, without its secret.",
    _binding,
    examples=("aileron binding inspect api_key/todoist/default",),
)
binding.add(
    "rebind",
    "accounts.rebind_account",
    "Let a changed connector use an account again. Shows what is new, asks, and requires the passphrase.",
    _binding,
    option("--connector", shell_complete=completing.connectors, help="The version of its connector (default: the one that is accepted). For an account without one, such as an imported one: any."),
    _yes,
    _passphrase,
    examples=("aileron binding rebind api_key/todoist/default",),
)  # fmt: skip
binding.add(
    "reauthorize",
    "accounts.reauthorize_account",
    "Log in to an account again at its service. Needs the passphrase.",
    _binding,
    _client_id,
    _device,
    _passphrase,
    examples=("aileron binding reauthorize oauth2/gmail/default",),
)
binding.add(
    "forget",
    "accounts.forget_choice",
    "Forget the account remembered for an action. Its next call waits until you pick one again.",
    _binding,
    argument("action", shell_complete=completing.ready_actions),
    examples=("aileron binding forget api_key/todoist/work close-task",),
)
binding.add(
    "revoke",
    "accounts.revoke_account",
    "Delete an account from the vault. Asks first; the service is not notified.",
    _binding,
    _yes,
    examples=("aileron binding revoke api_key/todoist/default",),
)

gateway = group(
    "gateway",
    "Manage the model providers' API keys in the vault.",
    examples=("aileron gateway key list",),
)
key = group(
    "key",
    "Manage model providers' API keys in the vault.",
    examples=("aileron gateway key set openai", "aileron gateway key list"),
)
gateway.add_command(key)
key.add(
    "set",
    "accounts.set_key",
    """Store or replace a provider's key. Asks for the key and the vault's passphrase without echo.

    Says first where it will be sent. Agents launched from then on get a placeholder. Creates the vault if there is none.
    """,
    _provider,
    secret_options("key"),
    _passphrase,
    examples=(
        "aileron gateway key set openai",
        "aileron gateway key set anthropic --secret-file ~/key",
    ),
)
key.add(
    "list",
    "accounts.list_keys",
    "List the providers that have a key in the vault. No console is needed.",
    examples=("aileron gateway key list", "aileron gateway key list --json"),
)
key.add(
    "remove",
    "accounts.remove_key",
    "Delete a provider's key from the vault. Asks first; the provider is not notified.",
    _provider,
    _yes,
    examples=("aileron gateway key remove openai",),
)

GROUPS = (vault, binding, gateway)
