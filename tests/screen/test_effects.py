"""Pictures of items by the effect of their action; what they say is proved in tests/fast/tui/test_effects.py."""

from dataclasses import replace

import pytest

from aileron_core.console_port.field_views import FieldView
from tests.screen.driving import Console, short, start
from tests.screen.picturing import DARK, LARGE, SMALL, Look, Snap, at_rest, picture_in
from tests.support.screens.states import DRAFT, TO, change

BOTH_SIZES = pytest.mark.parametrize(
    "look", [pytest.param((LARGE, DARK), id="120x36"), pytest.param((SMALL, DARK), id="80x24")]
)


@BOTH_SIZES
def test_a_change_in_sight(snap_compare: Snap, look: Look) -> None:
    """Old and new beside their bars, what stays below, and the other argument with its label."""
    new = DRAFT.replace("line 9.", "line nine, and longer.")
    view = change(TO, FieldView(label="Body", value=new, multiline=True))
    assert picture_in(snap_compare, look, at_rest, start(view))


@BOTH_SIZES
def test_a_short_change_read_to_its_end(snap_compare: Snap, look: Look) -> None:
    """The status line says what the yes does."""
    view = change(TO)
    view = replace(view, preview=replace(view.preview, fields=view.preview.fields[:2]))
    assert picture_in(snap_compare, look, Console.read_all, start(view))


@BOTH_SIZES
def test_a_change_that_says_nothing_of_new_values(snap_compare: Snap, look: Look) -> None:
    """NOW: what stands there will not remain."""
    view = change(TO, other=(FieldView(label="Draft", value="r-8842190312"),))
    view = replace(view, new_values=(), other_arguments=())
    view = replace(view, preview=replace(view.preview, fields=view.preview.fields[:2]))
    assert picture_in(snap_compare, look, Console.read_all, start(view))


@BOTH_SIZES
def test_a_creation_shows_what_will_be_there(snap_compare: Snap, look: Look) -> None:
    """The arguments, as the agent's words; above them how it is before."""
    sent = (
        FieldView(label="Title", value="INC-2291 post-mortem"),
        FieldView(label="Start", value="2026-10-08T10:00:00+02:00"),
    )
    view = short(
        effect="CREATE", title="Create a calendar event", action="create-event", arguments=sent
    )
    fields = (
        FieldView(label="Calendar", value="Team"),
        FieldView(label="That day", value="09:00 Stand-up"),
    )
    view = replace(
        view, preview=replace(view.preview, fields=fields, gist="Team"), op="create_event"
    )
    assert picture_in(snap_compare, look, Console.read_all, start(view))
