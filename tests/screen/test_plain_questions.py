"""The brake, the lock, the vault, and what is printed on demand, in a console without a screen."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from aileron_tui.words.status import UNDRAWABLE
from tests.support.terminal import PlainText, Pty
from tests.support.variants import variants

CHILD = Path(__file__).parent / "plain_child.py"
ASKS_STOP = "Stop everything? This denies 7 calls, ends 3 sessions and stops 1 run."
LEFT = "Cancelled. Nothing was stopped or ended."


class Reader(PlainText):
    """A person who reads the child from the top, and types lines."""

    def __init__(self, folder: Path, *options: str) -> None:
        self._intents = folder / "intents"
        self._intents.touch()
        self.pty = Pty([sys.executable, "-I", str(CHILD), str(self._intents), *options])

    def answers(self, line: str) -> str:
        """Type *line* at the question; return what is written up to the next one."""
        self.answer(line)
        return self.asked()

    @property
    def intents(self) -> str:
        """What was asked of the core, a line each."""
        return self._intents.read_text()

    def close(self) -> None:
        self.pty.close()


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    reader = Reader(tmp_path)
    reader.asked()
    yield reader
    reader.close()


def test_the_digest_that_was_printed_is_what_is_approved(tmp_path: Path) -> None:
    """The first call of the fixtures, whole: everything of it was printed."""
    person = Reader(tmp_path)
    page = person.asked()
    assert "All seen" in page
    assert "✓ Approved: Send a mail draft" in person.answers("a")
    (approved,) = (line for line in person.intents.splitlines() if line.startswith("Approve("))
    digest = approved.partition("digest='")[2].partition("'")[0].removeprefix("sha256:")
    assert len(digest) == 64
    assert digest in re.sub(r"\s*│?\s*", "", page)
    assert "unseen_lines=0" in approved
    person.close()


def test_a_call_that_cannot_be_printed_is_not_decided(tmp_path: Path) -> None:
    """It keeps waiting, and the next one is asked about."""
    person = Reader(tmp_path, "0", "undrawable")
    assert UNDRAWABLE in person.asked()
    for key in ("a", "a", "d no", "A"):
        assert f"{key} does nothing here now." in person.answers(key)
    assert person.intents == ""
    assert "WILL HAPPEN  fetched" in person.answers("n")
    person.close()


@pytest.mark.parametrize("typed", variants(["\x0b", "ctrl+k", "stop"]))
def test_everything_is_stopped_by_the_same_answer_given_twice(reader: Reader, typed: str) -> None:
    """The first says what it would stop; the second, behind the rest, does it."""
    output = reader.answers(typed)
    assert ASKS_STOP in output
    assert "A stopped run may already have done its work" in output
    assert "StopEverything" not in reader.intents
    assert "✗ Everything stopped: 7 calls denied" in reader.answers(typed)
    assert "StopEverything" in reader.intents


@pytest.mark.parametrize("other", variants(["a", "stop it", "esc", "d no", "1", "y"], 2))
def test_any_other_answer_leaves_everything_as_it_is(reader: Reader, other: str) -> None:
    """It does nothing else either, and the next `stop` asks anew."""
    reader.answers("stop")
    assert LEFT in reader.answers(other)
    assert ASKS_STOP in reader.answers("stop")
    assert reader.intents == ""


def test_two_answers_at_once_stop_nothing(reader: Reader) -> None:
    """A paste is no answer, whether the question stands there or not."""
    reader.pty.type(b"stop\nstop\n")
    assert "More than one line arrived at once." in reader.asked()
    reader.answers("stop")
    reader.pty.type(b"stop\nstop\n")
    assert "More than one line arrived at once." in reader.asked()
    assert ASKS_STOP in reader.answers("stop")
    assert reader.intents == ""


def test_a_call_that_changes_all_the_time_keeps_nobody_from_the_brake(tmp_path: Path) -> None:
    """An agent that makes rows come and go must not keep a person from stopping it."""
    person = Reader(tmp_path, "0", "restless")
    try:
        # Where a busy machine lets it rest for once there is a question, which it takes away again.
        output = next(
            output for _ in range(8) if "This changes too fast" in (output := person.asked())
        )
        assert "n goes on; stop stops everything." in output
        assert "does nothing here now" in person.answers("a")
        assert "Stop everything?" in person.answers("stop")
        assert "StopEverything" not in person.intents
        assert "✗ Everything stopped: 7 calls denied" in person.answers("stop")
    finally:
        person.close()


@pytest.mark.parametrize("typed", variants([b"a\n", b"stop\n", b"a\na\n", b"\n", b"1\n"], 2))
def test_the_line_that_ends_the_lock_does_nothing_else(tmp_path: Path, typed: bytes) -> None:
    """After the idle time a count is all that is told; the call is printed anew and rests anew."""
    person = Reader(tmp_path, "2.5")
    try:
        person.asked()
        output = person.asked()
        assert "Locked. 7 calls are waiting.\n" in output
        assert "Press Enter to show everything again; it does nothing else." in output
        assert "Send" not in output
        person.pty.type(typed)
        output = person.asked()
        assert "WILL HAPPEN  fetched" in output
        assert "does nothing here" not in output
        assert person.intents == ""
        # On a busy machine the idle time may be over again: then that line ends the lock alone.
        output = (person.answers("a") for _ in range(5))
        assert any("✓ Approved: Send a mail draft" in each for each in output)
    finally:
        person.close()


def test_the_call_is_printed_with_code_points_and_again_without(reader: Reader) -> None:
    """As `u` does on the screen; it rests anew and can be decided in that form."""
    folded = next(page for _ in range(8) if "‹ZWSP×3›" in (page := reader.answers("n")))
    assert "‹412 blank lines›" in folded
    assert "u code points" in folded
    unfolded = reader.answers("u")
    assert "‹U+200B ZWSP›‹U+200B ZWSP›‹U+200B ZWSP›" in unfolded
    assert "‹ZWSP×3›" not in unfolded
    assert "‹ZWSP×3›" in reader.answers("u")
    reader.answers("u")
    assert "▲ Hidden text in Subject: ZWSP (and 2 more). Press a again" in reader.answers("a")
    assert reader.intents == ""
    assert "✓ Approved: Send a mail draft" in reader.answers("a")


def test_an_item_is_printed_again_and_other_views_are_named(reader: Reader) -> None:
    """`1` prints the call again; the key of another view names the command that shows the same."""
    assert "WILL HAPPEN  fetched" in reader.answers("1")
    for key, command in (
        ("2", "audit list"), ("3", "audit list"), ("4", "action list"), ("5", "status"),
        ("6", "binding list"),
    ):  # fmt: skip
        assert f"aileron {command}" in reader.answers(key)
    for key in ("X", "z", "/ agent:goose", "1 2", "ü"):
        assert f"{key} does nothing here now." in reader.answers(key)
    assert reader.intents == ""


def test_a_device_is_paired_confirmed_and_ended_by_whole_answers(tmp_path: Path) -> None:
    """The link is printed unbroken; the words that were printed are the ones that are confirmed."""
    person = Reader(tmp_path, "0", "devices")
    person.asked()
    link = "/review/act-20261008T140152-0000000000000001#00112233445566778899aabbccddeeff\n"
    assert link in person.answers("O")
    question = person.asked()
    assert "Nothing was decided." not in question
    assert "olive · raven · cedar" in question
    assert "Keys: y the words are the same, x refuse." in question
    assert "Left as it is." in person.answers("a")
    listed = person.answers("devices")
    assert "1 amber · fox · lantern, ● confirmed, cannot be known" in listed
    assert "2 olive · raven · cedar, ▲ not confirmed, /usr/lib/firefox-esr/firefox-esr" in listed
    assert "/usr/lib/firefox-esr/firefox-esr, process 4711" in person.answers("devices 2")
    assert "✓ olive · raven · cedar can now see and decide" in person.answers("y")
    assert "Keys: x end it." in person.answers("devices 1")
    assert "The pairing of amber · fox · lantern has ended." in person.answers("x")
    asked = [each.partition("(")[0] for each in person.intents.splitlines()]
    assert asked == ["MakeLink", "ConfirmDevice", "EndDevice"]
    person.close()


def test_grants_are_listed_and_one_is_ended_by_its_name(tmp_path: Path) -> None:
    person = Reader(tmp_path, "0", "grants")
    person.asked()
    listed = person.answers("grants")
    assert "g3 allow create_event: what it reaches stays, used 4/20, ends in" in listed
    assert "d1 deny send_mail: To sam@helio.example, used 2," in listed
    assert "There is no grant g9; grants lists them." in person.answers("grants g9")
    assert person.intents == ""
    assert "Grant g3 ended: a person revoked it." in person.answers("grants g3")
    assert person.intents == "EndGrant(grant_id='g3')\n"
    assert "g3" not in person.answers("grants")
    person.close()


UNSEEN = "(not shown) > "
PASSPHRASE = b"correct horse battery"


@pytest.fixture
def vault_reader(tmp_path: Path) -> Iterator[Reader]:
    reader = Reader(tmp_path, "0", "vault")
    yield reader
    reader.close()


def test_the_vault_is_unlocked_unseen_and_the_account_picked(vault_reader: Reader) -> None:
    """The passphrase is not echoed; nothing is picked without a number that was printed."""
    first = vault_reader.asked()
    assert "WAITS FOR THE VAULT" in first
    assert "U unlock the vault" in first
    vault_reader.pty.type(b"U\n")
    asked = vault_reader.read_until(UNSEEN)
    assert "Passphrase of the vault:" in asked
    assert "ana@example.com (api_key/mail/work)" in asked
    vault_reader.pty.type(b"wrong one\n")
    assert "That is not the vault's passphrase." in vault_reader.asked()
    vault_reader.pty.type(b"U\n")
    vault_reader.read_until(UNSEEN)
    vault_reader.pty.type(PASSPHRASE + b"\n")
    assert "✓ The vault is unlocked." in vault_reader.asked()
    assert PASSPHRASE.decode() not in vault_reader.output
    assert "wrong one" not in vault_reader.output
    assert PASSPHRASE.decode() not in vault_reader.intents

    choice = vault_reader.answers("n")
    assert "WAITS FOR YOUR CHOICE" in choice
    assert "C NUMBER pick the account" in choice
    for wrong in ("C", "C 3", "C x", "C 2 always"):
        said = " ".join(vault_reader.answers(wrong).split())
        assert "1 to 2;" in said
        assert "Nothing was picked." in said
    assert "ChooseAccount" not in vault_reader.intents
    picked = vault_reader.answers("C 2 remember")
    assert "remember=True" in vault_reader.intents
    assert "binding='api_key/mail/home'" in vault_reader.intents
    assert "as ana@home.example (api_key/mail/home)" in picked


def test_an_empty_passphrase_cancels_and_the_vault_is_locked_by_a_key(vault_reader: Reader) -> None:
    vault_reader.asked()
    vault_reader.pty.type(b"U\n")
    vault_reader.read_until(UNSEEN)
    vault_reader.pty.type(b"\n")
    assert "Cancelled. The vault is as it was." in vault_reader.asked()
    assert "UnlockVault" not in vault_reader.intents
    assert "Z does nothing here now." in vault_reader.answers("Z")
    vault_reader.pty.type(b"U\n")
    vault_reader.read_until(UNSEEN)
    vault_reader.pty.type(PASSPHRASE + b"\n")
    vault_reader.asked()
    assert "The vault is locked." in vault_reader.answers("Z")
