"""Finding the programs that an agent's settings name: what to mount of each, or why it stays out.

A program is mounted read-only at its path if its command is literal words, the first of which is an
executable regular file, or a name on PATH, outside of every dot folder but the agent's own. Of a
script its interpreter is mounted too. No link is followed that an agent could have made.
"""

import errno
import os
import re
import stat
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from aileron_core.containment.programs import script_interpreter
from aileron_core.containment.safe_paths import resolve_trusted_links
from aileron_core.launch.named_programs import NamedProgram, ResolvedProgram

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
