"""Goose's extensions for a session in which Aileron's tools stand in place of its own."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from aileron_core.launch.agents.program_settings import tables_in
from aileron_core.launch.agents.settings_files import json_table, merged, table_at, yaml_table

EXTENSIONS = "EXTENSIONS"
"""Goose takes each setting from the environment first: this one as the whole list of its extensions."""
_KEPT = frozenset(("chatrecall", "skills", "todo", "tom"))
"""Those of its own that act on no file and run no command."""
_OF_ITS_OWN = ("builtin", "platform")
_ARGUMENTS: Mapping[str, str] = {  # each option -> what it brings back
    "--with-builtin": "extensions of its own",
    "--recipe": "the extensions of a recipe",
    "--resume": "those of the conversation's first launch",
    "-r": "those of the conversation's first launch",
    "--fork": "those of the conversation's first launch",
}


def extensions_without_own_tools(settings: Mapping[str, str], env: Mapping[str, str]) -> str:
    """Return the value of its variable for its extensions: those in use, less its own that act on files or run commands.

    Args:
        settings: the texts of its settings files; one for the whole system counts under the person's.
    """
    found: dict[str, Any] = {}
    for path, text in sorted(settings.items(), key=lambda each: not each[0].startswith("/etc/")):
        if path.endswith("/config.yaml"):
            found = merged(found, table_at(yaml_table(text) or {}, "extensions"))
    found = json_table(env.get(EXTENSIONS, "")) or found
    kept = {
        name: each
        for name, each in tables_in(found)
        if each.get("type") not in _OF_ITS_OWN or name in _KEPT
    }
    return json.dumps(kept)


def brought_back(args: Iterable[str]) -> tuple[str, ...]:
    """Return what *args* bring back of its own tools, a sentence for each option."""
    named = dict.fromkeys(word.partition("=")[0] for word in args)
    return tuple(
        f"Goose may use tools of its own, because {word} brings back {_ARGUMENTS[word]}. What they do is not gated."
        for word in named
        if word in _ARGUMENTS
    )
