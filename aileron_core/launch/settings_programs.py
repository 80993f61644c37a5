"""Which programs and files an agent's settings name: every string in them that is a path or begins with one.

So is a line behind a key that names a program, and any behind a key of a check (`Agent.checks`). A
project's settings are read too, but only so that what they name is said: they could name a private
key as a program.
"""

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import cast

from aileron_core.launch.named_programs import HomeSettings, NamedProgram
from aileron_core.launch.plan import MCP_SERVER_NAME, Agent
from aileron_core.launch.settings_files import parse_table, settings_in
from aileron_core.launch.variables import fits

_PROGRAM_KEYS = (
    "command",
    "cmd",
    "*Command",
    "*_command",
    "notify",
    "*Helper",
    "*Refresh",
    "*Export",
    "shellPath",
)
"""The last name of a key whose value is a program, whatever it is."""
_PATH = re.compile(r"!?(?:\{?file:(?://)?)?((?:~|\$HOME|\$\{HOME\})?/[^\0\n]*?)\}?")
_INTERPRETED = re.compile(
    r"!?(?:python|node|bash|sh|zsh|dash|ruby|perl|bun|deno|php)[\d.]* +.*[~/].*"
)
_ROOT = re.compile(r"\$\{?(?:CLAUDE_PLUGIN_ROOT|extensionPath|PLUGIN_ROOT)\b\}?")
"""What an agent replaces by the folder of a plugin."""
_IN_FOLDERS = ("*.md", "hooks.json", "plugin.json", "*extension*.json", ".mcp.json")
_MODULE_FOLDERS = ("extensions", "plugin", "plugins")
_MODULES = (".cjs", ".js", ".mjs", ".mts", ".ts")
_SETTINGS = (".env", ".json", ".jsonc", ".md", ".toml", ".yaml")
_WITH_CHECKS = (
    ".claude.json", "*.config.toml", "config.*", "hooks.json", "managed*", "opencode.json*", "requirements.toml",
    "settings*.json", "system-defaults.json",
)  # fmt: skip
"""Files that may name checks, so that one that cannot be parsed counts as one; a token or a cache may have any form."""
_MOST_FILES = 2000
_USED_BEHIND = (".hooks.command", ".command", ".cmd")
"""What is left out of a key as a person sees it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _File:
    shown: str
    folder: Path
    agent: Agent
    project: PurePosixPath
    from_project: bool = False


def settings_programs(
    agent: Agent, settings: HomeSettings, project: PurePosixPath, texts: Mapping[str, str]
) -> Iterator[NamedProgram]:
    """Yield what the settings of *agent* in the person's home and for all users name, and what *project*'s do.

    Args:
        texts: the project's own settings files, by their paths in it.
    """
    for path in _files(agent, settings):
        absolute = settings.absolute(path)
        folder = absolute.parent
        file = _File(shown=settings.shown(path), folder=folder, agent=agent, project=project)
        if path.suffix in _MODULES:
            yield NamedProgram(
                file=file.shown, key="", command=(str(absolute),), check=True, module=True
            )
            continue
        needed = fits(path.name, _WITH_CHECKS)
        table = settings.table(path, lambda text, p=path: parse_table(str(p), text), needed=needed)
        try:
            yield from [*_in_value(table, "", file, check=False)]
        except RecursionError:
            settings.unusable(path)
    for name, text in texts.items():
        folder = Path(project)
        file = _File(shown=name, folder=folder, agent=agent, project=project, from_project=True)
        for key, value in settings_in(name, text):
            yield from _named(value, key, file, check=False)


def _files(agent: Agent, settings: HomeSettings) -> Iterator[PurePosixPath]:
    """Yield the settings files that may name something."""
    for folder in agent.folders:
        # What the agent itself writes back (a login) names nothing that its next sandbox would get.
        for pattern in folder.settings or (() if folder.credentials else ("",)):
            for path in settings.matching(folder.path / pattern if pattern else folder.path):
                yield from _below(path, settings)
    for pattern in agent.program_files:
        yield from settings.matching(PurePosixPath(pattern))


def _below(path: PurePosixPath, settings: HomeSettings) -> Iterator[PurePosixPath]:
    if not settings.absolute(path).is_dir():
        if path.suffix in _SETTINGS or path.name in _SETTINGS:
            yield path
        return
    left = _MOST_FILES
    for place, folders, names in os.walk(settings.absolute(path)):
        folders.sort()
        for name in sorted(names)[:left]:
            inner = PurePosixPath(place, name)
            in_modules = inner.suffix in _MODULES and inner.parent.name in _MODULE_FOLDERS
            if in_modules or any(fnmatchcase(name, pattern) for pattern in _IN_FOLDERS):
                yield inner
        left -= len(names)
        if left <= 0:
            return


def _in_value(value: object, key: str, file: _File, *, check: bool) -> Iterator[NamedProgram]:
    """Yield what *value* under the dotted *key* names."""
    if isinstance(value, dict):
        yield from _in_table(cast("dict[object, object]", value), key, file, check=check)
    elif isinstance(value, list):
        items = cast("list[object]", value)
        words = tuple(str(each) for each in items)
        if words and all(isinstance(each, str) for each in items) and _names_program(key):
            yield from _named(words, key, file, check=check)
            return
        for each in items:
            yield from _in_value(each, key, file, check=check)
    elif isinstance(value, str):
        yield from _named(value, key, file, check=check)


def _in_table(
    table: Mapping[object, object], key: str, file: _File, *, check: bool
) -> Iterator[NamedProgram]:
    if not check and (table.get("disabled") is True or table.get("enabled") is False):
        return
    starts = "command" if "command" in table else "cmd"
    command, args = table.get(starts), table.get("args")
    line = isinstance(command, str) and isinstance(args, list)
    here = table.get("async") is not True
    for name, value in table.items():
        inner = f"{key}.{name}".lstrip(".")
        found = here and (check or fits(inner, file.agent.checks))
        other = isinstance(name, str) and name.startswith("/") and name != str(file.project)
        if other or name == MCP_SERVER_NAME or (line and name == "args"):
            continue  # for another project; Aileron's own server; with its command
        if line and name == starts:
            value = [command, *cast("list[object]", args)]
            yield from _named(tuple(map(str, value)), inner, file, check=found)
        else:
            yield from _in_value(value, inner, file, check=found)


def _names_program(key: str) -> bool:
    return fits(key.rpartition(".")[2], _PROGRAM_KEYS)


def _named(
    command: str | tuple[str, ...], key: str, file: _File, *, check: bool
) -> Iterator[NamedProgram]:
    """Yield *command* if it names a program, or the file of one."""
    root = file.folder.parent if file.folder.name in ("hooks", ".claude-plugin") else file.folder
    by_key, module = _names_program(key), False
    if isinstance(command, str):
        line = _ROOT.sub(lambda _: str(root), command).strip()
        by_key = (by_key and line != "") or (line.startswith("!") and not check)
        path, alone = _PATH.fullmatch(line), " " not in line
        relative = check and alone and line.startswith(("./", "../"))
        if not (path or relative or by_key or _INTERPRETED.fullmatch(line)):
            return
        line = path[1] if path else line.removeprefix("!")
        line = os.path.normpath(file.folder / line) if relative else line
        module = check and alone and Path(line).suffix in _MODULES
        words: str | tuple[str, ...] = (line,) if module else line
    else:
        words = tuple(_ROOT.sub(lambda _: str(root), each) for each in command)
    for end in _USED_BEHIND:
        key = key.removesuffix(end)
    yield NamedProgram(
        file=file.shown,
        key=key,
        command=words,
        check=check and not file.from_project,
        module=module,
        by_key=by_key or check,
        from_project=file.from_project,
    )
