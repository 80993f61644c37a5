"""The parts of the waiting list, its rows that are no calls, and what becomes of those."""

from collections.abc import Iterable, Mapping, Set
from enum import IntEnum

from aileron_core.console_port.view_models import NotAcceptedView
from aileron_core.errors import Problem
from aileron_tui.items import FileOutcome, Item, group_files
from aileron_tui.state.pending_intents import ACCEPTED_STATES, file_key, suite_key


class Part(IntEnum):
    """The parts of the list from top to bottom."""

    UNACKNOWLEDGED = -1
    """Calls of unknown outcome that no person has acknowledged."""
    CALLS = 0
    CONNECTORS = 1
    """They stand before the actions that use them."""
    SUITES = 2
    FILES = 3
    PROBLEMS = 4
    ARRIVED = 5
    """What belongs above the row under the cursor and would move it: until the next key it stands at the end."""


def part_of(item: Item) -> Part:
    """Return the part into which *item* belongs."""
    if item.approval is not None:
        return Part.UNACKNOWLEDGED if item.is_unacknowledged else Part.CALLS
    if item.file is not None:
        return Part.CONNECTORS if item.file.kind == "connector" else Part.FILES
    return Part.SUITES if item.suite is not None else Part.PROBLEMS


def file_rows(
    not_accepted: Iterable[NotAcceptedView], problems: Iterable[Problem]
) -> tuple[Item, ...]:
    """Return the rows of what is not accepted, and of the problems, by their parts."""
    connectors, suites, alone = group_files(not_accepted)
    return (
        *(Item(key=file_key(each.kind, each.name), file=each) for each in connectors),
        *(Item(key=suite_key(each.suite.suite_id), suite=each) for each in suites),
        *(Item(key=file_key(each.kind, each.name), file=each) for each in alone),
        *(Item(key=f"problem:{each}", problem=each) for each in problems),
    )


def file_outcome(item: Item, not_accepted: Set[str], states: Mapping[str, str]) -> FileOutcome:
    """Return what became of *item*, which is no row of its own any more.

    *not_accepted*: the keys of the files that wait. *states*: of all files of the home, by key.
    """
    if item.problem is not None:
        return "solved"
    keys = [file_key(each.kind, each.name) for each in item.files]
    if any(key in not_accepted for key in keys):
        return "changed"
    if any(states.get(key) in ACCEPTED_STATES for key in keys):
        return "accepted"
    return "changed" if any(key in states for key in keys) else "removed"
