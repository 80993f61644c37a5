"""The environment that an agent is launched with, and what of the person's it would miss in the sandbox."""

import contextlib
import sqlite3
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath

from aileron_core.containment.bubblewrap import sandbox_environment
from aileron_core.launch.agents.settings_files import parse_env_file
from aileron_core.launch.model_traffic import AgentSettings
from aileron_core.launch.plan import Agent, PlanContext
from aileron_core.launch.routes import RouteSetting, judge_routes
from aileron_core.settings import LaunchSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentEnvironment:
    """What an agent gets of the person's environment and settings."""

    env: Mapping[str, str] = field(repr=False)
    settings: AgentSettings = field(repr=False)
    refusals: tuple[str, ...] = ()
    """Why it cannot be started in a sandbox, a sentence or more each, not yet escaped."""
    notices: tuple[str, ...] = ()
    """What of them the sandbox does not have all the same, a sentence or more each, not yet escaped."""


def agent_environment(
    agent: Agent,
    env: Mapping[str, str],
    *,
    home: Path,
    project: Path,
    of_person: LaunchSettings,
    of_project: LaunchSettings,
    args: tuple[str, ...],
    contained: bool,
    programs: Collection[tuple[str, str]] = (),
) -> AgentEnvironment:
    """Return the environment for *agent*, from the person's *env* and what settings add to it.

    Args:
        args: those that are typed.
        programs: see `judge_routes`.
    """
    chosen, asked = dict(of_person.env), dict(of_project.env)
    all_args = (*of_person.args, *of_project.args, *args)
    if not contained:
        given = {name: value for name, value in env.items() if not name.startswith("AILERON_")}
        given = {**given, **chosen, **asked}
        settings = AgentSettings.read(agent, given, home, project, all_args)
        return AgentEnvironment(env=given, settings=settings)
    known = {name: value for name, value in env.items() if not name.startswith("AILERON_")}
    given = {**sandbox_environment(env, agent.env_names), **chosen, **asked}
    settings = AgentSettings.read(agent, given, home, project, all_args)
    context = PlanContext(
        relay="",
        launch_dir=PurePosixPath("/"),
        env={**known, **chosen},
        args=args,
        settings_args=of_person.args,
        settings=settings.texts,
        contained=True,
    )
    judged = judge_routes(
        agent.title,
        agent.routes,
        known,
        (*agent.route_settings(context), *_accounts(agent, home)),
        chosen=chosen,
        home=home,
        programs=programs,
    )
    return AgentEnvironment(
        env={**judged.carried, **given},
        settings=settings,
        refusals=judged.refusals,
        notices=(*judged.notices, *_left_above(agent, home, project)),
    )


def _accounts(agent: Agent, home: Path) -> Iterator[RouteSetting]:
    """Return what the databases of *agent* say of an account, which the sandbox has without those tables."""
    for folder in agent.folders:
        if folder.database is None or not folder.database.account:
            continue
        path = folder.path / folder.database.path.name
        table, _, column = folder.database.account.partition(".")
        with (
            contextlib.suppress(sqlite3.Error),
            contextlib.closing(
                sqlite3.connect(f"{(home / path).as_uri()}?mode=ro", uri=True, timeout=1)
            ) as database,
        ):
            for (value,) in database.execute(f'SELECT "{column}" FROM "{table}"'):  # noqa: S608
                if value:
                    yield RouteSetting(
                        name=folder.database.account, value=str(value), where=f"~/{path}"
                    )


def _left_above(agent: Agent, home: Path, project: Path) -> tuple[str, ...]:
    """Return a sentence about the settings in the repository above *project*, which the sandbox does not have."""
    if ".env" in agent.reads_above:
        return _env_file_above(agent, home, project)
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


def _env_file_above(agent: Agent, home: Path, project: Path) -> tuple[str, ...]:
    """Return a sentence about the nearest `.env` file above *project*, if it sets what *agent* would obey."""
    files = (folder / name for folder in (project, *project.parents) for name in agent.reads_above)
    nearest = next((each for each in files if each.is_file()), None)
    if nearest is None or nearest.is_relative_to(project):
        return ()
    if nearest in [home / name for name in agent.reads_above]:
        return ()
    try:
        text = nearest.read_text("utf-8", errors="replace")
    except OSError:
        return (f"Not in the sandbox: {nearest}, which cannot be read.",)
    set_there = [
        name
        for name in parse_env_file(text)
        if any(fnmatchcase(name, route.name) for route in agent.routes)
    ]
    if not set_there:
        return ()
    sentence = (
        f"Not in the sandbox: {nearest}. Outside, {agent.title} takes {', '.join(set_there)} from it. Put what "
        "you need into a .env file of the project, or into your environment."
    )
    return (sentence,)
