"""Putting together how a launch will start before anything is changed; `--dry-run` shows the result."""

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Literal
from urllib.parse import urlsplit

from aileron_core.containment.bubblewrap import SANDBOX_LAUNCH_DIR, sandbox_environment
from aileron_core.containment.programs import find_program, mount_roots, own_interpreter
from aileron_core.containment.support import SandboxSupport, find_sandbox_support
from aileron_core.errors import NotFound
from aileron_core.launch.model_traffic import AgentSettings, bypass_proxies, model_traffic
from aileron_core.launch.plan import Agent, ModelTraffic, Plan, PlanContext
from aileron_core.launch.project import (
    ProjectSettings,
    check_project,
    person_settings,
    read_project_settings,
)
from aileron_core.settings import LaunchSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchRequest:
    """What the person asked for on the command line."""

    agent: Agent
    args: tuple[str, ...]
    project: Path
    home: Path
    """The person's."""
    aileron_home: Path
    env: Mapping[str, str]
    relay: Mapping[str, bytes]
    """The files of a folder that `python -I` runs as the relay, by their paths in it."""
    sandbox: Literal["on", "offline", "off"] = "on"
    allow_abstract: bool = False
    gateway: bool = True
    """Whether its model traffic passes the console's gateway, where the agent allows it."""
    settings: Mapping[str, LaunchSettings] = field(default_factory=dict[str, LaunchSettings])
    """`[launch.<agent>]` of the person's `config.toml`, by agent."""
    label: str = ""

    @property
    def contained(self) -> bool:
        return self.sandbox != "off"

    @property
    def offline(self) -> bool:
        """Whether the sandbox has no network except the session's socket."""
        return self.sandbox == "offline"


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedLaunch:
    """A launch ready to start; it has no session yet, and so no gateway."""

    agent: Agent
    program: Path
    plan: Plan
    context: PlanContext = field(repr=False)
    """What the plan is made from."""
    traffic: ModelTraffic | None
    """What of its model traffic can pass the gateway; None where the person wants none of it to."""
    support: SandboxSupport | None
    """None where the agent is not contained."""
    env: Mapping[str, str]
    programs: tuple[Path, ...]
    """What the sandbox shows of programs outside the system's own folders."""
    project_settings: ProjectSettings | None
    """What the project asks for; it is in the plan, and a person has to accept it."""

    @property
    def uses_gateway(self) -> bool:
        return self.traffic is not None and bool(self.traffic.providers)

    def with_gateway(self, url: str) -> "PreparedLaunch":
        """Return this launch with its model traffic sent through the gateway, as far as it can pass.

        Args:
            url: `<url>/gw/<gateway token>`, no trailing slash.
        """
        if not self.uses_gateway:
            return self
        given = self.context.env
        plan = self.agent.plan(replace(self.context, gateway=url))
        proxies = bypass_proxies(given, urlsplit(url).hostname or "")
        return replace(self, plan=plan, env={**given, **proxies, **plan.env})


def prepare(request: LaunchRequest, launch_dir: PurePosixPath) -> PreparedLaunch:
    """Return how *request* will be started. Reads this machine and changes nothing.

    Raises:
        NotFound: the agent, or what contains it, is not installed.
        Forbidden: the folder cannot be a project, or this machine cannot contain the agent.
        FileProblems: the project's `aileron.toml`, or the person's settings, are invalid.
    """
    agent = request.agent
    check_project(request.project, request.home, request.aileron_home)
    support = (
        find_sandbox_support(offline=request.offline, allow_abstract=request.allow_abstract)
        if request.contained
        else None
    )
    program = _installed(agent, request)
    project = read_project_settings(request.project, agent)
    of_person = person_settings(request.settings, agent, contained=request.contained)
    of_project = project.settings if project is not None else LaunchSettings()
    inside = PurePosixPath(SANDBOX_LAUNCH_DIR) if request.contained else launch_dir
    given = (
        sandbox_environment(request.env, agent.env_names)
        if request.contained
        else {name: value for name, value in request.env.items() if not name.startswith("AILERON_")}
    )
    given = {**given, **dict(of_person.env), **dict(of_project.env)}
    own = AgentSettings.read(agent, given, request.home, request.project)
    context = PlanContext(
        relay=str(inside / "bin" / "aileron-mcp"),
        launch_dir=inside,
        env=given,
        args=request.args,
        settings_args=(*of_person.args, *of_project.args),
        settings=own.texts,
        contained=request.contained,
    )
    plan = agent.plan(context)
    return PreparedLaunch(
        agent=agent,
        program=program,
        plan=plan,
        context=context,
        traffic=model_traffic(agent, context, own) if request.gateway else None,
        support=support,
        env={**given, **plan.env},
        programs=_programs(request, program) if support else (),
        project_settings=project,
    )


def _installed(agent: Agent, request: LaunchRequest) -> Path:
    path = request.env.get("PATH", os.defpath)
    try:
        return find_program(agent.program, path, request.project)
    except NotFound:
        if shutil.which(agent.program, path=path):
            raise  # the one inside the project, which is not used
        raise NotFound(f"{agent.title} is not installed. Run {agent.package}.") from None


def _programs(request: LaunchRequest, program: Path) -> tuple[Path, ...]:
    """Return what to mount so that the agent and the relay can run."""
    path = request.env.get("PATH", os.defpath)
    home, never = request.home, (request.aileron_home, request.project)
    own = mount_roots(own_interpreter(), path, home=home, excluded=never)
    return tuple({*mount_roots(program, path, home=home, excluded=never), *own})
