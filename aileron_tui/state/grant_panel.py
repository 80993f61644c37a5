"""The state of the panel of a grant: the shape, its tests, its end, and what the core says that it would do."""

import re
from dataclasses import replace
from typing import Final, TypeVar

from aileron_core.console_port.events import ShapeTried
from aileron_core.console_port.intents import TryShape
from aileron_core.console_port.standing import (
    FieldTest,
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


class GrantPanel:
    """What a person has chosen so far of a grant beside one call."""

    def __init__(self, item: Item | None = None) -> None:
        """*item*: the call, as it stands on screen when the panel opens."""
        view = item.approval if item is not None else None
        self.digest = view.digest if view is not None else ""
        self.offers: OffersView | None = None
        self.fields: tuple[OfferedField, ...] = ()
        self.terms: GrantTerms = GrantTerms(tests=(), seconds=SECONDS[0], uses=USES[0])
        self.index = 0
        """The row that the keys are about."""
        self.seen = set[int]()
        """The rows that were in view since the shape was chosen."""
        self._about: tuple[str, ...] = item.version if item is not None else ()
        self._sent: TryShape | None = None
        self._answer: ShapeTried | None = None

    def is_of(self, item: Item | None) -> bool:
        """Return whether *item* is still what the panel opened on."""
        return item is not None and item.version == self._about

    def on_offers(self, offers: OffersView) -> bool:
        """Take what the core offers; return whether that is nothing."""
        if self.offers is not None or self._about[:1] != (offers.approval_id,):
            return False
        self.offers, self.fields = offers, offers.fields
        self.terms = replace(self.terms, seconds=float(offers.seconds), uses=offers.uses)
        if offers.offers:
            self.choose(offers.offers[0].number)
        return not offers.offers

    def on_tried(self, event: ShapeTried) -> None:
        if self._about[:1] == (event.approval_id,):
            self._answer = event

    @property
    def selected(self) -> tuple[OfferedField, FieldTest] | None:
        """The row that the keys are about, and its test."""
        return (self.fields[self.index], self.terms.tests[self.index][1]) if self.fields else None

    @property
    def tried(self) -> TriedShape | None:
        """What the present tests would do; None until the core has answered."""
        answer = self._answer
        return answer.tried if answer is not None and answer.tests == self.terms.tests else None

    @property
    def version(self) -> tuple[object, ...]:
        """What a person must look at anew when it differs."""
        return (self.offers, self.terms, self.index, self.tried)

    @property
    def findings(self) -> tuple[str, ...]:
        """What wants a second press: answers of the past that it contradicts, rows that were not in view."""
        denied = sum(not each.approved for each in self.tried.matching) if self.tried else 0
        unseen = len(self.fields) - len(self.seen)
        return words.rules.findings(denied, unseen)

    def next_try(self) -> TryShape | None:
        """Return what asks the core about the present tests; None where that was asked."""
        wanted = TryShape(approval_id="".join(self._about[:1]), tests=self.terms.tests)
        if self.offers is None or not self.offers.offers or wanted == self._sent:
            return None
        self._sent = wanted
        return wanted

    # What keys change

    def choose(self, number: int) -> bool:
        """Take the shape *number*; return whether it is offered."""
        offers = self.offers.offers if self.offers is not None else ()
        for offer in offers:
            if offer.number == number:
                tests = zip((each.key for each in self.fields), offer.tests, strict=True)
                self.terms = replace(self.terms, number=number, tests=tuple(tests))
                self.seen.clear()
                return True
        return False

    def move(self, rows: int) -> None:
        self.index = max(0, min(self.index + rows, len(self.fields) - 1))

    def walk_test(self) -> None:
        """Put the next test to the row that is offered for it."""
        if self.selected is not None:
            offered, test = self.selected[0].tests, self.selected[1]
            names = tuple(each.name for each in offered)
            self._put(offered[names.index(_after(test.name, names))])

    def _put(self, test: FieldTest) -> None:
        tests = list(self.terms.tests)
        tests[self.index] = (tests[self.index][0], test)
        self.terms = replace(self.terms, tests=tuple(tests))

    def walk_end(self, key: str) -> None:
        """Change the time (`h`), the number of calls (`u`) or the scope (`s`)."""
        terms = self.terms
        if key == "h":
            self.terms = replace(terms, seconds=_after(terms.seconds, SECONDS))
        elif key == "u":
            self.terms = replace(terms, uses=_after(terms.uses, USES))
        elif self.offers is not None and self.offers.can_span_sessions:
            self.terms = replace(terms, scope="project" if terms.scope == "session" else "session")

    @property
    def written(self) -> FieldTest | None:
        """The row's test whose values a person may write; None where the field stays as it is."""
        if self.selected is None:
            return None
        offered, test = self.selected[0].tests, self.selected[1]
        if test.name in ("is", "any", "absent"):
            if not {each.name for each in offered} & {"any", "plain", "only"}:
                return None
            test = FieldTest("only", offered[0].values)
        # A comma or a line break of a value's own would be taken for one between two values.
        return None if any(not {",", "\n"}.isdisjoint(each) for each in test.values) else test

    def set_values(self, text: str) -> str:
        """Take the values of the row's test as a person wrote them; return what is wrong with them, as a clause."""
        test, values = self.written, tuple(e.strip() for e in text.split(",") if e.strip())
        if test is None or not values:
            return "no value was typed"
        name, (first, *more) = test.name, values
        if name == "plain":
            size = int(first) if re.fullmatch(r"[0-9]{1,5}", first) else 0
            if more or not 0 < size <= MAX_PLAIN:
                return f"type a number of characters, at most {MAX_PLAIN:,}"
        elif name in ("at_most", "at_least"):
            if more or not re.fullmatch(r"-?[0-9]{1,30}(\.[0-9]{1,30})?", first):
                return "type one number, such as 100 or 9.50"
        elif name != "within":
            name = "like" if "*" in text else "only"
        self._put(FieldTest(name, values))
        return ""


def _after(value: _T, values: tuple[_T, ...]) -> _T:
    return values[(values.index(value) + 1) % len(values)] if value in values else values[0]
