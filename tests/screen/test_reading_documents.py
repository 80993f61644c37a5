"""A document on the whole screen, a search in it, and its links."""

import re
from dataclasses import replace

import pytest

from aileron_core.console_port.intents import Approve
from tests.screen.driving import console, resting, start
from tests.support.screens.play import Play
from tests.support.screens.states import body

LONG = "\n".join(f"line {number} of the letter" for number in range(60))
TARGET = "https://pay.example.org/invoice/881?to=ana&amount=200"
MAIL = f'<p>Pay <a href="{TARGET}">https://bank.example.com/pay</a> now.'


def test_a_document_is_read_on_the_whole_screen_and_decided_after_going_back() -> None:
    """The lines that the reader drew count as seen; in it no key decides."""
    play = Play(start(body(LONG)), size=(80, 24))
    before = play.document.height
    play.go("v", "line 5 of")
    assert play.document.height >= before + 4
    assert play.document.height >= 20
    for _ in range(8):
        play.rest()
        play.press("space")
    play.rest()
    play.press("g")
    play.until(lambda: "✓ All seen. esc goes back" in play.status_line)
    play.rest()
    play.press("a")
    play.until(lambda: "this page is only for reading; esc goes back" in play.status_line)
    assert play.asked(Approve) == []
    play.rest()
    play.press("escape")
    play.until(lambda: play.document.height == before)
    play.press_rested("a")
    play.until(lambda: len(play.asked(Approve)) == 1)


def test_the_reader_says_which_call_it_shows() -> None:
    """Action, agent and deadline; a name that only the agent gave stands behind its bar, and is cut."""
    named = replace(body(LONG), title="Send a draft", agent="mail-agent " * 9, self_opened=True)
    play = Play(start(named), size=(80, 24))
    play.go("v", "line 5 of")
    play.until(lambda: "Send a draft" in play.lines[0])
    head = r" Send a draft +┊ mail-agent mail-agent… +[━╸]+ [\d:]+ left +$"
    assert re.search(head, play.lines[0]), play.lines[0]
    assert play.lines[1].startswith(" WILL HAPPEN")
    play.go("v", "Unverified agent")


def test_what_the_reader_did_not_show_is_not_seen() -> None:
    play = Play(start(body(LONG)), size=(80, 24))
    play.go("v", "line 5 of")
    play.rest()
    play.press("v")
    play.press_rested("a")
    play.quiet()
    assert play.asked(Approve) == []
    assert "unread" in play.text or "not seen" in play.text


def test_a_search_goes_to_its_matches_and_marks_them() -> None:
    play = Play(start(body(LONG)), size=(120, 36))
    play.go("tab", "/ search")
    play.rest()
    play.go("slash", "Search in the document")
    play.rest()
    play.type("LINE 4")
    play.until(lambda: "1 of 11" in play.text)
    assert "line 4 of the letter" in play.text
    play.rest()
    play.press("enter")
    play.until(lambda: "1 of 11" in play.status_line)
    play.rest()
    play.press("n")
    play.until(lambda: "line 40 of the letter" in play.text)
    play.until(lambda: "2 of 11" in play.status_line)
    play.press("N")
    play.until(lambda: "line 4 of the letter" in play.text)
    play.press("G")
    play.until(lambda: "line 4 of the letter" not in play.text)
    play.press("g")
    play.until(lambda: "line 0 of the letter" in play.text)


async def test_the_list_keeps_its_filter_where_it_has_the_keys() -> None:
    """A click gives them to the document."""
    async with resting(start(body(LONG)), size=(120, 36)) as shown:
        await shown.go("slash", "keep the filter")
        await shown.rest()
        await shown.go("escape", "/ filter")
        await shown.rest()
        await shown.click("#document", offset=(20, 5))
        await shown.until(lambda: "/ search" in shown.keys)
        await shown.rest()
        await shown.go("slash", "Search in the document")


@pytest.mark.parametrize("click", [False, True])
async def test_a_link_is_opened_after_all_of_it_was_shown(
    monkeypatch: pytest.MonkeyPatch, click: bool
) -> None:
    """The first press shows where it leads, the second opens it; another key leaves it."""
    async with console(start(body(MAIL, "html")), size=(120, 36)) as shown:
        opened: list[str] = []
        monkeypatch.setattr(shown.app._handoff, "open_link", opened.append)
        assert "‹leads to pay.example.org›" in shown.text
        assert "u source" in shown.keys
        if click:
            lines = shown.lines
            row = next(n for n, each in enumerate(lines) if "https://bank" in each)
            await shown.click(offset=(lines[row].index("https://bank") + 2, row))
        else:
            await shown.press("L")
        assert "It leads to pay.example.org." in shown.text
        assert TARGET in shown.text
        assert opened == []
        await shown.rest()
        await shown.press("escape")
        assert opened == []
        assert TARGET not in shown.text
        await shown.rest()
        await shown.press("L")
        await shown.rest()
        await shown.press("enter")
        await shown.quiet()
        assert opened == [TARGET]


@pytest.mark.parametrize(("size", "length"), [((60, 16), 600), ((80, 24), 600), ((120, 36), 6000)])
def test_a_link_that_cannot_be_shown_whole_is_not_opened(
    size: tuple[int, int], length: int
) -> None:
    """What is opened was on screen to its last character; the keys stay in view either way."""
    url = f"https://a.example/{'x' * length}?last=9"
    play = Play(start(body(url)), size=size)
    play.press("L")
    play.rest()
    whole = "?last=9" in "".join(play.text.split()).partition("Openthisaddress")[2]
    assert "leads to a.example" in " ".join(play.text.split())
    assert "esc cancel" in play.text
    assert whole == ("too long for this window" not in play.text)
    play.press("enter")
    play.quiet()
    assert play.asked_of_app == ([("link", url)] if whole else [])
    assert whole == (length == 600 and size[1] > 16)
