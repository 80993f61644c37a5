"""The state of the deny panel: the calls of ended sessions, reasons that were given before, whether the denial stands."""

from collections import Counter
from collections.abc import Iterable, Sequence

from aileron_core.console_port.standing import MAX_GRANT_USES, GrantTerms, OfferedField, OffersView
from aileron_core.console_port.view_models import ApprovalView
from aileron_core.policy.offers import TEXT_FORMATS
from aileron_core.policy.values import ARGUMENT

REASONS_KEPT = 50
REASON_LIMIT = 2_000
"""The most characters of a reason that the core accepts."""
STANDS_SECONDS = 3600.0
"""For so long later calls are denied too."""
_OPEN = frozenset({"pending", "awaiting_vault"})
"""States in which nobody has answered yet."""


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


def _is_text(field: OfferedField) -> bool:
    return field.field.multiline or field.field.format in TEXT_FORMATS


class DenyPanel:
    """What the deny panel knows besides its call."""

    def __init__(self, approvals: Iterable[ApprovalView] = ()) -> None:
        self._gone: dict[str, None] = {}
        """Calls of ended sessions that nobody has answered, in order of arrival."""
        for view in approvals:
            self.update(view)
        self.reasons = ReasonHistory()
        self._counted: frozenset[str] = frozenset()
        self._together: dict[str, Counter[str]] = {}
        self._about = ""
        """The call that the panel is open on."""
        self.stands = False
        """Later calls like it are denied too."""
        self.stays: tuple[OfferedField, ...] = ()
        """The fields that later ones share to be denied too: what the call reaches, else what it was given but texts."""
        self.terms: GrantTerms | None = None
        """On which the denial would stand; None until the core was asked and has answered."""

    def update(self, view: ApprovalView) -> None:
        if view.state in _OPEN and view.requester_gone:
            self._gone[view.call_id] = None
        else:
            self._gone.pop(view.call_id, None)

    def open(self, view: ApprovalView) -> None:
        """The panel opens on *view*: what can be denied with it now is counted, what comes later is not.

        So the number that a person reads never grows under the hand that presses.
        """
        others = self._gone.keys() - {view.call_id}
        self._counted = frozenset(others if view.requester_gone else ())
        self.reasons.reset()
        self._about, self.stands, self.terms = view.call_id, False, None

    def on_offers(self, offers: OffersView) -> bool:
        """Take what the core says; return whether nothing is known of the call that could be denied again."""
        if offers.approval_id != self._about:
            return False
        given = [each for each in offers.fields if each.tests and each.tests[0].name == "is"]
        named = [each for each in given if each.key.startswith(ARGUMENT) and not _is_text(each)]
        self.stays = tuple([each for each in given if each.is_reach] or named)
        is_known = bool(offers.fields) or not offers.why_none
        refused, self.stands = self.stands and not is_known, self.stands and is_known
        tests = tuple((each.key, each.tests[0]) for each in self.stays)
        self.terms = GrantTerms(
            decision="deny", tests=tests, seconds=STANDS_SECONDS, uses=MAX_GRANT_USES
        )
        return refused

    @property
    def others(self) -> tuple[str, ...]:
        """Return the other calls of ended sessions that were counted when the panel opened and still wait."""
        return tuple(key for key in self._gone if key in self._counted)

    def mark_sent(self, keys: Sequence[str], reason: str) -> None:
        """Record that one press answered *keys*, all for *reason*."""
        counts: Counter[str] = Counter()
        self._together.update(dict.fromkeys(keys, counts))
        self.reasons.add(reason)

    def count(self, key: str, outcome: str) -> Counter[str]:
        """*key* had this *outcome*: return how many had each, of those that went out with it."""
        counts = self._together.pop(key, Counter())
        counts[outcome] += 1
        return counts
