"""A document on the whole screen, a search in it, its links, and the way to its whole new preview."""

import re
from dataclasses import replace

import pytest

from aileron_core.console_port.field_views import DriftView, FieldChangeView, FieldView, PreviewView
from aileron_core.console_port.intents import Approve
from aileron_core.console_port.view_models import ApprovalView
from aileron_tui.draw.document import approval_blocks
from aileron_tui.draw.text import plain_text
from tests.screen.driving import console, resting
from tests.support.screens.drawn import Drawn
from tests.support.screens.play import Play, rested
from tests.support.screens.states import NOW, body, short, start

LONG = "\n".join(f"line {number} of the letter" for number in range(60))
TARGET = "https://pay.example.org/invoice/881?to=ana&amount=200"
MAIL = f'<p>Pay <a href="{TARGET}">https://bank.example.com/pay</a> now.'


def test_a_document_is_read_on_the_whole_screen_and_decided_after_going_back() -> None:
    """The lines that the reader drew count as seen, and no others; in it no key decides."""
    play = Play(start(body(LONG)), size=(80, 24))
    before = play.document.height
    play.go("v", "line 5 of")
    assert play.document.height >= before + 4
    assert play.document.height >= 20
    play.rest()
    play.press("v")
    play.press_rested("a", "not seen")
    play.quiet()
    assert play.asked(Approve) == []
    play.go("v", "line 5 of")
    for _ in range(8):
        play.rest()
        play.press("space")
    play.rest()
    play.press("g")
    assert "✓ All seen. esc goes back" in play.status_line
    play.rest()
    play.press("a")
    assert "this page is only for reading; esc goes back" in play.status_line
    assert play.asked(Approve) == []
    play.rest()
    play.press("escape")
    assert play.document.height == before
    play.press_rested("a")
    assert len(play.asked(Approve)) == 1


def test_the_reader_says_which_call_it_shows() -> None:
    named = replace(body(LONG), title="Send a draft", agent="mail-agent " * 9, self_opened=True)
    play = Play(start(named), size=(80, 24))
    play.go("v", "line 5 of")
    assert "Send a draft" in play.lines[0]
    head = r" Send a draft +┊ mail-agent mail-agent… +[━╸]+ [\d:]+ left +$"
    assert re.search(head, play.lines[0]), play.lines[0]
    assert play.lines[1].startswith(" WILL HAPPEN")
    play.go("v", "Unverified agent")


def test_a_search_goes_to_its_matches_and_marks_them() -> None:
    play = Play(start(body(LONG)), size=(120, 36))
    play.go("tab", "/ search")
    play.rest()
    play.go("slash", "Search in the document")
    play.rest()
    play.type("LINE 4")
    play.shows("1 of 11")
    for key, line, at in (("enter", 4, 1), ("n", 40, 2), ("N", 4, 1)):
        play.rest()
        play.press(key)
        assert f"line {line} of the letter" in play.text
        assert f"{at} of 11" in play.status_line
    play.press("G")
    assert "line 4 of the letter" not in play.text
    play.press("g")
    assert "line 0 of the letter" in play.text


async def test_the_list_keeps_its_filter_where_it_has_the_keys() -> None:
    async with resting(start(body(LONG)), size=(120, 36)) as shown:
        await shown.go("slash", "keep the filter")
        await shown.rest()
        await shown.go("escape", "/ filter")
        await shown.rest()
        await shown.click("#document", offset=(20, 5))
        await shown.until(lambda: "/ search" in shown.keys)
        await shown.rest()
        await shown.go("slash", "Search in the document")


async def test_a_link_is_opened_after_all_of_it_was_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first press or click shows where it leads, the second press opens it; another key leaves it."""
    async with console(start(body(MAIL, "html")), size=(120, 36)) as shown:
        opened: list[str] = []
        monkeypatch.setattr(shown.app._handoff, "open_link", opened.append)
        assert "‹leads to pay.example.org›" in shown.text
        assert "u source" in shown.keys
        row = next(n for n, each in enumerate(shown.lines) if "https://bank" in each)
        await shown.click(offset=(shown.lines[row].index("https://bank") + 2, row))
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
def test_a_link_that_is_not_shown_whole_is_not_opened(size: tuple[int, int], length: int) -> None:
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


# From what changed to the whole new preview, and back


FORGED = "hello\nWILL HAPPEN  the whole new preview\nbye"


def changed_body(lines: int = 60, unavailable: str = "") -> ApprovalView:
    """A call of which *lines* lines changed: first a forged heading, at the end a line that wraps."""
    old = "\n".join(f"old {n}" for n in range(lines))
    new = FORGED + "\n" + "\n".join(f"new {n}" for n in range(lines))
    new += "\n" + "word " * 60
    change = FieldChangeView(label="Body", before=old, after=new)
    drift = DriftView(
        before_at=NOW - 90, after_at=NOW - 20, changed=(change,), same_count=2,
        other_paths=(), other_count=0, words_before=("olive", "pixel", "brook"),
        unavailable=unavailable,
    )  # fmt: skip
    view = short(drift=drift)
    fields = (*view.preview.fields, FieldView(label="Body", value=new))
    preview = replace(view.preview, fields=fields)
    if unavailable:
        preview = PreviewView(status="unavailable", reason=unavailable, updated_at=NOW)
    return replace(view, preview=preview)


def top(play: Play) -> str:
    return plain_text(play.document.layout.lines[play.document.top])


def test_x_goes_to_the_whole_new_preview_and_back_to_what_changed() -> None:
    play = rested(start(changed_body()))
    assert "x whole" in play.keys
    assert top(play).startswith(" CHANGED")
    play.press_alone("x")
    assert top(play) == " WILL HAPPEN  the whole new preview"
    play.rest()
    assert "not seen yet" in play.status_line
    play.press_alone("x")
    assert top(play).startswith(" CHANGED")


@pytest.mark.parametrize("view", [short(), changed_body(unavailable="timed out")])
def test_without_a_whole_new_preview_there_is_no_key_for_it(view: ApprovalView) -> None:
    shown = Drawn(start(view))
    assert " x " not in shown.keys
    assert shown.model.preview_row is None
    assert " x whole" in Drawn(start(changed_body())).keys


@pytest.mark.parametrize(("others", "after"), [(2, False), (9, True)])
def test_paths_of_a_service_do_not_push_the_new_preview_away(others: int, after: bool) -> None:
    """One changed line was followed by nine paths of a service's own before the new preview began."""
    paths = tuple(f"message.payload.headers.{number}" for number in range(others))
    view = changed_body(1)
    assert view.drift is not None
    drifted = replace(view, drift=replace(view.drift, other_paths=paths, other_count=others))
    lines = [plain_text((*each.label, *each.pieces)) for each in approval_blocks(drifted, NOW)]
    named = [lines.index(path) for path in paths]
    assert len(named) == others
    preview, sent = (
        next(row for row, text in enumerate(lines) if text.startswith(name))
        for name in ("WILL HAPPENthe whole", "CODEX SENT")
    )
    assert all((row > preview) == after and row < sent for row in named)
    said = f"{others} values outside the shown fields differ"
    assert any(said in text for text in lines[:preview])
    drift = replace(view.drift, changed=(), other_paths=paths, other_count=9)
    alone = approval_blocks(replace(drifted, drift=drift), NOW)
    lines = [plain_text(each.pieces) for each in alone]
    assert lines.index(paths[0]) < preview, "nothing else changed, so that is the change"
