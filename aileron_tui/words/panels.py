"""The words of pause, lock and search; what a question asks stands with it (`pages/questions.py`)."""

from typing import Final

from aileron_tui.words.bars import calls_waiting

LOCKED: Final = "Locked."
LOCKED_KEY: Final = "Press any key to show everything again; it does nothing else."


def paused(key: str, since: str) -> str:
    """Return the banner of a pause."""
    return f"All calls are on hold (since {since}). {key} resumes them."


def paused_first(key: str, approve: str) -> str:
    """Return why nothing can be approved while all calls are held."""
    return f"Nothing can be approved while calls are on hold. {key} resumes; then press {approve}."


def counted(count: int, noun: str) -> str:
    """Return *count* of what *noun*, a singular, names."""
    return f"{count} {noun if count == 1 else noun + 's'}"


def everything_stopped(denied: int, sessions: int, runs: int) -> str:
    """Return the report of what stopping everything did."""
    text = f"{counted(denied, 'call')} denied, {counted(sessions, 'session')} ended"
    return f"✗ Everything stopped: {text}, {counted(runs, 'run')} stopped."


def locked(waiting: int) -> str:
    """Return the one sentence of a locked console."""
    return f"{LOCKED} {calls_waiting(waiting)}."


def matches(number: int, count: int) -> str:
    """Return which match of a search is in view."""
    return f"{number} of {count}" if count else "not found"
