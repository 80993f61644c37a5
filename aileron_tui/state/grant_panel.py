"""The state of the panel of a grant: the shape, its tests, its end, and what the core says that it would do."""

import re
from typing import Final, TypeVar

from aileron_core.console_port.events import ShapeTried
from aileron_core.console_port.intents import TryShape
from aileron_core.console_port.standing import (
    FieldTest,
    FieldTests,
    GrantOffer,
    GrantScope,
    GrantTerms,
    OfferedField,
    OffersView,
    TriedShape,
)
from aileron_tui import words
from aileron_tui.items import Item

SECONDS: Final = (3600.0, 14_400.0, 86_400.0, 900.0)
USES: Final = (1, 5, 20, 100)
MAX_PLAIN: Final = 20_000
"""Characters of a text that a test can let through unread."""
_T = TypeVar("_T")
_NUMBER: Final = re.compile(r"-?[0-9]{1,30}(?:\.[0-9]{1,30})?")
_WRITABLE: Final = frozenset({"any", "plain", "only"})
"""A field that may have one of these tests can have values that a person writes."""


class GrantPanel:
    """What a person has chosen so far of a grant beside one call."""

    def __init__(self, item: Item | None = None) -> None:
        """*item*: the call, as it stands on screen when the panel opens."""
        view = item.approval if item is not None else None
        self.digest = view.digest if view is not None else ""
        self.offers: OffersView | None = None
        self.number = 0
        self.index = 0
        """The row that the keys are about."""
        self.seconds, self.uses = SECONDS[0], USES[0]
        self.scope: GrantScope = "session"
        self.seen = set[int]()
        """The rows that were in view since the shape was chosen."""
        self._about: tuple[str, ...] = item.version if item is not None else ()
        self._tests: list[FieldTest] = []
        self._sent: FieldTests | None = None
        self._answer: ShapeTried | None = None

    def is_of(self, item: Item | None) -> bool:
        """Return whether *item* is still what the panel opened on."""
        return item is not None and item.version == self._about

    def on_offers(self, offers: OffersView) -> bool:
        """Take what the core offers; return whether it was asked here."""
        if self.offers is not None or self._about[:1] != (offers.approval_id,):
            return False
        self.offers, self.seconds, self.uses = offers, float(offers.seconds), offers.uses
        if offers.offers:
            self.choose(offers.offers[0])
        return True

    def on_tried(self, event: ShapeTried) -> None:
        if self._about[:1] == (event.approval_id,):
            self._answer = event

    @property
    def fields(self) -> tuple[OfferedField, ...]:
        return self.offers.fields if self.offers is not None else ()

    @property
    def tests(self) -> FieldTests:
        return tuple(zip((each.key for each in self.fields), self._tests, strict=False))

    @property
    def tried(self) -> TriedShape | None:
        """What the present tests would do; None until the core has answered."""
        answer = self._answer
        return answer.tried if answer is not None and answer.tests == self.tests else None

    @property
    def version(self) -> tuple[object, ...]:
        """What a person must look at anew when it differs."""
        ends = (self.seconds, self.uses, self.scope)
        return (self.offers, self.tests, self.index, ends, self.tried)

    @property
    def terms(self) -> GrantTerms:
        return GrantTerms(
            number=self.number,
            tests=self.tests,
            seconds=self.seconds,
            uses=self.uses,
            scope=self.scope,
        )

    @property
    def findings(self) -> tuple[str, ...]:
        """What wants a second press: answers of the past that it contradicts, rows that were not in view."""
        denied = sum(not each.approved for each in self.tried.matching) if self.tried else 0
        unseen = len(self.fields) - len(self.seen)
        found = [words.grants.denied_before(denied)] if denied else []
        return (*found, words.grants.rows_unseen(unseen)) if unseen else tuple(found)

    def next_try(self) -> TryShape | None:
        """Return what asks the core about the present tests; None where that was asked."""
        if self.offers is None or not self._tests or self._sent == self.tests:
            return None
        self._sent = self.tests
        return TryShape(approval_id=self.offers.approval_id, tests=self.tests)

    # What keys change

    def offer(self, number: int) -> GrantOffer | None:
        offers = self.offers.offers if self.offers is not None else ()
        return next((each for each in offers if each.number == number), None)

    def choose(self, offer: GrantOffer) -> None:
        self.number, self._tests = offer.number, list(offer.tests)
        self.seen.clear()

    def move(self, rows: int) -> None:
        self.index = max(0, min(self.index + rows, len(self.fields) - 1))

    def walk_test(self) -> None:
        """Put the next test to the row that is offered for it."""
        names = [each.name for each in self.fields[self.index].tests]
        name = self._tests[self.index].name
        at = names.index(name) + 1 if name in names else 0
        self._tests[self.index] = self.fields[self.index].tests[at % len(names)]

    def walk_seconds(self) -> None:
        self.seconds = _after(self.seconds, SECONDS)

    def walk_uses(self) -> None:
        self.uses = _after(self.uses, USES)

    def walk_scope(self) -> None:
        self.scope = "project" if self.scope == "session" else "session"

    @property
    def can_span_sessions(self) -> bool:
        return self.offers is not None and self.offers.can_span_sessions

    @property
    def written(self) -> FieldTest | None:
        """The row's test whose values a person may write; None where the field stays as it is."""
        if not self._tests:
            return None
        field, test = self.fields[self.index], self._tests[self.index]
        if test.name in ("is", "any", "absent"):
            if _WRITABLE.isdisjoint(each.name for each in field.tests):
                return None
            test = FieldTest("only", field.tests[0].values)
        # A comma or a line break of a value's own would be taken for one between two values.
        return None if any(not {",", "\n"}.isdisjoint(each) for each in test.values) else test

    def set_values(self, text: str) -> str:
        """Take the values of the row's test as a person wrote them; return what is wrong with them, as a clause."""
        test = self.written
        values = tuple(each.strip() for each in text.split(",") if each.strip())
        if test is None or not values:
            return words.grants.NO_VALUE
        name, (first, *more) = test.name, values
        if name == "plain":
            size = int(first) if re.fullmatch(r"[0-9]{1,5}", first) else 0
            if more or not 0 < size <= MAX_PLAIN:
                return words.grants.not_a_size(MAX_PLAIN)
        elif name in ("at_most", "at_least"):
            if more or not _NUMBER.fullmatch(first):
                return words.grants.NO_NUMBER
        elif name in ("only", "like"):
            name = "like" if any("*" in each for each in values) else "only"
        self._tests[self.index] = FieldTest(name, values)
        return ""


def _after(value: _T, values: tuple[_T, ...]) -> _T:
    at = values.index(value) + 1 if value in values else 0
    return values[at % len(values)]
