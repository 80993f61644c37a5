"""Runs in memory. For a gated run this object, not its row, is what permits an effect (DESIGN 3)."""

import asyncio
import secrets
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Literal

from aileron_core.actions.interpolate import op_arguments, uses_earlier_output
from aileron_core.actions.model import Step
from aileron_core.canonical import Json, JsonObject, exact
from aileron_core.clock import rfc3339
from aileron_core.errors import MissingValue
from aileron_core.runs.digest import (
    ConnectorPart,
    Consent,
    StepPart,
    consent_digest,
    preview_digest,
)
from aileron_core.runs.interfaces import ResolvedAction
from aileron_core.runs.model import Progress, RunRecord
from aileron_core.runs.preview.plan import plan_preview
from aileron_core.runs.transitions import FINAL, RunState
from aileron_core.sessions.model import Session

__all__ = ["LiveRun", "PreviewChange", "PreviewResult", "RunRegistry"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PreviewResult:
    """One answer of the preview op."""

    status: Literal["none", "fetching", "ready", "unavailable"]
    output: Json = None
    reason: str = ""
    at: float = 0.0
    hosts_asked: tuple[str, ...] = ()
    """The `host:port` of each request that was sent for it, in order, each once."""
    preparing: bool = False
    """While fetching: the service is not asked yet, its connector is being compiled."""
    digest: str = ""
    """Of the output; read once, because a large one takes long."""
    reads: Mapping[str, str] = field(default_factory=dict[str, str])
    """What it was allowed to read by POST, and who accepted each."""
    refused_reads: tuple[str, ...] = ()
    """What it would have read by POST, had a person accepted that, as its pins would be named."""

    @property
    def fingerprint(self) -> str:
        """What the digest of a consent says of it."""
        if self.status == "ready":
            return self.digest or preview_digest(self.output)
        return "unavailable" if self.status == "unavailable" else "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class PreviewChange:
    """Two looks that differ; the screen shows both."""

    before: PreviewResult
    after: PreviewResult
    words_before: tuple[str, str, str] | None


@dataclass(slots=True, kw_only=True, eq=False)
class LiveRun:
    """One run, from asking until its end was delivered."""

    row: RunRecord
    session: Session
    resolved: ResolvedAction | None
    """None for a run from an earlier life whose action is not accepted any more."""
    preview: PreviewResult
    drift: PreviewChange | None = None
    nonce: str = field(default_factory=lambda: secrets.token_hex(16))
    version: int = 0
    outcome: str = ""
    tampered: set[str] = field(default_factory=set[str])
    """Columns of its row that another program was seen to have changed."""
    hosts_asked: tuple[str, ...] = ()
    """The `host:port` of each request that its own steps sent in this life of the process."""
    claims: tuple[tuple[str, str], ...] = ()
    """What the agent's client says of the call, as (our label, its text)."""
    admitted: "asyncio.Future[None] | None" = None
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held from reading the state to writing the next one, never while waiting for a service."""

    @property
    def is_final(self) -> bool:
        """Whether the run is over."""
        return self.row.state in FINAL

    @property
    def is_waiting(self) -> bool:
        """Whether a person's answer is out."""
        return self.row.state in (RunState.PENDING, RunState.AWAITING_VAULT)

    @property
    def has_preview(self) -> bool:
        """Whether what a yes would cover can be looked at through the preview op.

        Not where the run halted before a step: the preview op told what the first yes covered; now
        it is the filled-in arguments that a person sees.
        """
        if self.resolved is None or self.resolved.action.approval.preview is None:
            return False
        return self.row.progress is None or self.row.progress.asked is None

    @property
    def can_fetch_again(self) -> bool:
        """Whether nobody knows how it ended, and its preview op can be asked how it is now."""
        return self.row.state is RunState.UNKNOWN and self.has_preview and self.row.args is not None

    @property
    def nothing_ran(self) -> str:
        """How a sentence begins that says of a yes that it had no effect."""
        return "Nothing more ran" if self.row.progress else "Nothing ran"

    def note_asked(self, hosts: tuple[str, ...]) -> None:
        """Add *hosts* to those that its steps sent requests to."""
        self.hosts_asked = tuple(dict.fromkeys((*self.hosts_asked, *hosts)))

    def step_hosts(self, step: Step) -> tuple[str, ...]:
        """Return the `host:port` entries that *step* can reach with its arguments, as far as known."""
        assert self.resolved is not None
        connector = self.resolved.connectors[step.connector]
        if self.row.args is None:
            return connector.hosts
        return connector.hosts_for(self.inputs(step, self.row.progress))

    @property
    def preview_hosts(self) -> tuple[str, ...]:
        """Return the `host:port` entries that its preview op can reach with its arguments."""
        if self.resolved is None or self.row.args is None:
            return ()
        plan = plan_preview(self.resolved.action, self.row.args)
        if plan is None:
            return ()
        return self.resolved.connectors[plan.connector.fqn].hosts_for(plan.args)

    @property
    def hosts(self) -> tuple[str, ...]:
        """Return every `host:port` that it and its preview can reach with these arguments, sorted."""
        if self.resolved is None:
            return ()
        of_steps = {host for step in self.resolved.action.steps for host in self.step_hosts(step)}
        return tuple(sorted(of_steps.union(self.preview_hosts)))

    def halts(self) -> frozenset[str]:
        """Return the steps before which a person has to be asked again (DESIGN 5).

        Their arguments hold an earlier step's output, so no yes can have covered them yet.
        """
        if not self.row.gated or self.resolved is None:
            return frozenset()
        asked = self.row.progress.asked if self.row.progress else None
        return frozenset(
            step.id
            for step in self.resolved.action.steps
            if step.id != asked and step.idempotent is not True and uses_earlier_output(step)
        )

    def inputs(self, step: Step, progress: Progress | None) -> JsonObject:
        """Return *step*'s arguments as far as they are known after *progress*; the rest as written."""
        assert self.resolved is not None
        assert self.row.args is not None
        args, declared = self.row.args, self.resolved.action.declared
        if progress is None:
            return op_arguments(step, args, None, declared)
        # As when the step runs, only those before it count: `${a.b.c}` may be the path `b.c` of `a`
        # although a later step's id is `a.b`.
        steps = self.resolved.action.steps
        earlier = {each.id for each in steps[: steps.index(step)]}
        outputs = {id_: output for id_, output in progress.steps.items() if id_ in earlier}
        try:
            return op_arguments(step, args, outputs, declared, earlier - set(outputs))
        except MissingValue:  # ends the run before that step; until then it stands as written
            return op_arguments(step, args, None, declared)

    def consent(
        self, look: PreviewResult, row: RunRecord | None = None
    ) -> tuple[str, tuple[str, str, str]]:
        """Return digest and words of what a yes to *look* would cover.

        Args:
            look: the reading of the preview op.
            row: the run as it would be then, where that differs from how it is.

        Raises:
            ValueError: a step's output cannot be put into a digest.
        """
        row = row or self.row
        assert self.resolved is not None
        assert row.args is not None
        action, args = self.resolved.action, row.args
        expires = row.expires_at
        return consent_digest(
            Consent(
                action=action.name,
                action_sha256=action.sha256,
                connectors=[
                    ConnectorPart(
                        fqn=each.identity.fqn,
                        version=each.identity.version,
                        hash=each.identity.hash,
                    )
                    for each in self.resolved.connectors.values()
                ],
                steps=[
                    StepPart(
                        id=step.id,
                        connector=step.connector,
                        op=step.op,
                        inputs=_exact(self.inputs(step, row.progress)),
                    )
                    for step in action.steps
                ],
                args=args,
                hosts=self.resolved.hosts,
                binding=None,
                preview=look.fingerprint,
                preview_reads=tuple(look.reads),
                expires_at=None if expires is None else rfc3339(expires),
                nonce=self.nonce,
            )
        )

    def lock_keys(self) -> list[tuple[str, str | None]]:
        """Return the (connector, credential) pairs that its effect uses."""
        return [(fqn, None) for fqn in (self.resolved.connectors if self.resolved else ())]


def _exact(inputs: JsonObject) -> JsonObject:
    return {name: exact(value) for name, value in inputs.items()}


class RunRegistry:
    """The runs of this process's life that still matter: open, undelivered, or shown as recent."""

    _RECENT = 200
    _UNHEARD = 2000
    """Finished runs at most, where agents have not asked after their ends."""

    def __init__(self) -> None:
        self._by_run: OrderedDict[str, LiveRun] = OrderedDict()
        self._by_approval: dict[str, LiveRun] = {}
        self._by_shape: dict[tuple[str, str, str], LiveRun] = {}
        self._by_key: dict[tuple[str, str], LiveRun] = {}
        self._over: OrderedDict[str, None] = OrderedDict()
        self._waiting: dict[str, set[str]] = {}

    def add(self, held: LiveRun) -> None:
        """Take *held* in; equal calls attach to it while it is open or undelivered."""
        row = held.row
        self._by_run[row.run_id] = held
        if row.gated and not held.is_final:
            self._waiting.setdefault(row.session_id, set()).add(row.run_id)
        if row.approval_id:
            self._by_approval[row.approval_id] = held
        if row.idempotency_key:
            self._by_key[row.session_id, row.idempotency_key] = held
        elif row.gated and not row.delivered:
            self._by_shape[self._shape(row)] = held

    def discard(self, held: LiveRun) -> None:
        """Forget *held* entirely (its row could not be written)."""
        row = held.row
        self._by_run.pop(row.run_id, None)
        if row.approval_id:
            self._by_approval.pop(row.approval_id, None)
        if row.idempotency_key:
            self._by_key.pop((row.session_id, row.idempotency_key), None)
        self._waiting.get(row.session_id, set()).discard(row.run_id)
        self.delivered(held)

    def delivered(self, held: LiveRun) -> None:
        """Note that the agent has heard of its end: an equal call from now on asks anew."""
        if self._by_shape.get(self._shape(held.row)) is held:
            del self._by_shape[self._shape(held.row)]

    def finished(self, held: LiveRun) -> None:
        """Note that *held* is over; the oldest finished ones leave memory (their rows stay).

        An ungated one leaves at once: its key is found in its row, and it must not push out a
        gated one whose end no agent has heard of.
        """
        self._waiting.get(held.row.session_id, set()).discard(held.row.run_id)
        if not held.row.gated:
            self.discard(held)
            return
        self._over[held.row.run_id] = None
        while (leaving := self._leaving()) is not None:
            del self._over[leaving]
            old = self._by_run.get(leaving)
            if old is not None:
                self.discard(old)

    def _leaving(self) -> str | None:
        """Return the finished run that has to leave now: the oldest whose end its agent has heard."""
        if len(self._over) <= self._RECENT:
            return None
        heard = (run_id for run_id in self._over if self._is_heard(run_id))
        oldest = next(iter(self._over))
        return next(heard, oldest if len(self._over) > self._UNHEARD else None)

    def _is_heard(self, run_id: str) -> bool:
        held = self._by_run.get(run_id)
        return held is None or held.row.delivered

    def run(self, run_id: str) -> LiveRun | None:
        """Return the run with this id."""
        return self._by_run.get(run_id)

    def approval(self, approval_id: str) -> LiveRun | None:
        """Return the run with this approval."""
        return self._by_approval.get(approval_id)

    def keyed(self, session_id: str, key: str) -> LiveRun | None:
        """Return the run that the session asked for under *key*."""
        return self._by_key.get((session_id, key))

    def equal(self, row: RunRecord) -> LiveRun | None:
        """Return the gated run of the same session, action and arguments that is open or undelivered."""
        return self._by_shape.get(self._shape(row))

    def pending_of(self, session_id: str) -> int:
        """Return how many of the session's runs wait for a person."""
        return len(self._waiting.get(session_id, ()))

    async def settle(self, seconds: float) -> int:
        """Wait for effects that have begun, *seconds* at most; return how many go on after that."""
        executing = [run for run in self if run.row.state is RunState.EXECUTING]
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                for run in executing:
                    await run.ended.wait()
        return sum(not run.ended.is_set() for run in executing)

    def __iter__(self) -> Iterator[LiveRun]:
        return iter(tuple(self._by_run.values()))

    @staticmethod
    def _shape(row: RunRecord) -> tuple[str, str, str]:
        return row.session_id, row.action, row.args_sha256
