"""Being told of an arrival: at most once in 3 s, in words of ours alone, and harmless whatever fails.

Keys, `arm_ms` and `notify.command` of a `config.toml` that nobody has verified are not in force, which is said.
"""

import itertools
import json
import os
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aileron_core.console_port import events
from aileron_core.console_port.intents import Approve, Deny
from aileron_core.settings import NotifySettings
from aileron_tui.draw.bars import startup_warnings
from aileron_tui.draw.text import plain_text
from aileron_tui.pages.keymap import DEFAULT_REGISTRY, SettingsInForce, remap_keys
from aileron_tui.terminal import notifications
from tests.screen.driving import Console, drive_console, resting
from tests.support.frozen_clock import FrozenClock
from tests.support.processes import eventually
from tests.support.screens.states import mail, short, snapshot_of

HOSTILE = "\x1b]52;c;ZWNobw==\x07 [red]pay[/] $(touch /tmp/x); `id` \u202e"
PATIENCE = 60.0

WRITES = """
import json, os, sys
path = sys.argv[1]
with open(path + ".part", "w") as file:
    json.dump(sys.argv[2:], file)
os.rename(path + ".part", path)
"""
SWAPPED = remap_keys((("approve", "d"), ("deny", "a")))
LOCKED = events.VaultStatus(state="locked", entries=1)
ACCEPTED = events.LibraryUpdated(not_accepted=(), problems=(), actions_ready=2)


class Told:
    """Collects what a notifier did; `failed` comes on its thread."""

    def __init__(self) -> None:
        self.rung, self.written, self.failures = 0, list[str](), list[str]()
        self.failed = threading.Event()

    def ring(self) -> None:
        self.rung += 1

    def fail(self, why: str) -> None:
        self.failures.append(why)
        self.failed.set()

    def notifier(self, settings: NotifySettings, *environment: dict[str, str], **more: Any):
        given: dict[str, Any] = {"bell": True, "ring": self.ring, "failed": self.fail, **more}
        return notifications.Notifier(
            settings, *(environment or [{}]), write=self.written.append, **given
        )


def started_since(before: set[threading.Thread]) -> list[threading.Thread]:
    """The threads of commands that began later: those of another test may still be ending."""
    now = set(threading.enumerate()) - before
    return [each for each in now if each.name == "aileron-notify"]


def appears(path: Path) -> list[str]:
    eventually(path.exists)
    return json.loads(path.read_text())


def test_a_command_gets_its_words_as_they_are_and_no_shell_sees_them(tmp_path: Path) -> None:
    out = tmp_path / "notified"
    command = (sys.executable, "-c", WRITES, str(out), "{count} wait: {action}", "$HOME; ls *")
    notified = Told()
    notified.notifier(NotifySettings(command=command)).deliver(
        notifications.Notification(3, "send-draft")
    )
    assert appears(out) == ["3 wait: send-draft", "$HOME; ls *"]
    assert notified.failures == []


@pytest.mark.parametrize(
    ("command", "seconds", "says"),
    [
        (("/no/such/program",), PATIENCE, "No such file or directory"),
        ((sys.executable, "-c", "raise SystemExit(3)"), PATIENCE, "exit code 3"),
        ((sys.executable, "-c", "import time; time.sleep(60)"), 0.2, "more than 0.2 s"),
        ((".",), PATIENCE, "Permission denied"),
    ],
)
def test_a_command_that_fails_is_said_once_and_harms_nothing(
    command: tuple[str, ...], seconds: float, says: str
) -> None:
    notified = Told()
    notifier = notified.notifier(NotifySettings(command=command), command_seconds=seconds)
    notifier.deliver(notifications.Notification(1, "send-draft"))
    assert notified.failed.wait(PATIENCE)
    assert says in notified.failures[0]
    assert notified.rung == 1
    notified.failed.clear()
    before = set(threading.enumerate())
    notifier.deliver(notifications.Notification(2, ""))
    for again in started_since(before):
        again.join(PATIENCE)
    assert not notified.failed.is_set()
    assert notified.rung == 2


def test_a_command_that_hangs_does_not_become_many(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    command = (sys.executable, "-c", "import sys; open(sys.argv[1]).read()", str(fifo))
    notified = Told()
    # It waits for this test alone: ended at its limit it would leave the pipe without a reader.
    notifier = notified.notifier(NotifySettings(command=command), command_seconds=2 * PATIENCE)
    before = set(threading.enumerate())
    for count in range(1, 6):
        notifier.deliver(notifications.Notification(count, ""))
    running = started_since(before)
    assert len(running) == 1
    assert notified.rung == 5
    with fifo.open("w"):
        pass
    running[0].join(PATIENCE)
    assert not running[0].is_alive()
    notifier.deliver(notifications.Notification(6, ""))
    with fifo.open("w"):
        pass


@pytest.mark.parametrize(
    ("environment", "takes"),
    [
        ({"TERM_PROGRAM": "iTerm.app"}, True),
        ({"TERM_PROGRAM": "WezTerm"}, True),
        ({"TERM": "xterm-kitty"}, True),
        ({"TERM": "foot-extra"}, True),
        ({"TERM_PROGRAM": "tmux", "TERM": "tmux-256color", "KITTY_WINDOW_ID": "1"}, True),
        ({"TERM": "xterm-256color"}, False),
        ({"TERM": "linux"}, False),
        ({"TERM_PROGRAM": "Apple_Terminal", "TERM": "xterm-256color"}, False),
        ({}, False),
    ],
)
def test_osc_9_goes_to_terminals_known_to_show_it(environment: dict[str, str], takes: bool) -> None:
    """Others print it, or beep, or take it for something else; the setting overrides."""
    assert notifications.terminal_notifies(environment) is takes
    for setting, shows in (("auto", takes), ("always", True), ("never", False)):
        notified, two = Told(), notifications.Notification(2, "")
        notified.notifier(NotifySettings(osc9=setting), environment).deliver(two)  # type: ignore[arg-type]
        assert bool(notified.written) is shows


def test_osc_9_itself_lets_no_control_through() -> None:
    """Whatever it is given: a sequence that ends early would let the rest be obeyed."""
    assert notifications.osc9("a\x07\x1b]0;b\x9c\u202e\n", {}) == "\x1b]9;a]0;b\x07"
    assert notifications.osc9("a", {"STY": "1.pts"}) == "\x1bP\x1b]9;a\x07\x1b\\"


@given(st.text(), st.integers(1, 20_000))
def test_nothing_but_a_count_and_a_plain_name_is_ever_announced(name: str, count: int) -> None:
    notices = notifications.NotificationPolicy()
    notices.on_arrival(name)
    notice = notices.take(count, 10.0)
    assert notice is not None
    plain = bool(name) and name.isascii() and name[0].isalnum() and name == notice.action
    assert notice.action == (name if plain else "")
    text = notifications.osc9(notice.text, {})
    assert text.isascii()
    assert text[4:-1].isprintable()
    assert notifications.fill_command(["x", "{count}", "{action}"], notice) == [
        "x",
        str(count),
        notice.action,
    ]


@given(st.lists(st.tuples(st.floats(0, 5), st.sampled_from(["a", "b"])), max_size=40))
def test_at_most_one_in_three_seconds_and_none_is_left_out(
    arrivals: list[tuple[float, str]],
) -> None:
    clock, notified, later = FrozenClock(), list[float](), list[tuple[float, Callable[[], None]]]()
    attention = notifications.NotificationScheduler(
        lambda _: notified.append(clock.monotonic()),
        waiting=lambda: 1,
        clock=clock,
        later=lambda seconds, then: later.append((clock.monotonic() + seconds, then)),
    )

    def pass_time(seconds: float) -> None:
        until = clock.monotonic() + seconds
        while later and later[0][0] <= until:
            due, then = later.pop(0)
            clock.advance(max(0.0, due - clock.monotonic()))
            then()
        clock.advance(max(0.0, until - clock.monotonic()))

    for gap, name in arrivals:
        pass_time(gap)
        last = clock.monotonic()
        attention.on_arrival(name)
        pass_time(0)
        assert len(later) <= 1
        assert notified
        assert notified[-1] == last or later
    pass_time(notifications.QUIET_SECONDS + 0.01)
    assert not later
    # The frozen clock adds in floating point.
    assert all(b - a >= notifications.QUIET_SECONDS - 1e-6 for a, b in itertools.pairwise(notified))


def test_what_was_answered_in_the_quiet_time_is_not_announced() -> None:
    """Nothing waits any more: nothing is rung. Of several actions one name would be half the truth."""
    notices = notifications.NotificationPolicy()
    notices.on_arrival("send-draft")
    assert notices.take(1, 0.0) == notifications.Notification(1, "send-draft")
    notices.on_arrival("send-draft")
    assert notices.due_in(1.0) == pytest.approx(2.0)
    assert notices.take(0, 3.0) is None
    assert notices.due_in(3.0) is None
    for name in ("send-draft", "merge"):
        notices.on_arrival(name)
    assert notices.take(2, 9.0) == notifications.Notification(2, "")


def test_the_bell_can_be_turned_off() -> None:
    notified = Told()
    notified.notifier(NotifySettings(osc9="always"), bell=False).deliver(
        notifications.Notification(1, "")
    )
    assert (notified.rung, len(notified.written)) == (0, 1)


async def test_arrivals_ring_and_run_once_and_tell_nothing_from_outside(tmp_path: Path) -> None:
    """Through the whole console: hostile texts in every field of what arrives."""
    out = tmp_path / "notified"
    command = (sys.executable, "-c", WRITES, str(out), "{count}", "{action}")
    view = mail(2, agent=HOSTILE, session_label=HOSTILE, cwd=HOSTILE, title=HOSTILE)
    hostile = replace(view, preview=replace(view.preview, gist=HOSTILE))
    async with resting(snapshot_of(short(1)), notify=NotifySettings(command=command)) as shown:
        # A person who paused does not want to be called; the count in the title grows all the same.
        shown.port.tell(
            events.PauseChanged(paused_at=shown.clock.now()), events.ApprovalUpdated(view=short(2))
        )
        await shown.until(lambda: shown.app._title_shown == "(2) aileron", "title")
        assert shown.app._attention._notices._told_at == float("-inf")
        shown.port.tell(events.PauseChanged(paused_at=None))
        shown.port.tell(
            *(
                events.ApprovalUpdated(view=replace(hostile, approval_id=f"act-{n}"))
                for n in range(5)
            )
        )
        await shown.until(lambda: shown.model.queue.waiting == 7, "arrivals")
        assert appears(out) == ["3", "send-draft"]


def unverified(vault: events.VaultStatus = LOCKED) -> events.Snapshot:
    return snapshot_of(short(1), short(2), vault=vault, settings_accepted=False)


async def verify_settings(shown: Console) -> None:
    shown.port.tell(events.VaultStatus(state="unlocked", entries=1))
    shown.port.tell(ACCEPTED)
    await shown.shows("Now in force, from config.toml: keys")


def footer(shown: Console) -> str:
    return " ".join(shown.keys.split())


async def test_swapped_keys_are_not_in_force_before_the_settings_are_accepted() -> None:
    async with drive_console(unverified(), (80, 24), registry=SWAPPED) as shown:
        await shown.shows("▲ keys of config.toml: not in force until you unlock the vault")
        assert "a approve" in footer(shown)
        await shown.press("?")
        await shown.shows("esc")
        await verify_settings(shown)
        assert "not in force" not in shown.text
        await shown.rest()
        assert "d approve" in footer(shown)
        assert "a deny" in footer(shown)


async def test_a_key_pressed_while_the_keys_change_decides_nothing() -> None:
    """It meant something else when the finger went down."""
    async with resting(unverified(), (120, 50), registry=SWAPPED) as shown:
        await verify_settings(shown)
        await shown.press("d")
        assert "d did nothing" in shown.status_line or "Too soon" in shown.status_line
        assert not shown.asked(Approve, Deny)
        await shown.press_rested("d")
        await shown.until(lambda: bool(shown.asked(Approve, Deny)))
        assert isinstance(shown.asked(Approve, Deny)[0], Approve)


async def test_a_shorter_rest_is_not_in_force_before() -> None:
    """A longer one is: it takes nothing from anybody."""
    for own, used in ((0.25, 0.4), (1.0, 1.0)):
        async with drive_console(unverified(), arm_seconds=own) as shown:
            model = shown.model
            assert model.arming.rest_seconds == used
            assert ("arm_ms of config.toml" in shown.text) == (own < used)
            shown.port.tell(ACCEPTED)
            await shown.until(lambda own=own, model=model: model.arming.rest_seconds == own)


async def test_no_command_is_run_before(tmp_path: Path) -> None:
    """It is a program that whoever wrote the file has chosen."""
    ran = tmp_path / "ran"
    command = (sys.executable, "-c", f"open({str(ran)!r}, 'w')")
    notify = NotifySettings(osc9="never", command=command)
    async with drive_console(unverified(), notify=notify) as shown:
        await shown.shows("▲ notify.command of config.toml: not in force")
        shown.app._notifier.deliver(notifications.Notification(1, ""))
        assert shown.app._notifier._running.acquire(blocking=False)  # nothing was begun
        shown.app._notifier._running.release()
        shown.port.tell(ACCEPTED)
        await shown.shows("Now in force, from config.toml: notify.command")
        shown.app._notifier.deliver(notifications.Notification(1, ""))
        await shown.until(ran.exists)


def test_with_an_unlocked_vault_the_sentence_names_the_file_to_accept() -> None:
    vault = replace(LOCKED, state="unlocked")
    said = startup_warnings(unverified(vault), vault=vault, withheld=("keys",))
    until = "▲ keys of config.toml: not in force until you accept config.toml"
    assert any(plain_text(each).startswith(until) for each in said)
    in_force = SettingsInForce(DEFAULT_REGISTRY, 0.4)
    for accepted in (False, True):
        assert not in_force.follow(accepted=accepted)
        assert in_force.withheld == (), "a file that changes none of these is not mentioned"
