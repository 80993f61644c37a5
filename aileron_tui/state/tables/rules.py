"""View 7: what answers calls in a person's place: grants, then rules of `policy.toml` for actions."""

from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar, TypeAlias

from aileron_core.console_port.standing import GrantView, RuleView
from aileron_core.policy.model import Decision, in_words
from aileron_core.policy.values import ARGUMENT
from aileron_tui import words
from aileron_tui.draw.blocks import Block, blank, heading, value
from aileron_tui.draw.columns import Column
from aileron_tui.draw.foreign_text import brief, foreign_text
from aileron_tui.draw.text import Line, Piece, Role, line, plain_text, truncate
from aileron_tui.draw.times import age, clock_minutes
from aileron_tui.input.commands import CommandRegistry
from aileron_tui.state.filter import FilterFields
from aileron_tui.state.tables.table import KeyedTable

_Standing: TypeAlias = GrantView | RuleView
_said = words.rules
_ROLES: Mapping[Decision, Role] = {"allow": "ok", "ask": "text", "deny": "danger"}


class RulesTable(KeyedTable[_Standing]):
    """The rows of view 7: grants, newest first, then rules in the order of the file."""

    fields: ClassVar[tuple[str, ...]] = ("action", "state")
    decides: ClassVar[bool] = True

    def __init__(self, grants: Sequence[GrantView], rules: Sequence[RuleView], now: float) -> None:
        def muted(text: str) -> Line:
            return (Piece(text, "muted"),)

        super().__init__(
            Column("", lambda e, row: (Piece(_name(e) if isinstance(e, GrantView) else "", row.role),), 5),
            Column("does", lambda e, _: (_decision(e),), 7),
            Column("action", lambda e, _: foreign_text(_actions(e)), 17, 12, outside=True),
            Column("shape", lambda e, _: _shape(e), 30, 18),
            Column("ends", lambda e, row: muted(age(e.ends_at - row.now) if isinstance(e, GrantView) else "-"), 8),
            Column("used", lambda e, _: line(_used(e)), 7),
            Column("last", lambda e, _: muted(clock_minutes(e.last_used) if e.last_used else ""), 0, 7),
        )  # fmt: skip
        self._call = 0
        self.update(grants, rules, now)

    def update(self, grants: Sequence[GrantView], rules: Sequence[RuleView], now: float) -> None:
        self.grants = tuple(reversed(grants))
        self.set_items((*self.grants, *rules), now)
        if not self.opened:
            self._call = 0

    @property
    def grant(self) -> GrantView | None:
        """The selected row, if it is a grant."""
        return self.current if isinstance(self.current, GrantView) else None

    @property
    def calls(self) -> tuple[str, ...]:
        """The runs that the selected grant answered, oldest first."""
        return self.grant.calls if self.grant is not None else ()

    @property
    def shown_run(self) -> str:
        """Which of them is shown in place of the grant; empty for none."""
        shows = self.opened and 0 < self._call <= len(self.calls)
        return self.calls[-self._call] if shows else ""

    def show_next_call(self) -> None:
        """Show the newest of them, then the one before, at last the grant again."""
        self._call = (self._call + 1) % (len(self.calls) + 1)

    def close(self) -> None:
        self.opened, self._call = bool(self.shown_run), 0

    def key_of(self, item: _Standing) -> str:
        return _name(item) if isinstance(item, GrantView) else f"{_name(item)} {_about(item)}"

    def fields_of(self, item: _Standing) -> FilterFields:
        named = {"action": _actions(item), "state": f"{item.decision} {plain_text(_shape(item))}"}
        text = f"{_name(item)} {' '.join(named.values())} {_about(item)}"
        at = item.made_at if isinstance(item, GrantView) else None
        return FilterFields(text=text, fields=named, at=at)

    @property
    def version(self) -> tuple[object, ...]:
        """What a person must look at anew when it differs: not how often it was used."""
        item = self.current
        return (self.key, plain_text(_shape(item)), self.shown_run) if item is not None else ()

    # Drawing

    def summary(self, now: float, width: int) -> Line:
        grants, resting = len(self.grants), sum(bool(each.rests) for each in self.grants)
        text = _said.count(grants, resting, self.total - grants)
        return (Piece(f" {text}", "attn" if resting else "muted"),)

    def detail_of(self, item: _Standing, now: float) -> Line:
        return brief(_about(item), "muted")

    def head_of(self, item: _Standing, width: int, now: float) -> tuple[Line, ...]:
        name = Piece(f" {_name(item)}  ", "strong")
        first = line(name, _decision(item), "  ", *foreign_text(_actions(item)))
        return tuple(truncate(each, width - 1) for each in (first, line(" ", *_shape(item))))

    def blocks_of(self, item: _Standing, *, unfold: bool) -> Iterable[Block]:
        """Return its tests, then for a grant what it is bound to, when it ends, and what it answered."""
        is_grant = isinstance(item, GrantView)
        absent = item.decision == "allow" and (is_grant or not item.is_open)
        remark = _said.OTHERS_ABSENT if absent else _said.OTHERS_ANY
        yield heading(_said.FITS, (Piece(remark, "muted"),))
        for limit in () if is_grant else item.limits:
            yield value("", (Piece(limit),))
        for key, test in item.tests:
            label = foreign_text(key.partition(".")[2], "muted")
            gutter = "claim" if key.startswith(ARGUMENT) else "fact"
            yield value(label, foreign_text(in_words(test)), gutter)
        if not item.tests:
            yield value("", (Piece(_said.ANY_CALL),))
        if not is_grant:
            return
        spans, left = item.scope == "project", item.uses - item.used
        left = None if item.decision == "deny" else left
        whose = (Piece("this project and agent"),) if spans else foreign_text(item.session_id)
        yield value("For", whose)
        yield value("Bound", (Piece(_said.BOUND),))
        ends = _said.ends(clock_minutes(item.ends_at), left, spans_sessions=spans)
        yield value("Ends", (Piece(ends),))
        if item.calls:
            yield blank()
            yield heading(_said.ANSWERED, (Piece(_said.NEWEST, "muted"),))
        yield from (value("", foreign_text(run)) for run in reversed(item.calls))

    def status(self, registry: CommandRegistry) -> Line:
        return (Piece(_said.STATUS if self._items else _said.NONE, "muted"),)


def grant_line(grant: GrantView, now: float) -> Line:
    """Return *grant* as a sentence."""
    about = f", used {_used(grant)}, ends in {age(grant.ends_at - now)}"
    name = f"{grant.grant_id} {grant.decision} "
    return line(name, *foreign_text(grant.action), ": ", *_shape(grant), about)


def _used(item: _Standing) -> str:
    if isinstance(item, GrantView) and item.decision == "allow":
        return f"{item.used}/{item.uses}"
    return str(item.used)


def _name(item: _Standing) -> str:
    return item.grant_id if isinstance(item, GrantView) else item.source


def _decision(item: _Standing) -> Piece:
    return Piece(item.decision, _ROLES[item.decision])


def _actions(item: _Standing) -> str:
    return item.action if isinstance(item, GrantView) else ", ".join(item.actions)


def _about(item: _Standing) -> str:
    limits = () if isinstance(item, GrantView) else item.limits
    tests = (f"{key} {in_words(test)}" for key, test in item.tests)
    return "; ".join((*limits, *tests)) or _said.ANY_CALL


def _shape(item: _Standing) -> Line:
    if isinstance(item, RuleView):
        amber = (_said.OPEN if item.is_open else "") + ("" if item.counts else _said.NOT_ACCEPTED)
        calm = Piece(item.source + ("" if item.grants else _said.NO_GRANTS), "muted")
        return (calm, Piece(amber, "attn")) if amber else (calm,)
    if item.rests:
        return (Piece(f"rests: {item.rests}", "attn"),)
    if item.number in _said.SHAPES:
        return (Piece(_said.SHAPES[item.number]),)
    about = [(key, test) for key, test in item.tests if test.name not in ("any", "absent", "plain")]
    named = (f"{key.partition('.')[2]} {', '.join(test.values)}" for key, test in about)
    return brief("; ".join(named) or _said.ANY_CALL)
