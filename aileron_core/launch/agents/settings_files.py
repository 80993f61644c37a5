"""Reading agents' settings files, as far as they determine where model traffic goes.

Read, never obeyed: a file that cannot be parsed gives None, and that agent's traffic is left alone.
"""

import json
import re
import tomllib
from collections.abc import Collection, Iterable, Mapping
from pathlib import PurePosixPath
from typing import Any, cast

import yaml

from aileron_core.launch.routes import RouteSetting, is_in_effect

_STRING = r'("(?:\\.|[^"\\])*")'
_COMMENT = re.compile(_STRING + r"|//[^\n]*|/\*.*?\*/", re.DOTALL)
_LAST_COMMA = re.compile(_STRING + r"|,(?=\s*[}\]])")
_ASSIGNED = re.compile(r"^\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(.*)$", re.MULTILINE)


ARGUMENTS = "Its arguments"
"""Where a `RouteSetting` was found that is typed, or comes from config.toml or aileron.toml."""


def home_path(env: Mapping[str, str], variable: str, default: str) -> PurePosixPath:
    """Return the folder that *variable* names, *default* (below the person's home) if it is unset."""
    return PurePosixPath(env.get(variable) or default)


def json_table(text: str) -> dict[str, Any] | None:
    """Return the object in *text*, JSON with or without comments and trailing commas; None if it is none."""
    bare = _COMMENT.sub(lambda match: match[1] or "", text)
    bare = _LAST_COMMA.sub(lambda match: match[1] or "", bare)
    try:
        found: Any = json.loads(bare or "{}")
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, Any]", found) if isinstance(found, dict) else None


def toml_table(text: str) -> dict[str, Any] | None:
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError):
        return None


def yaml_table(text: str) -> dict[str, Any] | None:
    """Return the table in *text*, YAML; None if it is none."""
    try:
        found: Any = yaml.safe_load(text) or {}
    except (yaml.YAMLError, ValueError, RecursionError):
        return None
    return cast("dict[str, Any]", found) if isinstance(found, dict) else None


def table_at(table: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    """Return the table under *keys*, an empty one if there is none."""
    found: Any = table
    for key in keys:
        found = cast("Mapping[str, Any]", found).get(key) if isinstance(found, Mapping) else None
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


def merged(under: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Return *under* with *over* laid over it, table by table."""
    result = dict(under)
    for key, value in over.items():
        known = result.get(key)
        both = isinstance(known, dict) and isinstance(value, dict)
        result[key] = (
            merged(cast("dict[str, Any]", known), cast("dict[str, Any]", value)) if both else value
        )
    return result


def names_in_effect(values: Mapping[str, Any], names: Collection[str]) -> list[str]:
    """Return which of *names* are set in *values*, in their order.

    One that is off, or names a provider's own address, counts as not set.
    """
    return [name for name in names if is_in_effect(values.get(name))]


def is_project_file(path: str) -> bool:
    """Return whether *path*, a key of `PlanContext.settings`, is a file of the project's."""
    return not path.startswith(("~", "/")) and path != ARGUMENTS


def settings_in(path: str, values: Mapping[str, object]) -> list[RouteSetting]:
    """Return *values*, which the file *path* sets."""
    return [
        RouteSetting(name=name, value=str(value), where=path, from_project=is_project_file(path))
        for name, value in values.items()
        if value is not None
    ]


def parse_env_file(text: str) -> dict[str, str]:
    """Return the assignments in a `.env` file."""
    return {name: value.strip().strip("\"'") for name, value in _ASSIGNED.findall(text)}


def yaml_value(text: str, key: str) -> str | None:
    found = re.search(rf"^{re.escape(key)}[ \t]*:[ \t]*(.*?)[ \t]*(?:#.*)?$", text, re.MULTILINE)
    value = found[1].strip("\"'") if found else ""
    return value or None


def yaml_values(text: str) -> dict[str, str]:
    """Return the plain values at the top of a YAML file."""
    return {
        key: value
        for key in re.findall(r"^([A-Za-z_][A-Za-z0-9_]*)[ \t]*:", text, re.MULTILINE)
        if (value := yaml_value(text, key)) is not None
    }


def front_matter(text: str) -> dict[str, str]:
    """Return the plain values at the top of the YAML with which a Markdown file begins."""
    found = re.match(r"---[ \t]*\r?\n(.*?)^---", text, re.DOTALL | re.MULTILINE)
    return yaml_values(found[1]) if found else {}


def option_value(words: Iterable[str], *names: str) -> str | None:
    """Return the value of the last option with one of *names* on a command line, None if there is none.

    An option without a value gives an empty string.
    """
    found: str | None = None
    before = ""
    for word in words:
        name, _, value = word.partition("=")
        if before in names:
            found = word
        elif name in names:
            found = value
        before = word
    return found
