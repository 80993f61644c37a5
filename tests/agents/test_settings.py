"""Your settings, the project's and the programs that they name, as the agent gets them; who is asked, and when again."""

import contextlib
import json
import os
from pathlib import Path

import pytest

from tests.agents.agents_bench import Bench, ScriptedLlm, workbench
from tests.agents.at_terminal import Terminal
from tests.agents.llm import CallTool, in_turn
from tests.support.making import program
from tests.support.variants import variants

AGENT = """\
#!/usr/bin/env python3
import os, sys
print("args", " ".join(sys.argv[1:]).split("features.apps=false")[1].split())
print("colour", os.environ.get("NO_COLOR"), "mine", os.environ.get("MINE"))
"""
ASKS = '[launch.codex]\nargs = ["--model=theirs"]\nenv = { NO_COLOR = "1" }\n'


def launch_typed(bench: Bench, *options: str) -> tuple[int, str]:
    ended = bench.launch(AGENT, "typed", options=options)
    return ended.code, ended.output


def accepted(bench: Bench) -> list[dict[str, str]]:
    return bench.console.get("/v1/projects", local=True).json["items"]


def test_without_a_terminal_nothing_starts_until_somebody_said_yes(bench: Bench) -> None:
    """After a yes, these bytes ask no more; others do. No yes makes a project's file more than it may be."""
    file = bench.project / "aileron.toml"
    file.write_text(ASKS)
    code, output = launch_typed(bench)
    assert code == 77, output
    assert "argument  --model=theirs; variable  NO_COLOR=1" in output
    assert "--accept-project" in output
    assert accepted(bench) == []
    assert launch_typed(bench, "--accept-project")[0] == 0
    assert [each["path"] for each in accepted(bench)] == [str(bench.project)]
    assert launch_typed(bench)[0] == 0
    file.write_text(ASKS + "# changed\n")
    assert launch_typed(bench)[0] == 77
    opened = bench.events().count("session.opened")
    file.write_text('[launch.codex]\nenv = { LD_PRELOAD = "x" }\n')
    code, output = launch_typed(bench, "--accept-project")
    assert code == 1
    assert "aileron.toml: launch.codex.env.LD_PRELOAD" in output
    assert "args" not in output.replace(".args", "")
    assert bench.events().count("session.opened") == opened


@pytest.mark.real
@pytest.mark.parametrize(("answer", "code"), variants([("y", 0), ("", 77), ("n", 77)], 2))
def test_a_person_is_asked_and_only_yes_is_yes(bench: Bench, answer: str, code: int) -> None:
    """Shown first, on their terminal; Enter alone is a no, and so is what was typed beforehand."""
    (bench.project / "aileron.toml").write_text(ASKS)
    terminal = Terminal(bench, AGENT)
    terminal.type("y\r")  # before the question: no answer to it
    with contextlib.closing(terminal):
        terminal.until("argument  --model=theirs")
        terminal.until(r"as they are now\? \[y/N\]")
        terminal.type(f"{answer}\r")
        assert terminal.end() == code, terminal.text
        assert ("colour 1" in terminal.text) == (code == 0)
        assert len(accepted(bench)) == (code == 0)


RUNS_HOOKS = """\
#!/usr/bin/env python3
import pathlib, shutil, subprocess, tomllib
own = pathlib.Path.home()
print("home has", sorted(str(each.relative_to(own)) for each in own.glob("[!.]*/*")))
for group in tomllib.loads((own / ".codex/config.toml").read_text())["hooks"]["PreToolUse"]:
    for hook in group["hooks"]:
        ran = subprocess.run(hook["command"], shell=True, capture_output=True, text=True)
        print("hook", ran.returncode, ran.stdout + ran.stderr)
try:
    (own / "tools" / "check").write_text("#!/bin/sh\\n")
except OSError as error:
    print("not written:", error.strerror)
"""
CHECK = "#!/bin/sh\necho refused by a check of yours\nexit 2\n"


def names_hook(bench: Bench, *commands: str) -> None:
    head = "[[hooks.PreToolUse.hooks]]\ntype = 'command'\ncommand = "
    hooks = "".join(f"{head}{json.dumps(each)}\n" for each in commands)
    bench.write(".codex/config.toml", f"[[hooks.PreToolUse]]\n{hooks}")


def launch_with_checks(bench: Bench, *options: str) -> tuple[int, str]:
    path = f"{bench.home / 'bin'}{os.pathsep}{bench.stand_in(AGENT)['PATH']}"
    ended = bench.launch(RUNS_HOOKS, options=options, PATH=path)
    return ended.code, ended.output


def test_a_check_of_yours_runs_in_the_sandbox(bench: Bench) -> None:
    """By its path, read-only, and by its name on PATH; nothing beside it, and nothing that the project names."""
    for name in ("tools/check", "tools/other", "bin/named"):
        program(bench.home / name, CHECK)
    names_hook(bench, "~/tools/check", "named")
    hook = f"[[hooks.PreToolUse.hooks]]\ntype = 'command'\ncommand = '{bench.home}/tools/other'\n"
    (bench.project / ".codex").mkdir()
    (bench.project / ".codex" / "config.toml").write_text(f"[[hooks.PreToolUse]]\n{hook}")
    code, output = launch_with_checks(bench, "--accept-project")
    assert code == 0, output
    assert output.count("hook 2 refused by a check of yours") == 2
    assert "home has ['bin/named', 'go/pkg', 'tools/check']" in output
    assert "not written: " in output
    assert f"{bench.home}/tools/other (.codex/config.toml: hooks.PreToolUse). " in output
    assert "Not in the sandbox: ~" not in output
    assert (bench.home / "tools" / "check").read_text() == CHECK
    code, output = launch_with_checks(bench, "--write", str(bench.home / "tools"))
    assert (code, "runs outside too. Nothing was started" in output) == (77, True)


def test_a_missing_check_stops_the_launch_until_somebody_said_yes(bench: Bench) -> None:
    """Once; said again at each launch, asked again when the check changes, and recorded."""
    program(bench.home / "bin/check", CHECK)
    names_hook(bench, "~/bin/check | tee log")
    code, output = launch_with_checks(bench)
    assert code == 77, output
    named = "~/.codex/config.toml, hooks.PreToolUse (~/bin/check | tee log)"
    assert f"May not work in the sandbox: {named}" in output
    assert "this check does not run" in output
    assert "--accept-missing-checks" in output
    assert "home has" not in output
    assert launch_with_checks(bench, "--accept-missing-checks")[0] == 0
    code, output = launch_with_checks(bench)
    assert (code, "this check does not run" in output) == (0, True)
    names_hook(bench, "~/bin/check | tee log2")
    assert launch_with_checks(bench)[0] == 77
    records = [each for each in bench.console.records() if each["event"] == "library.accepted"]
    summaries = [each["summary"] for each in records if "checks" in each["summary"]]
    assert summaries == ["Accepted that checks of codex do not run in the sandbox"]


@pytest.mark.real
@pytest.mark.skipif(not os.environ.get("AILERON_TEST_ALL"), reason="only with AILERON_TEST_ALL")
@pytest.mark.timeout(300)
def test_claude_code_asks_a_check_in_the_home_and_starts_without_none(tmp_path: Path) -> None:
    """The real agent: its PreToolUse hook in ~/bin refuses inside; one that cannot be there stops it."""
    make = CallTool(name="Bash", args={"command": "touch made", "description": "make a file"})
    with workbench(tmp_path, ScriptedLlm(in_turn(make))) as bench:
        program(bench.home / "bin/check", "#!/bin/sh\necho no files today >&2\nexit 2\n")
        hooks = [{"matcher": "Bash", "hooks": [{"type": "command", "command": "~/bin/check"}]}]
        settings = {"hooks": {"PreToolUse": hooks}, "permissions": {"allow": ["Bash"]}}
        bench.write(".claude/settings.json", json.dumps(settings))
        ended = bench.run("claude", "-p", "make a file")
        assert "no files today" in bench.llm.results[-1]
        assert not (bench.project / "made").exists()
        hooks[0]["hooks"] = [{"type": "command", "command": "exec ~/bin/check; true"}]
        bench.write(".claude/settings.json", json.dumps(settings))
        asked = len(bench.llm.seen)
        ended = bench.run("claude", "-p", "make a file", code=77)
        assert "~/.claude/settings.json, hooks.PreToolUse" in ended.output
        assert len(bench.llm.seen) == asked
        ended = bench.run("claude", "-p", "make a file", options=["--accept-missing-checks"])
