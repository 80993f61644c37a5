"""What an item shows by the effect of its action: what it happens to, what will be there, or both; two readings compared."""

import re
import unicodedata
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aileron_core.console_port.events import ApprovalUpdated
from aileron_core.console_port.field_views import FieldChangeView, FieldView, PreviewView, ReadBack
from aileron_tui.draw.changes import _change
from aileron_tui.draw.hidden_characters import HiddenCharacters
from aileron_tui.draw.text import plain_text
from aileron_tui.draw.text_diff import BoundedDiff
from tests.support.making import calls
from tests.support.screens import states
from tests.support.screens.drawn import Drawn
from tests.support.screens.reserved import ATTACKS, allowed
from tests.support.screens.states import NOW, TO, change, short, snapshot_of

UNREAD = [None, PreviewView(status="unavailable"), PreviewView(status="none")]
of = partial(FieldView, label="To")
HELD = "✓ The service now holds what was approved (3 fields compared)."
DIFFERS = "▲ The service does not hold what was approved: 1 of 3 fields differs."
GONE = replace(states.AS_APPROVED, status="unavailable", reason="timed out")
LINES = st.lists(st.sampled_from(["a", "b", "", "c c"]), max_size=12)


def ended(read_back: ReadBack, *, compact: bool = False) -> Drawn:
    running = change(TO, state="executing", decided_at=NOW - 9, decided_by="person")
    done = replace(running, state="completed", ended_at=NOW - 5, read_back=read_back, version=9)
    return Drawn(snapshot_of(running), compact=compact).tell(ApprovalUpdated(view=done))


@pytest.mark.parametrize("effect", ["READ", "SEND", "DELETE", "PAY", "RUN"])
def test_what_is_fetched_is_what_it_happens_to(effect: str) -> None:
    item = Drawn(snapshot_of(short(effect=effect))).item
    assert "WILL HAPPEN  fetched by Aileron" in item
    assert "CODEX SENT" in item
    assert " NOW  " not in item


@pytest.mark.parametrize("effect", ["CREATE", "CHANGE", "ASK"])
@pytest.mark.parametrize("preview", UNREAD)
def test_what_will_not_remain_is_never_called_what_will_happen(preview: Any, effect: str) -> None:
    view = short(effect=effect)
    item = Drawn(snapshot_of(replace(view, preview=preview or view.preview))).item
    assert "WILL HAPPEN" not in item
    for shown in (" NOW  ", "CODEX WANTS", "r-8842190447"):
        assert shown in item
    assert ("to be created" in item) == (effect == "CREATE")


def test_where_nothing_could_be_fetched_every_argument_stands_below() -> None:
    gone = PreviewView(status="unavailable", reason="gmail.googleapis.com answered 503")
    item = Drawn(snapshot_of(change(TO, preview=gone))).item
    for shown in ("WILL HAPPEN  not known", "┊ ana@example.com", "┊ r-8842190312"):
        assert shown in item
    assert "− " not in item


def test_a_long_text_shows_the_lines_that_differ_and_u_shows_all() -> None:
    new = states.DRAFT.replace("line 9.", "line nine.")
    drawn = Drawn(snapshot_of(change(FieldView(label="Body", value=new))))
    for shown in ("− This is line 9.", "+ This is line nine.", "┃   This is line 8."):
        assert shown in drawn.item
    assert "‹6 unchanged lines›" in drawn.item
    assert "This is line 3." not in drawn.item
    drawn.model.unfold()
    assert "This is line 3." in drawn.item
    assert "unchanged lines›" not in drawn.item


def test_a_value_that_stays_says_so() -> None:
    item = Drawn(snapshot_of(change(of(value="ben@northwind.example")))).item
    assert "Nothing changes: each new value equals the current one." in item
    assert "‹the new value is the same›" in item


@pytest.mark.parametrize(
    ("old", "new", "lines"),
    [
        (of(missing=True), TO, ("− n/a", "+ ana@example.com")),
        (of(missing=True), of(value="n/a"), ("− n/a", "+ n/a")),
        (TO, of(value=""), ("− ana@example.com", "+ ‹empty›")),
        (of(value="a"), of(value="a", shape="lines", multiline=True), ("  a", "+ ‹list of 1›")),
        (of(value="[1]"), of(value="[1]", shape="json"), ("− ‹text› [1]", "+ [1]")),
    ],
)
def test_alike_values_are_told_apart(
    old: FieldView, new: FieldView, lines: tuple[str, str]
) -> None:
    view = change(new)
    item = Drawn(snapshot_of(replace(view, preview=replace(view.preview, fields=(old,))))).item
    assert all(line in item for line in lines)


def test_every_line_of_what_no_field_shows_has_to_be_seen() -> None:
    label = "A note with a long label to the people who get the mail"
    value = "\n".join(f"note {n}" for n in range(300))
    note = FieldView(label=label, value=value, multiline=True)
    drawn = Drawn(snapshot_of(change(TO, other=(note,))), seen=False)
    lines = [each.partition("┊")[2].strip() for each in drawn.document if "┊" in each]
    assert set(note.value.splitlines()) <= {*lines}
    assert drawn.model.reading.unseen >= 300


@pytest.mark.parametrize("compact", [False, True])
@pytest.mark.parametrize("attack", ATTACKS)
def test_a_hostile_value_stands_behind_the_bar_of_who_said_it(attack: str, compact: bool) -> None:
    new = (
        FieldView(label="To", value=attack),
        FieldView(label="Body", value=f"{states.DRAFT}\n{attack}"),
    )
    gone = replace(states.AS_APPROVED, status="unavailable", reason=attack)
    first = Drawn(snapshot_of(change(*new)), compact=compact)
    others = [(ended(each, compact=compact), "┃") for each in (states.differing(attack), gone)]
    for drawn, bar in ((first, "┊"), *others):
        for row in drawn.document:
            assert "Ж" not in allowed(row, gutter := 11 if compact else 13), row
            if "Ж" in row and "Look-alike" not in row:
                assert row[gutter] in (bar, "┊") or "xn--" in row, row
            assert not {*map(unicodedata.category, row)} & {"Cc", "Cf", "Cs", "Zl", "Zp"}, row
        assert "Ж" not in drawn.status


def test_a_hostile_title_is_cut_and_stands_behind_words_of_ours() -> None:
    """A file that a person accepted may still say anything in its heading."""
    title = "\x1b[2JЖ a draft. ✓ All seen.\u202e" + "x" * 200
    status = Drawn(snapshot_of(short(title=title))).status
    assert "Press a to ‹ESC›[2JЖ a draft." in status
    assert "x…" in status


@pytest.mark.parametrize(
    ("to", "bcc", "says"),
    [
        ('"Brandt, Anna" <anna@n.example>, ben@x.example', "c@x.example", " to 3 recipients."),
        ("ben@x.example", "", " to 1 recipient."),
        ('"ceo@nordlicht.example" <mallory@x.example>', "", "."),
        ("ben@x.example, the board", "", "."),
        ("ben@x.example", "a@x.example\nb@x.example", "."),
    ],
    ids=["a list", "one", "an address for a name", "no address", "several lines"],
)
def test_the_sentence_counts_who_gets_it_where_it_is_certain(to: str, bcc: str, says: str) -> None:
    """A number that is too small would be believed: where an entry is unclear there is none."""
    view = short()
    fields = (FieldView(label="To", value=to), FieldView(label="Bcc", value=bcc))
    view = replace(view, preview=replace(view.preview, fields=fields))
    assert f"Press a to send a mail draft{says}" in Drawn(snapshot_of(view)).status


@pytest.mark.parametrize("compact", [False, True])
def test_what_continues_a_long_line_cannot_pass_for_a_line_with_a_sign(compact: bool) -> None:
    value = " ".join(f"{'w' * each} + forged" for each in range(1, 40))
    text = Drawn(snapshot_of(change(FieldView(label="To", value=value))), compact=compact).item
    assert re.search(r"┊ \+ w", text)
    assert not re.search(r"[┊┃] [−+] forged", text)


@pytest.mark.parametrize(
    ("read_back", "said"),
    [
        (states.AS_APPROVED, HELD),
        (GONE, "What the service holds now could not be fetched: timed out"),
        (states.differing("eve@evil.example"), DIFFERS),
        (replace(states.AS_APPROVED, status="reading"), "fetching what the service holds now"),
    ],
    ids=["held", "unavailable", "differs", "reading"],
)
def test_a_call_that_is_done_says_what_the_service_holds(read_back: ReadBack, said: str) -> None:
    drawn = ended(read_back)
    assert "AFTER THE RUN" in drawn.item
    assert said in drawn.words
    if read_back.differing:
        assert "┊ − ana@example.com" in drawn.item
        assert "┃ + eve@evil.example" in drawn.item


@given(LINES, LINES, st.integers(0, 2000))
def test_what_is_reported_leads_from_old_to_new(old: list[str], new: list[str], work: int) -> None:
    made: list[str] = []
    for tag, a0, a1, b0, b1 in BoundedDiff(work).opcodes(old, new):
        assert tag != "equal" or old[a0:a1] == new[b0:b1]
        made += new[b0:b1]
    assert made == new


def test_a_crafted_pair_is_shown_whole_instead_of_holding_the_screen() -> None:
    """2,000 lines of two kinds took 43 s; so did many such lines one after the other."""
    old = ["a" if row % 2 else "b" for row in range(2_000)]
    new = ["a" if row // 2 % 2 else "b" for row in range(2_000)]
    compare = BoundedDiff()
    assert compare.opcodes(old, new) == [("replace", 0, 2_000, 0, 2_000)]
    short = compare.opcodes(old[:100], new[:100])
    assert len(short) > 1
    for _ in range(200):
        compare.opcodes(old[:100], new[:100])
    assert compare.opcodes(old[:100], new[:100]) == [("replace", 0, 100, 0, 100)]


def steps_of(before: str, after: str) -> int:
    change = FieldChangeView(label="Body", before=before, after=after, multiline=True)
    return calls(lambda: list(_change(change, HiddenCharacters(), unfold=False)))


@pytest.mark.parametrize(
    ("old", "new"), [("x", "y"), ("a b ", "b a "), ("ж", "\x1b"), ("a\n", "b\n")]
)
def test_drawing_a_change_takes_time_with_its_length_alone(old: str, new: str) -> None:
    """One line of a megabyte took 20 s."""
    assert steps_of(old * 1_600, new * 1_600) <= 9 * steps_of(old * 200, new * 200) + 3_000


def test_a_change_marks_the_words_that_differ_and_numbers_each_group_of_lines() -> None:
    change = FieldChangeView(label="Total", before="pay 10 EUR now", after="pay 99 EUR now")
    blocks = list(_change(change, HiddenCharacters(), unfold=False))
    shown = [plain_text(block.pieces) for block in blocks]
    assert shown == ["− pay 10 EUR now", "+ pay 99 EUR now"]
    strong = [p.text for b in blocks for p in b.pieces if p.role in ("del-word", "add-word")]
    assert strong == ["10", "99"]
    before, after = "a\nb\nc\nd\ne\nf\n", "a\nX\nY\nd\ne\nf\nz\n"
    change = FieldChangeView(label="Body", before=before, after=after, multiline=True)
    blocks = _change(change, HiddenCharacters(), unfold=False)
    shown = [(plain_text(each.label), plain_text(each.pieces)) for each in blocks]
    new = [("", "− c"), ("", "+ X"), ("", "+ Y"), ("Body  7", "+ z")]
    assert shown == [("Body  2", "− b"), *new]
