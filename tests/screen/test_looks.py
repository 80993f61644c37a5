"""Pictures of the main states. Each docstring names the promise that is visible in it."""

from dataclasses import replace

from aileron_core.console_port.events import CoreLost, StorageHealth
from tests.screen.driving import NOW, Console, start
from tests.screen.picturing import LARGE, SMALL, Snap, at_rest, picture, picture_of, select
from tests.support.screens.calls import snapshot


def test_no_preview(snap_compare: Snap) -> None:
    """`Preview unavailable` stands beside the raw inputs, and approve asks first."""
    assert picture(snap_compare, LARGE, select(2))


def test_changed_after_the_look(snap_compare: Snap) -> None:
    """Both readings of every field that differs, the words that differ marked."""
    assert picture(snap_compare, LARGE, select(3))


def test_hostile_text(snap_compare: Snap) -> None:
    """Marks for what hides; a forged heading stands right of the bar."""
    assert picture(snap_compare, LARGE, select(4))


def test_still_looking(snap_compare: Snap) -> None:
    """Labels stand, values are dots, approve is not offered."""
    assert picture(snap_compare, LARGE, select(5))


def test_a_file_that_is_not_accepted(snap_compare: Snap) -> None:
    """Name, gated or not, connector, hosts, hash; one key takes it in."""
    assert picture(snap_compare, LARGE, select(7))


@picture_of(size=LARGE)
async def test_the_reason_for_a_no(shown: Console) -> None:
    """The item stays readable above the question."""
    await shown.press_rested("d")
    shown.clock.advance(0.1)
    await shown.press(*"wrong")
    await shown.rest()


@picture_of(size=LARGE)
async def test_activity(shown: Console) -> None:
    """Records newest first; at 80 columns columns drop, none is squeezed."""
    await shown.press_rested("2")


@picture_of(size=LARGE)
async def test_help(shown: Console) -> None:
    """Every key of the page, from the registry."""
    await shown.press_rested("question_mark")


@picture_of(
    start(*tuple(v for v in snapshot(NOW).approvals if v.state in ("denied", "unknown"))),
    size=LARGE,
)
async def test_nothing_waits(shown: Console) -> None:
    """A nearly empty screen: the last decision, who is at work."""
    await shown.shows("Nothing is waiting.")


@picture_of(size=LARGE)
async def test_nothing_can_run(shown: Console) -> None:
    """An audit that cannot be written stands above all, and takes the keys away."""
    await shown.rest()
    shown.port.tell(StorageHealth(writable=False, message="The disk of the home is full."))
    await shown.shows("NOTHING CAN RUN")


@picture_of(size=LARGE)
async def test_the_core_has_ended(shown: Console) -> None:
    """The screen greys, decide keys are gone, one sentence says what to do."""
    await shown.rest()
    shown.port.tell(CoreLost(message="The database was taken over by another console."))
    await shown.shows("THE SERVER HAS STOPPED")


def test_standing_warnings(snap_compare: Snap) -> None:
    """`--route` and `--accept-installed` stand below the top bar."""
    routes = ("gmail.googleapis.com:443 -> 127.0.0.1:9001",)
    state = replace(snapshot(NOW), routes=routes, accepted_installed=True)
    assert picture(snap_compare, SMALL, at_rest, state)
