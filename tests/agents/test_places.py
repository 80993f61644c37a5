"""Launches in unusual places: worktrees, blanks and letters in paths, a linked home, nvm, a venv inside, and Aileron's
own files under another name in the agent's project, as installers make them that link from a cache; and a day's work,
with the person's tools, caches that stay, paths that they named, and a commit.
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
    assert (found["aileron"], found["work"]) == ([30, 30], 1)


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


AT_WORK = """\
#!/usr/bin/env python3
import glob, json, os, shutil, subprocess, sys
def tried(function):
    try:
        return function()
    except OSError as error:
        return error.errno
def read(path):
    return tried(lambda: open(os.path.expanduser(path)).read())
def write(path):
    path = os.path.expanduser(path)
    return tried(lambda: (os.makedirs(os.path.dirname(path), exist_ok=True), open(path, "w").write("x"))[1])
def output(*words):
    done = subprocess.run(words, capture_output=True, text=True)
    return (done.stdout + done.stderr).strip()
print("FOUND " + json.dumps({
    "own tool": output("mytool"),
    "in login shells": [output(shell, "-lc", "mytool") for shell in ("bash", "sh", "zsh")],
    "interpreter": sys.executable,
    "python3 of the agent": output("python3", "-c", "print(1)"),
    "cache before": sorted(os.path.basename(each) for each in glob.glob(os.path.expanduser("~/.cache/uv/*"))),
    "cached": [write("~/" + name + "/by-agent") for name in
        (".cache/uv", ".cache/pip", ".npm", ".cargo/registry", "go/pkg/mod")],
    "read": [read("~/notes/a"), write("~/notes/a"), read("~/.ssh/id")],
    "write": [write("~/scratch/a"), write("~/scratch/.vscode/tasks.json"),
        output("git", "init", "-q", os.path.expanduser("~/scratch/new"))],
    "hide": [read(".env"), tried(lambda: os.listdir("secrets")), read("secrets/key"), write("secrets/x"),
        tried(lambda: os.rename("secrets", "elsewhere"))],
    "commit": output("git", "commit", "-q", "--allow-empty", "-m", "by the agent"),
    "author": output("git", "log", "-1", "--format=%an %ae %G?"),
    "signs": output("git", "config", "--global", "commit.gpgsign"),
    "elsewhere": output("sh", "-c", "cd $(mktemp -d) && git init -q && git commit -q --allow-empty -m x "
        "&& git log -1 --format=%an && git branch --show-current && git st && touch a.log && git status -s"),
    "aliases": output("git", "config", "--global", "--get-regexp", "^(alias|credential|core.editor|include)"),
}))
"""
GITCONFIG = """\
[user]
name = Ana
email = ana@example.com
signingkey = 0xDEADBEEF
[commit]
gpgsign = true
[init]
defaultBranch = trunk
[alias]
st = status --short
evil = !touch /tmp/evil
[credential]
helper = store
[core]
editor = /home/ana/bin/edit
[include]
path = extra.inc
"""


def launch_days_work(bench: Bench, *options: str, path: str) -> tuple[dict[str, Any], str]:
    done = bench.aileron("launch", "codex", *options, PATH=path)
    return found_by("FOUND", done.stdout), done.stderr


def test_a_days_work_contained(bench: Bench) -> None:
    """What the shell finds, what was named, a cache that stays, and a commit in the person's name."""
    program(bench.home / "bin/codex", AT_WORK)
    program(bench.home / "bin/mytool", "#!/bin/sh\necho mine\n")
    bench.write("notes/a", "a note")
    bench.write("scratch/old", "old")
    bench.write(".ssh/id", "a key")
    bench.write(".gitconfig", GITCONFIG)
    bench.write("extra.inc", "[pull]\nrebase = true\n")
    bench.write(".config/git/ignore", "*.log\n")
    bench.write(".cache/uv/wheel", "outside")
    (bench.console.home / "config.toml").write_text('[launch]\nread = ["~/notes"]\n')
    project = bench.project
    (project / "aileron.toml").write_text('[launch]\nhide = ["secrets"]\n')
    (project / "secrets").mkdir()
    (project / "secrets" / "key").write_text("a secret")
    (project / ".env").write_text("TOKEN=secret")
    evil = program(project / ".venv" / "bin" / "python3", "#!/bin/sh\necho the project was here\n")
    subprocess.run(["git", "init", "-q", "-b", "trunk", str(project)], check=True)
    path = os.pathsep.join([str(evil.parent), str(bench.home / "bin"), "/usr/bin", "/bin"])
    options = ("--write", str(bench.home / "scratch"), "--hide", ".env")
    found, said = launch_days_work(bench, *options, path=path)
    assert found["own tool"] == "mine"
    assert found["in login shells"] == ["mine"] * 3  # Codex runs each command in one
    assert found["interpreter"].startswith("/usr/bin/python3")
    assert (found["cache before"], found["cached"]) == (["wheel"], [1, 1, 1, 1, 1])
    assert (found["read"], found["write"]) == (["a note", 30, 2], [1, 1, ""])
    assert (found["hide"], found["commit"]) == (["", [], 2, 30, 16], "")
    assert found["author"] == "Ana ana@example.com N"
    assert found["signs"] == "false"  # even where the system's own settings ask for it
    assert found["elsewhere"].split() == ["Ana", "trunk"]
    assert found["aliases"] == "alias.st status --short"
    assert "The agent's commits are not signed (commit.gpgsign)" in said
    assert ".vscode is new" in said
    scratch = bench.home / "scratch"
    left = {str(each.relative_to(scratch)) for each in _files(scratch)}
    assert {"a", "old"} <= left
    assert not any(each.startswith((".vscode", "new/.git/")) for each in left)
    assert _files(bench.home / ".cache") == [bench.home / ".cache/uv/wheel"]
    assert not (bench.home / ".npm").exists()
    found, said = launch_days_work(bench, path=path)
    assert found["cache before"] == ["by-agent", "wheel"]
    assert found["write"][0] == 1  # of its own home: the folder was named for one launch
    assert (bench.home / "scratch" / "a").read_text() == "x"
    assert found["hide"][0] == "TOKEN=secret"


def _files(folder: Path) -> list[Path]:
    return sorted(each for each in folder.rglob("*") if each.is_file())
