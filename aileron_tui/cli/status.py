"""`aileron status` and `aileron open approval`."""

import os
import sqlite3
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import Any, Final

from aileron_core.actions.model import shown_name
from aileron_core.audit.events import OUTCOME_CLOSED
from aileron_core.clock import rfc3339
from aileron_core.errors import AileronError, ConsoleUnavailable, InvalidRequest
from aileron_core.home.client import HomeClient
from aileron_core.home.layout import Home
from aileron_core.ids import APPROVAL_ID, RUN_ID
from aileron_core.storage.open import open_reader
from aileron_core.text import escape
from aileron_tui import words
from aileron_tui.cli.output import EXIT, UNATTENDED, CommandContext, did_you_mean, local_time
from aileron_tui.terminal.browser import browser_command, run_browser

_LISTED: Final = 50
_OPEN_CALLS: Final = (
    "SELECT approval_id, action, agent, requested_at, runs.expires_at, state FROM runs "
    "JOIN sessions USING (session_id) "
    "WHERE approval_id IS NOT NULL AND state IN ('pending', 'checking', 'awaiting_vault') "
    "ORDER BY runs.expires_at IS NULL, runs.expires_at LIMIT ?"
)
"""The calls that wait for a person."""
_CLOSED_MARKS: Final = ", ".join("?" * len(OUTCOME_CLOSED))
_UNKNOWN_OUTCOMES: Final = (
    "SELECT approval_id, run_id, action, agent, runs.ended_at FROM runs "  # noqa: S608 - marks
    "JOIN sessions USING (session_id) WHERE state = 'unknown' AND NOT EXISTS (SELECT 1 FROM audit "
    f"WHERE audit.run = runs.run_id AND audit.event IN ({_CLOSED_MARKS})) "
    "ORDER BY runs.ended_at LIMIT ?"
)
"""The calls of which nobody knows how they ended, and that no person has acknowledged or settled."""


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
            "devices": [],
            "account_needs": [],
            "vault": None,
            "unattended": False,
            "link_key": None,
            "waiting": [],
            "unknown": [],
        }
        context.show(absent)
        return EXIT.NO_CONSOLE
    waiting, unknown = _waiting(context), _unknown(context)
    context.show({**status, "waiting": waiting, "unknown": unknown})
    context.say(f"Aileron {status['version']} is running at {status['url']} (pid {status['pid']}).")
    if status["unattended"]:
        context.say(UNATTENDED, fg="yellow")
    context.say(f"{_count(status['pending'])} {_sessions(status['sessions'])}")
    for each in status["devices"]:
        state = "confirmed" if each["confirmed"] else "not confirmed"
        kind = words.devices.KINDS[each["kind"]]
        program = f", {each['program']}" if each["program"] else ""
        context.say(
            escape(f"Paired: {kind} {words.devices.named(each['words'])}, {state}{program}")
        )
    if unknown:
        context.say(_unknown_count(len(unknown)))
    for each in unknown:
        ended = local_time(each["ended_at"])
        about = f"{shown_name(each['action'])}, requested by {each['agent']}, ended at {ended}"
        context.say(f"  {each['approval_id'] or each['run_id']}  {escape(about)}")
    if unknown and waiting:
        context.say("Waiting:")
    for each in waiting:
        ends = each["expires_at"]
        until = f", expires {local_time(ends)}" if ends else ""
        requested = local_time(each["requested_at"])
        about = f"{shown_name(each['action'])}, requested by {each['agent']} at {requested}"
        held = ", waits for the vault or an account" if each["state"] == "awaiting_vault" else ""
        context.say(f"  {each['approval_id']}  {escape(about)}{until}{held}")
    if (more := status["pending"] - len(waiting)) > 0:
        context.say(f"  and {more} more")
    for line in _account_lines(status["account_needs"]):
        context.say(line, fg="yellow")
    return EXIT.DONE


def _account_lines(needs: Sequence[Mapping[str, str]]) -> list[str]:
    """Return what the calls that wait for an account need from a person, each sentence once."""
    counts = Counter(
        (each["reason"], each["connector"], each["problem"], each["command"]) for each in needs
    )
    locked = sum(count for (reason, *_), count in counts.items() if reason == "locked")
    lines = [f"{_of_them(locked)} for the vault: `aileron vault unlock`."] if locked else []
    settings = sum(count for (reason, *_), count in counts.items() if reason == "settings")
    if settings:
        lines.append(f"{_of_them(settings)} until you accept config.toml, in the console.")
    for (reason, connector, problem, command), count in counts.items():
        name = escape(connector)
        if reason == "unbound":
            next_step = f"`{escape(command)}`"
            if problem:
                next_step = f"{escape(problem)}. {next_step}"
            lines.append(f"{_of_them(count)} for an account: {next_step}.")
        elif reason == "choice":
            lines.append(f"{_of_them(count)} until you pick an account for {name}, in the console.")
    return lines


def _of_them(count: int) -> str:
    return f"{count} of them {'waits' if count == 1 else 'wait'}"


def _waiting(context: CommandContext) -> list[dict[str, Any]]:
    """Return what waits for a person, the one that ends first in front, from the home's database."""
    return [
        {
            "approval_id": approval,
            "action": str(action),
            "agent": str(agent),
            "requested_at": rfc3339(requested),
            "expires_at": None if expires is None else rfc3339(expires),
            "state": str(state),
        }
        for approval, action, agent, requested, expires, state in _rows(context, _OPEN_CALLS)
        if APPROVAL_ID.fullmatch(str(approval))
    ]


def _unknown(context: CommandContext) -> list[dict[str, Any]]:
    """Return the calls of unknown outcome that wait to be acknowledged, oldest first.

    `approval_id` is None where the action is not gated.
    """
    return [
        {
            "approval_id": approval,
            "run_id": run,
            "action": str(action),
            "agent": str(agent),
            "ended_at": rfc3339(ended),
        }
        for approval, run, action, agent, ended in _rows(
            context, _UNKNOWN_OUTCOMES, *OUTCOME_CLOSED
        )
        if RUN_ID.fullmatch(str(run)) and (approval is None or APPROVAL_ID.fullmatch(str(approval)))
    ]


def _rows(context: CommandContext, query: str, *values: str) -> list[Any]:
    try:
        with closing(open_reader(Home(context.home).database)) as connection:
            return connection.execute(query, (*values, _LISTED)).fetchall()
    except (AileronError, sqlite3.Error):
        return []  # the count is the console's own, and said anyway


def _count(count: int) -> str:
    if not count:
        return "No calls are waiting."
    return f"{count} {'call is' if count == 1 else 'calls are'} waiting for you."


def _unknown_count(count: int) -> str:
    noun = "1 call" if count == 1 else f"{count} calls"
    it = "it" if count == 1 else "them"
    return f"{noun} ended with an unknown outcome. Check {it} in the console:"


def _sessions(count: int) -> str:
    return "1 session is open." if count == 1 else f"{count or 'No'} sessions are open."


def open_review(context: CommandContext, approval_id: str) -> int:
    """Open the review page of an approval in the browser, where there is a graphical one.

    The address is the running console's own, checked; only the id comes from outside, and it has
    to be one.
    """
    if not APPROVAL_ID.fullmatch(approval_id):
        known = (each["approval_id"] for each in _waiting(context))
        meant = did_you_mean(approval_id, known, likeness=0.9)
        raise InvalidRequest(
            f"{approval_id} is not an approval id. One looks like act-20260102T030405-0123456789abcdef."
            f"{meant}"
        )
    _, status = HomeClient(context.home).request("GET", "/v1/status")
    url = f"{status['url']}/review/{approval_id}"
    program = browser_command(os.environ)
    opened = program is not None and run_browser(program, url)
    context.show({"url": url, "opened": opened})
    context.say(f"Opened {url}." if opened else "There is no graphical browser here.")
    context.say(
        f"To decide it in a browser, press {escape(status['link_key'])} on the call in the console: "
        "that makes a link that pairs one, as text and as a QR code."
    )
    return EXIT.DONE
