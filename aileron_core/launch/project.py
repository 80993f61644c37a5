"""The project folder of a launch: which folders are refused, and what its `aileron.toml` may set.

A project asks through its `aileron.toml`, and through its settings files for the agent that
override what Aileron sets. Both count only with exactly the bytes that a person accepted for this
path. An `aileron.toml` may set a few harmless variables and pass arguments, but none that removes
the sandbox or what Aileron sets.
"""

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from aileron_core.canonical import Json, canonical, sha256_hex
from aileron_core.errors import FileProblems, Forbidden, NotFound, Problem
from aileron_core.launch.plan import Agent, Builtins
from aileron_core.proxy_settings import CODE, NO_TOOLS, PROJECT_FILE, PluginTools, ProxySettings
from aileron_core.settings import LaunchSettings, parse_project_settings, read_project_file
from aileron_core.text import escape

PROJECT_VARIABLES = frozenset(
    ("NO_COLOR", "FORCE_COLOR", "CLICOLOR", "COLORTERM", "LANG", "LANGUAGE", "TZ", "CI",
     "ANTHROPIC_MODEL", "GEMINI_MODEL", "GOOSE_MODEL")
)  # fmt: skip
"""What a project may set in the agent's environment, beside LC_*: looks, language, a model's name."""

_BUILTINS: Mapping[Builtins, str] = {
    "beside": "[mcp_proxy] gives the agent Aileron's built-in tools, besides its own.",
    "instead": "[mcp_proxy] gives the agent Aileron's built-in tools, instead of its own.",
}

_PLAIN = re.compile(r"[A-Za-z0-9_.,:@+-]{0,128}")
"""A variable's value: a word, never a path (TZ, for one, may name a file)."""
_SETTINGS_BYTES = 1024 * 1024
_SHARED = tuple(Path("/", name) for name in ("tmp", "var/tmp", "run", "dev/shm"))
_SYSTEM = tuple(Path("/", name) for name in ("proc", "sys", "run/user"))


def check_project(project: Path, home: Path, aileron_home: Path) -> None:
    """Refuse a folder that would give the agent access to more than a project.

    Raises:
        Forbidden: it contains the person's home, a shared temporary folder or Aileron's home, or
            lies where the
            system keeps sockets and devices.
    """
    if home.resolve().is_relative_to(project):
        raise Forbidden(
            f"{project} contains your home folder {home}, so the agent could reach all of it. "
            "Launch in a folder for the project alone."
        )
    for shared in _SHARED:
        if shared.resolve().is_relative_to(project):
            raise Forbidden(
                f"{project} contains {shared}, where other programs keep sockets and files that the "
                "agent could use. Launch in a folder for the project alone."
            )
    for system in _SYSTEM:
        if project.is_relative_to(system.resolve()):
            raise Forbidden(
                f"{project} is a system folder. Launch in a folder for the project alone."
            )
    if aileron_home.resolve().is_relative_to(project):
        raise Forbidden(
            f"{project} contains Aileron's home {aileron_home}, so the agent could reach "
            "Aileron's own files. Launch in a subfolder, or move the home (AILERON_HOME)."
        )
    if project.is_relative_to(aileron_home.resolve()):
        raise Forbidden(f"{project} is inside Aileron's home. Launch in a project folder.")


def refuse_agent_folder(project: Path, home: Path, agents: Iterable[Agent]) -> None:
    """Refuse a project for a sandbox that is, contains or lies in the own folder of one of *agents*.

    Raises:
        Forbidden: there is such a folder: an agent could write settings that run programs outside.
    """
    for agent in agents:
        for path in (home.resolve() / folder.path for folder in agent.folders):
            if path.exists() and (project.is_relative_to(path) or path.is_relative_to(project)):
                raise Forbidden(
                    f"{agent.title} takes its settings from {path}, so an agent in {project} could change "
                    "what runs outside its sandbox. Launch in a folder for the project alone, or with "
                    "--no-sandbox."
                )


def settings_files(project: Path, agent: Agent) -> Mapping[str, str]:
    """Return the contents of the project's settings files for *agent*, by relative path.

    Raises:
        Forbidden: one of them cannot be read as a small text file.
    """
    found = {name: small_text(project / name) for name in agent.project_files}
    return {name: text for name, text in found.items() if text is not None}


def small_text(path: Path) -> str | None:
    """Return the text of a settings file, None if it does not exist.

    Raises:
        Forbidden: it exists but cannot be read as a small text file.
    """
    if not os.path.lexists(path):
        return None
    try:
        if not path.is_file() or path.stat().st_size > _SETTINGS_BYTES:
            raise Forbidden(
                f"{path} is not a regular file or is too large, so its settings cannot be checked. "
                "Remove or replace it, then launch again."
            )
        return path.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise Forbidden(
            f"{path} cannot be read ({error}), so its settings cannot be checked. Fix that, then "
            "launch again."
        ) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectSettings:
    """What the project in *path* asks for when *agent* is launched there."""

    path: Path
    agent: str
    settings: LaunchSettings
    overrides: tuple[str, ...]
    """A sentence for each setting of the agent's own project files that overrides what Aileron sets."""
    texts: Mapping[str, str]
    """The files that say all this, by their path in the project."""
    proxy: ProxySettings = NO_TOOLS

    @property
    def document(self) -> bytes:
        """The list of the files' names and hashes."""
        files: dict[str, Json] = {n: sha256_hex(text.encode()) for n, text in self.texts.items()}
        return canonical({"v": 1, "agent": self.agent, "files": files})

    @property
    def digest(self) -> str:
        """SHA-256 of that list, in hexadecimal: what a person accepts."""
        return sha256_hex(self.document)

    def lines(self) -> tuple[str, ...]:
        """Return what the person has to see before accepting, escaped, one item per line."""
        found = [f"argument  {escape(word)}" for word in self.settings.args]
        found += [f"variable  {escape(n)}={escape(value)}" for n, value in self.settings.env]
        return (*found, *(f"setting   {escape(sentence)}" for sentence in self.sentences))

    @property
    def sentences(self) -> tuple[str, ...]:
        """What it asks for besides arguments and variables."""
        builtins = self.proxy.builtins
        tools = () if builtins == "off" else (_BUILTINS[builtins],)
        return (*tools, *map(_exposed, self.proxy.plugin_tools), *self.overrides)


def _exposed(tools: PluginTools) -> str:
    return f"[mcp_proxy] gives the agent ops of the connector {tools.plugin} as tools: {', '.join(tools.expose)}."


def read_project_settings(project: Path, agent: Agent) -> ProjectSettings | None:
    """Return what *project* asks for, None if there is nothing to accept.

    Raises:
        FileProblems: its `aileron.toml` cannot be parsed, or asks for more than a project may.
        Forbidden: a settings file cannot be read.
    """
    texts = dict(settings_files(project, agent))
    if (text := small_text(project / PROJECT_FILE)) is not None:
        texts = {PROJECT_FILE: text, **texts}
    return settings_in(project, agent, texts)


def hidden_by_project(project: Path) -> tuple[str, ...]:
    """Return the paths that the `aileron.toml` of *project* hides from agents, relative to it.

    Nobody has to accept them, since hiding gives an agent nothing.

    Raises:
        FileProblems: it cannot be parsed.
        Forbidden: it cannot be read.
    """
    text = small_text(project / PROJECT_FILE)
    return () if text is None else parse_project_settings(project / PROJECT_FILE, text).hide


def settings_in(project: Path, agent: Agent, texts: Mapping[str, str]) -> ProjectSettings | None:
    """Return what the files *texts* of *project* ask for, by their paths there; None if it is nothing.

    Raises:
        FileProblems: the `aileron.toml` among them cannot be parsed, or asks for more than a project may.
    """
    asking: dict[str, str] = {}
    settings, proxy = LaunchSettings(), NO_TOOLS
    overrides: list[str] = []
    for name, text in texts.items():
        if name == PROJECT_FILE:
            settings, proxy = _checked(project / PROJECT_FILE, text, agent)
            asks = settings != LaunchSettings() or proxy != NO_TOOLS
        else:
            found = [*agent.overrides(name, text)]
            overrides += found
            asks = bool(found)
        if asks:
            asking[name] = text
    if not asking:
        return None
    return ProjectSettings(
        path=project,
        agent=agent.name,
        settings=settings,
        overrides=tuple(overrides),
        texts=asking,
        proxy=proxy,
    )


def project_file_problems(path: Path, agents: Iterable[Agent]) -> tuple[Problem, ...]:
    """Return why a launch of any of *agents* would refuse the `aileron.toml` *path*, and what else to know of it.

    Raises:
        NotFound: it does not exist.
        Forbidden: it cannot be read.
    """
    text = small_text(path)
    if text is None:
        raise NotFound(f"There is no file {path}.")
    found: dict[Problem, None] = {}
    for agent in agents:
        try:
            _, proxy = _checked(path, text, agent)
        except FileProblems as refused:
            found |= dict.fromkeys(replace(each, file=path.name) for each in refused.problems)
            continue
        if proxy.builtins == "instead" and agent.kept_tools:
            found[_unsupported(path, agent)] = None
    return tuple(found)


def _unsupported(path: Path, agent: Agent) -> Problem:
    return Problem(
        file=path.name,
        key="mcp_proxy.intercept_builtins",
        message=agent.kept_tools,
        class_=f"{CODE}UNSUPPORTED_PROVIDER",
        severity="warning",
    )


def exposed_by_project(path: Path) -> tuple[PluginTools, ...]:
    """Return the ops of connectors that the `aileron.toml` *path* gives agents as tools.

    Raises:
        FileProblems: it is not TOML.
        Forbidden: it cannot be read.
    """
    text = small_text(path)
    return () if text is None else read_project_file(path, text, []).proxy.plugin_tools


def _checked(path: Path, text: str, agent: Agent) -> tuple[LaunchSettings, ProxySettings]:
    """Parse the file and return its settings for *agent*, checked against what a project may ask for."""
    problems: list[Problem] = []
    parsed = read_project_file(path, text, problems)
    found = parsed.launch.get(agent.name, LaunchSettings())
    section = f"launch.{agent.name}"
    for name, value in found.env:
        if name not in PROJECT_VARIABLES and not name.startswith("LC_"):
            message = (
                "is not a variable that a project may set (allowed: "
                f"{', '.join(sorted(PROJECT_VARIABLES))})"
            )
            problems.append(_problem(path, f"{section}.env.{name}", message))
        elif not _PLAIN.fullmatch(value):
            message = "must be a plain word of at most 128 characters, not a path"
            problems.append(_problem(path, f"{section}.env.{name}", message))
    for word in denied_arguments(found.args, agent.denied_args):
        message = f"contains {word!r}, which a project may not pass to {agent.title}"
        problems.append(_problem(path, f"{section}.args", message))
    if problems:
        raise FileProblems(problems)
    return found, parsed.proxy


def _problem(path: Path, key: str, message: str) -> Problem:
    message = f"{message}. Pass it yourself after `--`, or set it in your own config.toml"
    return Problem(file=path.name, key=key, message=message, class_="validation_error")


def denied_arguments(args: Collection[str], denied: Collection[str]) -> Iterator[str]:
    """Yield each of a project's *args* that it may not pass.

    Only options are allowed, with values behind `=`: a bare word could be a subcommand of the
    agent, or a prompt. Long options are compared without case and inner dashes, and an abbreviation
    of a denied one counts as that one; in a cluster of short ones (`-xy`) each letter counts.
    """
    long = {_bare(each) for each in denied if each.startswith("--")}
    short = {each[1] for each in denied if not each.startswith("--")}
    for word in args:
        if word.startswith("--"):
            name = _bare(word.partition("=")[0])
            if (
                len(name) < _SHORTEST
                or any(each.startswith(name) for each in long)
                or any(part in name for part in DENIED_WORDS)
            ):
                yield word
        elif not word.startswith("-") or len(word) < 2 or short & {*word[1:]}:
            yield word


_SHORTEST = 2
"""Characters of a long option's name, below which it is an abbreviation of anything."""
DENIED_WORDS = (
    "danger",
    "yolo",
    "bypass",
    "unsafe",
    "sandbox",
    "permission",
    "approv",
    "trust",
    "allow",
)
"""What no project's option may have in its name, whatever the agent's next version calls it."""


def _bare(option: str) -> str:
    return option.replace("-", "").replace("_", "").casefold()


def person_settings(
    settings: Mapping[str, LaunchSettings], agent: Agent, *, contained: bool
) -> LaunchSettings:
    """Return what the person's `config.toml` sets for *agent*.

    Raises:
        FileProblems: it sets a variable reserved for Aileron, or one that the sandbox itself sets.
    """
    found = settings.get(agent.name, LaunchSettings())
    problems: list[Problem] = []
    for name, _ in found.env:
        key = f"launch.{agent.name}.env.{name}"
        if not name or {*"=\0"} & {*name} or name.startswith("AILERON_"):
            message = "is not a variable that you can set for an agent"
        elif contained and (name in ("PATH", "HOME") or name.startswith("LD_")):
            message = "is set by the sandbox; your own value applies only with --no-sandbox"
        else:
            continue
        problems.append(
            Problem(file="config.toml", key=key, message=message, class_="validation_error")
        )
    if problems:
        raise FileProblems(problems)
    return found
