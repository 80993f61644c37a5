"""Which commands are rehearsed, and what a person or a rule decides by; the workers are scripted."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from aileron_core.connectors.builtin.channel import ToolChannel
from aileron_core.policy.model import Policy, Rule
from aileron_core.runs.model import RunRecord
from aileron_core.sessions.model import Session
from aileron_core.settings import Rehearse, Settings
from tests.support.core_harness import Core, open_session

MAKE = Rule(tools=("Bash",), decision="allow", argv=("make", "*"), source="policy.toml:1")
SIMPLE = {"simple": True, "argv": ["make", "x"], "program": "/usr/bin/make", "program_writable": False}  # fmt: skip
ENDED = {"exit_code": 0, "stdout": "made\n", "stderr": ""}
BUILT = {**ENDED, "rehearsal": "r1", "changes": [{"path": "build/x", "kind": "made"}], "own_changes": 0}  # fmt: skip


class Workers:
    """Answers what a session's workers are asked, and notes the ops of the commands' worker."""

    def __init__(self, channel: ToolChannel, rehearsed: Mapping[str, Any]) -> None:
        self.asked: list[str] = []
        self.answers: dict[str, Any] = {
            "resolve": {"words": [], **SIMPLE}, "rehearse": rehearsed, "check": {"holds": True},
            "commit": ENDED, "discard": {}, "run": ENDED,
        }  # fmt: skip
        self.silent: list[str] = []
        """Ops that are not answered."""
        self.cancels: list[int] = []
        self._channel = channel

    async def serve(self) -> None:
        while True:
            message = await self._channel.frames.get()
            frame = message["frame"]
            self.cancels += [frame["cancel"]] if "cancel" in frame else []
            if message["worker"] == "commands" and "op" in frame:
                self.asked.append(frame["op"])
            if frame.get("op") in (None, *self.silent):
                continue
            answer = self.answers[frame["op"]]
            kind = "error" if "class" in answer else "result"
            self._channel.receive(message["worker"], {"id": frame["id"], kind: answer})


@asynccontextmanager
async def rehearsing(
    home: Path, *rules: Rule, rehearse: Rehearse = "ask", rehearsed: Mapping[str, Any] = BUILT
) -> AsyncGenerator[tuple[Core, Session, Workers]]:
    settings = Settings(rehearse=rehearse)
    async with Core.open(home, settings=settings, policy=Policy(rules=rules)) as core:
        core.app.accepted_policy.count = True
        session = await open_session(core.app, builtins="instead")
        channel = core.app.tool_channels.get(session.session.session_id)
        channel.attach({"rehearsal": True})
        workers = Workers(channel, rehearsed)
        serving = asyncio.create_task(workers.serve())
        yield core, session.session, workers
        serving.cancel()


async def bash(core: Core, session: Session, command: str = "make x") -> RunRecord:
    return (await core.call("builtin.bash", {"command": command}, session=session)).row


async def shown_preview(core: Core, row: RunRecord) -> dict[str, str]:
    view = await core.looked(row.approval_id)
    return {field.label: field.value for field in view.preview.fields}


@pytest.mark.parametrize(
    ("rehearse", "says"),
    [("ask", "exit code 0"), ("always", "exit code 0"), ("never", "Not rehearsed. config.toml says never.")],
)  # fmt: skip
async def test_a_command_that_is_asked_about_is_rehearsed_unless_config_says_never(
    home: Path, rehearse: Rehearse, says: str
) -> None:
    async with rehearsing(home, rehearse=rehearse) as (core, session, workers):
        fields = await shown_preview(core, await bash(core, session))
        assert fields["Rehearsal"].startswith(says)
        assert workers.asked == ([] if rehearse == "never" else ["rehearse"])


@pytest.mark.parametrize(
    ("rehearse", "rehearsed", "asked"),
    [
        ("ask", BUILT, ["run"]),
        ("always", BUILT, ["rehearse", "commit"]),
        ("always", {"fallback": "It wants the network."}, ["rehearse", "run"]),
    ],
)
async def test_a_command_that_a_rule_allows_is_rehearsed_where_config_says_always(
    home: Path, rehearse: Rehearse, rehearsed: dict[str, Any], asked: list[str]
) -> None:
    given = rehearsing(home, MAKE, rehearse=rehearse, rehearsed=rehearsed)
    async with given as (core, session, workers):
        row = await bash(core, session)
        assert (row.state, row.output["output"] if row.output else "") == ("completed", "made")
        assert workers.asked == asked


BUILD = Rule(tools=("Bash",), decision="allow", changes=("build/**",), source="policy.toml:1")
ELSEWHERE = {**BUILT, "changes": [*BUILT["changes"], {"path": "src/x", "kind": "changed"}]}


async def test_a_rule_has_a_rehearsal_committed_without_a_person(home: Path) -> None:
    async with rehearsing(home, BUILD) as (core, session, workers):
        row = await bash(core, session)
        assert (row.state, row.gated) == ("completed", False)
        assert workers.asked == ["rehearse", "commit"]
        (record,) = await core.records("run.started")
        assert record["rule"] == "allowed by policy.toml:1, by what its rehearsal changed"


@pytest.mark.parametrize(
    ("rehearsed", "why"),
    [
        (ELSEWHERE, "policy.toml:1 does not allow everything that it changes: src/x"),
        ({**BUILT, "own_changes": 1}, "policy.toml:1 does not allow changes of the sandbox's own home and caches"),
        ({"fallback": "It wants the network."}, "policy.toml:1 allows only what was rehearsed, and this command was not"),
        ({"class": "io", "message": "8 commands run already."}, "policy.toml:1 allows only what was rehearsed, and this command was not"),
    ],
)  # fmt: skip
async def test_what_it_does_not_cover_is_asked_with_the_same_rehearsal(
    home: Path, rehearsed: dict[str, Any], why: str
) -> None:
    async with rehearsing(home, BUILD, rehearsed=rehearsed) as (core, session, workers):
        row = await bash(core, session)
        view = await core.looked(row.approval_id)
        assert view.rule == why
        assert (await bash(core, session)).run_id == row.run_id
        assert workers.asked == ["rehearse"]  # neither for the preview nor for the repeated call


@pytest.mark.parametrize("class_", ["conflict", "not_found"])
async def test_a_conflict_runs_nothing_and_says_to_call_again(home: Path, class_: str) -> None:
    async with rehearsing(home, BUILD) as (core, session, workers):
        workers.answers["commit"] = {"class": class_, "message": "x differs. Nothing was changed."}
        row = await bash(core, session)
        assert (row.state, row.failure.class_) == ("failed", "conflict")
        assert row.failure.message.endswith("Call it again.")
        assert workers.asked == ["rehearse", "commit"]


async def test_a_rule_by_what_it_changes_never_runs_a_command(home: Path) -> None:
    not_kept = {name: value for name, value in BUILT.items() if name != "rehearsal"}
    async with rehearsing(home, BUILD, rehearsed=not_kept) as (core, session, workers):
        row = await bash(core, session)
        assert row.failure.message.endswith("Nothing ran. Call it again.")
        assert workers.asked == ["rehearse"]


async def test_what_is_denied_is_not_rehearsed(home: Path) -> None:
    denied = Rule(tools=("Bash",), decision="deny", argv=("make", "*"))
    async with rehearsing(home, BUILD, denied) as (core, session, workers):
        assert (await bash(core, session)).state == "denied"
        assert workers.asked == []


async def test_a_call_that_ends_has_its_rehearsal_ended_or_dropped(home: Path) -> None:
    """It went on to its end, for nobody, and was kept, with its memory, until others took its place."""
    async with rehearsing(home) as (core, session, workers):
        row = await bash(core, session)
        await shown_preview(core, row)
        await core.app.approvals.withdraw(session.session_id, row.approval_id, "")
        await core.until(lambda: workers.asked == ["rehearse", "discard"])
        workers.silent.append("rehearse")
        row = await bash(core, session)
        await core.until(lambda: workers.asked[2:] == ["rehearse"])
        await core.app.approvals.withdraw(session.session_id, row.approval_id, "")
        await core.until(lambda: len(workers.cancels) == 1)
