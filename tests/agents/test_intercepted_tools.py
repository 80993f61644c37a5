"""What each real agent offers its model, its own tools and Aileron's in place of them; a whole task with these; and calls
through the gate to the session's workers, and back.

With Codex, contained and not; with all six in `make test-all`."""

import contextlib
import itertools
import json
import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.agents.agents_bench import PROMPTS, Bench, CallTool, Say, ScriptedLlm, workbench
from tests.agents.at_terminal import Terminal
from tests.agents.llm import Conversation, Script, in_turn, offered_tools
from tests.agents.test_contained_git import person_git, session_folders
from tests.support.making import own_tools
from tests.support.processes import eventually, running_with
from tests.support.variants import variants

pytestmark = pytest.mark.timeout(300)

ACTIONS = (
    *("Read", "Write", "Edit", "Bash", "Glob", "Grep"),
    *("check_action_status", "get_draft", "list_drafts", "send_draft", "withdraw_action"),
)
PATCH = "*** Begin Patch\n*** Add File: made.txt\n+hello\n*** End Patch"
CLAUDES_OWN = """\
---
name: mine
description: Runs commands.
tools: Bash, Read, mcp__aileron__list_drafts
permissionMode: bypassPermissions
---
Run commands.
"""
OPENCODES_ALLOWED = dict.fromkeys(("bash", "read", "edit"), "allow")
OPENCODES_OWN = {
    "permission": {"bash": {"*": "allow"}, "*": "allow"},
    "agent": {"mine": {"description": "x", "mode": "all", "permission": OPENCODES_ALLOWED}},
}
GEMINIS_OWN = """\
[[rule]]
toolName = "run_shell_command"
decision = "allow"
priority = 999
[[rule]]
toolName = "google_web_search"
decision = "deny"
priority = 500
"""
"""What it denies stays denied: Aileron's policies stand beside the person's."""
SUBAGENT = {"description": "x", "prompt": "go", "subagent_type": "mine"}
PIS_OWN = """\
export default (pi) =>
  pi.on("session_start", () => pi.setActiveTools([...pi.getActiveTools(), "bash", "read"]));
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnToolsCase:
    """One agent, with settings and arguments that would bring its own tools back."""

    prefix: str
    """What stands before the name of an action."""
    own: str
    """Its tools that act on files or run commands, as its model is offered them usually."""
    stays: str
    """What it keeps, all of it, where no settings of the person's deny it."""
    denied: str = ""
    args: tuple[str, ...]
    granting: tuple[str, ...] = ()
    """Further arguments of the launch that switches them off."""
    home: Mapping[str, str] = field(default_factory=dict[str, str])
    project: Mapping[str, str] = field(default_factory=dict[str, str])
    calls: CallTool | None = None
    """What its model calls first: a sub-agent, whose tools count too, or what must be refused."""
    told: str = ""
    """Part of what that call returns."""


CASES: Mapping[str, OwnToolsCase] = {
    "codex": OwnToolsCase(
        prefix="mcp__aileron.",
        own="exec_command write_stdin view_image",
        stays=(
            "apply_patch create_goal get_goal list_mcp_resource_templates list_mcp_resources "
            "read_mcp_resource request_user_input update_goal"
        ),
        args=("exec", "--skip-git-repo-check", "-m", "gpt-5.5", "go"),
        home={
            ".codex/config.toml": (
                'sandbox_mode = "danger-full-access"\n[features]\nshell_tool = true\nunified_exec = true\n'
            )
        },
        calls=CallTool(name="apply_patch", args={"input": PATCH}),
        told="blocked by read-only sandbox",
    ),
    "opencode": OwnToolsCase(
        prefix="aileron_",
        own="bash edit glob grep read write",
        stays="skill task todowrite webfetch",
        args=("run", "--agent", "mine", "go"),
        project={"opencode.json": json.dumps(OPENCODES_OWN)},
        calls=CallTool(name="task", args=SUBAGENT),
        told="FINAL",
    ),
    "claude": OwnToolsCase(
        prefix="mcp__aileron__",
        own="Bash Edit EnterWorktree ExitWorktree Monitor NotebookEdit Read Workflow Write",
        stays=(
            "Agent ListAgents ReportFindings SendMessage Skill TaskCreate TaskGet TaskList TaskStop "
            "TaskUpdate WebFetch WebSearch"
        ),
        args=("-p", "go"),
        granting=("--tools", "default,Bash,Read"),
        home={".claude/settings.json": '{"permissions": {"allow": ["Bash", "Read", "Agent"]}}'},
        project={".claude/agents/mine.md": CLAUDES_OWN},
        calls=CallTool(name="Agent", args={**SUBAGENT, "run_in_background": False}),
        told="FINAL",
    ),
    "goose": OwnToolsCase(
        prefix="aileron-mcp__",
        own=(
            "analyze apps__create_app apps__delete_app apps__iterate_app apps__list_apps delegate edit "
            "extensionmanager__list_resources extensionmanager__manage_extensions "
            "extensionmanager__read_resource extensionmanager__search_available_extensions load "
            "shell tree write"
        ),
        stays="load_skill todo__todo_write",
        args=("run", "--quiet", "--no-session", "-t", "go"),
        home={
            ".config/goose/config.yaml": (
                "GOOSE_PROVIDER: openai\nGOOSE_MODEL: gpt-4o\nGOOSE_DISABLE_SESSION_NAMING: true\n"
                "extensions:\n"
                "  developer: {enabled: true, type: builtin, name: developer}\n"
                "  todo: {enabled: true, type: platform, name: todo, description: x}\n"
                "  skills: {enabled: true, type: platform, name: skills, description: x}\n"
            )
        },
    ),
    "pi": OwnToolsCase(
        prefix="mcp__aileron__",
        own="bash edit read write",
        stays="",
        args=("-p", "--provider", "anthropic", "--model", "claude-sonnet-4-5", "go"),
        home={".pi/agent/extensions/mine.js": PIS_OWN},
    ),
    "gemini": OwnToolsCase(
        prefix="mcp_aileron_",
        own="glob grep_search list_directory read_file replace run_shell_command write_file",
        stays="activate_skill enter_plan_mode google_web_search invoke_agent update_topic web_fetch write_todos",
        args=("--skip-trust", "-y", "-m", "gemini-2.5-flash", "-p", "go"),
        granting=("--allowed-tools", "run_shell_command"),
        denied="google_web_search",
        home={".gemini/policies/mine.toml": GEMINIS_OWN},
        project={".gemini/settings.json": '{"tools": {"allowed": ["run_shell_command", "glob"]}}'},
        calls=CallTool(name="invoke_agent", args={"agent_name": "generalist", "prompt": "go"}),
        told="finished",
    ),
}


def calls_once(call: CallTool | None) -> Script:
    def script(conversation: Conversation) -> Say | CallTool:
        offers = call is not None and conversation.tool(call.name) is not None
        return call if call and offers and not conversation.results else Say(text="FINAL")

    return script


def tools_in(
    bench: Bench, agent: str, args: Sequence[str], options: Sequence[str] = ()
) -> list[frozenset[str]]:
    """Launch *agent* until it ends; return the tools of each request that had any."""
    bench.llm.seen.clear()
    ended = bench.run(agent, *args, options=options)
    assert "FINAL" in ended.output
    return [tools for tools in map(offered_tools, bench.llm.seen) if tools]


def prepare(bench: Bench, agent: str) -> None:
    bench.configure(agent)
    for name, text in CASES[agent].home.items():
        bench.write(name, text)
    for name, text in CASES[agent].project.items():
        (bench.project / name).parent.mkdir(parents=True, exist_ok=True)
        (bench.project / name).write_text(text)


@pytest.mark.parametrize("agent", variants(CASES))
def test_an_agents_own_tools_give_way_to_ailerons(agent: str, tmp_path: Path) -> None:
    """For sub-agents too, whatever settings of the person's and the project's, or arguments, grant."""
    case = CASES[agent]
    with workbench(tmp_path, ScriptedLlm(calls_once(case.calls))) as bench:
        prepare(bench, agent)
        bench.llm.script = calls_once(None)
        usual, *_ = tools_in(bench, agent, case.args, ["--no-sandbox"])
        own, stays = {*case.own.split()}, {*case.stays.split()} - {*case.denied.split()}
        assert own <= usual
        assert agent == "gemini" or own <= own_tools(agent)
        bench.llm.script = calls_once(case.calls)
        options = ["--intercept-builtins"]
        first, *others = tools_in(bench, agent, (*case.args, *case.granting), options)
        assert first == stays | {f"{case.prefix}{name}" for name in ACTIONS}
        for tools in others:
            assert not tools & own, json.dumps(sorted(tools))
        if case.calls is not None:
            assert others
            assert any(case.told in result for result in bench.llm.results), bench.llm.results
        assert not (bench.project / "made.txt").exists()


@pytest.mark.parametrize("agent", variants(CASES))
def test_a_projects_file_gives_an_agent_ops_as_tools(agent: str, tmp_path: Path) -> None:
    """In place of its own tools too, once a person accepted the file."""
    prefix = CASES[agent].prefix
    plugin = "mail_drafts" if agent == "codex" else "mail-drafts"  # whose names have no hyphens
    script = calls_once(CallTool(name=f"{prefix}{plugin}_list_drafts", args={}))
    with workbench(tmp_path, ScriptedLlm(script)) as bench:
        prepare(bench, agent)
        (bench.project / "aileron.toml").write_text(
            "[mcp_proxy]\nenable = true\nintercept_builtins = true\n"
            'plugin_tools = [{ plugin = "mail-drafts", expose = ["list_drafts", "get_draft"] }]\n'
        )
        first, *_ = tools_in(bench, agent, CASES[agent].args, ["--accept-project"])
        ops = (f"{plugin}_list_drafts", f"{plugin}_get_draft")
        stays = {*CASES[agent].stays.split()} - {*CASES[agent].denied.split()}
        assert first == stays | {f"{prefix}{name}" for name in (*ACTIONS, *ops)}
        (told,) = bench.llm.results
        assert "draft" in told


CONTAINED, UNCONTAINED = ("--intercept-builtins",), ("--intercept-builtins", "--no-sandbox")
BEFORE = 'def greet(name):\n    return "Hello"\n'
AFTER = 'def greet(name):\n    return "Hello, " + name\n'
TEST = """\
import unittest

import greeting


class Greeting(unittest.TestCase):
    def test_it_names_whom_it_greets(self):
        self.assertEqual(greeting.greet("Ada"), "Hello, Ada")
"""
TASK = (
    ("Read", {"file_path": "greeting.py"}),
    ("Edit", {"file_path": "greeting.py", "old_string": '"Hello"', "new_string": '"Hello, " + name'}),
    ("Bash", {"command": "python3 -B -m unittest -q"}),
    ("Bash", {"command": "git add -A && git commit -qm 'Greet by name'"}),
)  # fmt: skip
ASKED = ("builtin.edit", "builtin.bash", "builtin.bash")
TOLD = (
    '     1\tdef greet(name):\n     2\t    return "Hello"',
    "Wrote greeting.py (45 bytes).",
    "\nRan 1 test in ",
    "The command printed nothing. Exit code 0.",
)
MAY_CHANGE = ("index", "refs/heads/main", "logs/HEAD", "logs/refs/heads/main", "COMMIT_EDITMSG")
"""In a git folder, by a commit."""


def at_work_in(folder: Path) -> list[str]:
    """Return the command lines of the processes that name *folder*, or work in it."""
    found: list[str] = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # one that has just ended
            data = (process / "cmdline").read_bytes()
            line = data.replace(b"\0", b" ").decode("utf-8", "replace")
            if str(folder) in line or str(folder) in str((process / "cwd").readlink()):
                found.append(line)
    return found


@pytest.mark.parametrize("options", variants([CONTAINED, UNCONTAINED]), ids=" ".join)
@pytest.mark.parametrize("agent", variants(CASES))
def test_a_whole_task_is_done_with_our_tools(
    agent: str, options: tuple[str, ...], bench: Bench
) -> None:
    """Each call on record, each result told; nothing but the task done, and no process left."""
    case = CASES[agent]
    bench.configure(agent)
    bench.write(".gitconfig", "[user]\n\tname = Ada\n\temail = ada@example.com\n")
    (bench.project / "greeting.py").write_text(BEFORE)
    (bench.project / "test_greeting.py").write_text(TEST)
    for words in ("init -q -b main", "add .", "commit -qm Greet"):
        person_git(bench, *words.split())
    steps = [CallTool(name=f"{case.prefix}{name}", args=args) for name, args in TASK]
    bench.llm.script = in_turn(*steps)
    before = bench.fingerprint()
    # To a model that it does not know, Codex offers sub-agents at once.
    args = case.args if agent == "codex" else PROMPTS[agent]
    with bench.launched(agent, *args, options=options) as running:
        answered: set[str] = set()

        def asked() -> list[str]:
            views = bench.console.views.items()
            return [name for name, view in views if name not in answered and view["digest"]]

        for action in ASKED:  # no other may be asked
            assert bench.console.until(lambda: bool(asked()))
            (approval,) = asked()
            assert bench.console.views[approval]["action"] == action
            bench.console.approve(approval)
            answered.add(approval)
        assert at_work_in(bench.project)
        ended = running.end()
    assert at_work_in(bench.project) == []
    assert "FINAL" in ended.output
    assert (bench.project / "greeting.py").read_text() == AFTER
    log = person_git(bench, "log", "--format=%an <%ae> %s")
    assert log == "Ada <ada@example.com> Greet by name\nPerson <p@q> Greet"
    assert person_git(bench, "show", "HEAD:greeting.py") == AFTER.strip()
    assert person_git(bench, "diff", "--name-only", "HEAD~") == "greeting.py"
    assert person_git(bench, "status", "--porcelain", "--ignored") == ""
    after = bench.fingerprint()
    changed = {name for name in before if after.get(name) != before[name]}
    assert changed <= {"project/greeting.py", *(f"project/.git/{name}" for name in MAY_CHANGE)}
    made = {name for name in after.keys() - before.keys() if not name.startswith("project/.git/")}
    # Uncontained agents keep notes at home.
    assert not [name for name in made if options == CONTAINED or name.startswith("project/")]
    assert [*bench.left_behind(), *session_folders(bench)] == []

    for result, told in zip(bench.llm.results, TOLD, strict=True):
        assert told in result
    assert "OK" in bench.llm.results[2]
    ours = {f"{case.prefix}{name}" for name in ACTIONS}
    for tools in filter(None, map(offered_tools, bench.llm.seen)):
        assert ours <= tools <= ours | {*case.stays.split()}
    runs = bench.console.rows("action, state, gated")
    assert runs == [("builtin.read", "completed", 0)] + [(name, "completed", 1) for name in ASKED]


AGENT = Path(__file__).parent / "mcp_agent.py"


def launched_calling(
    bench: Bench, *made: tuple[str, dict[str, Any]], options: tuple[str, ...] = ()
) -> Any:
    env = bench.stand_in(f"#!/usr/bin/env python3\n{AGENT.read_text()}")
    return bench.launched("codex", json.dumps(made), options=options, env=env)


def answers(output: str) -> list[dict[str, Any]]:
    lines = [line for line in output.splitlines() if line.startswith("ANSWER ")]
    assert lines, output
    return [json.loads(line.removeprefix("ANSWER ")) for line in lines]


def approve_next(bench: Bench, tool: str, before: Callable[[], bool] = lambda: True) -> None:
    """Approve the next call of *tool* that waits for a person, once its preview is there and *before* holds."""
    name = f"builtin.{tool.lower()}"

    def waiting() -> list[dict[str, Any]]:
        views = bench.console.views.values()
        open_ = [each for each in views if each["action"] == name and each["state"] == "pending"]
        return [each for each in open_ if each["digest"] and each["preview"] != "fetching"]

    assert bench.console.until(lambda: bool(waiting()))
    (view,) = waiting()
    assert before()
    bench.console.approve(view["approval_id"])


def test_a_read_runs_unasked_a_write_is_asked_and_a_secret_denied(bench: Bench) -> None:
    bench.write(".codex/auth.json", '{"token": "x"}')
    (bench.project / "a.txt").write_text("one\ntwo\n")
    (bench.project / ".env").write_text("KEY=secret")
    made = (
        ("Read", {"file_path": "a.txt"}),
        ("Read", {"file_path": ".env"}),
        ("Grep", {"pattern": "secret|two", "output_mode": "content"}),
        ("Write", {"file_path": "a.txt", "content": "one\nthree\n"}),
        ("Bash", {"command": "cat a.txt; date +%s%N | tee made; ls -A $HOME"}),
    )
    with launched_calling(bench, *made, options=("--builtins",)) as agent:
        approve_next(bench, "Write")
        approve_next(bench, "Bash", lambda: not (bench.project / "made").exists())
        approved = time.time_ns()
        ended = agent.end()
    listed, read, secret, found, _wrote, ran = answers(ended.output)
    assert {"Read", "Write", "Edit", "Bash", "Glob", "Grep"} <= {*listed["tools"]}
    assert "two" in read["text"]
    assert secret["failed"]
    assert "KEY=secret" not in ended.output
    assert "two" in found["text"]
    assert (bench.project / "a.txt").read_text() == "one\nthree\n"
    assert "three" in ran["text"]
    # It ran once, in its rehearsal, before the yes; what was kept is what that printed.
    assert (bench.project / "made").read_text().strip() in ran["text"]
    assert int((bench.project / "made").read_text()) < approved
    assert "auth.json" not in ran["text"]
    assert ".codex" not in ran["text"]


STAYS = (
    # A command that wants the network is not rehearsed: what runs is what was approved.
    """python3 -c 'import socket; socket.create_connection(("127.0.0.1", 9))'; """
    "sleep {0} & (trap '' HUP INT TERM; sleep {0}) & setsid sleep {0} & touch running; wait"
)


def end_by(ends: str, bench: Bench, terminal: Terminal) -> None:
    if "Ctrl-C" in ends:
        terminal.type("\x03")
    if "launcher" in ends:
        terminal.process.kill()
    if "console" in ends:
        bench.console.process.kill()


_ENDS = ("Ctrl-C", "launcher", "console")


@pytest.mark.parametrize(
    ("options", "ends"), variants(itertools.product(((), ("--no-sandbox",)), _ENDS), 4)
)
def test_nothing_of_a_command_outlives(bench: Bench, ends: str, options: tuple[str, ...]) -> None:
    """What is in the background, deaf to signals or in a session of its own, too."""
    seconds = f"600.{os.getpid()}"  # no other test's
    made = json.dumps([("Bash", {"command": STAYS.format(seconds)})])
    stays = "import atexit, time\natexit.register(time.sleep, 600)" if ends == "console" else ""
    begin = f"#!/usr/bin/env python3\nimport sys\nsys.argv.append({made!r})\n{stays}\n"
    terminal = Terminal(bench, begin + AGENT.read_text(), "--builtins", *options)
    with contextlib.closing(terminal):
        approve_next(bench, "Bash")
        eventually((bench.project / "running").exists)
        eventually(lambda: len(running_with(f"sleep\0{seconds}")) == 3)
        end_by(ends, bench, terminal)
        eventually(lambda: not running_with(f"sleep\0{seconds}"))


@pytest.mark.parametrize("ends", ["launcher", "console", "launcher and console"])
def test_a_commit_that_was_under_way_is_made_or_taken_back(bench: Bench, ends: str) -> None:
    """By what goes on, or by the next console; nothing of it is left beside the files."""
    files = [bench.project / f"{each}" for each in range(150)]
    for each in files:
        each.write_text("old\n")
    made = json.dumps([("Bash", {"command": "for i in $(seq 0 149); do echo new > $i; done"})])
    begin = f"#!/usr/bin/env python3\nimport sys\nsys.argv.append({made!r})\n"
    terminal = Terminal(bench, begin + AGENT.read_text(), "--builtins")
    inode = files[75].stat().st_ino
    with contextlib.closing(terminal):
        approve_next(bench, "Bash")
        eventually(lambda: files[75].stat().st_ino != inode)
        end_by(ends, bench, terminal)
        if "console" in ends:
            bench.console.end(signal.SIGKILL)
            bench.console.start()
        eventually(lambda: not running_with(str(bench.project)))
        eventually(lambda: not [*bench.console.home.glob("commits/*")])
        assert {each.read_text() for each in files} in ({"old\n"}, {"new\n"})
        assert not [*bench.project.glob(".aileron-*")]
