"""One launch from start to end: session, sandbox, agent, and the removal of everything temporary."""

import contextlib
import os
import shlex
import shutil
from collections.abc import Generator
from pathlib import Path, PurePosixPath

from aileron_core.connectors.builtin.commit_recovery import recover_commits
from aileron_core.console_port.file_views import (
    AcceptanceChangeView,
    AcceptedBeforeView,
    FileContentView,
)
from aileron_core.console_port.session_terms import SessionTerms
from aileron_core.containment import sandbox_init
from aileron_core.containment.bubblewrap import (
    SANDBOX_LAUNCH_DIR,
    SANDBOX_SOCKET,
)
from aileron_core.containment.git.prepare import check_repositories
from aileron_core.containment.hard_links import break_own_hard_links, find_outside_links
from aileron_core.containment.programs import named_interpreter, own_interpreter
from aileron_core.containment.protected_paths import (
    ProtectedPaths,
    UnfinishedSession,
    finish_sessions,
    refuse_unfinished,
)
from aileron_core.containment.support import refuse_root
from aileron_core.errors import FileProblems, Forbidden
from aileron_core.launch import agent_job
from aileron_core.launch.contained_run import host_network, listed_hosts, run_contained
from aileron_core.launch.foreground import job_argv, run_foreground
from aileron_core.launch.interfaces import (
    AcceptedSettings,
    LaunchedSession,
    Prompter,
    SessionHold,
    SessionPort,
)
from aileron_core.launch.launch_dir import (
    InjectedFiles,
    LaunchDir,
    launch_dir_parents,
)
from aileron_core.launch.model_traffic import bypass_warnings
from aileron_core.launch.named_programs import (
    missing_checks_digest,
    missing_sentences,
)
from aileron_core.launch.plan import Agent
from aileron_core.launch.prepare import LaunchRequest, PreparedLaunch, prepare
from aileron_core.launch.project import ProjectSettings, settings_in
from aileron_core.launch.repositories import (
    import_from_killed_launches,
    take_notices,
)
from aileron_core.launch.sandbox import (
    EMPTY_FILE,
    RESOLV_CONF,
    planned_mounts,
)
from aileron_core.launch.tools.relay import ToolRelay
from aileron_core.launch.tools.sandboxes import uncontained_tools
from aileron_core.library.accepted_contents import AcceptedContents
from aileron_core.library.comparison import Row, compare, rows_of
from aileron_core.text import escape

COMMANDS_OFFLINE = (
    "Commands of Aileron's Bash tool reach no host: --sandbox=hosts is for the agent alone."
)
_NETWORKS = {"on": "all", "hosts": "hosts", "offline": "offline", "off": ""}
"""`--sandbox` -> what that sandbox reaches."""


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
        _require_checks(prepared, request, console, prompter)
        session = _open_session(request, prepared, console)
        stack.callback(console.end, session.session_id)
        network = host_network(request, session, console)
        hold = console.hold(session, network.hosts.allow if network is not None else lambda _: None)
        stack.callback(hold.stop)
        prepared = prepared.with_gateway(
            f"{session.url}/gw/{session.gateway_token}", session.placeholder, session.key_providers
        )
        _say_differences(request, prepared, prompter)
        _write_launch_files(launch_dir, request, session, prepared)
        for folder in (request.project, *filter(Path.is_dir, prepared.paths.writable)):
            stack.enter_context(_protected(folder, request, session, prompter))
        if prepared.support is None:
            tools = stack.enter_context(
                uncontained_tools(
                    request, prepared, session_id=session.session_id, parent=launch_dir.path.parent
                )
            )
            return _run_uncontained(request, prepared, hold, tools)
        return run_contained(
            request, prepared, prepared.support, session, launch_dir.path, hold, network, prompter
        )


def _open_session(
    request: LaunchRequest, prepared: PreparedLaunch, console: SessionPort
) -> LaunchedSession:
    asked, builtins = prepared.project_settings, prepared.context.builtins
    exposed = asked.proxy.plugin_tools if asked is not None else ()
    return console.open(
        agent=request.agent.name,
        label=request.label or request.project.name,
        cwd=request.project,
        contained=request.contained,
        terms=SessionTerms(
            key_providers=tuple(request.agent.key_variables) if request.gateway else (),
            network=_NETWORKS[request.sandbox],
            hosts=tuple(listed_hosts(request)) if request.sandbox == "hosts" else (),
            writes=_written(request, prepared) if request.contained else (),
            builtins="" if builtins == "off" else builtins,
            plugin_tools=tuple(name for each in exposed for name in each.names),
            own_servers=prepared.servers.remaining,
        ),
    )


def _say_differences(request: LaunchRequest, prepared: PreparedLaunch, prompter: Prompter) -> None:
    """Say what is different from a start without Aileron."""
    for sentence in (
        *prepared.agent_files.notices,
        *prepared.paths.notices,
        *key_sentences(prepared),
        *prepared.left_out_keys,
        *prepared.unused_keys,
        *prepared.servers.sentences,
        *([prepared.plan.lost_key] if prepared.plan.lost_key else []),
        *prepared.plan.beside,
    ):
        prompter.say(escape(sentence))
    for folder in prepared.paths.writable:
        if (warning := find_outside_links(folder).warning()) is not None:
            prompter.say(f"{escape(str(folder))}: {warning}")
    if prepared.traffic is not None:
        for sentence in bypass_warnings(request.agent, prepared.traffic, offline=request.offline):
            prompter.say(escape(sentence))
    if prepared.builtin_tools is not None and request.sandbox == "hosts":
        prompter.say(COMMANDS_OFFLINE)
    if left_out := prepared.tools.left_out:
        prompter.say(f"Not in the sandbox, of your tools: {escape('; '.join(left_out))}.")


@contextlib.contextmanager
def _protected(
    folder: Path, request: LaunchRequest, session: LaunchedSession, prompter: Prompter
) -> Generator[None, None, None]:
    """Put back what a session changes among the protected names of *folder*, which its agent may write."""
    refuse_unfinished(request.aileron_home, folder)
    unfinished = UnfinishedSession.begin(
        request.aileron_home, ProtectedPaths.capture(folder), session.session_id
    )
    try:
        yield
    finally:
        for sentence in unfinished.finish():
            prompter.say(sentence)


def check_launch(request: LaunchRequest) -> PreparedLaunch:
    """Return how *request* would be started; changes nothing, and needs no console.

    Raises:
        NotFound, Forbidden, FileProblems, AileronError: what `launch` would refuse, for the same
            reason.
    """
    if request.contained:
        refuse_root()
    prepared = prepare(request, PurePosixPath("<private>"))
    refuse_unfinished(request.aileron_home, request.project)
    if prepared.support is not None:
        bwrap = prepared.support.bwrap
        check_repositories(bwrap=bwrap, project=request.project, env=request.env)
    return prepared


def key_sentences(prepared: PreparedLaunch) -> tuple[str, ...]:
    """Return that the agent gets a placeholder for keys in the vault, not yet escaped; nothing where it gets none."""
    if not (providers := ", ".join(prepared.placeholder_providers)):
        return ()
    return (
        f"{prepared.agent.title} gets a placeholder for its key of {providers}; the key stays in the vault.",
        "The vault does not lock by itself until this session ends.",
    )


def _finish_earlier_launches(request: LaunchRequest, prompter: Prompter) -> None:
    """Complete the cleanup of launches that were killed, and show the person the results.

    Raises:
        Forbidden: one left something in this project that could not be moved away.
    """
    for sentence in (
        *take_notices(request.aileron_home),
        *recover_commits(request.aileron_home),
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


def _require_checks(
    prepared: PreparedLaunch, request: LaunchRequest, console: SessionPort, prompter: Prompter
) -> None:
    """Say which programs of the agent's own settings are missing; of checks the person has to know, once.

    Raises:
        Forbidden: the person did not accept that checks do not run.
    """
    for sentence in missing_sentences(prepared.named_programs):
        prompter.say(escape(sentence))
    digest = missing_checks_digest(request.agent.name, prepared.named_programs)
    if digest is None:
        return
    # The home is never a project, so that nothing else is accepted under its path.
    accepted = console.accepted_settings(request.agent.name, request.home)
    if accepted is None or accepted.digest != digest:
        missing = [each for each in prepared.named_programs if each.is_missing_check]
        if not prompter.confirm_missing_checks(request.agent.title, len(missing)):
            raise Forbidden(
                "You did not accept that these checks do not run, so the agent was not started. Move them "
                "to a folder without a dot in your home as plain programs, or launch with --no-sandbox."
            )
        console.accept(request.agent.name, request.home, digest, missing_checks=True)


def _write_launch_files(
    launch_dir: LaunchDir,
    request: LaunchRequest,
    session: LaunchedSession,
    prepared: PreparedLaunch,
) -> None:
    """Write the relay, the token file and the files of the agent's plan into the launch's folder."""
    if request.contained:
        inside = PurePosixPath(SANDBOX_LAUNCH_DIR)
        settings = [f"AILERON_URL=unix:{SANDBOX_SOCKET}"]
        for name, module in (("start.py", sandbox_init), ("job.py", agent_job)):
            launch_dir.write(name, Path(str(module.__file__)).read_text("utf-8"))
        launch_dir.write(RESOLV_CONF, "nameserver 127.0.0.1\n", mode=0o644)
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
    launch_dir.write(EMPTY_FILE, "")
    launch_dir.write("bin/aileron-mcp", "\n".join(lines) + "\n", mode=0o700)
    for name, text in prepared.plan.files.items():
        launch_dir.write(name, text)
    _pin_interpreter(launch_dir, request, prepared)


def _pin_interpreter(
    launch_dir: LaunchDir, request: LaunchRequest, prepared: PreparedLaunch
) -> None:
    """Have a script find the interpreter that was found outside, even if the project has one on PATH."""
    if not request.contained:
        return
    never = (request.aileron_home, request.project)
    asked = named_interpreter(prepared.program, request.env.get("PATH", os.defpath), excluded=never)
    if asked is None:
        return
    name, interpreter = asked
    found = shutil.which(name, path=os.pathsep.join(prepared.tools.path))
    ways = (Path(found), Path(found).resolve()) if found else ()
    if any(each.is_relative_to(request.project) for each in ways):
        text = f'#!/bin/sh\nexec {shlex.quote(str(interpreter))} "$@"\n'
        launch_dir.write(f"bin/{name}", text, mode=0o700)


def _run_uncontained(
    request: LaunchRequest, prepared: PreparedLaunch, hold: SessionHold, tools: ToolRelay | None
) -> int:
    """Run the agent without a sandbox; return its exit code."""
    command = [
        *job_argv(str(agent_job.__file__), sandbox=False),
        str(prepared.program),
        *prepared.plan.argv[1:],
    ]

    def started(_: int) -> None:
        hold.start()
        if tools is not None:
            tools.start()

    with InjectedFiles(request.home, prepared.plan.injected_files):
        return run_foreground(command, env=prepared.env, cwd=str(request.project), started=started)


def _written(request: LaunchRequest, prepared: PreparedLaunch) -> tuple[str, ...]:
    """Return what of the person's the agent can write besides its project."""
    mounts = planned_mounts(request, prepared)
    return tuple(
        str(each.path) for each in mounts if each.how == "writable" and each.path != request.project
    )


def keep_settings(aileron_home: Path, settings: ProjectSettings) -> None:
    """Keep what was accepted, so that a change can be shown beside it. The acceptance comes first.

    Raises:
        OSError: it cannot be written.
    """
    copies = AcceptedContents(aileron_home)
    copies.keep([settings.document])
    copies.keep(text.encode() for text in settings.texts.values())


def settings_contents(
    settings: ProjectSettings,
    agent: Agent,
    aileron_home: Path,
    accepted: AcceptedSettings | None,
) -> tuple[tuple[str, FileContentView], ...]:
    """Return each file that asks for something with its content, and those that no longer do, empty.

    Args:
        accepted: what was accepted for this project and agent before, if anything.
    """
    if accepted is None:
        return tuple((n, FileContentView(text=text)) for n, text in settings.texts.items())
    kept = AcceptedContents(aileron_home).listed(accepted.digest)
    names = dict.fromkeys((*settings.texts, *kept))
    return tuple(
        (name, _content(name, settings, agent, accepted, known=bool(kept), old=kept.get(name, b"")))
        for name in names
    )


def _content(
    name: str,
    settings: ProjectSettings,
    agent: Agent,
    accepted: AcceptedSettings,
    *,
    known: bool,
    old: bytes | None,
) -> FileContentView:
    """Return the content of one file.

    Args:
        known: which files were accepted is known.
        old: as it was accepted, empty where it was not among them; None where that was not kept.
    """
    text = settings.texts.get(name, "")
    before = old.decode("utf-8", "backslashreplace") if known and old is not None else None
    if before == text:
        return FileContentView(text=text)
    changes: tuple[AcceptanceChangeView, ...] = ()
    if before is not None:
        one, two = (_asked(name, each, settings.path, agent) for each in (before, text))
        changes = compare(one, two)
    accepted_before = AcceptedBeforeView(
        name=name,
        digest=accepted.digest,
        accepted_at=accepted.accepted_at,
        text=before,
        changes=changes,
    )
    return FileContentView(text=text, before=accepted_before)


def _asked(name: str, text: str, project: Path, agent: Agent) -> list[Row]:
    try:
        found = settings_in(project, agent, {name: text}) if text else None
    except FileProblems:  # an earlier version of Aileron allowed it
        found = None
    if found is None:
        return []
    return [
        *rows_of("project_args", found.settings.args),
        *rows_of("project_env", (f"{name}={value}" for name, value in found.settings.env)),
        *rows_of("project_settings", found.sentences),
    ]
