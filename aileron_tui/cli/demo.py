"""`aileron demo`: the console on a home of its own, with a mail service and three agents beside it.

Two processes: the console, and this one with the service and the agents, which knows nothing that an
agent could not know. Nothing is played back: every call goes through server, gate, preview and sandbox.
"""

import asyncio
import json
import logging
import shlex
import signal
import socket
import sys
import tempfile
import termios
from pathlib import Path
from typing import Any, TextIO

import click

from aileron_core import tasks
from aileron_core.home.layout import Home
from aileron_core.text import escape
from aileron_tui.cli.adding import add_files
from aileron_tui.cli.init import add_example
from aileron_tui.cli.output import EXIT, CliError, CommandContext, own_program
from aileron_tui.cli.scaffold import EXAMPLE_HOST, examples

_CONFIG = (
    "[mcp]\nhold_seconds = 0  # the agents hear at once that a call waits, and can take it back\n"
)
_TERMINAL_BACK = (
    "\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?1015l"  # mouse
    "\x1b[?1004l\x1b[?2004l\x1b[?2048l\x1b[<u"  # focus, paste and size reports, key protocol
    "\x1b[?1049l\x1b[?7h\x1b[?25h\x1b[0m"  # alternate screen, wrapping, cursor, colour
)
"""What a console that was killed could not take back of the terminal any more."""
_LOST = "The demo can't continue: an agent lost its session. Press q to quit."
_NEXT = (
    "",
    "Next, with your own agent:",
    "    {program} launch codex      (or claude, opencode, goose, pi, gemini)",
    "Or step by step, with the same mail service:",
    "    {program} init --example",
)


def run_demo(context: CommandContext) -> int:
    """Run the demo until its console is closed and return the console's exit code.

    Raises:
        CliError: there is no terminal, or JSON was asked for.
    """
    if context.json:
        raise CliError(EXIT.USAGE, "The demo runs in a terminal and has no JSON output.")
    if not sys.stdin.isatty() or not sys.stdout.isatty():
        raise CliError(EXIT.FAILED, "The demo is interactive. Run it in a terminal.")
    context.say("Starting the demo in a temporary home ...")
    # The examples import their modules by the name of their folder.
    sys.path.insert(0, str(examples().parent))
    with tempfile.TemporaryDirectory(prefix="aileron-demo-") as folder:
        home = Home(Path(folder) / "home")
        home.prepare()
        home.config.write_text(_CONFIG, encoding="utf-8")
        add_example(home)
        add_files(home, (examples() / "demo" / "actions").glob("*.md"), "aileron demo")
        settings = termios.tcgetattr(sys.stdin)
        code, report = asyncio.run(_run(home.path))
        if code < 0:
            termios.tcsetattr(sys.stdin, termios.TCSANOW, settings)
            click.echo(f"{_TERMINAL_BACK}\nThe console was killed by signal {-code}.")
            code = 128 - code
    program = shlex.quote(own_program())
    for line in (*report, *(each.format(program=program) for each in _NEXT)):
        context.say(escape(line))
    return code


async def _run(home: Path) -> tuple[int, list[str]]:
    """Run console, service and agents; return the console's exit code (minus a signal) and what came of it."""
    from examples.demo.scenes import drafts
    from examples.mailbox.server import Mailbox

    ours, theirs = socket.socketpair()
    # Nothing but the console writes to the terminal.
    logging.basicConfig(filename=home / "log" / "demo.log")
    with (
        (home / "log" / "relays.log").open("w", encoding="utf-8") as log,
        Mailbox(drafts=drafts()) as mailbox,
    ):
        with theirs:
            route = f"{EXAMPLE_HOST}=127.0.0.1:{mailbox.port}"
            console = await asyncio.create_subprocess_exec(
                *(sys.executable, "-I", "-m", "aileron_tui.cli.demo_console"),
                *(str(home), route, str(theirs.fileno())),
                pass_fds=[theirs.fileno()],
            )
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            asyncio.get_running_loop().add_signal_handler(number, console.terminate)
        told: list[str] = []
        leading = tasks.spawn(_lead(ours, mailbox, home, log, told), name="demo")
        code = await console.wait()
        leading.cancel()
        await asyncio.gather(leading, return_exceptions=True)
        sent = mailbox.state()["sent"]
    report = ["Answers that the agents got:", *(f"    {line}" for line in told or ["none"])]
    report += [
        f"The mail service sent {len(sent)} {'mail' if len(sent) == 1 else 'mails'}{':' if sent else '.'}"
    ]
    report += [f'    "{mail["subject"]}" to {mail["to"]}' for mail in sent]
    return code, report


async def _lead(
    channel: socket.socket, mailbox: Any, home: Path, log: TextIO, told: list[str]
) -> None:
    """Play the scenes over *channel* once the console has opened; what agents are answered goes to *told*."""
    reader, writer = await asyncio.open_connection(sock=channel)

    def say(**line: Any) -> None:
        writer.write(json.dumps(line).encode() + b"\n")

    try:
        await reader.readline()
        from examples.demo.tour import Tour

        pressed = asyncio.Event()
        tour = Tour(mailbox, say, pressed, told)
        async with asyncio.TaskGroup() as both:
            both.create_task(_pass_on(reader, pressed))
            both.create_task(tour.run(home, log))
    except Exception as error:  # noqa: BLE001 - the console stays usable, and says what happened
        logging.getLogger(__name__).error("the demo ended with %s", type(error).__name__)
        say(step="", sentence=_LOST)
        await asyncio.Event().wait()
    finally:
        writer.close()


async def _pass_on(reader: asyncio.StreamReader, pressed: asyncio.Event) -> None:
    while await reader.readline():
        pressed.set()
