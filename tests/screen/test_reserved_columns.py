"""No text from outside reaches a column that is ours: what makes `WILL HAPPEN` unforgeable."""

import unicodedata
from dataclasses import replace

import pytest

from aileron_core.console_port import FieldView, NotAcceptedView, PreviewView, SessionView
from tests.screen.driving import NOW, console, mail, start
from tests.support.variants import variants

# Every attack carries letters that none of our own words have.
ATTACKS = (
    "WILL HAPPEN  ЖЖЖ checked by Aileron\nSubject   ┃ ЖЖЖ",
    "\x1b[2J\x1b[HЖЖЖ WILL HAPPEN",
    "\r\rЖЖЖ overwritten",
    "\u202eЖЖЖ reversed\u2066",
    "[bold green]ЖЖЖ[/] [@click=app.quit]ЖЖЖ[/]",
    "Ж" * 400,
    "漢Ж" * 90,
    "\n" * 200 + "ЖЖЖ far below",
    "e\u0301\u0301\u0301\u0301\u0301\u0301ЖЖЖ",
    "\x9b2JЖЖЖ\x07\x00\ud800",
    "  a  approve ЖЖЖ",
    "ЖЖЖ‹ESC›",
)


def hostile(text: str):
    fields = (FieldView(label="Body", value=text, multiline=True),)
    preview = PreviewView(
        status="ready", fields=fields, gist=text, host="h.example", updated_at=NOW
    )
    return mail(
        preview=preview,
        arguments=(FieldView(label=text, value=text), FieldView(label="x", value=text)),
        agent=text,
        self_opened=True,
        session_label=text,
        cwd=text,
        requester_gone=True,
    )


def allowed(line: str, gutter: int) -> str:
    """Return the part of a document's line that must be ours."""
    bar = line[gutter : gutter + 1]
    return line[:gutter] if bar in ("┃", "┊", "│") else line


@pytest.mark.parametrize("size", variants([(80, 24), (120, 36), (200, 60)]))
@pytest.mark.parametrize("attack", range(len(ATTACKS)))
async def test_outside_text_stands_only_where_outside_text_may_stand(
    attack: int, size: tuple[int, int]
) -> None:
    """Left of the gutter, in headings, in the status line and in the keys stand our own words alone."""
    text = ATTACKS[attack]

    async with console(start(hostile(text)), size=size) as shown:
        await shown.rest()
        document = shown.app.screen.query_one("#document")
        left, top = document.region.x, document.region.y
        gutter = 11 if size[0] < 110 else 13
        width = document.size.width
        for _ in range(60):
            for line in shown.lines[top : top + document.size.height]:
                assert "Ж" not in allowed(line[left : left + width], gutter), line
            before = document.scroll_offset.y
            await shown.press("space")
            if document.scroll_offset.y == before:
                break
        assert "Ж" not in shown.status_line
        assert "Ж" not in shown.keys
        for line in shown.lines:
            for char in line:
                assert unicodedata.category(char) not in ("Cc", "Cf", "Cs", "Zl", "Zp"), line


async def test_an_agent_that_names_itself_does_not_name_a_section() -> None:
    """A session that opened itself is `the agent`; its own word for itself stands in the record."""
    async with console(
        start(replace(mail(), agent="WILL HAPPEN", self_opened=True)), size=(200, 60)
    ) as shown:
        await shown.shows("THE AGENT SENT")
        assert "the agent asks" in shown.text
        assert "it connected by itself" in shown.text


async def test_hostile_names_of_files_sessions_and_records_break_nothing() -> None:
    """Lists, banner and top bar draw attacks as one line of text."""
    text = "\x1b[2J\u202e[b]ЖЖЖ\n" + "Ж" * 300
    held = NotAcceptedView(
        kind="action",
        name=text,
        file=text,
        digest="ab" * 32,
        change="changed",
        gated=False,
        connector=text,
        hosts=(text,),
    )
    session = SessionView(
        session_id="s",
        agent=text,
        label=text,
        cwd=text,
        pid=1,
        executable=text,
        self_opened=True,
        containment="none",
        opened_at=NOW,
        connected=True,
    )
    state = start(held=(held,), sessions=(session,), routes=(f"{text} -> {text}",))
    records = tuple(replace(r, summary=text, action=text, agent=text) for r in state.records)

    async with console(replace(state, records=records)) as shown:
        await shown.shows("Accept this action?")
        assert "\x1b" not in shown.text
        assert "runs without asking you" in shown.text
        shown.clock.advance(1)
        await shown.press_alone("2")
        await shown.shows("Newest first.")
        assert "\x1b" not in shown.text
        assert all(len(line) <= 120 for line in shown.lines)
