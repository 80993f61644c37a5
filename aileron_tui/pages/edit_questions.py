"""The questions about a call's arguments: which to change, and what to type in its place."""

from collections.abc import Iterable
from dataclasses import replace

from aileron_core.console_port.field_views import FieldView
from aileron_core.console_port.intents import EditCall
from aileron_core.text import escape
from aileron_core.text.rendering import from_marks
from aileron_tui import words
from aileron_tui.draw import bars
from aileron_tui.draw.blocks import COMPACT_GUTTER, Block, lay_out, value
from aileron_tui.draw.changes import edit_blocks
from aileron_tui.draw.columns import edge
from aileron_tui.draw.foreign_text import brief, foreign_text
from aileron_tui.draw.text import Line, Piece, truncate, wrap
from aileron_tui.pages.asking import Answer, Asking, Question
from aileron_tui.pages.command import call_blocked
from aileron_tui.state.edit_form import EditForm
from aileron_tui.state.situation import Situation


def _form_rows(asking: Asking, now: Situation, width: int) -> tuple[Line, ...]:
    form, rows, first = now.model.edit_form, list[Line](), 0
    for index, entry in enumerate(form.inputs):
        first = len(rows) if index == form.index else first
        drawn = lay_out([*_field_blocks(form, entry, width)], width, COMPACT_GUTTER)
        rows += [(edge(index == form.index), *each[1:]) for each in drawn.lines]
    room = max(3, now.model.size[1] - asking.rows_around - 12)  # rows around the fields
    first = max(0, min(first, len(rows) - room))
    shown = rows[first : first + room]
    if hidden := len(rows) - len(shown):
        shown.append((Piece(f" {hidden} lines are out of view", "muted"),))
    head = bars.panel_question(words.item.EDIT, words.item.EDITED_REMARK, width)
    notice = wrap(foreign_text(_notice(now), "attn"), width - 2) if _notice(now) else ()
    return (*head, *shown, *((Piece(" "), *each.pieces) for each in notice))


def _field_blocks(form: EditForm, entry: FieldView, width: int) -> Iterable[Block]:
    """Return the lines of one argument: its beginning, or what was typed in place of it."""
    if entry.name in form.typed:
        typed = from_marks(form.typed[entry.name])
        return edit_blocks(entry, replace(entry, value=typed, missing=not typed))
    missing = words.item.MISSING if entry.missing else words.item.EMPTY
    shown = brief(entry.value) if entry.value else (Piece(missing, "muted"),)
    shown = truncate(shown, width - COMPACT_GUTTER - 5)
    return (value(foreign_text(entry.label, "muted"), shown, "claim"),)


def _notice(now: Situation) -> str:
    """Return why nothing was changed or can be, or that the call changed since the form was opened."""
    form, view = now.model.edit_form, now.approval
    if now.blocked_by == "sending":
        return "Checking what you changed …"
    if why := _blocked(now):
        return f"Nothing can be sent: {why}. What you typed stays here."
    changed = view is not None and view.digest != form.digest
    return form.problem or ("The preview has changed since you opened this." if changed else "")


def _blocked(now: Situation) -> str:
    if now.item is None or now.item.key != now.model.edit_form.key:
        return words.status.NO_CALL
    return call_blocked(now, now.blocked_by) if now.blocked_by != "drawing" else ""


def _sent(now: Situation) -> Iterable[EditCall]:
    if (view := now.approval) is not None:
        changes = now.model.edit_form.changes
        yield EditCall(approval_id=view.approval_id, digest=view.digest, args=changes)


def _is_done(now: Situation) -> bool:
    """Return whether the call was edited since the form was opened, which this console alone does."""
    form, view = now.model.edit_form, now.approval
    return view is not None and view.call_id == form.key and view.edits != form.edits


def _open_field(asking: Asking) -> None:
    form = asking.model.edit_form
    name = "edit_text" if form.current.multiline else "edit_line"
    asking.ask(name, form.key, text=form.text)


def _back(asking: Asking) -> None:
    asking.ask("edit", asking.model.edit_form.key)


def _keep(asking: Asking) -> None:
    asking.model.edit_form.keep(asking.text)
    _back(asking)


def _field_text(now: Situation) -> tuple[str, str]:
    entry = now.model.edit_form.current
    return escape(entry.label), words.item.EDIT_HOW[entry.shape]


EDIT = Question(
    "edit", rows=_form_rows, leave="as asked", is_over=_is_done,
    answers=(
        Answer("edit_field", ("enter",), "edit", help="edit the argument", footer_rank=0, do=_open_field),
        Answer(
            "edit_send", ("ctrl+s",), "look again with these", footer_rank=1, needs="core",
            help="fetch the preview again with the arguments as changed", intents=_sent,
            why_not=lambda now: _blocked(now) or ("" if now.model.edit_form.changes else "nothing is changed"),
        ),
        Answer(
            "edit_next", ("down", "j"), "choose", moves=True, paired_with="edit_previous", footer_rank=2,
            do=lambda asking: asking.model.edit_form.move(1),
        ),
        Answer(
            "edit_previous", ("up", "k"), "choose above", moves=True,
            do=lambda asking: asking.model.edit_form.move(-1),
        ),
    ),
)  # fmt: skip
EDIT_LINE = Question(
    "edit_line", text=_field_text, field=lambda _: "field", leave="as it was", on_leave=_back,
    answers=(Answer("edit_line_keep", ("enter",), "keep", footer_rank=0, do=_keep),),
)  # fmt: skip
EDIT_TEXT = Question(
    "edit_text", text=_field_text, field=lambda _: "area", leave="as it was", on_leave=_back,
    answers=(Answer("edit_text_keep", ("ctrl+s",), "keep", footer_rank=0, do=_keep),),
)  # fmt: skip
