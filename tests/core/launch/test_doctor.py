"""What the doctor finds on this machine, in folders and processes of the test's own."""

import contextlib
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from aileron_core.home.layout import Home
from aileron_core.launch.agents import AGENTS
from aileron_core.launch.doctor.agents import AgentReport, inspect_agent, running_agents
from aileron_core.launch.doctor.machine import check_code, check_git, check_home, check_terminal
from tests.support.making import program
from tests.support.ordinary import ordinary_folder
from tests.support.processes import alive, eventually
from tests.support.variants import needs_bubblewrap

CODEX = AGENTS["codex"]


def codex_in(folder: Path, script: str) -> dict[str, str]:
    """Put a `codex` there; return an environment that finds it."""
    program(folder / "codex", f"#!/bin/sh\n{script}\n")
    return {"PATH": f"{folder}{os.pathsep}/usr/bin{os.pathsep}/bin"}


def version(folder: Path, project: Path, script: str) -> AgentReport:
    return inspect_agent(CODEX, codex_in(folder, script), project)


def test_the_version_is_what_the_program_says(tmp_path: Path, project: Path) -> None:
    for said, found, tried in (
        ("echo codex-cli 0.169.0", "0.169.0", True),
        ("echo 1.2.3-beta.4", "1.2.3-beta.4", False),
        ("exit 1", None, False),
    ):
        report = version(tmp_path / "bin", project, said)
        assert (report.version, report.is_tested_version) == (found, tried)
        assert ("exit code 1" in report.problem) is (found is None)


def test_a_program_that_hangs_is_given_up(
    tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At most ten seconds; here less, so that the test is short. What it started ends with it."""
    monkeypatch.setattr("aileron_core.launch.doctor.agents._SECONDS", 0.5)
    mark = tmp_path / "pid"
    for _ in range(20):  # a shell may not come so far within half a second
        report = version(tmp_path / "bin", project, f"sleep 600 & echo $! > {mark}; wait")
        assert "within 0.5 s" in report.problem
        if mark.exists() and mark.read_text():
            break
    pid = int(mark.read_text())
    eventually(lambda: pid not in alive())


def test_the_program_is_not_the_projects_and_starts_in_a_home_of_its_own(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No file of the person's changes, and no key of theirs is seen."""
    mark = project / "ran"
    report = version(project / "bin", project, f"touch {mark}; echo 0.169.0")
    assert report.program is None
    assert "is inside this project" in report.problem
    assert not mark.exists()
    monkeypatch.setenv("OPENAI_API_KEY", "a key")
    monkeypatch.setenv("HOME", str(tmp_path))
    env = codex_in(tmp_path / "bin", 'echo 1.0.0; env > "$0.env"; touch "$HOME/settings"')
    inspect_agent(CODEX, {**env, "HOME": str(tmp_path), "OPENAI_API_KEY": "a key"}, project)
    said = (tmp_path / "bin" / "codex.env").read_text()
    assert "a key" not in said
    assert f"HOME={tmp_path}\n" not in said
    assert not (tmp_path / "settings").exists()


def test_a_person_may_open_the_home_alone() -> None:
    with ordinary_folder() as folder:
        home = Home(folder / "home")
        mine = os.getuid()
        assert [each.level for each in check_home(home, uid=mine)] == ["note"]
        home.prepare()
        assert [each.level for each in check_home(home, uid=mine)] == ["ok"]
        assert [each.level for each in check_home(home, uid=mine + 1)] == ["broken"]
        (home.path / "config.toml").write_text("[nonsense]\n")
        assert [each.topic for each in check_home(home, uid=mine)] == ["home", "settings"]
        (home.path / "config.toml").unlink()
        home.path.chmod(0o755)
        (found,) = check_home(home, uid=mine)
        assert (found.level, f"chmod go= {home.path}" in found.text) == ("broken", True)


def test_code_that_you_own_is_code_that_your_programs_change(tmp_path: Path) -> None:
    """Protected only where neither a file nor a folder above it is yours to write."""
    (tmp_path / "module.py").write_text("")
    mine = check_code([tmp_path], uid=os.getuid())
    assert mine.level == "note"
    assert "Any program that you run outside a sandbox can change" in mine.text


SANDBOX = (
    *("bwrap", "--unshare-all", "--die-with-parent", "--ro-bind", "/usr", "/usr"),
    *("--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64", "--proc", "/proc"),
)


@pytest.mark.parametrize(
    ("around", "outside"),
    [(("unshare", "-Ur"), True), ((*SANDBOX, "--ro-bind", "{0}", "{0}"), False)],
    ids=["in namespaces alone", "in a sandbox"],
)
@needs_bubblewrap
def test_an_uncontained_agent_is_named(
    tmp_path: Path, around: tuple[str, ...], outside: bool
) -> None:
    """A real process under the agent's name: other namespaces are no walls where the home is seen."""
    agent, home = tmp_path / "codex", tmp_path / "home"
    home.mkdir()
    agent.write_text("import sys\nprint('up', flush=True)\nsys.stdin.read()\n")
    words = ["/usr/bin/python3", str(agent)]
    command = [*(each.format(agent) for each in around), *words]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        # The agent itself: what is around it names no program of that name in its first words.
        cmdlines = Path("/proc").glob("[0-9]*/cmdline")
        (pid,) = (each.parent.name for each in cmdlines if _words(each) == words)
        found = [each.text for each in running_agents({"codex"}, uid=os.getuid(), home=home)]
        other = [each.text for each in running_agents({"codex"}, uid=os.getuid() + 1, home=home)]
        process.stdin.close()
    assert any(f"process {pid})" in text for text in found) is outside
    assert not any(f"process {pid})" in text for text in other)


def _words(cmdline: Path) -> list[str]:
    with contextlib.suppress(OSError):  # one that has just ended
        return os.fsdecode(cmdline.read_bytes()).split("\0")[:-1]  # of any program: not always text
    return []


def test_a_terminal_that_obeys_programs_is_named(tmp_path: Path) -> None:
    """Kitty's remote control, by its settings or a listening socket."""
    conf = tmp_path / ".config" / "kitty" / "kitty.conf"
    conf.parent.mkdir(parents=True)
    conf.write_text("font_size 12\nallow_remote_control no\n")
    assert list(check_terminal({}, tmp_path)) == []
    assert [each.topic for each in check_terminal({"KITTY_LISTEN_ON": "x"}, tmp_path)] == ["kitty"]
    conf.write_text("allow_remote_control yes\n")
    assert [each.level for each in check_terminal({}, tmp_path)] == ["warning"]


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_git_that_enters_any_repository_is_named_with_what_ends_it(tmp_path: Path) -> None:
    env = {"HOME": str(tmp_path)}
    (found,) = check_git(env)
    assert found.level == "note"
    (command,) = re.findall(r"`(git .*?)`", found.text)
    subprocess.run(command.split(" "), env={**env, "PATH": os.defpath}, check=True)
    assert [each.level for each in check_git(env)] == ["ok"]
    assert [each.level for each in check_git({"HOME": str(tmp_path / "other")})] == ["note"]


@pytest.mark.skipif(shutil.which("tmux") is None, reason="needs tmux")
@pytest.mark.parametrize(("setting", "level"), [("on", "warning"), ("off", "ok")])
def test_tmux_is_asked_if_it_passes_sequences_on(tmp_path: Path, setting: str, level: str) -> None:
    """Of the server around this terminal, whatever its settings file says."""
    socket = tmp_path / "s"
    tmux = ("tmux", "-S", str(socket), "-f", "/dev/null")
    subprocess.run([*tmux, "new-session", "-d", "sleep 600"], check=True)
    try:
        subprocess.run([*tmux, "set", "-gw", "allow-passthrough", setting], check=True)
        (found,) = check_terminal({"TMUX": f"{socket},1,0"}, tmp_path)
        assert (found.topic, found.level) == ("tmux", level), found.text
    finally:
        subprocess.run([*tmux, "kill-server"], check=True)
