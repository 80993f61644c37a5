"""Finding the programs and files that an agent's settings name: what to mount of each, or why it stays out.

Every string in them counts that is a path or begins with one, a line behind a key that names a program, and any
behind a key of a check (`Agent.checks`). A project's settings are read too, but only so that what they name is
said: they could name a private key as a program.

A program is mounted read-only at its path if its command is literal words, the first of which is an
executable regular file, or a name on PATH, outside of every dot folder but the agent's own. Of a
script its interpreter is mounted too. No link is followed that an agent could have made.
"""

import errno
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import cast

from aileron_core.containment.programs import script_interpreter
from aileron_core.containment.safe_paths import resolve_trusted_links
from aileron_core.launch.named_programs import HomeSettings, NamedProgram, ResolvedProgram
from aileron_core.launch.plan import MCP_SERVER_NAME, Agent
from aileron_core.launch.settings_files import parse_table, settings_in
from aileron_core.launch.variables import fits

_PLAIN = r"[A-Za-z0-9_@%+=:,./-]+"
_PIECE = re.compile(rf"""({_PLAIN})|'([^'\n]*)'|"([^"$`\\!\n]*)\"""")
_AT_HOME = re.compile(r"""(?:~|("?)\$(?:HOME|\{HOME\}))(?=/)""")
_INTERPRETER = re.compile(r"(?:python|node|bash|sh|zsh|dash|ruby|perl|bun|deno|php)[\d.]*")
_CODE_OPTION = re.compile(r"-[a-z]*[ce]|--eval|--print")
_SCRIPT_SUFFIXES = frozenset(
    (".py", ".js", ".mjs", ".cjs", ".ts", ".mts", ".cts", ".sh", ".bash", ".zsh", ".rb", ".pl", ".php")
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxPaths:
    """What a sandbox contains, as far as finding programs in it goes."""

    home: Path
    """The person's."""
    project: Path
    own_folders: tuple[Path, ...]
    """The agent's own folders in the home: a program may be in these although their names begin with a dot."""
    copied: tuple[Path, ...]
    """What of them the sandbox has as a copy."""
    mounted: tuple[Path, ...]
    """What is mounted from outside, the project among it."""
    hidden: tuple[Path, ...] = ()
    """What is covered, by the person's settings for one."""
    excluded: tuple[Path, ...]
    """What no mount may contain or be in: Aileron's home."""
    search_path: str
    """The person's PATH."""

    def contains(self, path: Path) -> bool:
        """Return whether the sandbox has *path*, and what it leads to."""
        return all(
            _in_any(each, self.mounted) and not _in_any(each, self.hidden)
            for each in (path, path.resolve())
        )

    def has_of_agent(self, path: Path) -> bool:
        """Return whether the sandbox has *path*, or a copy of the agent's own files in it."""
        return (
            self.contains(path)
            or _in_any(path, self.copied)
            or any(own.is_relative_to(path) for own in self.own_folders)
        )


def _in_any(path: Path, folders: Iterable[Path]) -> bool:
    return any(path.is_relative_to(folder) for folder in folders)


def resolve_programs(
    named: Iterable[NamedProgram], paths: SandboxPaths
) -> tuple[ResolvedProgram, ...]:
    return tuple(found for each in named if (found := _resolved(each, paths)) is not None)


def _expanded(word: str, home: Path) -> Path:
    at_home = _AT_HOME.match(word)
    return Path(os.path.normpath(f"{home}{word[at_home.end() :]}" if at_home else word))


def _whole_path(command: str | Sequence[str], home: Path) -> Path | None:
    """Return the path that *command* is as a whole, None if there is nothing at it."""
    word = command if isinstance(command, str) else command[0] if len(command) == 1 else ""
    path = _expanded(word, home)
    try:
        return path if path.is_absolute() and path.exists() else None
    except (OSError, ValueError):  # in a folder that cannot be entered, or no name of a file
        return None


def _begins_with_path(command: str | Sequence[str], home: Path) -> bool:
    words = literal_words(command, home) if isinstance(command, str) else command
    first = words[0] if words else ""
    return _is_interpreter(first) or _whole_path(first, home) is not None


def _is_program(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)


class _MissingError(Exception):
    """A program is not in the sandbox and cannot be mounted; its text is a clause."""


class _UnknownError(_MissingError):
    """What a command starts is not known."""


_Mounts = dict[Path, Path]


def _resolved(named: NamedProgram, paths: SandboxPaths) -> ResolvedProgram | None:
    """Return how the sandbox has *named*; None where it is no program and no file that is missing."""
    if named.problem:
        return ResolvedProgram(named=named, problem=named.problem)
    alone = _whole_path(named.command, paths.home)
    if named.from_project or (alone is not None and not named.check and not _is_program(alone)):
        if alone is None or not alone.is_file():
            return None
        if paths.has_of_agent(alone) or _in_any(alone, paths.hidden):
            return None
        return ResolvedProgram(named=named, missing_file=alone)
    if alone is None and not named.by_key and not _begins_with_path(named.command, paths.home):
        return None
    mounts: _Mounts = {}
    lost = ""
    try:
        if named.check and alone is not None and alone.is_dir():
            _require_folder(alone, paths)
        elif named.module:
            mounts |= _module(_expanded(named.command[0], paths.home), paths)
        else:
            words = _words(named.command, paths.home)
            found, lost = _arguments(words, paths)
            mounts |= _program(words[0], paths) | found
    except _MissingError as problem:
        unknown = isinstance(problem, _UnknownError)
        return ResolvedProgram(named=named, problem=str(problem), unknown=unknown)
    except OSError as error:
        why = f"cannot be read ({error.strerror})"
        return ResolvedProgram(named=named, problem=why)
    return ResolvedProgram(
        named=named, mounts=tuple(sorted(mounts.items())), problem=lost, unknown=bool(lost)
    )


def literal_words(line: str, home: Path) -> tuple[str, ...] | None:
    """Return the words of a shell's *line*, None if it has any syntax but quotes around literal text.

    The one exception: `~/`, `$HOME/` and `${HOME}/` at the beginning of a word are the *home*.
    """
    rest, words = line.strip(" \t"), list[str]()
    at = 0
    while at < len(rest):
        word, pieces = "", 0
        if found := _AT_HOME.match(rest, at):
            word, at = str(home), found.end()
            if found[1]:  # the quotes go on behind the variable
                rest = f'{rest[:at]}"{rest[at:]}'
        while piece := _PIECE.match(rest, at):
            word += piece[1] or piece[2] or piece[3] or ""
            at, pieces = piece.end(), pieces + 1
        if not pieces or rest[at : at + 1] not in ("", " ", "\t"):
            return None
        words.append(word)
        at = len(rest) - len(rest[at:].lstrip(" \t"))
    if not words or "=" in words[0] or any(word.startswith("=") for word in words):
        return None  # an assignment; `=name`, which zsh looks up
    return tuple(words)


def _words(command: str | Sequence[str], home: Path) -> tuple[str, ...]:
    """Return the words of *command*.

    Raises:
        _MissingError: it is empty, or not made of literal words.
    """
    if isinstance(command, str):
        words = literal_words(command, home)
        if words is None:
            raise _UnknownError("is more than a program and its arguments")
    else:
        words = tuple(command)
    if not words or not words[0]:
        raise _MissingError("is empty")
    if any("$" in word for word in words) and not isinstance(command, str):
        raise _UnknownError("contains a variable")
    if _is_interpreter(words[0]) and any(_CODE_OPTION.fullmatch(word) for word in words[1:2]):
        raise _UnknownError("is a line of code")
    return words


def _is_interpreter(word: str) -> bool:
    return _INTERPRETER.fullmatch(Path(word).name) is not None


def _program(word: str, paths: SandboxPaths) -> _Mounts:
    """Return what to mount so that the program *word* is in the sandbox; nothing where it is there already."""
    if "/" in word:
        return _executable(paths.project / word, paths)
    problem: _MissingError | None = None
    for path in _on_search_path(word, paths):
        try:
            return _executable(path, paths)
        except _MissingError as error:  # a later one may be in the sandbox, where it is found
            problem = problem or error
    raise problem or _MissingError(f"needs {word}, which is not on your PATH")


def _on_search_path(name: str, paths: SandboxPaths) -> Iterable[Path]:
    never = (paths.project, *paths.excluded)
    for folder in map(Path, paths.search_path.split(os.pathsep)):
        path = folder / name
        if folder.is_absolute() and not _in_any(folder, never) and os.access(path, os.X_OK):
            yield path


def _executable(path: Path, paths: SandboxPaths) -> _Mounts:
    real = _regular_file(path, paths)
    if not os.access(real, os.X_OK):
        raise _MissingError(f"needs {path}, which is not executable")
    mounts = {} if paths.contains(path) else _mount(path, real, paths)
    return mounts | _interpreter(real, paths)


def _interpreter(script: Path, paths: SandboxPaths) -> _Mounts:
    """Return what to mount for the interpreter of *script*; nothing for a binary."""
    asked = script_interpreter(script)
    if not asked:
        return {}
    found = [Path(asked)] if "/" in asked else [*_on_search_path(asked, paths)]
    if any(paths.contains(each) for each in found if each.exists()):
        return {}
    for each in found:
        if each.exists() and each.parent.name == "bin":
            return _installation(each, paths)
    raise _MissingError(f"is a script for {asked}, which is not in the sandbox")


def _installation(program: Path, paths: SandboxPaths) -> _Mounts:
    """Return the mount of the folder in whose `bin` *program* is: an interpreter's, or a virtual environment."""
    folder = program.parent.parent
    missing = f"is a script for {program}, which is not in the sandbox"
    real = _trusted(folder, missing, paths)
    kept = (paths.home.resolve(), paths.project, *paths.excluded)
    if not real.is_dir() or any(each.is_relative_to(real) for each in kept):
        raise _MissingError(missing)
    base = program.resolve()
    if not (base.is_relative_to(real) or paths.contains(base)):
        raise _MissingError(f"{missing}: it leads to {base}")
    return _mount(folder, real, paths)


def _arguments(words: Sequence[str], paths: SandboxPaths) -> tuple[_Mounts, str]:
    """Return the mounts for a script and for the agent's own files among the arguments, and what is missing.

    The latter is a clause: the program may be of use without, such as a server of several folders.
    """
    mounts: _Mounts = {}
    lost = ""
    script = _is_interpreter(words[0])
    for word in words[1:]:
        option = word.startswith("-")
        path = Path(word.partition("=")[2] if option else word)
        is_script, script = script and not option, script and option
        if not path.is_absolute() or not os.path.lexists(path) or paths.contains(path):
            continue
        if path.is_dir() and _in_any(path, paths.copied):
            continue
        if is_script or _in_any(path, paths.own_folders):
            mounts |= _module(path, paths)
        else:
            lost = lost or f"has the argument {path}, which the sandbox does not have"
    return mounts, lost


def _module(path: Path, paths: SandboxPaths) -> _Mounts:
    """Return the mount of a file that another program loads."""
    if path.is_dir():
        raise _MissingError(f"is in the folder {path}, and no folder is mounted for a program")
    real = _regular_file(path, paths)
    if paths.contains(path):
        return {}
    if path.suffix not in _SCRIPT_SUFFIXES and not _in_any(path, paths.own_folders):
        raise _MissingError(f"needs {path}, which is not a script by its name")
    return _mount(path, real, paths)


def _require_folder(folder: Path, paths: SandboxPaths) -> None:
    if not _in_any(folder, (*paths.copied, *paths.mounted)):
        raise _MissingError(f"needs the folder {folder}, which is not in the sandbox")


def _regular_file(path: Path, paths: SandboxPaths) -> Path:
    """Return the file that *path* leads to."""
    if paths.contains(path):
        real = path.resolve()
    else:
        real = _trusted(path, f"needs {path}, which does not exist", paths)
    if not real.exists():
        raise _MissingError(f"needs {path}, which does not exist")
    if not stat.S_ISREG(real.stat().st_mode):
        raise _MissingError(f"needs {path}, which is not a regular file")
    return real


def _trusted(path: Path, missing: str, paths: SandboxPaths) -> Path:
    try:
        return resolve_trusted_links(path, paths.home)
    except OSError as error:
        if error.errno == errno.ELOOP:
            why = "which is behind a link that is not followed"
            raise _MissingError(f"needs {path}, {why}") from None
        raise _MissingError(missing) from None


def _mount(path: Path, real: Path, paths: SandboxPaths) -> _Mounts:
    """Return the mount of *real* at *path*, where neither is a place that nothing is mounted from."""
    for each in (path, real):
        if ".." in each.parts or _in_any(each, [folder.resolve() for folder in paths.excluded]):
            raise _MissingError(f"needs {path}, which Aileron does not mount")
        if _in_any(each, paths.hidden):
            raise _MissingError(f"needs {path}, which is hidden from the agent")
        own = _in_any(each, [*paths.own_folders, *(own.resolve() for own in paths.own_folders)])
        below = _below_home(each, paths.home).parts
        if not own and any(part.startswith(".") for part in below):
            raise _MissingError(f"needs {path}, which is in a dot folder")
    # A link in a system folder is in the sandbox as it is, and leads to the file under its own name.
    return {real if _in_any(path, paths.mounted) else path: real}


def _below_home(path: Path, home: Path) -> Path:
    for each in (home, home.resolve()):
        if path.is_relative_to(each):
            return path.relative_to(each)
    return path


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
