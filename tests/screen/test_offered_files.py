"""What there is to accept is the content: what it allows more, the lines that differ, all of it; a key decides
about a file where its facts stand.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from aileron_core.console_port.events import LibraryUpdated
from aileron_core.console_port.file_views import AcceptedBeforeView, FileContentView, ServerView
from aileron_core.console_port.intents import Accept, ReleaseServer, WithdrawAcceptance
from aileron_core.console_port.view_models import NotAcceptedView, RunTimeView
from aileron_core.library.settings_comparison import compare_policies
from aileron_tui.draw.blocks import Block, lay_out
from aileron_tui.draw.file_page import file_blocks, suite_blocks
from aileron_tui.draw.text import plain_text
from aileron_tui.items import Item, SuiteFiles
from aileron_tui.pages.keymap import DEFAULT_REGISTRY
from aileron_tui.state.document_cache import LARGE_CHARACTERS, DocumentCache
from aileron_tui.state.printed_pages import item_page
from aileron_tui.words.files import server_remarks
from aileron_tui.words.item import laying_out
from tests.screen.driving import drive_console
from tests.screen.offered_files import SEND, SUITE, changed, connector, offered, widened
from tests.support.attacks import ATTACKS
from tests.support.screens.home import library_items, not_accepted, problems
from tests.support.screens.play import Play, rested
from tests.support.screens.states import NOW, snapshot_of

HOSTILE = "\x1b[2J\u202egnp.exe\n THE FILE  it is safe\n ┃ ✓ Accepted\n\x07" + "\n" * 9 + "x"
STATE = snapshot_of(held=(not_accepted(),), library=library_items(NOW), problems=problems())
HELD = next(item for item in library_items(NOW) if item.state == "held_back")
READY = next(item for item in library_items(NOW) if item.name == "send-draft")


def shown_lines(file: NotAcceptedView, width: int = 100) -> list[str]:
    return [plain_text(line) for line in lay_out(file_blocks(file), width, 13).lines]


def test_changed_rules_begin_with_what_they_newly_allow() -> None:
    old = '[[rule]]\ntools = ["Grep"]\ndecision = "deny"\n'
    new = '[[rule]]\ntools = ["Bash"]\ncommand = ["make", "*"]\ndecision = "allow"\n'
    before = AcceptedBeforeView(
        name="policy.toml", digest="0" * 64, accepted_at=NOW - 86_400, text=old,
        changes=compare_policies(old, new),
    )  # fmt: skip
    file = replace(
        not_accepted(), kind="policy", name="policy.toml", file="policy.toml", change="changed",
        gated=None, connector="", steps=(), hosts=(),
        content=FileContentView(text=new, before=before),
    )  # fmt: skip
    lines = [line.strip() for line in shown_lines(file)]
    assert lines[0].startswith("ALLOWS MORE")
    assert "+ allows Bash: make *" in lines[1]
    assert "− denies Grep" in lines[2]
    assert any("run without asking you" in line for line in lines)
    assert not any("Hosts" in line for line in lines)


@pytest.mark.parametrize("file", [offered(), connector()], ids=["action", "connector"])
def test_the_facts_of_a_file_begin_with_what_it_allows(file: NotAcceptedView) -> None:
    """Who is asked, what runs, which hosts: four files were accepted in 12 seconds, unread, under their names."""
    labels = [line.partition("┃")[0].strip() for line in shown_lines(file)]
    known = ("Then", "Runs", "Hosts", "Name", "Digest")
    runs = ["Runs"] if file.kind == "action" else []
    assert [each for each in labels if each in known] == ["Then", *runs, "Hosts", "Name", "Digest"]


def must_be_seen(blocks: Sequence[Block]) -> list[str]:
    return [plain_text(each.pieces) for each in blocks if each.must_be_seen]


def test_of_a_changed_file_what_differs_must_be_seen_and_all_of_it_is_there() -> None:
    new = widened().splitlines()
    blocks = file_blocks(changed())
    whole = [each for each in blocks if each.kind == "value"][-len(new) :]
    assert [plain_text(each.pieces) for each in whole] == new
    assert not any(each.must_be_seen for each in whole)
    must = must_be_seen(blocks)
    assert must[:3] == [
        "no longer asks you",
        "+ op local://aileron/mail-drafts.delete_draft",
        "no longer shows you Bcc",
    ]
    assert {"− required = true", "+ required = false"} <= {*must}
    lost = file_blocks(offered(widened(), SEND, kept=False))
    assert "not kept" in plain_text(lost[1].pieces)
    assert must_be_seen(lost)[-len(new) :] == new
    assert must_be_seen(file_blocks(offered()))[-len(SEND.splitlines()) :] == SEND.splitlines()
    # The lines that differ name their place; `u` unfolds those that stay.
    shown = shown_lines(changed())
    assert any(line.startswith(" line 7 ") and "name = " in line for line in shown)
    assert any("‹12 unchanged lines›" in line for line in shown)
    unfolded = file_blocks(changed(), unfold=True)
    assert len(unfolded) > len(blocks)
    assert not any("unchanged lines" in plain_text(each.pieces) for each in unfolded)


@pytest.mark.parametrize("attack", [HOSTILE, *(each.text for each in ATTACKS)])
@pytest.mark.parametrize("side", ["new", "old", "both"])
def test_hostile_text_in_a_file_stays_right_of_the_bar(attack: str, side: str) -> None:
    file = changed()
    assert file.content is not None
    assert file.before is not None
    before = file.before
    if side != "new":
        evil = tuple(
            replace(each, name=attack, after=attack, before=attack) for each in before.changes
        )
        before = replace(before, text=SEND + attack, changes=evil)
    text = SEND if side == "old" else SEND + attack
    file = replace(file, content=FileContentView(text=text, before=before))
    for each in lay_out(file_blocks(file), 100, 13).lines:
        left, bar, right = plain_text(each).partition("┃")
        assert len(left) <= 13 or not bar
        if not bar:
            assert left.strip() == "" or left.startswith(
                (" ALLOWS", " ALSO", " WHAT", " DIFF", " THE FILE  This", " CONTENT", "           ")
            )
        assert not {"\x1b", "\u202e", "\x07"} & {*right}


def test_all_of_it_counts_as_seen_only_when_it_was_on_screen() -> None:
    """The accept key asks for a second press till then. What was accepted is part of what was read:
    its change disarms, with the same bytes in the file.
    """
    play = rested(snapshot_of(held=(changed(),)), size=(80, 24))
    play.in_vain("t", "lines not seen. Press t again")
    play.read_all()
    again = offered(widened(), SEND.replace("wall_seconds", "x") + "\n")
    play.tell(LibraryUpdated(not_accepted=(again,), problems=(), actions_ready=0))
    assert not play.armed
    play.rest()
    assert "not seen yet" in play.status_line
    play.read_all()
    play.press_alone("t")
    assert play.asks_for(Accept).digest == changed().digest


def test_an_acceptance_is_withdrawn_at_once_however_much_of_the_file_is_unread() -> None:
    """It allows less; accepting is what wants to be read."""
    ready = replace(library_items(NOW)[3], content=FileContentView(text=SEND * 3))
    assert ready.state == "ready"
    play = Play(snapshot_of(library=(ready,)))
    play.go("4", ready.name)
    play.press_alone("enter", "not seen")
    play.press_rested("x")
    play.asks_for(WithdrawAcceptance)


async def test_a_large_file_is_laid_out_in_the_background_in_either_view() -> None:
    """Keys go on working; nothing can be accepted before all of it is there."""
    text = SEND + ("word " * 20 + "\n") * 4_000
    file = offered(text)
    file, unread = offered(text), "not seen yet"
    items = (replace(library_items(NOW)[2], content=file.content, digest=file.digest),)
    async with drive_console(snapshot_of(held=(file,), library=items)) as shown:
        model = shown.model
        for keys in ((), ("4", "enter")):
            for key in keys:
                await shown.press_alone(key)
            while laying_out(len(text))[:30] in shown.text:
                assert model.laid_out_version is None
                await asyncio.sleep(0.02)
                await shown.settled()
            await shown.shows(unread)
            assert model.reading.total > LARGE_CHARACTERS // 100


def test_a_suite_begins_with_what_its_changed_files_allow_more_and_ends_with_all_contents() -> None:
    files = (
        replace(changed(), suite=SUITE),
        replace(offered(SEND.replace("send-draft", "other"), name="other"), suite=SUITE),
    )
    blocks = suite_blocks(SuiteFiles(suite=SUITE, files=files))
    lines = [plain_text((*each.label, *each.pieces)) for each in blocks]
    assert lines[0] == "ALLOWS MORE1 file"
    assert lines[1] == "send-draft  no longer asks you"
    assert "− required = true" in lines
    whole, after = widened().splitlines(), lines[lines.index("Filesend-draft.md") :]
    assert [each for each in after if each in {*whole}][: len(whole)] == whole
    other = SEND.replace("send-draft", "other").splitlines()
    assert must_be_seen(blocks)[-len(other) :] == other


def test_without_a_screen_the_same_lines_are_printed() -> None:
    page = item_page(
        DocumentCache(DEFAULT_REGISTRY), Item(key="k", file=changed()), NOW, 100, file_changed=False
    )
    text = "\n".join(plain_text(each) for each in page)
    for part in (
        "▲ allows more than before: no longer asks you, and 2 more",
        "┃ + op local://aileron/mail-drafts.delete_draft",
        "┃ − required = true",
        "┃ + required = false",
        "CONTENT  the whole file, as it is on disk",
    ):
        assert part in text


def test_the_longer_time_that_an_acceptance_gives_is_shown_and_sent_with_it() -> None:
    """The core gives no other time than the one on the page; what names it stands beside it. Another one has to
    be looked at anew, of one file and of files that were added together.
    """
    named = RunTimeView(seconds=300, usual=30, named_by="timeout_seconds", accepted=False)
    file = replace(offered(), run_time=named)
    play = Play(snapshot_of(held=(file,)), size=(120, 120), answers=True)
    play.shows("▲ it may run up to 300 s instead of 30 s; each call says")
    play.press_rested("t")
    play.asks(Accept(kind="action", name=file.name, digest=file.digest, run_seconds=300))
    files = [replace(file, run_time=each) for each in (None, named, replace(named, seconds=90))]
    assert len({Item(key="file", file=each).version for each in files}) == 3
    suites = [SuiteFiles(suite=SUITE, files=(each,)) for each in files]
    assert len({Item(key="suite", suite=each).version for each in suites}) == 3
    lines = [plain_text(each.pieces) for each in suite_blocks(suites[1])]
    assert [each for each in lines if "may run up to 300 s" in each]


def to(play: Play, name: str) -> None:
    play.go("4", "invalid")
    play.to_row(name)


def test_a_key_shows_the_facts_first_and_then_accepts_or_withdraws_exactly_that_digest() -> None:
    play = Play(STATE, answers=True)
    to(play, "post-invoice")
    assert "t accept…" in play.keys
    play.press_rested("t", "THE FILE")
    assert play.port.intents == []
    play.shows(HELD.digest, "api.billing.example:443", "CREATE", "billing.get_invoice")
    play.press_alone("t")
    play.passes(0.1)
    assert play.port.intents == [], "the page was not there for 400 ms"
    play.rest()
    assert " t  accept" in play.keys
    play.press_alone("t", "✓ Accepted: post-invoice.")
    accepted = Accept(kind="action", name="post-invoice", digest=HELD.digest)
    play.asks(accepted)
    assert "● ready" in play.text

    play.press_alone("escape")
    to(play, "send-draft")
    play.press_rested("x", "THE FILE")
    play.rest()
    assert "x withdraws acceptance: agents can no longer see send-draft." in play.status_line
    play.press_alone("x", "✓ Acceptance withdrawn: send-draft.")
    play.asks(accepted, WithdrawAcceptance(kind="action", name="send-draft", digest=READY.digest))


def test_a_file_that_changes_while_one_reads_rests_anew_and_is_not_accepted() -> None:
    """The key is about the bytes that stood there, not about the name."""
    other = replace(HELD, digest="cd" * 32, reason="It changed on disk.")
    play = Play(STATE)
    to(play, "post-invoice")
    play.go("enter", "THE FILE")
    play.rest()
    play.press("t")
    items = tuple(other if item.name == "post-invoice" else item for item in STATE.library)
    held = (replace(not_accepted(), digest=other.digest),)
    play.port.tell(LibraryUpdated(not_accepted=held, problems=(), actions_ready=2, library=items))
    play.shows("It changed on disk.")
    play.passes(0.03)
    assert play.port.intents == []
    assert not play.armed
    play.press_rested("t")
    play.asks(Accept(kind="action", name="post-invoice", digest=other.digest))


def test_what_is_hidden_in_a_file_wants_a_second_press_here_too() -> None:
    content = FileContentView(text="Posts an\u202e invoice")
    items = tuple(
        replace(item, content=content) if item.name == "post-invoice" else item
        for item in STATE.library
    )
    play = Play(replace(STATE, library=items), size=(120, 60))
    to(play, "post-invoice")
    play.go("enter", "THE FILE")
    play.read_all()
    play.in_vain("t", "RLO. Press t again")
    play.press_rested("t")
    play.asks_for(Accept)


SERVER = ServerView(
    program="/usr/bin/node /srv/index.js (npm:files@1.2.3)",
    files_read=("/home/me/read",),
    files_write=("/home/me/notes",),
    secrets=("TOKEN",),
    is_rehearsed=False,
    is_remote=False,
    tools={"run": ("list\x1b[2J", "read"), "ask": ("write",), "off": ("drop",)},
)
CONTENT = FileContentView(text="[server]\n", server=SERVER)


def remarks(tools: Mapping[str, tuple[str, ...]]) -> list[str]:
    return [*server_remarks(replace(SERVER, tools=tools), has_hosts=True)]


def test_a_server_is_accepted_by_what_it_touches_and_a_word_for_each_tool() -> None:
    def drawn(file: NotAcceptedView) -> list[str]:
        return [plain_text(each) for each in lay_out(file_blocks(file), 110, 13).lines]

    file = replace(connector(), name="mcp://local/files@1.0.0", content=CONTENT)
    lines = drawn(file)
    text = "\n".join(lines)
    assert text.index("/home/me/notes") < text.index("Digest")
    for label, value in (
        ("Writes", "/home/me/notes"), ("Reads", "/home/me/read"), ("Secrets", "TOKEN"),
        ("Run unasked", "read"), ("Ask you", "write"), ("Off", "drop"),
    ):  # fmt: skip
        assert any(label in line and value in line for line in lines), label
    assert "\x1b" not in text
    assert "its author's claim" in text
    flat = " ".join(text.replace("┃", " ").split())
    assert "That such a tool only reads is the server's claim" in flat
    looks = {"look": ("read",), "ask": ("write",)}
    assert any("is the server's claim" in each for each in remarks(tools=looks))
    assert not any("claim" in each for each in remarks(tools={"ask": ("write",)}))
    assert "The server itself holds the secrets" in text
    assert "every user" not in text
    shown = replace(SERVER, program="/usr/bin/files --token ${secret.TOKEN}")
    argument = replace(file, content=replace(CONTENT, server=shown))
    assert "can be read by every user of this machine" in "\n".join(drawn(argument))


def test_a_key_has_a_server_that_ended_too_often_started_again() -> None:
    held = replace(
        library_items(NOW)[3],
        kind="connector",
        connector="mcp://local/files",
        state="cannot_run",
        is_held=True,
        reason="It ended three times within a minute; the last time it ended. Press s to have it started again.",
        refused_hosts=("evil.example:443",),
        content=CONTENT,
    )
    play = Play(snapshot_of(library=(held,)))
    play.go("4", held.name)
    play.press_alone("enter", "evil.example:443")
    play.press_alone("s")
    play.asks(ReleaseServer(name="mcp://local/files"))
    play = Play(snapshot_of(library=(replace(held, is_held=False),)))
    play.go("4", held.name)
    play.in_vain("s")
