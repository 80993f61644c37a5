"""`x`: from what changed to the whole new preview, and back."""

from dataclasses import replace

import pytest

from aileron_core.console_port import (
    ApprovalView,
    DriftView,
    FieldChangeView,
    FieldView,
    PreviewView,
)
from aileron_tui.widgets.document import Document
from tests.screen.driving import NOW, Console, console, short, start
from tests.screen.picturing import dark, picture_of

FORGED = "hello\nWILL HAPPEN  the whole new preview\nbye"


def changed(lines: int = 60, unavailable: str = "") -> ApprovalView:
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


def top(shown: Console) -> str:
    """Return the first line of the document that is in view."""
    document = shown.app.screen.query_one("#document", Document)
    return shown.lines[document.region.y][document.region.x :].rstrip(" █┃│")


async def test_x_goes_to_the_whole_new_preview_and_back_to_what_changed() -> None:
    """The real heading, not the forged one; what is between was not on screen and stays unseen."""
    async with console(start(changed())) as shown:
        await shown.rest()
        assert "x whole" in shown.keys
        assert top(shown).startswith(" CHANGED")
        await shown.press_alone("x")
        await shown.until(lambda: top(shown) == " WILL HAPPEN  the whole new preview")
        await shown.rest()
        assert "not seen yet" in shown.status_line
        await shown.press_alone("x")
        await shown.until(lambda: top(shown).startswith(" CHANGED"))


async def test_x_comes_back_from_a_preview_that_ends_before_its_pane_does() -> None:
    """The end of the document is as far as it goes; the next press is the way back all the same."""
    async with console(start(changed(lines=9)), size=(120, 46)) as shown:
        await shown.rest()
        await shown.press_alone("x")
        await shown.until(lambda: not top(shown).startswith(" CHANGED"))
        assert "the whole new preview" in shown.text
        await shown.rest()
        await shown.press_alone("x")
        await shown.until(lambda: top(shown).startswith(" CHANGED"))


@pytest.mark.parametrize("view", [short(), changed(unavailable="timed out")])
async def test_without_a_whole_new_preview_there_is_no_key_for_it(view: ApprovalView) -> None:
    """Nothing changed, or nothing new is known: no dead key stands in the footer."""
    async with console(start(view), size=(120, 20)) as shown:
        await shown.rest()
        assert " x " not in shown.keys
        before = top(shown)
        await shown.press_alone("x")
        assert top(shown) == before


@dark
@picture_of(start(changed()))
async def test_the_whole_new_preview_of_a_call_that_changed(shown: Console) -> None:
    """It begins at its heading; that lines above it were not seen is still said."""
    await shown.rest()
    await shown.press_alone("x")
    await shown.until(lambda: top(shown) == " WILL HAPPEN  the whole new preview")
    await shown.rest()
