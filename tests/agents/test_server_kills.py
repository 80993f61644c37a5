"""Consoles and servers that are killed around calls: each effect once at most, nothing that stays, no outcome that lies.

As a program with FOLDER KILLS SEED, this file does the killing. Each console is a fork of that process, opens one
home, and makes calls of a server that appends a line for each effect, to which a person says yes at once.
"""

import asyncio
import collections
import contextlib
import json
import os
import random
import signal
import sys
import time
import traceback
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

import pytest

from aileron_core.connectors.servers.box import BoxedServers
from tests.support.core_harness import Core, audit_problems
from tests.support.mcp_servers import install, table
from tests.support.ordinary import ordinary_folder, run_as_ordinary
from tests.support.processes import alive, eventually, running_with, with_descendants
from tests.support.server_harness import query
from tests.support.variants import ALL, needs_bubblewrap

CALLS = 3
"""Made at once in one console: the gate lets one of a server's at a time through, the others wait."""
LONGEST = {"warm": 0.03, "cold": 0.3}
"""Seconds from the first yes to the kill, at most: by whether the server runs then or has to be started."""
APPENDING = """
def read():
    line = sys.stdin.readline()
    while not line:
        time.sleep(600)
    return json.loads(line)

def call(id, name, args):
    time.sleep(0.002)
    with open(os.environ["EFFECTS"], "a") as file:
        file.write(args["name"] + "\\n")
    time.sleep(0.002)
    send(id=id, result=text("done"))
"""


async def run_console(folder: Path, names: list[str], *, warm: bool, say: IO[str]) -> None:
    """Be a console: end what an earlier one left, then make the calls *names*, and say which they are."""

    def tell(**what: object) -> None:
        print(json.dumps(what), file=say, flush=True)

    boxes = BoxedServers(folder / "home", folder, {}, tree=Path)
    async with Core.open(folder / "home", start_server=boxes) as core:
        for view in await core.approvals():
            if view.ended_at is None:
                await core.looked(view.approval_id)
                await core.app.approvals.deny(view.approval_id, "the next round")
        asked = [names.pop(0)] if warm else []
        for name in asked:
            view = await core.ask_for("small.set", {"name": name})
            tell(name=name, id=view.approval_id)
            await core.run(view)
        views = [await core.ask_for("small.set", {"name": name}) for name in names]
        for name, view in zip(names, views, strict=True):
            tell(name=name, id=view.approval_id)
        tell(asked=True)
        for view in views:
            await core.approve(view)
        for view in views:
            await core.ended(view)
        tell(over=True)
        await asyncio.Event().wait()


class Rounds:
    """Consoles in a row on one home."""

    def __init__(self, folder: Path, seed: int, hosts: tuple[str, ...]) -> None:
        self.folder, self.moments = folder, random.Random(seed)
        self.effects = folder / "work" / "effects"
        self.ids: dict[str, str] = {}
        """The calls' approvals, by name."""
        self.names = 0
        (folder / "work").mkdir()
        (folder / "home").mkdir(mode=0o700)
        made = table(folder, APPENDING, env={"STATE": "/dev/null", "EFFECTS": str(self.effects)})
        self.server = made.program[-1]
        program = ("/usr/bin/python3", *made.program[1:])
        work = str(folder / "work")
        changes = {"program": program, "files_read": (self.server,), "files_write": (work,)}
        install(folder / "home", replace(made, hosts=hosts, **changes))

    @contextlib.contextmanager
    def console(self, *, calls: int = CALLS, warm: bool = False) -> Iterator[tuple[int, IO[str]]]:
        """Start one, and yield its process and what it says; it is killed in the end."""
        names = [f"call-{self.names + number}" for number in range(calls + warm)]
        self.names += len(names)
        reading, writing = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(reading)
            with os.fdopen(writing, "w") as say:
                try:
                    asyncio.run(run_console(self.folder, names, warm=warm, say=say))
                except Exception:
                    traceback.print_exc()
                    os._exit(1)
        os.close(writing)
        try:
            with os.fdopen(reading) as said:
                yield pid, said
        finally:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)

    def heard(self, said: IO[str], until: str) -> None:
        """Take note of the calls that a console makes, up to a word of it."""
        for line in said:
            told = json.loads(line)
            if "id" in told:
                self.ids[told["name"]] = told["id"]
            if until in told:
                return
        raise AssertionError(f"a console ended before it was killed: {until}")

    def kill(self, victim: str) -> None:
        """Let a console make its calls, and kill it or its server meanwhile."""
        warm = self.moments.random() < 0.7
        with self.console(warm=warm) as (pid, said):
            self.heard(said, "asked")
            time.sleep(self.moments.uniform(0, LONGEST["warm" if warm else "cold"]))
            if victim == "server":
                self.shoot(pid)
                self.heard(said, "over")
            there = with_descendants({pid})
        self.wait_for_end(there)
        assert running_with(self.server) == []

    def shoot(self, console: int) -> None:
        """Kill the server itself, or a part of the box around it."""
        box = eventually(lambda: with_descendants({console}) - {console}, "a server was started")
        victim = self.moments.choice(sorted(box))
        there = with_descendants({victim})
        with contextlib.suppress(ProcessLookupError):
            os.kill(victim, signal.SIGKILL)
        self.wait_for_end(there)

    def wait_for_end(self, pids: set[int]) -> None:
        since = time.monotonic()
        while left := pids & alive():
            assert time.monotonic() - since < 5.0, f"still there: {left}"
            time.sleep(0.005)

    def outcomes(self) -> dict[str, int]:
        """Return how many calls ended in which state with how many effects, once a last console has looked."""
        with self.console(calls=0) as (_, said):
            self.heard(said, "over")
        states = dict(query(self.folder / "home", "SELECT approval_id, state FROM runs"))
        effects = collections.Counter(self.effects.read_text().split())
        found = (f"{states[id_]}, {effects[name]} effects" for name, id_ in self.ids.items())
        return dict(collections.Counter(found))


def kill_at_random(folder: Path, kills: int, seed: int) -> dict[str, Any]:
    kinds = {"without hosts": (), "with hosts": ("api.example:443",)}
    result: dict[str, Any] = {}
    for number, (kind, hosts) in enumerate(kinds.items()):
        (folder / str(number)).mkdir()
        rounds = Rounds(folder / str(number), seed, hosts)
        for each in range(kills // len(kinds)):
            rounds.kill("server" if each % 2 else "console")
        result[kind] = {
            "outcomes": rounds.outcomes(),
            "audit": [each.message for each in audit_problems(folder / str(number) / "home")],
        }
    return result


KILLS = 200 if ALL else 10
"""`make test-all` takes the many."""
TRUE = {"completed, 1 effects", "unknown, 0 effects", "unknown, 1 effects", "failed, 0 effects", "denied, 0 effects"}  # fmt: skip


@needs_bubblewrap
@pytest.mark.timeout(1800)
def test_a_kill_at_any_moment_doubles_no_effect_and_leaves_no_process() -> None:
    """The child fails where a process outlives its console or its box by five seconds."""
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    with ordinary_folder() as folder:
        done = run_as_ordinary(Path(__file__), folder, str(KILLS), str(seed), timeout=1800)
    print(done.stdout)
    for met in json.loads(done.stdout).values():
        assert {*met["outcomes"]} <= TRUE, done.stdout
        assert met["audit"] == [], done.stdout


if __name__ == "__main__":
    print(json.dumps(kill_at_random(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))))
