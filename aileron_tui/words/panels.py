"""The words of what is asked first: stop everything, end a session; and of pause and lock."""

from typing import Final

from aileron_tui.words.bars import calls_waiting

REASON_PLACEHOLDER: Final = "optional"

LOCKED: Final = "Locked."
LOCKED_KEY: Final = "Press any key to show everything again; it does nothing else."


def paused(key: str, since: str) -> str:
    """Return the banner of a pause."""
    return f"All calls are on hold (since {since}). {key} resumes them."


def paused_first(key: str, approve: str) -> str:
    """Return why nothing can be approved while all calls are held."""
    return f"Nothing can be approved while calls are on hold. {key} resumes; then press {approve}."


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun if count == 1 else noun + 's'}"


def stop_question(waiting: int, sessions: int, running: int) -> str:
    """Return the question before everything is stopped, with what it would stop."""
    parts = [
        f"denies {_counted(waiting, 'call')}",
        f"ends {_counted(sessions, 'session')}",
        f"stops {_counted(running, 'run')}",
    ]
    return f"Stop everything? This {parts[0]}, {parts[1]} and {parts[2]}."


STOP_REMARK: Final = "A stopped run may already have done its work, so its outcome is unknown."


def stop_run_question(name: str, time: str) -> str:
    """Return the question before one call is stopped. *name* was rendered."""
    return f'Stop "{name}"? It has been running for {time}.'


STOP_RUN_REMARK: Final = (
    "If it has sent a request that may change something, its outcome is unknown afterwards."
)


def everything_stopped(denied: int, sessions: int, runs: int) -> str:
    """Return the report of what stopping everything did."""
    text = f"{_counted(denied, 'call')} denied, {_counted(sessions, 'session')} ended"
    return f"✗ Everything stopped: {text}, {_counted(runs, 'run')} stopped."


def end_question(agent: str) -> str:
    """Return the question before a session ends. *agent* was rendered."""
    return f"End the session of {agent}?"


def end_remark(waiting: int) -> str:
    """Return what the end of a session does and does not."""
    text = "Its token stops working."
    if not waiting:
        return text
    verb = "keeps" if waiting == 1 else "keep"
    return f"{text} Its {_counted(waiting, 'call')} {verb} waiting."


def equal_calls(count: int, *, gone: bool = False) -> str:
    """Return how many calls wait that can be denied with the one that the panel is about.

    *gone*: those of ended sessions; else equal ones.
    """
    if not count:
        return ""
    verb = "waits" if count == 1 else "wait"
    if gone:
        return f"{_counted(count, 'other call')} of ended sessions {verb} too."
    return f"{_counted(count, 'identical call')} of this session {verb} too."


def locked(waiting: int) -> str:
    """Return the one sentence of a locked console."""
    return f"{LOCKED} {calls_waiting(waiting)}."


def deny_question(title: str, agent: str) -> str:
    """Return the question of the deny panel."""
    return f'Deny "{title}". Reason ({agent} will read it):'


SEARCH_QUESTION: Final = "Search in the document:"
SEARCH_PLACEHOLDER: Final = "text; case is ignored"


def matches(number: int, count: int) -> str:
    """Return which match of a search is in view."""
    return f"{number} of {count}" if count else "not found"


LINK_TOO_LONG: Final = "This address is too long for this window, so it cannot be opened."


def long_link(host: str, size: int) -> str:
    """Return what is known of an address of *size* characters that cannot be shown whole."""
    return f"It leads to {host} and has {size:,} characters. Enlarge the window to see all of it."


def link_question(host: str) -> str:
    """Return the question before a link is opened. *host* is ASCII."""
    return f"Open this address in your browser? It leads to {host}."


def link_warnings(has_user: bool, is_renamed: bool) -> tuple[str, ...]:
    """Return what to look at in an address."""
    user = ("The part before the @ is a user name, not a host.",) if has_user else ()
    return (*user, *(("The host name has letters outside ASCII.",) if is_renamed else ()))
