"""The groups of commands: action, connector, audit, open. Each command imports what it needs when it runs."""

import click

from aileron_tui.cli import completing
from aileron_tui.cli.options import command_options, folders, group_options, limit_option, paths
from aileron_tui.cli.output import CommandContext


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
    """Show a whole action file, and what changed since you accepted it."""
    from aileron_tui.cli.showing import show_action

    return show_action(context, name)


@action.command("check")
@click.argument("files", nargs=-1, required=True, metavar="PATH...", shell_complete=paths)
@click.option("--portable", is_flag=True, help="Also report what upstream Aileron would refuse.")
@command_options
def action_check(context: CommandContext, files: tuple[str, ...], portable: bool) -> int:
    """Check action files, or folders of them. Reports every problem with line and column."""
    from aileron_tui.cli.check import check_actions

    return check_actions(context, files, portable=portable)


@action.command("add")
@click.argument("files", nargs=-1, required=True, metavar="PATH...", shell_complete=paths)
@command_options
def action_add(context: CommandContext, files: tuple[str, ...]) -> int:
    """Copy action files, or folders of them, into the home. Agents see them once accepted."""
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
@click.option("--arg", "pairs", multiple=True, metavar="K=V", help="One argument; can be repeated.")
@click.option("--args", "whole", metavar="JSON|@FILE|-", help="All arguments as a JSON object.")
@click.option(
    "--wait",
    type=click.FloatRange(0),
    default=0.0,
    metavar="SECONDS",
    help="How long to wait for a person's answer (default: not at all).",
)
@command_options
def action_run(
    context: CommandContext, name: str, pairs: tuple[str, ...], whole: str | None, wait: float
) -> int:
    """Run an action through the gate, as an agent would.

    Exit codes: 0 done, 1 failed, 2 usage, 69 no console, 75 waits for a person, 76 denied, expired
    or withdrawn, 77 not allowed.
    """
    from aileron_tui.cli.run import run_action

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
    "--args", "text", default="{}", metavar="JSON|@FILE|-", help="The op's arguments, an object."
)
@click.option(
    "--route",
    "routes",
    multiple=True,
    metavar="HOST:PORT=127.0.0.1:PORT",
    help="A host that it may reach, and the local service that answers instead.",
)
@click.option(
    "--read-only", is_flag=True, help="Allow only GET and HEAD requests, as in a preview."
)
@command_options
def connector_run(
    context: CommandContext, path: str, op: str, text: str, routes: tuple[str, ...], read_only: bool
) -> int:
    """Try one op of a connector. Only hosts given with --route can be reached; nothing is recorded."""
    from aileron_tui.cli.connectors import run_op

    return run_op(context, path, op, text, routes, read_only=read_only)


@click.group()
@group_options
def audit() -> None:
    """Show and verify the audit. No console is needed."""


@audit.command("list")
@limit_option("records")
@command_options
def audit_list(context: CommandContext, limit: int) -> int:
    """List the newest records."""
    from aileron_tui.cli.audit import list_audit

    return list_audit(context, limit)


@audit.command("show")
@click.argument("run", shell_complete=completing.runs)
@command_options
def audit_show(context: CommandContext, run: str) -> int:
    """Show what is kept of a run, and every record of it.

    RUN is its audit id, or its approval's id. Kept are its arguments, its result or failure, who decided,
    when, and the words, for the days that `[history] days` says.
    """
    from aileron_tui.cli.audit import show_audit

    return show_audit(context, run)


@audit.command("verify")
@command_options
def audit_verify(context: CommandContext) -> int:
    """Verify the audit: its hash chain, its rows and its head."""
    from aileron_tui.cli.audit import verify_audit

    return verify_audit(context)


@click.group("open")
@group_options
def open_() -> None:
    """Open something in the browser."""


@open_.command("approval")
@click.argument("approval_id", shell_complete=completing.waiting_approvals)
@command_options
def open_approval(context: CommandContext, approval_id: str) -> int:
    """Open the page of an approval."""
    from aileron_tui.cli.status import open_review

    return open_review(context, approval_id)
