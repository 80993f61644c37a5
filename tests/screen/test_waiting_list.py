"""The list: nothing but a person's key moves the cursor."""

from dataclasses import replace

import pytest

from aileron_core.console_port.events import ApprovalUpdated, VaultStatus
from aileron_core.console_port.intents import RefreshPreview
from aileron_core.console_port.view_models import ApprovalView
from aileron_tui.draw.bars import banner_lines, startup_warnings
from aileron_tui.draw.text import plain_text
from aileron_tui.pages.registry import DEFAULT_REGISTRY
from aileron_tui.state.model import Model
from aileron_tui.state.queue import ELSEWHERE_SECONDS, Queue
from tests.screen.driving import NOW, key_of, resting, short, start
from tests.support.screens.calls import drifted
from tests.support.screens.play import Play


def test_an_item_that_ended_elsewhere_goes_at_the_first_key_after_five_seconds() -> None:
    """Its outcome can be read before it goes, and the cursor stays on its own item."""
    queue = Queue()
    queue.load((short(1), short(2), short(3)), ())
    queue.move(2)
    queue.update(replace(short(1), state="withdrawn", ended_at=NOW), NOW)
    queue.sweep(NOW + ELSEWHERE_SECONDS - 0.1)
    assert len(queue.items) == 3
    queue.sweep(NOW + ELSEWHERE_SECONDS)
    assert [item.key for item in queue.items] == [key_of(2), key_of(3)]
    assert queue.selected == key_of(3)


def test_no_row_goes_under_a_press_that_is_not_settled() -> None:
    """A filled key decides, also in the moment in which an answered row above it leaves."""
    model = Model(start(short(1), short(2)), arm_seconds=0.4, registry=DEFAULT_REGISTRY, now=NOW)
    model.queue.move(1)
    model.queue.update(replace(short(1), state="withdrawn", ended_at=NOW), NOW)
    model.arming.on_drawn(model.screen_version, 100.0)
    model.begin_key(101.0, decides=True, moves=False)
    assert model.press(101.0)
    model.end_key()
    model.sweep(NOW + ELSEWHERE_SECONDS)
    assert model.arming.take_settled_press(101.03) == model.screen_version
    model.sweep(NOW + ELSEWHERE_SECONDS)
    assert [item.key for item in model.queue.items] == [key_of(2)]


def test_the_cursor_moves_by_every_key_of_the_registry() -> None:
    """Letters, arrows, home, end and pages."""
    moves = {"j": 2, "down": 3, "k": 2, "up": 1, "end": 5, "home": 1, "pagedown": 5, "pageup": 1}
    play = Play(start(*(short(n) for n in range(1, 6))))
    for pressed, expected in moves.items():
        play.press_alone(pressed)
        assert play.selected == key_of(expected), pressed


def test_refresh_asks_the_core_for_the_item_under_the_cursor(play: Play) -> None:
    """`r` fetches the preview again."""
    play.press_alone("r")
    play.asks(RefreshPreview(approval_id=key_of(1)))


@pytest.mark.parametrize("changed_before", [False, True])
def test_a_preview_that_was_fetched_again_and_is_the_same_says_so(*, changed_before: bool) -> None:
    """Also where it had changed before that; one that differs is shown instead."""
    drift = drifted(NOW) if changed_before else None
    view = short(1, drift=drift)
    sentence = f"Fetched again: nothing {'else ' if changed_before else ''}changed."

    def fetch(view: ApprovalView, seconds: float) -> ApprovalView:
        """Press `r`, and let the core answer with *view*, fetched *seconds* later."""
        fetching = replace(view.preview, status="fetching", fields=(), updated_at=NOW + seconds - 1)
        preview = replace(view.preview, updated_at=NOW + seconds)
        play.press_rested("r")
        for each in (replace(view, drift=drift, preview=fetching), replace(view, preview=preview)):
            play.port.tell(ApprovalUpdated(view=each))
        play.settled()
        return replace(view, preview=preview)

    play = Play(start(view), size=(120, 36))
    view = fetch(view, 10)
    play.shows(sentence)
    other = replace(drifted(NOW), same_count=9)
    fetch(replace(view, drift=other), 20)
    assert "Fetched again" not in play.text


def test_standing_warnings_are_on_screen_all_the_time() -> None:
    """That files were accepted unseen, and that nobody's key unlocked the vault, is never forgotten."""
    vault = VaultStatus(state="unlocked", entries=2, unattended=True)
    state = start(short(1), accepted_installed=True, vault=vault)
    play = Play(state, size=(80, 24))
    for view in "123456":
        play.clock.advance(1)
        play.press_alone(view, "(--accept-installed)")
        assert "not by your key" in play.text


ROUTES = tuple(f"host-{n}.example:443 -> 127.0.0.1:900{n}" for n in range(6))


async def test_standing_warnings_that_have_no_row_are_counted_and_the_help_has_them_all() -> None:
    """Six routes hide neither each other nor the warning of `--accept-installed`."""
    async with resting(
        start(short(1), routes=ROUTES, accepted_installed=True), size=(80, 24)
    ) as shown:
        banner = shown.lines[1:4]
        assert "(--accept-installed)" in banner[0]
        assert "host-0.example:443 is answered by 127.0.0.1:9000." in banner[1]
        assert "▲ and 5 more warnings: ? lists them" in banner[2]
        await shown.go("question_mark", "WARNINGS")
        text = " ".join(shown.text.split())
        assert all(f"host-{n}.example:443 is answered by" in text for n in range(6))


def test_what_is_held_leaves_a_count_of_every_standing_warning() -> None:
    """Pause and a storage that fails come first; no warning is dropped for them."""
    standing = startup_warnings(
        start(routes=ROUTES, accepted_installed=True), vault=VaultStatus(state="absent")
    )
    rows = banner_lines(
        lost=None, storage="disk full", warnings=standing, width=100, help_key="?", paused="Held."
    )
    assert plain_text(rows[-1]) == " ▲ 7 warnings: ? lists them"
    rows = banner_lines(
        lost="x", storage="y", warnings=standing[:1], width=100, help_key="?", paused="Held."
    )
    assert "(--accept-installed)" in plain_text(rows[-1])
    assert len(rows) == 4
