"""`aileron init` and `aileron example`: a home, the next steps, and a mail service for a first approval."""

import os
import shlex
import signal
import sys
import threading
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from aileron_core.home.layout import DEFAULT_HOME, Home
from aileron_core.settings import load_settings
from aileron_core.text import escape
from aileron_tui.cli.adding import add_files
from aileron_tui.cli.output import EXIT, CliError, CommandContext, own_program
from aileron_tui.cli.scaffold import (
    EXAMPLE_DRAFT,
    EXAMPLE_HOST,
    EXAMPLE_PORT,
    examples,
    settings_text,
)

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_LAST_SECONDS = 1.0
"""How long the last mails have to be printed when the service ends."""


def init_home(context: CommandContext, *, example: bool) -> int:
    """Make the home with its settings, and with *example* what a first approval needs.

    Existing files are kept, so a second call does no harm.
    """
    home = Home(context.home)
    home.prepare()
    config = _write_settings(home)
    added = add_example(home) if example else None
    steps = _example_steps(home.path) if example else _own_steps(home.path)
    context.show({"home": str(home.path), "config": config, "example": added, "next": steps})
    context.say(f"✓ {escape(str(home.path))} is ready; only you can read it.", fg="green")
    context.say(f"    config.toml  {_CONFIG[config]}")
    context.say("    actions/     what agents can ask for")
    if added is not None:
        context.say(f"    example      {added['connector']}")
        context.say(f"                 with {', '.join(added['actions'])}")
    context.say("")
    context.say("\n".join(_EXAMPLE if example else _OWN).format(*map(escape, steps)))
    return EXIT.DONE


def add_example(home: Home) -> dict[str, Any]:
    """Add the example connector and its actions to *home*, not accepted; return their names."""
    from aileron_core.connectors.store import ConnectorStore

    installed = ConnectorStore(home.path).install(examples() / "connectors" / "mail-drafts")
    named = "aileron init --example"
    return {
        "connector": f"{installed.identity.fqn}@{installed.identity.version}",
        "actions": add_files(home, (examples() / "actions").glob("*.md"), named),
    }


_CONFIG = {"made": "every setting with its default", "kept": "unchanged"}

_OWN = (
    "To try a first approval on this machine:",
    "    {0}",
    "To use your own service, install a connector and add its actions:",
    "    {1}",
    "    {2}",
    "Then open the console, and add the MCP server `aileron-mcp` to your agent:",
    "    {3}",
)

_EXAMPLE = (
    "Next, run these in three terminals: a mail service, the console and a call.",
    "    {0}",
    "    {1}",
    "    {2}",
    "The console lists what was just installed. Press t to accept the selected",
    "item: first the connector, then the actions. Then make the call.",
    "The console shows the draft that the mail service holds. Press a to send it,",
    "or d to deny the call.",
)


def _write_settings(home: Home) -> str:
    """Write `config.toml` unless there is one; return `made` or `kept`.

    Raises:
        FileProblems: those that are there cannot be used.
    """
    try:
        descriptor = os.open(
            home.config, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600
        )
    except FileExistsError:
        load_settings(home.config)
        return "kept"
    with os.fdopen(descriptor, "w", encoding="utf-8") as opened:
        opened.write(settings_text())
    return "made"


def _own_steps(home: Path) -> list[str]:
    return [
        _command(home, "init", "--example"),
        _command(home, "connector", "install") + " FOLDER",
        _command(home, "action", "add") + " PATH",
        _command(home, "console"),
    ]


def _example_steps(home: Path) -> list[str]:
    return [
        shlex.join([own_program(), "example"]),
        _command(home, "console", "--route", f"{EXAMPLE_HOST}=127.0.0.1:{EXAMPLE_PORT}"),
        _command(
            home,
            "action",
            "run",
            "send-draft",
            "--arg",
            f"draft_id={EXAMPLE_DRAFT}",
            "--wait",
            "600",
        ),
    ]


def _command(home: Path, *words: str) -> str:
    """Return a command for the person's shell, with `--home` where it is not the default."""
    default = DEFAULT_HOME.expanduser().absolute()
    named = () if home == default else ("--home", str(home))
    return shlex.join([own_program(), *words, *named])


def run_example(context: CommandContext, port: int) -> int:
    """Serve drafts on 127.0.0.1 until interrupted, and print each mail that is sent."""
    # The example imports its modules by the name of its folder.
    sys.path.insert(0, str(examples().parent))
    from examples.mailbox.server import Mailbox

    sent: SimpleQueue[dict[str, Any] | None] = SimpleQueue()
    # Blocked in every thread, so that the main one can sleep until one of them comes.
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)
    try:
        mailbox = Mailbox(port=port, on_sent=sent.put)
    except OSError as error:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        raise CliError(
            EXIT.FAILED,
            f"Port {port} of 127.0.0.1 cannot be used ({os.strerror(error.errno or 0)}). Choose another "
            "with --port, and use it in the console's --route too.",
        ) from error
    with mailbox:
        route = f"{EXAMPLE_HOST}=127.0.0.1:{mailbox.port}"
        context.show({"url": mailbox.url, "route": route})
        drafts = len(mailbox.state()["drafts"])
        context.say(f"An example mail service with {drafts} drafts is running at {mailbox.url}.")
        context.say(f"To connect the console, start it with --route {route}. Press Ctrl-C to stop.")
        # Not on the service's thread: a terminal that stands still must not stop the service.
        printing = threading.Thread(target=_print_all, args=(context, sent), daemon=True)
        printing.start()
        signal.sigwait(_ENDING)
        # A second one ends what does not end by itself.
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
    sent.put(None)
    printing.join(_LAST_SECONDS)
    return EXIT.DONE


def _print_all(context: CommandContext, sent: "SimpleQueue[dict[str, Any] | None]") -> None:
    while (mail := sent.get()) is not None:
        context.show({"sent": mail})
        context.say(escape(f"Sent: {mail['subject']}, to {mail['to']}"), fg="green")
