"""The brake, the lock, the vault, and what is printed on demand, in a console without a screen."""

import itertools
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from aileron_tui.words.status import UNDRAWABLE
from tests.support.screens.port import PASSPHRASE
from tests.support.terminal import PlainText, Pty
from tests.support.variants import variants

CHILD = Path(__file__).parent / "plain_child.py"
ASKS_STOP = "Stop everything? This denies 7 calls, ends 3 sessions and stops 1 run."
LEFT = "Cancelled. Nothing was stopped or ended."


class Reader(PlainText):
    """A person who reads the child from the top to its first question, and types lines."""

    def __init__(self, folder: Path, *options: str) -> None:
        self._intents = folder / "intents"
        self._intents.touch()
        self.pty = Pty([sys.executable, "-I", str(CHILD), str(self._intents), *options])
        self.first = self.asked()

    def answers(self, line: str) -> str:
        self.answer(line)
        return self.asked()

    def gives(self, passphrase: bytes) -> str:
        """Type *passphrase* where `U` asks for it; return what is written from then on."""
        self.pty.type(b"U\n")
        asked = self.read_until("(not shown) > ")
        self.pty.type(passphrase + b"\n")
        return asked + self.asked()

    @property
    def intents(self) -> str:
        return self._intents.read_text()


@pytest.fixture
def reader(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Reader]:
    reader = Reader(tmp_path, *getattr(request, "param", ()))
    yield reader
    reader.pty.close()


def child(*options: str) -> pytest.MarkDecorator:
    """Give the test's child *options*."""
    return pytest.mark.parametrize("reader", [options], ids=["-".join(options)], indirect=True)


def test_the_digest_that_was_printed_is_what_is_approved(reader: Reader) -> None:
    assert "All seen" in reader.first
    assert "✓ Approved: Send a mail draft" in reader.answers("a")
    (approved,) = (line for line in reader.intents.splitlines() if line.startswith("Approve("))
    digest = approved.partition("digest='")[2].partition("'")[0].removeprefix("sha256:")
    assert len(digest) == 64
    assert digest in re.sub(r"\s*│?\s*", "", reader.first)
    assert "unseen_lines=0" in approved


@child("0", "undrawable")
def test_a_call_that_cannot_be_printed_is_not_decided(reader: Reader) -> None:
    assert UNDRAWABLE in reader.first
    for key in ("a", "a", "d no", "A"):
        assert f"{key} does nothing here now." in reader.answers(key)
    assert reader.intents == ""
    assert "WILL HAPPEN  fetched" in reader.answers("n")


@pytest.mark.parametrize("typed", variants(["\x0b", "ctrl+k", "stop"]))
def test_everything_is_stopped_by_the_same_answer_given_twice(reader: Reader, typed: str) -> None:
    for _ in range(2):  # a paste is no answer, whether the question stands there or not
        reader.pty.type(b"stop\nstop\n")
        assert "More than one line arrived at once." in reader.asked()
        output = reader.answers(typed)
        assert ASKS_STOP in output
        assert "A stopped run may already have done its work" in output
    assert "StopEverything" not in reader.intents
    assert "✗ Everything stopped: 7 calls denied" in reader.answers(typed)
    assert "StopEverything" in reader.intents


@pytest.mark.parametrize("other", variants(["a", "stop it", "esc", "d no", "1", "y"], 2))
def test_any_other_answer_leaves_everything_as_it_is(reader: Reader, other: str) -> None:
    reader.answers("stop")
    assert LEFT in reader.answers(other)
    assert ASKS_STOP in reader.answers("stop")
    assert reader.intents == ""


@child("0", "restless")
def test_a_call_that_changes_all_the_time_keeps_nobody_from_the_brake(reader: Reader) -> None:
    """An agent that makes rows come and go must not keep a person from stopping it."""
    # Where a busy machine lets it rest for once there is a question, which it takes away again.
    pages = itertools.chain([reader.first], (reader.asked() for _ in range(7)))
    output = next(each for each in pages if "This changes too fast" in each)
    assert "n goes on; stop stops everything." in output
    assert "does nothing here now" in reader.answers("a")
    assert "Stop everything?" in reader.answers("stop")
    assert "StopEverything" not in reader.intents
    assert "✗ Everything stopped: 7 calls denied" in reader.answers("stop")


@child("2.5")
@pytest.mark.parametrize("typed", variants([b"a\n", b"stop\n", b"a\na\n", b"\n", b"1\n"], 2))
def test_the_line_that_ends_the_lock_does_nothing_else(reader: Reader, typed: bytes) -> None:
    output = reader.asked()
    assert "Locked. 7 calls are waiting.\n" in output
    assert "Press Enter to show everything again; it does nothing else." in output
    assert "Send" not in output
    reader.pty.type(typed)
    output = reader.asked()
    assert "WILL HAPPEN  fetched" in output
    assert "does nothing here" not in output
    assert reader.intents == ""
    # On a busy machine the idle time may be over again: then that line ends the lock alone.
    outputs = (reader.answers("a") for _ in range(5))
    assert any("✓ Approved: Send a mail draft" in each for each in outputs)


def test_an_item_is_printed_again_with_code_points_and_other_views_are_named(
    reader: Reader,
) -> None:
    assert "WILL HAPPEN  fetched" in reader.answers("1")
    commands = ("audit list", "audit list", "action list", "status", "binding list")
    for key, command in enumerate(commands, start=2):
        assert f"aileron {command}" in reader.answers(str(key))
    for key in ("X", "z", "/ agent:goose", "1 2", "ü"):
        assert f"{key} does nothing here now." in reader.answers(key)
    assert reader.intents == ""
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


@child("0", "devices")
def test_a_device_is_paired_confirmed_and_ended_by_whole_answers(reader: Reader) -> None:
    link = "/review/act-20261008T140152-0000000000000001#00112233445566778899aabbccddeeff\n"
    assert link in reader.answers("O")
    question = reader.asked()
    assert "Nothing was decided." not in question
    assert "olive · raven · cedar" in question
    assert "Keys: y the words are the same, x refuse." in question
    assert "Left as it is." in reader.answers("a")
    listed = reader.answers("devices")
    assert "1 amber · fox · lantern, ● confirmed, cannot be known" in listed
    assert "2 olive · raven · cedar, ▲ not confirmed, /usr/lib/firefox-esr/firefox-esr" in listed
    for answer, said in (
        ("devices 2", "/usr/lib/firefox-esr/firefox-esr, process 4711"),
        ("y", "✓ olive · raven · cedar can now see and decide"),
        ("devices 1", "Keys: x end it."),
        ("x", "The pairing of amber · fox · lantern has ended."),
    ):
        assert said in reader.answers(answer)
    asked = [each.partition("(")[0] for each in reader.intents.splitlines()]
    assert asked == ["MakeLink", "ConfirmDevice", "EndDevice"]


@child("0", "grants")
def test_grants_are_listed_and_one_is_ended_by_its_name(reader: Reader) -> None:
    listed = reader.answers("grants")
    assert "g3 allow create_event: what it reaches stays, used 4/20, ends in" in listed
    assert "d1 deny send_mail: To sam@helio.example, used 2," in listed
    assert "There is no grant g9; grants lists them." in reader.answers("grants g9")
    assert reader.intents == ""
    assert "Grant g3 ended: a person revoked it." in reader.answers("grants g3")
    assert reader.intents == "EndGrant(grant_id='g3')\n"
    assert "g3" not in reader.answers("grants")


@child("0", "vault")
def test_the_vault_is_unlocked_unseen_and_the_account_picked(reader: Reader) -> None:
    assert "WAITS FOR THE VAULT" in reader.first
    assert "U unlock the vault" in reader.first
    assert "Cancelled. The vault is as it was." in reader.gives(b"")
    assert "UnlockVault" not in reader.intents
    assert "Z does nothing here now." in reader.answers("Z")
    asked = reader.gives(b"wrong one")
    assert "Passphrase of the vault:" in asked
    assert "ana@example.com (api_key/mail/work)" in asked
    assert "That is not the vault's passphrase." in asked
    assert "✓ The vault is unlocked." in reader.gives(PASSPHRASE)
    assert "wrong one" not in reader.output
    assert PASSPHRASE.decode() not in reader.output + reader.intents

    choice = reader.answers("n")
    assert "WAITS FOR YOUR CHOICE" in choice
    assert "C NUMBER pick the account" in choice
    for wrong in ("C", "C 3", "C x", "C 2 always"):
        said = " ".join(reader.answers(wrong).split())
        assert "1 to 2;" in said
        assert "Nothing was picked." in said
    assert "ChooseAccount" not in reader.intents
    picked = reader.answers("C 2 remember")
    assert "remember=True" in reader.intents
    assert "binding='api_key/mail/home'" in reader.intents
    assert "as ana@home.example (api_key/mail/home)" in picked
    assert "The vault is locked." in reader.answers("Z")
