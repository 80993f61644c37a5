"""What is told at the next launch of what a killed one left."""

from pathlib import Path

from aileron_core.launch.repositories import tell_later, told_before


def test_what_is_found_again_at_each_sweep_is_told_once(tmp_path: Path) -> None:
    """What cannot be moved away stays, and the console finds it whenever a session ends."""
    for _ in range(3):
        tell_later(tmp_path, [".envrc is new", "a/.git is new"])
    tell_later(tmp_path, ["b/.git is new"])
    assert told_before(tmp_path) == [".envrc is new", "a/.git is new", "b/.git is new"]
    assert told_before(tmp_path) == []
