"""What becomes of a command that a person gives for a new MCP server: its table, its tools listed once, its manifest."""

import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final

from aileron_core.actions.problems import KeyProblem
from aileron_core.connectors.manifest import located, parse_manifest
from aileron_core.connectors.servers.definitions import ToolDefinition
from aileron_core.connectors.servers.packages import package_request
from aileron_core.connectors.servers.propose import (
    manifest_bytes,
    propose_previews,
    propose_words,
)
from aileron_core.connectors.servers.table import ServerTable
from aileron_core.containment.programs import SYSTEM_FOLDERS
from aileron_core.errors import FileProblems, InvalidRequest, NotFound


def named_paths(words: Iterable[str]) -> Iterator[Path]:
    """Yield the existing files and folders, the system's own left out, that *words* or the values in them name."""
    for word in words:
        for text in (word, word.partition("=")[2]):
            path = Path(os.path.normpath(text)) if text.startswith("/") else None
            system = path is None or any(path.is_relative_to(each) for each in SYSTEM_FOLDERS)
            if path is not None and not system and _is(path.exists):
                yield path


def _is(there: Callable[[], bool]) -> bool:
    """Return what *there* returns, of a word that may be no path at all."""
    with suppress(OSError):
        return there()
    return False


def drafted(name: str, draft: ServerTable, wrong: Iterable[KeyProblem] = ()) -> ServerTable:
    """Return *draft*, with the command as the person gave it, completed: its program, and the files that it names.

    A folder that the command or a variable names can be written, a file can be read, unless the draft lists
    them. Calls are rehearsed if the draft says so and that can be done.

    Args:
        wrong: what else is wrong with what the person gave.

    Raises:
        FileProblems: all that is wrong with it.
        NotFound: there is no such program.
    """
    found, request = [*wrong], None
    try:
        request = None if draft.url else package_request(draft.run)
        words = [*enumerate(draft.run)]
        if request:
            words = words[len(words) - len(request.args) :]
            found += relative_paths([(len(draft.run) - len(words) - 1, request.command)], {}, "run")
        found += relative_paths(words, draft.env, "run", from_here=True)
    except InvalidRequest as error:
        found.append(KeyProblem(path=("server", "run"), message=error.message))
        found += relative_paths(enumerate(draft.run), draft.env, "run")
    # Before anything is looked for: the program is known later.
    checked = draft if draft.url else replace(draft, program=("/", *draft.run[1:]), rehearse=False)
    table = parse_manifest(manifest_bytes(name, checked), name, lambda _: found).server
    if draft.url:
        assert table is not None
        return table
    program = draft.run if request else (str(_program(draft.run[0])), *draft.run[1:])
    given = [Path(each) for each in (*draft.files_read, *draft.files_write)]
    new = [
        each
        for each in dict.fromkeys(named_paths((*draft.run[1:], *draft.env.values())))
        if not any(each.is_relative_to(there) for there in given)
    ]
    written = (*draft.files_write, *(str(each) for each in new if each.is_dir()))
    table = replace(
        draft,
        program=program,
        files_read=(*draft.files_read, *(str(each) for each in new if not each.is_dir())),
        files_write=written,
        rehearse=draft.rehearse and bool(written) and not draft.hosts,
    )
    if not request and (in_projects := [*project_problems(table)]):
        raise FileProblems(located(in_projects, manifest_bytes(name, table).decode(), name))
    return table


_BEGINS_RELATIVE: Final = re.compile(r"(\.\.?|~)(/|$)")


def relative_paths(
    words: Iterable[tuple[int, str]], env: Mapping[str, str], key: str, *, from_here: bool = False
) -> Iterator[KeyProblem]:
    """Yield the *words* of a command, with their places in the list at *key*, and the variables that are relative paths.

    Args:
        from_here: whether a word counts too that leads to something from the present folder.
    """
    message = "must be absolute: the server is started in a folder of its own"
    for index, word in words:
        value = word.partition("=")[2] if word.startswith("-") else word
        is_here = from_here and index > 0 and value[:1] not in ("", "/") and _is(Path(value).exists)
        is_program = index == 0 and "/" in word and not word.startswith("/")
        if is_here or is_program or _BEGINS_RELATIVE.match(value):
            yield KeyProblem(path=("server", key, index), message=message)
    for name, value in env.items():
        if _BEGINS_RELATIVE.match(value):
            yield KeyProblem(path=("server", "env", name), message=message)


def _program(word: str) -> Path:
    found = word if "/" in word else shutil.which(word)
    is_there = found is not None and Path(found).is_absolute() and Path(found).is_file()
    if found is None or not is_there or not os.access(found, os.X_OK):
        raise NotFound(f"There is no program {word}. Give the absolute path of one.")
    return Path(found)


def project_problems(table: ServerTable) -> Iterator[KeyProblem]:
    """Yield what an agent that works in a project could change of what a server runs.

    That is its program or, without a package, a file that its command or a variable names, in a project or a
    link into one.
    """
    # Beside a package, a file is what it works on; without one, it may be what an interpreter runs.
    words = () if table.package else (*table.program[1:], *table.env.values())
    texts = (text for word in words for text in (word, word.partition("=")[2]))
    files = (Path(text) for text in texts if text.startswith("/") and _is(Path(text).is_file))
    for path in (*map(Path, table.program[:1]), *files):
        if project := _project_of(path):
            message = (
                f"{path} is in the project {project}, where an agent could change it: install the server "
                "somewhere else, or give it as an npx or uvx command"
            )
            yield KeyProblem(path=("server", "program"), message=message)


def _project_of(path: Path) -> Path | None:
    home = Path.home()
    for folder in {*path.parents, *Path(os.path.realpath(path)).parents}:
        # What manages versions of Python or Node is a repository too (~/.pyenv, ~/.nvm), and so may the home be.
        is_tool = folder.name.startswith(".") or folder == home
        if not is_tool and any(_is((folder / mark).exists) for mark in (".git", "aileron.toml")):
            return folder
    return None


def proposed(name: str, table: ServerTable, tools: Sequence[ToolDefinition]) -> ServerTable:
    """Return *table* with a word and a preview proposed for each of the *tools* of a new server."""
    words = propose_words(name, tools)
    return replace(table, tools=words, previews=propose_previews(tools, words))
