"""Shell completion: names and ids of the home.

A shell asks at every key press, so nothing heavy is imported here and no lock is waited for. It cannot
show messages, so a missing or broken home just offers nothing. Every value is matched against a
pattern: what another program wrote there must not become words of a command.
"""

import json
import re
import sqlite3
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import click
from click.shell_completion import CompletionItem

from aileron_core.errors import AileronError
from aileron_core.home.layout import Home
from aileron_core.ids import APPROVAL_ID, RUN_ID
from aileron_core.text import escape
from aileron_tui.cli.options import chosen_home

Completer = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_BINDING = re.compile(r"[a-z][a-z0-9_-]*(/[a-z0-9][a-z0-9._-]*){2}")
_LOCK_SECONDS = 0.05
_AFTER = chr(0x10FFFF)


def _completer(offer: Callable[[Home, str], Iterable[tuple[str, str]]]) -> Completer:
    """Make a completer of *offer*, which returns values with a description of each."""

    def complete(
        context: click.Context, _parameter: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        try:
            offered = [*offer(Home(chosen_home(context)), incomplete)]
        except (AileronError, OSError, sqlite3.Error, ValueError):
            return []
        return [
            CompletionItem(value, help=escape(description) or None)
            for value, description in offered
            if value.startswith(incomplete)
        ]

    return complete


def _rows(home: Home, query: str, *parameters: str) -> list[tuple[str, str]]:
    from aileron_core.storage.open import open_reader

    with closing(open_reader(home.database, timeout=_LOCK_SECONDS)) as connection:
        return [(str(a), str(b)) for a, b in connection.execute(query, parameters)]


def _ready_actions(home: Home, _incomplete: str) -> list[tuple[str, str]]:
    # By the files' names, which `action add` makes of the actions'.
    accepted = _rows(home, "SELECT name, '' FROM pins WHERE kind = 'action' ORDER BY name")
    there = {file.name for file in home.actions.glob("*.md")}
    return [
        (Path(name).stem, "") for name, _ in accepted if name in there and _NAME.fullmatch(name)
    ]


def _action_files(home: Home, _incomplete: str) -> list[tuple[str, str]]:
    names = sorted(file.stem for file in home.actions.glob("*.md"))
    return [(name, "") for name in names if _NAME.fullmatch(name)]


def _connectors(home: Home, _incomplete: str) -> list[tuple[str, str]]:
    query = "SELECT name, digest FROM pins WHERE kind = 'connector' ORDER BY name"
    store = home.path / "store" / "connectors" / "sha256"
    present = {f"sha256:{entry.name}" for entry in store.glob("*")}
    # The last word of NAME@VERSION: a shell takes colon and @ for the end of a word.
    offered = {
        ref.rpartition("@")[0].rpartition("/")[2]: ref
        for ref, digest in _rows(home, query)
        if digest in present
    }
    return [(name, ref) for name, ref in offered.items() if _NAME.fullmatch(name)]


def _servers(home: Home, _incomplete: str) -> list[tuple[str, str]]:
    query = "SELECT DISTINCT name, '' FROM pins WHERE kind = 'connector' AND name LIKE 'mcp://%' ORDER BY name"
    names = (ref.rpartition("@")[0].rpartition("/")[2] for ref, _ in _rows(home, query))
    return [(name, "") for name in names if _NAME.fullmatch(name)]


def _bindings(home: Home, _incomplete: str) -> list[tuple[str, str]]:
    # Not through the vault: cryptography alone takes longer to import than a person waits for a key.
    entries = _members(_members(json.loads((home.path / "vault.json").read_bytes())).get("entries"))
    return [
        (name, str(_members(_members(entry).get("metadata")).get("account", "")))
        for name, entry in sorted(entries.items())
        if _BINDING.fullmatch(name)
    ]


def _members(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _runs(home: Home, incomplete: str) -> list[tuple[str, str]]:
    column, pattern = ("approval_id", APPROVAL_ID) if incomplete[:1] == "a" else ("run_id", RUN_ID)
    rows = _rows(
        home,
        f"SELECT {column}, action || ' (' || state || ')' FROM runs WHERE {column} >= ? AND {column} < ? "  # noqa: S608 - our own column names
        f"ORDER BY {column} DESC LIMIT 50",
        incomplete,
        incomplete + _AFTER,
    )
    return [(id_, description) for id_, description in rows if pattern.fullmatch(id_)]


def _waiting_approvals(home: Home, _incomplete: str) -> list[tuple[str, str]]:
    rows = _rows(
        home,
        "SELECT approval_id, action FROM runs WHERE state IN "
        "('pending', 'checking', 'awaiting_vault') ORDER BY requested_at DESC LIMIT 50",
    )
    return [(id_, description) for id_, description in rows if APPROVAL_ID.fullmatch(id_)]


def newest_ids(home: Path, beginning: str) -> list[tuple[str, str]]:
    """Return the newest ids of runs, or of approvals where *beginning* is `act`, to name one that is nearly it."""
    try:
        return _runs(Home(home), beginning)
    except (AileronError, OSError, sqlite3.Error):
        return []


ready_actions = _completer(_ready_actions)
"""Accepted actions."""
action_files = _completer(_action_files)
"""Everything in the home's folder of actions."""
connectors = _completer(_connectors)
"""Installed connectors that were accepted, by the last word of their names."""
servers = _completer(_servers)
"""MCP servers that were accepted."""
bindings = _completer(_bindings)
"""Bound accounts, each with the person's own name for it."""
runs = _completer(_runs)
"""The newest runs; approvals where the word begins like one."""
waiting_approvals = _completer(_waiting_approvals)
"""Approvals that are open."""
