"""What the files worker finds and opens: nothing out of the project, nothing secret."""

import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.builtin_worker import Worker, WorkerError
from tests.support.variants import ALL

SECONDS = 60.0 if ALL else 1.0
BOTH_WAYS = [
    (op, how) for op in ("read", "write", "preview_write") for how in ("done", "forbidden")
]

EXCHANGING = """
import os, sys
from aileron_core.containment.linux_syscalls import exchange_names
project, outside = sys.argv[1:]
handle = os.open(project, os.O_PATH)
os.chdir(project)
print("ready", flush=True)
while True:
    for _ in range(100):
        exchange_names(handle, "file", f"{project}/link")
        exchange_names(handle, "folder", f"{project}/linked")
    if not os.path.islink("file") and not os.path.islink("link"):  # a write replaced it
        os.unlink("link")
        os.symlink(f"{outside}/name", "link")
"""
WITHOUT_OPENAT2 = """
import sys; from pathlib import Path
from aileron_core.containment import safe_paths
from aileron_core.connectors.builtin.worker import file_worker
safe_paths._has_openat2 = lambda: False
file_worker.serve(Path(sys.argv[-1]))
"""


def outcome_of(worker: Worker, op: str, **args: Any) -> tuple[str, dict[str, Any]]:
    try:
        return "done", worker.call(op, **args)
    except WorkerError as error:
        return error.class_, {"message": error.message, **error.details}


@contextmanager
def exchanging(project: Path, outside: Path) -> Iterator[None]:
    command = [sys.executable, "-I", "-c", EXCHANGING, project, outside]
    loop = subprocess.Popen(command, stdout=subprocess.PIPE)
    try:
        assert loop.stdout.readline() == b"ready\n"
        yield
        assert loop.poll() is None, "the exchange loop ended early"
    finally:
        loop.kill()
        loop.wait()
        loop.stdout.close()


@pytest.mark.skipif(sys.platform != "linux", reason="renameat2")
@pytest.mark.timeout(240)
@pytest.mark.parametrize("prefix", [(), (sys.executable, "-I", "-c", WITHOUT_OPENAT2)])
def test_no_exchange_of_file_and_link_leads_out(tmp_path: Path, prefix: tuple[str, ...]) -> None:
    """A check of the real path and then an open let more than a quarter of the reads out."""
    project, outside = tmp_path / "project", tmp_path / "outside"
    for folder, text in ((project / "folder", "inside\n"), (outside, "secret\n")):
        folder.mkdir(parents=True)
        (folder / "name").write_text(text)
    (project / "file").write_text("inside\n")
    (project / "link").symlink_to(outside / "name")
    (project / "linked").symlink_to(outside)
    seen: Counter[tuple[str, str]] = Counter()
    ops: dict[str, dict[str, Any]] = {
        "read": {}, "write": {"content": "inside\n"}, "preview_write": {"content": "other"},
        "edit": {"old_string": "inside", "new_string": "inside, again"},
    }  # fmt: skip
    paths = ("file", "folder/name")
    asked = [(op, {"file_path": path, **args}) for path in paths for op, args in ops.items()]
    asked += [("grep", {"pattern": "secret", "path": path, **CONTENT}) for path in (".", "folder")]
    asked.append(("write", {"file_path": "folder/new/file", "content": ""}))
    approved = {"file_path": "link", "expect_path": str(outside / "name")}
    with Worker("files", project, prefix) as worker, exchanging(project, outside):
        until = time.monotonic() + SECONDS
        while time.monotonic() < until or not all(seen[each] for each in BOTH_WAYS):
            how, result = outcome_of(worker, "read", **approved)
            assert how in ("done", "conflict"), result
            assert how == "conflict" or "secret" in result["text"]
            for op, args in asked:
                how, result = outcome_of(worker, op, **args)
                seen[op, how] += 1
                assert how in ("done", "forbidden", "conflict", "invalid_arguments", "not_found")
                if how == "done":
                    assert "secret" not in (result.get("text") or result.get("diff") or "")
    assert (outside / "name").read_text() == "secret\n"
    assert [each.name for each in outside.iterdir()] == ["name"]


@pytest.fixture(scope="module")
def outside(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("outside")
    (folder / "secret").write_text("secret\n")
    return folder


@pytest.fixture(scope="module")
def shared_project(tmp_path_factory: pytest.TempPathFactory, outside: Path) -> Path:
    folder = tmp_path_factory.mktemp("project")
    (folder / "src").mkdir()
    (folder / "src/a.py").write_text("a\n")
    (folder / "to_file").symlink_to("src/a.py")
    (folder / "to_file_by_its_whole_path").symlink_to(folder / "src/a.py")
    (folder / "to_folder").symlink_to("src")
    (folder / "to_nothing").symlink_to("src/new.py")
    (folder / "out").symlink_to(outside / "secret")
    (folder / "out_folder").symlink_to(outside)
    (folder / "out_to_nothing").symlink_to(outside / "new")
    (folder / "magic").symlink_to(f"/proc/self/root{outside}/secret")
    (folder / "circle").symlink_to("circle")
    (outside / "back").symlink_to(folder)
    return folder


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ("src/a.py", "src/a.py"),
        ("./src//../src/a.py", "src/a.py"),
        ("to_file_by_its_whole_path", "src/a.py"),
        ("to_folder/a.py", "src/a.py"),
        ("to_folder/../src/a.py", "src/a.py"),
        ("{outside}/back/src/a.py", "src/a.py"),
        ("out_folder/back/to_file", "src/a.py"),
    ],
)
def test_links_within_the_project_lead_to_the_real_path(
    worker: Worker, shared_project: Path, outside: Path, given: str, path: str
) -> None:
    given = given.format(project=shared_project, outside=outside)
    facts = worker.call("inspect", tool="Read", args={"file_path": given})
    assert facts == {"path": path, "kind": "file", "outside": False}
    read = worker.call("read", file_path=given, expect_path=path)
    assert (read["path"], read["text"]) == (path, "     1\ta")
    with pytest.raises(WorkerError, match="conflict"):
        worker.call("read", file_path=given, expect_path="other")


@pytest.mark.parametrize(
    ("given", "target"),
    [
        ("..", "{above}"),
        ("../x", "{above}/x"),
        ("src/../../x", "{above}/x"),
        ("/", "/"),
        ("{outside}/secret", "{outside}/secret"),
        ("out", "{outside}/secret"),
        ("out_folder/secret", "{outside}/secret"),
        ("out_to_nothing", "{outside}/new"),
        ("magic", "/proc/"),
        ("/proc/self/cwd/src/a.py", "/proc/"),
    ],
)
def test_a_path_that_leaves_the_project_is_refused_with_its_target(
    worker: Worker, shared_project: Path, outside: Path, given: str, target: str
) -> None:
    given = given.format(project=shared_project, outside=outside)
    target = target.format(above=shared_project.parent, outside=outside)
    facts = worker.call("inspect", tool="Write", args={"file_path": given})
    assert (facts["outside"], facts["path"]) == (True, None)
    for op, args in (
        ("read", {}),
        ("preview_write", {"content": ""}),
        ("write", {"content": ""}),
        ("edit", {"old_string": "s", "new_string": "t"}),
        ("grep", {"path": given, "pattern": "s"}),
        ("glob", {"path": given, "pattern": "*"}),
    ):
        how, details = outcome_of(worker, op, file_path=given, **args)
        assert how == "forbidden", (op, details)
        assert details["target"] == facts["target"]
    found = facts["target"][: len(target)] if target == "/proc/" else facts["target"]
    assert (found, (outside / "secret").read_text()) == (target, "secret\n")
    assert not (outside / "new").exists()


def test_a_write_through_a_link_changes_its_target(worker: Worker, shared_project: Path) -> None:
    written = worker.call("write", file_path="to_nothing", content="new\n")
    assert (written["path"], written["created"]) == ("src/new.py", True)
    assert (shared_project / "to_nothing").is_symlink()
    assert (shared_project / "src/new.py").read_text() == "new\n"


@pytest.mark.parametrize("given", ["", "a\0b", "circle", "src/a.py/x", "missing/../src/a.py"])
def test_what_is_no_path_is_refused(worker: Worker, given: str) -> None:
    with pytest.raises(WorkerError, match=r"invalid_arguments|forbidden|not_found"):
        worker.call("read", file_path=given)


ENDLESS_TEXT, ENDLESS_PATTERN = f"{'a' * 60}!\n", "(a+)+$"


@pytest.fixture(scope="module")
def tree(shared_project: Path) -> Path:
    tree = shared_project / "tree"
    files = {
        "a.py": "import os\nneedle = 1\nend\n", "src/b.py": "x\r\nNeedle = 2\r\ny\r\nz\r\nneedle\r\n",
        "src/c.ts": "needle()\n", "src/deep/d.tsx": "nothing\n", ".git/config": "needle\n",
        "binary": "needle\0", ".ENV": "needle\n", "src/.ssh/known": "needle\n",
        "keys/public.pem": "needle\n", "keys/private.pem": "needle\n",
    }  # fmt: skip
    for at, (name, text) in enumerate(files.items()):
        file = tree / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, newline="")
        os.utime(file, (1000 + at, 1000 + at))
    (tree / "link.py").symlink_to("a.py")
    (tree / "out").symlink_to("/etc")
    return tree


CONTENT = {"output_mode": "content"}
B_LINES = ("-1-x", ":2:Needle = 2", "-3-y", "-4-z", ":5:needle")
B_PY = "\n".join(f"tree/src/b.py{each}" for each in B_LINES)
SECRETS = {"excluded": [".env", ".ssh/", "tree/keys/*", "!public.pem"]}


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("*.py", ["src/b.py", "a.py"]),
        ("./*.py", ["a.py"]),
        ("TREE/*.py", ["a.py"]),
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
def test_glob_finds_no_secret(worker: Worker, tree: Path, pattern: str, found: list[str]) -> None:
    result = worker.call("glob", pattern=pattern.replace("TREE", str(tree)), path="tree", **SECRETS)
    assert result == {"paths": [f"tree/{each}" for each in found], "truncated": False}


@pytest.mark.parametrize(
    ("args", "text"),
    [
        ({}, "tree/a.py\ntree/keys/public.pem\ntree/src/b.py\ntree/src/c.ts"),
        ({"glob": "*.py", "output_mode": "count", "-i": True}, "tree/a.py:1\ntree/src/b.py:2"),
        ({"path": "tree/src/b.py", "-i": True, "-C": 1, **CONTENT}, B_PY),
        ({"glob": "src/*", "-n": False, "-B": 1, **CONTENT}, "tree/src/b.py-z\ntree/src/b.py:needle\n--\ntree/src/c.ts:needle()"),
        ({"pattern": "os.needle", "multiline": True, **CONTENT}, "tree/a.py:1:import os\ntree/a.py:2:needle = 1"),
        ({"path": "tree/src/.ssh"}, ""),
        ({"path": "tree/.ENV"}, ""),
    ],
)  # fmt: skip
def test_grep_finds_no_secret(worker: Worker, tree: Path, args: dict[str, Any], text: str) -> None:
    result = worker.call("grep", **{"pattern": "needle", "path": "tree", **SECRETS, **args})
    assert result == {"text": text, "truncated": False}


@pytest.mark.usefixtures("tree")
def test_grep_says_what_is_wrong_and_what_is_left_out(worker: Worker) -> None:
    error = worker.refused("grep", pattern="a(")
    assert (error.class_, "Python's re" in error.message) == ("invalid_arguments", True)
    few = worker.call("grep", pattern="needle", path="tree", head_limit=1)
    assert (few["text"], few["truncated"]) == ("tree/.ENV", True)
    for pattern in ("../*", "{a,b}" * 9):
        assert worker.refused("glob", pattern=pattern).class_ == "invalid_arguments"
    assert worker.refused("glob", pattern="*", path="missing").class_ == "not_found"


@pytest.mark.skipif(sys.platform != "linux", reason="/proc")
def test_reads_are_answered_during_a_search_which_ends_with_the_worker(tmp_path: Path) -> None:
    (tmp_path / "a").write_text(ENDLESS_TEXT)
    with Worker("files", tmp_path) as worker:
        search = worker.send("grep", pattern=ENDLESS_PATTERN)
        assert worker.call("read", file_path="a")["lines"] == 1
        assert not worker.answered(search)
        pid = worker.process.pid
        (child,) = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
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
