"""A console without a screen: the real core and server, a person on stdin, a failpoint that kills.

Each line of stdin is one intent, each line of stdout an event. `--failpoint NAME` stops the process
with SIGKILL the moment that the gate passes NAME ("before <event>" or "after <event>"), the second
time for "NAME#2".
`--restart-grace` shortens the 30 seconds that a session has to come back, which are the default, and
`--hold-grace` the 5 that it has after its hold was lost.
"""

import argparse
import itertools
import json
import os
import signal
import sys
from pathlib import Path

from aileron_core.console_port.events import ApprovalUpdated, IntentRefused, SessionsUpdated
from aileron_core.console_port.intents import AllowHost, Approve, Deny, Intent
from aileron_core.console_port.view_models import NO_HOSTS, ApprovalView, SessionView
from aileron_core.home.layout import Home
from aileron_core.sessions import registry
from aileron_core.settings import LogSettings
from aileron_tui.cli.logfile import log_to
from aileron_tui.cli.runtime import core_thread


def say(value: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


SHOWN = (
    *("approval_id", "action", "state", "digest", "note", "outcome"),
    *("requester_gone", "containment", "times_asked"),
)


def show(view: ApprovalView) -> None:
    shown: dict[str, object] = {name: getattr(view, name) for name in SHOWN}
    steps = {step.step_id: step.status for step in view.steps}
    say({**shown, "preview": view.preview.status, "steps": steps})


def show_hosts(session: SessionView) -> None:
    """Say which hosts a session was refused or allowed, if there are any."""
    if session.hosts != NO_HOSTS:
        refused = {each.host: each.problem for each in session.hosts.refused}
        say({"session": session.session_id, "refused": refused, "allowed": session.hosts.allowed})


def on_event(event: object) -> None:
    if isinstance(event, ApprovalUpdated):
        show(event.view)
    elif isinstance(event, SessionsUpdated):
        for session in event.sessions:
            show_hosts(session)
    elif isinstance(event, IntentRefused):
        say({"refused": event.call_id, "message": event.message})


def intent_of(line: str) -> Intent:
    request = json.loads(line)
    if "approve" in request:
        return Approve(approval_id=request["approve"], digest=request["digest"])
    if "allow_host" in request:
        return AllowHost(session_id=request["session"], host=request["allow_host"])
    return Deny(approval_id=request["deny"], reason=request["reason"])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--route", action="append", default=[])
    parser.add_argument("--accept-installed", action="store_true")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--failpoint")
    parser.add_argument("--hold-grace", type=float, default=registry.HOLD_GRACE_SECONDS)
    parser.add_argument("--restart-grace", type=float, default=registry.RESTART_GRACE_SECONDS)
    options = parser.parse_args()

    failpoint, _, times = (options.failpoint or "").partition("#")
    passes = itertools.count(1)

    def fail(name: str) -> None:
        if name == failpoint and next(passes) == int(times or 1):
            os.kill(os.getpid(), signal.SIGKILL)

    registry.HOLD_GRACE_SECONDS = options.hold_grace  # type: ignore[misc]
    registry.RESTART_GRACE_SECONDS = options.restart_grace  # type: ignore[misc]
    home = Home(options.home)
    home.prepare()
    log_to(home, LogSettings())
    accept = options.accept_installed
    core = core_thread(home, options.route, accept_installed=accept, failpoint=fail)
    app = core.start()
    say({"url": app.address.url})
    snapshot = core.subscribe(on_event)
    for view in snapshot.approvals:
        show(view)
    for session in snapshot.sessions:
        show_hosts(session)
    for line in sys.stdin:
        core.submit(intent_of(line))
    core.stop()


main()
