"""`y`, `p`, `O` and `u` on the real screen."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from pathlib import Path

import pytest

from aileron_core.console_port.devices import DevicesUpdated
from aileron_core.console_port.field_views import FieldView, PreviewView
from tests.screen.driving import Console, resting
from tests.support.screens.calls import HOSTILE
from tests.support.screens.home import devices
from tests.support.screens.play import Play, rested
from tests.support.screens.port import LINK
from tests.support.screens.states import NOW, mail, short, start

INVOICE = PreviewView(
    status="ready",
    fields=(
        FieldView(label="To", value="sam@helio.example"),
        FieldView(label="Body", value=HOSTILE, multiline=True),
    ),
    host="h.example",
    updated_at=NOW,
)


def copied(play: Play) -> list[str]:
    return [text for what, text in play.asked_of_app if what == "copy"]


def test_y_copies_the_fields_in_view_one_by_one_as_they_are_drawn() -> None:
    play = rested(start(mail(preview=INVOICE)))
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
    """There is no field in a list to be copied. A copy that terminals may drop is said to be too long."""
    play = Play(start(short()))
    play.go("2", "Newest first.")
    assert "y copy" not in play.keys
    play.go("enter", "HISTORY")
    play.go("y", "Copied")
    assert copied(play)
    long = replace(INVOICE, fields=(FieldView(label="Log", value="x" * 90_000, multiline=True),))
    play = rested(start(mail(preview=long)))
    play.go("y", "90 kB may be more than the terminal accepts.")


def test_u_shows_code_points_and_unfolds_and_keys_rest_anew() -> None:
    play = Play(start(mail(preview=INVOICE)), size=(200, 60))
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
    plain = rested(start(short()))
    assert "code points" not in plain.keys
    plain.press_alone("u")
    assert not plain.model.unfolded


Beside = Callable[[str], AbstractAsyncContextManager[Console]]


@pytest.fixture
def beside_a_browser(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Beside:
    """Return what runs a console in *tmp_path*, beside a browser that its script starts."""

    def console(script: str) -> AbstractAsyncContextManager[Console]:
        opener = tmp_path / "xdg-open"
        opener.write_text(f"#!/bin/sh\n{script}")
        opener.chmod(0o700)
        (tmp_path / "run").mkdir()
        monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
        state = replace(start(short()), home=str(tmp_path))
        return resting(state, environment={"DISPLAY": ":0"}, answers=True)

    return console


@pytest.mark.parametrize("over", ["redeemed", "late", "quit"])
async def test_the_browser_is_led_to_the_link_by_a_private_file_that_is_deleted(
    tmp_path: Path, beside_a_browser: Beside, over: str
) -> None:
    """The secret stands in no argument; the file goes once the link is redeemed or over, and at the end."""
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
    state = replace(start(short()), home=str(tmp_path))
    async with resting(state, environment={}, answers=True) as shown:
        await shown.go("O", "No browser can be opened from here.")
        assert LINK.partition("#")[2][:4] in shown.text
    assert not (tmp_path / "run").exists()
