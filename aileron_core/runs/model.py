"""A run as stored in the database."""

import json
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from aileron_core.actions.model import shown_name
from aileron_core.audit.record import content_hash
from aileron_core.canonical import Json, JsonObject, canonical, dumped
from aileron_core.connectors.protocol import is_small
from aileron_core.errors import Failure
from aileron_core.runs.transitions import RunEvent, RunState, advance

_KEY_BYTES = 32


def args_hash(args: JsonObject, content_key: str | None) -> str:
    return content_hash(canonical(args), content_key)


def new_content_key() -> str:
    return secrets.token_hex(_KEY_BYTES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """What a halted run has done so far; its finished steps are never repeated."""

    steps: Mapping[str, Json]
    """Outputs of the finished steps, by id, in their order."""
    halted_before: str | None
    """The step it halted before because its arguments are known only now; None where a recheck differed."""
    elapsed: float
    """Seconds of its wall time that are used up."""

    def to_json(self) -> JsonObject:
        return {
            "steps": list(map(list, self.steps.items())),
            "asked": self.halted_before,
            "spent": self.elapsed,
        }

    @classmethod
    def from_json(cls, stored: Any) -> "Progress":
        """Read what `to_json` returned.

        Raises:
            ValueError: Aileron never wrote that.
        """
        if not isinstance(stored, dict):
            raise ValueError("progress is no table")
        fields = cast("dict[str, Any]", stored)
        steps, asked, spent = fields.get("steps"), fields.get("asked"), fields.get("spent")
        if not isinstance(steps, list) or not isinstance(spent, int | float):
            raise ValueError("progress lacks its steps")
        pairs = cast("Sequence[tuple[str, Json]]", steps)
        return cls(steps=dict(pairs), halted_before=asked, elapsed=float(spent))


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """One run. Times are seconds since the epoch. `args` is None once deleted (`[history] days` after the end).

    Sooner where its session holds too many bytes of them and no person decided it.
    """

    run_id: str
    session_id: str
    action: str
    action_sha256: str
    args: JsonObject | None
    args_sha256: str
    """`args_hash` of its arguments; it stays when they are deleted."""
    gated: bool
    state: RunState
    requested_at: float
    approval_id: str | None = None
    idempotency_key: str | None = None
    expires_at: float | None = None
    times_asked: int = 1
    digest: str | None = None
    words: tuple[str, str, str] | None = None
    decided_at: float | None = None
    decided_by: str | None = None
    reason: str | None = None
    note: str = ""
    ended_at: float | None = None
    output: Mapping[str, Json] | None = None
    """`{"output", "steps"}` of a completed run."""
    failure: Failure | None = None
    delivered: bool = False
    last_record: int = 0
    progress: Progress | None = None
    """Set from the first halt on, until it completed, failed or is unknown."""
    content_key: str | None = None
    """What its records' hashes of content are made with, hexadecimal; deleted with the arguments.

    None as well in a run of before schema 4.
    """
    sealed_day: str | None = None
    """The UTC date to whose key its content is sealed in the database; None where it is plain there, or deleted."""
    asked_args: JsonObject | None = None
    """What its agent sent, where a person changed that; None where `args` are the agent's."""
    is_cut: bool = False
    """Whether its result is here whole, and the database keeps the beginning (`is_kept_whole`). It is no column."""
    unsealed: bool = False
    """Where it is sealed in the database: whether it is here all the same. It is no column."""

    @property
    def action_name(self) -> str:
        """The action's name, for sentences."""
        return shown_name(self.action)

    @property
    def content_is_sealed(self) -> bool:
        """Whether what it contained can be read only with the key of its day."""
        return self.sealed_day is not None and not self.unsealed

    @property
    def args_size(self) -> int:
        """Bytes of the arguments as they are stored."""
        return len(dumped(self.args) or "")

    @property
    def called_args(self) -> JsonObject | None:
        """What its agent sent; None once deleted."""
        return self.args if self.asked_args is None else self.asked_args

    @property
    def edited_names(self) -> tuple[str, ...]:
        """Names of the arguments that a person changed; none of a call whose arguments are deleted."""
        new, old = self.args, self.asked_args
        if new is None or old is None:
            return ()
        names = dict.fromkeys((*old, *new))
        return tuple(n for n in names if canonical(new.get(n)) != canonical(old.get(n)))

    @property
    def asked_sha256(self) -> str | None:
        """`args_hash` of what its agent sent, where a person changed that."""
        return None if self.asked_args is None else args_hash(self.asked_args, self.content_key)

    @property
    def result_sha256(self) -> str | None:
        """Hash of what the run returned, or of how it failed, as stored; None before its end."""
        output, failure = self._kept_result()
        return self._hash_of(failure if output is None else output)

    def _kept_result(self) -> tuple[Json, Json]:
        """Return what the database keeps of what it returned, and of how it failed."""
        output = self.output
        failure: JsonObject | None = None if self.failure is None else self.failure.to_json()
        if self.is_cut:
            output = output and cut(output)
            failure = failure and {**failure, "details": cut(failure["details"])}
        return output, failure

    @property
    def progress_sha256(self) -> str | None:
        """Hash of its progress as stored, for the record that vouches for the row; None without any."""
        return self._hash_of(self.progress and self.progress.to_json())

    def _hash_of(self, content: object) -> str | None:
        text = dumped(content)
        if text is None or (self.args is None and self.content_key is None):
            return (
                None  # what the arguments left behind when they were deleted gets no hash any more
            )
        return content_hash(text.encode(), self.content_key)

    def is_call_of(self, action: str, args: Json) -> bool:
        """Return whether its agent called *action* with *args*, also as the agent wrote them: null is as absent.

        Of a run whose arguments are not kept, only the action is compared.
        """
        called = self.called_args
        if self.action != action or called is None or args is None:
            return self.action == action
        return isinstance(args, Mapping) and canonical(_given(called)) == canonical(_given(args))

    def with_arguments(self, args: JsonObject) -> "RunRecord":
        """Return this run with *args* in place of its own; it keeps what its agent sent."""
        digest, asked = args_hash(args, self.content_key), self.called_args
        same = asked is None or args_hash(asked, self.content_key) == digest
        return replace(self, args=args, args_sha256=digest, asked_args=None if same else asked)

    def without_contents(self) -> "RunRecord":
        """Return this run as its row is once its content was deleted (`run_table.forget_contents_before`)."""
        without = self.without_arguments()
        return replace(
            without,
            output=None,
            failure=None,
            is_cut=False,
            reason=None,
            note="",
            sealed_day=None,
            unsealed=False,
        )

    def sealed_parts(self) -> dict[str, JsonObject]:
        """Return what is to be sealed of it, by part, each as the texts of its columns."""
        columns: dict[str, Any] = dict(zip(COLUMNS, self.to_columns(), strict=True))
        parts = {
            part: {name: columns[name] for name in names} for part, names in SEALED_PARTS.items()
        }
        return {part: texts for part, texts in parts.items() if any(texts.values())}

    def with_parts(self, parts: Mapping[str, Mapping[str, Any]]) -> "RunRecord":
        """Return this run with what `sealed_parts` returned; a part that was deleted is left out.

        Raises:
            ValueError: Aileron never sealed that.
        """
        columns: dict[str, Any] = dict(zip(COLUMNS, self.to_columns(), strict=True))
        for part, names in SEALED_PARTS.items():
            if part in parts:  # what was sealed before schema 8 has no `asked_args`
                sealed = {"asked_args": None, **parts[part]}
                columns |= {name: sealed[name] for name in names}
        if not all(isinstance(columns[name], str | None) for name in _SEALED_NAMES):
            raise ValueError("a sealed column is no text")
        return replace(RunRecord.from_columns(columns), unsealed=True)

    def without_arguments(self) -> "RunRecord":
        """Return this run as its row is once its arguments were deleted to make room."""
        return replace(self, args=None, asked_args=None, progress=None, content_key=None)

    def sealed_to(self, day: str) -> "RunRecord":
        """Return this run as it is here once its row has its content sealed alone."""
        return replace(self, sealed_day=day, unsealed=True)

    def after(self, event: RunEvent, **changes: Any) -> "RunRecord":
        """Return this run after *event*, with *changes*.

        Raises:
            IllegalTransition: the table has no such edge from this state.
        """
        return replace(self, state=advance(self.state, event, gated=self.gated), **changes)

    def to_columns(self) -> tuple[Any, ...]:
        if self.unsealed:
            bare = replace(self.without_contents(), sealed_day=self.sealed_day)
            return bare.to_columns()
        output, failure = self._kept_result()
        columns = {name: getattr(self, name) for name in COLUMNS} | {
            "args": dumped(self.args),
            "asked_args": dumped(self.asked_args),
            "gated": int(self.gated),
            "state": str(self.state),
            "words": dumped(self.words),
            "output": dumped(output),
            "failure": dumped(failure),
            "delivered": int(self.delivered),
            "progress": dumped(self.progress.to_json() if self.progress else None),
        }
        return tuple(columns.values())

    @classmethod
    def from_columns(cls, columns: Mapping[str, Any]) -> "RunRecord":
        """Read one row of the table `runs`.

        Raises:
            ValueError: a column holds what Aileron never wrote.
        """
        words = _load(columns["words"])
        failure = _load(columns["failure"])
        progress = _load(columns["progress"])
        fields: dict[str, Any] = {
            **columns,
            "args": _load(columns["args"]),
            "asked_args": _load(columns["asked_args"]),
            "gated": bool(columns["gated"]),
            "state": RunState(columns["state"]),
            "words": tuple(words) if words else None,
            "output": _load(columns["output"]),
            "failure": Failure.from_json(failure) if failure else None,
            "delivered": bool(columns["delivered"]),
            "progress": Progress.from_json(progress) if progress else None,
            "content_key": None if columns["content_key"] is None else _key(columns["content_key"]),
        }
        return cls(**fields)


COLUMNS = (
    "run_id", "approval_id", "session_id", "action", "action_sha256", "args", "args_sha256",
    "idempotency_key", "gated", "state", "requested_at", "expires_at", "times_asked", "digest",
    "words", "decided_at", "decided_by", "reason", "note", "ended_at", "output", "failure",
    "delivered", "last_record", "progress", "content_key", "sealed_day", "asked_args",
)  # fmt: skip
"""The columns of the table `runs`, in order."""
SEALED_PARTS = {
    "arguments": ("args", "asked_args", "progress", "content_key"),
    "result": ("output", "failure", "reason", "note"),
}
"""The columns that are sealed together: what is deleted to make room, and the rest."""
_SEALED_NAMES = [name for names in SEALED_PARTS.values() for name in names]


_MOST_VALUES, _KEPT_VALUES = 16 * 1024, 4 * 1024
"""How many values a result may have, and 64 times as many characters, to be kept whole; of another the first so many.

Other calls wait while it is written.
"""


def is_kept_whole(outputs: Iterable[Json]) -> bool:
    """Return whether the database keeps these *outputs* of one run as they are, and not their beginning alone."""
    return is_small(list(outputs), _MOST_VALUES)


def cut(parts: JsonObject) -> JsonObject:
    """Return as much of *parts* as is kept, the small ones first, with a word where the rest was."""
    left = _KEPT_VALUES * 64

    def some(value: Json) -> Json:
        nonlocal left
        left -= 64
        if isinstance(value, str):
            kept = value[: max(left, 0)]
            left -= len(kept)
            more = len(value) - len(kept)
            return f"{kept}… ({more:,} more characters were not kept)" if more else value
        if isinstance(value, Mapping):
            return members(value)
        if isinstance(value, Sequence):
            listed: list[Json] = []
            for each in value:
                if left <= 0:
                    return [*listed, f"… ({len(value) - len(listed):,} more were not kept)"]
                listed.append(some(each))
            return listed
        return value

    def members(value: JsonObject) -> JsonObject:
        nonlocal left
        found: dict[str, Json] = {}
        for name, each in value.items():
            if left <= 0:
                return {**found, "…": f"{len(value) - len(found):,} more were not kept"}
            left -= len(name)
            found[name] = some(each)
        return found

    return members(dict(sorted(parts.items(), key=lambda item: not is_small(item[1]))))


def _given(args: JsonObject) -> JsonObject:
    return {name: value for name, value in args.items() if value is not None}


def _key(text: str) -> str:
    """Return *text*, a content key.

    Raises:
        ValueError: it is none.
    """
    if len(bytes.fromhex(text)) != _KEY_BYTES:
        raise ValueError("a content key has another size")
    return text


def _load(text: str | None) -> Any:
    return None if text is None else json.loads(text)
