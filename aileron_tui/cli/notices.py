"""Notices outside of a console: the `[notify]` command of `aileron serve`, and `aileron doctor --notify`."""

import logging
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TextIO

from aileron_core.actions.model import shown_name
from aileron_core.clock import SystemClock
from aileron_core.console_port.events import (
    ApprovalUpdated,
    CoreEvent,
    LibraryUpdated,
    PauseChanged,
)
from aileron_core.console_port.intents import ConsolePort
from aileron_core.console_port.view_models import WAITING_STATES
from aileron_core.errors import ConsoleUnavailable
from aileron_core.home.client import HomeClient
from aileron_core.home.layout import Home
from aileron_core.home.owner import read_daemon_file
from aileron_core.library.settings_comparison import settings_sha256
from aileron_core.settings import NotifySettings, Settings, load_settings
from aileron_core.text import escape
from aileron_tui.cli.output import EXIT, CommandContext
from aileron_tui.terminal.notifications import (
    Notification,
    NotificationScheduler,
    Notifier,
    fill_command,
    osc9,
    run_command,
    terminal_notifies,
)

_log = logging.getLogger(__name__)


class ServedNotices:
    """Runs the command of `[notify]` for calls that arrive where there is no console, on a thread of its own."""

    def __init__(self, port: ConsolePort, notify: NotifySettings) -> None:
        """Begin with the calls that come from now on.

        Raises:
            Unavailable: the core has ended.
        """
        self._clock = SystemClock()
        self._notifier = Notifier(
            notify, {}, bell=False, ring=lambda: None, write=lambda _: None,
            failed=lambda why: _log.warning("%s", why),
        )  # fmt: skip
        self._scheduler = NotificationScheduler(
            self._notifier.deliver,
            waiting=lambda: len(self._waiting),
            clock=self._clock,
            later=self._later,
        )
        self._due: tuple[float, Callable[[], None]] | None = None
        self._events: SimpleQueue[CoreEvent] = SimpleQueue()
        snapshot = port.subscribe(self._events.put)
        self._waiting = {
            each.approval_id for each in snapshot.approvals if each.state in WAITING_STATES
        }
        self._is_paused = snapshot.paused_at is not None
        self._notifier.review_url = f"{snapshot.url}/review"
        # As in a console: with a vault, only once the file is known to be the person's.
        self._notifier.runs_command = snapshot.settings_accepted
        threading.Thread(target=self._run, name="aileron-notices", daemon=True).start()

    def _later(self, seconds: float, do: Callable[[], None]) -> None:
        self._due = self._clock.monotonic() + seconds, do

    def _run(self) -> None:
        while True:
            due = self._due
            left = None if due is None else max(0.0, due[0] - self._clock.monotonic())
            try:
                self._take(self._events.get(timeout=left))
            except Empty:
                assert due is not None
                self._due = None
                due[1]()

    def _take(self, event: CoreEvent) -> None:
        if isinstance(event, LibraryUpdated):
            self._notifier.runs_command = event.settings_accepted
        elif isinstance(event, PauseChanged):
            self._is_paused = event.paused_at is not None
        elif isinstance(event, ApprovalUpdated):
            view = event.view
            if view.state not in WAITING_STATES:
                self._waiting.discard(view.approval_id)
            elif view.approval_id not in self._waiting:
                self._waiting.add(view.approval_id)
                if not self._is_paused:
                    self._scheduler.on_arrival(shown_name(view.action))


def send_notice(context: CommandContext) -> int:
    """Send a notice of one call in each way that is set, and print which were taken; 1 if one failed or none is set.

    Raises:
        FileProblems: `config.toml` cannot be used.
    """
    settings = load_settings(Home(context.home).config)
    notice = Notification(1, "")
    terminal = sys.stdout if sys.stdout.isatty() else None
    ways = {"bell": _ring(settings, terminal), "terminal": _show(settings, notice, terminal)}
    ways["command"] = _run(context, settings, notice)
    failed = any(said.startswith("failed") for said in ways.values())
    taken = any(said == "taken" for said in ways.values())
    context.show({"ok": taken and not failed, "notice": notice.text, "ways": ways})
    context.say(f"The notice says: {notice.text}")
    for way, said in ways.items():
        context.say(
            f"{'✓' if said == 'taken' else '✗' if said.startswith('failed') else '·'} {way}: {escape(said)}"
        )
    return EXIT.DONE if taken and not failed else EXIT.FAILED


def _ring(settings: Settings, terminal: TextIO | None) -> str:
    if not settings.console.bell:
        return "not taken: [console] bell is false"
    if terminal is None:
        return "not taken: this is no terminal"
    terminal.write("\a")
    return "taken"


def _show(settings: Settings, notice: Notification, terminal: TextIO | None) -> str:
    how = settings.notify.osc9
    if how == "never" or (how == "auto" and not terminal_notifies(os.environ)):
        never = "[notify] osc9 is never"
        return f"not taken: {never if how == 'never' else 'this terminal is not known to show notifications'}"
    if terminal is None:
        return "not taken: this is no terminal"
    terminal.write(osc9(notice.text, os.environ))
    return "taken"


def _run(context: CommandContext, settings: Settings, notice: Notification) -> str:
    if not settings.notify.command:
        return "not taken: [notify] command is not set"
    if not _is_accepted(context.home, settings):
        return "not taken: config.toml is not verified; unlock the vault in the console, and accept the file there"
    url = read_daemon_file(context.home).get("url")
    command = fill_command(settings.notify.command, notice, f"{url}/review" if url else "")
    why = run_command(command)
    return f"failed: {command[0]}: {why}" if why else "taken"


def _is_accepted(home: Path, settings: Settings) -> bool:
    """Return whether `config.toml` is known to be the person's; without a vault nothing says otherwise."""
    try:
        counts = HomeClient(home).request("GET", "/v1/projects")[1].get("settings")
    except ConsoleUnavailable:
        return not (home / "vault.json").exists()
    return counts is None or counts == settings_sha256(settings.text)
