"""Your own hooks and other programs of the agent's settings, as a contained agent has them."""

import json
import os
from pathlib import Path

import pytest

from tests.agents.agents_bench import Bench, ScriptedLlm, workbench
from tests.agents.llm import CallTool, in_turn
from tests.support.making import program

AGENT = """\
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
    ended = bench.launch(AGENT, options=options, PATH=path)
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
