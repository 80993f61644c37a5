"""Glob and Grep of the files worker: what they find, what they never show, and how they end."""

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.builtin_worker import Worker, WorkerError

ENDLESS_TEXT, ENDLESS_PATTERN = f"{'a' * 60}!\n", "(a+)+$"


@pytest.fixture(scope="module")
def tree(shared_project: Path) -> Path:
    tree = shared_project / "tree"
    for at, (name, text) in enumerate(
        {
            "a.py": "import os\nneedle = 1\nend\n",
            "src/b.py": "x\r\nNeedle = 2\r\ny\r\nz\r\nneedle\r\n",
            "src/c.ts": "needle()\n",
            "src/deep/d.tsx": "nothing\n",
            ".git/config": "needle\n",
            "binary": "needle\0",
            ".ENV": "needle\n",
            "src/.ssh/known": "needle\n",
            "keys/public.pem": "needle\n",
            "keys/private.pem": "needle\n",
        }.items()
    ):
        file = tree / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, newline="")
        os.utime(file, (1000 + at, 1000 + at))
    (tree / "link.py").symlink_to("a.py")
    (tree / "out").symlink_to("/etc")
    return tree


SECRETS = {"excluded": [".env", ".ssh/", "tree/keys/*", "!public.pem"]}


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("*.py", ["src/b.py", "a.py"]),
        ("./*.py", ["a.py"]),
        ("{tree}/*.py", ["a.py"]),
        ("src/**", ["src/deep/d.tsx", "src/c.ts", "src/b.py"]),
        ("**/*.{ts,tsx}", ["src/deep/d.tsx", "src/c.ts"]),
        ("src/[!c].*", ["src/b.py"]),
        ("src/[^c].*", ["src/b.py"]),
        ("{src/b,a}.py", ["src/b.py", "a.py"]),
        ("{a.py", []),
        ("src/deep/", ["src/deep/d.tsx"]),
        ("?.py", ["src/b.py", "a.py"]),
        ("*.pem", ["keys/public.pem"]),
        ("*config", []),
        ("known", []),
    ],
)
def test_glob_finds_the_newest_first_and_nothing_secret(
    worker: Worker, tree: Path, pattern: str, found: list[str]
) -> None:
    result = worker.call(
        "glob",
        pattern=pattern.format(tree=tree) if "tree" in pattern else pattern,
        path="tree",
        **SECRETS,
    )
    assert result == {"paths": [f"tree/{each}" for each in found], "truncated": False}


@pytest.mark.parametrize(
    ("args", "text"),
    [
        ({}, "tree/a.py\ntree/keys/public.pem\ntree/src/b.py\ntree/src/c.ts"),
        ({"glob": "*.py", "output_mode": "count", "-i": True}, "tree/a.py:1\ntree/src/b.py:2"),
        (
            {"path": "tree/src/b.py", "output_mode": "content", "-i": True, "-C": 1},
            "\n".join(
                f"tree/src/b.py{each}"
                for each in ("-1-x", ":2:Needle = 2", "-3-y", "-4-z", ":5:needle")
            ),
        ),
        (
            {"glob": "src/*", "output_mode": "content", "-n": False, "-B": 1},
            "tree/src/b.py-z\ntree/src/b.py:needle\n--\ntree/src/c.ts:needle()",
        ),
        (
            {"pattern": "os.needle", "multiline": True, "output_mode": "content"},
            "tree/a.py:1:import os\ntree/a.py:2:needle = 1",
        ),
        ({"path": "tree/src/.ssh"}, ""),
        ({"path": "tree/.ENV"}, ""),
    ],
)
def test_grep_finds_lines_and_nothing_secret(
    worker: Worker, tree: Path, args: dict[str, Any], text: str
) -> None:
    result = worker.call("grep", **{"pattern": "needle", "path": "tree", **SECRETS, **args})
    assert result == {"text": text, "truncated": False}


@pytest.mark.usefixtures("tree")
def test_grep_says_what_is_wrong_and_what_is_left_out(worker: Worker) -> None:
    error = worker.refused("grep", pattern="a(")
    assert (error.class_, "Python's re" in error.message) == ("invalid_arguments", True)
    few = worker.call("grep", pattern="needle", path="tree", head_limit=1)
    assert (few["text"], few["truncated"]) == ("tree/.ENV", True)
    assert worker.refused("glob", pattern="../*").class_ == "invalid_arguments"
    assert worker.refused("glob", pattern="{a,b}" * 9).class_ == "invalid_arguments"
    assert worker.refused("glob", pattern="*", path="missing").class_ == "not_found"


def _children(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


@pytest.mark.skipif(sys.platform != "linux", reason="/proc")
def test_reads_are_answered_during_a_search_which_ends_with_the_worker(tmp_path: Path) -> None:
    (tmp_path / "a").write_text(ENDLESS_TEXT)
    with Worker("files", tmp_path) as worker:
        search = worker.send("grep", pattern=ENDLESS_PATTERN)
        assert worker.call("read", file_path="a")["lines"] == 1
        assert not worker.answered(search)
        (child,) = _children(worker.process.pid)
    assert not Path(f"/proc/{child}").exists()


SHORT_SEARCHES = """
import sys; from pathlib import Path
from aileron_core.connectors.builtin.worker import file_worker, search
search.ENDED_AFTER = 0.3
file_worker.serve(Path(sys.argv[-1]))
"""


def test_an_endless_pattern_is_ended(tmp_path: Path) -> None:
    (tmp_path / "a").write_text(ENDLESS_TEXT)
    with Worker("files", tmp_path, (sys.executable, "-I", "-c", SHORT_SEARCHES)) as worker:
        for each in [worker.send("grep", pattern=ENDLESS_PATTERN, path=".") for _ in range(5)]:
            with pytest.raises(WorkerError, match="timed_out: The search was ended"):
                worker.answer(each)
        assert worker.refused("grep", pattern="(").class_ == "invalid_arguments"


def test_what_rules_hide_in_the_project_no_search_from_above_finds(tmp_path: Path) -> None:
    """Rules name it from the project's top; a person allowed the search of a folder that holds the project."""
    project = tmp_path / "project"
    for name in ("private/hidden", "shown"):
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text("needle\n")
    above = {"path": "..", "expect_path": str(tmp_path), "excluded": ["private/**"]}
    with Worker("files", project) as worker:
        found = worker.call("grep", pattern="needle", **above)["text"].splitlines()
        listed = worker.call("glob", pattern="**/*", **above)["paths"]
    assert found == listed == [str(project / "shown")]
