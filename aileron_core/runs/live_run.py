"""Runs in memory. For a gated run this object, not its row, is what permits an effect.

It says which hosts a run can reach with its arguments, and before which later steps it halts to ask again.
"""

import asyncio
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from aileron_core.actions.interpolate import op_arguments, uses_earlier_output
from aileron_core.actions.model import Step, is_builtin
from aileron_core.canonical import Json, JsonObject, encode_large_integers
from aileron_core.clock import rfc3339
from aileron_core.connectors.stop_request import StopRequest
from aileron_core.console_port.account_views import AccountNeed
from aileron_core.console_port.field_views import ReadBack
from aileron_core.errors import MissingValue
from aileron_core.policy.model import READING
from aileron_core.runs.digest import (
    Consent,
    ConsentStep,
    consent_digest,
    preview_digest,
)
from aileron_core.runs.interfaces import ResolvedAction
from aileron_core.runs.model import Progress, RunRecord, args_hash
from aileron_core.runs.preview.resolve import plan_preview
from aileron_core.runs.transitions import FINAL, RunState
from aileron_core.sessions.model import Session
from aileron_core.tracing.spans import NO_SPAN, Span

NonceSource: TypeAlias = Callable[[RunRecord], str]
"""Returns the digest's nonce of a run, 32 hexadecimal digits.

With a vault it is derived from the vault's key and the run's own, so that digest and words are the same
after a restart, until the run's content is deleted; without one it is random at each call.
"""


def random_nonce(_row: RunRecord) -> str:
    return secrets.token_hex(16)


@dataclass(frozen=True, slots=True, kw_only=True)
class PreviewResult:
    """One answer of the preview op."""

    status: Literal["none", "fetching", "ready", "unavailable"]
    output: Json = None
    reason: str = ""
    fetched_at: float = 0.0
    hosts_asked: tuple[str, ...] = ()
    """The `host:port` of each request that was sent for it, in order, each once."""
    preparing: bool = False
    """While fetching: the service is not asked yet, its connector is being compiled."""
    digest: str = ""
    """Of the output; read once, because a large one takes long."""
    reads: Mapping[str, str] = field(default_factory=dict[str, str])
    """What it was allowed to read by POST, and who accepted each."""
    refused_reads: tuple[str, ...] = ()
    """What it would have read by POST, had a person accepted that, as its acceptance records would be named."""
    not_found: bool = False
    """Unavailable because the service has no such thing (any more)."""

    @property
    def fingerprint(self) -> str:
        """What a consent's digest covers of it. Unavailable at both times is therefore no difference."""
        if self.status == "ready":
            return self.digest or preview_digest(self.output)
        return "unavailable" if self.status == "unavailable" else "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class PreviewChange:
    """Two answers of the preview op that differ; the screen shows both."""

    before: PreviewResult
    after: PreviewResult
    words_before: tuple[str, str, str] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What was read at the service after a run whose outcome is unknown."""

    preview: PreviewResult
    """`none` where only a record is left of it: what a service holds is not on disk."""
    comparison: ReadBack | None = None
    """With what was approved; None where what was read cannot tell whether the run took effect."""
    is_unchanged: bool = False
    """Every shown field holds what it held before the run."""

    @property
    def at(self) -> float:
        """Epoch seconds at which it was answered."""
        return self.preview.fetched_at

    @property
    def settles(self) -> bool:
        """Whether the service holds what was approved, so that nobody has to ask any more."""
        return self.comparison is not None and self.comparison.status == "held"


@dataclass(slots=True, kw_only=True, eq=False)
class LiveRun:
    """One run, from asking until its end was delivered."""

    row: RunRecord
    session: Session
    resolved: ResolvedAction | None
    """None for a run of an earlier process whose action is not accepted any more."""
    preview: PreviewResult
    drift: PreviewChange | None = None
    nonce: str = field(default_factory=lambda: secrets.token_hex(16))
    """Secret; random, or the vault's for this run (`NonceSource`)."""
    version: int = 0
    outcome_text: str = ""
    tampered_columns: set[str] = field(default_factory=set[str])
    """Columns of its row that another program was seen to have changed."""
    hosts_asked: tuple[str, ...] = ()
    """The `host:port` of each request that its own steps sent in this process."""
    started_at: float | None = None
    """Since when its steps run, epoch seconds; None before that."""
    acknowledged: bool = False
    """A person took note that its outcome is unknown, or settled it; the record of that is in the audit."""
    look: Look | None = None
    """The last look at the service since its outcome is unknown; None where nobody has looked."""
    read_back: ReadBack | None = None
    """None where there was nothing to read back, or nothing is known of it."""
    waits_for: "LiveRun | None" = None
    """The run that uses one of its connectors, after a yes and before its own turn."""
    account_need: AccountNeed | None = None
    """Why it waits for the vault or for an account; None unless it does."""
    account_choices: dict[str, str] = field(default_factory=dict[str, str])
    """By FQN, the binding that a person picked for this call."""
    undo: str = ""
    """How what it did is taken back (`OpResult.undo`), until `runs.undo` has it."""
    is_tried: bool = False
    """A rule or a grant may answer it still, or did: it is no row, and nothing announces it."""
    was_listed: bool = False
    """It waited for an account before, so that a person has seen it in the list, where it stays."""
    was_tried: bool = False
    """It was looked at once whether a rule or a grant answers it: from then on it is the person's."""
    answered_by: str = ""
    """What answered it in a person's place, as `policy.toml:12` or `grant g3`."""
    hand: str = ""
    """With what a person answered it last (`Hand.name`); empty where none did, or no record says."""
    recorded_rule: str = ""
    """Of a run of an earlier process: what its record says that the rules said."""
    claims: tuple[tuple[str, str], ...] = ()
    """What the agent's client claims about the call, as (our label, its text)."""
    other_keys: list[str] = field(default_factory=list[str])
    """The idempotency keys of equal calls that share it."""
    repeats: int = 0
    """How often the agent has repeated its call since that was last written: the next record has the number."""
    repeat_recorded_at: float = float("-inf")
    """Monotonic."""
    args_sha256: str = field(init=False, default="")
    """SHA-256 of what its agent sent, in memory alone: equal calls have the same. Empty where it was deleted."""
    admission: "asyncio.Future[None] | None" = None
    stop: StopRequest = field(default_factory=StopRequest)
    """Made when a person stops it while its steps run."""
    span: Span = NO_SPAN
    wait_span: Span = NO_SPAN
    """Of its last wait for a person."""
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held from reading the state to writing the next one, never while waiting for a service."""

    def __post_init__(self) -> None:
        if (called := self.row.called_args) is not None:
            self.args_sha256 = args_hash(called, None)

    @property
    def is_final(self) -> bool:
        return self.row.state in FINAL

    @property
    def is_waiting(self) -> bool:
        return self.row.state in (RunState.PENDING, RunState.AWAITING_VAULT)

    @property
    def awaits_acknowledgement(self) -> bool:
        """Whether its outcome is unknown, and no person has taken note of that or settled it."""
        return self.row.state is RunState.UNKNOWN and not self.acknowledged

    @property
    def rule(self) -> str:
        """Why the rules had it asked, run or denied; empty where none apply."""
        verdict = self.resolved.verdict if self.resolved is not None else None
        return verdict.whole_text if verdict is not None else self.recorded_rule

    @property
    def is_builtin(self) -> bool:
        return is_builtin(self.row.action)

    @property
    def is_in_background(self) -> bool:
        """Whether what answers it in a person's place has not left it to them."""
        return self.is_tried and not self.was_listed

    @property
    def can_be_edited(self) -> bool:
        """Whether a person can change its arguments: nothing of it ran, and no session's worker knows them."""
        waits = self.row.state is RunState.PENDING and self.row.progress is None
        return waits and not is_builtin(self.row.action)

    @property
    def is_settled(self) -> bool:
        """Whether a look showed that the service holds what was approved."""
        return self.look is not None and self.look.settles

    @property
    def waits_to_be_looked_at(self) -> bool:
        """Whether nobody knows how it ended, or otherwise than approved, and no person has looked."""
        lost = self.awaits_acknowledgement and not self.is_settled
        return lost or (self.read_back is not None and self.read_back.waits_to_be_seen)

    @property
    def is_kept(self) -> bool:
        """Whether a person has yet to see how it ended, so that it stays in memory."""
        read = self.read_back
        return self.awaits_acknowledgement or (
            read is not None and (read.status == "reading" or read.waits_to_be_seen)
        )

    @property
    def has_preview(self) -> bool:
        """Whether what a yes would cover can be looked at through the preview op.

        Not where the run halted before a step: the preview op described what the first yes covered; now
        it is the filled-in arguments that a person sees.
        """
        if self.resolved is None or self.resolved.action.approval.preview is None:
            return False
        return self.row.progress is None or self.row.progress.halted_before is None

    @property
    def can_refetch_preview(self) -> bool:
        """Whether its outcome is unknown, and its preview op can show the present state.

        Not once an ungated one is acknowledged: it is no longer kept in memory.
        """
        if self.row.state is not RunState.UNKNOWN or self.is_settled:
            return False
        if self.acknowledged and not self.row.gated:
            return False
        return self.has_preview and self.row.args is not None

    @property
    def nothing_ran_text(self) -> str:
        """The beginning of a sentence saying that a yes had no effect."""
        return "Nothing more ran" if self.row.progress else "Nothing ran"

    @property
    def seconds_allowed(self) -> float | None:
        """Return how long its steps may run from `started_at` on; None where its action is not known."""
        if self.resolved is None:
            return None
        spent = self.row.progress.elapsed if self.row.progress else 0.0
        return self.resolved.action.limits.wall_seconds - spent

    def start_details(self) -> dict[str, Json]:
        """Return what the record of its start says beyond the run itself."""
        allowed = self.seconds_allowed
        return {} if allowed is None else {"wall_seconds": round(allowed)}

    def add_hosts_asked(self, hosts: tuple[str, ...]) -> None:
        self.hosts_asked = tuple(dict.fromkeys((*self.hosts_asked, *hosts)))

    def step_hosts(self, step: Step) -> tuple[str, ...]:
        """Return the `host:port` entries that *step* can reach with its arguments, as far as known."""
        assert self.resolved is not None
        connector = self.resolved.connectors[step.connector]
        if self.row.args is None:
            return connector.hosts
        return connector.hosts_for(self.step_inputs(step, self.row.progress))

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

    def halting_steps(self) -> frozenset[str]:
        """Return the steps before which a person has to be asked again.

        Their arguments hold an earlier step's output, so no yes can have covered them yet.
        """
        if not self.row.gated or self.resolved is None:
            return frozenset()
        asked = self.row.progress.halted_before if self.row.progress else None
        return frozenset(
            step.id
            for step in self.resolved.action.steps
            if step.id != asked and step.idempotent is not True and uses_earlier_output(step)
        )

    def step_inputs(self, step: Step, progress: Progress | None) -> JsonObject:
        """Return *step*'s arguments as far as they are known after *progress*; the rest as written."""
        assert self.resolved is not None
        assert self.row.args is not None
        args, declared = self.row.args, self.resolved.action.input_names
        if progress is None:
            return op_arguments(step, args, None, declared)
        # As when the step runs, only those before it count: `${a.b.c}` may be the path `b.c` of `a`
        # although a later step's id is `a.b`.
        steps = self.resolved.action.steps
        earlier = {each.id for each in steps[: steps.index(step)]}
        outputs = {id_: output for id_, output in progress.steps.items() if id_ in earlier}
        try:
            return op_arguments(step, args, outputs, declared, earlier - set(outputs))
        except MissingValue:  # ends the run before that step; until then it is left as written
            return op_arguments(step, args, None, declared)

    def consent(
        self, preview: PreviewResult, row: RunRecord | None = None
    ) -> tuple[str, tuple[str, str, str]]:
        """Return digest and words of what a yes to *preview* would cover.

        Args:
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
                connectors=[each.identity for each in self.resolved.connectors.values()],
                steps=[
                    ConsentStep(
                        id=step.id,
                        connector=step.connector,
                        op=step.op,
                        inputs={
                            name: encode_large_integers(value)
                            for name, value in self.step_inputs(step, row.progress).items()
                        },
                    )
                    for step in action.steps
                ],
                args=args,
                hosts=self.resolved.hosts,
                accounts=self.resolved.consented_accounts,
                preview=preview.fingerprint,
                preview_reads=tuple(preview.reads),
                wall_seconds=self.resolved.run_seconds_accepted,
                expires_at=None if expires is None else rfc3339(expires),
                nonce=self.nonce,
            )
        )

    def lock_keys(self) -> list[tuple[str, str | None]]:
        if self.resolved is None:
            return []
        if self.is_builtin:  # the files of one session's project
            if self.resolved.action.tool in READING:  # which changes nothing that a person saw
                return []
            return [(fqn, self.row.session_id) for fqn in self.resolved.connectors]
        return [(fqn, each.account or None) for fqn, each in self.resolved.connectors.items()]
