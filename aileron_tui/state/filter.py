"""The filter language of the lists: words, `agent:`, `action:`, `state:`, `age:` and the like. Pure.

    Filter ::= (Term (" "+ Term)*)?
    Term   ::= Word | Field ":" Value ("," Value)*
    Word   ::= anything without a blank, or anything between two `"`

All terms must hold; of the values of one field any may. Text is found anywhere and in any case. An
age is `age:5m` or `age:<5m` (younger than that) or `age:>2h` (older); units are s, m, h and d.
A term that is not understood is reported, and the others still apply.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from aileron_core.actions.model import shown_name
from aileron_core.console_port.view_models import WAITING_STATES, ApprovalView, NotAcceptedView
from aileron_core.errors import Problem
from aileron_tui import words
from aileron_tui.items import Item, SuiteFiles

_TERM = re.compile(r'(?:[^ "]|"[^"]*(?:"|$))+', re.DOTALL)
_FIELD = re.compile(r"([A-Za-z]+):(.*)", re.DOTALL)
_AGE = re.compile(r"([<>]?)(\d{1,6})([smhd]|min)")
_SECONDS = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400}
ITEM_FIELDS = ("agent", "action", "state", "effect", "host")
"""What the filter of the waiting list knows, besides words and `age:`."""
ARGUMENT_CHARACTERS = 200
"""Of each argument this much is looked through: 10,000 calls are narrowed at each key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterFields:
    """The parts of a row that a filter matches; text from outside is raw."""

    text: str
    """All that its words are looked for in."""
    fields: Mapping[str, str] = field(default_factory=dict[str, str])
    at: float | None = None
    """Epoch seconds of what its age is counted from; None where it has no age."""


@dataclass(frozen=True, slots=True)
class _Age:
    older: bool
    seconds: int

    def holds(self, age: float) -> bool:
        return age > self.seconds if self.older else age <= self.seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """The terms of a filter that were understood."""

    words: tuple[str, ...] = ()
    fields: tuple[tuple[str, tuple[str, ...]], ...] = ()
    ages: tuple[_Age, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.words or self.fields or self.ages)

    def matches(self, row: FilterFields, now: float) -> bool:
        """Return whether *row* is one that the filter lets through, at *now* epoch seconds."""
        if row.at is None:
            if self.ages:
                return False
        elif not all(age.holds(now - row.at) for age in self.ages):
            return False
        for name, values in self.fields:
            content = row.fields.get(name, "").casefold()
            if not any(value in content for value in values):
                return False
        text = row.text.casefold()
        return all(word in text for word in self.words)


EVERYTHING = Filter()
"""The filter that lets all rows through."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedFilter:
    """What a person typed: the filter in it, and sentences on what was not understood."""

    text: str
    query: Filter = EVERYTHING
    problems: tuple[str, ...] = ()


def parse(text: str, fields: Iterable[str]) -> ParsedFilter:
    """Return what *text* means in a list whose rows have *fields* (and an age)."""
    known = frozenset(fields)
    searched: list[str] = []
    chosen: list[tuple[str, tuple[str, ...]]] = []
    ages: list[_Age] = []
    problems: list[str] = []
    for term in _TERM.findall(text):
        named = _FIELD.fullmatch(term)
        if named is None:
            word = _bare(term)
            if word:
                searched.append(word)
            continue
        name, value = named[1].casefold(), named[2]
        if name == "age":
            age = _age(_bare(value))
            if age is None:
                problems.append(words.views.bad_age(_bare(value)))
            else:
                ages.append(age)
        elif name not in known:
            problems.append(words.views.unknown_field(name, sorted({*known, "age"})))
        elif values := _values(value):
            chosen.append((name, values))
        else:
            problems.append(words.views.empty_field(name))
    query = Filter(words=tuple(searched), fields=tuple(chosen), ages=tuple(ages))
    return ParsedFilter(text=text, query=query, problems=tuple(problems))


def _bare(text: str) -> str:
    """Return *text* without its quotes, for comparing."""
    return text.replace('"', "").casefold()


def _values(text: str) -> tuple[str, ...]:
    return tuple(value for part in text.split(",") if (value := _bare(part).strip()))


def _age(text: str) -> _Age | None:
    match = _AGE.fullmatch(text)
    if match is None:
        return None
    return _Age(older=match[1] == ">", seconds=int(match[2]) * _SECONDS[match[3]])


def item_fields(item: Item) -> FilterFields:
    if item.calls:
        first, *others = map(call_fields, item.calls)
        return replace(first, text=" ".join((first.text, *(each.text for each in others))))
    if item.file is not None:
        return file_fields(item.file)
    if item.suite is not None:
        return suite_fields(item.suite)
    return problem_fields(item.problem) if item.problem is not None else FilterFields(text="")


def call_fields(view: ApprovalView) -> FilterFields:
    """Return what a call offers; its age counts from when it was asked for."""
    state = f"{view.state} {words.item.OUTCOMES.get(view.shown_state, '')}"
    if view.state in WAITING_STATES or view.awaits_acknowledgement:
        state += " waiting"
    if view.drift is not None:
        state += " changed"
    if view.preview.status != "ready":
        state += " no preview"
    hosts = " ".join(view.hosts)
    sent = " ".join(f"{e.label} {e.value[:ARGUMENT_CHARACTERS]}" for e in view.arguments)
    named = {
        "agent": view.agent,
        "action": f"{shown_name(view.action)} {view.action}",
        "state": state,
        "effect": view.effect,
        "host": hosts,
    }
    names = f"{view.title} {view.preview.gist} {view.agent} {view.session_label} {named['action']}"
    ops = " ".join(f"{step.connector}.{step.op}" for step in view.steps)
    ops = ops or f"{view.connector}.{view.op}"
    text = f"{names} {view.effect} {ops} {hosts} {sent} {state}"
    return FilterFields(text=text, fields=named, at=view.requested_at)


def file_fields(file: NotAcceptedView) -> FilterFields:
    """Return what a file that is not accepted offers; it has no age, so an age leaves it out."""
    state = f"not accepted {file.change}"
    named = {"action": file.name, "state": state, "host": " ".join(file.hosts)}
    runs = " ".join(file.steps)
    text = f"{file.kind} {file.name} {file.file} {file.connector} {runs} {named['host']} {state}"
    return FilterFields(text=text, fields=named, at=None)


def problem_fields(problem: Problem) -> FilterFields:
    text = f"{problem.file} {problem.key} {problem.message}"
    return FilterFields(text=text, fields={"state": f"problem {problem.severity}"}, at=None)


def suite_fields(suite: SuiteFiles) -> FilterFields:
    """Return what a suite offers to a filter: whatever one of its files does."""
    names = " ".join(each.name for each in suite.files)
    hosts = " ".join(suite.hosts)
    text = f"action {suite.suite.source} {names} {' '.join(suite.connectors)} {hosts} not accepted"
    return FilterFields(
        text=text, fields={"action": names, "state": "not accepted", "host": hosts}, at=None
    )
