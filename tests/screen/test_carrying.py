"""`y`, `p`, `O` and `u` on the real screen."""

import base64
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from aileron_core.console_port.field_views import FieldView, PreviewView
from tests.screen.driving import NOW, Console, mail, resting, short, start
from tests.support.screens.calls import HOSTILE
from tests.support.screens.play import Play, rested

INVOICE = PreviewView(
    status="ready",
    fields=(
        FieldView(label="To", value="sam@helio.example"),
        FieldView(label="Body", value=HOSTILE, multiline=True),
    ),
    host="h.example",
    updated_at=NOW,
)


def listen(shown: Console) -> list[str]:
    """Return the list of what is written to the terminal from now on."""
    written: list[str] = []
    driver = shown.app._driver
    assert driver is not None
    driver.write = written.append
    shown.app.send = written.append  # headless, the App sends nothing of its own
    return written


def copied(play: Play) -> list[str]:
    return [text for what, text in play.asked_of_app if what == "copy"]


def test_y_copies_the_fields_in_view_one_by_one_as_they_are_drawn() -> None:
    """The status line says which, how much, and that marks are in it; the raw text never leaves."""
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


async def test_a_copy_goes_around_tmux_as_well() -> None:
    """tmux takes the plain sequence only where it is told to; the wrapped one it hands on."""
    async with resting(start(mail()), environment={"TMUX": "/tmp/tmux-0/default,1,0"}) as shown:
        written = listen(shown)
        await shown.go("y", "Copied To")
        text = "".join(written)
        plain = base64.b64encode(b"priya.nair@northwind.example\njonas.weber@northwind.example")
        assert f"\x1b]52;c;{plain.decode()}\x07" in text
        assert f"\x1bPtmux;\x1b\x1b]52;c;{plain.decode()}\x07\x1b\\" in text


def test_copying_works_in_an_opened_row_and_is_not_offered_over_a_list() -> None:
    """There is no field in a list to be copied."""
    play = Play(start(short()))
    play.go("2", "Newest first.")
    assert "y copy" not in play.keys
    play.go("enter", "HISTORY")
    play.go("y", "Copied")
    assert copied(play)


def test_a_copy_that_terminals_drop_is_said_to_be_too_long() -> None:
    """A silent failure would be believed."""
    long = replace(INVOICE, fields=(FieldView(label="Log", value="x" * 90_000, multiline=True),))

    play = rested(start(mail(preview=long)))
    play.go("y", "90 kB may be more than the terminal accepts.")


def test_u_shows_code_points_and_unfolds_and_keys_rest_anew() -> None:
    """What is drawn differs, so what was read counts for the other form alone."""
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


def test_u_is_offered_only_where_something_is_marked(play: Play) -> None:
    """No dead keys."""
    assert "code points" not in play.keys
    play.press_alone("u")
    assert not play.model.unfolded


async def test_o_opens_the_page_of_the_call_at_the_consoles_own_address(tmp_path: Path) -> None:
    """One word, made here; nothing of the agent's is in it."""
    opener = tmp_path / "xdg-open"
    opener.write_text(f'#!/bin/sh\nprintf "%s" "$*" > {tmp_path}/got\n')
    opener.chmod(opener.stat().st_mode | stat.S_IXUSR)
    got = tmp_path / "got"

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", str(tmp_path), prepend=":")
        async with resting(start(short()), environment={"DISPLAY": ":0"}) as shown:
            await shown.go("O", "Opened http://127.0.0.1:8517/review/act-")
            assert got.read_text() == f"http://127.0.0.1:8517/review/{mail().approval_id}"


async def test_without_a_browser_the_address_is_said() -> None:
    """The console's terminal is never given to one that draws in it."""
    async with resting(start(short()), environment={}) as shown:
        url = f"http://127.0.0.1:8517/review/{mail().approval_id}"
        await shown.go("O", f"{url} (no browser here)")
