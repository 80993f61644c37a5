"""`aileron status` and `aileron open approval`."""

import webbrowser
from typing import Any

from aileron_core.errors import ConsoleUnavailable, InvalidRequest
from aileron_core.home.client import HomeClient
from aileron_core.ids import APPROVAL_ID
from aileron_tui.cli.output import EXIT, CommandContext


def show_status(context: CommandContext) -> int:
    """Print what the console is and what waits in it; return 69 if there is none."""
    try:
        _, status = HomeClient(context.home).request("GET", "/v1/status")
    except ConsoleUnavailable:
        if not context.json:
            raise
        absent: dict[str, Any] = {
            "running": False,
            "url": None,
            "pid": None,
            "version": None,
            "pending": 0,
            "sessions": 0,
        }
        context.show(absent)
        return EXIT.NO_CONSOLE
    if context.json:
        context.show(status)
        return EXIT.DONE
    context.say(f"Aileron {status['version']} runs at {status['url']} (pid {status['pid']}).")
    context.say(f"{_waiting(status['pending'])} {_sessions(status['sessions'])}")
    return EXIT.DONE


def _waiting(count: int) -> str:
    if not count:
        return "Nothing waits."
    return f"{count} {'call waits' if count == 1 else 'calls wait'} for an answer."


def _sessions(count: int) -> str:
    return f"{count} {'session is' if count == 1 else 'sessions are'} open."


def open_review(context: CommandContext, approval_id: str) -> int:
    """Open the review page of an approval in the browser.

    The address is the running console's own, checked; only the id comes from outside, and it has
    to be one.
    """
    if not APPROVAL_ID.fullmatch(approval_id):
        raise InvalidRequest(
            "That is no approval id; they look like act-20260102T030405-0123456789abcdef."
        )
    _, status = HomeClient(context.home).request("GET", "/v1/status")
    url = f"{status['url']}/review/{approval_id}"
    opened = webbrowser.open(url)
    if context.json:
        context.show({"url": url, "opened": opened})
    else:
        context.say(f"Opened {url}." if opened else f"No browser here. The page is {url}.")
    return EXIT.DONE
