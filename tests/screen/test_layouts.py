"""What holds at every size and in every look, and where there is little room."""

from dataclasses import replace

import pytest

from aileron_core.console_port import events
from aileron_core.console_port.field_views import PreviewView
from aileron_tui.draw.glyphs import Glyphs
from tests.screen.driving import resting
from tests.support.screens.calls import drifted, snapshot
from tests.support.screens.drawn import Drawn
from tests.support.screens.play import rested
from tests.support.screens.states import NOW, WORK, mail, need, short, snapshot_of
from tests.support.variants import variants


def _states() -> dict[str, tuple[events.Snapshot, tuple[events.CoreEvent, ...]]]:
    none = PreviewView(status="none", host="gmail.googleapis.com")
    gone = PreviewView(status="unavailable", reason="answered 503", updated_at=NOW - 2)
    looking = replace(mail(1).preview, status="fetching", updated_at=NOW - 1)
    full = events.StorageHealth(writable=False, message="Full.")
    views = {
        "waits, all seen": short(1),
        "waits, not all seen": mail(1),
        "no preview declared": short(1, preview=none),
        "no preview to be had": short(1, preview=gone),
        "still looking": short(1, preview=looking, digest=""),
        "changed": short(1, drift=drifted(NOW)),
        "waits for the vault": short(1, state="awaiting_vault", account_need=need("locked", WORK)),
        "rechecking": short(1, state="checking"),
        "approved": short(1, state="approved"),
        "running": short(1, state="executing"),
        "requester gone": short(1, requester_gone=True),
        "it connected by itself": short(1, self_opened=True),
        "routed": short(1, routed=("gmail.googleapis.com:443 -> 127.0.0.1:9001",)),
        "ends soon": short(1, expires_at=NOW + 30),
    }
    found: dict[str, tuple[events.Snapshot, tuple[events.CoreEvent, ...]]] = {
        name: (snapshot_of(view), ()) for name, view in views.items()
    }
    for state in ("completed", "failed", "unknown", "denied", "expired", "withdrawn"):
        said = "It is said how." if state != "denied" else ""
        ends = short(1, state=state, outcome=said, decided_at=NOW - 3, ended_at=NOW - 1, decided_by="person")  # fmt: skip
        found[state] = (snapshot_of(short(1)), (events.ApprovalUpdated(view=ends),))
    return found | {
        "the core has ended": (snapshot_of(short(1)), (events.CoreLost(message="It ended."),)),
        "nothing can run": (snapshot_of(short(1)), (full,)),
        "paused": (snapshot_of(short(1)), (events.PauseChanged(paused_at=NOW - 5),)),
        "a file is not accepted": (snapshot_of(held=snapshot(NOW).not_accepted), ()),
        "nothing waits": (snapshot_of(), ()),
    }


@pytest.mark.parametrize("glyphs", [Glyphs(), Glyphs(ascii=True)], ids=["signs", "ascii"])
@pytest.mark.parametrize("compact", [True, False])
def test_without_all_colour_no_two_states_look_the_same(compact: bool, glyphs: Glyphs) -> None:
    texts: dict[str, str] = {}
    for name, (state, happen) in _states().items():
        seen = name != "waits, not all seen"
        shown = Drawn(state, compact=compact, seen=seen, glyphs=glyphs).tell(*happen)
        below = shown.item if shown.model.current_item is not None else shown.calm
        text = "\n".join([shown.top_bar, shown.banner, *shown.rows, below])
        assert text not in texts.values(), name
        texts[name] = text
    if glyphs.ascii:
        ours = {name: text.replace("→", "") for name, text in texts.items()}
        assert {name: text for name, text in ours.items() if not text.isascii()} == {}


async def test_a_redraw_without_news_lays_nothing_out_again() -> None:
    """The screen is drawn every second; laying it out each time took a tenth of a console at rest."""
    async with resting(snapshot_of(mail(1))) as shown:
        shown.app.draw_all()
        parts = [shown.app.screen, *shown.app.screen.walk_children()]
        assert not [part for part in parts if part._layout_required]


@pytest.mark.parametrize("waiting", [1, 9])
def test_the_document_keeps_five_rows_in_the_smallest_pane(waiting: int) -> None:
    views = [mail(n, requester_gone=True, self_opened=True) for n in range(1, waiting + 1)]
    routes = ("gmail.googleapis.com:443 -> 127.0.0.1:9001",)
    state = snapshot_of(*views, routes=routes, accepted_installed=True)
    play = rested(state, size=(60, 16))
    assert play.document.height >= 5
    assert 1 <= play.queue.height <= min(waiting, 3)


def test_a_list_that_grows_above_the_item_makes_the_key_rest() -> None:
    play = rested(snapshot_of(short(1)), size=(80, 40))
    for arrivals, height in (((), 1), ((2,), 2), (range(3, 9), 5)):
        play.tell(*(events.ApprovalUpdated(view=short(n)) for n in arrivals))
        assert play.queue.height == height
        assert play.armed == (height == 1)
    play.rest()
    play.resize(120, 36)
    assert play.queue.height > 5


def test_lines_that_only_passed_by_do_not_count_as_seen() -> None:
    play = rested(snapshot_of(mail()), size=(80, 24))
    model = play.model
    before = model.reading.unseen
    assert before > 0
    play.press("space")
    play.passes(0)
    assert model.reading.unseen == before
    play.passes(0.2)
    assert model.reading.unseen < before


@pytest.mark.parametrize("rows", variants([35, 36, 37]))
@pytest.mark.parametrize("wander", [["end", "k"], ["pagedown", "pagedown", "k"]])
def test_a_list_begins_with_a_whole_row(rows: int, wander: list[str]) -> None:
    """Rows have two lines there; half of one on top had no glyph, no effect and no name."""
    play = rested(snapshot_of(*(short(n) for n in range(1, 40))), size=(120, rows))
    for key in wander:
        play.go(key, "▴")
    play.resize(120, rows - 1)
    assert play.queue.top % 2 == 0
    play.resize(120, rows)
    queue = play.queue
    drawn = [line[:45] for line in play.lines[4 : 4 + queue.height]]
    assert drawn[0].startswith((" ● SEND", "▌● SEND"))
    assert any(line.startswith("▌● SEND") for line in drawn)
    assert any(line.startswith("▌         codex") for line in drawn)
