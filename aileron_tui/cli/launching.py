"""`aileron launch`: an agent in this pane, connected to the console and contained; asks about a project's settings."""

import contextlib
import http.client
import os
import shutil
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

import click

from aileron_core.console_port.file_views import FileContentView
from aileron_core.console_port.session_terms import SessionTerms
from aileron_core.errors import AileronError, ConsoleUnavailable, Forbidden
from aileron_core.home.client import HomeClient, HomeConnection
from aileron_core.home.layout import Home
from aileron_core.home.owner import OwnerNotVerified, lock_owner
from aileron_core.launch.agent_state import export_conversation
from aileron_core.launch.agents import AGENTS
from aileron_core.launch.augmented import AugmentedLaunch, launch_augmented
from aileron_core.launch.interfaces import AcceptedSettings, LaunchedSession, SessionHold
from aileron_core.launch.launcher import launch
from aileron_core.launch.plan import Agent, Builtins
from aileron_core.launch.prepare import LaunchRequest
from aileron_core.launch.project import ProjectSettings
from aileron_core.settings import LaunchPaths, load_settings
from aileron_core.text import escape
from aileron_mcp.relay_copies import compiled_folder
from aileron_tui.cli.accepted import (
    accepted_launch_settings,
    accepted_servers,
    require_accepted_settings,
)
from aileron_tui.cli.dry_run import show_dry_run
from aileron_tui.cli.output import EXIT, CliError, CommandContext
from aileron_tui.draw.blocks import blocks_page, text_of
from aileron_tui.draw.file_page import settings_blocks

_AGAIN_SECONDS = 1.0
_MAX_LINE = 4096
_BUILTINS: dict[bool | None, Builtins | None] = {None: None, True: "beside", False: "off"}

_CONSOLE_SECONDS = 30.0
"""How long a console may take until it answers."""
_WIDE = 160
"""Columns from which two panes stand side by side."""


class _Hold:
    """The session's hold stream, read on a thread of its own; reopened after a restart of the console."""

    def __init__(self, home: Path, session_id: str, allow: Callable[[str], None]) -> None:
        self._home = home
        self._session_id = session_id
        self._allow = allow
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="hold", daemon=True)
        self._connection: HomeConnection | None = None
        self._stream: http.client.HTTPResponse | None = None
        with contextlib.suppress(AileronError, OSError, http.client.HTTPException):
            self._stream = self._opened()

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        if self._connection is not None:
            self._connection.abort()

    def _run(self) -> None:
        while not self._stopped.is_set():
            with contextlib.suppress(AileronError, OSError, http.client.HTTPException):
                if not self._once():
                    return
            self._stopped.wait(_AGAIN_SECONDS)

    def _opened(self) -> http.client.HTTPResponse:
        connection = self._connection = HomeConnection(self._home, timeout=60.0)
        connection.request("GET", f"/v1/sessions/{self._session_id}/hold")
        stream = connection.getresponse()
        stream.peek(1)  # the session is held from its first byte on
        return stream

    def _once(self) -> bool:
        """Hold until the stream breaks; return whether the session may still be there."""
        try:
            stream, self._stream = self._stream or self._opened(), None
            if stream.status != 200:
                return False
            while not self._stopped.is_set() and (line := stream.readline(_MAX_LINE)):
                if line.startswith(b"data:"):
                    with contextlib.suppress(ValueError):  # of a newer console
                        self._allow(line.removeprefix(b"data:").decode("ascii").strip())
        finally:
            if self._connection is not None:
                self._connection.close()
        return True


class HomeSessions:
    """Sessions of the console that owns *home*, for the launcher."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._console = HomeClient(home)

    def require_console(self) -> None:
        """Return if a console answers; see `aileron_core.launch.interfaces.SessionPort`."""
        self._console.request("GET", "/v1/status")

    def open(
        self,
        *,
        agent: str,
        label: str,
        cwd: Path,
        contained: bool,
        terms: SessionTerms,
    ) -> LaunchedSession:
        """Open a session; see `aileron_core.launch.interfaces.SessionPort`."""
        asked: dict[str, Any] = {
            "agent": agent,
            "label": label[:128],
            "cwd": str(cwd),
            "pid": os.getpid(),
            "launched": True,
            "contained": contained,
        }
        _, body = self._console.request("POST", "/v1/sessions", asked | terms.to_json())
        socket = body.get("socket")
        return LaunchedSession(
            session_id=body["session_id"],
            token=body["token"],
            gateway_token=body["gateway_token"],
            url=body["url"],
            socket=Path(socket) if socket else None,
            placeholder=body.get("placeholder", ""),
            key_providers=tuple(body.get("key_providers", ())),
        )

    def accepted_settings(self, agent: str, project: Path) -> AcceptedSettings | None:
        return accepted_launch_settings(self._home, agent, project)

    def accept(
        self, agent: str, project: Path, digest: str, *, missing_checks: bool = False
    ) -> None:
        asked = {
            "agent": agent,
            "path": str(project),
            "digest": digest,
            "missing_checks": missing_checks,
        }
        self._console.request("POST", "/v1/projects", asked)

    def hold(self, session: LaunchedSession, allow: Callable[[str], None]) -> SessionHold:
        return _Hold(self._home, session.session_id, allow)

    def report_refused_host(self, session_id: str, host: str, problem: str) -> bool:
        asked = {"host": host, "problem": problem}
        try:
            self._console.request("POST", f"/v1/sessions/{session_id}/refused-hosts", asked)
        except AileronError:
            return False
        return True

    def end(self, session_id: str) -> None:
        """End the session, if its console is still there."""
        with contextlib.suppress(AileronError):
            self._console.request("POST", f"/v1/sessions/{session_id}/end", {})


class _AtTerminal:
    """The person at this terminal; with `--accept-project` or `--accept-missing-checks` they said yes beforehand."""

    def __init__(
        self, context: CommandContext, *, accepted: bool, without_checks: bool = False
    ) -> None:
        self._context = context
        self._accepted = accepted
        self._without_checks = without_checks

    def say(self, text: str) -> None:
        """Print to stderr: standard output belongs to the agent."""
        click.echo(f"aileron: {text}", err=True)

    def confirm_settings(
        self, settings: ProjectSettings, contents: Sequence[tuple[str, FileContentView]]
    ) -> bool:
        """Show the files, what a change in them allows more, and what they ask for; wait for a yes or no.

        Raises:
            Forbidden: there is no terminal, and no `--accept-project`.
        """
        title = f"This project sets, for {settings.agent}:"
        if not self._accepted and not (sys.stdin.isatty() and sys.stderr.isatty()):
            raise Forbidden(
                f"{title} {'; '.join(settings.lines())}. There is no terminal to ask you at. Review the "
                "files, then launch again with --accept-project."
            )
        columns = shutil.get_terminal_size().columns
        for drawn in blocks_page(settings_blocks(contents), columns):
            click.echo(text_of(drawn), err=True)
        click.echo("", err=True)
        self.say(title)
        for line in settings.lines():
            click.echo(f"  {line}", err=True)
        if self._accepted:
            self.say("Accepted by --accept-project.")
            return True
        return _asked("Accept these files for this folder, as they are now?")

    def confirm_missing_checks(self, agent: str, count: int) -> bool:
        """Say what it means, and wait for a yes or no.

        Raises:
            Forbidden: there is no terminal, and no `--accept-missing-checks`.
        """
        checks = "1 check of yours is" if count == 1 else f"{count} checks of yours are"
        self.say(f"For {agent} in the sandbox, {checks} missing or may not work, as said above.")
        if self._without_checks:
            self.say("Accepted by --accept-missing-checks.")
            return True
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            raise Forbidden(
                "There is no terminal to ask you at, so the agent was not started. Launch again with "
                "--accept-missing-checks to do without them, or with --no-sandbox to have them."
            )
        return _asked("Start anyway, now and until one of them changes?")


def _asked(question: str) -> bool:
    """Ask at the terminal; Enter means no."""
    termios.tcflush(sys.stdin, termios.TCIFLUSH)  # what was typed before the question is no answer
    return click.confirm(question, err=True)


def _export_session(
    context: CommandContext, agent: Agent, args: tuple[str, ...], folder: Path
) -> int:
    """Copy a conversation of *agent* in this folder out of Aileron's home, with a warning.

    Raises:
        NotFound: no such conversation.
        AileronError: *folder* cannot be used.
    """
    wanted = args[0] if args else ""
    project = Path.cwd().resolve()
    found = export_conversation(context.home, agent, project, wanted, folder.absolute())
    at = datetime.fromtimestamp(found.modified_at).astimezone()
    shown = at.isoformat(" ", "seconds")
    context.show({"path": str(found.path), "modified_at": shown, "conversations": found.count})
    which = f"the newest of {found.count}" if found.count > 1 else "the only one"
    which = "" if wanted else f", {which}"
    context.say(
        f"Copied the conversation to {escape(str(found.path))} "
        f"(last changed {at:%Y-%m-%d %H:%M:%S}{which})."
    )
    context.say(
        f"▲ {agent.title} wrote this file in its sandbox: it may contain turns that never happened. An "
        "agent that resumes it outside the sandbox believes all of it. Read it first."
    )
    return EXIT.DONE


def _launch_program(
    context: CommandContext, program: str, args: tuple[str, ...], *, console: bool, label: str
) -> int:
    """Launch any *program*, with Aileron's tools for its model; return its own exit code.

    Raises:
        NotFound: there is no such program.
    """
    request = AugmentedLaunch(
        program=program, args=args, project=Path.cwd().resolve(), env=dict(os.environ), label=label
    )
    if console:
        _open_console(context.home, request.env)
    return launch_augmented(
        request, HomeSessions(context.home), _AtTerminal(context, accepted=False)
    )


def launch_command(
    context: CommandContext,
    agent: str,
    args: tuple[str, ...],
    *,
    augment: bool,
    dry_run: bool,
    sandbox: Literal["on", "hosts", "offline"],
    no_sandbox: bool,
    read: tuple[str, ...],
    write: tuple[str, ...],
    hide: tuple[str, ...],
    builtins: bool | None,
    intercept_builtins: bool,
    no_gateway: bool,
    allow_abstract_sockets: bool,
    accept_project: bool,
    accept_missing_checks: bool,
    console: bool,
    label: str,
    export_session: str | None,
) -> int:
    """Launch an agent, or with *augment* any program; return its own exit code.

    Raises:
        CliError: an option leaves another nothing to do.
        NotFound: no such agent or program, or it is not installed.
        FileProblems: `config.toml`, or the project's `aileron.toml`, cannot be used.
    """
    if augment:
        _refuse_beside_augment()
        return _launch_program(context, agent, args, console=console, label=label)
    if no_sandbox and (sandbox != "on" or read or write or hide):
        raise CliError(
            EXIT.USAGE,
            "--no-sandbox leaves nothing for --sandbox, --read, --write or --hide to do. Leave out one or the other.",
        )
    if intercept_builtins and builtins is False:
        raise CliError(
            EXIT.USAGE,
            "--no-builtins leaves nothing for --intercept-builtins to do. Leave out one.",
        )
    if export_session is not None:
        return _export_session(context, AGENTS[agent], args, Path(export_session))
    settings = load_settings(Home(context.home).config)
    request = LaunchRequest(
        agent=AGENTS[agent],
        args=args,
        project=Path.cwd().resolve(),
        home=Path.home(),
        aileron_home=context.home,
        env=dict(os.environ),
        relay=compiled_folder(),
        sandbox="off" if no_sandbox else sandbox,
        hosts=settings.launch_hosts,
        allow_abstract=allow_abstract_sockets,
        gateway=not no_gateway,
        servers=accepted_servers(Home(context.home)),
        settings=settings.launch,
        paths=settings.paths,
        typed_paths=LaunchPaths(read=read, write=write, hide=hide),
        label=label,
        builtins="instead" if intercept_builtins else _BUILTINS[builtins],
    )
    if dry_run:
        return show_dry_run(context, request)
    if console:
        _open_console(context.home, request.env)
    person = _AtTerminal(context, accepted=accept_project, without_checks=accept_missing_checks)
    uses_hosts = request.sandbox == "hosts"
    require_accepted_settings(context.home, settings, agent, uses_hosts=uses_hosts)
    return launch(request, HomeSessions(context.home), person)


def _refuse_beside_augment() -> None:
    """Refuse the options of `launch` that mean nothing with `--augment`.

    Raises:
        CliError: there is one.
    """
    given = click.get_current_context()
    kept = {
        *("agent", "args", "augment", "no_sandbox", "console", "label"),
        *("home", "as_json", "no_color"),
    }
    for name in given.params:
        source = given.get_parameter_source(name)
        if name not in kept and source is click.core.ParameterSource.COMMANDLINE:
            option = "--" + name.replace("_", "-")
            raise CliError(
                EXIT.USAGE, f"{option} has no effect with --augment. Leave out one of them."
            )


def _open_console(home: Path, env: Mapping[str, str]) -> bool:
    """Open a console on *home* in a new tmux pane and wait until it answers; False if one runs.

    Raises:
        CliError: there is no tmux around this terminal, or the console did not come up.
        ConsoleAbsent: the home or its console belongs to another user, or its owner is unknown.
    """
    try:
        if lock_owner(home) is not None:
            return False
    except OwnerNotVerified as error:
        raise ConsoleUnavailable(str(error)) from error
    tmux = shutil.which("tmux", path=env.get("PATH"))
    if not env.get("TMUX") or tmux is None:
        raise CliError(
            EXIT.NO_CONSOLE,
            f"No console is running on {home}, and --console opens one only inside tmux. Start "
            "`aileron console` in another window of your terminal, or run this inside tmux.",
        )
    pane = _split(tmux, env, home)
    console, deadline = HomeClient(home), time.monotonic() + _CONSOLE_SECONDS
    while True:
        try:
            console.request("GET", "/v1/status")
        except AileronError:
            if not _lives(tmux, env, pane):
                raise CliError(
                    EXIT.NO_CONSOLE,
                    "The console stopped right after it started. Run `aileron console` to see why.",
                ) from None
            if time.monotonic() > deadline:
                raise CliError(
                    EXIT.NO_CONSOLE,
                    f"The console in the new pane did not answer within {_CONSOLE_SECONDS:g} seconds.",
                ) from None
            time.sleep(0.1)
        else:
            return True


def _split(tmux: str, env: Mapping[str, str], home: Path) -> str:
    """Open a pane before this one, which keeps the keyboard; return its id."""
    at = ["-t", env["TMUX_PANE"]] if env.get("TMUX_PANE") else []
    width = _tmux(tmux, env, "display-message", "-p", *at, "#{window_width}").strip()
    side = ["-h"] if width.isdigit() and int(width) >= _WIDE else ["-v"]
    command = [sys.executable, "-I", "-m", "aileron_tui.cli", "console", "--home", str(home)]
    how = ["split-window", "-d", "-b", *side, *at, "-c", str(Path.home()), "-P", "-F", "#{pane_id}"]
    return _tmux(tmux, env, *how, *command).strip()


def _lives(tmux: str, env: Mapping[str, str], pane: str) -> bool:
    return pane in _tmux(tmux, env, "list-panes", "-a", "-F", "#{pane_id}").split()


def _tmux(tmux: str, env: Mapping[str, str], *words: str) -> str:
    done = subprocess.run(
        [tmux, *words], capture_output=True, text=True, timeout=10, check=False, env=dict(env)
    )
    if done.returncode != 0:
        raise CliError(EXIT.FAILED, f"tmux {words[0]} failed: {done.stderr.strip()}")
    return done.stdout
