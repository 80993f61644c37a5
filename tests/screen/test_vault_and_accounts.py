"""The vault and the accounts of calls: what waits for them says so, a key unlocks, a person picks."""

import gc
from dataclasses import replace
from typing import Any

import pytest

from aileron_core.console_port import events, intents
from aileron_core.console_port.account_views import AccountView
from tests.screen.bound_accounts import UNLOCKED
from tests.screen.driving import drive_console
from tests.support.screens.play import Play, rested
from tests.support.screens.states import FQN, HOME, NOW, WORK, held_call, need, short, snapshot_of

PASSPHRASE = "a canary"
_UNLOCKS = (intents.UnlockVault, intents.UnlockVaultWithKeyring)
LOCKED = events.VaultStatus(state="locked", entries=2)
SMALL = (80, 24)
CHOICE = held_call(need("choice", WORK, HOME))


def asking(play: Play | None = None, **vault: Any) -> Play:
    if play is None:
        play = Play(snapshot_of(held_call(need("locked", WORK)), vault=replace(LOCKED, **vault)))

    play.press_rested("U", "assphrase")
    play.clock.advance(0.5)
    return play


def give_passphrase(play: Play, passphrase: str = PASSPHRASE) -> None:
    play.type(passphrase)
    play.press_alone("enter")


def given(play: Play, kind: type) -> list[bytes]:
    """Return the passphrases that the core was given by intents of *kind*."""
    return [each.passphrase.reveal() for each in play.asked(kind)]


def test_the_passphrase_is_asked_for_after_a_key_alone_and_never_shown() -> None:
    views = (held_call(need("locked", WORK)), held_call(need("locked", HOME), 2, gated=False))
    play = rested(snapshot_of(*views, vault=LOCKED), SMALL)
    assert "Passphrase" not in play.text
    asking(play)
    play.shows("2 calls are waiting for it. 1 runs at once then, without asking.")
    play.shows("┃ ana@example.com (api_key/mail/work)", "┃ ana@home.example (api_key/mail/home)")
    play.type(PASSPHRASE)
    play.shows("•" * len(PASSPHRASE))
    assert PASSPHRASE not in play.text
    assert not given(play, intents.UnlockVault)
    play.press_alone("enter")
    assert given(play, intents.UnlockVault) == [PASSPHRASE.encode()]
    # No string of it is left: nothing that a log, an exception or a snapshot could print.
    assert PASSPHRASE not in repr((play.port.intents, vars(play.model)))
    holders = [
        each
        for each in gc.get_objects()
        if str(type(each).__module__).startswith(("aileron_tui", "textual"))
        and PASSPHRASE in str(getattr(each, "__dict__", ""))
    ]
    assert not holders
    play.shows("Checking …")
    assert "•" not in play.text
    play.port.tell(UNLOCKED, events.VaultUnlocked(failed_attempts=0, failed_since=None))
    play.shows("✓ The vault is unlocked.")
    assert "Passphrase" not in play.text


def test_the_panel_drops_what_comes_with_its_key_and_enter_counts_at_rest_and_alone() -> None:
    """A pasted line that holds the key does not end up in the field, nor is it sent."""
    play = rested(snapshot_of(held_call(need("locked", WORK)), vault=LOCKED))
    play.press("U", *"pasted", "enter")
    play.shows("Passphrase of the vault")
    play.paste("pasted as well")
    assert "•" not in play.text
    assert not given(play, intents.UnlockVault)
    play.clock.advance(0.1)
    play.press_alone("escape")
    play.press_rested("U", "Passphrase of the vault")
    play.clock.advance(0.1)
    play.press("x")
    play.shows(" •▏")
    play.clock.advance(0.1)
    play.press_alone("enter", "Too soon after the question appeared")
    play.clock.advance(0.4)
    play.press("y", "enter")
    play.shows("Enter came together with other keys")
    assert not given(play, intents.UnlockVault)
    play.clock.advance(0.1)
    play.press_alone("enter")
    assert given(play, intents.UnlockVault) == [b"xy"]


def test_a_wrong_passphrase_is_said_and_waits_before_the_next() -> None:
    play = asking()
    give_passphrase(play)
    play.port.tell(
        replace(LOCKED, failed_attempts=3, failed_since=NOW),
        events.VaultRefused(message="Wrong passphrase, 3 so far.", wait_seconds=2),
    )
    play.shows("Wrong passphrase, 3 so far.", "3 wrong passphrases were given since 14:02.")
    give_passphrase(play, "z")
    play.shows("no passphrase is tried")
    assert len(given(play, intents.UnlockVault)) == 1
    play.clock.advance(2)
    play.press_alone("enter")
    assert given(play, intents.UnlockVault)[1:] == [b"z"]
    play.port.tell(
        UNLOCKED,
        events.VaultUnlocked(failed_attempts=3, failed_since=NOW, problem="vault.json is damaged."),
    )
    play.shows("3 wrong passphrases were given since 14:02. vault.json is damaged.")


def test_the_field_edits_whole_characters_and_forgets_them_where_the_panel_ends() -> None:
    """By `esc`, or as another program unlocked. Of what is pasted it takes one line."""
    play = asking()
    play.type("half of it")
    play.press_alone("escape")
    assert "Passphrase" not in play.text
    play.press_rested("C", "C did nothing: this waits for no choice of an account.")
    asking(play)
    assert "•" not in play.text
    play.type("wrong")
    play.press_alone("ctrl+u")
    assert "•" not in play.text
    play.clock.advance(0.1)
    play.paste("pässwörtß\nrm -rf")
    play.shows(" " + "•" * 9 + "▏")
    play.clock.advance(0.1)
    play.press_alone("backspace", " " + "•" * 8 + "▏")
    assert not given(play, intents.UnlockVault)
    play.go("enter")
    assert given(play, intents.UnlockVault) == ["pässwört".encode()]
    play.tell(UNLOCKED)
    assert "Passphrase" not in play.text


def test_the_keyring_is_asked_by_a_second_key_and_never_by_itself() -> None:
    for opens in (True, False):
        vault = replace(LOCKED, has_keyring=True, keyring_opens=opens)
        play = Play(snapshot_of(held_call(need("locked", WORK)), vault=vault), SMALL)
        play.press_rested("U", "assphrase")
        play.press_alone("enter")
        assert not play.asked(*_UNLOCKS)
        assert ("enter alone for the keyring" in play.text) is opens
        assert "ana@example.com (api_key/mail/work)" in play.text
        play.go("enter")
        sent = [type(each) for each in play.asked(*_UNLOCKS)]
        assert sent == ([intents.UnlockVaultWithKeyring] if opens else [])

    play = asking(has_keyring=True, keyring_opens=True)
    play.press_alone("enter", "Checking …")
    failed = "The keyring has no key of this vault."
    play.port.tell(events.VaultRefused(message=failed))
    play.shows(failed)
    give_passphrase(play)
    assert len(given(play, intents.UnlockVault)) == 1


async def test_a_key_locks_the_vault_and_hiding_the_items_forgets_what_was_typed() -> None:
    async with drive_console(snapshot_of(short(), vault=UNLOCKED), lock_seconds=60) as shown:
        await shown.press_rested("Z")
        assert {intents.LockVault(), intents.TouchVault()} <= {*shown.port.intents}, (
            "keys keep it open"
        )
        shown.port.tell(LOCKED)
        await shown.shows("The vault is locked.")
        shown.port.intents.clear()
        await shown.press_rested("Z", "Z did nothing: the vault is not unlocked.")
        assert not shown.port.intents
        await shown.press_rested("U", "assphrase")
        await shown.type("half of it")
        await shown.passes(61)
        await shown.shows("Locked.")
        await shown.press_alone("x")
        assert "Locked." not in shown.text
        assert "•" not in shown.text


def test_a_vault_is_created_where_a_call_needs_one() -> None:
    absent = events.VaultStatus(state="absent")
    play = Play(snapshot_of(short(), vault=absent))
    play.press_rested("U", "U did nothing: there is no vault, and nothing waits for one.")
    play = Play(snapshot_of(held_call(need("unbound")), vault=absent), SMALL)
    assert "U create the vault…" in play.keys
    asking(play)
    assert "Nobody can reset it" in play.text
    for passphrase, said in (
        ("short", "at least 8 characters, and"),
        (PASSPHRASE, "The same passphrase again:"),
        ("another one", "The two passphrases differ."),
        (PASSPHRASE, "The same passphrase again:"),
    ):
        give_passphrase(play, passphrase)
        play.shows(said)
    assert not given(play, intents.CreateVault)
    give_passphrase(play)
    assert given(play, intents.CreateVault) == [PASSPHRASE.encode()]
    play.port.tell(UNLOCKED, events.VaultUnlocked(failed_attempts=0, failed_since=None))
    play.shows("✓ The vault is created and unlocked.")


@pytest.mark.parametrize(
    ("keys", "picked"), [(("down", "enter"), HOME), (("down", "1", "enter"), WORK), (("R",), WORK)]
)
def test_a_person_picks_the_account(keys: tuple[str, ...], picked: AccountView) -> None:
    play = Play(snapshot_of(CHOICE, vault=UNLOCKED), SMALL)
    play.press_rested("C", f"Which account for {FQN}?")
    assert "until the action's file" in " ".join(play.text.split())
    for key in keys:
        play.clock.advance(0.1)
        play.press_alone(key)
    row = next(line for line in play.lines if line.startswith("▌") and "┃" in line)
    assert picked.account in row
    assert "Too soon" in play.text
    play.press_rested(keys[-1])
    wanted = intents.ChooseAccount(
        approval_id=CHOICE.approval_id, connector=FQN, binding=picked.name
    )
    assert replace(wanted, remember=keys == ("R",)) in play.port.intents


def test_a_choice_that_changes_is_asked_anew() -> None:
    """No account moves under the key."""
    play = Play(snapshot_of(CHOICE, vault=UNLOCKED))
    play.press_rested("C", f"Which account for {FQN}?")
    play.tell(events.ApprovalUpdated(view=held_call(need("choice", HOME, WORK))))
    assert "Which account" not in play.text
    assert not play.asked(intents.ChooseAccount)
