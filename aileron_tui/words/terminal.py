"""What is said outside the screen, and when something is copied, paged or opened."""

from typing import Final

from aileron_tui.words.bars import calls_waiting

NOTHING_IN_VIEW: Final = "No field is in view."
A_FIELD: Final = "the field"
COPY_BYTES: Final = 70_000
"""Many terminals drop a longer copy without a word."""


def title(waiting: int) -> str:
    """Return the terminal's title: a count and our name, nothing from outside."""
    return f"({waiting}) aileron" if waiting else "aileron"


def calls_wait(count: int, action: str) -> str:
    """Return the notification. It begins with a letter: `OSC 9 ; 4 ;` means something else."""
    named = f": {action}" if action else ""
    return f"Aileron: {calls_waiting(count)}{named}"


WENT_AROUND: Final = "Aileron: a model called a tool that does not go through the gate"


def command_failed(program: str, why: str) -> str:
    """Return what became of the command of `[notify]`, once."""
    return f"The [notify] command in config.toml failed: {program}: {why}."


def ended_with(code: int) -> str:
    return f"exit code {code}"


def took_too_long(seconds: float) -> str:
    return f"it took more than {seconds:g} s"


def _size(lines: int, characters: int) -> str:
    if lines > 1:
        return f"{lines} lines"
    return f"{characters:,} {'character' if characters == 1 else 'characters'}"


def copied(name: str, lines: int, characters: int, marks: int, then: str) -> str:
    """Return what was handed to the terminal's clipboard, and in what form. *then* comes behind."""
    hidden = f", with {marks} {'mark' if marks == 1 else 'marks'}" if marks else ""
    text = f"Copied {name or A_FIELD}, as shown here: {_size(lines, characters)}{hidden}."
    return f"{text} {then}".rstrip()


def copies_next(key: str) -> str:
    return f"{key} again copies the next."


def too_long(size: int) -> str:
    return f"{size // 1000} kB may be more than the terminal accepts."


def paged(name: str, program: str) -> str:
    return f"{name or A_FIELD} was shown in {program}, as shown here."


def no_pager(program: str) -> str:
    return f"{program} could not be started. Set PAGER to an installed program."


def cannot_suspend() -> str:
    return "A pager cannot be opened in this terminal."


LINK_COPIED: Final = "There is no browser here: the address was sent to the clipboard."
LINK_OPENED: Final = "The address was opened in your browser."
LINK_NOT_OPENED: Final = "The address could not be opened: the browser command failed."


def link_not_deleted(file: str, why: str) -> str:
    """Return that a link's file, which opens nothing any more, is still there; it is tried again."""
    return f"{file} cannot be deleted ({why}). Its link is over; deleting is tried again. Look at its folder."
