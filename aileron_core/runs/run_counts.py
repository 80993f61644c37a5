"""How many calls of each session wait for a person, and how many run."""

from collections import Counter
from typing import Literal, TypeAlias

from aileron_core.runs import LiveRun
from aileron_core.runs.transitions import RunState

_Kind: TypeAlias = Literal["waiting", "running"]
_KINDS: dict[RunState, _Kind] = {
    RunState.PENDING: "waiting",
    RunState.AWAITING_VAULT: "waiting",
    RunState.CHECKING: "waiting",
    RunState.APPROVED: "running",
    RunState.EXECUTING: "running",
}


class RunCounts:
    """Counts kept up to date run by run: nothing here goes through all of them."""

    def __init__(self) -> None:
        self._kinds: dict[str, _Kind] = {}
        self._counts: Counter[tuple[str, _Kind]] = Counter()

    def update(self, run: LiveRun) -> bool:
        """Count *run* by its present state; return whether a count changed."""
        run_id, session_id = run.row.run_id, run.row.session_id
        before, now = self._kinds.get(run_id), _KINDS.get(run.row.state)
        if before == now:
            return False
        if before is not None:
            self._counts[session_id, before] -= 1
            if not self._counts[session_id, before]:
                del self._counts[session_id, before]
        if now is None:
            del self._kinds[run_id]
        else:
            self._kinds[run_id] = now
            self._counts[session_id, now] += 1
        return True

    def waiting(self, session_id: str) -> int:
        return self._counts.get((session_id, "waiting"), 0)

    def running(self, session_id: str) -> int:
        return self._counts.get((session_id, "running"), 0)
