"""Measure the packages: lines of each room, what is behind the gate, what a console loads, who knows a verb.

    python .ci/shape.py            # print all of it
    python .ci/shape.py --check    # fail where a room or page is larger than .ci/shape.toml allows

Run by `make shape` and `make check`, with the interpreter of .venv. A room is a folder or a module at
the top of a package; a line is a line of a file, blank ones too.
"""

import ast
import os
import pty
import re
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BUDGETS = Path(__file__).with_suffix(".toml")
PACKAGES = ("aileron_core", "aileron_mcp", "aileron_tui")
GATE = ("aileron_core.runs.gate", "aileron_core.runs.decisions")
VERBS = {
    "lock the vault": r"LockVault|lock_vault",
    "stop a run": r"StopRun|stop_run",
    "undo": r"Undo[A-Z]\w*|undo_\w+",
    "revoke": r"RevokeAccount|revoke|revoke_\w+",
    "allow a host": r"AllowHost|allow_host|allowed_hosts|host_allowed",
}
"""What the code calls what a person does; a file knows it that has one of the words."""


def modules() -> dict[str, Path]:
    """Return every module of the packages by its name."""
    paths = (path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py")))
    named = ((".".join(path.relative_to(ROOT).with_suffix("").parts), path) for path in paths)
    return {name.removesuffix(".__init__"): path for name, path in named}


MODULES = modules()


def lines(names: Iterable[str]) -> int:
    """Return how many lines these modules have together."""
    return sum(len(MODULES[name].read_text(encoding="utf-8").splitlines()) for name in names)


def room(name: str) -> str:
    """Return the room of a module: `runs` for `aileron_core.runs.gate`."""
    package, _, rest = name.partition(".")
    head = rest.partition(".")[0]
    folder = head and not (ROOT / package / f"{head}.py").is_file()
    if package == "aileron_mcp":
        return package
    return f"{package}/{head}" if folder else f"{package}/*.py"


def imports(name: str) -> Iterator[str]:
    """Yield the modules that *name* imports anywhere in its text, deferred imports too."""
    for node in ast.walk(ast.parse(MODULES[name].read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names if each.name in MODULES)
        elif isinstance(node, ast.ImportFrom) and node.module in MODULES:
            yield node.module
            inner = (f"{node.module}.{each.name}" for each in node.names)
            yield from (each for each in inner if each in MODULES)


def behind(starts: Iterable[str]) -> set[str]:
    """Return *starts* and all that they import, and what that imports."""
    found, waiting = set[str](), [*starts]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += imports(name)
    return found


def rooms() -> Counter[str]:
    """Return the lines of each room."""
    counted: Counter[str] = Counter()
    for name in MODULES:
        counted[room(name)] += lines([name])
    return counted


def loaded() -> set[str]:
    """Return the modules of ours that a console has loaded a moment after it has drawn and serves."""
    with tempfile.TemporaryDirectory(prefix="ail-") as folder:
        home, said = Path(folder, "home"), Path(folder, "modules")
        program = (
            "import atexit, sys; "
            f"atexit.register(lambda: open({str(said)!r}, 'w').write('\\n'.join(sys.modules))); "
            f"sys.argv = ['aileron', 'console', '--home', {str(home)!r}]; "
            "from aileron_tui.cli import main; main()"
        )
        master, slave = pty.openpty()
        console = subprocess.Popen(
            [sys.executable, "-I", "-c", program], stdin=slave, stdout=slave, stderr=slave,
            start_new_session=True, env={**os.environ, "TERM": "xterm-256color", "COLORFGBG": "15;0"},
        )  # fmt: skip
        os.set_blocking(master, False)
        deadline = time.monotonic() + 60
        settled = None
        while settled is None or time.monotonic() < settled:
            assert time.monotonic() < deadline, "the console did not start"
            assert console.poll() is None, "the console ended"
            if settled is None and (home / "daemon.json").exists():
                settled = time.monotonic() + 2
            try:
                os.read(master, 65536)
            except BlockingIOError:
                time.sleep(0.05)
        console.terminate()
        console.wait(60)
        return {name for name in said.read_text().split("\n") if name in MODULES}


def share_of_bodies() -> tuple[int, float]:
    """Return the lines of the tests, and which part of them is inside a test function."""
    total = inside = 0
    for path in (ROOT / "tests").rglob("*.py"):
        if "node_modules" in path.parts:
            continue
        text = path.read_text(encoding="utf-8")
        total += len(text.splitlines())
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith(
                "test_"
            ):
                inside += (node.end_lineno or node.lineno) - node.lineno + 1
    return total, inside / total


def over_budget() -> list[str]:
    """Return a sentence for each room with more lines, and each page with more bytes, than it may have."""
    allowed = tomllib.loads(BUDGETS.read_text(encoding="utf-8"))
    counted = {**rooms(), "tests": share_of_bodies()[0]}
    pages = {
        name: sum(page.stat().st_size for page in ROOT.glob(name)) for name in allowed["bytes"]
    }
    return [
        f"{name} has {has[name]:,} {unit}, and may have {allowed[unit].get(name, 0):,} (.ci/shape.toml)"
        for unit, has in (("lines", counted), ("bytes", pages))
        for name in sorted(has)
        if has[name] > allowed[unit].get(name, 0)
    ]


def report() -> None:
    """Print every figure."""
    allowed = tomllib.loads(BUDGETS.read_text(encoding="utf-8"))["lines"]
    for name, count in rooms().most_common():
        print(f"{name:28}{count:8,} of {allowed.get(name, 0):,}")
    print(f"{'packages':28}{lines(MODULES):8,} in {len(MODULES)} files")
    closure = behind(GATE)
    print(f"{'behind the gate':28}{lines(closure):8,} in {len(closure)} modules")
    there = loaded()
    print(f"{'loaded in a console':28}{lines(there):8,} in {len(there)} modules")
    for verb, words in VERBS.items():
        pattern = re.compile(rf"\b(?:{words})\b")
        know = [
            n for n, path in MODULES.items() if pattern.search(path.read_text(encoding="utf-8"))
        ]
        print(f"{verb:28}{len(know):8} files")
    total, share = share_of_bodies()
    print(f"{'tests':28}{total:8,} lines, {share:.0%} of them in a test's body")


if __name__ == "__main__":
    if "--check" not in sys.argv:
        report()
    elif problems := over_budget():
        sys.exit("\n".join(problems))
