"""What the rules say of a call of a built-in tool, from what its session's worker knows about it."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any, cast

from aileron_core.actions.model import Action
from aileron_core.canonical import JsonObject, in_utf8
from aileron_core.connectors.protocol import Connector, Limits, OpResult
from aileron_core.errors import (
    AileronError,
    ConnectorRuntimeError,
    Forbidden,
    InvalidArguments,
    PayloadTooLarge,
    Unavailable,
)
from aileron_core.policy.evaluate import evaluate, hidden_paths
from aileron_core.policy.model import COMMAND, WRITING, Facts, Rehearsal, Rule, Verdict
from aileron_core.policy.values import argument_values
from aileron_core.runs.grants import Grants, binding_of
from aileron_core.runs.interfaces import ResolvedAction
from aileron_core.runs.preview.resolve import argument_fields
from aileron_core.sessions.model import Session

_LIMITS = Limits(wall_seconds=15.0)
_OF_THE_KERNEL = (PurePosixPath("/proc"), PurePosixPath("/sys"))
"""The files there are processes and devices."""
_ERRORS: Mapping[str, type[AileronError]] = {
    each.class_: each for each in (Forbidden, InvalidArguments, PayloadTooLarge, Unavailable)
}


class ToolRules:
    """Judges calls of the built-in tools.

    Args:
        rules: the rules in force.
        grants: what a person lets run without asking.
        restrict: gives the connector of a session's call that keeps to what was judged: globs that a
            search leaves out, and what the call is about.
        home: Aileron's own folder, to which no path of a call may lead.
    """

    def __init__(
        self,
        rules: Callable[[], Sequence[Rule]],
        grants: Grants,
        restrict: Callable[[str, Sequence[str], Mapping[str, Any]], Mapping[str, Connector]],
        home: Path,
    ) -> None:
        self._closed = (PurePosixPath(os.path.realpath(home)), *_OF_THE_KERNEL)
        self._rules = rules
        self._grants = grants
        self._restrict = restrict

    async def judge(
        self, resolved: ResolvedAction, args: JsonObject, session: Session
    ) -> ResolvedAction:
        """Return *resolved* with its verdict; it is gated if a person is to be asked.

        Raises:
            Unavailable: the session's worker does not answer.
            AileronError: the call cannot be done, as the worker says; no person is asked for it.
        """
        action = resolved.action
        (connector,) = resolved.connectors.values()
        found = await connector.call("inspect", {"tool": action.tool, "args": args}, limits=_LIMITS)
        known = _output(found)
        rules, facts = self._rules(), _facts(action.tool, args, known)
        verdict = evaluate(rules, facts)
        if facts.outside and self._is_closed(facts.target):
            verdict = Verdict(decision="deny", reason="no tool may touch this", about=facts.target)
        verdict = replace(verdict, about=in_utf8(verdict.about), place=facts.place)
        if verdict.decision != "deny":
            values = argument_values(action, argument_fields(action, args))
            denial = self._grants.denial(action.name, session, values)
            grant = denial[0] if denial is not None and denial[1] else None
            if grant is None and verdict.decision == "ask":
                binding = binding_of(replace(resolved, verdict=verdict))
                grant = self._grants.find(action.name, session, binding, values)
            if grant is not None:
                verdict = Verdict(
                    decision=grant.view.decision,
                    reason=grant.reason,
                    place=facts.place,
                    source=grant.name,
                )
        if verdict.decision != "deny" and action.tool in WRITING and not facts.outside:
            # One that cannot be done, since a text is not there, say, is not asked about. Outside, the answer
            # would tell what no person has allowed yet.
            _output(await connector.call(f"preview_{action.tool.lower()}", args, limits=_LIMITS))
        connectors = self._restrict(session.session_id, hidden_paths(rules, facts), known)
        action = _asked(action, verdict)
        return replace(resolved, action=action, connectors=connectors, verdict=verdict)

    def _is_closed(self, target: str) -> bool:
        """Return whether *target* is, holds or is held by a folder that no call may touch."""
        place = PurePosixPath(target)
        return any(
            each.is_relative_to(place) or place.is_relative_to(each) for each in self._closed
        )

    async def judge_rehearsed(self, resolved: ResolvedAction, args: JsonObject) -> ResolvedAction:
        """Rehearse a command that `judge` left to that, and return *resolved* with its verdict.

        One that cannot be rehearsed is asked about. If it is allowed, its connector keeps what the rehearsal
        changed, and runs nothing.
        """
        assert resolved.verdict is not None
        assert resolved.verdict.before_rehearsal is not None
        (connector,) = resolved.connectors.values()
        found = await connector.call("rehearse", args, limits=_LIMITS)
        rehearsal = _rehearsal(cast("Mapping[str, Any]", found.output or {}))
        facts = replace(resolved.verdict.before_rehearsal, rehearsal=rehearsal)
        verdict = evaluate(self._rules(), facts)
        verdict = replace(verdict, about=in_utf8(verdict.about))
        return replace(resolved, action=_asked(resolved.action, verdict), verdict=verdict)


def _asked(action: Action, verdict: Verdict) -> Action:
    """Return *action*, a built-in tool's, as one that a person is asked about where *verdict* says so."""
    return replace(action, approval=replace(action.approval, required=verdict.decision == "ask"))


def _output(found: OpResult) -> Mapping[str, Any]:
    failure = found.failure
    if failure is not None:
        raise _ERRORS.get(failure.class_, ConnectorRuntimeError)(failure.message)
    return cast("Mapping[str, Any]", found.output)


def _rehearsal(found: Mapping[str, Any]) -> Rehearsal:
    if "changes" not in found:
        return Rehearsal(done=False)
    paths = tuple(str(each["path"]) for each in found["changes"])
    return Rehearsal(done=True, paths=paths, own_changes=int(found["own_changes"]))


def _facts(tool: str, args: JsonObject, known: Mapping[str, Any]) -> Facts:
    if tool == COMMAND:
        return Facts(
            tool=tool,
            command=str(args["command"]),
            simple=bool(known.get("simple")),
            argv=tuple(map(str, known.get("argv") or ())),
            program=str(known.get("program") or ""),
            program_writable=bool(known.get("program_writable", True)),
            named=tuple(map(str, known.get("named") or ())),
        )
    return Facts(
        tool=tool,
        path=known.get("path"),
        outside=bool(known.get("outside")),
        target=str(known.get("target") or ""),
    )
