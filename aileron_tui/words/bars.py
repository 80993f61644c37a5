"""The words of top bar, banners, questions, lock, search and help; what a question asks stands with it (`pages/questions.py`)."""

from typing import Final

NOTHING_WAITS: Final = "Nothing is waiting."
BANNER_STORAGE: Final = "✗ NOTHING CAN RUN: the audit cannot be written."
BANNER_LOST: Final = "✗ THE SERVER HAS STOPPED. No waiting call was lost."
BANNER_CUT_OFF: Final = "✗ CUT OFF FROM THE SERVER. No waiting call was lost."
"""In an attached console: the server may well go on."""
ROUTE: Final = "Test route: "
ROUTE_TO: Final = " is answered by "
LACKS_LETTERS: Final = (
    "▲ this terminal is not UTF-8: each letter it cannot show is replaced by a marked ?"
)


def too_small(waiting: int) -> str:
    return f"Make this pane at least 60 x 16. {calls_waiting(waiting)}."


def calls_waiting(count: int) -> str:
    """Return how many calls wait, without a stop."""
    return f"{count} call is waiting" if count == 1 else f"{count} calls are waiting"


def accepted_installed() -> str:
    return "▲ all files found at start were accepted without review (--accept-installed)"


def attached(hand: str, *, is_owners: bool) -> str:
    does = "decides, accepts, binds, pauses, stops" if is_owners else "approves and denies"
    return f"▲ {hand} {does}; the console itself does the rest"


def inspects_models() -> str:
    """Return the standing line of `[gateway] inspect`."""
    return "▲ Aileron reads in models' answers which tools they call (gateway.inspect)"


def more_warnings(count: int, *, of_more: bool, key: str) -> str:
    """Return how many standing warnings have no row; *of_more*: besides some that have one."""
    noun = "warning" if count == 1 else "warnings"
    text = f"and {count} more {noun}" if of_more else f"{count} {noun}"
    return f"▲ {text}: {key} lists them"


def not_accepted(count: int, words: int) -> str:
    """Return how many files nobody accepted, for the top bar, in 0 to 2 *words*."""
    noun = "file" if count == 1 else "files"
    return f"▲ {count}" + ("", f" {noun}", " not accepted")[words]


def unknown_outcomes(count: int, words: int) -> str:
    """Return how many calls ended in a way that nobody knows, for the top bar, in 0 to 2 *words*."""
    noun = "outcome" if count == 1 else "outcomes"
    return f"? {count}" + ("", " unknown", f" unknown {noun}")[words]


def load_problems(count: int, keys: str, words: int) -> str:
    """Return how many problems the files in the home have, in 0 to 2 *words*, and the *keys* there."""
    noun = "problem" if count == 1 else "problems"
    if not words:
        return f"! {count}: {keys}"
    named = noun if words == 1 else f"file {noun}"
    return f"! {count} {named}: press {keys.replace(' ', ', ')}"


def agents_at_work(count: int) -> str:
    return f"{count} {'agent is' if count == 1 else 'agents are'} connected."


def ready_actions(count: int) -> str:
    if not count:
        return (
            "No actions yet. Add some with `aileron init --example` or `aileron action add PATH`."
        )
    return f"{count} {'action is' if count == 1 else 'actions are'} ready for agents."


LOCKED: Final = "Locked."
LOCKED_KEY: Final = "Press any key to show everything again; it does nothing else."


def paused(key: str, since: str) -> str:
    return f"All calls are on hold (since {since}). {key} resumes them."


def paused_first(key: str, approve: str) -> str:
    return f"Nothing can be approved while calls are on hold. {key} resumes; then press {approve}."


def counted(count: int, noun: str) -> str:
    """Return *count* of what *noun*, a singular, names."""
    return f"{count} {noun if count == 1 else noun + 's'}"


def everything_stopped(denied: int, sessions: int, runs: int) -> str:
    """Return the report of what stopping everything did."""
    text = f"{counted(denied, 'call')} denied, {counted(sessions, 'session')} ended"
    return f"✗ Everything stopped: {text}, {counted(runs, 'run')} stopped."


def locked(waiting: int) -> str:
    return f"{LOCKED} {calls_waiting(waiting)}."


def matches(number: int, count: int) -> str:
    return f"{number} of {count}" if count else "not found"


PALETTE: Final = "every command by name"
PALETTE_NONE: Final = "No command matches here."
HELP: Final = "KEYS"
HELP_STANDING: Final = "WARNINGS"
HELP_VIEWS: Final = "waiting, activity, audit, actions, sessions"
HELP_SIGNS: Final = "SIGNS"
HELP_GLYPHS: Final = (
    ("●", "waiting, preview fetched"),
    ("◌", "preview being fetched"),
    ("○", "waiting without a preview; not connected"),
    ("▲", "changed, or needs attention"),
    ("◇", "waiting for the vault or an account"),
    ("▶", "running"),
    ("✓", "approved, or done"),
    ("✗", "denied, failed or refused"),
    ("–", "expired"),
    ("←", "withdrawn by its agent"),
    ("?", "unknown outcome; unverified agent"),
    ("!", "a file with a problem"),
    ("┃", "fetched or computed by Aileron"),
    ("│", "from the audit"),
    ("┊", "claimed by the agent"),
)


def help_rest(seconds: float) -> tuple[str, str]:
    return (
        "A filled key acts at once; one with … asks first.",
        f"A key counts once the item and the keyboard have been still for {seconds:g} s.",
    )
