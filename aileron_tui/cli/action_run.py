"""`aileron action run`: a call through the gate, with the exit code saying how it ended; `--arg`, `--wait`."""

import json
import os
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from aileron_core.canonical import Json
from aileron_core.errors import AileronError, ConsoleErrorResponse, NotFound
from aileron_core.home.client import HomeClient
from aileron_core.text import escape
from aileron_tui.cli.arguments import json_argument
from aileron_tui.cli.output import EXIT, CliError, CommandContext, did_you_mean, safe_json

_POLL_SECONDS = 30.0


def run_action(
    context: CommandContext, name: str, pairs: Sequence[str], whole: str | None, wait: float
) -> int:
    """Run the action *name* in a session of its own; wait for a person if asked to."""
    console = HomeClient(context.home)
    opened = console.request(
        "POST",
        "/v1/sessions",
        {
            "agent": "command line",
            "label": f"action run {name}"[:128],
            "cwd": str(Path.cwd()),
            "pid": os.getpid(),
        },
    )[1]
    session, token = opened["session_id"], opened["token"]
    try:
        args = _arguments(console, token, name, pairs, whole)
        status, body = console.request(
            "POST", f"/v1/actions/{_segment(name)}/run", {"args": args}, token=token
        )
        if status == 202:
            _say_wait(context, name, body, wait)
            body = _wait(console, token, body, wait)
        return _report(context, body)
    except ConsoleErrorResponse as refused:
        if refused.failure.class_ != NotFound.class_:
            raise
        _, there = console.request("GET", "/v1/actions", token=token)
        meant = did_you_mean(name, (each["name"] for each in there["items"]))
        message = f"{refused.failure.message}{meant}"
        raise ConsoleErrorResponse(replace(refused.failure, message=message)) from refused
    finally:
        # How the run ended is what counts; a session that cannot be ended now ends by its time.
        with suppress(AileronError):
            console.request("POST", f"/v1/sessions/{session}/end")


def _say_wait(context: CommandContext, name: str, pending: dict[str, Any], wait: float) -> None:
    """Say on stderr, before a wait, what is waited for and where it is answered."""
    if not wait or context.json:
        return
    where = pending["review_url"].partition("/review/")[0]
    notice = (
        f"aileron: {name} ({pending['approval_id']}) is waiting for {pending['waits_for']} in the console of "
        f"{context.home} ({where}). Waiting up to {wait:g} s; after Ctrl-C it keeps waiting."
    )
    click.echo(escape(notice), err=True)


def _segment(name: str) -> str:
    from urllib.parse import quote

    return quote(name, safe="")


def _arguments(
    console: HomeClient, token: str, name: str, pairs: Sequence[str], whole: str | None
) -> Mapping[str, Json]:
    if whole is not None:
        if pairs:
            raise CliError(EXIT.USAGE, "Give --args or --arg, not both.")
        return json_argument(whole)
    if not pairs:
        return {}
    _, action = console.request("GET", f"/v1/actions/{_segment(name)}", token=token)
    types = action["input_schema"].get("properties", {})
    return dict(_pair(text, types) for text in pairs)


def _pair(text: str, types: Mapping[str, Any]) -> tuple[str, Json]:
    """Read `k=v` by the input's declared type; what does not fit goes as text, for the gate to refuse."""
    key, separator, value = text.partition("=")
    if not separator:
        raise CliError(EXIT.USAGE, f"--arg {text} is not of the form KEY=VALUE.")
    if types.get(key, {}).get("type") == "string":
        return key, value
    try:
        return key, json.loads(value)
    except ValueError:
        return key, value


def _wait(console: HomeClient, token: str, pending: dict[str, Any], wait: float) -> dict[str, Any]:
    deadline = time.monotonic() + wait
    body = pending
    while body["status"] == "pending_approval" and (left := deadline - time.monotonic()) > 0:
        seconds = max(1, int(min(left + 1, _POLL_SECONDS)))
        path = f"/v1/action-approvals/{pending['approval_id']}/result?wait={seconds}"
        _, body = console.request("GET", path, token=token)
    waits = {"waits_for": body["waits_for"]} if body["status"] == "pending_approval" else {}
    return {**pending, **waits} if waits else body


_CODES = {
    "completed": EXIT.DONE,
    "pending_approval": EXIT.PENDING,
    "denied": EXIT.DENIED,
    "expired": EXIT.DENIED,
    "withdrawn": EXIT.DENIED,
}


def _heading(status: str) -> str:
    return "Unknown outcome" if status == "unknown" else status.capitalize()


def _report(context: CommandContext, body: dict[str, Any]) -> int:
    status = body["status"]
    code = _CODES.get(status, EXIT.FAILED)
    context.show(body)
    if status == "completed":
        context.say(safe_json(body["output"], indent=2))
    elif status == "pending_approval":
        context.say(f"{body['approval_id']} is waiting for {body['waits_for']} in the console.")
        context.say(f"To see how it ends, run `aileron audit show {body['audit_id']}`.")
    elif status == "denied":
        reason = body.get("reason")
        context.say(f"Denied: {escape(reason)}" if reason else "Denied, without a reason.")
    elif body.get("failure"):
        context.say(f"{_heading(status)}: {escape(body['failure']['message'])}")
    else:
        context.say(f"{_heading(status)}.")
    if finished := body.get("completed_steps"):
        context.say(f"Steps completed: {escape(', '.join(finished))}.")
    # Standard output is what was returned, for a program.
    if not context.json and (words := body.get("digest_words")):
        click.echo(f"aileron: {escape(' · '.join(words))}, as in the console", err=True)
    return code
