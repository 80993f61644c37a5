"""`aileron launch`: an agent in this pane, connected to the console and contained; asks about a project's settings."""

import contextlib
import http.client
import os
import shlex
import shutil
import sys
import termios
import threading
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path, PurePosixPath

import click

from aileron_core.console_port import FileContentView
from aileron_core.errors import AileronError, Forbidden, NotFound
from aileron_core.home.client import HomeClient, HomeConnection
from aileron_core.home.layout import Home
from aileron_core.home.owner import read_daemon_file
from aileron_core.launch.agents import AGENTS
from aileron_core.launch.interfaces import AcceptedSettings, LaunchedSession, SessionHold
from aileron_core.launch.launcher import launch
from aileron_core.launch.model_traffic import bypass_warnings
from aileron_core.launch.prepare import LaunchRequest, prepare
from aileron_core.launch.project import ProjectSettings
from aileron_core.settings import load_settings
from aileron_core.text import escape
from aileron_mcp.relay_copies import compiled_folder
from aileron_tui.cli.output import EXIT, CommandContext
from aileron_tui.cli.tmux import open_console
from aileron_tui.draw.file_page import settings_blocks
from aileron_tui.plain.lines import blocks_page, text_of

_AGAIN_SECONDS = 1.0
_HIDDEN = "HIDDEN"
"""Printed in place of the gateway token by a dry run."""


class _Hold:
    """The session's hold stream, read on a thread of its own; reopened after a restart of the console."""

    def __init__(self, home: Path, session_id: str) -> None:
        self._home = home
        self._session_id = session_id
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="hold", daemon=True)
        self._connection: HomeConnection | None = None

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

    def _once(self) -> bool:
        """Hold until the stream breaks; return whether the session may still be there."""
        connection = self._connection = HomeConnection(self._home, timeout=60.0)
        with contextlib.closing(connection):
            connection.request("GET", f"/v1/sessions/{self._session_id}/hold")
            response = connection.getresponse()
            if response.status != 200:
                return False
            while not self._stopped.is_set() and response.read1(1024):
                pass
        return True


class HomeSessions:
    """Sessions of the console that owns *home*, for the launcher."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._console = HomeClient(home)

    def require_console(self) -> None:
        """Return if a console answers; see `aileron_core.launch.interfaces.SessionPort`."""
        self._console.request("GET", "/v1/status")

    def open(self, *, agent: str, label: str, cwd: Path, contained: bool) -> LaunchedSession:
        """Open a session; see `aileron_core.launch.interfaces.SessionPort`."""
        asked = {
            "agent": agent,
            "label": label[:128],
            "cwd": str(cwd),
            "pid": os.getpid(),
            "launched": True,
            "contained": contained,
        }
        _, body = self._console.request("POST", "/v1/sessions", asked)
        socket = body.get("socket")
        return LaunchedSession(
            session_id=body["session_id"],
            token=body["token"],
            gateway_token=body["gateway_token"],
            url=body["url"],
            socket=Path(socket) if socket else None,
        )

    def accepted_settings(self, agent: str, project: Path) -> AcceptedSettings | None:
        _, body = self._console.request("GET", "/v1/projects")
        found = {(each["agent"], each["path"]): each for each in body["items"]}
        each = found.get((agent, str(project)))
        if each is None:
            return None
        at = datetime.fromisoformat(each["taken_at"]).timestamp()
        return AcceptedSettings(digest=each["digest"], accepted_at=at)

    def accept(self, agent: str, project: Path, digest: str) -> None:
        asked = {"agent": agent, "path": str(project), "digest": digest}
        self._console.request("POST", "/v1/projects", asked)

    def hold(self, session: LaunchedSession) -> SessionHold:
        return _Hold(self._home, session.session_id)

    def end(self, session_id: str) -> None:
        """End the session, if its console is still there."""
        with contextlib.suppress(AileronError):
            self._console.request("POST", f"/v1/sessions/{session_id}/end", {})


class _AtTerminal:
    """The person at this terminal; with `--accept-project` they said yes beforehand."""

    def __init__(self, context: CommandContext, *, accepted: bool) -> None:
        self._context = context
        self._accepted = accepted

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
        termios.tcflush(
            sys.stdin, termios.TCIFLUSH
        )  # what was typed before the question is not an answer
        return click.confirm("Accept these files for this folder, as they are now?", err=True)


def launch_agent(
    context: CommandContext,
    name: str,
    args: tuple[str, ...],
    *,
    sandbox: str,
    gateway: bool,
    allow_abstract: bool,
    accept_project: bool,
    console: bool,
    label: str,
    dry_run: bool,
) -> int:
    """Launch the agent *name*; return its own exit code.

    Raises:
        NotFound: no such agent, or it is not installed.
        FileProblems: `config.toml`, or the project's `aileron.toml`, cannot be used.
    """
    agent = AGENTS.get(name)
    if agent is None:
        raise NotFound(f"Aileron cannot launch {name}. Choose one of {', '.join(AGENTS)}.")
    settings = load_settings(Home(context.home).config)
    request = LaunchRequest(
        agent=agent,
        args=args,
        project=Path.cwd().resolve(),
        home=Path.home(),
        aileron_home=context.home,
        env=dict(os.environ),
        relay=compiled_folder(),
        sandbox="off" if sandbox == "off" else "offline" if sandbox == "offline" else "on",
        allow_abstract=allow_abstract,
        gateway=gateway,
        settings=settings.launch,
        label=label,
    )
    if dry_run:
        return _show(context, request)
    if console:
        open_console(context.home, request.env)
    person = _AtTerminal(context, accepted=accept_project)
    return launch(request, HomeSessions(context.home), person)


def _address(home: Path) -> str:
    """Return where the console's gateway is, or would be; a URL is no secret."""
    url: object = read_daemon_file(home).get("url")
    return url if isinstance(url, str) and url else "http://127.0.0.1:PORT"


def _show(context: CommandContext, request: LaunchRequest) -> int:
    """Print what would be set. Nothing is opened, written or started."""
    prepared = prepare(request, PurePosixPath("<private>"))
    gateway = f"{_address(context.home)}/gw/{_HIDDEN}"
    prepared = prepared.with_gateway(gateway)
    through = sorted(prepared.traffic.providers) if prepared.traffic else []
    past = bypass_warnings(request.agent, prepared.traffic) if prepared.traffic else ()
    plan, given = prepared.plan, request.env
    ours = {
        # A merged setting may contain a secret of the person's; only what is Aileron's alone is shown.
        name: "(your own value, with Aileron's settings added)" if name in given else value
        for name, value in prepared.env.items()
        if given.get(name) != value
    }
    if context.json:
        context.show(
            {
                "agent": request.agent.name,
                "program": str(prepared.program),
                "argv": list(plan.argv),
                "env": ours,
                "files": dict(plan.files),
                "additions": {str(each.path): each.content for each in plan.injected_files},
                "sandbox": request.sandbox,
                "gateway": {
                    "url": gateway if through else None,
                    "providers": through,
                    "past": list(prepared.traffic.bypass_reasons) if prepared.traffic else [],
                },
                "project": list(prepared.project_settings.lines())
                if prepared.project_settings
                else [],
            }
        )
        return EXIT.DONE
    context.say(
        f"Would start {escape(str(prepared.program))} in {escape(str(request.project))}", bold=True
    )
    context.say(f"  sandbox   {request.sandbox}")
    context.say(f"  command   {escape(shlex.join(plan.argv))}")
    if through:
        context.say(f"  gateway   {escape(gateway)}")
    for name, value in sorted(ours.items()):
        context.say(f"  sets      {name}={escape(value)}")
    for name in plan.files:
        context.say(f"  writes    <private>/{name}, removed at the end")
    for each in plan.injected_files:
        context.say(f"  adds      ~/{each.path}, removed at the end")
    for line in prepared.project_settings.lines() if prepared.project_settings else ():
        context.say(f"  project   {line}   (once you accept it)")
    context.say("  Controlled by Aileron:")
    for sentence in request.agent.controls:
        context.say(f"  ✓ {sentence}")
    if through:
        context.say(f"  ✓ Its model traffic goes through Aileron's gateway: {', '.join(through)}.")
    context.say("  Not controlled by Aileron:")
    for sentence in request.agent.not_controlled:
        context.say(f"  ▲ {sentence}")
    for sentence in past:
        context.say(f"  ▲ {escape(sentence)}")
    if prepared.traffic is None:
        context.say("  ▲ Its model traffic: --no-gateway is set.")
    return EXIT.DONE
