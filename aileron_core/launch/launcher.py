"""One launch from the beginning to the end: session, wiring, sandbox, agent, and everything away again."""

import contextlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from importlib.resources import files
from pathlib import Path, PurePosixPath
from typing import Literal, Protocol
from urllib.parse import urlsplit

from aileron_core.containment.hard_links import keep_apart, linked_outside
from aileron_core.containment.programs import find_program, own_interpreter, roots_of
from aileron_core.containment.spec import (
    INSIDE_PRIVATE,
    INSIDE_SOCKET,
    SandboxSpec,
    bwrap_argv,
    environment,
)
from aileron_core.containment.support import SandboxSupport, find_support, refuse_root
from aileron_core.errors import Forbidden
from aileron_core.launch.foreground import run_foreground
from aileron_core.launch.launch_dir import (
    InjectedFiles,
    LaunchDir,
    copy_back,
    copy_in,
    private_parents,
)
from aileron_core.launch.model_traffic import OwnSettings, model_traffic, sentences
from aileron_core.launch.no_proxy import bypass_proxies
from aileron_core.launch.plan import Agent, ModelTraffic, Plan, PlanContext
from aileron_core.launch.project import ProtectedPaths, check_project
from aileron_core.launch.project_settings import (
    ProjectSettings,
    own_settings,
    read_project_settings,
)
from aileron_core.launch.repositories import Repositories, import_from_killed_launches, take_notices
from aileron_core.launch.sessions import LaunchedSession, SessionHold, SessionPort
from aileron_core.launch.unfinished import UnfinishedSession, finish_sessions, refuse_unfinished
from aileron_core.settings import LaunchSettings
from aileron_core.text import escape

_SYSTEM_PATH = ("/usr/local/bin", "/usr/bin", "/bin", "/usr/local/sbin", "/usr/sbin", "/sbin")


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchRequest:
    """What a person asked for on the command line."""

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
        """Whether the agent runs in the sandbox."""
        return self.sandbox != "off"


class Prompter(Protocol):
    """Who sits at the terminal."""

    def say(self, text: str) -> None:
        """Tell them a sentence, before the agent has the terminal or after it."""
        ...

    def accepts(self, wish: ProjectSettings) -> bool:
        """Show what a project asks for, and return whether they accept it.

        Raises:
            Forbidden: nobody can be asked.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedLaunch:
    """A launch as it will be started, without its session; `--dry-run` shows it."""

    program: Path
    plan: Plan
    context: PlanContext = field(repr=False)
    """What the plan is made from."""
    traffic: ModelTraffic | None
    """What of its model traffic can pass the gateway; None where the person wants none of it to."""
    support: SandboxSupport | None
    env: Mapping[str, str]
    programs: tuple[Path, ...]
    """What the sandbox shows of programs outside the system's own folders."""
    wish: ProjectSettings | None
    """What the project asks for; it is in the plan, and a person has to accept it."""


def prepare(request: LaunchRequest, private: PurePosixPath) -> PreparedLaunch:
    """Return how *request* will be started. Reads this machine and changes nothing.

    Args:
        request: what was asked for.
        private: the launch's private folder, as this process sees it.

    Raises:
        NotFound: the agent, or what contains it, is not installed.
        Forbidden: the project would take away what Aileron promises.
        FileProblems: the project's `aileron.toml`, or the person's settings, cannot be used.
    """
    agent = request.agent
    check_project(request.project, request.home, request.aileron_home)
    support = (
        find_support(offline=request.sandbox == "offline", allow_abstract=request.allow_abstract)
        if request.contained
        else None
    )
    path = request.env.get("PATH", os.defpath)
    program = find_program(agent.program, path, request.project)
    wish = read_project_settings(request.project, agent)
    own = own_settings(request.settings, agent, contained=request.contained)
    asked = wish.settings if wish is not None else LaunchSettings()
    seen = PurePosixPath(INSIDE_PRIVATE) if request.contained else private
    given = (
        environment(request.env, agent.needs)
        if request.contained
        else {name: value for name, value in request.env.items() if not name.startswith("AILERON_")}
    )
    given = {**given, **dict(own.env), **dict(asked.env)}
    read = OwnSettings.read(agent, given, request.home, request.project)
    context = PlanContext(
        relay=str(seen / "bin" / "aileron-mcp"),
        private=seen,
        env=given,
        args=request.args,
        standing=(*own.args, *asked.args),
        settings=read.texts,
        contained=request.contained,
    )
    plan = agent.plan(context)
    return PreparedLaunch(
        program=program,
        plan=plan,
        context=context,
        traffic=model_traffic(agent, context, read) if request.gateway else None,
        support=support,
        env={**given, **plan.env},
        programs=_programs(request, program) if support else (),
        wish=wish,
    )


def through_gateway(wired: PreparedLaunch, agent: Agent, gateway: str) -> PreparedLaunch:
    """Return the same launch with its model traffic through *gateway*, as far as that can pass.

    Args:
        wired: a launch that leaves the agent its own way.
        agent: whose.
        gateway: `<url>/gw/<gateway token>`, no trailing slash.
    """
    if wired.traffic is None or not wired.traffic.through:
        return wired
    given = wired.context.env
    plan = agent.plan(replace(wired.context, gateway=gateway))
    host = urlsplit(gateway).hostname or ""
    return replace(wired, plan=plan, env={**given, **bypass_proxies(given, host), **plan.env})


def _settle_wish(wish: ProjectSettings | None, console: SessionPort, person: Prompter) -> None:
    """Have a person accept what the project asks for, unless they did so for exactly these bytes."""
    if wish is None or console.taken_in(wish.agent, wish.path) == wish.digest:
        return
    if not person.accepts(wish):
        raise Forbidden("You did not accept the project's settings, so nothing was started.")
    console.take_in(wish.agent, wish.path, wish.digest)


def launch(request: LaunchRequest, console: SessionPort, person: Prompter) -> int:
    """Run the agent in the foreground and return its exit code; everything of ours is gone afterwards.

    Args:
        request: what was asked for.
        console: the console that owns the home.
        person: who is told, and asked.

    Raises:
        NotFound, Forbidden, FileProblems: see `wire`; or the project's settings were not accepted.
        ConsoleAbsent: no console owns the home.
    """
    if request.contained:
        refuse_root()  # a console of root's would not help
    console.find()  # before anything is made: without one there may be no home either
    parent = private_parents(request.aileron_home, request.env)[0]
    for sentence in (
        *take_notices(request.aileron_home),
        *import_from_killed_launches(request.aileron_home),
        *finish_sessions(request.aileron_home),
    ):
        person.say(sentence)
    refuse_unfinished(request.aileron_home, request.project)
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(LaunchDir(parent, person.say))
        if request.contained:
            _say_shared(request, person)
        wired = prepare(request, PurePosixPath(folder.path))
        _settle_wish(wired.wish, console, person)
        session = console.open(
            agent=request.agent.name,
            label=request.label or request.project.name,
            cwd=request.project,
            contained=request.contained,
        )
        stack.callback(console.end, session.session_id)
        wired = through_gateway(wired, request.agent, f"{session.url}/gw/{session.gateway_token}")
        _say_traffic(wired, request, person)
        _write_wiring(folder, request, session, wired.plan)
        doors = ProtectedPaths.of(request.project)
        watch = UnfinishedSession.begin(request.aileron_home, doors, session.session_id)
        stack.callback(_close_doors, watch, person.say)
        hold = console.hold(session)
        stack.callback(hold.stop)
        if wired.support is None:
            stack.enter_context(InjectedFiles(request.home, wired.plan.additions))
            argv = [str(wired.program), *wired.plan.argv[1:]]
            return run_foreground(argv, env=wired.env, cwd=str(request.project), started=hold.start)
        return _run_contained(request, wired, wired.support, session, folder.path, hold, person)


def _run_contained(
    request: LaunchRequest,
    wired: PreparedLaunch,
    support: SandboxSupport,
    session: LaunchedSession,
    private: Path,
    hold: SessionHold,
    person: Prompter,
) -> int:
    """Run the agent in its sandbox, with a home and repositories of its own, and return its exit code."""
    with contextlib.ExitStack() as stack:
        own_home = stack.enter_context(LaunchDir(private.parent, person.say)).path
        credentials = copy_in(request.home, own_home, request.agent.folders, person.say)
        stack.callback(copy_back, credentials, person.say)
        InjectedFiles(own_home, wired.plan.additions).__enter__()
        git = stack.enter_context(_repositories(request, support, session, person))
        spec = replace(_spec(request, wired, support, session, private, own_home), git=git.mounts)
        port = urlsplit(session.url).port if _forwards(wired, request) else None
        start = [str(own_interpreter()), "-I", f"{INSIDE_PRIVATE}/start.py", str(port or 0)]
        agent = [str(wired.program.resolve()), *wired.plan.argv[1:]]

        def started() -> None:
            hold.start()
            git.follow()

        return run_foreground(
            bwrap_argv(spec, [*start, *agent]),
            env=_inner_env(request, wired),
            cwd="/",
            prepare=support.prepare,
            started=started,
        )


def _say_shared(request: LaunchRequest, person: Prompter) -> None:
    """See to it that no file of ours is one of another place too; tell of such files of the project."""
    for sentence in (keep_apart(), linked_outside(request.project).sentence()):
        if sentence is not None:
            person.say(sentence)


def _repositories(
    request: LaunchRequest, support: SandboxSupport, session: LaunchedSession, person: Prompter
) -> Repositories:
    return Repositories(
        bwrap=support.bwrap,
        aileron_home=request.aileron_home,
        session=session.session_id,
        project=request.project,
        env=request.env,
        say=person.say,
    )


def _say_traffic(wired: PreparedLaunch, request: LaunchRequest, person: Prompter) -> None:
    """Tell what of the agent's model traffic goes past the gateway, and why."""
    if wired.traffic is not None:
        offline = request.sandbox == "offline"
        for sentence in sentences(request.agent, wired.traffic, offline=offline):
            person.say(escape(sentence))


def _forwards(wired: PreparedLaunch, request: LaunchRequest) -> bool:
    """Tell whether the sandbox needs a way to the gateway of its own: it has no network in common."""
    passes = wired.traffic is not None and bool(wired.traffic.through)
    return passes and request.sandbox == "offline"


def _write_wiring(
    folder: LaunchDir, request: LaunchRequest, session: LaunchedSession, plan: Plan
) -> None:
    """Put the relay, the token's file and the agent's own files into the private folder."""
    if request.contained:
        seen = PurePosixPath(INSIDE_PRIVATE)
        settings = [f"AILERON_URL=unix:{INSIDE_SOCKET}"]
        first = files("aileron_core.containment").joinpath("sandbox_init.py")
        folder.write("start.py", first.read_text("utf-8"))
    else:
        seen = PurePosixPath(folder.path)
        token = folder.write("token", session.token)
        settings = [f"AILERON_HOME={request.aileron_home}", f"AILERON_TOKEN_FILE={token}"]
    for name, content in request.relay.items():
        folder.write(f"relay/{name}", content)
    lines = ["#!/bin/sh", "unset AILERON_TOKEN AILERON_TOKEN_FILE AILERON_URL AILERON_AGENT"]
    lines += [f"export {_quoted(setting)}" for setting in settings]
    lines.append(f'exec {_quoted(str(own_interpreter()))} -I {_quoted(f"{seen}/relay")} "$@"')
    folder.write("bin/aileron-mcp", "\n".join(lines) + "\n", mode=0o700)
    for name, text in plan.files.items():
        folder.write(name, text)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _spec(
    request: LaunchRequest,
    wired: PreparedLaunch,
    support: SandboxSupport,
    session: LaunchedSession,
    private: Path,
    own_home: Path,
) -> SandboxSpec:
    return SandboxSpec(
        bwrap=support.bwrap,
        project=request.project,
        home=request.home,
        own_home=own_home,
        private=private,
        socket=session.socket,
        programs=wired.programs,
        offline=request.sandbox == "offline",
    )


def _inner_env(request: LaunchRequest, wired: PreparedLaunch) -> dict[str, str]:
    """Return the whole environment of the sandbox."""
    bins = [str(root.parent) for root in wired.programs if root.is_file()]
    bins += [str(root / "bin") for root in wired.programs if (root / "bin").is_dir()]
    path = os.pathsep.join([f"{INSIDE_PRIVATE}/bin", *bins, *_SYSTEM_PATH])
    return {**wired.env, "HOME": str(request.home), "PATH": path}


def _programs(request: LaunchRequest, program: Path) -> tuple[Path, ...]:
    """Return what is mounted so that the agent and the relay run."""
    path = request.env.get("PATH", os.defpath)
    home, never = request.home, (request.aileron_home, request.project)
    own = roots_of(own_interpreter(), path, home=home, never=never)
    return tuple({*roots_of(program, path, home=home, never=never), *own})


def _close_doors(watch: UnfinishedSession, say: Callable[[str], None]) -> None:
    for sentence in watch.close():
        say(sentence)
