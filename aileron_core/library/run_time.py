"""How long an action may run whose file does not say it: as long as it names, once a person accepted that.

Its connector names a time for the op, or the caller does, in an argument for that. Accepting the file
accepts the time that was shown with it, as a record of its own beside the file's.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from aileron_core.actions.model import Action, ActionLimits
from aileron_core.actions.validate import MAX_WALL_SECONDS
from aileron_core.connectors.store import InstalledConnector
from aileron_core.console_port.view_models import RunTimeView
from aileron_core.library.acceptance import AcceptanceRecord

KIND: Final = "run_time"
"""The kind of such an acceptance; its name is the action file's."""
TIMEOUT_ARGUMENT: Final = "timeout_seconds"
"""The argument in which published actions take how long an op may wait for its service."""
_USUAL: Final = ActionLimits().wall_seconds

_Accepted = Mapping[tuple[str, str], AcceptanceRecord]
_Installed = Mapping[str, InstalledConnector]


def named_run_time(
    action: Action, file: str, sha256: str, installed: _Installed, accepted: _Accepted
) -> RunTimeView | None:
    """Return the time that *action* needs beyond the usual; None where its file says it, or nothing does."""
    if action.limits.has_wall_seconds:
        return None
    seconds = _named_by_connectors(action, installed)
    view = RunTimeView(seconds=seconds, usual=_USUAL, named_by="connector", accepted=False)
    if seconds <= _USUAL and _takes_timeout(action):
        view = replace(view, seconds=MAX_WALL_SECONDS, named_by=TIMEOUT_ARGUMENT)
    if view.seconds <= _USUAL:
        return None
    record = accepted.get((KIND, file))
    return replace(view, accepted=record is not None and record.digest == digest(sha256, view))


def digest(sha256: str, named: RunTimeView) -> str:
    """Return what an acceptance record has in place of a file's digest: that, and the seconds."""
    return f"{sha256} {named.seconds}"


def run_seconds(
    action: Action, file: str, sha256: str, installed: _Installed, accepted: _Accepted
) -> int:
    """Return how long *action* may run, with what was accepted."""
    named = named_run_time(action, file, sha256, installed, accepted)
    return named.seconds if named is not None and named.accepted else action.limits.wall_seconds


def _named_by_connectors(action: Action, installed: _Installed) -> int:
    """Return the sum over the steps; a step that names no time counts as one of the usual."""
    connectors = {each.fqn: installed.get(each.hash) for each in action.requires}
    found = [
        connector.manifest.wall_seconds.get(step.op, 0) if connector is not None else 0
        for step in action.steps
        for connector in (connectors.get(step.connector),)
    ]
    unnamed = _USUAL if 0 in found else 0
    return min(sum(found) + unnamed, MAX_WALL_SECONDS) if any(found) else 0


def _takes_timeout(action: Action) -> bool:
    return any(
        entry.name == TIMEOUT_ARGUMENT
        and all(each.type in ("integer", "number") for each in entry.types)
        for entry in action.inputs
    )
