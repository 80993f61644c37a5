"""The groups of commands: action, connector, audit, vault, open. Each command imports what it needs when it runs."""

import click

from aileron_tui.cli import completing
from aileron_tui.cli.options import (
    Number,
    OneOf,
    command_options,
    folders,
    group_options,
    limit_option,
    passphrase_options,
    paths,
)
from aileron_tui.cli.output import CommandContext
from aileron_tui.cli.process import Given


@click.group()
@group_options
def action() -> None:
    """Manage actions: what agents can ask for."""


@action.command("list")
@command_options
def action_list(context: CommandContext) -> int:
    """List the installed actions and their states."""
    from aileron_tui.cli.actions import list_actions

    return list_actions(context)


@action.command("show")
@click.argument("name", shell_complete=completing.action_files)
@command_options
def action_show(context: CommandContext, name: str) -> int:
    """Show an action file in full, and what changed since you accepted it."""
    from aileron_tui.cli.showing import show_action

    return show_action(context, name)


@action.command("check")
@click.argument("files", nargs=-1, required=True, metavar="PATH...", shell_complete=paths)
@click.option(
    "--portable",
    is_flag=True,
    help="Also report what upstream Aileron, the original project, would refuse.",
)
@command_options
def action_check(context: CommandContext, files: tuple[str, ...], portable: bool) -> int:
    """Check action files or folders. Report every problem with its line and column."""
    from aileron_tui.cli.check import check_actions

    return check_actions(context, files, portable=portable)


@action.command("add")
@click.argument("files", nargs=-1, required=True, metavar="PATH...", shell_complete=paths)
@command_options
def action_add(context: CommandContext, files: tuple[str, ...]) -> int:
    """Copy action files or folders into the home. Agents see them once you accept them."""
    from aileron_tui.cli.adding import add_actions

    return add_actions(context, files)


@action.command("remove")
@click.argument("name", shell_complete=completing.action_files)
@command_options
def action_remove(context: CommandContext, name: str) -> int:
    """Remove an action file from the home."""
    from aileron_tui.cli.actions import remove_action

    return remove_action(context, name)


@action.command("run")
@click.argument("name", shell_complete=completing.ready_actions)
@click.option(
    "--arg",
    "pairs",
    multiple=True,
    metavar="KEY=VALUE",
    help="Set one argument. Repeat the option for more.",
)
@click.option("--args", "whole", metavar="JSON|@FILE|-", help="All arguments as a JSON object.")
@click.option(
    "--wait",
    type=Number(0),
    default=0.0,
    metavar="SECONDS",
    help="Wait up to this long for a person's answer (default: do not wait).",
)
@command_options
def action_run(
    context: CommandContext, name: str, pairs: tuple[str, ...], whole: str | None, wait: float
) -> int:
    """Run an action as an agent would. A gated action waits for a person's approval.

    Exit codes: 0 done, 1 failed, 2 wrong usage, 69 no console, 75 waiting for a person, 76 denied,
    expired or withdrawn, 77 not allowed.
    """
    from aileron_tui.cli.action_run import run_action

    return run_action(context, name, pairs, whole, wait)


@click.group()
@group_options
def connector() -> None:
    """Manage connectors: sandboxed modules that call a service."""


@connector.command("list")
@command_options
def connector_list(context: CommandContext) -> int:
    """List the installed connectors."""
    from aileron_tui.cli.connectors import list_connectors

    return list_connectors(context)


@connector.command("show")
@click.argument("name", shell_complete=completing.connectors)
@command_options
def connector_show(context: CommandContext, name: str) -> int:
    """Show a connector, and what changed since you accepted it."""
    from aileron_tui.cli.showing import show_connector

    return show_connector(context, name)


@connector.command("new")
@click.argument("name")
@click.option(
    "--lang",
    "language",
    type=click.Choice(["python", "zig", "go", "rust"]),
    default="python",
    show_default=True,
    help="The language that it is written in.",
)
@command_options
def connector_new(context: CommandContext, name: str, language: str) -> int:
    """Create a connector of your own in a new folder, NAME."""
    from aileron_tui.cli.connectors import new_connector

    return new_connector(context, name, language)


@connector.command("install")
@click.argument("path", shell_complete=folders)
@command_options
def connector_install(context: CommandContext, path: str) -> int:
    """Install a connector. PATH is a folder with connector.wasm and manifest.toml."""
    from aileron_tui.cli.connectors import install_connector

    return install_connector(context, path)


@connector.command("remove")
@click.argument("name", shell_complete=completing.connectors)
@command_options
def connector_remove(context: CommandContext, name: str) -> int:
    """Remove a connector from the home. NAME is its name, name@version, or hash."""
    from aileron_tui.cli.connectors import remove_connector

    return remove_connector(context, name)


@connector.command("check")
@click.argument("path", shell_complete=folders)
@command_options
def connector_check(context: CommandContext, path: str) -> int:
    """Check a connector before installing it. PATH is its folder or its manifest."""
    from aileron_tui.cli.connectors import check

    return check(context, path)


@connector.command("run")
@click.argument("path", shell_complete=folders)
@click.argument("op")
@click.option(
    "--args",
    "text",
    default="{}",
    metavar="JSON|@FILE|-",
    help="The op's arguments as a JSON object.",
)
@click.option(
    "--route",
    "routes",
    multiple=True,
    metavar="HOST:PORT=127.0.0.1:PORT",
    help="A host that the op may reach, and the local service that answers in its place.",
)
@click.option(
    "--read-only", is_flag=True, help="Allow only GET and HEAD requests, as in a preview."
)
@command_options
def connector_run(
    context: CommandContext, path: str, op: str, text: str, routes: tuple[str, ...], read_only: bool
) -> int:
    """Run one op of a connector, to test it. It can reach only --route hosts. Nothing is recorded."""
    from aileron_tui.cli.connectors import run_op

    return run_op(context, path, op, text, routes, read_only=read_only)


@click.group()
@group_options
def audit() -> None:
    """Show and verify the audit, the record of every event. Works without a console."""


@audit.command("list")
@limit_option("records")
@command_options
def audit_list(context: CommandContext, limit: int) -> int:
    """List the newest audit records."""
    from aileron_tui.cli.audit import list_audit

    return list_audit(context, limit)


@audit.command("show")
@click.argument("run", shell_complete=completing.runs)
@click.option(
    "--unseal", is_flag=True, help="Ask for the vault's passphrase, and show what is sealed."
)
@passphrase_options("The passphrase for --unseal")
@command_options
def audit_show(
    context: CommandContext,
    run: str,
    unseal: bool,
    passphrase: Given,
) -> int:
    """Show a run and its audit records, or those of a session.

    RUN is the id of a run, of an approval or of a session. Arguments, results and reasons are deleted after
    `[history] days`, and with a vault they are sealed before that; the records stay.
    """
    from aileron_tui.cli.audit import show_audit

    return show_audit(context, run, unseal=unseal, given=passphrase)


@audit.command("verify")
@command_options
def audit_verify(context: CommandContext) -> int:
    """Verify the audit's hash chain, and check the database against it."""
    from aileron_tui.cli.audit import verify_audit

    return verify_audit(context)


@click.group()
@group_options
def vault() -> None:
    """Manage the vault: your accounts' secrets."""


@vault.command("init")
@click.option(
    "--import",
    "import_from",
    metavar="FILE",
    shell_complete=paths,
    help="Read a vault of upstream Aileron (secrets.json), with its passphrase. It stays as it is.",
)
@passphrase_options("Use the passphrase that")
@command_options
def vault_init(
    context: CommandContext,
    import_from: str | None,
    passphrase: Given,
) -> int:
    """Create the vault. No console is needed."""
    from aileron_tui.cli.vault import create_vault

    return create_vault(context, passphrase, import_from)


@vault.command("unlock")
@passphrase_options("Use the passphrase that")
@command_options
def vault_unlock(context: CommandContext, passphrase: Given) -> int:
    """Unlock the vault of the running console."""
    from aileron_tui.cli.vault import unlock_vault

    return unlock_vault(context, passphrase)


@vault.command("lock")
@command_options
def vault_lock(context: CommandContext) -> int:
    """Lock the vault of the running console at once."""
    from aileron_tui.cli.vault import lock_vault

    return lock_vault(context)


@vault.command("status")
@command_options
def vault_status(context: CommandContext) -> int:
    """Show whether there is a vault, and whether it is locked."""
    from aileron_tui.cli.vault import show_vault

    return show_vault(context)


@vault.command("change-passphrase")
@command_options
def vault_change_passphrase(context: CommandContext) -> int:
    """Change the passphrase of the vault."""
    from aileron_tui.cli.vault import change_passphrase

    return change_passphrase(context)


@vault.command("keyring")
@click.argument("switch", type=OneOf(("on", "off")), metavar="on|off")
@command_options
def vault_keyring(context: CommandContext, switch: str) -> int:
    """Let the system's keyring unlock the vault, or stop that."""
    from aileron_tui.cli.vault import set_keyring

    return set_keyring(context, on=switch == "on")


@click.group("open")
@group_options
def open_() -> None:
    """Open a page in the browser."""


@open_.command("approval")
@click.argument("approval_id", shell_complete=completing.waiting_approvals)
@command_options
def open_approval(context: CommandContext, approval_id: str) -> int:
    """Open an approval's page in the browser."""
    from aileron_tui.cli.status import open_review

    return open_review(context, approval_id)
