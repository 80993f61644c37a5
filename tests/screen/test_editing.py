"""A call's arguments as a form: what is typed, what is sent, and what becomes of it."""

from dataclasses import replace

import pytest
from textual.events import Paste

from aileron_core.console_port.events import ApprovalUpdated, IntentRefused
from aileron_core.console_port.field_views import FieldView, PreviewView
from aileron_core.console_port.intents import EditCall
from tests.screen.driving import drive_console
from tests.support.screens.play import Play
from tests.support.screens.states import NOW, short, snapshot_of

BODY = "Hi [b]Sam[/b],\n\nthe offer stands until \u202eFriday.\u202c\n\nBest,\nAna"
SUBJECT = FieldView(name="subject", label="Subject", value="Offer 2291")
INPUTS = (
    FieldView(name="to", label="To", value="sam@helio.example", shape="lines", multiline=True),
    SUBJECT,
    FieldView(name="body", label="Body", value=BODY, multiline=True),
    FieldView(name="days", label="days", missing=True, shape="json"),
    FieldView(name="cc", label="\x1b[2KRECORD ┃ approved", missing=True),
)
VIEW = short(1, inputs=INPUTS)


def opened_form(size: tuple[int, int] = (80, 24)) -> Play:
    play = Play(snapshot_of(VIEW), size)
    play.press_rested("e", "Change the call before you answer it:")
    return play


def typed(play: Play, row: int, *keys: str, keep: str = "enter") -> None:
    """Go down to the *row*th argument from the first, and press *keys* in its field."""
    for each in ["k"] * 9 + ["j"] * row + ["enter", *keys, keep]:
        play.clock.advance(0.1)
        play.press(each)


def send_form(play: Play) -> None:
    play.clock.advance(0.1)
    play.press("ctrl+s")


@pytest.mark.parametrize("size", [(80, 24), (120, 36)], ids=str)
def test_only_what_was_typed_is_sent_and_marks_stand_for_characters(size: tuple[int, int]) -> None:
    play = opened_form(size)
    play.shows("Hi [b]Sam[/b],‹LF×2›")
    assert size[0] > 110 or "Body      ┊ Hi [b]Sam[/b],‹LF×2›" in play.text
    typed(play, 2, keep="ctrl+s")
    assert "ctrl+s" not in play.keys
    typed(play, 2, "!", keep="ctrl+s")
    typed(play, 3, "7")
    play.shows("+ Ana!")
    send_form(play)
    changes = {"body": f"{BODY}!", "days": 7}
    play.asks(EditCall(approval_id=VIEW.approval_id, digest=VIEW.digest, args=changes))
    play.shows("Checking what you changed")


def test_hidden_characters_can_be_read_and_taken_out() -> None:
    play = opened_form()
    typed(play, 2, keep="x")
    play.shows("the offer stands until ‹U+202E RLO›Friday.‹U+202C PDF›")
    kept = play.area.value.removesuffix("x").replace("‹U+202E RLO›", "")
    play.area.put(kept.replace("‹U+202C PDF›", ""))
    send_form(play)
    send_form(play)
    clean = BODY.replace("\u202e", "").replace("\u202c", "")
    assert play.asks_for(EditCall).args == {"body": clean}
    assert "\x1b" not in play.text


def test_a_refused_edit_says_why_and_keeps_what_was_typed() -> None:
    play = opened_form()
    typed(play, 3, "s", "o", "o", "n")
    typed(play, 1, "ctrl+u")
    send_form(play)
    assert play.asks_for(EditCall).args == {"subject": None, "days": "soon"}
    why = 'Invalid arguments: "days" must be an integer, not a string.'
    play.port.tell(IntentRefused(call_id=VIEW.approval_id, message=why))
    play.shows('"days" must be an integer', "+ soon")
    send_form(play)
    assert len(play.port.intents) == 2


def test_the_form_says_what_becomes_of_its_call_and_closes_once_it_is_changed() -> None:
    play = opened_form()
    typed(play, 1, "!")
    moved = replace(VIEW, version=2, digest="ab" * 32)
    play.port.tell(ApprovalUpdated(view=moved))
    play.shows("The preview has changed since you opened this.")
    play.port.tell(ApprovalUpdated(view=replace(moved, version=3, state="withdrawn", ended_at=NOW)))
    play.shows("Nothing can be sent", "+ Offer 2291!")
    assert "ctrl+s" not in play.keys

    play = opened_form()
    typed(play, 1, "!")
    send_form(play)
    fetching = PreviewView(status="fetching", updated_at=NOW)
    new = replace(SUBJECT, value="Offer 2291!")
    edited = replace(VIEW, version=2, digest="", preview=fetching, edits=((SUBJECT, new),))
    play.tell(ApprovalUpdated(view=edited))
    assert "Change the call" not in play.text
    assert "edited" in play.row
    play.shows("┊ − Offer 2291", "│ + Offer 2291!")


def test_what_has_no_arguments_to_change_says_so() -> None:
    for view in (short(1), replace(VIEW, state="checking"), replace(VIEW, digest="")):
        play = Play(snapshot_of(view))
        play.press_alone("e", "e did nothing: ")
        assert "e edit" not in play.keys


async def test_several_lines_are_typed_and_pasted_at_a_terminal() -> None:
    async with drive_console(snapshot_of(VIEW)) as run:
        await run.rest()
        for each in ("e", "j", "j", "enter"):
            run.clock.advance(0.1)
            await run.press(each)
        run.clock.advance(0.1)
        run.paste(Paste("\nP.S.\u202e\n--"))
        await run.shows("P.S.", "Hi [b]Sam[/b],")
        for each in ("enter", "x", "ctrl+s", "ctrl+s"):
            run.clock.advance(0.1)
            await run.press(each)
        await run.asks()
        (intent,) = run.port.intents
        assert isinstance(intent, EditCall)
        assert intent.args == {"body": f"{BODY}\nP.S.\n--\nx"}
