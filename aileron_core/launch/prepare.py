"""Putting together how a launch will start before anything is changed; `--dry-run` shows the result."""

import os
import shutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Literal
from urllib.parse import urlsplit

from aileron_core.connectors.builtin.connector import worker_files
from aileron_core.connectors.servers.table import ServerTable
from aileron_core.containment.bubblewrap import SANDBOX_LAUNCH_DIR, system_mounts
from aileron_core.containment.mounts import Mount, refuse_nested
from aileron_core.containment.paths import CheckedPaths, PathChecker
from aileron_core.containment.programs import find_program, mount_roots, own_interpreter
from aileron_core.containment.support import SandboxSupport, find_sandbox_support
from aileron_core.containment.toolchains import Tools, find_tools
from aileron_core.errors import InvalidRequest, NotFound
from aileron_core.ids import is_placeholder
from aileron_core.launch.agent_folders import AgentFiles
from aileron_core.launch.agent_state import state_mounts
from aileron_core.launch.agents import AGENTS
from aileron_core.launch.caches import CACHE_ENVIRONMENT, cache_mounts
from aileron_core.launch.model_traffic import (
    PROXY_VARIABLES,
    AgentSettings,
    bypass_proxies,
    model_traffic,
    with_placeholder,
)
from aileron_core.launch.named_programs import HomeSettings, ResolvedProgram, missing_files
from aileron_core.launch.own_servers import Doubles, doubles
from aileron_core.launch.plan import Agent, Builtins, ModelTraffic, Plan, PlanContext
from aileron_core.launch.project import (
    ProjectSettings,
    check_project,
    hidden_by_project,
    person_settings,
    read_project_settings,
    refuse_agent_folder,
    settings_files,
)
from aileron_core.launch.resolve_programs import SandboxPaths, resolve_programs, settings_programs
from aileron_core.launch.tools.prepared_tools import (
    PreparedTools,
    prepare_tools,
    prepare_uncontained_tools,
)
from aileron_core.launch.variables import AgentEnvironment, agent_environment
from aileron_core.settings import LaunchPaths, LaunchSettings
from aileron_core.text import escape


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
    sandbox: Literal["on", "hosts", "offline", "off"] = "on"
    hosts: tuple[str, ...] = ()
    """`[launch] hosts` of the person's `config.toml`: reached with `hosts`, besides the agent's own."""
    allow_abstract: bool = False
    gateway: bool = True
    """Whether its model traffic passes the console's gateway, where the agent allows it."""
    servers: Mapping[str, ServerTable] = field(default_factory=dict[str, ServerTable])
    """Aileron's MCP servers that a person accepted, by name."""
    settings: Mapping[str, LaunchSettings] = field(default_factory=dict[str, LaunchSettings])
    """`[launch.<agent>]` of the person's `config.toml`, by agent."""
    paths: LaunchPaths = field(default_factory=LaunchPaths)
    """`[launch] read`, `write` and `hide` of it."""
    typed_paths: LaunchPaths = field(default_factory=LaunchPaths)
    """The same from the command line."""
    label: str = ""
    worker: Callable[[], Mapping[str, bytes]] = worker_files
    """Makes the files of a folder that `python -I` runs as a worker of the built-in tools, by their paths in it."""
    builtins: Builtins | None = None
    """None: as the project's `aileron.toml` says, and without them where it says nothing."""

    @property
    def contained(self) -> bool:
        return self.sandbox != "off"

    @property
    def offline(self) -> bool:
        """Whether the sandbox has no network except the session's socket."""
        return self.sandbox == "offline"

    @property
    def own_network(self) -> bool:
        """Whether the sandbox has a network of its own, without this machine's loopback."""
        return self.sandbox in ("offline", "hosts")


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
    agent_settings: AgentSettings = field(repr=False)
    left_out_keys: tuple[str, ...] = ()
    """What the agent does not get of the person's environment and settings, a sentence each, not yet escaped."""
    unused_keys: tuple[str, ...] = ()
    """Why a key of the vault is not used, a sentence each, not yet escaped."""
    servers: Doubles = field(default_factory=Doubles)
    """The agent's own MCP servers that Aileron has too, and what becomes of them."""
    env: Mapping[str, str]
    tools: Tools
    """What the sandbox has of the person's own tools."""
    mounts: tuple[Mount, ...]
    """What the sandbox contains for this launch besides the home, the project and the connection."""
    paths: CheckedPaths
    """What the sandbox has of the paths that the person and the project named."""
    named_programs: tuple[ResolvedProgram, ...] = ()
    """What the agent's own settings name; their mounts are among `mounts`. Empty where it is not contained."""
    agent_files: AgentFiles
    """What the sandbox gets of the agent's own folders; nothing where the agent is not contained."""
    project_settings: ProjectSettings | None
    """What the project asks for; it is in the plan, and a person has to accept it."""
    builtin_tools: PreparedTools | None = None
    """What the sandboxes of Aileron's own tools get; None where the session has no such tools."""

    @property
    def uses_gateway(self) -> bool:
        return self.traffic is not None and bool(self.traffic.providers)

    def with_gateway(
        self, url: str, placeholder: str = "", key_providers: tuple[str, ...] = ()
    ) -> "PreparedLaunch":
        """Return this launch with its model traffic sent through the gateway, as far as it can pass.

        Args:
            url: `<url>/gw/<gateway token>`, no trailing slash.
            placeholder: what the agent sends in place of its API keys for *key_providers*.
        """
        if self.traffic is None:
            return self
        context, traffic, unused = with_placeholder(
            self.agent, self.context, self.agent_settings, placeholder, key_providers
        )
        launch = replace(self, context=context, traffic=traffic, unused_keys=unused)
        if not launch.uses_gateway:
            return launch
        plan = self.agent.plan(replace(context, gateway=url))
        proxies = bypass_proxies(context.env, urlsplit(url).hostname or "")
        return replace(launch, plan=plan, env={**context.env, **proxies, **plan.env})

    @property
    def placeholder_providers(self) -> tuple[str, ...]:
        """The providers for which the agent gets a placeholder; empty before `with_gateway`."""
        return tuple(
            provider
            for provider, (first, *_) in self.agent.key_variables.items()
            if is_placeholder(self.env.get(first, ""))
        )


def prepare(request: LaunchRequest, launch_dir: PurePosixPath) -> PreparedLaunch:
    """Return how *request* will be started. Reads this machine and changes nothing.

    Raises:
        NotFound: the agent, or what contains it, is not installed.
        Forbidden: the folder cannot be a project, or this machine cannot contain the agent.
        AileronError: the agent's own folder cannot be copied.
        FileProblems: the project's `aileron.toml`, or the person's settings, are invalid.
    """
    agent = request.agent
    support = _support(request)
    program = _installed(agent, request)
    project = read_project_settings(request.project, agent)
    of_person = person_settings(request.settings, agent, contained=request.contained)
    of_project = project.settings if project is not None else LaunchSettings()
    inside = PurePosixPath(SANDBOX_LAUNCH_DIR) if request.contained else launch_dir
    agent_files = AgentFiles.find(request.home, agent.folders if support else (), agent.title)
    tools, mounts = (
        _sandboxed_tools(request, program, agent_files.mounts) if support else (Tools(), ())
    )
    paths = _checked_paths(request, tools)
    caches = cache_mounts(request.aileron_home, request.home, request.project) if support else ()
    mounts = (*mounts, *paths.mounts)
    state = state_mounts(
        request.aileron_home, request.home, agent, request.project, launch_dir.name
    )
    within = _sandbox_paths(request, agent_files, mounts, (*caches, *state)) if support else None
    named = _named_programs(request, within) if within else ()
    paths.refuse_writing(_mounts_of(named))
    mounts = (*mounts, *caches, *state, *_mounts_of(named)) if support else ()
    refuse_nested(mounts, request.project)
    found = _environment(request, tools, of_person, of_project, within)
    own, given = found.settings, {**(CACHE_ENVIRONMENT if caches else {}), **found.env}
    builtins = request.builtins or (project.proxy.builtins if project is not None else "off")
    context = PlanContext(
        relay=str(inside / "bin" / "aileron-mcp"),
        launch_dir=inside,
        env=given,
        project=PurePosixPath(request.project),
        args=request.args,
        settings_args=(*of_person.args, *of_project.args),
        settings=own.texts,
        contained=request.contained,
        builtins=builtins,
    )
    servers = doubles(agent.title, agent.servers(context), request.servers, request.env)
    context = replace(context, off=servers.off)
    plan = agent.plan(context)
    env = {**given, **plan.env}
    # What is not started needs no program.
    not_started = {each.command for each in servers.off}
    named = tuple(each for each in named if each.named.command not in not_started)
    return PreparedLaunch(
        agent=agent,
        program=program,
        plan=plan,
        context=context,
        traffic=model_traffic(agent, context, own) if request.gateway else None,
        support=support,
        agent_settings=own,
        left_out_keys=(
            *found.notices,
            *(missing_files(agent.title, named)),
        ),
        servers=servers,
        env=env,
        mounts=mounts,
        tools=tools,
        paths=paths,
        agent_files=agent_files,
        named_programs=named,
        project_settings=project,
        builtin_tools=None if builtins == "off" else _builtin_tools(request, paths, of_project),
    )


def _builtin_tools(
    request: LaunchRequest, paths: CheckedPaths, of_project: LaunchSettings
) -> PreparedTools:
    if not request.contained:
        return prepare_uncontained_tools(request.env)
    return prepare_tools(
        request.env,
        home=request.home,
        project=request.project,
        aileron_home=request.aileron_home,
        named=paths.mounts,
        of_project=dict(of_project.env),
        own_network=request.own_network,
    )


def _support(request: LaunchRequest) -> SandboxSupport | None:
    """Return what contains the agent on this machine; None where the person wants no sandbox.

    Raises:
        NotFound, Forbidden: there is nothing that does, or the folder cannot be a project.
    """
    check_project(request.project, request.home, request.aileron_home)
    if not request.contained:
        return None
    support = find_sandbox_support(
        offline=request.own_network, allow_abstract=request.allow_abstract
    )
    refuse_agent_folder(request.project, request.home, AGENTS.values())
    return support


def _environment(
    request: LaunchRequest,
    tools: Tools,
    of_person: LaunchSettings,
    of_project: LaunchSettings,
    within: SandboxPaths | None,
) -> AgentEnvironment:
    """Return the agent's variables, and its own settings."""
    found = agent_environment(
        request.agent,
        request.env,
        home=request.home,
        project=request.project,
        of_person=of_person,
        of_project=of_project,
        args=request.args,
        has=within.has_of_agent if within else None,
    )
    given = {**tools.env, **found.env}
    if request.sandbox == "hosts":  # no proxy can be reached from there
        given = {name: value for name, value in given.items() if name not in PROXY_VARIABLES}
    return replace(found, env=given)


def _installed(agent: Agent, request: LaunchRequest) -> Path:
    path = request.env.get("PATH", os.defpath)
    try:
        return find_program(agent.name, path, request.project)
    except NotFound:
        if shutil.which(agent.name, path=path):
            raise  # the one inside the project, which is not used
        raise NotFound(f"{agent.title} is not installed. Run {agent.package}.") from None


def _checked_paths(request: LaunchRequest, tools: Tools) -> CheckedPaths:
    """Return what the sandbox has, or has not, of the paths that were named.

    Raises:
        InvalidRequest: there is no sandbox, and options of the command line need one.
        Forbidden, NotFound: see `PathChecker.check`.
    """
    of_project = hidden_by_project(request.project)
    if request.contained:
        return PathChecker(
            home=request.home,
            project=request.project,
            aileron_home=request.aileron_home,
            env=request.env,
            tools=tools.mounts,
        ).check(request.paths, request.typed_paths, of_project)
    if request.typed_paths != LaunchPaths():
        raise InvalidRequest("--read, --write and --hide need the sandbox. Leave out --no-sandbox.")
    seen = (*request.paths.hide, *of_project)
    notice = f"Without a sandbox nothing is hidden from the agent ({', '.join(seen)})."
    return CheckedPaths(notices=(notice,) if seen else ())


def _sandboxed_tools(
    request: LaunchRequest, program: Path, of_agent: tuple[Mount, ...]
) -> tuple[Tools, tuple[Mount, ...]]:
    """Return the person's tools, and all mounts but those of the project and the connection.

    Args:
        of_agent: the agent's own folders.
    """
    path = request.env.get("PATH", os.defpath)
    home, never = request.home, (request.aileron_home, request.project)
    roots = {
        *mount_roots(program, path, home=home, excluded=never),
        *mount_roots(own_interpreter(), path, home=home, excluded=never),
    }
    why = "needed by the agent or its connection"
    needed = (
        *(Mount(path=root, how="read-only", why=why) for root in sorted(roots)),
        *of_agent,
    )
    tools = find_tools(
        request.env,
        home,
        request.project,
        excluded=(request.aileron_home,),
        mounted=[each.path for each in needed],
    )
    return tools, (*needed, *tools.mounts)


def _sandbox_paths(
    request: LaunchRequest,
    files: AgentFiles,
    mounts: Iterable[Mount],
    state: Iterable[Mount],
) -> SandboxPaths:
    """Return what a sandbox with *mounts* and *files* contains.

    Args:
        state: caches and the agent's history, from which no program is mounted: an earlier agent
            could have written it.
    """
    shown = [*system_mounts(), *mounts]
    return SandboxPaths(
        home=request.home,
        project=request.project,
        own_folders=tuple(request.home / folder.path for folder in request.agent.folders),
        copied=tuple(request.home / path for path in files.copied),
        mounted=(
            *(mount.path for mount in shown if mount.how != "hidden"),
            Path("/etc"),
            request.project,
        ),
        hidden=tuple(mount.path for mount in shown if mount.how == "hidden"),
        excluded=(request.aileron_home, *(mount.path for mount in state)),
        search_path=request.env.get("PATH", os.defpath),
    )


def _named_programs(request: LaunchRequest, paths: SandboxPaths) -> tuple[ResolvedProgram, ...]:
    """Return the programs that the agent's own settings name, as the sandbox *paths* has them."""
    settings, agent = HomeSettings(request.home), request.agent
    texts = settings_files(request.project, agent)
    named = settings_programs(agent, settings, PurePosixPath(request.project), texts)
    return resolve_programs(settings.complete(named), paths)


def _mounts_of(programs: Iterable[ResolvedProgram]) -> tuple[Mount, ...]:
    found: dict[Path, Mount] = {}
    for each in programs:
        why = f"named in {escape(each.named.file)}, {escape(each.named.key)}"
        for path, source in each.mounts:
            found.setdefault(path, Mount(path=path, how="read-only", why=why, source=source))
    return tuple(found.values())
