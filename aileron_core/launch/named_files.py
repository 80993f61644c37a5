"""Which files an agent's settings name that its sandbox lacks: a certificate, a key, instructions.

What is known to choose its model, address or key is judged by its table of routes, and programs are
looked for by themselves. A setting that neither knows would fail without a word.
"""

import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from aileron_core.launch.agents.settings_files import (
    json_table,
    parse_env_file,
    toml_table,
    yaml_table,
)
from aileron_core.launch.named_programs import ResolvedProgram
from aileron_core.launch.resolve_programs import SandboxPaths
from aileron_core.launch.routes import flat

_PARSERS: Mapping[str, Callable[[str], Mapping[str, Any] | None]] = {
    ".env": parse_env_file,
    ".json": json_table,
    ".jsonc": json_table,
    ".toml": toml_table,
    ".yaml": yaml_table,
}
_PATH = re.compile(r"(?:\{?file:(?://)?)?(?:(~|\$HOME|\$\{HOME\})(?=/))?(/[^\0\n]+?)\}?")
_MOST_SHOWN = 8


def missing_files(
    title: str,
    texts: Mapping[str, str],
    paths: SandboxPaths,
    programs: tuple[ResolvedProgram, ...],
) -> tuple[str, ...]:
    """Return a sentence about the files that settings name and the sandbox *paths* lacks, none if there is none.

    Args:
        texts: settings files, by the name that a person is shown.
        programs: what is said of programs is not said again.
    """
    known = {inside for each in programs for inside, _ in each.mounts}
    said = " ".join(each.named.shown_command for each in programs if each.problem)
    found = {
        path: f"{path} ({shown}: {key})"
        for shown, text in texts.items()
        for key, path in _files_named(shown, text, paths.home)
        if path not in known and str(path) not in said and not _is_settled(path, paths)
    }
    if not found:
        return ()
    names = "; ".join([*found.values()][:_MOST_SHOWN])
    if len(found) > _MOST_SHOWN:
        names += f"; and {len(found) - _MOST_SHOWN} more"
    sentence = (
        f"Not in the sandbox, but named in {title}'s settings: {names}. What {title} needs of that, give it with "
        "--read, or under `[launch] read` in config.toml."
    )
    return (sentence,)


def _is_settled(path: Path, paths: SandboxPaths) -> bool:
    """Return whether the sandbox has *path*, as a copy for one, or the person keeps it from the agent."""
    return paths.contains(path) or any(
        path.is_relative_to(each) for each in (*paths.copied, *paths.hidden)
    )


def _files_named(shown: str, text: str, home: Path) -> Iterator[tuple[str, Path]]:
    """Return each setting whose whole value is the path of a file that is there: its key, and the file."""
    suffix = Path(shown).suffix or Path(shown).name
    table = _PARSERS[suffix](text) if suffix in _PARSERS else None
    for key, value in flat(table or {}):
        if match := _PATH.fullmatch(value):
            path = Path(os.path.normpath(f"{home if match[1] else ''}{match[2]}"))
            try:
                there = path.is_file()
            except OSError:  # in a folder that cannot be entered, or no name of a file
                continue
            if there:
                yield key, path
