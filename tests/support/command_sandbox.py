"""The commands worker in its sandbox, as an ordinary user, on a project and a home of its own.

    python command_sandbox.py FOLDER HIDDEN WORKER... commands PROJECT

`sandboxed_worker` starts that. HIDDEN is a JSON list of paths of the project that are hidden.
"""

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.builtin_worker import Worker, WorkerError
from tests.support.making import program
from tests.support.ordinary import AS_ORDINARY, OWNS, give, ordinary_folder

ROOT = Path(__file__).resolve().parents[2]


@dataclass
class Sandbox:
    """A worker that is ready, and what lies outside its sandbox."""

    worker: Worker
    folder: Path
    project: Path
    rehearsals: list[str] = field(default_factory=list[str])
    processes: set[int] = field(default_factory=set[int])

    def run(self, command: str) -> dict[str, object]:
        return self.worker.call("run", command=command)

    def prints(self, command: str) -> str:
        done = self.run(command)
        assert done.get("exit_code") == 0, done
        return str(done["stdout"])

    def rehearse(self, command: str, **args: object) -> dict[str, Any]:
        done = self.worker.call("rehearse", command=command, **args)
        self.rehearsals += [done["rehearsal"]] if "rehearsal" in done else []
        return done

    def discard_all(self) -> None:
        while self.rehearsals:
            with contextlib.suppress(WorkerError):
                self.worker.call("discard", rehearsal=self.rehearsals.pop())

    def fallback(self, command: str, **args: object) -> str:
        """Rehearse *command*, and return why that does not count."""
        return str(self.rehearse(command, **args)["fallback"])

    def tree(self) -> dict[str, str]:
        """Return what lies in the project, without its git folder: by its path content, target or nothing."""
        found: dict[str, str] = {}
        for each in sorted(self.project.rglob("*")):
            name = str(each.relative_to(self.project))
            if each.is_symlink():
                found[name] = f"-> {each.readlink()}"
            elif name.split("/")[0] != ".git":
                found[name] = "" if each.is_dir() else each.read_text()
        return found


@contextlib.contextmanager
def sandboxed_worker(
    files: dict[str, str] | None = None,
    *,
    hidden: Sequence[str] = (),
    git: bool = False,
    home: bool = False,
) -> Iterator[Sandbox]:
    """Yield a worker on a project with *files*, those by their paths.

    Args:
        home: its commits are in a journal in the folder `aileron`, as in a home of Aileron's.
    """
    with ordinary_folder() as folder:
        for name in ("project", "home", "launch", "git", *(["aileron"] if home else [])):
            (folder / name).mkdir()
        project = folder / "project"
        for name, text in (files or {}).items():
            program(project / name, text, 0o644)
        (folder / "launch" / "empty").touch()
        if git:
            (project / ".git").mkdir()
        (folder / "home" / ".tool").mkdir()
        program(folder / "tool" / "bin" / "tool", "#!/bin/sh\necho a tool\n")
        give(folder)
        main_ = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from tests.support.command_sandbox import main; main()"
        words = [*AS_ORDINARY, sys.executable, "-I", "-c", main_]
        prefix = [*words, str(folder), json.dumps(list(hidden))]
        with Worker("commands", project, prefix, env={**os.environ, OWNS: str(folder)}) as worker:
            assert "Without a sandbox" not in worker.features["why_not"]
            yield Sandbox(worker, folder, project)


def recovered(folder: Path) -> list[str]:
    """Recover the commits in `aileron` as the next start of a launch does, and return what a person is told."""
    program = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r})\n"
        "import json, pathlib\n"
        "from aileron_core.connectors.builtin.commit_recovery import recover_commits\n"
        f"print(json.dumps(list(recover_commits(pathlib.Path({str(folder / 'aileron')!r})))))"
    )
    words = [*AS_ORDINARY, sys.executable, "-I", "-c", program]
    return json.loads(subprocess.run(words, check=True, stdout=subprocess.PIPE).stdout)


def main() -> None:
    """Become the sandbox of the worker on the command line."""
    from aileron_core.connectors.builtin.commit_recovery import commit_journal
    from aileron_core.containment import bubblewrap
    from aileron_core.containment.mounts import Mount
    from aileron_core.containment.programs import SYSTEM_FOLDERS
    from aileron_core.containment.support import find_sandbox_support

    support = find_sandbox_support(offline=False)
    folder, hidden, *worker, _, project = sys.argv[1:]
    top = Path(folder)
    needed = sorted({ROOT, Path(sys.prefix), Path(sys.base_prefix)})
    outside = [each for each in needed if not {each, *each.parents} & {*SYSTEM_FOLDERS}]
    git = Path(project, ".git")
    spec = bubblewrap.SandboxSpec(
        bwrap=support.bwrap, project=Path(project), home=top / "home", private_home=top / "home",
        launch_dir=top / "launch", socket=None, offline=False,
        mounts=(
            Mount(path=top / "home" / ".tool" / "bin", how="read-only", why="", source=top / "tool" / "bin"),
            *(Mount(path=each, how="read-only", why="") for each in outside),
            *(Mount(path=Path(project, each), how="hidden", why="", source=top / "launch" / "empty") for each in json.loads(hidden)),
        ),
        git_mounts=(Mount(path=git, how="copy", why="", source=top / "git"),) if git.exists() else (),
    )  # fmt: skip
    journal = None
    if (top / "aileron").is_dir():
        # By this name until the end.
        mounts = bubblewrap.sandbox_mounts(spec)
        held = commit_journal(top / "aileron", "s_1", spec.project, mounts, print)
        journal = held.__enter__()
        os.set_inheritable(journal, True)
    argv = bubblewrap.command_sandbox_argv(spec, worker, (), journal)
    support.drop_privileges()
    env = {"PATH": os.environ["PATH"], "HOME": str(top / "home"), "LANG": "C.UTF-8"}
    env["GIT_CONFIG_NOSYSTEM"] = "1"
    os.execve(argv[0], argv, env)
