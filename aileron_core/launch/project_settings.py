"""What a project asks of a launch: its `aileron.toml`, and settings of the agent that touch the wiring.

Both count in exactly the bytes that a person accepted, at this path. A project's
`aileron.toml` may only narrow: few variables, and no argument that takes a wall or the wiring away.
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from aileron_core.canonical import canonical, sha256_hex
from aileron_core.errors import FileProblems, Problem
from aileron_core.launch.plan import Agent
from aileron_core.launch.project import settings_files, small_text
from aileron_core.settings import LaunchSettings, parse_launch
from aileron_core.text import escape

PROJECT_FILE = "aileron.toml"
PROJECT_VARIABLES = frozenset(
    ("NO_COLOR", "FORCE_COLOR", "CLICOLOR", "COLORTERM", "LANG", "LANGUAGE", "TZ", "CI",
     "ANTHROPIC_MODEL", "GEMINI_MODEL", "GOOSE_MODEL")
)  # fmt: skip
"""What a project may set in the agent's environment, beside LC_*: looks, language, a model's name."""

_PLAIN = re.compile(r"[A-Za-z0-9_.,:@+-]{0,128}")
"""A variable's value: a word, never a path (TZ, for one, may name a file)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectSettings:
    """What the project in *path* asks for when *agent* is launched there."""

    path: Path
    agent: str
    settings: LaunchSettings
    shadows: tuple[str, ...]
    """A sentence for each setting of the agent's own project files that takes wiring away."""
    digest: str
    """SHA-256 over the names and hashes of the files that say all this, in hexadecimal."""

    def lines(self) -> tuple[str, ...]:
        """Return what a person has to see before they say yes, escaped, a line each."""
        found = [f"argument  {escape(word)}" for word in self.settings.args]
        found += [f"variable  {escape(n)}={escape(value)}" for n, value in self.settings.env]
        return (*found, *(f"setting   {escape(sentence)}" for sentence in self.shadows))


def read_project_settings(project: Path, agent: Agent) -> ProjectSettings | None:
    """Return what *project* asks for, or None where nobody needs to be asked.

    Raises:
        FileProblems: its `aileron.toml` cannot be parsed, or asks for more than a project may.
        Forbidden: a settings file cannot be read.
    """
    digests: dict[str, str] = {}
    settings = LaunchSettings()
    text = small_text(project / PROJECT_FILE)
    if text is not None:
        settings = _narrow(project / PROJECT_FILE, text, agent)
        if settings != LaunchSettings():
            digests[PROJECT_FILE] = sha256_hex(text.encode())
    shadows: list[str] = []
    for name, content in settings_files(project, agent).items():
        if found := agent.shadows({name: content}):
            shadows += found
            digests[name] = sha256_hex(content.encode())
    if not digests:
        return None
    said = canonical({"v": 1, "agent": agent.name, "files": {**digests}})
    return ProjectSettings(
        path=project,
        agent=agent.name,
        settings=settings,
        shadows=tuple(shadows),
        digest=sha256_hex(said),
    )


def _narrow(path: Path, text: str, agent: Agent) -> LaunchSettings:
    """Return what the file says for *agent*, if it is no more than a project may say."""
    found = parse_launch(path, text).get(agent.name, LaunchSettings())
    section = f"launch.{agent.name}"
    problems: list[Problem] = []
    for name, value in found.env:
        if name not in PROJECT_VARIABLES and not name.startswith("LC_"):
            told = f"is no variable that a project may set ({', '.join(sorted(PROJECT_VARIABLES))})"
            problems.append(_problem(path, f"{section}.env.{name}", told))
        elif not _PLAIN.fullmatch(value):
            told = "may be a plain word of at most 128 characters, no path"
            problems.append(_problem(path, f"{section}.env.{name}", told))
    if (word := denied_word(found.args, agent.denied_args)) is not None:
        told = f"holds {word!r}, which a project may not pass to {agent.title}"
        problems.append(_problem(path, f"{section}.args", told))
    if problems:
        raise FileProblems(problems)
    return found


def _problem(path: Path, key: str, told: str) -> Problem:
    told = f"{told}. Type it after `--`, or put it into your own config.toml"
    return Problem(file=path.name, key=key, message=told, class_="validation_error")


def denied_word(args: Collection[str], denied: Collection[str]) -> str | None:
    """Return the first of a project's *args* that it may not pass, or None.

    Options alone, with their values behind `=`: a bare word could be another command of the agent, or
    a prompt. Long ones are compared without case and inner dashes, and a beginning of a denied one
    counts as that one; of a cluster of short ones (`-xy`) each letter counts.
    """
    long = {_bare(each) for each in denied if each.startswith("--")}
    short = {each[1] for each in denied if not each.startswith("--")}
    for word in args:
        if word.startswith("--"):
            name = _bare(word.partition("=")[0])
            if (
                len(name) < _SHORTEST
                or any(each.startswith(name) for each in long)
                or any(part in name for part in _NEVER)
            ):
                return word
        elif not word.startswith("-") or len(word) < 2 or short & {*word[1:]}:
            return word
    return None


_SHORTEST = 2
"""Characters of a long option's name, below which it is an abbreviation of anything."""
_NEVER = ("danger", "yolo", "bypass", "unsafe", "sandbox", "permission", "approv", "trust", "allow")
"""What no project's option may have in its name, whatever the agent's next version calls it."""


def _bare(option: str) -> str:
    return option.replace("-", "").replace("_", "").casefold()


def own_settings(
    settings: Mapping[str, LaunchSettings], agent: Agent, *, contained: bool
) -> LaunchSettings:
    """Return what the person's `config.toml` sets for *agent*.

    Raises:
        FileProblems: it sets a variable that is Aileron's, or one that the sandbox itself obeys.
    """
    found = settings.get(agent.name, LaunchSettings())
    problems: list[Problem] = []
    for name, _ in found.env:
        key = f"launch.{agent.name}.env.{name}"
        if not name or {*"=\0"} & {*name} or name.startswith("AILERON_"):
            told = "is no name that a launch can set"
        elif contained and (name in ("PATH", "HOME") or name.startswith("LD_")):
            told = "is set by the sandbox; it counts with --no-sandbox only"
        else:
            continue
        problems.append(
            Problem(file="config.toml", key=key, message=told, class_="validation_error")
        )
    if problems:
        raise FileProblems(problems)
    return found
