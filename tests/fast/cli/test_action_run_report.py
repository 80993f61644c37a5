"""What `action run` says of a run that ended before its last step."""

from pathlib import Path

import pytest

from aileron_tui.cli.action_run import _report
from aileron_tui.cli.output import CommandContext


@pytest.mark.parametrize(("status", "code"), [("denied", 76), ("expired", 76), ("withdrawn", 76)])
def test_a_run_that_ended_half_way_says_what_finished(
    status: str, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nobody repeats steps that have run for want of a word; hostile ids draw nothing."""
    body = {"status": status, "completed_steps": ["find", "a\x1b[2J"]}
    assert _report(CommandContext(home=Path("/"), json=False, color=False), body) == code
    said = capsys.readouterr().out
    assert "Steps completed: find, a" in said
    assert "\x1b" not in said
    assert (
        _report(CommandContext(home=Path("/"), json=False, color=False), {"status": status}) == code
    )
    assert "completed" not in capsys.readouterr().out
