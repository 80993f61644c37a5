"""What is told at the next launch of what a killed one left."""

from pathlib import Path

from aileron_core.launch.repositories import save_notices, take_notices


def test_what_is_found_again_at_each_sweep_is_reported_once(tmp_path: Path) -> None:
    """What cannot be moved away stays, and the console finds it whenever a session ends."""
    for _ in range(3):
        save_notices(tmp_path, [".envrc is new", "a/.git is new"])
    save_notices(tmp_path, ["b/.git is new"])
    assert take_notices(tmp_path) == [".envrc is new", "a/.git is new", "b/.git is new"]
    assert take_notices(tmp_path) == []
