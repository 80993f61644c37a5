"""`x`: from what changed to the whole new preview, and back."""

from dataclasses import replace

import pytest

from aileron_core.console_port.field_views import DriftView, FieldChangeView, FieldView, PreviewView
from aileron_core.console_port.view_models import ApprovalView
from aileron_tui.draw.document import approval_blocks
from aileron_tui.draw.text import plain_text
from tests.support.screens.drawn import Drawn
from tests.support.screens.play import Play, rested
from tests.support.screens.states import NOW, short, start

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
    """Return the first line of the document that is in view."""
    return plain_text(play.document.layout.lines[play.document.top])


def test_x_goes_to_the_whole_new_preview_and_back_to_what_changed() -> None:
    """The real heading, not the forged one; what is between was not on screen and stays unseen."""
    play = rested(start(changed_body()))
    assert "x whole" in play.keys
    assert top(play).startswith(" CHANGED")
    play.press_alone("x")
    play.until(lambda: top(play) == " WILL HAPPEN  the whole new preview")
    play.rest()
    assert "not seen yet" in play.status_line
    play.press_alone("x")
    play.until(lambda: top(play).startswith(" CHANGED"))


@pytest.mark.parametrize("view", [short(), changed_body(unavailable="timed out")])
def test_without_a_whole_new_preview_there_is_no_key_for_it(view: ApprovalView) -> None:
    """Nothing changed, or nothing new is known: no dead key stands in the footer."""
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
    alone = replace(
        drifted, drift=replace(view.drift, changed=(), other_paths=paths, other_count=9)
    )
    lines = [plain_text(each.pieces) for each in approval_blocks(alone, NOW)]
    assert lines.index(paths[0]) < preview, "nothing else changed, so that is the change"
