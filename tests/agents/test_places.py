"""Launches in unusual places: worktrees, blanks and letters in paths, a linked home, nvm, a venv inside."""

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
    bench: Bench,
    project: Path,
    bin_: Path,
    *args: str,
    home: Path | None = None,
    command: Sequence[str] = CLI,
) -> dict[str, Any]:
    env = bench.environment({"PATH": f"{bin_}{os.pathsep}/usr/bin{os.pathsep}/bin"})
    done = run_forked(
        [*command, "launch", "codex", "--home", str(bench.console.home), "--", *args],
        cwd=project, env={**env, "HOME": str(home or bench.home)},
    )  # fmt: skip
    return found_by("FOUND", done.stdout + done.stderr)


def test_a_worktree_with_blanks_and_a_home_that_is_a_link(bench: Bench) -> None:
    """The agent works there and commits; where config and hooks lie is not its to move."""
    main, tree = bench.folder / "main repo", bench.home / "wörk tree"
    git = ("git", "-c", "safe.directory=*", "-c", "user.name=a", "-c", "user.email=a@b")
    subprocess.run([*git, "init", "-q", str(main)], check=True)
    subprocess.run(
        [*git, "-C", str(main), "commit", "-q", "--allow-empty", "-m", "first"], check=True
    )
    subprocess.run(
        [*git, "-C", str(main), "worktree", "add", "-q", "-b", "side", str(tree)], check=True
    )
    link = bench.folder / "link"
    link.symlink_to(bench.home)
    found = launch_in(
        bench, tree, program(bench.home / ".local/bin/codex", AGENT).parent, home=link
    )
    assert found == {
        "cwd": str(tree),
        "home": str(link),
        "login": True,
        "others": False,
        "work": 1,
        "git file": 30,
        "replace git": 16,
        "status": 0,
        "log": "first",
        "commit": 0,
        "aileron": None,
    }
    log = subprocess.run(
        [*git, "-C", str(tree), "log", "--format=%s"], check=True, capture_output=True, text=True
    )
    assert log.stdout == "by the agent\nfirst\n"


def test_aileron_in_a_venv_inside_the_project_cannot_be_changed(bench: Bench) -> None:
    """Its `sys.prefix` is mounted read-only, so the next console is not the agent's."""
    command, packages = aileron_in(bench.project / ".venv")
    tried = f"{packages}:{bench.project / '.venv' / 'bin'}"
    bin_ = program(bench.folder / "bin" / "codex", AGENT).parent
    found = launch_in(bench, bench.project, bin_, tried, command=command)
    assert found["aileron"] == [30, 30]
    assert found["work"] == 1
