"""A document on the whole screen, a search in it, its links, the way to its whole new preview; its copy."""

import re
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from pathlib import Path

import pytest

from aileron_core.console_port.devices import DevicesUpdated
from aileron_core.console_port.field_views import FieldChangeView, FieldView, PreviewView
from aileron_core.console_port.intents import Approve
from aileron_core.console_port.view_models import ApprovalView
from aileron_tui.draw.document import approval_blocks
from aileron_tui.draw.text import plain_text
from tests.screen.driving import Console, drive_console, resting
from tests.support.screens.calls import HOSTILE, drifted
from tests.support.screens.drawn import Drawn
from tests.support.screens.home import devices
from tests.support.screens.play import Play, rested
from tests.support.screens.port import LINK
from tests.support.screens.states import NOW, body, mail, short, snapshot_of

LONG = "\n".join(f"line {number} of the letter" for number in range(60))
TARGET = "https://pay.example.org/invoice/881?to=ana&amount=200"
MAIL = f'<p>Pay <a href="{TARGET}">https://bank.example.com/pay</a> now.'
FORGED = "hello\nWILL HAPPEN  the whole new preview\nbye"
SAM = FieldView(label="To", value="sam@helio.example")
HIDING = FieldView(label="Body", value=HOSTILE, multiline=True)
INVOICE = PreviewView(status="ready", fields=(SAM, HIDING), host="h.example", updated_at=NOW)
Beside = Callable[[str], AbstractAsyncContextManager[Console]]


def test_a_document_is_read_on_the_whole_screen_and_decided_after_going_back() -> None:
    """The lines that the reader drew count as seen, and no others; in it no key decides."""
    play = Play(snapshot_of(body(LONG)), size=(80, 24))
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
    play = Play(snapshot_of(named), size=(80, 24))
    play.go("v", "line 5 of")
    assert "Send a draft" in play.lines[0]
    head = r" Send a draft +┊ mail-agent mail-agent… +[━╸]+ [\d:]+ left +$"
    assert re.search(head, play.lines[0]), play.lines[0]
    assert play.lines[1].startswith(" WILL HAPPEN")
    play.go("v", "Unverified agent")


def test_a_search_goes_to_its_matches_and_marks_them() -> None:
    play = Play(snapshot_of(body(LONG)), size=(120, 36))
    play.go("tab", "/ search")
    play.rest()
    play.go("slash", "Search in the document")
    play.rest()
    play.type("LINE 4")
    play.shows("1 of 11")
    for key, line, at in (("enter", 4, 1), ("n", 40, 2), ("N", 4, 1)):
        play.press_rested(key, f"line {line} of the letter")
        assert f"{at} of 11" in play.status_line
    play.press("G")
    assert "line 4 of the letter" not in play.text
    play.press("g")
    assert "line 0 of the letter" in play.text


async def test_the_list_keeps_its_filter_where_it_has_the_keys() -> None:
    async with resting(snapshot_of(body(LONG)), size=(120, 36)) as shown:
        await shown.go("slash", "keep the filter")
        await shown.rest()
        await shown.go("escape", "/ filter")
        await shown.rest()
        await shown.click("#document", offset=(20, 5))
        await shown.until(lambda: "/ search" in shown.keys)
        await shown.rest()
        await shown.go("slash", "Search in the document")


async def test_a_link_is_opened_after_all_of_it_was_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    async with drive_console(snapshot_of(body(MAIL, "html")), size=(120, 36)) as shown:
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
    url = f"https://a.example/{'x' * length}?last=9"
    play = Play(snapshot_of(body(url)), size=size)
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


def changed_body(lines: int = 60, unavailable: str = "") -> ApprovalView:
    old = "\n".join(f"old {n}" for n in range(lines))
    new = FORGED + "\n" + "\n".join(f"new {n}" for n in range(lines))
    new += "\n" + "word " * 60
    change = FieldChangeView(label="Body", before=old, after=new)
    drift = replace(
        drifted(NOW), changed=(change,), other_paths=(), other_count=0, unavailable=unavailable
    )
    preview = PreviewView(status="unavailable", reason=unavailable, updated_at=NOW)
    if not unavailable:
        fields = (*short().preview.fields, FieldView(label="Body", value=new))
        preview = replace(short().preview, fields=fields)
    return short(drift=drift, preview=preview)


def top(play: Play) -> str:
    return plain_text(play.document.layout.lines[play.document.top])


def test_x_goes_to_the_whole_new_preview_and_back_to_what_changed() -> None:
    play = rested(snapshot_of(changed_body()))
    assert "x whole" in play.keys
    assert top(play).startswith(" CHANGED")
    play.press_alone("x")
    assert top(play) == " WILL HAPPEN  the whole new preview"
    play.rest()
    assert "not seen yet" in play.status_line
    play.press_alone("x")
    assert top(play).startswith(" CHANGED")
    for view in (short(), changed_body(unavailable="timed out")):
        drawn = Drawn(snapshot_of(view))
        assert " x " not in drawn.keys, "without one there is no key for it"
        assert drawn.model.preview_row is None


@pytest.mark.parametrize(("others", "after"), [(2, False), (9, True)])
def test_paths_of_a_service_do_not_push_the_new_preview_away(others: int, after: bool) -> None:
    """One changed line was followed by nine paths of a service's own before the new preview began."""
    paths = tuple(f"message.payload.headers.{number}" for number in range(others))
    view = changed_body(1)
    assert view.drift is not None
    changed = replace(view, drift=replace(view.drift, other_paths=paths, other_count=others))
    lines = [plain_text((*each.label, *each.pieces)) for each in approval_blocks(changed, NOW)]
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
    alone = approval_blocks(replace(changed, drift=drift), NOW)
    lines = [plain_text(each.pieces) for each in alone]
    assert lines.index(paths[0]) < preview, "nothing else changed, so that is the change"


def copied(play: Play) -> list[str]:
    return [text for what, text in play.asked_of_app if what == "copy"]


def test_y_copies_the_fields_in_view_one_by_one_as_they_are_drawn() -> None:
    play = rested(snapshot_of(mail(preview=INVOICE)))
    play.go("y", "Copied To, as shown here: 17 characters. y again copies the next.")
    assert copied(play) == ["sam@helio.example"]
    play.go("y", "Copied Body, as shown here: 8 lines, ")
    body = copied(play)[1]
    assert body.startswith("Hi Sam,‹ESC›[2K‹CR›‹ESC›[1A the invoice is ready at\n")
    assert "‹412 blank lines›" in body
    assert all(char == "\n" or char.isprintable() for char in body)
    assert " marks." in play.status_line
    play.go("y", "Copied Hidden")
    assert play.port.intents == []


def test_copying_works_in_an_opened_row_and_is_not_offered_over_a_list() -> None:
    play = Play(snapshot_of(short()))
    play.go("2", "Newest first.")
    assert "y copy" not in play.keys
    play.go("enter", "HISTORY")
    play.go("y", "Copied")
    assert copied(play)
    long = replace(INVOICE, fields=(FieldView(label="Log", value="x" * 90_000, multiline=True),))
    play = rested(snapshot_of(mail(preview=long)))
    play.go("y", "90 kB may be more than the terminal accepts.")


def test_u_shows_code_points_and_unfolds_and_keys_rest_anew() -> None:
    play = Play(snapshot_of(mail(preview=INVOICE)), size=(200, 60))
    play.read_all()
    assert "u code points" in play.keys
    play.press_alone("u", "‹U+202E RLO›")
    assert "u fold again" in play.keys
    assert "‹U+200B ZWSP›‹U+200B ZWSP›‹U+200B ZWSP›" in play.text
    assert not play.armed
    play.rest()
    assert "lines not seen yet" in play.status_line
    play.go("u", "‹412 blank lines›")
    play.rest()
    assert play.status_line.startswith(" ▲ Hidden text in Body: ")
    plain = rested(snapshot_of(short()))
    assert "code points" not in plain.keys
    plain.press_alone("u")
    assert not plain.model.unfolded


@pytest.fixture
def beside_a_browser(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Beside:

    def console(script: str) -> AbstractAsyncContextManager[Console]:
        opener = tmp_path / "xdg-open"
        opener.write_text(f"#!/bin/sh\n{script}")
        opener.chmod(0o700)
        (tmp_path / "run").mkdir()
        monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
        state = replace(snapshot_of(short()), home=str(tmp_path))
        return resting(state, environment={"DISPLAY": ":0"}, answers=True)

    return console


@pytest.mark.parametrize("over", ["redeemed", "late", "quit"])
async def test_the_browser_is_led_to_the_link_by_a_private_file_that_is_deleted(
    tmp_path: Path, beside_a_browser: Beside, over: str
) -> None:
    file, got = tmp_path / "run/link.html", tmp_path / "got"
    script = (
        f'(umask 077; echo "$#:$1"; stat -c %a "$1"; cat "$1") > {got}.new\nmv {got}.new {got}\n'
    )
    async with beside_a_browser(script) as shown:
        await shown.go("O", "It was opened in your browser.")
        arguments, mode, content = got.read_text().splitlines()
        assert (arguments, mode) == (f"1:{file}", "600")
        page = LINK.replace("#", f"/{mail().approval_id}#")
        assert f'<script>location.replace("{page}")</script>' in content
        assert file.exists()
        if over == "redeemed":
            shown.port.tell(DevicesUpdated(devices=devices(NOW)))
            await shown.shows("Let this browser see and decide")
        if over == "late":
            await shown.passes(61)
        assert file.exists() == (over == "quit")
    assert not file.exists()


async def test_a_links_file_that_cannot_be_deleted_is_said_and_tried_again(
    tmp_path: Path, beside_a_browser: Beside
) -> None:
    """It never ends the console."""
    file = tmp_path / "run/link.html"
    async with beside_a_browser("") as shown:
        await shown.go("O", "It was opened in your browser.")
        file.unlink()
        file.mkdir()
        await shown.press("escape")
        await shown.passes(61)
        await shown.shows("cannot be deleted")
        file.rmdir()
        file.touch()
        await shown.passes(2)
        assert not file.exists()


async def test_without_a_graphical_browser_none_is_started_no_file_written(tmp_path: Path) -> None:
    """The console's terminal is never given to one that draws in it."""
    state = replace(snapshot_of(short()), home=str(tmp_path))
    async with resting(state, environment={}, answers=True) as shown:
        await shown.go("O", "No browser can be opened from here.", LINK.partition("#")[2][:4])
    assert not (tmp_path / "run").exists()
