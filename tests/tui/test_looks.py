"""Pictures of the main states. Each docstring names the promise that is visible in it."""

from dataclasses import replace

import pytest
from driving import NOW, Console, start
from picturing import Snap, at_rest, picture, select

from aileron_core.console_port import CoreLost, StorageHealth
from tests.support.screens.calls import snapshot

SIZES = [(80, 24), (120, 36)]


@pytest.mark.parametrize("size", SIZES)
def test_a_mail_that_waits(snap_compare: Snap, size: tuple[int, int]) -> None:
    """Aileron's reading first, behind its own bar; how much is unread is said."""
    assert picture(snap_compare, size, at_rest)


@pytest.mark.parametrize("size", SIZES)
def test_no_preview(snap_compare: Snap, size: tuple[int, int]) -> None:
    """`Preview unavailable` stands beside the raw inputs, and approve asks first."""
    assert picture(snap_compare, size, select(2))


@pytest.mark.parametrize("size", SIZES)
def test_changed_after_the_look(snap_compare: Snap, size: tuple[int, int]) -> None:
    """Both readings of every field that differs, the words that differ marked."""
    assert picture(snap_compare, size, select(3))


@pytest.mark.parametrize("size", SIZES)
def test_hostile_text(snap_compare: Snap, size: tuple[int, int]) -> None:
    """Marks for what hides; a forged heading stands right of the bar."""
    assert picture(snap_compare, size, select(4))


@pytest.mark.parametrize("size", SIZES)
def test_still_looking(snap_compare: Snap, size: tuple[int, int]) -> None:
    """Labels stand, values are dots, approve is not offered."""
    assert picture(snap_compare, size, select(5))


@pytest.mark.parametrize("size", SIZES)
def test_a_held_back_file(snap_compare: Snap, size: tuple[int, int]) -> None:
    """Name, gated or not, connector, hosts, hash; one key takes it in."""
    assert picture(snap_compare, size, select(7))


@pytest.mark.parametrize("size", SIZES)
def test_the_reason_for_a_no(snap_compare: Snap, size: tuple[int, int]) -> None:
    """The item stays readable above the question."""

    async def scenario(shown: Console) -> None:
        await shown.rest()
        await shown.press_alone("d")
        await shown.pilot.pause(0.1)
        shown.clock.advance(0.1)
        await shown.press(*"wrong")
        await shown.rest()

    assert picture(snap_compare, size, scenario)


@pytest.mark.parametrize("size", SIZES)
def test_activity(snap_compare: Snap, size: tuple[int, int]) -> None:
    """Records newest first; at 80 columns columns drop, none is squeezed."""

    async def scenario(shown: Console) -> None:
        await shown.rest()
        await shown.press_alone("2")

    assert picture(snap_compare, size, scenario)


@pytest.mark.parametrize("size", SIZES)
def test_help(snap_compare: Snap, size: tuple[int, int]) -> None:
    """Every key of the page, from the registry."""

    async def scenario(shown: Console) -> None:
        await shown.rest()
        await shown.press_alone("question_mark")

    assert picture(snap_compare, size, scenario)


@pytest.mark.parametrize("size", SIZES)
def test_nothing_waits(snap_compare: Snap, size: tuple[int, int]) -> None:
    """A nearly empty screen: the last decision, who is at work."""
    ended = tuple(v for v in snapshot(NOW).approvals if v.state in ("denied", "unknown"))

    async def scenario(shown: Console) -> None:
        await shown.shows("Nothing is waiting.")

    assert picture(snap_compare, size, scenario, start(*ended))


@pytest.mark.parametrize("size", SIZES)
def test_nothing_can_run(snap_compare: Snap, size: tuple[int, int]) -> None:
    """An audit that cannot be written stands above all, and takes the keys away."""

    async def scenario(shown: Console) -> None:
        await shown.rest()
        shown.port.tell(StorageHealth(writable=False, message="The disk of the home is full."))
        await shown.shows("NOTHING CAN RUN")

    assert picture(snap_compare, size, scenario)


@pytest.mark.parametrize("size", SIZES)
def test_the_core_has_ended(snap_compare: Snap, size: tuple[int, int]) -> None:
    """The screen greys, decide keys are gone, one sentence says what to do."""

    async def scenario(shown: Console) -> None:
        await shown.rest()
        shown.port.tell(CoreLost(message="The database was taken over by another console."))
        await shown.shows("THE CORE HAS ENDED")

    assert picture(snap_compare, size, scenario)


def test_a_very_large_terminal(snap_compare: Snap) -> None:
    """At 200 x 60 values stop at 100 cells; nothing stretches."""
    assert picture(snap_compare, (200, 60), at_rest)


def test_standing_warnings(snap_compare: Snap) -> None:
    """`--route` and `--accept-installed` stand below the top bar."""
    routes = ("gmail.googleapis.com:443 -> 127.0.0.1:9001",)
    state = replace(snapshot(NOW), routes=routes, accepted_installed=True)
    assert picture(snap_compare, (80, 24), at_rest, state)
