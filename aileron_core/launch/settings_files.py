"""Reading agents' settings files, as far as they determine where model traffic goes.

Read, never obeyed: a file that cannot be parsed gives None, and that agent's traffic is left alone.
"""

import errno
import json
import re
import stat
import tomllib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any, cast

import yaml

_STRING = r'("(?:\\.|[^"\\])*")'
_COMMENT = re.compile(_STRING + r"|//[^\n]*|/\*.*?\*/", re.DOTALL)
_LAST_COMMA = re.compile(_STRING + r"|,(?=\s*[}\]])")
_ASSIGNED = re.compile(r"^\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(.*)$", re.MULTILINE)

_MOST_BYTES = 16 * 1024 * 1024
"""Larger than any settings; Claude Code keeps its history in one of these files too."""
_OFF = frozenset(("", "0", "false", "no", "off"))
PROVIDER_HOSTS = ("api.anthropic.com", "api.openai.com", "generativelanguage.googleapis.com")
_PROVIDERS_OWN = frozenset(
    f"https://{host}{path}" for host in PROVIDER_HOSTS for path in ("", "/v1", "/v1beta")
)
"""The gateway's own upstreams: a setting that names one of them changes no destination."""


def read_settings(path: Path) -> str | None:
    """Return the text of a settings file, None if it does not exist.

    Raises:
        OSError: it is not a regular file, is too large, or cannot be read.
        UnicodeDecodeError: it is not UTF-8.
    """
    try:
        status = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    if not stat.S_ISREG(status.st_mode) or status.st_size > _MOST_BYTES:
        raise OSError(errno.EINVAL, "is not a settings file")
    return path.read_bytes().decode("utf-8")


def is_in_effect(value: object) -> bool:
    """Return whether a setting is on, or names an address other than a provider's own."""
    text = str(value or "").strip().lower().rstrip("/")
    return text not in _OFF and text not in _PROVIDERS_OWN


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


def words_at(table: Mapping[str, Any], *keys: str) -> tuple[str, ...]:
    """Return the texts in the list under the first of *keys* that *table* has; one that stands alone is a list of one."""
    found = next((table[key] for key in keys if key in table), None)
    if isinstance(found, list):
        return tuple(map(str, cast("list[object]", found)))
    return (found,) if found and isinstance(found, str) else ()


def tables_in(value: object) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the names and tables in *value*, if it is a table of tables."""
    if isinstance(value, dict):
        for name, each in cast("dict[object, object]", value).items():
            if isinstance(each, dict):
                yield str(name), cast("dict[str, Any]", each)


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
    return not path.startswith(("~", "/"))


def parse_env_file(text: str) -> dict[str, str]:
    """Return the assignments in a `.env` file."""
    return {name: value.strip().strip("\"'") for name, value in _ASSIGNED.findall(text)}


def front_matter(text: str) -> dict[str, Any] | None:
    """Return the table in YAML above a Markdown text, an empty one where there is none; None if it cannot be read."""
    if not text.startswith("---\n"):
        return {}
    return yaml_table(text[4:].partition("\n---")[0])


_PARSERS: Mapping[str, Callable[[str], Mapping[str, Any] | None]] = {
    ".env": parse_env_file,
    ".json": json_table,
    ".jsonc": json_table,
    ".md": front_matter,
    ".toml": toml_table,
    ".yaml": yaml_table,
}


def parse_table(path: str, text: str) -> Mapping[str, Any] | None:
    """Return the table in the settings file *path*, by the form that its name says; None if it has none."""
    suffix = PurePosixPath(path).suffix or PurePosixPath(path).name
    return _PARSERS[suffix](text) if suffix in _PARSERS else {}


def flat(table: Mapping[str, object], prefix: str = "") -> Iterable[tuple[str, str]]:
    """Return every value in nested tables, under the dotted path of its keys; lists item by item."""
    for key, value in table.items():
        path = f"{prefix}{key}"
        if isinstance(value, Mapping):
            yield from flat(value, f"{path}.")  # pyright: ignore[reportUnknownArgumentType]
        elif isinstance(value, list):
            for item in value:  # pyright: ignore[reportUnknownVariableType]
                if isinstance(item, Mapping):
                    yield from flat(item, f"{path}.")  # pyright: ignore[reportUnknownArgumentType]
                else:
                    yield path, str(item)  # pyright: ignore[reportUnknownArgumentType]
        elif value is not None:
            yield path, str(value)


def settings_in(path: str, text: str) -> list[tuple[str, str]]:
    """Return every value in the settings file *path*, under the dotted path of its keys; none if it has no table."""
    try:
        return [*flat(parse_table(path, text) or {})]
    except RecursionError:
        return []


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
