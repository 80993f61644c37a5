"""`aileron action list|add|remove`: files of the home. They count once a person took them in."""

import os
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from aileron_core.actions.catalog import Catalog, Entry, scan
from aileron_core.actions.load import load_action
from aileron_core.actions.model import UNBOUND_HASH
from aileron_core.connectors.requirements import offer_problems
from aileron_core.connectors.store import ConnectorStore
from aileron_core.errors import FileProblems, NotFound, Problem
from aileron_core.pins import rows as pins
from aileron_core.pins.removal import note_removed, noted, read_notes
from aileron_core.storage.home import Home
from aileron_core.storage.open import open_reader
from aileron_core.text import escape
from aileron_tui.cli.binding import bind
from aileron_tui.cli.output import EXIT, Context

__all__ = ["add_actions", "add_file", "list_actions", "remove_action"]

_MARKS = {"ready": "✓", "held_back": "○", "error": "✗"}


def _pinned(home: Home) -> dict[tuple[str, str], str]:
    if not home.database.exists():
        return {}  # no console ever ran here, so nothing was taken in
    connection = open_reader(home.database)
    try:
        found = pins.all_pins(connection)
        gone = noted(found, read_notes(home.path))
        return {(pin.kind, pin.name): pin.digest for pin in found if pin not in gone}
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


def add_actions(context: Context, paths: Sequence[str]) -> int:
    """Copy valid action files into the home; a file with a problem is named, and stops none of the others."""
    home = Home(context.home)
    home.prepare()
    added: list[dict[str, Any]] = []
    problems: list[Problem] = []
    for source in [file for path in paths for file in _files(Path(path))]:
        try:
            added.append(add_file(home, source))
        except FileProblems as error:
            problems += error.problems
        except OSError as error:
            problems.append(
                Problem(file=str(source), message=f"cannot be copied: {error.strerror}")
            )
    if context.json:
        context.show({"items": added, "problems": [problem.to_json() for problem in problems]})
    else:
        for each in added:
            context.say(f"{each['did']} {escape(each['name'])}")
            for fqn, digest in each["bound"].items():
                context.say(f"    {escape(fqn)} bound to the installed {digest}")
        for problem in problems:
            context.say(f"✗ {escape(str(problem))}", fg="red")
        if any(each["did"] != "unchanged" for each in added):
            context.say("Agents see them once you take them in, in the console.")
    return EXIT.FAILED if problems else EXIT.DONE


def _files(path: Path) -> list[Path]:
    """Return the action files of a path: itself, a folder's `*.md`, or a suite's `actions/`."""
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise NotFound(f"There is no file or folder {path}.")
    root = path / "actions" if (path / "actions").is_dir() else path
    found = sorted([*root.glob("*.md"), *root.glob("*/action.md")])
    found = [file for file in found if file.name != "README.md"]
    if not found:
        raise NotFound(f"{path} holds no action files (*.md, or NAME/action.md).")
    return found


def add_file(home: Home, source: Path) -> dict[str, Any]:
    """Copy one valid action file into *home*; return its name and what was done.

    Raises:
        FileProblems: it cannot be used as it is.
        OSError: it cannot be read or written.
    """
    data = source.read_bytes()
    action = load_action(data, str(source))
    bound: dict[str, str] = {}
    if any(requirement.hash == UNBOUND_HASH for requirement in action.requires):
        data, bound = bind(data, action, ConnectorStore(home.path).list())
    target = home.actions / f"{action.name}.md"
    did = "added"
    if target.exists():
        did = "unchanged" if target.read_bytes() == data else "replaced"
    if did != "unchanged":
        _write(target, data)
    return {"name": action.name, "file": target.name, "did": did, "bound": bound}


def _write(target: Path, data: bytes) -> None:
    """Write beside and rename, so that no half file is ever read."""
    descriptor, temporary = tempfile.mkstemp(dir=target.parent, prefix=".add-")
    try:
        with os.fdopen(descriptor, "wb") as opened:
            opened.write(data)
        Path(temporary).replace(target)
    except BaseException:
        with suppress(FileNotFoundError):
            Path(temporary).unlink()
        raise


def remove_action(context: Context, name: str) -> int:
    """Remove the file that holds the action *name*."""
    home = Home(context.home)
    for file in scan(home.actions).files:
        if (file.action and file.action.name == name) or file.file in (name, f"{name}.md"):
            note_removed(home.path, "action", file.file)
            (home.actions / file.file).unlink()
            if context.json:
                context.show({"removed": file.file})
            else:
                context.say(f"removed {escape(file.file)}")
            return EXIT.DONE
    raise NotFound(f"There is no action {name} in {home.actions}.")
