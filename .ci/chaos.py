"""Run 50 agents while their console, relays and connectors are killed at random; count what was lost.

    PYTHONPATH=. python .ci/chaos.py [--kills N] [--agents N] [--hours N] [--seed N]

A person answers what the agents ask. Meanwhile console, relays and the workers of the built-in tools get
SIGKILL, agents hang up on their relays, threads and processes stand still, the disk is slow or full, the
console's clock jumps, and the service does what it was asked and never answers. At the end each effect
at the service and in the project is held against what the agents were told and what is on record.
With --hours the console is not killed: what it uses is printed by the hour.
"""

import argparse
import collections
import contextlib
import dataclasses
import http.client
import json
import logging
import mmap
import os
import random
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import stress

from examples.mailbox.server import Mailbox
from tests.support import making
from tests.support.core_harness import audit_problems, install_examples
from tests.support.forked import forked
from tests.support.mcp_harness import RawRelay
from tests.support.processes import running_with, with_descendants
from tests.support.server_harness import CLI, ROOT, Attended, query

LAUNCHED = 2
"""Agents that have the built-in tools; the others call a connector."""
DONE = ("completed", "executing", "unknown")
"""States of a run that may have had its effect."""
GIVES_UP = (AssertionError, OSError, ValueError, http.client.HTTPException)
"""What an agent, or a request, meets whose relay or console is gone."""
RATE = 1.5
"""Seconds until the next trouble, at most."""
_CLOCK = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
static int (*real)(clockid_t, struct timespec *);
static volatile long long *ahead;
__attribute__((constructor)) static void begin(void) {
    real = dlsym(RTLD_NEXT, "clock_gettime");
    int file = open(getenv("CHAOS_CLOCK"), O_RDONLY | O_CLOEXEC);
    ahead = mmap(0, 8, PROT_READ, MAP_SHARED, file, 0);
}
int clock_gettime(clockid_t clock, struct timespec *at) {
    if (!real) begin();
    int done = real(clock, at);
    if (clock == CLOCK_REALTIME) at->tv_sec += *ahead;
    return done;
}
int gettimeofday(struct timeval *at, void *zone) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    at->tv_sec = now.tv_sec; at->tv_usec = now.tv_nsec / 1000;
    return 0;
}
time_t time(time_t *at) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return at ? *at = now.tv_sec : now.tv_sec;
}
"""
"""Sets a program's clock ahead or back. Debian's libfaketime 0.9.10 does so too, but a console hangs under it."""


@dataclasses.dataclass(slots=True)
class Call:
    """One gated call: its effect's name, what its agent was told, and what the service saw."""

    name: str
    told: str | None = None
    ids: set[str] = dataclasses.field(default_factory=set)
    effects: int = 0


class CountingMailbox(Mailbox):
    """A mailbox that counts each request to send, also of a draft that was sent before."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: collections.Counter[str] = collections.Counter()
        self._send, self._state.send = self._state.send, self._count

    def _count(self, draft: str) -> dict[str, Any] | None:
        self.asked[draft] += 1
        return self._send(draft)

    def new_draft(self) -> str:
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.port)) as connection:
            raw = "VG86IGFAYi5leGFtcGxlDQpTdWJqZWN0OiBjaGFvcw0KDQpoZWxsbw=="
            headers = {"Content-Type": "application/json", "Host": self.host}
            body = json.dumps({"message": {"raw": raw}})
            connection.request("POST", "/gmail/v1/users/me/drafts", body, headers)
            return json.loads(connection.getresponse().read())["id"]


class Agent(threading.Thread):
    """An agent behind a relay: it reads a draft, has it sent, and asks until it hears how that ended."""

    def __init__(self, chaos: "Chaos") -> None:
        super().__init__(daemon=True)
        self._chaos = chaos
        self._relay: RawRelay | None = None
        self._number = 0

    def run(self) -> None:
        while not self._chaos.over.is_set():
            with contextlib.suppress(*GIVES_UP):
                token = self._chaos.console.session(ttl_seconds=30 * 86400)["token"]
                self._work(token)
            time.sleep(0.2)

    def _work(self, token: str) -> None:
        while not self._chaos.over.is_set():
            relay = self._relay = RawRelay(self._chaos.console.home, AILERON_TOKEN=token)
            try:
                relay.handshake()
                while not self._chaos.over.is_set():
                    self._call(relay, self._chaos.begin(self._chaos.mailbox.new_draft()))
            except GIVES_UP:
                if relay.process.poll() == 69:
                    return  # no console, or this session has ended
            finally:
                relay.process.kill()
                relay.outcome()

    def _call(self, relay: RawRelay, call: Call) -> None:
        began = time.monotonic()
        if self._ask(relay, "get_draft", id=call.name).get("status") == "completed":
            self._chaos.seconds.append(time.monotonic() - began)
        told = self._ask(relay, "send_draft", draft_id=call.name)
        while told.get("status") == "pending_approval":
            call.ids.add(told["approval_id"])
            told = self._ask(
                relay, "check_action_status", approval_id=told["approval_id"], wait_seconds=20
            )
        call.told = told.get("status") or told["error"]["class"]

    def _ask(self, relay: RawRelay, tool: str, **arguments: Any) -> dict[str, Any]:
        self._number += 1
        relay.send("tools/call", self._number, name=tool, arguments=arguments)
        answer = relay.answer(self._number)
        if "error" in answer:
            safe = "safe to repeat" in answer["error"]["message"]
            return {"status": "not run" if safe else "an error of the protocol"}
        return answer["result"]["structuredContent"]

    def kill(self) -> bool:
        if (relay := self._relay) is None or relay.process.poll() is not None:
            return False
        relay.process.kill()
        return True

    def hang_up(self) -> None:
        if (relay := self._relay) is not None and relay.process.stdin is not None:
            with contextlib.suppress(OSError, ValueError):
                relay.process.stdin.close()


class LaunchedAgent(threading.Thread):
    """An agent behind `aileron launch` that has commands run by the built-in tools, over and over."""

    def __init__(self, chaos: "Chaos", folder: Path) -> None:
        super().__init__(daemon=True)
        self._chaos = chaos
        self.project = folder / "project"
        self.project.mkdir(parents=True)
        agent = ROOT / "tests" / "agents" / "mcp_agent.py"
        made = making.program(
            folder / "bin" / "codex", f"#!{sys.executable} -I\n{agent.read_text()}"
        )
        self._env = {
            name: value for name, value in os.environ.items() if not name.startswith("AILERON_")
        }
        self._env |= {
            "HOME": str(folder),
            "OPENAI_API_KEY": "none",
            "PATH": f"{made.parent}{os.pathsep}{os.environ['PATH']}",
        }
        self._launch: subprocess.Popen[str] | None = None

    def run(self) -> None:
        while not self._chaos.over.is_set():
            calls = [self._chaos.begin(f"{self.project.parent.name}-{os.urandom(8).hex()}") for _ in range(4)]  # fmt: skip
            made = [["Bash", {"command": f"echo {call.name} >> made"}] for call in calls]
            home = str(self._chaos.console.home)
            command = [*CLI, "launch", "codex", "--home", home, "--no-sandbox", "--builtins"]
            self._launch = forked(
                [*command, "--", json.dumps(made)], cwd=self.project, env=self._env, text=True,
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            )  # fmt: skip
            said, _ = self._launch.communicate()
            answers = [
                json.loads(line[7:]) for line in said.splitlines() if line.startswith("ANSWER {")
            ][1:]
            for call, answer in zip(calls, answers, strict=False):
                call.told = "completed" if not answer["failed"] else "an error of a tool"
            self._chaos.did["launches without an answer"] += not answers
            time.sleep(0.2)

    def kill(self) -> bool:
        """Kill one of its workers; False if there is none."""
        workers = running_with("/worker\0", str(self.project))
        for pid in workers[:1]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                return True
        return False

    def end(self) -> None:
        if self._launch is not None and self._launch.poll() is None:
            for pid in with_descendants({self._launch.pid}):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    def made(self) -> list[str]:
        path = self.project / "made"
        return path.read_text().split() if path.exists() else []


class Chaos:
    """The console, its person, everybody who asks, and all that happens to them."""

    def __init__(self, folder: Path, mailbox: CountingMailbox, asked: argparse.Namespace) -> None:
        self.mailbox = mailbox
        self.over = threading.Event()
        self.calls: list[Call] = []
        self.seconds: list[float] = []
        self.did: collections.Counter[str] = collections.Counter()
        self.chance = random.Random(asked.seed)
        self._answered: dict[tuple[str, str], float] = {}
        self._ballast = folder / "home" / "ballast"
        self.full = _mounted(folder)
        (folder / "clock").write_bytes(bytes(8))
        with (folder / "clock").open("r+b") as file:
            self._clock = mmap.mmap(file.fileno(), 8)
        made = {"slow": stress.SLOW_DISK, "jump": _CLOCK}
        preloaded = [str(stress.library(folder, *each)) for each in made.items()]
        os.environ |= {"LD_PRELOAD": ":".join(preloaded), "CHAOS_CLOCK": str(folder / "clock")}
        os.environ[stress.MARK] = "1"  # of what is started from here on
        home = folder / "home"
        home.mkdir(mode=0o700, exist_ok=True)
        install_examples(home)
        self.console = Attended(home, mailbox)
        self.launched = [LaunchedAgent(self, folder / f"launched{n}") for n in range(LAUNCHED)]
        self.agents = [Agent(self) for _ in range(asked.agents - LAUNCHED)]

    def begin(self, name: str) -> Call:
        self.calls.append(call := Call(name))
        return call

    # The person

    def attend(self, seconds: float) -> None:
        """Answer what waits for *seconds*; most with a yes."""
        until = time.monotonic() + seconds

        def answer() -> bool:
            now = time.monotonic()
            for id_, view in [*self.console.views.items()]:
                key = (id_, view["digest"])
                if view["state"] not in ("pending", "checking", "approved", "executing"):
                    del self.console.views[id_]
                elif view["state"] == "pending" and view["digest"] and self._answered.get(key, 0) < now - 5:  # fmt: skip
                    self._answered[key] = now
                    if self.chance.random() < 0.9:
                        self.console.tell(approve=id_, digest=view["digest"])
                    else:
                        self.console.tell(deny=id_, reason="no")
            return now > until

        while time.monotonic() < until:
            with contextlib.suppress(AssertionError):  # nothing came
                if not self.console.until(answer, seconds=min(0.2, until - time.monotonic())):
                    self.did["consoles that ended by themselves"] += 1
                    self.restart()

    # What happens

    def restart(self) -> None:
        self.console.end(signal.SIGKILL)
        self._fill(full=False)
        self._answered.clear()
        self.console.start()
        if self.chance.random() < 0.8:  # else what comes next comes while it starts
            heard, until = len(self.seconds), time.monotonic() + 60
            while len(self.seconds) == heard and time.monotonic() < until:
                self.attend(0.2)

    def _fill(self, *, full: bool) -> None:
        """Let the console's disk be full, or no longer: its file system, or every file as large as it may be."""
        if not self.full:
            limit = 4096 if full else resource.RLIM_INFINITY
            with contextlib.suppress(ProcessLookupError):
                hard = resource.prlimit(self.console.process.pid, resource.RLIMIT_FSIZE)[1]
                resource.prlimit(self.console.process.pid, resource.RLIMIT_FSIZE, (limit, hard))
        elif full:
            with contextlib.suppress(OSError), self._ballast.open("wb", buffering=0) as file:
                while file.write(bytes(1 << 16)):
                    pass
        else:
            self._ballast.unlink(missing_ok=True)

    def _jump(self, seconds: int) -> None:
        self._clock[:] = struct.pack("=q", seconds)

    def trouble(self) -> None:
        """Make one of the troubles that kill nobody."""
        kinds: list[tuple[str, Callable[[], object]]] = [
            ("dropped relays", lambda: self.chance.choice(self.agents).hang_up()),
            ("lost answers", lambda: self.mailbox.control(lose_answer="send")),
            ("full disks", lambda: (self._fill(full=True), self.attend(self.chance.random()))),
            ("clock jumps", lambda: self._jump(self.chance.randint(-7200, 7200))),
        ]
        name, act = self.chance.choice(kinds)
        act()
        self.did[name] += 1
        if name == "full disks" and self.chance.random() < 0.5:
            self._fill(full=False)  # else only after what comes next

    def kill(self, *, console: bool) -> bool:
        """Kill one of them; False if it was not there."""
        victim = self.chance.random()
        if console and victim < 1 / 3:
            self.did["consoles killed"] += 1
            self.restart()
            return True
        name, there = ("relays", self.agents) if victim < 2 / 3 else ("connectors", self.launched)
        done = self.chance.choice(there).kill()
        self.did[f"{name} killed"] += done
        return done

    # The end

    def finish(self) -> None:
        """Let everybody come to the end of what they began, then end the console."""
        self._fill(full=False)
        self._jump(0)
        self.over.set()
        until = time.monotonic() + 120
        everybody = [*self.agents, *self.launched]
        while time.monotonic() < until and any(each.is_alive() for each in everybody):
            self.attend(1)
        for each in self.agents:
            each.kill()
        for each in self.launched:
            each.end()
        for each in everybody:
            each.join(60)
        self.console.end()

    def figures(self) -> dict[str, list[str]]:
        """Hold effects, answers and records against each other: what went wrong."""
        home = self.console.home
        runs = query(home, "SELECT run_id, approval_id, state, args FROM runs WHERE gated = 1")
        records = query(home, "SELECT run, event FROM audit WHERE event IN ('run.started', 'run.completed')")  # fmt: skip
        recorded = set(records)
        made = collections.Counter(line for each in self.launched for line in each.made())
        of_name: dict[str, list[tuple[str, str]]] = collections.defaultdict(list)
        for run, _, state, args in runs:
            given = json.loads(args or "{}")
            name = given.get("draft_id") or given.get("command", "").split(" ")[1:2]
            of_name[name if isinstance(name, str) else "".join(name)].append((run, state))
        approvals = {approval for _, approval, _, _ in runs}
        found: dict[str, list[str]] = {name: [] for name in ("lost", "doubled", "unrecorded", "contradicted")}  # fmt: skip
        for call in self.calls:
            call.effects = self.mailbox.asked[call.name] + made[call.name]
            own = of_name[call.name]
            story = f"{call.name}: told {call.told}, {call.effects} effects, runs {own}"
            ended = any((run, "run.completed") in recorded and state == "completed" for run, state in own)  # fmt: skip
            if not call.ids <= approvals or (call.told == "completed" and not (call.effects and ended)):  # fmt: skip
                found["lost"].append(story)
            if call.effects > 1:
                found["doubled"].append(story)
            if call.effects and not any((run, "run.started") in recorded and state in DONE for run, state in own):  # fmt: skip
                found["unrecorded"].append(story)
            if call.effects and call.told in ("denied", "failed", "expired", "withdrawn", "not run"):  # fmt: skip
                found["contradicted"].append(story)
        return found


def _mounted(folder: Path) -> bool:
    """Have the home on a small file system of its own; False where only root may."""
    home = folder / "home"
    home.mkdir(mode=0o700)
    mount = ["mount", "-t", "tmpfs", "-o", "size=256m,mode=700", "tmpfs", str(home)]
    return subprocess.run(mount, capture_output=True, check=False).returncode == 0


@contextlib.contextmanager
def _folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="ail-"))
    try:
        yield folder
    finally:
        if (folder / "home").is_mount():
            subprocess.run(["umount", "-l", str(folder / "home")], check=False)
        shutil.rmtree(folder)


def used(chaos: Chaos) -> str:
    """What the console uses now, and the 99th percentile of the calls since this was last asked."""
    pid, home = chaos.console.process.pid, chaos.console.home
    status = Path(f"/proc/{pid}/status").read_text()
    memory = int(status.partition("VmRSS:")[2].split()[0]) / 1024
    descriptors = len(os.listdir(f"/proc/{pid}/fd"))
    database = sum(file.stat().st_size for file in home.glob("aileron.db*")) / 1e6
    calls, chaos.seconds = sorted(chaos.seconds), []
    p99 = f"{calls[int(len(calls) * 0.99)]:.2f} s" if calls else "none"
    return f"{memory:.0f} MB of memory, {descriptors} descriptors, database {database:.1f} MB, {len(calls)} calls that asked nobody, p99 {p99}"  # fmt: skip


def main() -> int:
    """Make the chaos that the command line asks for; return 0 if nothing came of it."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--agents", type=int, default=50)
    parser.add_argument("--hours", type=float, default=0.0, help="soak: the console lives on")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**32))
    asked = parser.parse_args()
    print(f"seed {asked.seed}", flush=True)
    logging.disable()  # the mailbox's server complains about each answer that it was told to lose
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(_folder())
        chaos = Chaos(folder, stack.enter_context(CountingMailbox()), asked)
        if not chaos.full:
            print("skipped: a small disk (only root mounts one); RLIMIT_FSIZE instead", flush=True)
        # Before the agents: what is forked among them holds their pipes open.
        stack.enter_context(stress.freezers(counts := folder / "counts", 1, asked.seed))
        for each in (*chaos.agents, *chaos.launched):
            each.start()
        began, hour, kills = time.monotonic(), 1, 0
        while (time.monotonic() - began < asked.hours * 3600) if asked.hours else (kills < asked.kills):  # fmt: skip
            chaos.attend(chaos.chance.uniform(0, RATE))
            if chaos.chance.random() < 0.5:
                chaos.trouble()
            if chaos.kill(console=not asked.hours):
                kills += 1
                if kills % 25 == 0:
                    print(f"{kills} kills, {len(chaos.calls)} calls", flush=True)
            if asked.hours and time.monotonic() - began > hour * 3600:
                print(f"hour {hour}: {used(chaos)}", flush=True)
                hour += 1
        print(f"after {time.monotonic() - began:.0f} s: {used(chaos)}", flush=True)
        chaos.finish()
        frozen = collections.Counter(counts.read_text().split()) if counts.exists() else {}
        found = chaos.figures()
        broken = audit_problems(chaos.console.home)
        done = {**chaos.did, **{f"{name} frozen": times for name, times in frozen.items()}}
        if not frozen:
            print("skipped: frozen threads (this user may trace no process)")
        print(", ".join(f"{times} {name}" for name, times in sorted(done.items())))
        told = collections.Counter(str(call.told) for call in chaos.calls)
        print(f"{len(chaos.calls)} gated calls of {asked.agents} agents; told: {dict(told)}")
        print(f"{sum(call.effects for call in chaos.calls)} effects")
        for name, stories in found.items():
            print(f"{len(stories)} {name}", *stories[:10], sep="\n  ")
        print("chain whole" if not broken else f"chain BROKEN: {broken[:5]}")
        return 1 if broken or any(found.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
