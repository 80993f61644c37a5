"""`aileron action show`, `aileron connector show`: one file whole, beside what was accepted before it."""

import asyncio
import shutil
from contextlib import closing
from typing import Any

from aileron_core.clock import SystemClock, rfc3339
from aileron_core.connectors.store import ConnectorStore
from aileron_core.console_port.file_views import FileContentView
from aileron_core.console_port.view_models import LibraryItemView, PublisherView
from aileron_core.errors import Conflict, NotFound, Problem
from aileron_core.home.layout import Home
from aileron_core.library.acceptance import load_withdrawn
from aileron_core.library.accepted_contents import AcceptedContents
from aileron_core.library.file_contents import FileContents
from aileron_core.library.home_files import read_publishers
from aileron_core.library.publishers import KIND
from aileron_core.library.view import LibraryState, library_items
from aileron_core.storage.open import open_reader
from aileron_tui.cli.accepted import home_catalog, load_acceptances
from aileron_tui.cli.output import EXIT, CommandContext, did_you_mean
from aileron_tui.draw.blocks import text_of
from aileron_tui.state.printed_pages import row_page
from aileron_tui.state.tables.library import LibraryTable


def show_action(context: CommandContext, name: str) -> int:
    """Print an action file, whatever its state, as the console shows it before it is accepted.

    Raises:
        NotFound: no file holds an action of that name.
    """
    items, problems = _read_library(Home(context.home))
    actions = [each for each in items if each.kind == "action"]
    wanted = (name, f"{name}.md")
    found = [each for each in actions if each.name == name or each.file in wanted]
    if not found:
        known = [each.name for each in actions]
        raise NotFound(f"There is no action {name}.{did_you_mean(name, known)}")
    return _show(context, found[0], problems)


def show_connector(context: CommandContext, name: str) -> int:
    """Print the manifest of an installed connector, and what its module is.

    Raises:
        NotFound: none is called *name*.
        Conflict: several are.
    """
    items, problems = _read_library(Home(context.home))
    connectors = [each for each in items if each.kind == "connector"]
    found = [each for each in connectors if name in _names(each)]
    if not found:
        known = {word for each in connectors for word in _names(each)}
        raise NotFound(f"No connector {name} is installed.{did_you_mean(name, known)}")
    if len(found) > 1:
        listed = "\n".join(f"    {each.name}  {each.digest}" for each in found)
        raise Conflict(f"{len(found)} connectors are named {name}. Give the hash of one:\n{listed}")
    return _show(context, found[0], problems)


def _names(item: LibraryItemView) -> tuple[str, ...]:
    """Return what a person may call a connector, as for `aileron connector remove`."""
    fqn = item.connector or item.name
    last = fqn.rpartition("/")[2]
    return (item.digest, item.name, fqn, last, f"{last}@{item.version}")


def _read_library(home: Home) -> tuple[tuple[LibraryItemView, ...], tuple[Problem, ...]]:
    """Return everything in *home* as a console would show it, and what is wrong with it."""
    accepted = {(each.kind, each.name): each for each in load_acceptances(home)}
    store = ConnectorStore(home.path)
    stored, problems = store.scan()
    installed = {each.identity.hash: each for each in stored}
    catalog = home_catalog(home, installed)
    contents = FileContents(AcceptedContents(home.path))
    before = (accepted.get(("action", each.file)) for each in catalog.entries)
    asyncio.run(contents.load([each for each in before if each is not None]))
    state = LibraryState(
        catalog=catalog,
        installed=installed,
        contents=contents,
        store_problems=problems,
        accepted=accepted,
        withdrawn=_load_withdrawn(home),
        publishers=read_publishers(home.path, store, installed, {}),
        keys={name: each.digest for (kind, name), each in accepted.items() if kind == KIND},
    )
    return library_items(state), (*catalog.problems(), *problems)


def _load_withdrawn(home: Home) -> set[tuple[str, str, str]]:
    if not home.database.exists():
        return set()
    with closing(open_reader(home.database)) as connection:
        return load_withdrawn(connection)


def _show(context: CommandContext, item: LibraryItemView, problems: tuple[Problem, ...]) -> int:
    if context.json:
        context.show(_body(item))
        return EXIT.DONE
    now, columns = SystemClock().now(), shutil.get_terminal_size().columns
    table = LibraryTable((item,), problems, now)
    for line in row_page(table, now, columns):
        context.say(text_of(line))
    return EXIT.DONE


def _body(item: LibraryItemView) -> dict[str, Any]:
    content = item.content
    return {
        "kind": item.kind,
        "name": item.name,
        "file": item.file,
        "digest": item.digest,
        "state": item.state,
        "reason": item.reason or None,
        "is_update": item.is_update,
        "publisher": _publisher(item.publisher),
        "text": content.text if content is not None else None,
        "module": (content.module or None) if content is not None else None,
        "before": _before(content) if content is not None else None,
    }


def _publisher(whose: PublisherView | None) -> dict[str, Any] | None:
    if whose is None:
        return None
    return {"name": whose.name, "key": whose.key or None, "accepted_key": whose.accepted or None}


def _before(content: FileContentView) -> dict[str, Any] | None:
    before = content.before
    if before is None:
        return None
    return {
        "name": before.name,
        "digest": before.digest,
        "accepted_at": rfc3339(before.accepted_at),
        "text": before.text,
        "changes": [
            {
                "direction": each.direction,
                "kind": each.kind,
                "name": each.name,
                "before": each.before,
                "after": each.after,
            }
            for each in before.changes
        ],
    }
