"""Values of a document: each is drawn as what it is, and nothing from outside can say otherwise."""

from dataclasses import replace

import pytest

from aileron_core.console_port.field_views import FieldView
from aileron_core.console_port.view_models import StepView
from aileron_tui.draw.changes import field_text, value_lines
from aileron_tui.draw.document import approval_blocks
from aileron_tui.draw.header import warnings
from aileron_tui.draw.hidden_characters import HiddenCharacters
from aileron_tui.draw.text import plain_text
from tests.support.screens.calls import approval

NOW = 1_790_000_000.0


def value_rows(field: FieldView) -> list[str]:
    return [plain_text(each) for each in value_lines(field, field_text(field))]


@pytest.mark.parametrize(
    ("field", "lines"),
    [
        (FieldView(label="x", value='{"all": 1}'), ['‹text› {"all": 1}']),
        (FieldView(label="x", value='\n  ["a"]'), ["‹text› ", '  ["a"]']),
        (FieldView(label="x", value='{"all": 1}', shape="json"), ['{"all": 1}']),
        (FieldView(label="x", value="a\nb"), ["a", "b"]),
        (FieldView(label="x", value="a\nb", shape="lines"), ["‹list of 2›", "a", "b"]),
        (FieldView(label="x", value="rm -rf x "), ["rm -rf x‹1 blank›"]),
        (FieldView(label="x", value="   "), ["‹3 blanks›"]),
        (FieldView(label="x", value="a\n  "), ["a", "‹2 blanks›"]),
        (FieldView(label="x", value="‹list of 2›\na"), ["‹U+2039›list of 2‹U+203A›", "a"]),
        (
            FieldView(label="x", value="a\nb", count=2, spellings=("Bcc", "BCC")),
            ["‹2 values, under Bcc, BCC›", "a", "b"],
        ),
        (FieldView(label="x", value="a", spellings=("B›c",)), ["‹found at B‹U+203A›c›", "a"]),
    ],
)
def test_a_value_is_drawn_as_what_it_is(field: FieldView, lines: list[str]) -> None:
    """A text that reads like an object, a list, blanks at the end, several values of one name."""
    assert value_rows(field) == lines


def test_arguments_steps_and_fetched_fields_are_drawn_alike() -> None:
    looks_like = FieldView(label="where", value='{"id": 5} ')
    step = StepView(
        step_id="s",
        connector="local://a/b",
        op="send",
        hosts=("a.example:443",),
        status="fixed",
        asks_again=False,
        inputs=(looks_like,),
    )
    view = approval(1, NOW)
    preview = replace(view.preview, fields=(looks_like,))
    view = replace(view, arguments=(looks_like,), steps=(step,), preview=preview)
    texts = [plain_text(block.pieces) for block in approval_blocks(view, NOW)]
    assert texts.count('‹text› {"id": 5}‹1 blank›') == 3


def test_several_values_of_one_name_are_a_warning_of_the_head() -> None:
    """One Bcc more is worth a look before any other line."""
    view = approval(1, NOW)
    twice = FieldView(label="Bcc", value="a\nb", count=2, spellings=("Bcc",))
    view = replace(view, preview=replace(view.preview, fields=(twice,)))
    assert "Bcc: 2 values" in [
        plain_text(w) for w in warnings(view, HiddenCharacters(), file_changed=False)
    ]
