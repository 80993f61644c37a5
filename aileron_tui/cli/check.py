"""`aileron action check` and `aileron validate`: what is wrong with files."""

import math
import os
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path

from aileron_core.actions.catalog import preview_problems, read_plain
from aileron_core.actions.load import read_action
from aileron_core.errors import FileProblems, Problem
from aileron_core.home.client import ConsoleUnavailable, HomeClient
from aileron_core.home.layout import Home
from aileron_core.proxy_settings import PluginTools
from aileron_core.text import escape
from aileron_tui.cli.output import EXIT, CliError, CommandContext


def check_actions(context: CommandContext, files: Sequence[str], *, portable: bool) -> int:
    """Print every problem with its file, line and column; return 1 if one is an error, 2 for a wrong PATH.

    Of a folder, the previews are also checked against its other files; only a warning, as others may be added.

    Args:
        context: how the command was called; nothing of its home is read.
        portable: report also what upstream would refuse.
    """
    groups = {path: _files(Path(path)) for path in files}
    read = {file: _read(file) for found in groups.values() for file in found}
    between: set[Problem] = set()
    for path, found in groups.items():
        if found != [Path(path)]:
            whole = [(_shown(file), read[file]) for file in found]
            between.update(
                preview_problems({file: each for file, each in whole if isinstance(each, bytes)})
            )
    problems = [
        problem
        for file, data in read.items()
        for problem in _problems(_shown(file), data, between, portable=portable)
    ]
    return report(context, problems, len(read))


def validate_project(context: CommandContext, file: str | Path) -> int:
    """Print why a launch would refuse the project's settings file; return 1 if it would.

    What of it depends on the accepted connectors is asked of the console, or read in the home if none runs.

    Raises:
        NotFound, Forbidden: it cannot be read.
    """
    from aileron_core.launch.agents import AGENTS
    from aileron_core.launch.project import exposed_by_project, project_file_problems

    path = Path(file)
    problems = project_file_problems(path, AGENTS.values())
    try:
        tools = exposed_by_project(path)
    except FileProblems:  # it is no TOML, as was found already
        tools = ()
    if tools:
        problems = (*problems, *_plugin_tool_problems(context.home, path, tools))
    return report(context, problems, 1, shows_class=True)


def _plugin_tool_problems(
    home: Path, path: Path, tools: Sequence[PluginTools]
) -> tuple[Problem, ...]:
    asked = {"plugin_tools": [each.to_json() for each in tools]}
    try:
        _, body = HomeClient(home).request("POST", "/v1/plugin-tools", asked)
    except ConsoleUnavailable:
        from aileron_core.library.plugin_tools import plugin_tool_problems
        from aileron_tui.cli.accepted import accepted_actions, accepted_connectors

        place = Home(home)
        found = plugin_tool_problems(tools, accepted_connectors(place), accepted_actions(place))
        return tuple(replace(each, file=path.name) for each in found)
    return tuple(
        Problem(file=path.name, key=each["key"], message=each["message"], class_=each["class"])
        for each in body["problems"]
    )


def report(
    context: CommandContext, problems: Sequence[Problem], files: int, *, shows_class: bool = False
) -> int:
    errors = sum(problem.severity == "error" for problem in problems)
    context.show(
        {
            "files": files,
            "ok": not errors,
            "problems": [problem.to_json() for problem in problems],
        }
    )
    for problem in problems:
        _print(context, problem, shows_class=shows_class)
    counts = (("file", files), ("error", errors), ("warning", len(problems) - errors))
    checked, *rest = (_count(number, noun) for noun, number in counts)
    context.say(f"{checked} checked: {', '.join(rest)}.")
    return EXIT.FAILED if errors else EXIT.DONE


def _files(path: Path) -> list[Path]:
    """Return the action files of *path*: itself, or a folder's `*.md` and each `action.md` below it.

    Raises:
        CliError: there is nothing of that name, or no action file in it.
    """
    try:
        os.listdir(path)  # noqa: PTH208 - a folder that cannot be read is not an empty one
    except FileNotFoundError as error:
        if os.path.lexists(path):
            return [path]
        raise CliError(EXIT.USAGE, f"There is no file or folder {path}.") from error
    except OSError as error:
        if os.path.isdir(path):  # noqa: PTH112 - what cannot be asked is none
            raise CliError(EXIT.USAGE, f"{path} cannot be read: {error.strerror}.") from error
        return [path]
    files = sorted({*path.glob("*.md"), *path.rglob("action.md"), *path.glob("actions/*.md")})
    files = [file for file in files if file.name != "README.md" and not file.name.startswith(".")]
    if not files:
        raise CliError(
            EXIT.USAGE, f"{path} contains no action files (*.md, or NAME/action.md at any depth)."
        )
    return files


def _shown(path: Path) -> str:
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def _read(path: Path) -> bytes | Problem:
    try:
        return read_plain(path)
    except OSError as error:
        message = f"cannot be read: {error.strerror or error}"
        return Problem(file=_shown(path), message=message)


def _problems(
    file: str, data: bytes | Problem, between: Collection[Problem], *, portable: bool
) -> Sequence[Problem]:
    """Return the problems of *file* itself and those of *between*, which are about it and others."""
    if isinstance(data, Problem):
        return (data,)
    own = read_action(data, file, portable=portable).problems
    problems = (*own, *(each for each in between if each.file == file))
    # In the order of the file, so that it can be fixed in one pass.
    return sorted(problems, key=lambda each: (each.line or math.inf, each.column))


def _print(context: CommandContext, problem: Problem, *, shows_class: bool) -> None:
    location = problem.file
    if problem.line:
        location += f":{problem.line}:{problem.column}"
    key = f"{problem.key}: " if problem.key else ""
    failed = problem.severity == "error"
    line = f"{'✗' if failed else '!'} {location}: {key}{problem.message}"
    line += f" ({problem.class_})" if shows_class else ""
    context.say(escape(line), fg="red" if failed else "yellow")


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
