"""Calls that a person approved for the rest of their session: equal ones run without asking again.

In this process's memory alone: nothing on disk can permit a call.
"""

from dataclasses import dataclass, field

from aileron_core.clock import rfc3339


@dataclass(frozen=True, slots=True, kw_only=True)
class RememberedCall:
    """A person's yes to a call and to those equal to it."""

    run_id: str
    """The run that they saw."""
    at: float
    """Epoch seconds."""
    place: str
    """`Facts.place`: an equal call whose path leads elsewhere by then is another call."""

    @property
    def allowed_by(self) -> str:
        """What the record of a later run says."""
        return f"a person's A at {rfc3339(self.at)}"


@dataclass(slots=True)
class RememberedCalls:
    """By session, action and SHA-256 of the arguments (`LiveRun.args_sha256`, which is not keyed).

    They stand in for a person's yes alone: whoever asks `covers` looks at the rules that deny first.
    """

    _calls: dict[str, dict[tuple[str, str], RememberedCall]] = field(
        default_factory=dict[str, dict[tuple[str, str], RememberedCall]]
    )

    def add(self, session_id: str, action: str, args_sha256: str, call: RememberedCall) -> None:
        self._calls.setdefault(session_id, {})[action, args_sha256] = call

    def covers(
        self, session_id: str, action: str, args_sha256: str, *, place: str
    ) -> RememberedCall | None:
        """Return the yes that covers a call; None if there is none."""
        yes = self._calls.get(session_id, {}).get((action, args_sha256))
        return yes if yes is not None and yes.place == place else None

    def forget(self, session_id: str, action: str, args_sha256: str) -> None:
        self._calls.get(session_id, {}).pop((action, args_sha256), None)

    def forget_session(self, session_id: str) -> None:
        self._calls.pop(session_id, None)
