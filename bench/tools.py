"""The built-in tools through a launch, gate, record and sandbox, beside bare stdio MCP servers doing the same.

Rules allow every call, so nobody is asked. The peers, on the `mcp` package and on the official TypeScript
SDK that `make node` fetches, check nothing and record nothing. Then a rehearsal of `true`, beside a
bubblewrap sandbox of its own for `true`. Uses the tests' ordinary user, since nobody contains an agent of root's.
"""

import contextlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

from aileron_core.containment.programs import own_interpreter
from bench.support import Aims, amount, milliseconds
from tests.support.command_sandbox import sandboxed_worker
from tests.support.ordinary import AS_ORDINARY, OWNS, USER, give, ordinary_folder
from tests.support.server_harness import CLI, Console

ROUNDS = amount(100, check=2)
HERE = Path(__file__).parent
NODE = HERE.parent / "tests" / "node" / "node_modules"
_AIM, _REHEARSAL_AIM = 4.0, 40.0
_POLICY = """\
[[rule]]
tools = ["Edit"]
paths = ["notes.txt"]
decision = "allow"

[[rule]]
tools = ["Bash"]
command = ["true"]
decision = "allow"
"""
_ACCEPT = """\
import asyncio, sys
from pathlib import Path
from aileron_core.app import App, AppOptions
from aileron_core.home.layout import Home
from aileron_core.library.accepted_settings import load_policy

async def accept(home):
    home.prepare()
    async with App.open(home, AppOptions(policy=load_policy(home.policy))) as app:
        await app.accepted_policy.accept(app.accepted_policy.sha256)

asyncio.run(accept(Home(Path(sys.argv[1]))))
"""


def _fill(project: Path) -> None:
    """Make 40 modules of 40 functions, and a file to edit."""
    (project / "src").mkdir(parents=True)
    for number in range(40):
        text = "".join(f"def function_{each}():\n    return {each}\n\n\n" for each in range(40))
        (project / "src" / f"module_{number}.py").write_text(text)
    (project / "notes.txt").write_text("one\n")


def _job(*server: str) -> str:
    return json.dumps({"server": server, "rounds": ROUNDS})


def _figures(output: str) -> dict[str, list[float]]:
    for line in output.splitlines():
        if line.startswith("FIGURES "):
            return json.loads(line.removeprefix("FIGURES "))
    raise SystemExit(f"no figures: {output[-2000:]}")


@contextlib.contextmanager
def _console(folder: Path) -> Generator[Console, None, None]:
    """Run a console whose rules allow what is measured."""
    home = folder / "aileron"
    home.mkdir(mode=0o700)
    (home / "policy.toml").write_text(_POLICY)
    give(folder)
    env = {OWNS: str(folder)}
    command = [*AS_ORDINARY, sys.executable, "-I", "-c", _ACCEPT, str(home)]
    subprocess.run(command, env={**os.environ, **env}, check=True)
    console = Console(home, command=(*AS_ORDINARY, *CLI, "serve"), env=env)
    try:
        yield console
    finally:
        console.close()


def _through_aileron(folder: Path) -> dict[str, list[float]]:
    """Launch an agent that makes the calls."""
    for name in ("person", "bin"):
        (folder / name).mkdir()
    _fill(folder / "project")
    agent = folder / "bin" / "codex"
    agent.write_text(f"#!/usr/bin/env python3\n{(HERE / 'tools_agent.py').read_text()}")
    agent.chmod(0o755)
    path = [str(agent.parent), str(own_interpreter().parent), os.environ["PATH"]]
    env = {"HOME": str(folder / "person"), "PATH": os.pathsep.join(path), OWNS: str(folder)}
    with _console(folder) as console:
        done = subprocess.run(
            [*AS_ORDINARY, *CLI, "launch", "codex", "--home", str(console.home), "--builtins", "--",
             _job("aileron-mcp")],
            cwd=folder / "project", env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, check=False,
        )  # fmt: skip
    return _figures(done.stdout)


def _bare(folder: Path, *server: str) -> dict[str, list[float]]:
    _fill(folder)
    done = subprocess.run(
        [sys.executable, "-I", str(HERE / "tools_agent.py"), _job(*server)],
        cwd=folder, stdout=subprocess.PIPE, text=True, check=True,
    )  # fmt: skip
    return _figures(done.stdout)


def _rehearsals() -> tuple[list[float], list[float]]:
    """Return how long a rehearsal of `true` takes, and a sandbox that runs it, in turn."""
    bwrap = shutil.which("bwrap")
    assert bwrap is not None
    box = [bwrap, "--unshare-all", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc",
           "--tmpfs", "/tmp", "bash", "-c", "true"]  # fmt: skip
    same: dict[str, Any] = {"user": USER, "extra_groups": []} if AS_ORDINARY else {}
    rehearsed: list[float] = []
    bare: list[float] = []
    with sandboxed_worker({"a.txt": "one\n"}) as sandbox:
        for _ in range(ROUNDS):
            began = time.perf_counter()
            sandbox.rehearse("true")
            rehearsed.append(time.perf_counter() - began)
            sandbox.discard_all()
            began = time.perf_counter()
            subprocess.run(box, check=True, **same)
            bare.append(time.perf_counter() - began)
    return rehearsed, bare


def _over(mine: list[float], theirs: list[float]) -> str:
    """Return how much longer *mine* took; at best, which other programs disturb least, as well."""
    middle, other = statistics.median(mine), statistics.median(theirs)
    best = (min(mine) - min(theirs)) * 1e3
    return f"{(middle - other) * 1e3:.1f} ms, ratio {middle / other:.1f}; at best {best:.1f} ms"


def main() -> None:
    """Print each tool's times and what Aileron adds, then those of the rehearsal."""
    print("tools: Read, Edit, Bash (true), Grep (40 files)")
    aims = Aims()
    peers = {"python": [sys.executable, "-I", str(HERE / "tools_peer.py")]}
    if (chosen := NODE / ".node").exists():
        sdk = str(NODE / "@modelcontextprotocol" / "sdk")
        peers["node"] = [chosen.read_text(), str(HERE / "tools_peer.mjs"), sdk]
    else:
        print("  node is not measured: run `make node`")
    with ordinary_folder() as folder:
        took = {"aileron": _through_aileron(folder)}
        for name, server in peers.items():
            took[name] = _bare(folder / name, *server)
    for tool, mine in took["aileron"].items():
        for name, times in took.items():
            print(f"  {tool:5} {name:8} {milliseconds(times[tool])}")
        for name in peers:
            print(f"  {tool:5} over {name}: {_over(mine, took[name][tool])}")
            if name == "node":
                over = statistics.median(mine) - statistics.median(took[name][tool])
                aims.at_most(f"{tool}, ms over a bare server", over * 1e3, _AIM)
    rehearsed, bare = _rehearsals()
    print(f"  rehearsal of true      {milliseconds(rehearsed)}")
    print(f"  bare sandbox for true  {milliseconds(bare)}")
    print(f"  over it: {_over(rehearsed, bare)}")
    over = statistics.median(rehearsed) - statistics.median(bare)
    aims.at_most("rehearsal, ms over a bare sandbox", over * 1e3, _REHEARSAL_AIM)
    aims.report()


if __name__ == "__main__":
    main()
