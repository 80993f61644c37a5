"""When a key may decide, as a machine without a screen."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aileron_tui.input.arming import Arming

REST = 0.4
DRAWN, FOCUSED = ["draw", "redraw", "change"], ["blur", "focus"]
KINDS = [*DRAWN, *FOCUSED, "key", "press", "paste", "burst", "mouse", "input"]
EVENTS = st.lists(
    st.tuples(st.sampled_from(KINDS), st.floats(min_value=0.0, max_value=0.6)), max_size=60
)


def rested_arming() -> Arming:
    arming = Arming(rest=REST)
    arming.on_drawn("item", 0.0)
    return arming


def test_a_press_after_a_rest_decides_once_its_silence_is_over() -> None:
    """One press decides one thing, 20 ms after it; what is read later takes nothing back."""
    arming = rested_arming()
    for at in (0.4, 2.0):
        assert arming.press("item", at)
        assert arming.take_settled_press(at + 0.019) is None
        assert arming.take_settled_press(at + 0.021) == "item"
        arming.on_input()
        arming.on_key(at + 0.03)
        assert arming.take_settled_press(at + 0.1) is None
        assert arming.take_dropped_keys(at + 0.5) == 0


def test_a_press_that_is_too_soon_or_not_alone_does_nothing() -> None:
    """A paste whose first byte is the decide key decides nothing, and the person is told. The burst may be
    told before its first key: not even that one counts.
    """
    assert not rested_arming().press("item", 0.399)
    arming = rested_arming()
    arming.on_key(1.0)
    assert not arming.press("item", 1.399)
    assert arming.take_settled_press(2.0) is None
    arming = rested_arming()
    assert arming.press("item", 1.0)
    for step in range(1, 15):
        arming.on_key(1.0 + step * 0.0004)
    assert arming.take_settled_press(1.5) is None
    assert (arming.take_dropped_keys(1.5), arming.take_dropped_keys(1.5)) == (15, 0)
    arming = rested_arming()
    arming.on_burst(1.0)
    assert not arming.press("item", 1.0)
    arming.on_key(1.0)
    arming.on_key_dropped()
    assert arming.take_settled_press(1.5) is None
    assert arming.take_dropped_keys(1.5) == 2


def test_new_content_focus_and_paste_each_start_the_rest_anew() -> None:
    for disturb in (
        lambda a: a.on_drawn("other", 1.0),
        lambda a: a.reset(),
        lambda a: a.on_focus(False, 1.0),
        lambda a: a.on_focus(True, 1.0),
        lambda a: a.on_paste(1.0),
    ):
        arming = rested_arming()
        assert arming.is_armed("item", 1.0)
        disturb(arming)
        assert not arming.is_armed("item", 1.3)


@pytest.mark.parametrize("gap", [0.0, 0.019, 0.021, 0.4])
@pytest.mark.parametrize("event", ["on_key", "on_burst", "on_mouse", "on_input"])
def test_whatever_is_read_before_a_press_is_settled_takes_it_back(event: str, gap: float) -> None:
    """However late it is read: a reader that was held up reads what was sent long before."""
    arming = rested_arming()
    assert arming.press("item", 1.0)
    getattr(arming, event)(*(() if event == "on_input" else (1.0 + gap,)))
    assert arming.take_settled_press(1.5) is None
    assert arming.take_dropped_keys(1.5)


def test_the_mouse_right_before_a_press_spoils_it_and_a_moment_earlier_does_not() -> None:
    for before, decided in ((0.019, None), (0.021, "item")):
        arming = rested_arming()
        arming.on_mouse(2.0 - before)
        arming.press("item", 2.0)
        assert arming.take_settled_press(3.5) == decided


@given(EVENTS)
def test_no_sequence_without_a_rest_decides(events: list[tuple[str, float]]) -> None:
    arming = Arming(rest=REST)
    at, content = 0.0, 0
    quiet_from: float | None = None  # since when drawn, in focus, unchanged, without a key
    focused, pressed_after = True, None
    drawn = False
    for kind, gap in events:
        settled = arming.take_settled_press(at + gap)
        if settled is not None:
            assert pressed_after is not None
            assert pressed_after >= REST - 1e-9
            pressed_after = None
        at += gap
        rest = at - quiet_from if quiet_from is not None and drawn and focused else -1.0
        if kind == "draw":
            content += 1
            arming.on_drawn(content, at)
            drawn, quiet_from, pressed_after = True, at, None
        elif kind == "redraw":
            if drawn:
                arming.on_drawn(content, at)
        elif kind == "change":
            arming.reset()
            drawn, quiet_from, pressed_after = False, None, None
        elif kind == "press":
            counted = arming.press(content, at)
            if counted:
                assert rest >= REST - 1e-9
                pressed_after = rest
            quiet_from = at if drawn else None
        elif kind in ("key", "paste", "burst"):
            getattr(arming, f"on_{kind}")(at)
            quiet_from = at if drawn else None
        elif kind == "mouse":
            arming.on_mouse(at)
        elif kind == "input":
            arming.on_input()
        else:
            focused = kind == "focus"
            arming.on_focus(focused, at)
            quiet_from = at if drawn else None
            pressed_after = None
