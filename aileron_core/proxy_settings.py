"""`[mcp_proxy]` of a project's `aileron.toml`: which tools an agent gets besides the accepted actions."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any, Final, Literal, cast

from aileron_core.errors import Problem

PROJECT_FILE: Final = "aileron.toml"
CODE: Final = "USER.MCP_PROXY."
MAX_PLUGINS, MAX_OPS = 16, 64
"""Of one file, and of one entry: a list of tools is part of every request to a model."""

_SECTION = "mcp_proxy"
_KEYS = ("enable", "intercept_builtins", "plugin_tools")
_PLUGIN = re.compile(r"[A-Za-z0-9._~-]{1,128}")
_OP = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginTools:
    """An entry of `plugin_tools`: ops of one connector."""

    plugin: str
    """The last word of the connector's name."""
    expose: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The ops as `<plugin>.<op>`."""
        return tuple(f"{self.plugin}.{op}" for op in self.expose)

    def to_json(self) -> dict[str, Any]:
        return {"plugin": self.plugin, "expose": list(self.expose)}


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxySettings:
    """What the section says."""

    builtins: Literal["off", "beside", "instead"] = "off"
    """Aileron's built-in tools, besides or instead of the agent's own."""
    plugin_tools: tuple[PluginTools, ...] = ()


NO_TOOLS: Final = ProxySettings()


def read_proxy_settings(content: Mapping[str, Any], problems: list[Problem]) -> ProxySettings:
    """Return what `[mcp_proxy]` in *content* says; `intercept_builtins` alone enables it.

    What is wrong with it is added to *problems*.
    """
    if _SECTION not in content:
        return NO_TOOLS
    if not isinstance(content[_SECTION], Mapping):
        problems.append(_problem("must be a table", ""))
        return NO_TOOLS
    table = cast("Mapping[str, Any]", content[_SECTION])
    for key in table:
        if key not in _KEYS:
            what = f"is not a key here; the keys are {', '.join(_KEYS)}"
            problems.append(_problem(what, key, "UNKNOWN_KEY"))
    instead = _flag(table, "intercept_builtins", False, problems)
    enabled = _flag(table, "enable", instead, problems)
    plugins = plugin_tools(table.get("plugin_tools", []), problems)
    if not enabled and "enable" not in table:
        what = "gives the agent no tools; add enable = true, or remove the section"
        problems.append(_problem(what, "", "EMPTY_PROXY"))
    if not enabled:
        return NO_TOOLS
    return ProxySettings(builtins="instead" if instead else "beside", plugin_tools=plugins)


def entries(names: Iterable[str]) -> list[dict[str, Any]]:
    """Return the list `plugin_tools` that gives the ops *names*, each `<plugin>.<op>`."""
    plugins = groupby((name.rpartition(".") for name in names), key=itemgetter(0))
    return [{"plugin": plugin, "expose": [op for *_, op in ops]} for plugin, ops in plugins]


def plugin_tools(value: object, problems: list[Problem]) -> tuple[PluginTools, ...]:
    """Return the entries of a list `plugin_tools`; what is wrong with one is added to *problems*."""
    key = "plugin_tools"
    if not isinstance(value, list) or len(cast("list[object]", value)) > MAX_PLUGINS:
        what = f"must be a list of at most {MAX_PLUGINS} tables with plugin and expose"
        problems.append(_problem(what, key))
        return ()
    found: list[PluginTools] = []
    for index, entry in enumerate(cast("list[object]", value)):
        place = f"{key}[{index}]"
        table: Mapping[str, Any] = (
            cast("Mapping[str, Any]", entry) if isinstance(entry, Mapping) else dict[str, Any]()
        )
        plugin, ops = table.get("plugin"), table.get("expose")
        for name in sorted(table.keys() - {"plugin", "expose"}):
            what = "is not a key here; the keys are plugin, expose"
            problems.append(_problem(what, f"{place}.{name}", "UNKNOWN_KEY"))
        if not isinstance(plugin, str) or not _PLUGIN.fullmatch(plugin):
            what = "must be the last word of a connector's name, such as mail-drafts"
            problems.append(_problem(what, f"{place}.plugin"))
            plugin = None
        if ops == []:
            problems.append(_problem("exposes no op", f"{place}.expose", "EMPTY_PROXY"))
        elif not _are_ops(ops):
            what = f'must be a list of at most {MAX_OPS} ops, such as ["list_drafts"]'
            problems.append(_problem(what, f"{place}.expose"))
        elif plugin is not None:
            found.append(PluginTools(plugin=plugin, expose=tuple(cast("list[str]", ops))))
    return tuple(found)


def _are_ops(value: object) -> bool:
    return (
        isinstance(value, list)
        and len(cast("list[object]", value)) <= MAX_OPS
        and all(
            isinstance(each, str) and _OP.fullmatch(each) for each in cast("list[object]", value)
        )
    )


def _flag(table: Mapping[str, Any], key: str, default: bool, problems: list[Problem]) -> bool:
    found = table.get(key, default)
    if isinstance(found, bool):
        return found
    problems.append(_problem("must be true or false", key))
    return default


def _problem(message: str, key: str, code: str = "") -> Problem:
    return Problem(
        file=PROJECT_FILE,
        key=f"{_SECTION}.{key}" if key else _SECTION,
        message=message,
        class_=f"{CODE}{code}" if code else "validation_error",
    )
