"""`python -I -m aileron_tui.cli.demo_console HOME ROUTE DESCRIPTOR`: the console that `aileron demo` leads through.

The demo is the process at the other end of the socket *DESCRIPTOR*. It sends lines of JSON, each
one what to show (`GuideLine`), and reads a line for each press of the key for the next scene; the
first says that the console is open. It decides nothing.
"""

import contextlib
import json
import socket
import sys
import threading
from collections.abc import Callable
from pathlib import Path

from aileron_core.errors import AileronError
from aileron_tui.cli.output import CommandContext, report_error
from aileron_tui.cli.process import close_memory, drop_key_variables
from aileron_tui.draw.guide import GuideLine

_GONE = GuideLine(
    step="", sentence="The demo has ended. Its agents and its mail service have stopped."
)


class DemoChannel:
    """The console's end of the demo's socket."""

    def __init__(self, demo: socket.socket) -> None:
        self._demo = demo

    def begin(self, show: Callable[[GuideLine], object]) -> None:
        """Call *show*, on a thread of its own, with each line that the demo sends from now on."""
        threading.Thread(target=self._read, args=(show,), name="aileron-demo", daemon=True).start()
        self.go_on()

    def _read(self, show: Callable[[GuideLine], object]) -> None:
        with self._demo.makefile("r", encoding="utf-8") as lines:
            for line in lines:
                show(GuideLine(**json.loads(line)))
        show(_GONE)

    def go_on(self) -> None:
        """Ask the demo for the next scene."""
        with contextlib.suppress(OSError):  # it has ended; the reading thread says so
            self._demo.sendall(b"\n")


def main() -> int:
    """Run the console until it is closed and return its exit code."""
    from aileron_tui.cli.runtime import run_console

    home, route, descriptor = sys.argv[1:]
    context = CommandContext(home=Path(home), json=False, color=False)
    close_memory()
    drop_key_variables()
    with socket.socket(fileno=int(descriptor)) as demo:
        try:
            return run_console(context, [route], accept_installed=True, guide=DemoChannel(demo))
        except AileronError as error:
            return report_error(context, error)


if __name__ == "__main__":
    sys.exit(main())
