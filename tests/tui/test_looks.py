"""Pictures of the main states. Each docstring names the promise that is visible in it."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest
from driving import NOW, Console, OwnedClock, start
from fake_port import RecordingPort

from aileron_core.control_plane.port import CoreLost, Snapshot, StorageHealth
from aileron_tui.app import AileronApp
from aileron_tui.screens.fixtures import snapshot

Snap = Callable[..., bool]
SIZES = [(80, 24), (120, 36)]


def look(
    compare: Snap,
    size: tuple[int, int],
    scenario: Callable[[Console], Awaitable[None]],
    state: Snapshot | None = None,
) -> bool:
    """Compare the console after *scenario* with its stored picture."""
    clock = OwnedClock()
    port = RecordingPort(state if state is not None else snapshot(NOW))
    app = AileronApp(port, clock=clock)
    shown = Console(app, port, clock)

    async def before(pilot: Any) -> None:
        shown.pilot = pilot
        await pilot.pause()
        await scenario(shown)
        await pilot.pause()
        shown.clock.advance(0.2)
        await shown.quiet()

    try:
        return compare(app, terminal_size=size, run_before=before)
    finally:
        port.close()


async def at_rest(shown: Console) -> None:
    await shown.rest()


def select(number: int) -> Callable[[Console], Awaitable[None]]:
    async def scenario(shown: Console) -> None:
        for _ in range(number):
            await shown.press_alone("j")
        await shown.pilot.pause()
        shown.clock.advance(0.5)
        await shown.quiet()
        await shown.pilot.pause(0.1)

    return scenario


@pytest.mark.parametrize("size", SIZES)
def test_a_mail_that_waits(snap_compare: Snap, size: tuple[int, int]) -> None:
    """Aileron's reading first, behind its own bar; how much is unread is said."""
    assert look(snap_compare, size, at_rest)


@pytest.mark.parametrize("size", SIZES)
def test_no_preview(snap_compare: Snap, size: tuple[int, int]) -> None:
    """`Preview unavailable` stands beside the raw inputs, and approve asks first."""
    assert look(snap_compare, size, select(2))


@pytest.mark.parametrize("size", SIZES)
def test_changed_after_the_look(snap_compare: Snap, size: tuple[int, int]) -> None:
    """Both readings of every field that differs, the words that differ marked."""
    assert look(snap_compare, size, select(3))


@pytest.mark.parametrize("size", SIZES)
def test_hostile_text(snap_compare: Snap, size: tuple[int, int]) -> None:
    """Marks for what hides; a forged heading stands right of the bar."""
    assert look(snap_compare, size, select(4))


@pytest.mark.parametrize("size", SIZES)
def test_still_looking(snap_compare: Snap, size: tuple[int, int]) -> None:
    """Labels stand, values are dots, approve is not offered."""
    assert look(snap_compare, size, select(5))


@pytest.mark.parametrize("size", SIZES)
def test_a_held_back_file(snap_compare: Snap, size: tuple[int, int]) -> None:
    """Name, gated or not, connector, hosts, hash; one key takes it in."""
    assert look(snap_compare, size, select(6))


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

    assert look(snap_compare, size, scenario)


@pytest.mark.parametrize("size", SIZES)
def test_activity(snap_compare: Snap, size: tuple[int, int]) -> None:
    """Records newest first; at 80 columns columns drop, none is squeezed."""

    async def scenario(shown: Console) -> None:
        await shown.rest()
        await shown.press_alone("2")

    assert look(snap_compare, size, scenario)


@pytest.mark.parametrize("size", SIZES)
def test_help(snap_compare: Snap, size: tuple[int, int]) -> None:
    """Every key of the page, from the registry."""

    async def scenario(shown: Console) -> None:
        await shown.rest()
        await shown.press_alone("question_mark")

    assert look(snap_compare, size, scenario)


@pytest.mark.parametrize("size", SIZES)
def test_nothing_waits(snap_compare: Snap, size: tuple[int, int]) -> None:
    """A nearly empty screen: the last decision, who is at work."""
    ended = tuple(v for v in snapshot(NOW).approvals if v.state in ("denied", "unknown"))

    async def scenario(shown: Console) -> None:
        await shown.shows("Nothing is waiting.")

    assert look(snap_compare, size, scenario, start(*ended))


@pytest.mark.parametrize("size", SIZES)
def test_nothing_can_run(snap_compare: Snap, size: tuple[int, int]) -> None:
    """An audit that cannot be written stands above all, and takes the keys away."""

    async def scenario(shown: Console) -> None:
        await shown.rest()
        shown.port.tell(StorageHealth(writable=False, message="The disk of the home is full."))
        await shown.shows("NOTHING CAN RUN")

    assert look(snap_compare, size, scenario)


@pytest.mark.parametrize("size", SIZES)
def test_the_core_has_ended(snap_compare: Snap, size: tuple[int, int]) -> None:
    """The screen greys, decide keys are gone, one sentence says what to do."""

    async def scenario(shown: Console) -> None:
        await shown.rest()
        shown.port.tell(CoreLost(message="The database was taken over by another console."))
        await shown.shows("THE CORE HAS ENDED")

    assert look(snap_compare, size, scenario)


def test_a_very_large_terminal(snap_compare: Snap) -> None:
    """At 200 x 60 values stop at 100 cells; nothing stretches."""
    assert look(snap_compare, (200, 60), at_rest)


def test_standing_warnings(snap_compare: Snap) -> None:
    """`--route` and `--accept-installed` stand below the top bar."""
    routes = ("gmail.googleapis.com:443 -> 127.0.0.1:9001",)
    state = replace(snapshot(NOW), routes=routes, accepted_installed=True)
    assert look(snap_compare, (80, 24), at_rest, state)
