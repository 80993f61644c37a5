"""The environment that an agent is launched with, and what of the person's it would miss in the sandbox."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from aileron_core.containment.bubblewrap import sandbox_environment
from aileron_core.launch.model_traffic import AgentSettings
from aileron_core.launch.plan import Agent
from aileron_core.launch.settings_files import (
    is_project_file,
    parse_env_file,
    settings_in,
)
from aileron_core.launch.variables import (
    carried_variables,
    fits,
    is_carried,
    missing_of_environment,
    named_by_settings,
    typed_settings,
)
from aileron_core.settings import LaunchSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentEnvironment:
    """What an agent gets of the person's environment and settings."""

    env: Mapping[str, str] = field(repr=False)
    settings: AgentSettings = field(repr=False)
    notices: tuple[str, ...] = ()
    """What of them the sandbox does not have, a sentence or more each, not yet escaped."""


def agent_environment(
    agent: Agent,
    env: Mapping[str, str],
    *,
    home: Path,
    project: Path,
    of_person: LaunchSettings,
    of_project: LaunchSettings,
    args: tuple[str, ...],
    has: Callable[[Path], bool] | None,
) -> AgentEnvironment:
    """Return the environment for *agent*, from the person's *env* and what settings add to it.

    Args:
        args: those that are typed.
        has: whether its sandbox has a path; None where it has no sandbox.
    """
    chosen, asked = dict(of_person.env), dict(of_project.env)
    own_args = (*of_person.args, *args)
    all_args = (*of_person.args, *of_project.args, *args)
    known = {name: value for name, value in env.items() if not name.startswith("AILERON_")}
    if has is None:
        given = {**known, **chosen, **asked}
        settings = AgentSettings.read(agent, given, home, project, all_args)
        return AgentEnvironment(env=given, settings=settings)
    nearest = _nearest_env_file(agent, project)
    if nearest is not None and nearest == home / ".env":  # it is not copied
        known = {**parse_env_file(_text(nearest)), **known}
    given = {
        **carried_variables(agent, known, has),
        **sandbox_environment(env, ()),
        **chosen,
        **asked,
    }
    settings = AgentSettings.read(agent, given, home, project, all_args)
    own, of_projects = [*typed_settings(own_args)], list[tuple[str, str]]()
    agent_logins = {Path(each).name for folder in agent.folders for each in folder.credentials}
    for path, text in settings.texts.items():
        inside = is_project_file(path) or Path(path).is_relative_to(project)
        # A login comes back from the sandbox: like a project's settings, it brings nothing in.
        foreign = inside or Path(path).name in agent_logins
        (of_projects if foreign else own).extend(settings_in(path, text))
    for value in given.values():  # settings may be in a variable
        own += settings_in(".json", value) if value.startswith("{") else ()
    named = [*named_by_settings(agent, own)]
    taken = {name for name, takes in named if takes and name in known and is_carried(name)}
    given = {name: known[name] for name in taken} | given
    asked_for = [name for name, _ in (*named, *named_by_settings(agent, of_projects))]
    return AgentEnvironment(
        env=given,
        settings=settings,
        notices=(
            *missing_of_environment(agent, known, given, asked_for, own, home),
            *_left_above(agent, home, project, nearest),
        ),
    )


def _left_above(agent: Agent, home: Path, project: Path, env_file: Path | None) -> tuple[str, ...]:
    """Return a sentence about the settings in the repository above *project*, which the sandbox does not have."""
    if ".env" in agent.reads_above:
        return _env_file_above(agent, home, project, env_file)
    above = project.parents if agent.reads_above and not (project / ".git").exists() else ()
    root = next((each for each in above if (each / ".git").exists()), None)
    if root is None:
        return ()
    found = [
        str(folder / name)
        for folder in above
        if folder != home and folder.is_relative_to(root)
        for name in agent.reads_above
        if (folder / name).exists()
    ]
    if not found:
        return ()
    sentence = (
        f"Not in the sandbox: {', '.join(found)}. Outside, {agent.title} reads settings in the repository above the "
        f"project too. Launch it in {root}, or put what you need into your own settings."
    )
    return (sentence,)


def _nearest_env_file(agent: Agent, project: Path) -> Path | None:
    """Return the `.env` file that *agent* reads, None if it reads none or there is none."""
    names = agent.reads_above if ".env" in agent.reads_above else ()
    files = (folder / name for folder in (project, *project.parents) for name in names)
    return next((each for each in files if each.is_file()), None)


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8", errors="replace")
    except OSError:
        return ""


def _env_file_above(
    agent: Agent, home: Path, project: Path, nearest: Path | None
) -> tuple[str, ...]:
    """Return a sentence about the *nearest* `.env` file above *project*, if it sets what *agent* would obey."""
    if nearest is None or nearest.is_relative_to(project):
        return ()
    if nearest in [home / name for name in agent.reads_above]:
        return ()
    if not os.access(nearest, os.R_OK):
        return (f"Not in the sandbox: {nearest}, which cannot be read.",)
    set_there = [name for name in parse_env_file(_text(nearest)) if fits(name, agent.variables)]
    if not set_there:
        return ()
    sentence = (
        f"Not in the sandbox: {nearest}. Outside, {agent.title} takes {', '.join(set_there)} from it. Put what "
        "you need into a .env file of the project, or into your environment."
    )
    return (sentence,)
