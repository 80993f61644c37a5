"""What the words of a shell command mean, where a shell would pass each of them on as it stands.

Only such a command can be allowed by a rule, since only its words are known before it runs. Everything else
that a shell knows makes a command not simple, and so does whatever is in doubt.
"""

import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath
from typing import Any

from aileron_core.connectors.builtin.worker.arguments import Arguments, OpFailed
from aileron_core.connectors.builtin.worker.paths import Place, Project

_SPECIAL = frozenset("$`*?[]{}|&;()<>!#~\\\"'")
"""Outside quotes; a backslash and quotes are treated first."""
_SPECIAL_IN_QUOTES = frozenset('$`\\"')
_RESERVED = frozenset({
    "case", "coproc", "do", "done", "elif", "else", "esac", "fi", "for", "function", "if", "in", "select",
    "then", "time", "until", "while",
})  # fmt: skip
_SHELL_ONLY = frozenset({
    ".", ":", "alias", "bg", "bind", "break", "builtin", "caller", "cd", "command", "compgen", "complete",
    "compopt", "continue", "declare", "dirs", "disown", "enable", "eval", "exec", "exit", "export", "fc",
    "fg", "getopts", "hash", "help", "history", "jobs", "let", "local", "logout", "mapfile", "popd", "pushd",
    "read", "readarray", "readonly", "return", "set", "shift", "shopt", "source", "suspend", "times", "trap",
    "type", "typeset", "ulimit", "umask", "unalias", "unset", "wait",
})  # fmt: skip
"""Builtins whose effect, or view, is the shell's own: as a program they would be something else."""
_MAX_LINKS = 40


def resolve(project: Project, args: Arguments) -> dict[str, Any]:
    """Do the op `resolve`.

    `named`: files of the project that its words name, without links. `program` is what to run, under the name by which it was found: some programs act by their name.
    """
    argv = literal_words(args.text("command"))
    if not argv:
        return {"words": [], "simple": False}
    found = None if argv[0] in _SHELL_ONLY else _on_path(argv[0], project)
    real = None if found is None else os.path.realpath(found)
    words: list[list[str]] = []
    if argv[0] in _SHELL_ONLY:
        words.append([argv[0], "part of the shell"])
    elif found is None or real is None:
        words.append([argv[0], "not found"])
    else:
        words.append([argv[0], real + (" (in the project)" if _in(project, real) else "")])
    words += [[word, meaning] for word in argv[1:] if (meaning := _file(project, word))]
    inside = any(each is not None and _in(project, each) for each in (found, real))
    return {
        "words": words,
        "simple": True,
        "argv": argv,
        "named": [*_named_files(project, argv[1:])],
        "program": found,
        "program_writable": found is not None and (inside or _can_be_changed(found)),
    }


def literal_words(command: str) -> list[str] | None:
    """Return the words of a simple command, None for any other command."""
    words: list[str] = []
    word: str | None = None
    quoted = False  # some of this word is: a quoted name is no reserved word and no assignment
    at, end = 0, len(command)
    if any((ord(sign) < 32 and sign != "\t") or ord(sign) == 127 for sign in command):
        return None
    while at < end:
        sign = command[at]
        at += 1
        if sign in " \t":
            if word is not None:
                words.append(word)
            word = None
        elif sign in "'\"":
            close = command.find("'", at) if sign == "'" else _closing_quote(command, at)
            if close < 0:
                return None
            inner = command[at:close]
            word = (word or "") + (inner if sign == "'" else _unescaped(inner))
            at = close + 1
            quoted = quoted or not words
        elif sign == "\\" and at < end:
            word = (word or "") + command[at]
            at += 1
            quoted = quoted or not words
        elif sign in _SPECIAL and not (sign == "~" and word and word[-1] not in ":="):
            return None
        else:
            word = (word or "") + sign
    if word is not None:
        words.append(word)
    # A first word that is partly quoted, or an assignment, is a doubt that no rule needs.
    if not words or quoted or "=" in words[0] or words[0] in _RESERVED:
        return None
    return words


def _closing_quote(command: str, at: int) -> int:
    """Return where a text in double quotes ends; -1 if it does not, or holds an expansion."""
    while at < len(command) and command[at] != '"':
        if command[at] in "$`":
            return -1
        at += 2 if command[at] == "\\" else 1
    return at if at < len(command) else -1


def _unescaped(inner: str) -> str:
    out, at = "", 0
    while at < len(inner):
        if inner[at] == "\\" and inner[at + 1 : at + 2] in _SPECIAL_IN_QUOTES:
            at += 1
        out += inner[at]
        at += 1
    return out


def _on_path(word: str, project: Project) -> str | None:
    """Return the absolute path of the program that *word* runs."""
    on_path = os.environ.get("PATH", os.defpath).split(os.pathsep)
    for folder in [""] if "/" in word else on_path:
        path = str(project.real / folder / word)
        if os.path.isfile(path) and os.access(path, os.X_OK):  # noqa: PTH113 - False for what is closed or too long
            return path
    return None


def _file(project: Project, word: str) -> str | None:
    """Return which file of the project *word* names, or where it leads out of it; None for other words."""
    if not word or word.startswith("-"):
        return None
    try:
        place: Place = project.locate(word)
    except OpFailed:
        return None
    if not place.exists:
        return None
    if place.path is None:
        return f"{place.target} (outside the project)"
    return f"{place.path} ({place.kind})"


def _named_files(project: Project, words: Sequence[str]) -> Iterator[str]:
    """Yield the real path of each file of the project that a word names, also as in `--option=FILE` and `@FILE`."""
    for word in words:
        value = word.partition("=")[2]
        for name in dict.fromkeys((word, value, word[1:] if word.startswith("@") else "")):
            try:
                place = project.locate(name) if name else None
            except OpFailed:
                continue
            if place is not None and place.exists and place.path is not None:
                yield str(place.path)


def _in(project: Project, path: str) -> bool:
    return PurePosixPath(path).is_relative_to(project.real)


def _can_be_changed(program: str) -> bool:
    """Whether this user can change what *program* names: the file, a link to it, or a folder above."""
    try:
        return _writable(os.path.realpath(program)) or any(
            not _is_mount(folder, name) and _writable(folder) for folder, name in _steps(program)
        )
    except OSError:
        return True


def _steps(program: str) -> Iterator[tuple[str, str]]:
    """Yield each folder that is passed on the way to *program*, and the name that is looked up in it."""
    here, left, links = PurePosixPath("/"), [*PurePosixPath(program).parts[1:]], 0
    while left:
        part = left.pop(0)
        if part == "..":
            here = here.parent
            continue
        yield str(here), part
        at = here / part
        if not stat.S_ISLNK(os.lstat(at).st_mode):
            here = at
            continue
        links += 1
        if links > _MAX_LINKS:
            raise OSError(f"more than {_MAX_LINKS} links")
        target = PurePosixPath(os.readlink(at))  # noqa: PTH115 - a pure path is what is needed
        here = PurePosixPath("/") if target.is_absolute() else here
        left = [*target.relative_to(target.anchor).parts, *left]


def _is_mount(folder: str, name: str) -> bool:
    """Whether *name* is another file system's, so that it cannot be renamed or replaced."""
    return os.lstat(os.path.join(folder, name)).st_dev != os.lstat(folder).st_dev  # noqa: PTH118


def _writable(path: str) -> bool:
    if os.statvfs(path).f_flag & os.ST_RDONLY:
        return False
    return os.lstat(path).st_uid == os.geteuid() or os.access(path, os.W_OK, effective_ids=True)
