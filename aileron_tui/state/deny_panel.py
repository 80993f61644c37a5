"""The state of the deny panel: equal calls that wait (what counts as equal), and reasons that were given before."""

from collections.abc import Iterable, Sequence

from aileron_core.console_port.view_models import ApprovalView

REASONS_KEPT = 50
REASON_LIMIT = 2_000
"""The most characters of a reason that the core accepts."""
_OPEN = frozenset({"pending", "awaiting_vault"})
"""States in which nobody has answered yet."""

_Shape = tuple[str, str, str]


class ReasonHistory:
    """The reasons given since the console started, newest first, each once; in memory alone."""

    def __init__(self) -> None:
        self._given: list[str] = []
        self._at = -1
        self._written = ""

    def add(self, reason: str) -> None:
        """Keep *reason*, which was sent, unless it is empty."""
        if reason:
            self._given = [reason, *(each for each in self._given if each != reason)]
            del self._given[REASONS_KEPT:]

    def reset(self) -> None:
        """A new reason is asked for: the newest is the first that comes back."""
        self._at, self._written = -1, ""

    @property
    def has_earlier(self) -> bool:
        return self._at + 1 < len(self._given)

    @property
    def has_later(self) -> bool:
        """What stands there was brought back: there is one after it, or what was written."""
        return self._at >= 0

    def earlier(self, written: str) -> str:
        """Return the reason before the one that stands there; *written* comes back at the end.

        Without one, *written* stays.
        """
        if not self.has_earlier:
            return written
        if self._at < 0:
            self._written = written
        self._at += 1
        return self._given[self._at]

    def later(self, written: str) -> str:
        """Return the reason after the one that stands there, at the end what the person had written."""
        if not self.has_later:
            return written
        self._at -= 1
        return self._given[self._at] if self._at >= 0 else self._written


class EqualCalls:
    """Calls that wait, by session, action and arguments, and those of ended sessions. Nothing here walks over all of them."""

    def __init__(self) -> None:
        self._open: dict[_Shape, dict[str, None]] = {}
        self._gone: dict[str, None] = {}

    def update(self, view: ApprovalView) -> None:
        shape, key = _shape(view), view.call_id
        if view.state in _OPEN and view.requester_gone:
            self._gone[key] = None
        else:
            self._gone.pop(key, None)
        if shape is None:
            return
        if view.state in _OPEN:
            self._open.setdefault(shape, {})[key] = None
        elif shape in self._open:
            self._open[shape].pop(key, None)
            if not self._open[shape]:
                del self._open[shape]

    def count(self, view: ApprovalView | None) -> int:
        """Return how many calls wait that are equal to *view*, itself among them; 0 if it does not wait."""
        shape = _shape(view) if view is not None and view.state in _OPEN else None
        return len(self._open.get(shape, {})) if shape is not None else 0

    def equal_to(self, view: ApprovalView) -> tuple[str, ...]:
        """Return the others that wait and are equal to *view*, in order of arrival."""
        shape = _shape(view)
        equal = self._open.get(shape, {}) if shape is not None else {}
        return tuple(key for key in equal if key != view.call_id)

    def together_with(self, view: ApprovalView) -> tuple[str, ...]:
        """Return the others that may be denied with *view*: equal ones, or all of ended sessions where its own has ended."""
        if view.requester_gone:
            return tuple(key for key in self._gone if key != view.call_id)
        return self.equal_to(view)


def _shape(view: ApprovalView) -> _Shape | None:
    if not view.args_sha256:
        return None
    return view.session_id, view.action, view.args_sha256


class DenyPanel:
    """What the deny panel knows besides its call."""

    def __init__(self, approvals: Iterable[ApprovalView] = ()) -> None:
        self.calls = EqualCalls()
        for view in approvals:
            self.calls.update(view)
        self.reasons = ReasonHistory()
        self._about: ApprovalView | None = None
        self._counted: frozenset[str] = frozenset()
        self._together: dict[str, list[str]] = {}

    def open(self, view: ApprovalView) -> None:
        """The panel opens on *view*: what can be denied with it now is counted, what comes later is not.

        So the number that a person reads never grows under the hand that presses.
        """
        self._about, self._counted = view, frozenset(self.calls.together_with(view))
        self.reasons.reset()

    @property
    def equal_calls(self) -> tuple[str, ...]:
        """Return the calls that were counted when the panel opened and still wait."""
        if self._about is None:
            return ()
        return tuple(key for key in self.calls.together_with(self._about) if key in self._counted)

    def mark_sent(self, keys: Sequence[str], reason: str) -> None:
        """Record that one press denied *keys*, all for *reason*."""
        ended: list[str] = []
        self._together.update(dict.fromkeys(keys, ended))
        self.reasons.add(reason)

    def count_ended(self, key: str) -> int:
        """*key* was denied: return how many of those that went out with it have been, itself too."""
        ended = self._together.pop(key, [])
        ended.append(key)
        return len(ended)
