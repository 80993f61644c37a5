"""Words on action files that were added together."""

from typing import Final

ADDED_TOGETHER: Final = "added together"
BY_ONE_ADD: Final = " by one `aileron action add`"
CANNOT_RUN: Final = "cannot run as it is"
CHANGED: Final = "changed on disk after it was accepted"
FIRST: Final = "LOOK AT THESE FIRST"
GATED: Final = "ASK YOU BEFORE EACH RUN"
READS: Final = "RUN WITHOUT ASKING YOU, MARKED AS READS"
SUITE: Final = "THE FILES"
HASH_REMARK: Final = "of their hashes and names, as sha256sum lists them"
NO_HOSTS: Final = "not known: no connector of theirs is installed"


def actions(count: int) -> str:
    """Return how many actions came together."""
    return f"{count} actions"


def title(count: int) -> str:
    """Return the question."""
    return f"Accept these {count} actions?"


def of_all(count: int, total: int) -> str:
    """Return how many of the files stand below."""
    return f"{count} of {total}"


def first_in_row(count: int) -> str:
    """Return how many of them a person should look at first, for a row of the list."""
    return f"{count} to look at first"


def warned(count: int) -> str:
    """Return the warning of the head."""
    runs = "runs" if count == 1 else "run"
    are = "is not marked as a read" if count == 1 else "are not marked as reads"
    return f"{count} {runs} without asking you and {are}"


def accept(all_key: str, rest_key: str, total: int, left_out: int) -> str:
    """Return what the keys would do; *left_out*: how many *rest_key* leaves out."""
    told = f"{all_key} accepts all {total} as they are"
    if not left_out:
        return f"{told}."
    these = "the 1 listed first" if left_out == 1 else f"the {left_out} listed first"
    return f"{told}; {rest_key} leaves out {these}."


def accepted(count: int) -> str:
    """Return the report of files that count now."""
    noun, verb = ("action", "It counts") if count == 1 else ("actions", "They count")
    return f"✓ Accepted: {count} {noun}. {verb} from now on."
