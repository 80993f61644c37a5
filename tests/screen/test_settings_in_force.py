"""Keys, `arm_ms` and `notify.command` of a `config.toml` that nobody has verified: not in force, and said."""

import sys
from dataclasses import replace
from pathlib import Path

from aileron_core.console_port.events import LibraryUpdated, Snapshot, VaultStatus
from aileron_core.console_port.intents import Approve, Deny
from aileron_core.settings import NotifySettings
from aileron_tui.draw.bars import startup_warnings
from aileron_tui.draw.text import plain_text
from aileron_tui.pages.keymap import DEFAULT_REGISTRY, SettingsInForce, remap_keys
from aileron_tui.terminal.notifications import Notification
from tests.screen.driving import Console, console, resting
from tests.support.screens.states import short, start

SWAPPED = remap_keys((("approve", "d"), ("deny", "a")))
LOCKED = VaultStatus(state="locked", entries=1)
ACCEPTED = LibraryUpdated(not_accepted=(), problems=(), actions_ready=2)


def unverified(vault: VaultStatus = LOCKED) -> Snapshot:
    return start(short(1), short(2), vault=vault, settings_accepted=False)


async def verify_settings(shown: Console) -> None:
    """Have the settings verify, as after an unlock."""
    shown.port.tell(VaultStatus(state="unlocked", entries=1))
    shown.port.tell(ACCEPTED)
    await shown.shows("Now in force, from config.toml: keys")


def footer(shown: Console) -> str:
    return " ".join(shown.keys.split())


async def test_swapped_keys_are_not_in_force_before_the_settings_are_accepted() -> None:
    async with console(unverified(), (80, 24), registry=SWAPPED) as shown:
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
        async with console(unverified(), arm_seconds=own) as shown:
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
    async with console(unverified(), notify=notify) as shown:
        await shown.shows("▲ notify.command of config.toml: not in force")
        shown.app._notifier.deliver(Notification(1, ""))
        assert shown.app._notifier._running.acquire(blocking=False)  # nothing was begun
        shown.app._notifier._running.release()
        shown.port.tell(ACCEPTED)
        await shown.shows("Now in force, from config.toml: notify.command")
        shown.app._notifier.deliver(Notification(1, ""))
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
