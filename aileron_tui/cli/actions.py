"""`aileron action list|remove`: files of the home. They count once a person took them in."""

from pathlib import Path
from typing import Any

from aileron_core.actions.catalog import Catalog, Entry, scan
from aileron_core.connectors.requirements import offer_problems
from aileron_core.connectors.store import ConnectorStore
from aileron_core.errors import NotFound
from aileron_core.pins import rows as pins
from aileron_core.storage.home import Home
from aileron_core.storage.open import open_reader
from aileron_core.text import escape
from aileron_tui.cli.output import EXIT, Context

__all__ = ["list_actions", "remove_action"]

_MARKS = {"ready": "✓", "held_back": "○", "error": "✗"}


def _pinned(home: Home) -> dict[tuple[str, str], str]:
    if not home.database.exists():
        return {}  # no console ever ran here, so nothing was taken in
    connection = open_reader(home.database)
    try:
        return {(pin.kind, pin.name): pin.digest for pin in pins.all_pins(connection)}
    finally:
        connection.close()


def list_actions(context: Context) -> int:
    """Print every action file with its state; 1 if one of them is in error."""
    home = Home(context.home)
    pinned = _pinned(home)
    taken_in = {name: digest for (kind, name), digest in pinned.items() if kind == "connector"}
    installed = {each.identity.hash: each.identity for each in ConnectorStore(home.path).list()}
    catalog = Catalog(
        scan(home.actions),
        {name: digest for (kind, name), digest in pinned.items() if kind == "action"},
        extra_problems=lambda action: offer_problems(action, installed, taken_in),
    )
    if context.json:
        context.show({"items": [_item(entry) for entry in catalog.entries]})
    else:
        for entry in catalog.entries:
            _print(context, entry)
        if any(entry.state == "held_back" for entry in catalog.entries):
            context.say("t in the console takes in what is held back.")
        if not catalog.entries:
            context.say(
                f"No action files in {home.actions}. `aileron action add PATH` copies some."
            )
    failed = any(entry.state == "error" for entry in catalog.entries)
    return EXIT.FAILED if failed else EXIT.DONE


def _item(entry: Entry) -> dict[str, Any]:
    action = entry.action
    return {
        "name": action.name if action else Path(entry.file).stem,
        "tool": action.tool_name if action else None,
        "version": action.version if action else None,
        "gated": action.gated if action else None,
        "preview": action.approval.preview is not None if action else None,
        "connector": action.requires[0].fqn if action and action.requires else None,
        "state": entry.state,
        "problems": [problem.to_json() for problem in entry.problems],
    }


def _print(context: Context, entry: Entry) -> None:
    action = entry.action
    name = escape(action.name if action else entry.file)
    kind = "" if action is None else "asks a person" if action.gated else "runs at once"
    state = {
        "ready": "",
        "held_back": "held back until taken in",
        "error": "error",
    }
    context.say(f"{_MARKS[entry.state]} {name:<32} {kind:<13}  {state[entry.state]}".rstrip())
    for problem in entry.problems:
        context.say(
            f"    {escape(str(problem))}", fg="red" if problem.severity == "error" else None
        )


def remove_action(context: Context, name: str) -> int:
    """Remove the file that holds the action *name*."""
    home = Home(context.home)
    for file in scan(home.actions).files:
        if (file.action and file.action.name == name) or file.file in (name, f"{name}.md"):
            (home.actions / file.file).unlink()
            if context.json:
                context.show({"removed": file.file})
            else:
                context.say(f"removed {escape(file.file)}")
            return EXIT.DONE
    raise NotFound(f"There is no action {name} in {home.actions}.")
