"""Pictures of calls of the built-in tools. Each docstring names the promise in sight."""

from tests.screen.driving import NOW, Console, start
from tests.screen.picturing import dark, picture_of
from tests.support.screens.tool_calls import command, edit


@dark
@picture_of(start(edit(NOW)))
async def test_a_change_of_a_file_is_shown_as_its_difference(shown: Console) -> None:
    """Against the file as it is, in colour; then what the agent sent."""
    await shown.rest()


@dark
@picture_of(start(command(NOW)))
async def test_a_command_shows_what_its_rehearsal_did(shown: Console) -> None:
    """How it ended, what it printed, and each path that the yes would change."""
    await shown.shows("made old/notes.md")
    await shown.rest()
