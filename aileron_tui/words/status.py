"""The sentences of the status line: what a key would do, why not yet, what just happened."""

from collections.abc import Sequence
from typing import Final

VERBS: Final = {
    "approve": "approve",
    "accept": "accept it",
    "accept_rest": "accept the rest",
    "withdraw_acceptance": "withdraw its acceptance",
}
ALL_SEEN: Final = "✓ All seen."
RECHECKING: Final = "Looking once more before it runs …"
LOOKING: Final = "Still looking. Approve is possible once the answer is here, or has failed."
SENDING: Final = "Handing it over …"
UNDRAWABLE: Final = "✗ This cannot be drawn, so nothing decides it here. It stays waiting."
SCREEN_FAILED: Final = (
    "The console met a fault of its own and closed. What waited still waits; nothing was decided. "
    "The log says where: aileron logs."
)
STORAGE_STOPS: Final = "✗ Nothing can be decided until the audit can be written."
VAULT: Final = "The vault is locked. This stays waiting until it is open."
DEADLINE_OVER: Final = "Its time is over; it expires now, and nothing of it runs."
PROBLEM_READ: Final = "Nothing to decide here. Mend the file; it is read again when it changes."


def unknown_outcome(key: str) -> str:
    """Return what to do where nobody knows how a call ended; *key* looks again, if there is one."""
    look = f"{key} looks again" if key else "Look at the service itself"
    return f"? It may or may not have run. {look}; it is not repeated."


def unseen(count: int, total: int) -> str:
    """Return how much was not on screen yet."""
    return f"▼ {count} of {total} lines not seen yet."


def unseen_pressed(count: int, total: int, key: str, verb: str) -> str:
    """Return what the second press would do, where lines are unread."""
    return f"▼ {count} of {total} lines not seen. Press {key} again to {verb} without reading them."


def unread(count: int) -> str:
    """Return how many lines the key that was pressed once leaves unread."""
    return f"{count} {'line' if count == 1 else 'lines'} unread"


def no_preview_pressed(key: str) -> str:
    """Return what the second press would do, where there is no preview."""
    return f"○ No preview. Press {key} again to approve without one."


def no_preview(key: str, verb: str) -> str:
    """Return what the approve key stands for, where there is no preview."""
    return f"○ No preview. {key} {verb}, without a preview."


def changed(key: str, verb: str) -> str:
    """Return what the approve key would do after a change."""
    return f"▲ Changed. {key} {verb} as it is now."


def runs_nothing(key: str) -> str:
    """Return what the approve key stands for, where the action file changed."""
    return f"▲ Its action file changed: {key} would run nothing. The agent has to ask again."


def ready(key: str, verb: str) -> str:
    """Return what the approve key would do."""
    return f"{key} {verb}."


def reads_on(key: str) -> str:
    """Return what the reading key does."""
    return f"{key} reads on."


def lost(key: str) -> str:
    """Return what is left to do once the core has ended."""
    text = "✗ Aileron's core has ended. Nothing can be decided any more"
    return f"{text}; {key} quits, with exit code 70."


def ends_soon(seconds: int) -> str:
    """Return the warning of a near deadline."""
    return f"Ends in {seconds} s; then it expires."


def keys_dropped(count: int) -> str:
    """Return what happened to keys that came faster than a person types."""
    if count < 2:
        return "Other input came with the key. Nothing was decided."
    return f"{count} keys came at once. Nothing was decided."


def approved(title: str) -> str:
    """Return the report of a yes."""
    return f"✓ Approved: {title}"


def failed(title: str, outcome: str) -> str:
    """Return the report of a run that failed, with our sentence on how."""
    return f"✗ Failed: {title}. {outcome}" if outcome else f"✗ Failed: {title}."


def denied(title: str, agent: str, reason: str, calls: int = 1) -> str:
    """Return the report of a no to *calls* equal calls, with what the agent reads."""
    who = "The agent" if agent == "the agent" else agent
    text = f'{who} is told: "{reason}"' if reason else f"{who} is told that you gave no reason"
    equal = f", {calls} equal calls" if calls > 1 else ""
    return f"✗ Denied: {title}{equal}. {text}"


def ended_elsewhere(title: str, outcome: str) -> str:
    """Return the report of an item that ended without a key of yours."""
    return f"{title}: {outcome} without a key of yours. Nothing else changed here."


def confirm_quit(waiting: int, key: str) -> str:
    """Return the question before quitting while something waits."""
    verb = "waits. It stays" if waiting == 1 else "wait. They stay"
    tail = "expires" if waiting == 1 else "expire"
    return f"{waiting} {verb} waiting and {tail} on time. {key} again quits."


def runs(op: str) -> str:
    """Return the verb phrase of an approve key, where the action file gives none."""
    return f"runs {op}"


def runs_steps(ops: Sequence[str]) -> str:
    """Return the verb phrase of an approve key that runs several steps, their number first."""
    return f"runs {len(ops)} steps: {', '.join(ops)}"


def session_ended(agent: str) -> str:
    """Return the report of a session that a person ended."""
    return f"✓ Ended the session of {agent}. What it had asked for stays waiting."


def ends_session(key: str, agent: str) -> str:
    """Return what the key that ends a session would do."""
    return f"{key} ends the session of {agent}; it asks first."
