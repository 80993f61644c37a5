"""Launches in unusual places: worktrees, blanks and letters in paths, a linked home, nvm, a venv inside, and Aileron's
own files under another name in the agent's project, as installers make them that link from a cache.
"""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.agents.agents_bench import CLI, Bench, aileron_in, found_by
from tests.support.forked import run_forked
from tests.support.making import program

AGENT = """\
#!/usr/bin/env python3
import json, os, subprocess, sys
def tried(function):
    try:
        return function()
    except OSError as error:
        return error.errno
def git(*words):
    return subprocess.run(["git", *words], capture_output=True, text=True)
print("FOUND " + json.dumps({
    "cwd": os.getcwd(),
    "home": os.environ["HOME"],
    "login": os.path.exists(os.path.expanduser("~/.codex/auth.json")),
    "others": os.path.exists(os.path.expanduser("~/.ssh")),
    "work": tried(lambda: open("work.txt", "w").write("x")),
    "git file": tried(lambda: open(".git", "a").write("x")) if os.path.isfile(".git") else None,
    "replace git": tried(lambda: os.replace("work.txt", ".git")) if os.path.isfile(".git") else None,
    "status": git("status", "--short").returncode,
    "log": git("log", "--format=%s").stdout.strip(),
    "commit": git("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m",
        "by the agent").returncode,
    "aileron": [tried(lambda: open(each + "/evil", "w").write("x")) for each in sys.argv[-1].split(":")]
        if "/" in sys.argv[-1] else None,
}))
"""


@pytest.fixture
def bench(bench: Bench) -> Bench:
    bench.write(".codex/auth.json", '{"token": "x"}')
    bench.write(".ssh/id_ed25519", "a key")
    return bench


def launch_in(
    bench: Bench, project: Path, bin_: Path, *args: str, home: Path, command: Sequence[str] = CLI
) -> dict[str, Any]:
    env = bench.environment({"PATH": f"{bin_}{os.pathsep}/usr/bin{os.pathsep}/bin"})
    done = run_forked(
        [*command, "launch", "codex", "--home", str(bench.console.home), "--", *args],
        cwd=project, env={**env, "HOME": str(home)},
    )  # fmt: skip
    return found_by("FOUND", done.stdout + done.stderr)


def test_a_worktree_with_blanks_and_a_home_that_is_a_link(bench: Bench) -> None:
    """The agent works there and commits; where config and hooks lie is not its to move."""
    main, tree = bench.folder / "main repo", bench.home / "wörk tree"
    git = ("git", "-c", "safe.directory=*", "-c", "user.name=a", "-c", "user.email=a@b")
    main.mkdir()
    for words in ("init -q", "commit -q --allow-empty -m first", "worktree add -q -b side"):
        place = [str(tree)] if "worktree" in words else []
        subprocess.run([*git, *words.split(), *place], cwd=main, check=True)
    link = bench.folder / "link"
    link.symlink_to(bench.home)
    bin_ = program(bench.home / ".local/bin/codex", AGENT).parent
    found = launch_in(bench, tree, bin_, home=link)
    assert (found["cwd"], found["home"], found["log"]) == (str(tree), str(link), "first")
    assert (found["login"], found["others"], found["aileron"]) == (True, False, None)
    assert (found["work"], found["git file"], found["replace git"]) == (1, 30, 16)
    assert (found["status"], found["commit"]) == (0, 0)
    log = subprocess.check_output([*git, "-C", str(tree), "log", "--format=%s"], text=True)
    assert log == "by the agent\nfirst\n"


def test_aileron_in_a_venv_inside_the_project_cannot_be_changed(bench: Bench) -> None:
    """Its `sys.prefix` is mounted read-only, so the next console is not the agent's."""
    command, packages = aileron_in(bench.project / ".venv")
    tried = f"{packages}:{bench.project / '.venv' / 'bin'}"
    bin_ = program(bench.folder / "bin" / "codex", AGENT).parent
    found = launch_in(bench, bench.project, bin_, tried, home=bench.home, command=command)
    assert found["aileron"] == [30, 30]
    assert found["work"] == 1


WRITES = """\
#!/usr/bin/env python3
open(".venv/click.py", "w").write("evil")
"""


def test_what_an_agent_writes_in_its_environment_does_not_change_aileron(bench: Bench) -> None:
    """The file became one of its own before the agent started; both kinds of names are told."""
    command, packages = aileron_in(bench.folder / "tool")
    (packages / "ours.py").write_text("good")
    (bench.project / ".venv").mkdir()
    (bench.project / ".venv" / "click.py").hardlink_to(packages / "ours.py")
    (bench.project / ".venv" / "other.py").write_text("x")
    (bench.folder / "cache.py").hardlink_to(bench.project / ".venv" / "other.py")
    done = subprocess.run(
        [*command, "launch", "codex", "--home", str(bench.console.home)],
        cwd=bench.project, env=bench.environment(bench.stand_in(WRITES)),
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert (packages / "ours.py").read_text() == "good"
    assert (bench.project / ".venv" / "click.py").read_text() == "evil"
    assert "1 of Aileron's own files were hard links" in done.stderr
    assert "hard links to files outside it: 1," in done.stderr
