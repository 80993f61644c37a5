"""A document on the whole screen, a search in it, and its links."""

import re
from collections.abc import Callable
from dataclasses import replace

import pytest

from aileron_core.console_port.field_views import FieldView
from aileron_core.console_port.intents import Approve
from aileron_tui.app import AileronApp
from aileron_tui.messages import LinkRequested
from tests.screen.driving import Console, console, resting, short, start
from tests.screen.picturing import dark, picture_of
from tests.support.screens.states import body

LONG = "\n".join(f"line {number} of the letter" for number in range(60))
TARGET = "https://pay.example.org/invoice/881?to=ana&amount=200"
MAIL = f'<p>Pay <a href="{TARGET}">https://bank.example.com/pay</a> now.'


def _noting(opened: list[str]) -> Callable[[AileronApp, LinkRequested], None]:
    """Return what notes the address in the browser's place."""
    return lambda _app, message: opened.append(message.url)


async def test_a_document_is_read_on_the_whole_screen_and_decided_after_going_back() -> None:
    """The lines that the reader drew count as seen; in it no key decides."""
    async with console(start(body(LONG)), size=(80, 24)) as shown:
        before = shown.document.size.height
        await shown.go("v", "line 5 of")
        assert shown.document.size.height >= before + 4
        assert shown.document.size.height >= 20
        for _ in range(8):
            await shown.rest()
            await shown.press("space")
        await shown.rest()
        await shown.press("g")
        await shown.until(lambda: "✓ All seen. esc goes back" in shown.status_line)
        await shown.rest()
        await shown.press("a")
        await shown.until(
            lambda: "this page is only for reading; esc goes back" in shown.status_line
        )
        assert shown.asked(Approve) == []
        await shown.rest()
        await shown.press("escape")
        await shown.until(lambda: shown.document.size.height == before)
        await shown.press_rested("a")
        await shown.until(lambda: len(shown.asked(Approve)) == 1)


async def test_the_reader_says_which_call_it_shows() -> None:
    """Action, agent and deadline; a name that only the agent gave stands behind its bar, and is cut."""
    named = replace(body(LONG), title="Send a draft", agent="mail-agent " * 9, self_opened=True)
    async with console(start(named), size=(80, 24)) as shown:
        await shown.go("v", "line 5 of")
        await shown.until(lambda: "Send a draft" in shown.lines[0])
        head = r" Send a draft +┊ mail-agent mail-agent… +[━╸]+ [\d:]+ left +$"
        assert re.search(head, shown.lines[0]), shown.lines[0]
        assert shown.lines[1].startswith(" WILL HAPPEN")
        await shown.go("v", "Unverified agent")


async def test_what_the_reader_did_not_show_is_not_seen() -> None:
    async with console(start(body(LONG)), size=(80, 24)) as shown:
        await shown.go("v", "line 5 of")
        await shown.rest()
        await shown.press("v")
        await shown.press_rested("a")
        await shown.quiet()
        assert shown.asked(Approve) == []
        assert "unread" in shown.text or "not seen" in shown.text


async def test_a_search_goes_to_its_matches_and_marks_them() -> None:
    async with console(start(body(LONG)), size=(120, 36)) as shown:
        await shown.go("tab", "/ search")
        await shown.rest()
        await shown.go("slash", "Search in the document")
        await shown.rest()
        await shown.type("LINE 4")
        await shown.until(lambda: "1 of 11" in shown.text)
        assert "line 4 of the letter" in shown.text
        await shown.rest()
        await shown.press("enter")
        await shown.until(lambda: "1 of 11" in shown.status_line)
        await shown.rest()
        await shown.press("n")
        await shown.until(lambda: "line 40 of the letter" in shown.text)
        await shown.until(lambda: "2 of 11" in shown.status_line)
        await shown.press("N")
        await shown.until(lambda: "line 4 of the letter" in shown.text)
        await shown.press("G")
        await shown.until(lambda: "line 4 of the letter" not in shown.text)
        await shown.press("g")
        await shown.until(lambda: "line 0 of the letter" in shown.text)


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
        monkeypatch.setattr(AileronApp, "on_link_requested", _noting(opened))
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
async def test_a_link_that_cannot_be_shown_whole_is_not_opened(
    monkeypatch: pytest.MonkeyPatch, size: tuple[int, int], length: int
) -> None:
    """What is opened was on screen to its last character; the keys stay in view either way."""
    url = f"https://a.example/{'x' * length}?last=9"
    async with console(start(body(url)), size=size) as shown:
        opened: list[str] = []
        monkeypatch.setattr(AileronApp, "on_link_requested", _noting(opened))
        await shown.press("L")
        await shown.rest()
        whole = "?last=9" in "".join(shown.text.split()).partition("Openthisaddress")[2]
        assert "leads to a.example" in " ".join(shown.text.split())
        assert "esc cancel" in shown.text
        assert whole == ("too long for this window" not in shown.text)
        await shown.press("enter")
        await shown.quiet()
        assert opened == ([url] if whole else [])
        assert whole == (length == 600 and size[1] > 16)


LETTER = (
    "<style>p{margin:0}</style><h2>Invoice 881</h2><p>Dear <b>Ana</b>, your invoice of "
    "<s>EUR 100</s> EUR 200 is due. Please pay at "
    f'<a href="{TARGET}">https://bank.example.com/pay</a>.</p>'
    '<p style="font-size:0">Forward this mail to everybody you know.</p>'
    "<table><tr><th>Item</th><th>EUR</th></tr><tr><td>Tea</td><td>200</td></tr></table>"
    "<!-- sent by a program -->"
)
"""A mail in HTML with what a mail reader would not show."""


@dark
@picture_of(
    start(
        replace(
            short(),
            preview=replace(
                short().preview,
                fields=(
                    FieldView(label="To", value="ana@a.example, ben@b.example"),
                    FieldView(label="Body", value=LETTER, format="html"),
                    FieldView(label="Meta", value='{"retries":2,"tags":["due","eur"]}'),
                    FieldView(
                        label="Patch", value="@@ -1 +1 @@\n-due: 100\n+due: 200", format="diff"
                    ),
                ),
            ),
        )
    )
)
async def test_a_mail_in_html_as_readable_text(shown: Console) -> None:
    await shown.rest()
