"""Every layout in every look: dark, light, without colour; pictures, and what must hold in all of them."""

from dataclasses import replace

import pytest

from aileron_core.console_port.account_views import AccountNeed, AccountView
from aileron_core.console_port.events import (
    ApprovalUpdated,
    CoreEvent,
    CoreLost,
    PauseChanged,
    Snapshot,
    StorageHealth,
)
from aileron_core.console_port.field_views import PreviewView
from aileron_tui.draw.glyphs import Glyphs
from aileron_tui.styles.tokens import DARK, LIGHT, PLAIN
from tests.screen.driving import NOW, Console, console, mail, resting, short, start
from tests.screen.picturing import LARGE, SMALL, Snap, at_rest, picture, picture_of
from tests.support.screens.calls import drifted, snapshot
from tests.support.screens.drawn import Drawn

WIDE = (200, 60)
LOOKS = [DARK, LIGHT, PLAIN]


async def to_changed(shown: Console) -> None:
    for _ in range(3):
        await shown.press_alone("j")
    await shown.rest()


@pytest.mark.parametrize(
    ("size", "theme"),
    [(SMALL, DARK), (LARGE, DARK), (WIDE, DARK), (LARGE, LIGHT), (LARGE, PLAIN)],
    ids=["80x24", "120x36", "200x60", "120x36-light", "120x36-plain"],
)
def test_a_mail_that_waits(snap_compare: Snap, size: tuple[int, int], theme: str) -> None:
    """List, item and, in a wide terminal, the rail; regions by shade, without colour by blanks."""
    assert picture(snap_compare, size, at_rest, start_theme=theme)


@pytest.mark.parametrize("theme", LOOKS)
def test_what_changed_after_the_look(snap_compare: Snap, theme: str) -> None:
    """`−` and `+` and the words that differ, by ground or by underlining."""
    assert picture(snap_compare, LARGE, to_changed, start_theme=theme)


@pytest.mark.parametrize("theme", LOOKS)
def test_the_reason_for_a_no(snap_compare: Snap, theme: str) -> None:
    """The key that denies is filled in red, or in reverse; the cursor is seen."""

    async def scenario(shown: Console) -> None:
        await shown.press_rested("d")
        shown.clock.advance(0.1)
        await shown.press(*"wrong")
        await shown.rest()

    assert picture(snap_compare, SMALL, scenario, start_theme=theme)


@pytest.mark.parametrize("theme", [LIGHT, PLAIN])
def test_nothing_waits(snap_compare: Snap, theme: str) -> None:
    """A nearly empty screen is calm in every look."""

    async def scenario(shown: Console) -> None:
        await shown.shows("Nothing is waiting.")

    assert picture(snap_compare, LARGE, scenario, start(), start_theme=theme)


@pytest.mark.parametrize("theme", [LIGHT, PLAIN])
def test_the_core_has_ended(snap_compare: Snap, theme: str) -> None:
    """What stands there greys, without colour it is dim; the banner does not."""

    async def scenario(shown: Console) -> None:
        await shown.rest()
        shown.port.tell(CoreLost(message="The database was taken over by another console."))
        await shown.shows("THE SERVER HAS STOPPED")

    assert picture(snap_compare, LARGE, scenario, start_theme=theme)


def test_in_ascii(snap_compare: Snap) -> None:
    """The same places in other signs."""
    assert picture(snap_compare, LARGE, at_rest, glyphs=Glyphs(ascii=True))


@picture_of(start(short(1), short(2), short(3)), size=LARGE)
async def test_a_call_that_was_answered_stays_for_a_moment_dimmed(shown: Console) -> None:
    """Its outcome stands where its time was; the cursor is on the next."""
    await shown.read_all()
    await shown.press_alone("a")
    await shown.asks()
    view = replace(short(1), state="completed", decided_at=NOW, ended_at=NOW)
    shown.port.tell(ApprovalUpdated(view=replace(view, decided_by="person")))
    await shown.shows("✓ done")
    await shown.until(lambda: shown.drawn, "drawn")
    shown.clock.advance(0.6)
    await shown.until(lambda: shown.armed, "armed")


@picture_of(size=(58, 15))
async def test_a_pane_that_is_too_small(shown: Console) -> None:
    """One sentence; nothing can be decided there."""
    await shown.shows("Make this pane at least 60 x 16.")


@pytest.mark.parametrize("grow", [SMALL, LARGE])
async def test_what_was_seen_stays_seen_at_another_size(grow: tuple[int, int]) -> None:
    """By place in the text, not by row: nothing must be read twice, and nothing unread counts."""
    async with console(start(mail(1)), size=(100, 30)) as shown:
        await shown.read_all()
        model = shown.model
        assert model.reading.unseen == 0
        await shown.resize(*grow)
        assert not shown.armed
        await shown.rest()
        assert model.reading.unseen == 0
        assert "All seen" in shown.status_line


def _states() -> dict[str, tuple[Snapshot, tuple[CoreEvent, ...]]]:
    """Everything that a person has to tell apart at a glance, each as a console and what happens there."""
    none = PreviewView(status="none", host="gmail.googleapis.com")
    gone = PreviewView(status="unavailable", reason="answered 503", updated_at=NOW - 2)
    looking = replace(mail(1).preview, status="fetching", updated_at=NOW - 1)
    locked = AccountNeed(
        reason="locked",
        connector="github://aileron/mail",
        kind="api_key",
        candidates=(AccountView(name="api_key/mail/work", account="ana@example.com"),),
    )
    views = {
        "waits, all seen": short(1),
        "waits, not all seen": mail(1),
        "no preview declared": short(1, preview=none),
        "no preview to be had": short(1, preview=gone),
        "still looking": short(1, preview=looking, digest=""),
        "changed": short(1, drift=drifted(NOW)),
        "waits for the vault": short(1, state="awaiting_vault", account_need=locked),
        "rechecking": short(1, state="checking"),
        "approved": short(1, state="approved"),
        "running": short(1, state="executing"),
        "requester gone": short(1, requester_gone=True),
        "it connected by itself": short(1, self_opened=True),
        "routed": short(1, routed=("gmail.googleapis.com:443 -> 127.0.0.1:9001",)),
        "ends soon": short(1, expires_at=NOW + 30),
    }
    found: dict[str, tuple[Snapshot, tuple[CoreEvent, ...]]] = {
        name: (start(view), ()) for name, view in views.items()
    }
    for state in ("completed", "failed", "unknown", "denied", "expired", "withdrawn"):
        said = "It is said how." if state != "denied" else ""
        ends = short(1, state=state, outcome=said, decided_at=NOW - 3, ended_at=NOW - 1, decided_by="person")  # fmt: skip
        found[state] = (start(short(1)), (ApprovalUpdated(view=ends),))
    return found | {
        "the core has ended": (start(short(1)), (CoreLost(message="It ended."),)),
        "nothing can run": (start(short(1)), (StorageHealth(writable=False, message="Full."),)),
        "paused": (start(short(1)), (PauseChanged(paused_at=NOW - 5),)),
        "a file is not accepted": (start(held=snapshot(NOW).not_accepted), ()),
        "nothing waits": (start(), ()),
    }


@pytest.mark.parametrize("glyphs", [Glyphs(), Glyphs(ascii=True)], ids=["signs", "ascii"])
@pytest.mark.parametrize("compact", [True, False])
def test_with_all_colour_taken_away_no_two_states_look_the_same(
    compact: bool, glyphs: Glyphs
) -> None:
    """A word or a sign says what a colour says: the bare letters on screen differ in every state."""
    texts: dict[str, str] = {}
    for name, (state, events) in _states().items():
        seen = name != "waits, not all seen"
        shown = Drawn(state, compact=compact, seen=seen, glyphs=glyphs).tell(*events)
        below = shown.item if shown.model.current_item is not None else shown.calm
        text = "\n".join([shown.top_bar, shown.banner, *shown.rows, below])
        assert text not in texts.values(), name
        texts[name] = text
    if glyphs.ascii:
        ours = {name: text.replace("→", "") for name, text in texts.items()}
        assert {name: text for name, text in ours.items() if not text.isascii()} == {}


async def test_a_redraw_without_news_lays_nothing_out_again() -> None:
    """The screen is drawn every second; laying it out each time took a tenth of a console at rest."""
    async with resting(start(mail(1)), size=LARGE) as shown:
        shown.app.draw_all()
        parts = [shown.app.screen, *shown.app.screen.walk_children()]
        assert not [part for part in parts if part._layout_required]
