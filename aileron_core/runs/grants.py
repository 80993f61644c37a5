"""Standing answers that a person gave in this console: in memory alone, bound to what they saw, and counted."""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from aileron_core.actions.model import Action
from aileron_core.canonical import Json, JsonObject
from aileron_core.clock import Clock, rfc3339
from aileron_core.console_port.standing import GrantTerms, GrantView
from aileron_core.policy.shapes import misfits, restricts
from aileron_core.policy.values import Values, declared_keys
from aileron_core.runs.interfaces import ResolvedAction
from aileron_core.runs.live_run import LiveRun
from aileron_core.runs.transitions import RunState
from aileron_core.sessions.model import Session

Binding: TypeAlias = tuple[Json, ...]


def binding_of(resolved: ResolvedAction, reads: Iterable[str] = ()) -> Binding:
    """Return what a grant made beside a call is bound to, besides its session and the call's shape.

    Args:
        resolved: the call's action, connectors and accounts.
        reads: what its preview was allowed to read by POST.
    """
    return (
        resolved.action.sha256,
        [each.identity.hash for each in resolved.connectors.values()],
        list(resolved.hosts),
        list(resolved.routed),
        list(resolved.consented_accounts),
        sorted(reads),
        resolved.verdict.place if resolved.verdict is not None else "",
    )


def _binding(run: LiveRun) -> Binding:
    assert run.resolved is not None
    return binding_of(run.resolved, run.preview.reads)


@dataclass(slots=True, kw_only=True, eq=False)
class Grant:
    """A person's answer to calls of one shape."""

    view: GrantView
    binding: Binding
    session: Session
    """Of the call beside which it was made."""
    contained: bool
    seen_run: str
    """That call."""
    reserved: set[str] = field(default_factory=set[str])
    """The runs that it answered, and that have not begun."""
    rests_for: set[str] = field(default_factory=set[str])
    """The runs whose ends a person has to look at before it answers again."""

    @property
    def name(self) -> str:
        return f"grant {self.view.grant_id}"

    @property
    def reason(self) -> str:
        """Why a call is answered by it, as a clause."""
        return f"{'denied' if self.denies else 'allowed'} by {self.name}"

    @property
    def denies(self) -> bool:
        return self.view.decision == "deny"

    def allows(self, binding: Binding, values: Values) -> bool:
        """Return whether it allows a call with *values*, and has a use left for it."""
        return (
            not self.denies
            and self.view.used + len(self.reserved) < self.view.uses
            and self.binding == binding
            and not misfits(dict(self.view.tests), values)
        )

    def to_record(self, action: Action) -> JsonObject:
        """Return what the record of the person's answer says of it: the tests by name, and no value."""
        view = self.view
        keys = declared_keys(action, (key for key, _ in view.tests))
        names = {key: test.name for key, test in view.tests}
        return {
            "grant": view.grant_id,
            "tests": {key: names[key] for key in keys if key in names},
            "scope": view.scope,
            "ends_at": rfc3339(view.ends_at),
            "uses": view.uses,
        }


class Grants:
    """The grants of this console's life.

    Args:
        is_contained: whether a session's agent is contained, as far as that is known.
    """

    def __init__(self, clock: Clock, is_contained: Callable[[Session], bool]) -> None:
        self._clock = clock
        self._is_contained = is_contained
        self._changed: Callable[[], object] = lambda: None
        self._ended: Callable[[Grant, str], object] = lambda _grant, _why: None
        self._by_id: dict[str, Grant] = {}
        self._made = 0

    def tell(self, changed: Callable[[], object], ended: Callable[[Grant, str], object]) -> None:
        """Have *changed* called when one was made or used, rests or counts again, and *ended* with why, as a clause."""
        self._changed, self._ended = changed, ended

    def notify(self) -> None:
        """Tell that something answers calls differently now, or has answered one."""
        self._changed()

    def __iter__(self) -> Iterator[Grant]:
        return iter(tuple(self._by_id.values()))

    def draw_up(self, run: LiveRun, terms: GrantTerms) -> Grant:
        """Return a grant beside a person's answer to *run*, which counts once it is added."""
        self._made += 1
        now = self._clock.now()
        return Grant(
            view=GrantView(
                grant_id=f"{'g' if terms.decision == 'allow' else 'd'}{self._made}",
                decision=terms.decision,
                action=run.row.action,
                number=terms.number,
                tests=terms.tests,
                scope=terms.scope,
                session_id=run.row.session_id,
                made_at=now,
                ends_at=now + terms.seconds,
                uses=terms.uses,
                used=0,
            ),
            binding=_binding(run),
            session=run.session,
            contained=self._is_contained(run.session),
            seen_run=run.row.run_id,
        )

    def add(self, grant: Grant) -> None:
        self._by_id[grant.view.grant_id] = grant
        self._changed()

    def denial(self, action: str, session: Session, values: Values) -> tuple[Grant, bool] | None:
        """Return the grant that denies a call, and whether that is certain: else a field of it cannot be read."""
        about = [each for each in self._about(action, session) if each.denies]
        found = [(each, restricts(dict(each.view.tests), values)) for each in about]
        sure = next(((grant, True) for grant, denied in found if denied), None)
        return sure or next(((grant, False) for grant, denied in found if denied is None), None)

    def boundary(self, name: str) -> str:
        """Return what an agent reads of the denial *name*; empty where there is none."""
        ends_at = next((each.view.ends_at for each in self if each.name == name), None)
        if ends_at is None:
            return ""
        until = time.strftime("%H:%M", time.localtime(ends_at))
        return f"A person denied calls like this until {until}. Nothing ran. Do not try to do it in another way."

    def find(self, action: str, session: Session, binding: Binding, values: Values) -> Grant | None:
        """Return a grant that allows a call, if one does."""
        about = self._about(action, session)
        return next((each for each in about if each.allows(binding, values)), None)

    def match(self, run: LiveRun, values: Values) -> Grant | None:
        """Return the grant that allows *run*, with a use reserved for it."""
        grant = self.find(run.row.action, run.session, _binding(run), values)
        if grant is not None:
            grant.reserved.add(run.row.run_id)
        return grant

    def nearly(self, run: LiveRun, values: Values) -> tuple[Grant, str] | None:
        """Return a grant that one field alone keeps from answering *run*, and that field."""
        for grant in self._about(run.row.action, run.session):
            missed = misfits(dict(grant.view.tests), values)
            if not grant.denies and len(missed) == 1 and grant.binding == _binding(run):
                return grant, missed[0]
        return None

    def are_about(self, run: LiveRun) -> bool:
        """Return whether a grant may answer *run*, whatever its values are."""
        return bool(self._about(run.row.action, run.session))

    def _about(self, action: str, session: Session) -> list[Grant]:
        return [grant for grant in self if self._is_about(grant, action, session)]

    def _is_about(self, grant: Grant, action: str, session: Session) -> bool:
        view = grant.view
        if view.action != action or not self._counts(grant):
            return False
        if session.self_opened and not grant.denies:
            return False
        if view.scope == "session":
            return session.session_id == view.session_id
        return (
            session.agent == grant.session.agent
            and session.cwd == grant.session.cwd
            and self._is_contained(session) == grant.contained
        )

    def _counts(self, grant: Grant) -> bool:
        view = grant.view
        return view.grant_id in self._by_id and not view.rests and self._clock.now() < view.ends_at

    def holds(self, run: LiveRun) -> bool:
        """Return whether the grant that answered *run* still does, as it is about to begin."""
        grant = self._reserved_for(run)
        if grant is None or not self._is_about(grant, run.row.action, run.session):
            return False
        return grant.binding == _binding(run)

    def _reserved_for(self, run: LiveRun) -> Grant | None:
        return next((each for each in self if run.row.run_id in each.reserved), None)

    def spend(self, run: LiveRun) -> None:
        """Count the use that is reserved for *run*, and that it was this run: its effect begins."""
        grant = self._reserved_for(run)
        if grant is not None:
            grant.reserved.discard(run.row.run_id)
            self._count(grant)
        for each in self:
            if each.name == run.answered_by:
                each.view = replace(each.view, calls=(*each.view.calls, run.row.run_id))

    def _count(self, grant: Grant) -> None:
        view = grant.view
        grant.view = replace(view, used=view.used + 1, last_used=self._clock.now())
        self._changed()

    def note_denial(self, name: str, run: LiveRun) -> None:
        """Count a call that the grant *name* denied; nothing where it is none."""
        for grant in self:
            if grant.name == name:
                grant.view = replace(grant.view, calls=(*grant.view.calls, run.row.run_id))
                self._count(grant)

    def release(self, run: LiveRun) -> None:
        """Give the use back that is reserved for *run*, which did not begin."""
        grant = self._reserved_for(run)
        if grant is not None:
            grant.reserved.discard(run.row.run_id)

    def follow(self, run: LiveRun) -> None:
        """Have a grant rest whose call ended as nobody knows, or otherwise than approved, until a person looked."""
        why = ""
        if run.waits_to_be_looked_at:
            lost = run.row.state is RunState.UNKNOWN
            why = "outcome unknown" if lost else "the service holds something else"
        for grant in self:
            if run.row.run_id != grant.seen_run and grant.name != run.answered_by:
                continue
            before = bool(grant.rests_for)
            (grant.rests_for.add if why else grant.rests_for.discard)(run.row.run_id)
            if before != bool(grant.rests_for):
                grant.view = replace(grant.view, rests=why)
                self._changed()

    def end(self, grant_id: str, why: str) -> bool:
        """End a grant; return whether there was one. What it answered and has not begun waits for the person."""
        grant = self._by_id.pop(grant_id, None)
        if grant is not None:
            self._ended(grant, why)
            self._changed()
        return grant is not None

    def end_where(self, is_meant: Callable[[Grant], bool], why: str) -> None:
        for grant in self:
            if is_meant(grant):
                self.end(grant.view.grant_id, why)

    def sweep(self) -> None:
        """End those whose time or uses are over."""
        now = self._clock.now()
        for grant in self:
            if now >= grant.view.ends_at:
                self.end(grant.view.grant_id, "its time is over")
            elif grant.view.used >= grant.view.uses and not (grant.denies or grant.view.rests):
                self.end(grant.view.grant_id, "it has no uses left")
