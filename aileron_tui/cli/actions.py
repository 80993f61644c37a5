"""`aileron action list|remove`: the action files of a home, and the bytes of `tools/list` that each takes."""

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import replace
from pathlib import Path
from typing import Any

from aileron_core.actions.catalog import CatalogEntry, cannot_run, scan
from aileron_core.connectors.store import ConnectorStore, InstalledConnector
from aileron_core.errors import NotFound
from aileron_core.home.layout import Home
from aileron_core.server.bodies import action_body
from aileron_core.server.tool_results import builtin_tools
from aileron_core.settings import Settings, load_settings
from aileron_core.text import escape
from aileron_mcp.translate import action_tool, listed_bytes
from aileron_tui.cli.accepted import home_catalog, remove_file, stored_bindings
from aileron_tui.cli.output import EXIT, CommandContext, did_you_mean, kilobytes

_MARKS = {"ready": "✓", "held_back": "○", "error": "✗"}
_STATES = {"ready": "", "held_back": "not accepted", "error": "error"}


def list_actions(context: CommandContext) -> int:
    """Print every action file with its state and the size of its tool; return 1 if one is in error."""
    home = Home(context.home)
    settings = load_settings(home.config)
    installed = {each.identity.hash: each for each in ConnectorStore(home.path).list()}
    entries = home_catalog(home, installed).entries
    unbound = _unbound(context, installed.values())
    waiting = {entry.file for entry in entries if entry.state == "held_back"}
    replaced = {entry.file for entry in entries if entry.state == "ready"} & waiting
    items = [_item(entry, settings, unbound, replaced) for entry in entries]
    offered = _size(each for each in items if each["offered"] and each["state"] == "ready")
    later = _size(
        item
        for entry, item in zip(entries, items, strict=True)
        if item["offered"]
        and (entry.state == "held_back" or (entry.state == "ready" and entry.file not in replaced))
    )
    context.show({"items": items, "tools": offered})
    for entry, item in zip(entries, items, strict=True):
        _print(context, entry, item)
    _print_end(context, home, entries, settings)
    for fqn in sorted({each["needs_account"] for each in items if each["needs_account"]}):
        context.say(f"No account: `aileron binding setup {escape(fqn)}` binds one.")
    context.say(_tools_line(offered, later))
    failed = any(entry.state == "error" for entry in entries)
    return EXIT.FAILED if failed else EXIT.DONE


def _unbound(context: CommandContext, installed: Iterable[InstalledConnector]) -> dict[str, str]:
    """Return the FQN, by hash, of each connector that asks for a credential and has no account."""
    asking = [each for each in installed if each.credential_requirement is not None]
    if not asking:
        return {}
    from aileron_core.credentials.accounts import credential_users

    bindings = stored_bindings(context.home)
    return {
        user.identity.hash: user.identity.fqn
        for user in credential_users(asking)
        if all(each.problem(user) for each in bindings)
    }


def _item(
    entry: CatalogEntry, settings: Settings, unbound: Mapping[str, str], replaced: Set[str]
) -> dict[str, Any]:
    """Return what is printed of *entry*; *replaced*: the files of which another version waits."""
    action = entry.action
    needed = [unbound.get(each.hash) for each in action.requires] if action else []
    return {
        "name": action.name if action else Path(entry.file).stem,
        "tool": action.tool_name if action else None,
        "version": action.version if action else None,
        "gated": action.gated if action else None,
        "preview": action.approval.preview is not None if action else None,
        "connector": action.requires[0].fqn if action and action.requires else None,
        "state": entry.state,
        "is_update": entry.state == "held_back" and entry.file in replaced,
        "needs_account": next((each for each in needed if each), None)
        if entry.state == "ready"
        else None,
        "cannot_run": (cannot_run(action) or None) if action else None,
        "offered": settings.is_tool(action.name, action.tool_name) if action else None,
        "tool_bytes": listed_bytes(action_tool(action_body(action))) if action else None,
        "problems": [problem.to_json() for problem in entry.problems],
    }


def _size(items: Iterable[dict[str, Any]]) -> dict[str, int]:
    """Return the number and the bytes of the tools of *items* and of Aileron's own, as an agent gets them."""
    own = [listed_bytes(each) for each in builtin_tools()]
    sizes = [each["tool_bytes"] for each in items]
    return {"count": len(sizes) + len(own), "bytes": sum(sizes) + sum(own)}


def _tools_line(offered: dict[str, int], later: dict[str, int]) -> str:
    line = f"Agents get {offered['count']} tools ({kilobytes(offered['bytes'])})."
    if later == offered:
        return line
    return f"{line} Once all are accepted: {later['count']} tools ({kilobytes(later['bytes'])})."


def _print(context: CommandContext, entry: CatalogEntry, item: dict[str, Any]) -> None:
    action = entry.action
    name = escape(action.name if action else entry.file)
    kind = "" if action is None else "needs approval" if action.gated else "runs at once"
    size = kilobytes(item["tool_bytes"]) if action else ""
    state, mark = _STATES[entry.state], _MARKS[entry.state]
    if entry.state == "ready" and action is not None and cannot_run(action):
        state, mark = "cannot run", _MARKS["error"]
    elif item["needs_account"]:
        state = "no account"
    elif item["is_update"]:
        state = "update, not accepted"
    if item["offered"] is False:
        state = f"{state}, no tool" if state else "no tool"
    context.say(f"{mark} {name:<28} {kind:<14} {size:>7}  {state}".rstrip())
    for problem in entry.problems:
        context.say(
            f"    {escape(str(problem))}", fg="red" if problem.severity == "error" else None
        )


def _print_end(
    context: CommandContext, home: Home, entries: Sequence[CatalogEntry], settings: Settings
) -> None:
    """Print what the person can do about it: accept files, add some, mend `[mcp] tools`."""
    if any(entry.state == "held_back" for entry in entries):
        context.say("To accept an action, select it in the console and press t.")
    if not entries:
        context.say(f"No action files in {home.actions}. Add some with `aileron action add PATH`.")
    actions = [entry.action for entry in entries if entry.action]
    if not all(settings.is_tool(each.name, each.tool_name) for each in actions):
        context.say(
            "no tool: agents do not get this action, because `[mcp] tools` in config.toml leaves it out."
        )
    for pattern in settings.tools:
        named = replace(settings, tools=(pattern,))
        if actions and not any(named.is_tool(each.name, each.tool_name) for each in actions):
            message = (
                f"`[mcp] tools` in config.toml contains {escape(pattern)}, which matches no action."
            )
            context.say(message, fg="yellow")


def remove_action(context: CommandContext, name: str) -> int:
    home = Home(context.home)
    files = scan(home.actions).files
    for file in files:
        if (file.action and file.action.name == name) or file.file in (name, f"{name}.md"):
            remove_file(home, "action", file.file)
            context.show({"removed": file.file})
            context.say(f"removed {escape(file.file)}")
            return EXIT.DONE
    known = (file.action.name if file.action else Path(file.file).stem for file in files)
    meant = did_you_mean(name, known)
    raise NotFound(f"There is no action {name} in {home.actions}.{meant}")
