"""A day's work in the sandbox: the person's tools, caches that stay, paths that they named, and a commit."""

import os
import subprocess
from pathlib import Path
from typing import Any

from tests.agents.agents_bench import Bench, found_by
from tests.support.making import program

AGENT = """\
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
    program(bench.home / "bin/codex", AGENT)
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
    assert found["cache before"] == ["wheel"]
    assert found["cached"] == [1, 1, 1, 1, 1]
    assert found["read"] == ["a note", 30, 2]
    assert found["write"] == [1, 1, ""]
    assert found["hide"] == ["", [], 2, 30, 16]
    assert found["commit"] == ""
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
