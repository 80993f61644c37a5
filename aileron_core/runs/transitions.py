"""The life of a run: the one table, and the only place where states change.

Rules of this file:
1. `advance` is total over its table and pure. An edge that is not in the table is illegal:
   it raises, and nothing was changed.
2. Nothing outside this file compares a state to choose the next one.

`docs/states.md` is made from this table.
"""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType

from aileron_core.errors import IllegalTransition


class RunState(StrEnum):
    """Where a run is."""

    NEW = "new"
    """Asked for; not yet a row."""
    AWAITING_VAULT = "awaiting_vault"
    """Waits for the vault to be unlocked, or for an account to be bound or picked."""
    PENDING = "pending"
    """A person's answer is out."""
    CHECKING = "checking"
    """A person said yes; what they saw is being checked again."""
    APPROVED = "approved"
    """The check held; the effect has not begun."""
    EXECUTING = "executing"
    """The effect may be happening."""
    COMPLETED = "completed"
    FAILED = "failed"
    UNKNOWN = "unknown"
    """A request had gone out and its end is not known."""
    DENIED = "denied"
    EXPIRED = "expired"
    WITHDRAWN = "withdrawn"


class RunEvent(StrEnum):
    """What happened to it."""

    ASK = "ask"
    """It is gated: a person has to answer."""
    NEED_VAULT = "need_vault"
    REFUSE = "refuse"
    """It cannot run (arguments, connector, not accepted): ended before it began."""
    RULE_DENY = "rule_deny"
    APPROVE = "approve"
    """A person's yes."""
    DENY = "deny"
    """A person's no."""
    EXPIRE = "expire"
    WITHDRAW = "withdraw"
    RECHECK_MATCHED = "recheck_matched"
    """The recheck found what the person saw."""
    RECHECK_DIFFERED = "recheck_differed"
    """The recheck found something else, or could not look any more; nothing ran."""
    UNDO_APPROVAL = "undo_approval"
    CONFLICT = "conflict"
    """Action, arguments or connector are not those of the digest."""
    START = "start"
    """The effect begins after this is durable."""
    ASK_AGAIN = "ask_again"
    """A later step asks, or the recheck before a retry differs."""
    COMPLETE = "complete"
    FAIL = "fail"
    LOSE_OUTCOME = "lose_outcome"
    """A limit, a cancel or a lost connection after a request had gone out."""
    RECOVER = "recover"
    """The console stopped in this state and has come back."""


_S, _E = RunState, RunEvent

TRANSITIONS: Mapping[tuple[RunState, RunEvent], RunState] = MappingProxyType(
    {
        (_S.NEW, _E.START): _S.EXECUTING,
        (_S.NEW, _E.ASK): _S.PENDING,
        (_S.NEW, _E.NEED_VAULT): _S.AWAITING_VAULT,
        (_S.NEW, _E.RULE_DENY): _S.DENIED,
        (_S.NEW, _E.REFUSE): _S.FAILED,
        (_S.AWAITING_VAULT, _E.ASK): _S.PENDING,
        (_S.AWAITING_VAULT, _E.START): _S.EXECUTING,
        (_S.AWAITING_VAULT, _E.DENY): _S.DENIED,
        (_S.AWAITING_VAULT, _E.EXPIRE): _S.EXPIRED,
        (_S.AWAITING_VAULT, _E.WITHDRAW): _S.WITHDRAWN,
        (_S.AWAITING_VAULT, _E.REFUSE): _S.FAILED,
        (_S.AWAITING_VAULT, _E.RECOVER): _S.AWAITING_VAULT,
        (_S.PENDING, _E.APPROVE): _S.CHECKING,
        (_S.PENDING, _E.NEED_VAULT): _S.AWAITING_VAULT,
        (_S.PENDING, _E.DENY): _S.DENIED,
        (_S.PENDING, _E.EXPIRE): _S.EXPIRED,
        (_S.PENDING, _E.WITHDRAW): _S.WITHDRAWN,
        (_S.PENDING, _E.RECOVER): _S.PENDING,
        (_S.CHECKING, _E.RECHECK_MATCHED): _S.APPROVED,
        (_S.CHECKING, _E.RECHECK_DIFFERED): _S.PENDING,
        (_S.CHECKING, _E.UNDO_APPROVAL): _S.PENDING,
        (_S.CHECKING, _E.DENY): _S.DENIED,
        (_S.CHECKING, _E.EXPIRE): _S.EXPIRED,
        (_S.CHECKING, _E.WITHDRAW): _S.WITHDRAWN,
        (_S.CHECKING, _E.CONFLICT): _S.FAILED,
        (_S.CHECKING, _E.RECOVER): _S.PENDING,
        (_S.APPROVED, _E.START): _S.EXECUTING,
        (_S.APPROVED, _E.RECOVER): _S.PENDING,
        (_S.EXECUTING, _E.COMPLETE): _S.COMPLETED,
        (_S.EXECUTING, _E.FAIL): _S.FAILED,
        (_S.EXECUTING, _E.LOSE_OUTCOME): _S.UNKNOWN,
        (_S.EXECUTING, _E.ASK_AGAIN): _S.PENDING,
        (_S.EXECUTING, _E.NEED_VAULT): _S.AWAITING_VAULT,
        (_S.EXECUTING, _E.RECOVER): _S.UNKNOWN,
    }
)

FINAL = frozenset(RunState) - {state for state, _ in TRANSITIONS}
"""States that nothing leaves."""

OPEN = frozenset(RunState) - FINAL - {RunState.NEW}
"""States of a run that is not over."""

UNDECIDED = frozenset(state for state, event in TRANSITIONS if event is RunEvent.DENY)
"""States in which a person's no, or the agent's withdrawal, still counts."""


def advance(state: RunState, event: RunEvent, *, gated: bool = False) -> RunState:
    """Return the state after *event*.

    Raises:
        IllegalTransition: the table has no such edge, or a *gated* run would start without a
            person's yes (from the vault, say).
    """
    if gated and event is RunEvent.START and state is not RunState.APPROVED:
        raise IllegalTransition(f"a gated run that is {state} cannot start; it stays {state}")
    try:
        return TRANSITIONS[state, event]
    except KeyError:
        raise IllegalTransition(
            f"a run that is {state} cannot take {event}; it stays {state}"
        ) from None
