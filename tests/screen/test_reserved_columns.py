"""No text from outside reaches a column that is ours: what makes `WILL HAPPEN` unforgeable."""

import unicodedata

import pytest

from aileron_core.console_port.field_views import FieldView, PreviewView
from tests.screen.driving import NOW, mail, resting, start
from tests.support.screens.reserved import ATTACKS, allowed
from tests.support.variants import variants


def hostile_call(number: int, text: str):
    fields = (FieldView(label="Body", value=text, multiline=True),)
    preview = PreviewView(
        status="ready", fields=fields, gist=text, host="h.example", updated_at=NOW
    )
    return mail(
        number,
        preview=preview,
        arguments=(FieldView(label=text, value=text), FieldView(label="x", value=text)),
        agent=text,
        self_opened=True,
        session_label=text,
        cwd=text,
        requester_gone=True,
    )


@pytest.mark.parametrize("width", variants([80, 120, 200]))
async def test_outside_text_stands_only_where_outside_text_may_stand(width: int) -> None:
    """Left of the gutter, in headings, in the status line and in the keys stand our own words alone."""
    views = (hostile_call(number, text) for number, text in enumerate(ATTACKS, start=1))
    async with resting(start(*views), size=(width, 260)) as shown:
        for number in range(1, len(ATTACKS) + 1):
            assert shown.selected == mail(number).approval_id
            document = shown.document
            left, top, *_ = shown.region("#document")
            gutter = 11 if width < 110 else 13
            assert document.total <= document.height, "all of it is on the screen"
            for line in shown.lines[top : top + document.height]:
                assert "Ж" not in allowed(line[left : left + document.width], gutter), line
            assert "Ж" not in shown.status_line
            assert "Ж" not in shown.keys
            for line in shown.lines:
                for char in line:
                    assert unicodedata.category(char) not in ("Cc", "Cf", "Cs", "Zl", "Zp"), line
            await shown.press("j")
            await shown.settled()
