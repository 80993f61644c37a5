"""A whole task of each real agent through Aileron's tools: read, edit, run the tests, commit.

With Codex, contained and not; with all six in `make test-all`.
"""

import contextlib
from pathlib import Path

import pytest

from tests.agents.agents_bench import PROMPTS, Bench, CallTool
from tests.agents.llm import in_turn, offered_tools
from tests.agents.test_contained_git import person_git, session_folders
from tests.agents.test_intercepted_tools import ACTIONS, CASES
from tests.support.variants import variants

pytestmark = pytest.mark.timeout(300)

CONTAINED, UNCONTAINED = ("--intercept-builtins",), ("--intercept-builtins", "--no-sandbox")
BEFORE = 'def greet(name):\n    return "Hello"\n'
AFTER = 'def greet(name):\n    return "Hello, " + name\n'
TEST = """\
import unittest

import greeting


class Greeting(unittest.TestCase):
    def test_it_names_whom_it_greets(self):
        self.assertEqual(greeting.greet("Ada"), "Hello, Ada")
"""
TASK = (
    ("Read", {"file_path": "greeting.py"}),
    ("Edit", {"file_path": "greeting.py", "old_string": '"Hello"', "new_string": '"Hello, " + name'}),
    ("Bash", {"command": "python3 -B -m unittest -q"}),
    ("Bash", {"command": "git add -A && git commit -qm 'Greet by name'"}),
)  # fmt: skip
ASKED = ("builtin.edit", "builtin.bash", "builtin.bash")
TOLD = (
    '     1\tdef greet(name):\n     2\t    return "Hello"',
    "Wrote greeting.py (45 bytes).",
    "\nRan 1 test in ",
    "The command printed nothing. Exit code 0.",
)
MAY_CHANGE = ("index", "refs/heads/main", "logs/HEAD", "logs/refs/heads/main", "COMMIT_EDITMSG")
"""In a git folder, by a commit."""


def approve_each(bench: Bench, *actions: str) -> None:
    """Approve these calls, each once a person could; no other may be asked."""
    answered: set[str] = set()

    def asked() -> list[str]:
        views = bench.console.views.items()
        return [name for name, view in views if name not in answered and view["digest"]]

    for action in actions:
        assert bench.console.until(lambda: bool(asked()))
        (approval,) = asked()
        assert bench.console.views[approval]["action"] == action
        bench.console.approve(approval)
        answered.add(approval)


def at_work_in(folder: Path) -> list[str]:
    """Return the command lines of the processes that name *folder*, or work in it."""
    found: list[str] = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # one that has just ended
            line = (
                (process / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
            )
            if str(folder) in line or str(folder) in str((process / "cwd").readlink()):
                found.append(line)
    return found


def set_up(bench: Bench, agent: str) -> None:
    """A person with a name in git, their repository with one commit, their model."""
    bench.configure(agent)
    bench.write(".gitconfig", "[user]\n\tname = Ada\n\temail = ada@example.com\n")
    (bench.project / "greeting.py").write_text(BEFORE)
    (bench.project / "test_greeting.py").write_text(TEST)
    person_git(bench, "init", "-q", "-b", "main")
    person_git(bench, "add", ".")
    person_git(bench, "commit", "-qm", "Greet")


def is_done(bench: Bench) -> None:
    """Fail unless the task is done, in the files and in the person's repository."""
    assert (bench.project / "greeting.py").read_text() == AFTER
    log = person_git(bench, "log", "--format=%an <%ae> %s")
    assert log == "Ada <ada@example.com> Greet by name\nPerson <p@q> Greet"
    assert person_git(bench, "show", "HEAD:greeting.py") == AFTER.strip()
    assert person_git(bench, "diff", "--name-only", "HEAD~") == "greeting.py"
    assert person_git(bench, "status", "--porcelain", "--ignored") == ""


def nothing_else(before: dict[str, str], after: dict[str, str], *, contained: bool) -> None:
    """Fail if more has changed in home or project than the task needs; uncontained agents keep notes at home."""
    changed = {name for name in before if after.get(name) != before[name]}
    made = {name for name in after.keys() - before.keys() if not name.startswith("project/.git/")}
    may = {"project/greeting.py", *(f"project/.git/{name}" for name in MAY_CHANGE)}
    assert changed <= may
    assert [name for name in made if contained or name.startswith("project/")] == []


@pytest.mark.parametrize("options", variants([CONTAINED, UNCONTAINED]), ids=" ".join)
@pytest.mark.parametrize("agent", variants(CASES))
def test_a_whole_task_is_done_with_ailerons_tools(
    agent: str, options: tuple[str, ...], bench: Bench
) -> None:
    """Each call on record, each result told; nothing but the task done, and no process left."""
    case = CASES[agent]
    set_up(bench, agent)
    bench.llm.script = in_turn(
        *(CallTool(name=f"{case.prefix}{name}", args=args) for name, args in TASK)
    )
    before = bench.fingerprint()
    # To a model that it does not know, Codex offers sub-agents at once.
    args = case.args if agent == "codex" else PROMPTS[agent]
    with bench.launched(agent, *args, options=options) as running:
        approve_each(bench, *ASKED)
        assert at_work_in(bench.project)
        ended = running.end()
    assert at_work_in(bench.project) == []
    assert "FINAL" in ended.output
    is_done(bench)
    nothing_else(before, bench.fingerprint(), contained=options == CONTAINED)
    assert [*bench.left_behind(), *session_folders(bench)] == []

    for result, told in zip(bench.llm.results, TOLD, strict=True):
        assert told in result
    assert "OK" in bench.llm.results[2]
    ours = {f"{case.prefix}{name}" for name in ACTIONS}
    for tools in filter(None, map(offered_tools, bench.llm.seen)):
        assert ours <= tools <= ours | case.stays
    runs = bench.console.rows("action, state, gated")
    assert runs == [("builtin.read", "completed", 0)] + [(name, "completed", 1) for name in ASKED]
