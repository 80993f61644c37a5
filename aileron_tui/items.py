"""One row of the waiting list as a value: a call, a batch of calls, a file to accept, a suite (and which of its files come first), a problem."""

import hashlib
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf
from typing import Literal

from aileron_core.actions.model import is_builtin
from aileron_core.console_port.field_views import FieldView
from aileron_core.console_port.file_views import FileContentView
from aileron_core.console_port.view_models import (
    WAITING_STATES,
    ApprovalView,
    NotAcceptedView,
    PublisherView,
    SuiteView,
)
from aileron_core.errors import Problem

FileOutcome = Literal["", "accepted", "removed", "changed", "solved"]
"""What became of a row that is no call: empty while it waits; `changed`: what is left of it is another row."""


@dataclass(frozen=True, kw_only=True)
class SuiteFiles:
    """The action files of one suite that are not accepted, by name, and connectors that came with them."""

    suite: SuiteView
    files: tuple[NotAcceptedView, ...]
    new_connectors: tuple[NotAcceptedView, ...] = ()

    @property
    def all(self) -> tuple[NotAcceptedView, ...]:
        """The connectors, then the files."""
        return (*self.new_connectors, *self.files)

    @cached_property
    def ungated_effects(self) -> tuple[NotAcceptedView, ...]:
        """Those to look at first: not gated, and not marked as reads."""
        return tuple(each for each in self.files if not each.gated and not each.is_read_only)

    @cached_property
    def gated(self) -> tuple[NotAcceptedView, ...]:
        """Those of which each run waits for a person."""
        return tuple(each for each in self.files if each.gated)

    @cached_property
    def ungated_reads(self) -> tuple[NotAcceptedView, ...]:
        """Those that are not gated, and that are marked as reads."""
        return tuple(each for each in self.files if not each.gated and each.is_read_only)

    @cached_property
    def other_files(self) -> tuple[NotAcceptedView, ...]:
        """All but those to look at first."""
        return tuple(each for each in self.files if each.gated or each.is_read_only)

    @cached_property
    def connectors(self) -> tuple[str, ...]:
        return tuple(
            sorted({step.rpartition(".")[0] for each in self.files for step in each.steps})
        )

    @cached_property
    def cannot_run(self) -> tuple[NotAcceptedView, ...]:
        """Those of which no call can run, whatever is accepted."""
        return tuple(each for each in self.files if each.cannot_run)

    @cached_property
    def hosts(self) -> tuple[str, ...]:
        return tuple(sorted({host for each in self.all for host in each.hosts}))

    @cached_property
    def run_seconds(self) -> tuple[tuple[str, int], ...]:
        """By file, the time that accepting it gives it beyond the usual."""
        return tuple(
            (each.file, each.run_time.seconds) for each in self.files if each.run_time is not None
        )

    @cached_property
    def signed_with(self) -> tuple[tuple[str, str], ...]:
        """By file, whose key signed it, and which."""
        return tuple((each.file, each.signed_with) for each in self.all if each.signed_with)

    @cached_property
    def publishers(self) -> Mapping[PublisherView, int]:
        """Whose the files are, and how many of them."""
        return Counter(each.publisher for each in self.all if each.publisher is not None)

    def without_contents(self) -> "SuiteFiles":
        return replace(
            self,
            files=tuple(replace(each, content=None) for each in self.files),
            new_connectors=tuple(replace(each, content=None) for each in self.new_connectors),
        )

    @cached_property
    def contents(self) -> tuple[FileContentView, ...]:
        return tuple(each.content for each in self.all if each.content is not None)

    @cached_property
    def digest(self) -> str:
        """SHA-256 over what `sha256sum` prints of the files in order: hex."""
        listed = "".join(f"{each.digest}  {each.file}\n" for each in self.files)
        return hashlib.sha256(listed.encode("utf-8", "surrogatepass")).hexdigest()


def group_files(
    not_accepted: Iterable[NotAcceptedView],
) -> tuple[tuple[NotAcceptedView, ...], tuple[SuiteFiles, ...], tuple[NotAcceptedView, ...]]:
    """Return the connectors and keys of *not_accepted*, the suites in order of arrival, and the actions of no suite."""
    connectors: list[NotAcceptedView] = []
    alone: list[NotAcceptedView] = []
    together: dict[str, list[NotAcceptedView]] = {}
    for each in not_accepted:
        if each.suite is None:
            is_first = each.kind in ("connector", "publisher")
            (connectors if is_first else alone).append(each)
        else:
            together.setdefault(each.suite.suite_id, []).append(each)
    suites: list[SuiteFiles] = []
    for _, files in sorted(together.items()):
        came = [each for each in files if each.kind == "connector"]
        actions = sorted((each for each in files if each not in came), key=lambda file: file.file)
        if actions and (suite := actions[0].suite) is not None:
            suites.append(SuiteFiles(suite=suite, files=tuple(actions), new_connectors=tuple(came)))
        else:
            connectors += came
    return tuple(connectors), tuple(suites), tuple(alone)


BATCHED_CHARACTERS = 2_000
"""Characters of a call's values; one with more is read alone, not in a table."""
FieldKey = tuple[Literal["fact", "claim"], str]
"""Whether Aileron or the agent says what a field of a call is, and its label."""


def fields_of(view: ApprovalView) -> dict[FieldKey, FieldView]:
    """Return every field of *view*: what was fetched, what the agent sent, and the inputs of its steps."""
    fields: dict[FieldKey, FieldView] = {("fact", e.label): e for e in view.preview.fields}
    fields |= {("claim", each.label): each for each in view.agent_fields}
    for step in view.steps:
        fields |= {("fact", f"{step.step_id}: {each.label}"): each for each in step.inputs}
    return fields


def batch_shape(view: ApprovalView) -> Hashable:
    """Return what calls have in common that form one row; None of a call that has a row of its own."""
    may_change = view.state != "pending" or not view.digest or view.drift is not None
    size = sum(len(each.value) for each in fields_of(view).values())
    halted = any(step.status == "done" for step in view.steps)
    if may_change or halted or view.note or view.requester_gone or size > BATCHED_CHARACTERS:
        return None
    if view.effect in ("PAY", "DELETE") or is_builtin(view.action) or not view.action_sha256:
        return None
    if view.preview.status not in ("ready", "none"):
        return None
    names = frozenset(each.label for each in view.arguments)
    where = (view.accounts, view.hosts, view.op_hosts, view.routed, view.preview.status)
    return (view.session_id, view.action, view.action_sha256, names, where)


@dataclass(frozen=True, kw_only=True)
class Batch:
    """Calls of one shape that wait in one row, and what the person did in their table."""

    calls: tuple[ApprovalView, ...]
    left_out: frozenset[str] = frozenset()
    cursor: str = ""
    """The call under the cursor of the table; empty while the list has the keys."""
    opened: bool = False
    """That call is shown whole."""

    @property
    def ids(self) -> list[str]:
        return [each.call_id for each in self.calls]

    @cached_property
    def versions(self) -> tuple[str, ...]:
        return tuple(f"{each.call_id} {each.version} {each.digest}" for each in self.calls)

    def moved(self, rows: int) -> "Batch":
        """Return it with the cursor so many calls on; 0 puts it on the first one."""
        at = self.ids.index(self.cursor) + rows if self.cursor else 0
        return replace(self, cursor=self.ids[min(max(at, 0), len(self.calls) - 1)])

    @cached_property
    def fields(self) -> dict[FieldKey, list[FieldView]]:
        """The values of each field, one for each call."""
        rows = [fields_of(each) for each in self.calls]
        keys = dict.fromkeys(key for row in rows for key in row)
        absent = {key: FieldView(label=key[1], missing=True) for key in keys}
        return {key: [row.get(key, absent[key]) for row in rows] for key in keys}

    @cached_property
    def same(self) -> dict[FieldKey, FieldView]:
        """The fields that are equal in all calls."""
        return {key: e[0] for key, e in self.fields.items() if e.count(e[0]) == len(e)}

    @cached_property
    def alone(self) -> frozenset[tuple[FieldKey, str]]:
        """Fields with the call that alone differs there, where all others agree."""
        return frozenset(
            (key, call_id)
            for key, values in self.fields.items()
            if len(values) > 2 == len({*values})
            for call_id, value in zip(self.ids, values, strict=True)
            if values.count(value) == 1
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One row: an approval, a batch, a file that is not accepted, some that were added together, or a problem. `key` stays the same for its life."""

    key: str
    approval: ApprovalView | None = None
    batch: Batch | None = None
    file: NotAcceptedView | None = None
    suite: SuiteFiles | None = None
    problem: Problem | None = None
    remove_at: float | None = None
    """When the row is removed, in epoch seconds; None while it stays."""
    outcome: FileOutcome = ""
    changed_now: bool = False
    """The content of the file or the files changed since the last key."""

    @property
    def is_waiting(self) -> bool:
        """A person has not answered yet, or not acknowledged that an outcome is unknown."""
        if self.approval is not None:
            return self.approval.state in WAITING_STATES or self.is_unacknowledged
        files = self.file is not None or self.suite is not None
        return self.batch is not None or (files and not self.outcome)

    @property
    def state(self) -> str:
        """The call's state, or what became of a file or problem; empty while that waits."""
        return self.approval.state if self.approval is not None else self.outcome

    @property
    def is_over(self) -> bool:
        """It was answered, or ended by itself."""
        return not self.is_waiting if self.approval is not None else bool(self.outcome)

    @property
    def calls(self) -> tuple[ApprovalView, ...]:
        """The call, or those of the batch; empty for a file or a problem."""
        if self.batch is not None:
            return self.batch.calls
        return (self.approval,) if self.approval is not None else ()

    @property
    def files(self) -> tuple[NotAcceptedView, ...]:
        """The files that wait to be accepted here."""
        if self.suite is not None:
            return self.suite.all
        return (self.file,) if self.file is not None else ()

    @property
    def is_unacknowledged(self) -> bool:
        """Nobody knows how the call ended, and no person has taken note of that."""
        return self.approval is not None and self.approval.awaits_acknowledgement

    @property
    def deadline(self) -> float | None:
        """Epoch seconds of its deadline; None where it has none or needs no answer any more."""
        waiting = (each for each in self.calls if each.state in WAITING_STATES)
        return min((e.expires_at for e in waiting if e.expires_at is not None), default=None)

    @property
    def ends_at(self) -> float:
        """The deadline, infinite where there is none."""
        return self.deadline if self.deadline is not None else inf

    @property
    def version(self) -> tuple[str, ...]:
        """What a person must look at anew when it differs."""
        if self.batch is not None:
            return (self.key, *self.batch.versions)
        if self.approval is not None:
            view = self.approval
            need = view.account_need
            waits = () if need is None else (need.reason, *(each.name for each in need.candidates))
            return (self.key, str(view.version), view.preview.status, view.digest, *waits)
        if self.suite is not None:
            more = (
                *(each.digest for each in self.suite.new_connectors),
                *map(str, self.suite.publishers),
            )
            return (self.key, self.suite.digest, str(self.suite.run_seconds), *more)
        if self.file is None:
            return (self.key, "")
        before = self.file.before
        named = self.file.run_time
        seconds = str(named.seconds) if named is not None else ""
        old = before.digest if before is not None else ""
        return (self.key, self.file.digest, old, seconds, str(self.file.publisher))
