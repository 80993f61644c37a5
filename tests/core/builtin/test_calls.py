"""Calls of built-in tools: what was judged, rehearsed and shown is what is done, and no more."""

import asyncio
import os
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from aileron_core.canonical import Json
from aileron_core.connectors.builtin.worker.file_worker import FileWorker
from aileron_core.connectors.builtin.worker.paths import Project
from aileron_core.console_port.intents import EndGrant, SetPause
from aileron_core.console_port.standing import FieldTest, GrantTerms
from aileron_core.console_port.view_models import ApprovalView
from aileron_core.errors import Conflict
from aileron_core.policy.model import Policy, Rule
from aileron_core.runs.gate import Call, GateAnswer
from aileron_core.runs.model import RunRecord
from aileron_core.sessions.model import Session
from aileron_core.settings import Rehearse, Settings
from tests.support.core_harness import Core, open_session
from tests.support.granting import grant


class Tools:
    """A session's workers in this process: the real one of files, and one of commands that only keeps what it is asked."""

    def __init__(self, core: Core, project: Path, session: Session | None = None) -> None:
        self.core, self.session = core, session
        self.before: dict[str, Callable[[], object]] = {}
        """By op what happens just before it is done."""
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.rehearsed: dict[str, str] = {}
        """By id the command."""
        self.without_end = ""
        """An op that goes on and on."""
        self.found = ""
        """By a search."""
        self.answers: dict[str, Mapping[str, Any]] = {}
        """By op, in place of those of the workers; one with a class is an error."""
        self.kept_by = ""
        """Other workers, which keep what was there before and take it back."""
        self.cancels: list[int] = []
        self._answers: list[dict[str, Any]] = []
        self._files = FileWorker(Project(project), self._answers.append)

    @asynccontextmanager
    async def attached(self) -> AsyncGenerator["Tools"]:
        if self.session is None:
            opened = await open_session(self.core.app, opened_by="launch", builtins="beside")
            self.session = opened.session
        self.channel = self.core.app.tool_channels.get(self.session.session_id)
        self.channel.attach({"rehearsal": True})
        serving = asyncio.create_task(self._serve())
        try:
            yield self
        finally:
            serving.cancel()

    async def _serve(self) -> None:
        while True:
            asked = await self.channel.frames.get()
            frame = asked["frame"]
            if "op" not in frame:
                self.cancels += [frame["cancel"]] if "cancel" in frame else []
                continue
            self.asked.append((frame["op"], frame["args"]))
            self.before.pop(frame["op"], lambda: None)()
            if frame["op"] == self.without_end:
                continue
            if (scripted := self.answers.get(frame["op"])) is not None:
                kind = "error" if "class" in scripted else "result"
                answer = {"id": frame["id"], kind: scripted}
            elif asked["worker"] == "files" and frame["op"] != "grep":  # which is done in a fork
                self._files._take(frame)  # pyright: ignore[reportPrivateUsage]
                answer = self._answers.pop()
                if self.kept_by and "undo" in answer.get("result", {}):
                    answer["result"]["undo"] += f"@{self.kept_by}"
            else:
                answer = {"id": frame["id"], "result": self._command(frame["op"], frame["args"])}
            keeper = self.kept_by if frame["op"] == "undo" else ""
            channel = self.core.app.tool_channels.get(keeper) if keeper else self.channel
            channel.receive(asked["worker"], answer)

    def _command(self, op: str, args: dict[str, Any]) -> dict[str, Any]:
        if op == "rehearse":
            name = f"r{len(self.rehearsed)}"
            self.rehearsed[name] = args["command"]
            return {"rehearsal": name, "exit_code": 0, "changes": [], "stdout": args["command"]}
        if op == "check":
            return {"holds": args["rehearsal"] in self.rehearsed}
        if op == "commit":
            return {"exit_code": 0, "stdout": self.rehearsed.pop(args["rehearsal"])}
        return {"text": self.found} if op == "grep" else {"exit_code": 0}

    @property
    def commands(self) -> list[str]:
        """The ops that the commands' worker was asked for."""
        return [op for op, _ in self.asked if op != "resolve"]

    async def call(self, tool: str, **args: Json) -> GateAnswer:
        call = Call(session=self.session, action=f"builtin.{tool.lower()}", args=args)
        return await self.core.app.gate.run(call)

    async def approve(self, answer: GateAnswer) -> ApprovalView:
        view = await self.core.looked(answer.row.approval_id)
        await self.core.approve(view)
        return await self.core.ended(view)


ALLOWED = Policy(rules=(Rule(tools=("Write", "Edit"), decision="allow", paths=("notes/**",)),))


async def test_a_change_is_made_only_where_rules_allowed_it(home: Path, tmp_path: Path) -> None:
    """Another program exchanges the file for a link between the rules' look and the change."""
    (tmp_path / "notes").mkdir()
    (tmp_path / "code.py").write_text("code")
    link = tmp_path / "notes" / "a.md"
    async with Core.open(home, policy=ALLOWED) as core, Tools(core, tmp_path).attached() as tools:
        tools.before["write"] = lambda: link.symlink_to("../code.py")
        done = await tools.call("Write", file_path="notes/a.md", content="x")
        assert (done.row.state, done.row.gated) == ("failed", False)
        link.unlink()
        done = await tools.call("Write", file_path="notes/a.md", content="y")
        assert done.row.state == "completed"
    assert ((tmp_path / "code.py").read_text(), link.read_text()) == ("code", "y")


async def test_only_the_shown_target_of_a_link_is_touched(home: Path, tmp_path: Path) -> None:
    """Neither a yes nor one for the session covers what the link is made to lead to later."""
    project = tmp_path / "project"
    project.mkdir()
    link, read, other = project / "link", tmp_path / "read.txt", tmp_path / "other.txt"
    read.write_text("as approved")
    other.write_text("not shown to anybody")
    link.symlink_to(read)

    def lead_to(target: Path) -> None:
        link.unlink()
        link.symlink_to(target)

    policy = Policy(rules=(Rule(tools=("Read", "Write"), decision="allow"),))
    async with Core.open(home, policy=policy) as core, Tools(core, project).attached() as tools:
        asked = await tools.call("Read", file_path="link")
        view = await core.looked(asked.row.approval_id)
        assert view.rule == f"it leads out of the project: {read}"
        fields = {each.label: each.value for each in view.preview.fields}
        assert fields == {"Path": str(read), "Is": "a file outside the project"}
        assert (await tools.approve(asked)).state == "completed"
        written = await tools.call("Write", file_path="link", content="new")
        assert (await tools.approve(written)).state == "completed"
        assert (read.read_text(), link.is_symlink()) == ("new", True)

        asked = await tools.call("Read", file_path="link", limit=1)
        tools.before["read"] = lambda: lead_to(other)
        assert (await tools.approve(asked)).state == "failed"

        async def again() -> ApprovalView:
            answer = await tools.call("Read", file_path="link", limit=2)
            view = await core.looked(answer.row.approval_id)
            assert view.rule == f"it leads out of the project: {link.readlink()}"
            return view

        await grant(core, await again(), 1)
        assert (await tools.call("Read", file_path="link", limit=2)).row.state == "completed"
        lead_to(read)
        await again()
        lead_to(home)
        for path in ("link/audit.db", "link", "/proc/self/environ", "/"):
            closed = await tools.call("Read", file_path=path)
            assert closed.row.state == "denied", path


async def test_a_grant_that_ended_while_on_hold_runs_nothing(home: Path, tmp_path: Path) -> None:
    """And a denial of a command that stands denies it."""
    async with Core.open(home) as core, Tools(core, tmp_path).attached() as tools:
        asked = await tools.call("Write", file_path="x.txt", content="one")
        await grant(core, await core.looked(asked.row.approval_id), 1)
        (tmp_path / "x.txt").unlink()
        await core.do(SetPause(paused=True))
        again = asyncio.create_task(tools.call("Write", file_path="x.txt", content="one"))
        await core.until(lambda: core.app.pause._may_start._waiters or None)
        await core.do(EndGrant(grant_id="g1"))
        await core.do(SetPause(paused=False))
        with pytest.raises(Conflict, match="grant g1 does not allow this any more"):
            await again
        assert not (tmp_path / "x.txt").exists()
        asked = await tools.call("Bash", command="rm -rf build")
        tests = (("args.command", FieldTest("is", ("rm -rf build",))),)
        stands = GrantTerms(decision="deny", tests=tests, seconds=60, uses=100)
        await core.app.approvals.deny(asked.row.approval_id, "no", grant=stands)
        await core.app.approvals.mark_delivered(asked.row.approval_id)
        denied = await tools.call("Bash", command="rm -rf build")
        assert denied.row.state == "denied"


async def test_a_stream_that_ends_late_takes_none_of_the_next(home: Path, tmp_path: Path) -> None:
    """A launcher may be back before the console has noticed that it was away."""
    (tmp_path / "file").write_text("x")
    async with Core.open(home) as core, Tools(core, tmp_path).attached() as tools:
        before, tools.without_end = tools.channel.frames, "read"
        lost = asyncio.create_task(tools.call("Read", file_path="file"))
        while "read" not in (op for op, _ in tools.asked):
            await asyncio.sleep(0.01)
        async with Tools(core, tmp_path, tools.session).attached() as again:
            assert (await lost).row.state == "failed"
            again.channel.detach(before)
            read = await again.call("Read", file_path="file")
        assert read.row.state == "completed"


async def test_literal_words_run_by_the_program_that_was_found(home: Path, tmp_path: Path) -> None:
    """Not by one that is put before it on PATH meanwhile."""
    async with Core.open(home) as core, Tools(core, tmp_path).attached() as tools:
        tools.channel.features = {"rehearsal": False}
        await tools.approve(await tools.call("Bash", command="ls -l"))
    (asked,) = (args for op, args in tools.asked if op == "run")
    assert asked["argv"] == ["ls", "-l"]
    assert asked["program"].startswith("/")


async def test_after_a_restart_each_call_is_judged_by_itself(home: Path, tmp_path: Path) -> None:
    """Nothing of one is shown with another, or kept by a yes to it; what is denied by now cannot run."""
    policy = Policy(rules=(Rule(tools=("Grep",), decision="ask"),))
    denied = Policy(rules=(*policy.rules, Rule(tools=("Write",), decision="deny")))
    commands = ("echo one", "echo two")
    async with Core.open(home, policy=policy) as core, Tools(core, tmp_path).attached() as tools:
        waiting = [await tools.call("Bash", command=each) for each in commands]
        search = await tools.call("Grep", pattern="x")
        write = await tools.call("Write", file_path="a", content="x")
        for each in (*waiting, search, write):
            await core.looked(each.row.approval_id)
        session = tools.session
    async with (
        Core.open(home, policy=denied) as core,
        Tools(core, tmp_path, session).attached() as tools,
    ):
        for each, command in zip(waiting, commands, strict=True):
            assert (await tools.approve(each)).state == "completed"
            row = core.app.registry.by_approval(each.row.approval_id).row
            assert row.output["output"] == command
        assert (await tools.approve(search)).state == "completed"
        (asked,) = (args for op, args in tools.asked if op == "grep")
        assert ".env" in asked["excluded"]
        with pytest.raises(Conflict, match="no longer accepted"):
            await core.app.approvals.approve(write.row.approval_id, "")
    assert not (tmp_path / "a").exists()


async def test_a_name_that_is_not_utf8_is_written_as_escapes(home: Path, tmp_path: Path) -> None:
    """It can neither break an answer to the agent nor take a person's preview away."""
    odd = tmp_path / os.fsdecode(b"odd\xff")
    odd.write_text("x")
    (tmp_path / "link").symlink_to(odd.name)
    (tmp_path / "out").symlink_to(f"/{odd.name}")
    async with Core.open(home) as core, Tools(core, tmp_path).attached() as tools:
        read = await tools.call("Read", file_path="link", offset=9)
        assert "odd\\udcff has 1 lines" in read.row.failure.message
        outside = await tools.call("Read", file_path="out")
        assert "/odd\\udcff" in (await core.looked(outside.row.approval_id)).rule
        asked = await tools.call("Write", file_path="link", content="y")
        view = await core.looked(asked.row.approval_id)
        assert view.preview.status == "ready"
        assert (await tools.approve(asked)).state == "completed"
        tools.found = "odd\udcff"
        found = await tools.call("Grep", pattern="y")
        assert found.row.output["output"] == "odd\\udcff"
    assert odd.read_text() == "y"


MAKE = Rule(tools=("Bash",), decision="allow", argv=("make", "*"), source="policy.toml:1")
SIMPLE = {"simple": True, "argv": ["make", "x"], "program": "/usr/bin/make", "program_writable": False}  # fmt: skip
ENDED = {"exit_code": 0, "stdout": "made\n", "stderr": ""}
BUILT = {**ENDED, "rehearsal": "r1", "changes": [{"path": "build/x", "kind": "made"}], "own_changes": 0}  # fmt: skip


@asynccontextmanager
async def rehearsing(
    home: Path, *rules: Rule, rehearse: Rehearse = "ask", rehearsed: Mapping[str, Any] = BUILT
) -> AsyncGenerator[Tools]:
    """Yield workers whose answers about every command are scripted."""
    settings = Settings(rehearse=rehearse)
    async with Core.open(home, settings=settings, policy=Policy(rules=rules)) as core:
        core.app.accepted_policy.count = True
        async with Tools(core, home).attached() as tools:
            tools.answers = {
                "resolve": {"words": [], **SIMPLE}, "rehearse": rehearsed, "check": {"holds": True},
                "commit": ENDED, "discard": {}, "run": ENDED,
            }  # fmt: skip
            yield tools


async def bash(tools: Tools) -> RunRecord:
    return (await tools.call("Bash", command="make x")).row


async def shown_preview(tools: Tools, row: RunRecord) -> dict[str, str]:
    view = await tools.core.looked(row.approval_id)
    return {field.label: field.value for field in view.preview.fields}


@pytest.mark.parametrize(
    ("rehearse", "says"),
    [("ask", "exit code 0"), ("always", "exit code 0"), ("never", "Not rehearsed. config.toml says never.")],
)  # fmt: skip
async def test_config_says_what_is_rehearsed(home: Path, rehearse: Rehearse, says: str) -> None:
    async with rehearsing(home, rehearse=rehearse) as tools:
        fields = await shown_preview(tools, await bash(tools))
        assert fields["Rehearsal"].startswith(says)
        assert tools.commands == ([] if rehearse == "never" else ["rehearse"])


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
    async with rehearsing(home, MAKE, rehearse=rehearse, rehearsed=rehearsed) as tools:
        row = await bash(tools)
        assert (row.state, row.output["output"] if row.output else "") == ("completed", "made")
        assert tools.commands == asked


BUILD = Rule(tools=("Bash",), decision="allow", changes=("build/**",), source="policy.toml:1")
ELSEWHERE = {**BUILT, "changes": [*BUILT["changes"], {"path": "src/x", "kind": "changed"}]}


async def test_a_rule_has_a_rehearsal_committed_without_a_person(home: Path) -> None:
    async with rehearsing(home, BUILD) as tools:
        row = await bash(tools)
        assert (row.state, row.gated) == ("completed", False)
        assert tools.commands == ["rehearse", "commit"]
        (record,) = await tools.core.records("run.started")
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
async def test_what_it_does_not_cover_asks(home: Path, rehearsed: dict[str, Any], why: str) -> None:
    async with rehearsing(home, BUILD, rehearsed=rehearsed) as tools:
        row = await bash(tools)
        assert (await tools.core.looked(row.approval_id)).rule == why
        assert (await bash(tools)).run_id == row.run_id
        assert tools.commands == ["rehearse"]  # neither for the preview nor for the repeated call


@pytest.mark.parametrize("class_", ["conflict", "not_found", "not kept"])
async def test_a_conflict_runs_nothing_and_says_to_call_again(home: Path, class_: str) -> None:
    """Nor does a rule by what is changed ever run the command where its rehearsal was not kept."""
    kept = {k: v for k, v in BUILT.items() if k != "rehearsal" or class_ != "not kept"}
    async with rehearsing(home, BUILD, rehearsed=kept) as tools:
        tools.answers["commit"] = {"class": class_, "message": "x differs. Nothing ran."}
        row = await bash(tools)
        assert (row.state, row.failure.class_) == ("failed", "conflict")
        assert row.failure.message.endswith("Nothing ran. Call it again.")
        assert tools.commands == ["rehearse", "commit"][: 1 if class_ == "not kept" else 2]


async def test_what_is_denied_is_not_rehearsed(home: Path) -> None:
    denied = Rule(tools=("Bash",), decision="deny", argv=("make", "*"))
    async with rehearsing(home, BUILD, denied) as tools:
        assert (await bash(tools)).state == "denied"
        assert tools.commands == []


async def test_a_call_that_ends_has_its_rehearsal_ended_or_dropped(home: Path) -> None:
    """It went on to its end, for nobody, and was kept, with its memory, until others took its place."""
    async with rehearsing(home) as tools:
        core = tools.core
        row = await bash(tools)
        await shown_preview(tools, row)
        await core.app.approvals.withdraw(tools.session.session_id, row.approval_id, "")
        await core.until(lambda: tools.commands == ["rehearse", "discard"])
        tools.without_end = "rehearse"
        row = await bash(tools)
        await core.until(lambda: tools.commands[2:] == ["rehearse"])
        await core.app.approvals.withdraw(tools.session.session_id, row.approval_id, "")
        await core.until(lambda: len(tools.cancels) == 1)
