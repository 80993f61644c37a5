"""The contained run of one launch: a home, caches and git directories of its own, and the agent in its sandbox."""

import contextlib
from collections.abc import Generator, Mapping
from pathlib import Path
from urllib.parse import urlsplit

from aileron_core.connectors.network.host_network import HostNetwork, RefusedHost
from aileron_core.connectors.network.host_resolver import HostList
from aileron_core.containment.bubblewrap import SANDBOX_LAUNCH_DIR, bwrap_argv
from aileron_core.containment.programs import own_interpreter
from aileron_core.containment.sandbox_network import DNS_PORT
from aileron_core.containment.support import SandboxSupport
from aileron_core.launch.agent_logins import PRIVATE_HOME, RenewedLogins
from aileron_core.launch.agent_state import kept_conversations, make_state
from aileron_core.launch.caches import prepare_caches
from aileron_core.launch.foreground import job_argv, run_foreground
from aileron_core.launch.interfaces import LaunchedSession, Prompter, SessionHold, SessionPort
from aileron_core.launch.launch_dir import InjectedFiles, LaunchDir
from aileron_core.launch.prepare import LaunchRequest, PreparedLaunch
from aileron_core.launch.repositories import Repositories, git_home_config
from aileron_core.launch.sandbox import (
    sandbox_spec,
    sandboxed_environment,
    shell_profiles,
    write_home_files,
)
from aileron_core.launch.tools.sandboxes import contained_tools
from aileron_core.text import escape

_MAX_NAMED = 10


def run_contained(
    request: LaunchRequest,
    prepared: PreparedLaunch,
    support: SandboxSupport,
    session: LaunchedSession,
    launch_dir: Path,
    hold: SessionHold,
    network: HostNetwork | None,
    prompter: Prompter,
) -> int:
    """Run the agent in its sandbox, with a home and git directories of its own; return its exit code."""
    with contextlib.ExitStack() as stack:
        own = stack.enter_context(LaunchDir(launch_dir.parent, prompter.say)).path
        own_home = own / PRIVATE_HOME
        own_home.mkdir(mode=0o700)
        prepared.agent_files.copy_to(own_home)
        make_state(request.aileron_home, request.agent, request.project)
        kept = kept_conversations(
            request.aileron_home, request.agent, request.project, support.bwrap, prompter.say
        )
        if kept is not None:
            stack.enter_context(kept.lent_to(launch_dir.name))
        folders = request.agent.folders
        logins = stack.enter_context(RenewedLogins(own, request.home, folders, prompter.say))
        prepare_caches(request.aileron_home, request.home, request.project, prompter.say)
        git_files = _write_home(own_home, request, prepared, support.bwrap, prompter)
        repositories = [
            stack.enter_context(each)
            for each in _repositories(request, prepared, session, support.bwrap, prompter)
        ]
        git_mounts = repositories[0].mounts
        git_of_writable = tuple(mount for each in repositories[1:] for mount in each.mounts)
        spec = sandbox_spec(
            request,
            prepared,
            launch_dir=launch_dir,
            private_home=own_home,
            socket=session.socket,
            git_mounts=git_mounts,
            git_of_writable=git_of_writable,
        )
        if network is not None:
            stack.callback(end_network, network, prompter)
        tools = stack.enter_context(
            contained_tools(
                request,
                prepared,
                support,
                session_id=session.session_id,
                parent=launch_dir.parent,
                git_files=git_files,
                git_mounts=git_mounts,
                git_of_writable=git_of_writable,
                say=prompter.say,
            )
        )

        if tools is not None and tools.why_not_rehearsed:
            prompter.say(f"Commands run without a rehearsal: {tools.why_not_rehearsed}")

        def started(bwrap: int) -> None:
            hold.start()
            if network is not None:
                network.start(bwrap)
            logins.follow()
            for each in repositories:
                each.follow(bwrap, tools.sandboxes if tools is not None else ())
            if tools is not None:
                tools.start()

        @contextlib.contextmanager
        def paused() -> Generator[None, None, None]:
            with contextlib.ExitStack() as held:
                if tools is not None:
                    held.enter_context(tools.paused())
                for each in repositories:
                    held.enter_context(each.paused())
                yield

        return run_foreground(
            bwrap_argv(spec, _sandbox_command(request, prepared, session)),
            env=sandboxed_environment(request, prepared),
            cwd="/",
            prepare=support.drop_privileges,
            started=started,
            paused=paused,
        )


def _write_home(
    own_home: Path,
    request: LaunchRequest,
    prepared: PreparedLaunch,
    bwrap: str,
    prompter: Prompter,
) -> Mapping[str, str]:
    """Write what the sandbox's home has besides the agent's own settings; return the git settings of it."""
    git = git_home_config(bwrap, request.project, prepared.paths.writable, request.env)
    for sentence in git.notices:
        prompter.say(sentence)
    profiles = shell_profiles(sandboxed_environment(request, prepared)["PATH"])
    write_home_files(
        own_home, {**prepared.plan.home_files, **profiles, **prepared.tools.files, **git.files}
    )
    InjectedFiles(own_home, prepared.plan.injected_files).__enter__()  # they end with the copy
    return git.files


def _repositories(
    request: LaunchRequest,
    prepared: PreparedLaunch,
    session: LaunchedSession,
    bwrap: str,
    prompter: Prompter,
) -> Generator[Repositories]:
    """Yield those of the project, then those of each other folder that the agent may write."""
    folders = (request.project, *filter(Path.is_dir, prepared.paths.writable))
    for number, folder in enumerate(folders):
        yield Repositories(
            bwrap=bwrap,
            aileron_home=request.aileron_home,
            session=session.session_id if number == 0 else f"{session.session_id}-{number}",
            project=folder,
            env=request.env,
            say=prompter.say,
        )


def _sandbox_command(
    request: LaunchRequest, prepared: PreparedLaunch, session: LaunchedSession
) -> list[str]:
    """Return what runs inside: the agent, behind its job control and its network's first program."""
    # Such a sandbox has no network in common with the gateway, so it needs a forwarder.
    forwards = request.own_network and prepared.uses_gateway
    opens = str(urlsplit(session.url).port if forwards else 0)
    if request.sandbox == "hosts":
        opens += f":{DNS_PORT}"
    start = [str(own_interpreter()), "-I", f"{SANDBOX_LAUNCH_DIR}/start.py", opens]
    return [
        *(start if request.own_network else ()),
        *job_argv(f"{SANDBOX_LAUNCH_DIR}/job.py", sandbox=True),
        str(prepared.program.resolve()),
        *prepared.plan.argv[1:],
    ]


def listed_hosts(request: LaunchRequest) -> HostList:
    """Return the hosts that the agent would reach with `--sandbox=hosts`."""
    return HostList(request.hosts, request.agent.hosts)


def host_network(
    request: LaunchRequest, session: LaunchedSession, console: SessionPort
) -> HostNetwork | None:
    """Return the network of a sandbox that reaches listed hosts only, not yet started; None for any other."""
    if request.sandbox != "hosts":
        return None

    def report(refused: RefusedHost) -> bool:
        return console.report_refused_host(session.session_id, refused.host, refused.problem)

    return HostNetwork(listed_hosts(request), report)


def end_network(network: HostNetwork, prompter: Prompter) -> None:
    """End *network*, and tell the person what it refused."""
    network.stop()
    if network.failure:
        prompter.say(f"The sandbox's network could not be opened: {escape(network.failure)}.")
    for bug in sorted(network.bugs):
        prompter.say(
            f"A connection of the sandbox failed because of an error in Aileron ({bug}). Please report it."
        )
    refused = [each for each in network.refused if each not in network.hosts]
    if refused:
        named = ", ".join(escape(each) for each in refused[:_MAX_NAMED])
        more = len(refused) - _MAX_NAMED
        prompter.say(
            f"Hosts that the agent could not reach: {named}{f' and {more} more' if more > 0 else ''}. "
            "To list one, add it to `hosts` under [launch] in config.toml."
        )
