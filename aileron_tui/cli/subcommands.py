"""The groups of commands: action, connector, server, suite, policy, audit, open, vault, binding, gateway."""

import click
from click import argument, option

from aileron_tui.cli import completing
from aileron_tui.cli.options import (
    Number,
    OneOf,
    Since,
    flag,
    folders,
    group,
    limit_option,
    passphrase_options,
    paths,
    published_options,
    secret_options,
)

OUTCOMES = (
    "completed", "failed", "unknown", "settled", "denied", "expired", "withdrawn", "refused",
    "pending", "awaiting_vault", "checking", "approved", "executing",
)  # fmt: skip
_APPROVAL = "act-20260102T030405-0123456789abcdef"
_file = argument("name", shell_complete=completing.action_files)
_files = argument("files", nargs=-1, required=True, metavar="PATH...", shell_complete=paths)
_connector = argument("name", shell_complete=completing.connectors)
_path = argument("path", shell_complete=folders)
action = group(
    "action",
    "Manage actions: what agents can ask for.",
    examples=("aileron action list", "aileron action run list-drafts"),
)
action.add(
    "list",
    "actions.list_actions",
    "List the installed actions and their states.",
    examples=("aileron action list", "aileron action list --json"),
)
action.add(
    "show",
    "showing.show_action",
    "Show an action file in full, and what changed since you accepted it.",
    _file,
    examples=("aileron action show send-draft", "aileron action show send-draft --json"),
)
action.add(
    "check",
    "check.check_actions",
    "Check action files or folders. Report every problem with its line and column.",
    _files,
    flag("--portable", "Also report what upstream Aileron, the original project, would refuse."),
    examples=("aileron action check send-draft.md", "aileron action check --portable ."),
)
action.add(
    "add",
    "adding.add_actions",
    """Add actions. Agents see them once you accept them in the console.

    PATH is an action file, a folder of them, a suite's archive, the https:// URL of one, or
    github://OWNER/REPO[/actions/NAME][@VERSION]. Of a suite, the connector is installed too.
    """,
    _files,
    *published_options,
    examples=("aileron action add ~/actions", "aileron action add github://owner/repo@1.4.0"),
)
action.add(
    "remove",
    "actions.remove_action",
    "Remove an action file from the home.",
    _file,
    examples=("aileron action remove send-draft",),
)
action.add(
    "run",
    "action_run.run_action",
    """Run an action as an agent would. A gated action waits for a person's approval.

    Exit codes: 0 done, 1 failed, 2 wrong usage, 69 no console, 75 waiting for a person, 76 denied,
    expired or withdrawn, 77 not allowed.
    """,
    argument("name", shell_complete=completing.ready_actions),
    option("--arg", "pairs", multiple=True, metavar="KEY=VALUE", help="Set one argument. Repeat the option for more."),
    option("--args", "whole", metavar="JSON|@FILE|-", help="All arguments as a JSON object."),
    option("--wait", type=Number(0), default=0.0, metavar="SECONDS", help="Wait up to this long for a person's answer (default: do not wait)."),
    examples=(
        "aileron action run list-drafts",
        "aileron action run send-draft --arg draft_id=r-7719003417 --wait 300",
        "aileron action run send-draft --args @arguments.json",
    ),
)  # fmt: skip

connector = group(
    "connector",
    "Manage connectors: sandboxed modules that call a service.",
    examples=("aileron connector list", "aileron connector install ./mail-drafts"),
)
connector.add(
    "list",
    "connectors.list_connectors",
    "List the installed connectors.",
    examples=("aileron connector list",),
)
connector.add(
    "show",
    "showing.show_connector",
    "Show a connector, and what changed since you accepted it.",
    _connector,
    examples=("aileron connector show mail-drafts",),
)
connector.add(
    "new",
    "connectors.new_connector",
    "Create a connector of your own in a new folder, NAME.",
    argument("name"),
    option("--lang", "language", type=click.Choice(["python", "zig", "go", "rust"]), default="python", show_default=True, help="The language that it is written in."),
    examples=("aileron connector new my-notes", "aileron connector new my-notes --lang zig"),
)  # fmt: skip
connector.add(
    "install",
    "connectors.install_connector",
    """Install a connector. Agents can use it once you accept it in the console.

    PATH is a folder with connector.wasm and manifest.toml, an archive of it or of a suite, the
    https:// URL of one, or github://OWNER/REPO[@VERSION].
    """,
    argument("path", shell_complete=paths),
    *published_options,
    examples=("aileron connector install ./mail-drafts",),
)
connector.add(
    "remove",
    "connectors.remove_connector",
    "Remove a connector from the home. NAME is its name, name@version, or hash.",
    _connector,
    examples=("aileron connector remove mail-drafts",),
)
connector.add(
    "check",
    "connectors.check",
    "Check a connector before installing it. PATH is its folder or its manifest.",
    _path,
    examples=("aileron connector check ./mail-drafts",),
)
connector.add(
    "run",
    "connectors.run_op",
    "Run one op of a connector, to test it. It can reach only --route hosts. Nothing is recorded.",
    _path,
    argument("op"),
    option("--args", "text", default="{}", metavar="JSON|@FILE|-", help="The op's arguments as a JSON object."),
    option("--route", "routes", multiple=True, metavar="HOST:PORT=127.0.0.1:PORT", help="A host that the op may reach, and the local service that answers in its place."),
    flag("--read-only", "Allow only GET and HEAD requests, as in a preview."),
    examples=(
        "aileron connector run . list_drafts --route gmail.googleapis.com:443=127.0.0.1:8025",
    ),
)  # fmt: skip

_server = argument("name", shell_complete=completing.servers)
_touches = (
    option("--read", multiple=True, metavar="PATH", shell_complete=paths, help="Let it read PATH. Can be repeated, like the options below."),
    option("--write", multiple=True, metavar="PATH", shell_complete=paths, help="Let it write PATH."),
    option("--host", "hosts", multiple=True, metavar="HOST:PORT", help="Let it reach a host. Without one it has no network."),
    option("--env", multiple=True, metavar="NAME=VALUE", help="Set an environment variable. It stays readable in the manifest."),
    option("--secret", "secrets", multiple=True, metavar="NAME", help="Take an environment variable from the vault: `binding setup` asks for its value. ${secret.NAME} puts it into an argument."),
)  # fmt: skip
server = group(
    "server",
    "Manage your own MCP servers, each in a box, and remote ones.",
    examples=("aileron server add time -- uvx mcp-server-time", "aileron server list"),
)
server.add(
    "add",
    "server_adding.add_server",
    """Add an MCP server. Agents get its tools once you accept it in the console.

    NAME begins its tools' names: a to z and 0 to 9, 16 characters at most. The package of an npx or uvx command
    is installed in one version; any other COMMAND must be a program outside your projects. It is started once, in
    its box and with no secret, to list its tools. By default it may write folders and read files that the command
    names; --read and --write override that.

    A remote server is reached at its https URL alone. Its tools are listed there; where that takes a key, --header
    names the header, and you are asked for the key once. It is kept only once `binding setup` takes it.

    With --from, the servers in an agent's settings are added, or those that NAMES name, each after a yes. Their secrets
    go into the vault. The settings stay as they are.
    """,
    argument("words", nargs=-1, metavar="NAME -- COMMAND | NAME URL | --from SOURCE [NAMES]"),
    option("--from", "source", default="", metavar="SOURCE", shell_complete=paths, help="claude, codex, opencode, gemini, goose, vscode, or a settings file."),
    *_touches,
    option("--header", default="", metavar="NAME", help="With a URL: the header that the server wants its key in, such as Authorization."),
    flag("--no-rehearse", "Do not try calls on copies of the files before you decide."),
    flag("--yes", "With --from: do not ask."),
    passphrase_options("With --from: the vault's passphrase"),
    examples=(
        "aileron server add fs -- npx -y @modelcontextprotocol/server-filesystem ~/notes",
        "aileron server add github --secret GITHUB_PERSONAL_ACCESS_TOKEN --host api.github.com:443 -- npx -y @modelcontextprotocol/server-github",
        "aileron server add linear https://mcp.linear.app/mcp --header Authorization",
        "aileron server add --from claude",
    ),
)  # fmt: skip
server.add(
    "list",
    "servers.list_servers",
    "List your MCP servers and the size of their tools.",
    examples=("aileron server list", "aileron server list --json"),
)
server.add(
    "show",
    "servers.show_server",
    "Show a server: what it may touch, and each of its tools.",
    _server,
    examples=("aileron server show fs",),
)
server.add(
    "check",
    "servers.check_server",
    """Check a server's manifest, or that it can be started here.

    NAME is a server, or the path of a manifest.toml. The exit code is 2 if a manifest has a problem.
    """,
    argument("name", metavar="NAME|FILE", shell_complete=paths),
    examples=("aileron server check fs", "aileron server check ./manifest.toml"),
)
server.add(
    "edit",
    "servers.edit_server",
    """Change a server's manifest, in your editor or by options. You accept the result in the console.

    The word of a tool: run (agents need not ask), ask (you decide), look (for Aileron's previews alone), off.
    """,
    _server,
    option("--tool", "tools", multiple=True, metavar="TOOL=WORD", help="Give a tool the word run, ask, look or off."),
    *_touches,
    option("--rehearse/--no-rehearse", default=None, help="Try calls on copies of the files before you decide."),
    examples=("aileron server edit fs", "aileron server edit fs --tool move_file=off"),
)  # fmt: skip
server.add(
    "update",
    "servers.update_server",
    """Install a server's newest version, and print what differs.

    Its tools are listed again: what their descriptions and schemas say, what is new or gone. What you accepted counts until you accept the new version.
    """,
    _server,
    examples=("aileron server update fs",),
)
server.add(
    "logs",
    "servers.show_server_log",
    "Print what a server wrote to its standard error.",
    _server,
    limit_option("lines"),
    examples=("aileron server logs fs -n 20",),
)
server.add(
    "remove",
    "servers.remove_server",
    "Remove a server. Its account stays in the vault.",
    _server,
    examples=("aileron server remove fs",),
)

suite = group(
    "suite",
    "Publish a suite: a connector with its actions.",
    examples=("aileron suite check .", "aileron suite pack . --version 1.4.0"),
)
suite.add(
    "check",
    "suites.check_suite",
    "Check a suite by itself before it is published. PATH is its folder or archive.",
    argument("path", shell_complete=paths),
    examples=("aileron suite check .",),
)
suite.add(
    "pack",
    "suites.pack_suite",
    """Check a suite and write its archive. PATH is its folder.

    The version replaces 0.0.0-dev, and the connector's hash sha256:bound-at-release. The same files make
    the same SHA256SUMS on every machine.
    """,
    _path,
    option("--version", required=True, metavar="VERSION", help="The suite's version, like 1.4.0."),
    option("--output", default="aileron-suite.tar.gz", metavar="FILE", show_default=True, help="Where to write it."),
    flag("--portable", "Also write archives that the original Aileron reads."),
    option("--key", default="", metavar="FILE", help="With --portable: your ed25519 key, to sign those."),
    examples=("aileron suite pack . --version 1.4.0",),
)  # fmt: skip
suite.add(
    "sign",
    "suites.sign_suite",
    """Check an archive and sign it.

    What is signed is its SHA256SUMS, as by `ssh-keygen -Y sign -n aileron-suite`.
    """,
    argument("path", shell_complete=paths),
    option("--key", default="", metavar="FILE", help="Your ed25519 key without a passphrase, in PEM or OpenSSH format."),
    option("--signature", default="", metavar="FILE", help="A signature that ssh-keygen made, of the SHA256SUMS in the archive."),
    examples=(
        "aileron suite sign aileron-suite.tar.gz --key ~/.ssh/release",
        "aileron suite sign aileron-suite.tar.gz --signature SHA256SUMS.sig",
    ),
)  # fmt: skip
suite.add(
    "verify",
    "suites.verify_suite",
    "Verify an archive: its sums, its signature, and whose key made it.",
    argument("path", shell_complete=paths),
    option("--key", default="", metavar="FINGERPRINT", help="The key that it has to be signed with, as `ssh-keygen -l` prints it."),
    examples=("aileron suite verify aileron-suite.tar.gz",),
)  # fmt: skip

audit = group(
    "audit",
    "Show and verify the audit, the record of every event. Works without a console.",
    examples=("aileron audit list", "aileron audit verify"),
)
audit.add(
    "list",
    "audit.list_audit",
    "List the newest audit records, or the newest of some calls.",
    limit_option("records"),
    option("--agent", "agents", multiple=True, metavar="NAME", help="Of agents with this in their name; may be repeated."),
    option("--action", "actions", multiple=True, metavar="NAME", help="Of actions with this in their name; may be repeated."),
    option("--outcome", "outcomes", multiple=True, type=OneOf(OUTCOMES), help="Of calls that are in this state now; may be repeated."),
    option("--since", type=Since(), metavar="TIME", help="Not before: 30m, 12h, 7d, or a date or time like 2026-07-14 or 2026-07-14T09:30."),
    option("--grep", "words", multiple=True, metavar="TEXT", help="With this, in any case, in their summary or in what is kept of their call; of several all."),
    flag("--unseal", "Ask for the vault's passphrase, and have --grep search what is sealed."),
    passphrase_options("The passphrase for --unseal"),
    examples=(
        "aileron audit list",
        "aileron audit list -n 500 --json",
        "aileron audit list --outcome denied --since 7d --grep invoice",
    ),
)  # fmt: skip
audit.add(
    "show",
    "audit.show_audit",
    """Show a run and its audit records, or those of a session.

    RUN is the id of a run, of an approval or of a session. Arguments, results and reasons are deleted after
    `[history] days`, and with a vault they are sealed before that; the records stay.
    """,
    argument("run", shell_complete=completing.runs),
    flag("--unseal", "Ask for the vault's passphrase, and show what is sealed."),
    passphrase_options("The passphrase for --unseal"),
    examples=(f"aileron audit show {_APPROVAL}",),
)
audit.add(
    "verify",
    "audit.verify_audit",
    "Verify the audit's hash chain, and check the database against it.",
    examples=("aileron audit verify",),
)

policy = group(
    "policy",
    "Check your rules, and see what answered calls in your place.",
    examples=("aileron policy check", "aileron policy grants"),
)
policy.add(
    "check",
    "policy.check_policy",
    """Check a policy.toml. Report every problem with its line.

    FILE is the file to check (default: that of the home). The fields that its rules name are looked for in the
    actions that you accepted. The exit code is 2 if there is a problem.
    """,
    argument("file", required=False, shell_complete=paths),
    examples=("aileron policy check", "aileron policy check --json"),
)
policy.add(
    "explain",
    "policy.explain_run",
    """Show which rule or grant answered a call, or why none did.

    RUN is the id of a run or of an approval. The fields that it looked at are named; the audit has no values.
    """,
    argument("run", shell_complete=completing.runs),
    examples=(f"aileron policy explain {_APPROVAL}",),
)
policy.add(
    "grants",
    "policy.list_grants",
    "List the grants of the running console.",
    examples=("aileron policy grants", "aileron policy grants --json"),
)

open_ = group(
    "open", "Open a page in the browser.", examples=(f"aileron open approval {_APPROVAL}",)
)
open_.add(
    "approval",
    "status.open_review",
    "Open an approval's page in the browser.",
    argument("approval_id", shell_complete=completing.waiting_approvals),
    examples=(f"aileron open approval {_APPROVAL}",),
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

GROUPS = (action, connector, server, suite, policy, audit, open_, vault, binding, gateway)
