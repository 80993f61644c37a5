"""The words of files that a person accepts, one or several together, and of their problems."""

from typing import Final

FILE_EFFECT: Final = "FILE"
FILE_SECTION: Final = "THE FILE"
PROBLEM_TITLE: Final = "A file has a problem"
THEN_GATED: Final = "agents can ask for it, and every run waits for you"
THEN_FREE: Final = "▲ agents can run it at any time; no run of it waits for you"
READ_SECTION: Final = "THE READ"
ACCEPT_READ: Final = "Let this connector read by POST in its previews?"
READ_WHY: Final = "tried in a preview, and refused"
READ_ROW: Final = "by POST: "
THEN_GRAPHQL: Final = (
    "its previews may send GraphQL there by POST; Aileron reads each and lets one query alone pass"
)
THEN_AWS: Final = "its previews may ask AWS for exactly this operation, by POST; that it only reads is for you to know"
WARN_READS_UNSEEN: Final = "reads by POST in previews, accepted unseen (--accept-installed)"
THEN_CONNECTOR: Final = "actions of yours can use it, on these hosts only"
WARN_FREE: Final = "runs without asking you"
ADDED_TOGETHER: Final = "added together"
BY_ONE_ADD: Final = " by one `aileron action add`"
CANNOT_RUN: Final = "cannot run as it is"
CHANGED_SINCE: Final = "changed on disk after it was accepted"
LOOK_FIRST: Final = "LOOK AT THESE FIRST"
SUITE_GATED: Final = "ASK YOU BEFORE EACH RUN"
SUITE_READS: Final = "RUN WITHOUT ASKING YOU, MARKED AS READS"
SUITE_FILES: Final = "THE FILES"
HASH_REMARK: Final = "of their hashes and names, as sha256sum lists them"
NO_HOSTS: Final = "not known: no connector of theirs is installed"


def accepted(name: str) -> str:
    """Return the report of a file that counts now."""
    return f"✓ Accepted: {name}. It counts from now on."


def accept(key: str, kind: str, name: str) -> str:
    """Return what the accept key would do."""
    if kind == "preview":
        return f"{key} lets previews read by POST: {name}."
    return f"{key} accepts the {kind} {name}, exactly as it is."


def problem_why(severity: str) -> str:
    """Return what the problem of a file does."""
    if severity == "warning":
        return "it counts as it is; look at this all the same"
    return "it cannot be used as it is, and nothing of it runs"


def why_not_accepted(kind: str, why: str) -> str:
    """Return why a file does not count."""
    if kind == "preview":
        return "A preview tried to read this by POST and was refused: nobody accepted it."
    lies = (
        "changed on disk after it was accepted"
        if why == "changed"
        else "lies there; nobody accepted it"
    )
    return f"This {kind} {lies}."


def actions(count: int) -> str:
    """Return how many actions came together."""
    return f"{count} actions"


def suite_question(count: int) -> str:
    """Return the question."""
    return f"Accept these {count} actions?"


def of_all(count: int, total: int) -> str:
    """Return how many of the files stand below."""
    return f"{count} of {total}"


def first_in_row(count: int) -> str:
    """Return how many of them a person should look at first, for a row of the list."""
    return f"{count} to look at first"


def suite_warning(count: int) -> str:
    """Return the warning of the head."""
    runs = "runs" if count == 1 else "run"
    are = "is not marked as a read" if count == 1 else "are not marked as reads"
    return f"{count} {runs} without asking you and {are}"


def accept_suite(all_key: str, rest_key: str, total: int, left_out: int) -> str:
    """Return what the keys would do; *left_out*: how many *rest_key* leaves out."""
    text = f"{all_key} accepts all {total} as they are"
    if not left_out:
        return f"{text}."
    these = "the 1 listed first" if left_out == 1 else f"the {left_out} listed first"
    return f"{text}; {rest_key} leaves out {these}."


def suite_accepted(count: int) -> str:
    """Return the report of files that count now."""
    noun, verb = ("action", "It counts") if count == 1 else ("actions", "They count")
    return f"✓ Accepted: {count} {noun}. {verb} from now on."


def acceptance_withdrawn(kind: str, name: str) -> str:
    """Return the report of a file that does not count any more."""
    if kind == "preview":
        return f"✓ Acceptance withdrawn: {name}. No preview reads it by POST any more."
    return f"✓ Acceptance withdrawn: {name}. Agents see it no more."


def withdraws_acceptance(key: str, kind: str, name: str) -> str:
    """Return what the key that withdraws an acceptance would do."""
    if kind == "preview":
        return f"{key} ends it: no preview reads by POST any more: {name}."
    return f"{key} withdraws acceptance; agents see {name} no more."
