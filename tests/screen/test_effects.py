"""What an item shows by the effect of its action: the thing that it happens to, what will be there, or both."""

import re
import unicodedata
from dataclasses import replace

import pytest

from aileron_core.console_port import ApprovalView, FieldView, PreviewView
from tests.screen.driving import Console, console, mail, short, start
from tests.screen.picturing import DARK, LARGE, SMALL, Look, Snap, taken
from tests.screen.test_reserved_columns import ATTACKS, allowed
from tests.support.variants import variants

SIZES = pytest.mark.parametrize("size", variants([(120, 36), (80, 24)]))
BOTH_SIZES = pytest.mark.parametrize(
    "look", [pytest.param((LARGE, DARK), id="120x36"), pytest.param((SMALL, DARK), id="80x24")]
)
BODY = "\n".join(["Hi all,", *(f"This is line {n}." for n in range(2, 20)), "Ana"])


def change(
    *new: FieldView, other: tuple[FieldView, ...] | None = None, **changes: object
) -> ApprovalView:
    """Return a draft that is to get the values *new*."""
    rest = (FieldView(label="Draft", value="r-8842190312"),) if other is None else other
    view = short(
        effect="CHANGE",
        action="readdress-draft",
        title="Readdress a draft",
        new_values=new,
        other_arguments=rest,
        arguments=(*rest, *(replace(field, label=field.label.lower()) for field in new)),
    )
    fields = (
        FieldView(label="To", value="ben@northwind.example"),
        FieldView(label="Subject", value="Workshop in May"),
        FieldView(label="Body", value=BODY, multiline=True),
    )
    preview = replace(view.preview, fields=fields, gist="Workshop in May")
    return replace(view, **{"preview": preview, **changes})


TO = FieldView(label="To", value="ana@example.com")


async def whole(shown: Console) -> str:
    """Return everything that the document shows, page by page."""
    seen: list[str] = []
    await shown.rest()
    while "not seen yet" in shown.status_line:
        seen += shown.lines
        await shown.press("space")
        await shown.rest()
    return "\n".join([*seen, *shown.lines])


@SIZES
@pytest.mark.parametrize("effect", ["READ", "SEND", "DELETE", "PAY", "RUN"])
async def test_what_is_fetched_is_what_it_happens_to(effect: str, size: tuple[int, int]) -> None:
    """The thing itself stands under WILL HAPPEN."""
    async with console(start(short(effect=effect)), size=size) as shown:
        text = await whole(shown)
        assert "WILL HAPPEN  fetched by Aileron" in text
        assert "CODEX SENT" in text
        assert " NOW  " not in text


@SIZES
@pytest.mark.parametrize("effect", ["CREATE", "CHANGE", "ASK"])
@pytest.mark.parametrize("status", ["ready", "unavailable", "none"])
async def test_what_will_not_remain_is_never_called_what_will_happen(
    status: str, effect: str, size: tuple[int, int]
) -> None:
    """A change that says nothing of new values, what is not there yet, and what nobody knows."""
    view = short(effect=effect)
    if status != "ready":
        preview = PreviewView(status="unavailable" if status == "unavailable" else "none")
        view = replace(view, preview=preview)
    async with console(start(view), size=size) as shown:
        text = await whole(shown)
        assert "WILL HAPPEN" not in text
        assert " NOW  " in text
        assert "CODEX WANTS" in text
        assert "r-8842190447" in text
        assert ("to be created" in text) == (effect == "CREATE")


@SIZES
async def test_a_change_stands_there_before_and_after(size: tuple[int, int]) -> None:
    """The old value beside the bar of what was fetched, the new one beside that of the agent's words."""
    async with console(start(change(TO)), size=size) as shown:
        text = await whole(shown)
        assert "WILL HAPPEN  + what codex wants, − fetched by Aileron" in text
        assert "┃ − ben@northwind.example" in text
        assert "┊ + ana@example.com" in text
        assert text.index("− ben@") < text.index("+ ana@") < text.index("NOW  unchanged fields")
        assert "┃ Workshop in May" in text
        assert "┊ r-8842190312" in text
        assert "CODEX WANTS" in text
        assert text.count("ana@example.com") == text.count("┊ + ana@example.com")
        assert "Press a to readdress a draft (1 field changes)." in shown.status_line


async def test_where_nothing_could_be_fetched_every_argument_stands_below() -> None:
    """There is nothing to compare with; what the agent wants is all there is."""
    gone = PreviewView(status="unavailable", reason="gmail.googleapis.com answered 503")
    async with console(start(change(TO, preview=gone))) as shown:
        text = await whole(shown)
        assert "WILL HAPPEN  not known" in text
        assert "┊ ana@example.com" in text
        assert "┊ r-8842190312" in text
        assert "− " not in text


async def test_a_long_text_shows_the_lines_that_differ_and_u_shows_all() -> None:
    """What is folded is counted; a mark of ours stands for it."""
    new = BODY.replace("line 9.", "line nine.")
    async with console(start(change(FieldView(label="Body", value=new)))) as shown:
        await shown.rest()
        text = shown.text
        assert "− This is line 9." in text
        assert "+ This is line nine." in text
        assert "┃   This is line 8." in text
        assert "‹6 unchanged lines›" in text
        assert "This is line 3." not in text
        await shown.press("u")
        await shown.shows("This is line 3.")
        assert "unchanged lines›" not in await whole(shown)


async def test_a_value_that_stays_says_so() -> None:
    """And a change that changes nothing too."""
    same = FieldView(label="To", value="ben@northwind.example")
    async with console(start(change(same))) as shown:
        text = await whole(shown)
        assert "Nothing changes: each new value equals the current one." in text
        assert "‹the new value is the same›" in text


@pytest.mark.parametrize(
    ("old", "new", "lines"),
    [
        (FieldView(label="To", missing=True), TO, ("− n/a", "+ ana@example.com")),
        (
            FieldView(label="To", missing=True),
            FieldView(label="To", value="n/a"),
            ("− n/a", "+ n/a"),
        ),
        (TO, FieldView(label="To", value=""), ("− ana@example.com", "+ ‹empty›")),
        (
            FieldView(label="To", value="a"),
            FieldView(label="To", value="a", shape="lines", multiline=True),
            ("  a", "+ ‹list of 1›"),
        ),
        (
            FieldView(label="To", value="[1]"),
            FieldView(label="To", value="[1]", shape="json"),
            ("− ‹text› [1]", "+ [1]"),
        ),
    ],
)
async def test_values_that_look_alike_and_are_not_are_told_apart(
    old: FieldView, new: FieldView, lines: tuple[str, str]
) -> None:
    """Nothing, an empty text, a list of one and a text that looks like a list."""
    view = change(new)
    view = replace(view, preview=replace(view.preview, fields=(old,)))
    async with console(start(view)) as shown:
        text = await whole(shown)
        for line in lines:
            assert line in text


async def test_every_line_of_what_no_field_shows_has_to_be_seen() -> None:
    """In full, however long it is, and counted."""
    note = FieldView(
        label="A note with a long label to the people who get the mail",
        value="\n".join(f"note {n}" for n in range(300)),
        multiline=True,
    )
    async with console(start(change(TO, other=(note,)))) as shown:
        await shown.rest()
        text = await whole(shown)
        assert note.label in text
        assert all(f"┊ note {n}\n" in text or f"┊ note {n} " in text for n in range(300))


@SIZES
@pytest.mark.parametrize("attack", range(len(ATTACKS)))
async def test_a_hostile_new_value_stands_behind_the_agents_bar(
    attack: int, size: tuple[int, int]
) -> None:
    """It can write neither the bar of what was fetched, nor a sign in the column of ours."""
    text = ATTACKS[attack]
    new = (FieldView(label="To", value=text), FieldView(label="Body", value=f"{BODY}\n{text}"))
    async with console(start(change(*new)), size=size) as shown:
        await shown.rest()
        document = shown.app.screen.query_one("#document")
        left, top, width = document.region.x, document.region.y, document.size.width
        gutter = 11 if size[0] < 110 else 13
        for _ in range(60):
            for line in shown.lines[top : top + document.size.height]:
                row = line[left : left + width]
                assert "Ж" not in allowed(row, gutter), row
                if "Ж" in row and "Look-alike" not in row:
                    assert row[gutter] == "┊" or "xn--" in row, row
                for char in row:
                    assert unicodedata.category(char) not in ("Cc", "Cf", "Cs", "Zl", "Zp"), row
            before = document.scroll_offset.y
            await shown.press("space")
            if document.scroll_offset.y == before:
                break
        assert "Ж" not in shown.status_line


async def test_a_hostile_title_is_cut_and_stands_behind_words_of_ours() -> None:
    """A file that a person accepted may still say anything in its heading."""
    title = "\x1b[2JЖ a draft. ✓ All seen.\u202e" + "x" * 200
    async with console(start(short(title=title))) as shown:
        await whole(shown)
        assert "Press a to ‹ESC›[2JЖ a draft." in shown.status_line
        assert "x…" in shown.status_line


async def test_the_second_press_says_what_it_does() -> None:
    """Not which operation of which connector runs."""
    async with console(start(mail())) as shown:
        await shown.rest()
        await shown.press_alone("a")
        await shown.shows("Press a again to send a mail draft anyway.")
        assert "local://" not in shown.status_line


@pytest.mark.parametrize(
    ("to", "bcc", "says"),
    [
        (
            '"Brandt, Anna" <anna@nordlicht.example>, ben@x.example',
            "c@x.example",
            " to 3 recipients.",
        ),
        ("ben@x.example", "", " to 1 recipient."),
        ('"ceo@nordlicht.example" <mallory@x.example>', "", "."),
        ("ben@x.example, the board", "", "."),
        ("ben@x.example", "a@x.example\nb@x.example", "."),
    ],
    ids=["a list", "one", "an address for a name", "no address", "several lines"],
)
async def test_the_sentence_counts_who_gets_it_where_that_is_certain(
    to: str, bcc: str, says: str
) -> None:
    """A number that is too small would be believed: where an entry is unclear there is none."""
    view = short()
    fields = (FieldView(label="To", value=to), FieldView(label="Bcc", value=bcc))
    view = replace(view, preview=replace(view.preview, fields=fields))
    async with console(start(view)) as shown:
        await shown.read_all()
        assert f"Press a to send a mail draft{says}" in shown.status_line


@SIZES
async def test_what_continues_a_long_line_cannot_pass_for_a_line_with_a_sign(
    size: tuple[int, int],
) -> None:
    """Its sign is in a column of its own, also where the text's next row begins with one."""
    value = " ".join(f"{'w' * each} + forged" for each in range(1, 40))
    forged = FieldView(label="To", value=value)
    async with console(start(change(forged)), size=size) as shown:
        await shown.rest()
        assert re.search(r"┊ \+ w", shown.text)
        assert not re.search(r"[┊┃] [−+] forged", shown.text)


async def seen(shown: Console) -> None:
    await shown.read_all()


@BOTH_SIZES
def test_a_change_in_sight(snap_compare: Snap, look: Look) -> None:
    """Old and new beside their bars, what stays below, and the other argument with its label."""
    new = BODY.replace("line 9.", "line nine, and longer.")
    view = change(TO, FieldView(label="Body", value=new, multiline=True))

    async def scenario(shown: Console) -> None:
        await shown.rest()

    assert taken(snap_compare, look, scenario, start(view))


@BOTH_SIZES
def test_a_short_change_read_to_its_end(snap_compare: Snap, look: Look) -> None:
    """The status line says what the yes does."""
    view = change(TO)
    view = replace(view, preview=replace(view.preview, fields=view.preview.fields[:2]))
    assert taken(snap_compare, look, seen, start(view))


@BOTH_SIZES
def test_a_change_that_says_nothing_of_new_values(snap_compare: Snap, look: Look) -> None:
    """NOW: what stands there will not remain."""
    view = change(TO, other=(FieldView(label="Draft", value="r-8842190312"),))
    view = replace(view, new_values=(), other_arguments=())
    view = replace(view, preview=replace(view.preview, fields=view.preview.fields[:2]))
    assert taken(snap_compare, look, seen, start(view))


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
    assert taken(snap_compare, look, seen, start(view))
