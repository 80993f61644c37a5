"""One launch from start to end: session, sandbox, agent, and the removal of everything temporary."""

import contextlib
import os
import shlex
from importlib.resources import files
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

from aileron_core.containment.bubblewrap import (
    SANDBOX_LAUNCH_DIR,
    SANDBOX_SOCKET,
    SandboxSpec,
    bwrap_argv,
)
from aileron_core.containment.hard_links import break_own_hard_links, find_outside_links
from aileron_core.containment.programs import own_interpreter
from aileron_core.containment.support import SandboxSupport, refuse_root
from aileron_core.errors import Forbidden
from aileron_core.launch.foreground import run_foreground
from aileron_core.launch.interfaces import LaunchedSession, Prompter, SessionHold, SessionPort
from aileron_core.launch.launch_dir import (
    InjectedFiles,
    LaunchDir,
    copy_back,
    copy_in,
    launch_dir_parents,
)
from aileron_core.launch.model_traffic import bypass_warnings
from aileron_core.launch.plan import Plan
from aileron_core.launch.prepare import LaunchRequest, PreparedLaunch, prepare
from aileron_core.launch.project import ProjectSettings
from aileron_core.launch.project_contents import keep_settings, settings_contents
from aileron_core.launch.protected_paths import (
    ProtectedPaths,
    UnfinishedSession,
    finish_sessions,
    refuse_unfinished,
)
from aileron_core.launch.repositories import (
    Repositories,
    import_from_killed_launches,
    take_notices,
)
from aileron_core.text import escape

_SYSTEM_PATH = ("/usr/local/bin", "/usr/bin", "/bin", "/usr/local/sbin", "/usr/sbin", "/sbin")


def launch(request: LaunchRequest, console: SessionPort, prompter: Prompter) -> int:
    """Run the agent in the foreground and return its exit code; afterwards all temporary files are gone.

    Raises:
        NotFound, Forbidden, FileProblems: see `prepare`; or the project's settings were not
            accepted.
        ConsoleUnavailable: no console owns the home.
    """
    if request.contained:
        refuse_root()  # a console of root's would not help
    console.require_console()  # before anything is made: without one there may be no home either
    _finish_earlier_launches(request, prompter)
    parent = launch_dir_parents(request.aileron_home, request.env)[0]
    with contextlib.ExitStack() as stack:
        launch_dir = stack.enter_context(LaunchDir(parent, prompter.say))
        if request.contained:
            _check_hard_links(request, prompter)
        prepared = prepare(request, PurePosixPath(launch_dir.path))
        _require_acceptance(prepared.project_settings, request, console, prompter)
        session = console.open(
            agent=request.agent.name,
            label=request.label or request.project.name,
            cwd=request.project,
            contained=request.contained,
        )
        stack.callback(console.end, session.session_id)
        prepared = prepared.with_gateway(f"{session.url}/gw/{session.gateway_token}")
        if prepared.traffic is not None:
            for sentence in bypass_warnings(
                request.agent, prepared.traffic, offline=request.offline
            ):
                prompter.say(escape(sentence))
        _write_launch_files(launch_dir, request, session, prepared.plan)
        unfinished = UnfinishedSession.begin(
            request.aileron_home, ProtectedPaths.capture(request.project), session.session_id
        )
        stack.callback(lambda: [prompter.say(sentence) for sentence in unfinished.finish()])
        hold = console.hold(session)
        stack.callback(hold.stop)
        if prepared.support is None:
            stack.enter_context(InjectedFiles(request.home, prepared.plan.injected_files))
            argv = [str(prepared.program), *prepared.plan.argv[1:]]
            cwd = str(request.project)
            return run_foreground(argv, env=prepared.env, cwd=cwd, started=lambda _: hold.start())
        return _run_contained(
            request, prepared, prepared.support, session, launch_dir.path, hold, prompter
        )


def _finish_earlier_launches(request: LaunchRequest, prompter: Prompter) -> None:
    """Complete the cleanup of launches that were killed, and show the person the results.

    Raises:
        Forbidden: one left something in this project that could not be moved away.
    """
    for sentence in (
        *take_notices(request.aileron_home),
        *import_from_killed_launches(request.aileron_home),
        *finish_sessions(request.aileron_home),
    ):
        prompter.say(sentence)
    refuse_unfinished(request.aileron_home, request.project)


def _check_hard_links(request: LaunchRequest, prompter: Prompter) -> None:
    """Break the hard links of Aileron's own files; warn of files of the project with links outside it."""
    for sentence in (break_own_hard_links(), find_outside_links(request.project).warning()):
        if sentence is not None:
            prompter.say(sentence)


def _require_acceptance(
    settings: ProjectSettings | None,
    request: LaunchRequest,
    console: SessionPort,
    prompter: Prompter,
) -> None:
    """Have the person accept the project's settings, unless they accepted exactly these bytes before."""
    if settings is None:
        return
    accepted = console.accepted_settings(settings.agent, settings.path)
    if accepted is None or accepted.digest != settings.digest:
        home = request.aileron_home
        contents = settings_contents(settings, request.agent, home, accepted)
        if not prompter.confirm_settings(settings, contents):
            raise Forbidden(
                "You did not accept the project's settings, so the agent was not started."
            )
        console.accept(settings.agent, settings.path, settings.digest)
    try:
        keep_settings(request.aileron_home, settings)
    except OSError as error:
        prompter.say(
            f"The accepted settings could not be saved in {request.aileron_home} "
            f"({error.strerror}). If they change, you will not be shown the difference."
        )


def _write_launch_files(
    launch_dir: LaunchDir, request: LaunchRequest, session: LaunchedSession, plan: Plan
) -> None:
    """Write the relay, the token file and the files of the agent's plan into the launch's folder."""
    if request.contained:
        inside = PurePosixPath(SANDBOX_LAUNCH_DIR)
        settings = [f"AILERON_URL=unix:{SANDBOX_SOCKET}"]
        init = files("aileron_core.containment").joinpath("sandbox_init.py")
        launch_dir.write("start.py", init.read_text("utf-8"))
    else:
        inside = PurePosixPath(launch_dir.path)
        token = launch_dir.write("token", session.token)
        settings = [f"AILERON_HOME={request.aileron_home}", f"AILERON_TOKEN_FILE={token}"]
    for name, content in request.relay.items():
        launch_dir.write(f"relay/{name}", content)
    relay = shlex.join([str(own_interpreter()), "-I", f"{inside}/relay"])
    lines = [
        "#!/bin/sh",
        "unset AILERON_TOKEN AILERON_TOKEN_FILE AILERON_URL AILERON_AGENT",
        *(f"export {shlex.quote(setting)}" for setting in settings),
        f'exec {relay} "$@"',
    ]
    launch_dir.write("bin/aileron-mcp", "\n".join(lines) + "\n", mode=0o700)
    for name, text in plan.files.items():
        launch_dir.write(name, text)


def _run_contained(
    request: LaunchRequest,
    prepared: PreparedLaunch,
    support: SandboxSupport,
    session: LaunchedSession,
    launch_dir: Path,
    hold: SessionHold,
    prompter: Prompter,
) -> int:
    """Run the agent in its sandbox, with a home and git directories of its own; return its exit code."""
    with contextlib.ExitStack() as stack:
        own_home = stack.enter_context(LaunchDir(launch_dir.parent, prompter.say)).path
        credentials = copy_in(request.home, own_home, request.agent.folders, prompter.say)
        stack.callback(copy_back, credentials, prompter.say)
        InjectedFiles(own_home, prepared.plan.injected_files).__enter__()  # they end with the copy
        repositories = stack.enter_context(
            Repositories(
                bwrap=support.bwrap,
                aileron_home=request.aileron_home,
                session=session.session_id,
                project=request.project,
                env=request.env,
                say=prompter.say,
            )
        )
        spec = SandboxSpec(
            bwrap=support.bwrap,
            project=request.project,
            home=request.home,
            private_home=own_home,
            launch_dir=launch_dir,
            socket=session.socket,
            programs=prepared.programs,
            offline=request.offline,
            git_mounts=repositories.mounts,
        )
        # Offline the sandbox has no network in common with the gateway, so it needs a forwarder.
        forwards = request.offline and prepared.uses_gateway
        port = urlsplit(session.url).port if forwards else None
        init = [str(own_interpreter()), "-I", f"{SANDBOX_LAUNCH_DIR}/start.py", str(port or 0)]
        agent = [str(prepared.program.resolve()), *prepared.plan.argv[1:]]

        def started(bwrap: int) -> None:
            hold.start()
            repositories.follow(bwrap)

        return run_foreground(
            bwrap_argv(spec, [*init, *agent]),
            env=_sandbox_env(request, prepared),
            cwd="/",
            prepare=support.drop_privileges,
            started=started,
        )


def _sandbox_env(request: LaunchRequest, prepared: PreparedLaunch) -> dict[str, str]:
    bins = [str(root.parent) for root in prepared.programs if root.is_file()]
    bins += [str(root / "bin") for root in prepared.programs if (root / "bin").is_dir()]
    path = os.pathsep.join([f"{SANDBOX_LAUNCH_DIR}/bin", *bins, *_SYSTEM_PATH])
    return {**prepared.env, "HOME": str(request.home), "PATH": path}
