"""Where the demo puts its agent inside tmux."""

from hypothesis import given
from hypothesis import strategies as st

from examples.demo.__main__ import room_for_agent


@given(st.integers(20, 400), st.integers(5, 200))
def test_the_agent_takes_no_room_in_which_a_person_decides(width: int, height: int) -> None:
    """A split leaves the console 24 rows or 80 columns; without room for one there is a window."""
    words, _ = room_for_agent(width, height)
    if words[0] == "split-window":
        left = (height if "-v" in words else width) - int(words[-1]) - 1
        assert left >= (24 if "-v" in words else 80)
        assert int(words[-1]) >= 6
    else:
        assert words[0] == "new-window"
        assert height < 31
        assert width < 121


def test_a_small_terminal_gives_the_agent_a_window() -> None:
    """80 by 24 has no row to spare; a wide and a high pane are split."""
    assert room_for_agent(80, 24)[0][0] == "new-window"
    assert "-h" in room_for_agent(200, 24)[0]
    assert room_for_agent(120, 47)[0] == ("split-window", "-v", "-l", "12")
