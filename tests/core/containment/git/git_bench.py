"""A project with a real repository, an agent in a real sandbox over it, and the person's git outside."""

import contextlib
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aileron_core.containment.bubblewrap import SandboxSpec, bwrap_argv
from aileron_core.containment.git.prepare import prepare_repositories
from aileron_core.containment.git.repository import scan_project
from aileron_core.containment.git.repository_hider import RepositoryHider
from aileron_core.containment.git.session import SessionRepositories
from tests.support.making import program

BWRAP = shutil.which("bwrap", path="/usr/bin:/bin") or ""


def person_env(home: Path) -> dict[str, str]:
    """The person's environment: a home of their own, nothing of this machine's settings."""
    return {
        "HOME": str(home), "PATH": "/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C.UTF-8",
        "GIT_CONFIG_NOSYSTEM": "1", "GIT_EDITOR": "true",
    }  # fmt: skip


@dataclass
class Agent:
    """One session over a project."""

    bench: "Bench"
    folders: SessionRepositories
    project: Path

    def _sandbox(self, *argv: str) -> dict[str, Any]:
        """Return how a program is started as the agent's."""
        own = self.bench.folder / "own"
        own.mkdir(exist_ok=True)
        spec = SandboxSpec(
            bwrap=BWRAP, project=self.project, home=self.bench.person, private_home=own,
            launch_dir=self.bench.folder / "private", socket=None, git_mounts=self.folders.mounts,
        )  # fmt: skip
        env = {
            "PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(self.bench.person), "GIT_AUTHOR_NAME": "A",
            "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "A", "GIT_COMMITTER_EMAIL": "a@b",
        }  # fmt: skip
        return {"args": bwrap_argv(spec, argv), "env": env, "cwd": "/", "text": True}

    def does(self, script: str, *, code: int | None = 0) -> str:
        how = self._sandbox("/bin/sh", "-ec", script) | {"capture_output": True, "timeout": 60}
        done = subprocess.run(**how, stdin=subprocess.DEVNULL, check=False)
        assert code is None or done.returncode == code, done.stdout + done.stderr
        return done.stdout.strip()

    @contextlib.contextmanager
    def running(self) -> Iterator["Shell"]:
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        with subprocess.Popen(**self._sandbox("/bin/sh"), **pipes) as process:
            hider = RepositoryHider(self.folders.folder, self.folders.record, process.pid)
            try:
                yield Shell(process, hider, self.project)
            finally:
                hider.close()
                process.kill()

    def end(self) -> str:
        return "\n".join(self.folders.end())


@dataclass
class Shell:
    """A sandbox that goes on running, and what hides new repositories meanwhile."""

    process: "subprocess.Popen[str]"
    hider: RepositoryHider
    project: Path

    def does(self, script: str, *, code: int | None = 0) -> str:
        self.process.stdin.write(f"(set -e; {script}\n) </dev/null; echo END $?\n")
        self.process.stdin.flush()
        lines: list[str] = []
        for line in self.process.stdout:
            if line.startswith("END "):
                assert code is None or line == f"END {code}\n", (line, lines)
                break
            lines.append(line)
        return "".join(lines).strip()

    def hide(self) -> None:
        self.hider.hide(scan_project(self.project))


class Bench:
    """A person with a home, a repository `project` with one commit, and Aileron's home."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.person = folder / "person"
        self.project = folder / "project"
        self.aileron = folder / "aileron"
        self.ran = folder / "ran"
        """A program of the agent's makes this file when it runs outside."""
        for each in (self.person, self.project, self.aileron, folder / "private"):
            each.mkdir()
        self.git("init", "-q", "-b", "main")
        self.commit("first", "file", "one\n")

    def git(self, *words: str, code: int | None = 0, where: Path | None = None) -> str:
        """Run the person's git in *where*; return what it printed."""
        person = ("-c", "user.name=Person", "-c", "user.email=p@example.com")
        done = subprocess.run(
            ["git", *person, "-c", "protocol.file.allow=always", *words], cwd=where or self.project, env=person_env(self.person),
            stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=60,
            check=False,
        )  # fmt: skip
        assert code is None or done.returncode == code, done.stdout + done.stderr
        return done.stdout.strip()

    def subject(self, ref: str = "HEAD", where: Path | None = None) -> str:
        """Return the first line of a commit's message."""
        return self.git("log", "-1", "--format=%s", ref, where=where)

    def commit(self, message: str, name: str, text: str, where: Path | None = None) -> str:
        """Commit a file as the person; return the commit."""
        program((where or self.project) / name, text, 0o644)
        self.git("add", name, where=where)
        self.git("commit", "-q", "-m", message, where=where)
        return self.git("rev-parse", "HEAD", where=where)

    def begin(self, session: str = "ses-1", project: Path | None = None) -> Agent:
        project = project or self.project
        folders = prepare_repositories(
            bwrap=BWRAP, parent=self.aileron / "git", leftovers=self.aileron / "aside" / session,
            session=session, project=project, env=person_env(self.person),
        )  # fmt: skip
        return Agent(self, folders, project)

    def session(self, script: str, project: Path | None = None, *, code: int | None = 0) -> str:
        """Have an agent run *script* in a session of its own; return what the person is told."""
        agent = self.begin(project=project)
        agent.does(script, code=code)
        return agent.end()

    def repository(self, name: str) -> Path:
        """Make another repository of the person's, with one commit."""
        path = self.folder / name
        self.git("init", "-q", "-b", "main", str(path), where=self.folder)
        self.commit("other", "of-other", "x", where=path)
        return path

    def diverge(self) -> None:
        self.git("checkout", "-q", "-b", "side")
        self.commit("side", "file", "side\n")
        self.git("checkout", "-q", "main")
        self.commit("main", "file", "main\n")

    def submodule(self, path: str = "deep/part") -> Path:
        self.git("submodule", "add", "-q", str(self.repository("other")), path)
        self.git("commit", "-qm", "with a part")
        return self.project / path

    def status(self, *folders: Path) -> None:
        """Do there what obeys a repository's settings; nothing of the agent's may run."""
        for where in folders or (self.project,):
            for words in (("status",), ("diff",)):
                self.git(*words, where=where, code=None)
        self.nothing_ran()

    def nothing_ran(self) -> None:
        """Fail if a program of the agent's left its mark."""
        assert not self.ran.exists(), self.ran.read_text()

    def refs(self) -> dict[str, str]:
        listed = self.git("for-each-ref", "--format=%(refname) %(objectname)")
        return dict(line.split(" ") for line in listed.splitlines())


def armed(bench: Bench, project: Path | None = None) -> tuple[str, str]:
    """Return the path of a program in the project that leaves a mark when it runs, and how it is made."""
    path = (project or bench.project) / "evil"
    script = f'#!/bin/sh\\necho "$0 $*" >> {bench.ran}\\n'
    return str(path), f"printf '%b' '{script}' > {path}; chmod +x {path};"


REPOSITORY = (
    "mkdir -p {0}/objects {0}/refs; touch {0}/objects/x {0}/refs/x; echo 'ref: refs/heads/main' > {0}/HEAD;"
    "printf '[core]\\n\\trepositoryformatversion = 0\\n\\tfsmonitor = {1}\\n\\tworktree = {2}\\n' > {0}/config;"
)
"""Makes a folder that git takes for a repository, in a way that can be committed, and that names a program."""


def names_of_git() -> list[str]:
    """Return git's own list of its settings, with a name of ours where it has a place for one."""
    listed = subprocess.run(["git", "help", "-c"], capture_output=True, text=True, check=True)
    names = (re.sub(r"<[^>]*>|\*", "evil", line) for line in listed.stdout.splitlines())
    setting = re.compile(r"[a-zA-Z]+\.(\S+\.)?[a-zA-Z][a-zA-Z0-9-]*")
    return [name for name in names if setting.fullmatch(name)]


MORE = (
    "filter.evil.process", "diff.external", "credential.evil.helper", "trailer.evil.cmd",
    "submodule.evil.update", "remote.evil.vcs", "tar.evil.command", "init.templateDir",
)  # fmt: skip
"""Settings that name a program, or where one is found, and that not every version of git lists."""
HOOKS = (
    "pre-commit", "prepare-commit-msg", "commit-msg", "post-commit", "post-checkout", "post-merge",
    "pre-auto-gc", "post-index-change", "reference-transaction", "fsmonitor-watchman", "pre-rebase",
    "post-rewrite", "pre-merge-commit", "post-applypatch",
)  # fmt: skip


def all_settings(evil: str, names: Iterable[str] = ()) -> str:
    """Return a script that has every setting of *names*, every hook and attribute name a program.

    Without *names*: every setting that git knows.
    """
    config: dict[str, list[str]] = {}
    for name in names or (*names_of_git(), *MORE):
        section, _, rest = name.partition(".")
        below, _, key = rest.rpartition(".")
        head = f'[{section} "{below}"]' if below else f"[{section}]"
        config.setdefault(head, []).append(f'\\t{key} = "{evil}"')
    text = "\\n".join("\\n".join([head, *lines]) for head, lines in config.items())
    hooks = "".join(f"cp {evil} .git/hooks/{name};" for name in HOOKS)
    return (
        f"printf '%b\\n' '{text}' > all; cp all .git/config.worktree; cp all .git/more;"
        "for f in .gitattributes .git/info/attributes; do"
        " echo '* diff=evil filter=evil merge=evil' > $f; done;"
        f"mkdir -p .git/hooks; {hooks}"
        "git config include.path more; cat all >> .git/config; rm all"
    )
