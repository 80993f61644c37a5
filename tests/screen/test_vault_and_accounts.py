"""The vault and the accounts of calls: what waits for them says so, a key unlocks, a person picks."""

import gc
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from textual import events

from aileron_core.console_port.events import (
    ApprovalUpdated,
    VaultRefused,
    VaultStatus,
    VaultUnlocked,
)
from aileron_core.console_port.intents import (
    ChooseAccount,
    CreateVault,
    LockVault,
    TouchVault,
    UnlockVault,
    UnlockVaultWithKeyring,
)
from aileron_core.console_port.view_models import AccountView
from tests.screen.driving import NOW, Console, console, resting, short, start
from tests.support.screens.states import FQN, HOME, WORK, held, need

PASSPHRASE = "a canary"
_UNLOCKS = (UnlockVault, UnlockVaultWithKeyring)
LOCKED = VaultStatus(state="locked", entries=2)
UNLOCKED = VaultStatus(state="unlocked", entries=2)
SMALL = (80, 24)


@asynccontextmanager
async def asking(**vault: Any):
    """A console that asks for the passphrase, for one call."""
    state = start(held(need("locked", WORK)), vault=replace(LOCKED, **vault))
    async with console(state) as shown:
        await ask_passphrase(shown)
        yield shown


async def ask_passphrase(shown: Console) -> None:
    """Press the key that asks for the passphrase, at rest."""
    await shown.press_rested("U", "assphrase")
    shown.clock.advance(0.5)


async def give_passphrase(shown: Console, passphrase: str = PASSPHRASE) -> None:
    await shown.type(passphrase)
    await shown.press_alone("enter")


def given(shown: Console, kind: type) -> list[bytes]:
    """Return the passphrases that the core was given by intents of *kind*."""
    return [each.passphrase.reveal() for each in shown.asked(kind)]


# Unlocking


async def test_the_passphrase_is_asked_for_after_a_key_alone_and_never_shown() -> None:
    """The panel names what waits; a dot stands for each character; the core gets it once."""
    views = (held(need("locked", WORK)), held(need("locked", HOME), 2, gated=False))
    async with resting(start(*views, vault=LOCKED), SMALL) as shown:
        assert "Passphrase" not in shown.text
        await ask_passphrase(shown)
        await shown.shows("2 calls are waiting for it. 1 runs at once then, without asking.")
        assert "┃ ana@example.com (api_key/mail/work)" in shown.text
        assert "┃ ana@home.example (api_key/mail/home)" in shown.text
        await shown.type(PASSPHRASE)
        await shown.shows("•" * len(PASSPHRASE))
        assert PASSPHRASE not in shown.text
        assert not given(shown, UnlockVault)
        await shown.press_alone("enter")
        assert given(shown, UnlockVault) == [PASSPHRASE.encode()]
        await shown.shows("Checking …")
        assert "•" not in shown.text
        shown.port.tell(UNLOCKED, VaultUnlocked(failed_attempts=0, failed_since=None))
        await shown.shows("✓ The vault is unlocked.")
        assert "Passphrase" not in shown.text


async def test_the_panel_drops_what_comes_with_its_key_and_enter_counts_at_rest_and_alone() -> None:
    """A pasted line that holds the key does not end up in the field, nor is it sent."""
    async with resting(start(held(need("locked", WORK)), vault=LOCKED)) as shown:
        await shown.press("U", *"pasted", "enter")
        await shown.shows("Passphrase of the vault")
        shown.app.post_message(events.Paste("pasted as well"))
        await shown.settled()
        assert "•" not in shown.text
        assert not given(shown, UnlockVault)
        shown.clock.advance(0.1)
        await shown.press_alone("escape")
        await shown.press_rested("U", "Passphrase of the vault")
        shown.clock.advance(0.1)
        await shown.press("x")
        await shown.shows(" •▏")
        shown.clock.advance(0.1)
        await shown.press_alone("enter", "Too soon after the question appeared")
        shown.clock.advance(0.4)
        await shown.press("y", "enter")
        await shown.shows("Enter came together with other keys")
        assert not given(shown, UnlockVault)
        shown.clock.advance(0.1)
        await shown.press_alone("enter")
        assert given(shown, UnlockVault) == [b"xy"]


async def test_a_wrong_passphrase_is_said_and_waits_before_the_next() -> None:
    async with asking() as shown:
        await give_passphrase(shown)
        shown.port.tell(
            replace(LOCKED, failed_attempts=3, failed_since=NOW),
            VaultRefused(message="Wrong passphrase, 3 so far.", wait_seconds=2),
        )
        await shown.shows("Wrong passphrase, 3 so far.")
        await shown.shows("3 wrong passphrases were given since 14:02.")
        await give_passphrase(shown, "z")
        await shown.shows("no passphrase is tried")
        assert len(given(shown, UnlockVault)) == 1
        shown.clock.advance(2)
        await shown.press_alone("enter")
        assert given(shown, UnlockVault)[1:] == [b"z"]
        shown.port.tell(
            UNLOCKED,
            VaultUnlocked(failed_attempts=3, failed_since=NOW, problem="vault.json is damaged."),
        )
        await shown.shows("3 wrong passphrases were given since 14:02. vault.json is damaged.")


async def test_the_panel_forgets_what_was_typed_and_ends_where_another_program_unlocked() -> None:
    async with asking() as shown:
        await shown.type("half of it")
        await shown.press_alone("escape")
        await shown.until(lambda: "Passphrase" not in shown.text, "closed")
        await shown.press_rested("C", "C did nothing: this waits for no choice of an account.")
        await ask_passphrase(shown)
        assert "•" not in shown.text
        assert not given(shown, UnlockVault)
        shown.port.tell(UNLOCKED)
        await shown.until(lambda: "Passphrase" not in shown.text, "closed")


async def test_the_field_edits_whole_characters_and_takes_one_pasted_line() -> None:
    async with asking() as shown:
        await shown.type("wrong")
        await shown.press_alone("ctrl+u")
        assert "•" not in shown.text
        shown.clock.advance(0.1)
        shown.app.post_message(events.Paste("pässwörtß\nrm -rf"))
        await shown.shows(" " + "•" * 9 + "▏")
        shown.clock.advance(0.1)
        await shown.press_alone("backspace", " " + "•" * 8 + "▏")
        shown.clock.advance(0.5)
        await shown.press_alone("enter")
        assert given(shown, UnlockVault) == ["pässwört".encode()]


async def test_the_passphrase_is_in_no_text_of_the_process() -> None:
    """No string of it is left: nothing that a log, an exception or a snapshot could print."""
    async with asking() as shown:
        await give_passphrase(shown)
        assert len(given(shown, UnlockVault)) == 1
        for each in shown.port.intents:
            assert PASSPHRASE not in repr(each)
        model = shown.model
        assert PASSPHRASE not in repr(vars(model))
        holders = [
            each
            for each in gc.get_objects()
            if str(type(each).__module__).startswith(("aileron_tui", "textual"))
            and PASSPHRASE in str(getattr(each, "__dict__", ""))
        ]
        assert not holders


async def test_the_keyring_is_asked_by_a_second_key_and_never_by_itself() -> None:
    """Enter alone, once the question has stood; what waits is named before. Without a keyring it does nothing."""
    for opens in (True, False):
        vault = replace(LOCKED, has_keyring=True, keyring_opens=opens)
        async with console(start(held(need("locked", WORK)), vault=vault), SMALL) as shown:
            await shown.press_rested("U", "assphrase")
            await shown.press_alone("enter")
            assert not shown.asked(*_UNLOCKS)
            assert ("enter alone for the keyring" in shown.text) is opens
            assert "ana@example.com (api_key/mail/work)" in shown.text
            shown.clock.advance(0.5)
            await shown.press_alone("enter")
            sent = [type(each) for each in shown.asked(*_UNLOCKS)]
            assert sent == ([UnlockVaultWithKeyring] if opens else [])


async def test_where_the_keyring_fails_the_passphrase_is_typed_in_the_same_panel() -> None:
    async with asking(has_keyring=True, keyring_opens=True) as shown:
        await shown.press_alone("enter", "Checking …")
        shown.port.tell(VaultRefused(message="The keyring has no key of this vault."))
        await shown.shows("The keyring has no key of this vault.")
        await give_passphrase(shown)
        assert len(given(shown, UnlockVault)) == 1


async def test_hiding_the_items_forgets_what_was_typed() -> None:
    async with console(start(short(), vault=LOCKED), lock_seconds=60) as shown:
        await ask_passphrase(shown)
        await shown.type("half of it")
        await shown.passes(61)
        await shown.shows("Locked.")
        await shown.press_alone("x")
        await shown.until(lambda: "Locked." not in shown.text, "shown again")
        assert "•" not in shown.text


# Creating


async def test_a_vault_is_created_where_a_call_needs_one() -> None:
    """The same passphrase twice; two different ones, or a short one, create nothing."""
    absent = VaultStatus(state="absent")
    async with console(start(short(), vault=absent)) as shown:
        await shown.press_rested(
            "U", "U did nothing: there is no vault, and nothing waits for one."
        )
    async with console(start(held(need("unbound")), vault=absent), SMALL) as shown:
        assert "U create the vault…" in shown.keys
        await ask_passphrase(shown)
        assert "Nobody can reset it" in shown.text
        await give_passphrase(shown, "short")
        await shown.shows("at least 8 characters, and")
        await give_passphrase(shown)
        await shown.shows("The same passphrase again:")
        await give_passphrase(shown, "another one")
        await shown.shows("The two passphrases differ.")
        await give_passphrase(shown)
        await shown.shows("The same passphrase again:")
        assert not given(shown, CreateVault)
        await give_passphrase(shown)
        assert given(shown, CreateVault) == [PASSPHRASE.encode()]
        shown.port.tell(UNLOCKED, VaultUnlocked(failed_attempts=0, failed_since=None))
        await shown.shows("✓ The vault is created and unlocked.")


# Locking


async def test_a_key_locks_the_vault_and_keys_keep_it_open() -> None:
    async with console(start(short(), vault=UNLOCKED)) as shown:
        await shown.press_rested("Z")
        assert LockVault() in shown.port.intents
        assert TouchVault() in shown.port.intents
        shown.port.tell(LOCKED)
        await shown.shows("The vault is locked.")
        shown.port.intents.clear()
        await shown.press_rested("Z")
        assert "Z did nothing: the vault is not unlocked." in shown.status_line
        assert not shown.port.intents


# Picking an account


async def pick(shown: Console) -> None:
    await shown.press_rested("C", f"Which account for {FQN}?")


@pytest.mark.parametrize(("keys", "picked"), [(("down",), HOME), (("down", "1"), WORK)])
async def test_a_person_picks_the_account(keys: tuple[str, ...], picked: AccountView) -> None:
    """By the arrows or its number; `enter` counts at rest alone."""
    view = held(need("choice", WORK, HOME))
    async with console(start(view, vault=UNLOCKED), SMALL) as shown:
        await pick(shown)
        for key in keys:
            shown.clock.advance(0.1)
            await shown.press_alone(key)
        row = next(line for line in shown.lines if line.startswith("▌") and "┃" in line)
        assert picked.account in row
        await shown.press_alone("enter")
        assert "Too soon" in shown.text
        await shown.press_rested("enter")
        wanted = ChooseAccount(approval_id=view.approval_id, connector=FQN, binding=picked.name)
        await shown.until(lambda: wanted in shown.port.intents, "picked")


async def test_a_choice_is_remembered_by_a_key_of_its_own() -> None:
    """The question says for how long; as for enter, the key counts at rest alone."""
    view = held(need("choice", WORK, HOME))
    async with console(start(view, vault=UNLOCKED), SMALL) as shown:
        await pick(shown)
        assert "until the action's file" in " ".join(shown.text.split())
        await shown.press_alone("R")
        assert "Too soon" in shown.text
        await shown.press_rested("R")
        wanted = ChooseAccount(
            approval_id=view.approval_id, connector=FQN, binding=WORK.name, remember=True
        )
        await shown.until(lambda: wanted in shown.port.intents, "picked")


async def test_a_choice_that_changes_is_asked_anew() -> None:
    """No account moves under the key."""
    view = held(need("choice", WORK, HOME))
    async with console(start(view, vault=UNLOCKED)) as shown:
        await pick(shown)
        other = held(need("choice", HOME, WORK))
        shown.port.tell(ApprovalUpdated(view=other))
        await shown.until(lambda: "Which account" not in shown.text, "closed")
        assert not shown.asked(ChooseAccount)
