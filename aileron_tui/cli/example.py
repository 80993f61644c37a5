"""`aileron example`: the example mail service, so that a first approval needs nothing else."""

import os
import signal
import sys
import threading
from typing import Any

from aileron_core.text import escape
from aileron_tui.cli.output import EXIT, CliError, CommandContext
from aileron_tui.cli.scaffold import EXAMPLE_HOST, examples

_POLL_SECONDS = 0.2


def run_example(context: CommandContext, port: int) -> int:
    """Serve drafts on 127.0.0.1 until interrupted, and print each mail that is sent."""
    # The example imports its modules by the name of its folder.
    sys.path.insert(0, str(examples().parent))
    from examples.mailbox.server import Mailbox

    stop = threading.Event()

    def end(_number: int, _frame: object) -> None:
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, end)
    try:
        mailbox = Mailbox(port=port)
    except OSError as error:
        raise CliError(
            EXIT.FAILED,
            f"Port {port} of 127.0.0.1 cannot be used ({os.strerror(error.errno or 0)}). Take another "
            "with --port, here and in the console's --route.",
        ) from error
    with mailbox:
        route = f"{EXAMPLE_HOST}=127.0.0.1:{mailbox.port}"
        if context.json:
            context.show({"url": mailbox.url, "route": route})
        else:
            drafts = len(mailbox.state()["drafts"])
            context.say(f"An example mail service with {drafts} drafts runs at {mailbox.url}.")
            context.say(f"Lead the console to it with --route {route}. Ctrl-C ends it.")
        seen = 0
        while not stop.wait(_POLL_SECONDS):
            sent = mailbox.state()["sent"]
            for each in sent[seen:]:
                _print(context, each)
            seen = len(sent)
    return EXIT.DONE


def _print(context: CommandContext, mail: dict[str, Any]) -> None:
    if context.json:
        context.show({"sent": mail})
    else:
        context.say(escape(f"sent: {mail['subject']} to {mail['to']}"), fg="green")
