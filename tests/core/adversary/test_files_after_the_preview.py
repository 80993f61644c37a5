"""Files that change between a person's look and the effect."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.core_harness import Core, Mailbox

FILE = "send-draft.md"


def _fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _endless(path: Path) -> None:
    path.unlink()
    path.symlink_to("/dev/zero")


def _by_a_link(path: Path) -> None:
    """The same bytes, by a link that leads out of the home."""
    moved = path.parent.parent.parent / "moved.md"
    path.rename(moved)
    path.symlink_to(moved)


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize("spoil", [_fifo, _endless, _by_a_link, _folder])
async def test_an_action_file_that_is_no_file_any_more_stops_the_run_at_once(
    core: Core, mailbox: Mailbox, home: Path, spoil: Callable[[Path], None]
) -> None:
    """Nothing is sent, nothing hangs holding the connector, and the person is told why."""
    view = await core.ask()
    spoil(home / "actions" / FILE)
    end = await core.run(view)
    assert end.state == "failed"
    assert FILE in end.outcome
    assert (await core.call("list-drafts", {})).row.state == "completed"
    assert mailbox.state()["sent"] == []
