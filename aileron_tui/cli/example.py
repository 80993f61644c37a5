"""`aileron example`: the example mail service, so that a first approval needs nothing else."""

import os
import signal
import sys
import threading
from queue import SimpleQueue
from typing import Any

from aileron_core.text import escape
from aileron_tui.cli.output import EXIT, CliError, CommandContext
from aileron_tui.cli.scaffold import EXAMPLE_HOST, examples

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_LAST_SECONDS = 1.0
"""How long the last mails have to be printed when the service ends."""


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
