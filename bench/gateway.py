"""The gateway: what it adds to a request and to a chunk, beside nginx, mitmproxy and LiteLLM.

Upstream and load client are processes of their own, the same for all; `direct` shows what they cost
themselves. All targets run at the same time and are asked in turn, in another order each round.
`added` is what a target takes more than `direct` did in the same round. A chunk's delay is from
the upstream's write to the client's read. Every answer is compared with what the upstream said.
Ours runs twice: as `aileron serve`, and inside `aileron console` on a pty. It takes about nine
minutes, one or two of them for installing (see `gateway_peers`).
"""

import contextlib
import json
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Collection, Generator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import FrameType
from typing import IO, TypeAlias

from bench.gateway_client import Job, Outcome
from bench.gateway_peers import Absent, Target, environment, peers, resident
from bench.gateway_wire import BODY_BYTES, JSON_BYTES, Load
from bench.support import CHECK, Aims, amount

ROUNDS = amount(5, check=1)
ONE, SIXTEEN = "request, 1 connection", "request, 16 connections"
PACED, HUNDRED = "chunk delay, 1 stream", "chunk delay, 100 streams"
SHORT = f"json-{JSON_BYTES}"
LOADS = (
    Load(name=ONE, model=SHORT, connections=1, requests=2000, seconds=1.5),
    Load(name=SIXTEEN, model=SHORT, connections=16, requests=8000, seconds=1.5),
    Load(name=PACED, model="sse-200-2", connections=1, requests=3, seconds=10),
    Load(name=HUNDRED, model="sse-60-20", connections=100, requests=200, seconds=10),
    Load(name="chunk delay, 8 bursts", model="sse-200-0", connections=8, requests=400, seconds=1.5),
    Load(
        name="10 MB up",
        model=SHORT,
        connections=1,
        requests=20,
        seconds=2,
        request_bytes=BODY_BYTES,
    ),
    Load(name="10 MB down", model=f"json-{BODY_BYTES}", connections=1, requests=20, seconds=2),
)
DIRECT = "direct"
NGINX = "nginx"
OURS = ("ours, serve", "ours, console")
SHARES = ((NGINX, 4.0), ("mitmproxy", 0.2), ("LiteLLM", 0.05))
"""Added p50 of a request: at most so many times theirs."""
DELAYS = ((PACED, 0.3), (HUNDRED, 0.8))
"""Added p50 of a chunk's delay: at most so many ms over nginx's."""
Times: TypeAlias = Callable[[Load, Outcome], Sequence[float]]
_PATIENCE = 180.0
"""Seconds for one job."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """One load on one target in one round; times in ms."""

    p50: float
    p99: float
    rate: float
    """Requests, or chunks, a second."""


def _times(load: Load, outcome: Outcome) -> tuple[float, ...]:
    return outcome.delays if load.streams else outcome.requests


class Results:
    """Figures by load, target and round.

    Args:
        times: what of an outcome counts, in seconds.
    """

    def __init__(self, times: Times = _times) -> None:
        self._times = times
        self._of: dict[tuple[str, str], dict[int, Figures]] = {}
        self.problems: list[str] = []

    def put(self, load: Load, target: str, number: int, outcome: Outcome) -> None:
        """Add the outcome of one job."""
        values = sorted(self._times(load, outcome))
        if outcome.error or not values:
            what = outcome.error or "no answer"
            self.problems.append(f"round {number + 1}, {load.name}, {target}: {what}")
            return
        self._of.setdefault((load.name, target), {})[number] = Figures(
            p50=statistics.median(values) * 1e3,
            p99=values[min(len(values) - 1, int(len(values) * 0.99))] * 1e3,
            rate=len(values) / outcome.lasted,
        )

    def each(self, load: str, target: str, value: Callable[[Figures], float]) -> list[float]:
        """Return *value* of each round that there is."""
        return [value(figures) for figures in self._of.get((load, target), {}).values()]

    def over(self, load: str, target: str, floor: str) -> dict[int, float]:
        """Return by how many ms the p50 of *target* was over that of *floor*, by round."""
        mine, theirs = self._of.get((load, target), {}), self._of.get((load, floor), {})
        return {at: mine[at].p50 - theirs[at].p50 for at in mine if at in theirs}


class Client:
    """The load client's process."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def do(self, job: Job) -> Outcome:
        """Let it do *job*; one that does not end is ended with its process."""
        wire_in, wire_out = _pipes(self._process)
        wire_in.write(json.dumps(asdict(job)) + "\n")
        wire_in.flush()
        late = threading.Timer(_PATIENCE, self._process.kill)
        late.start()
        try:
            line = wire_out.readline()
        finally:
            late.cancel()
        if not line:
            raise SystemExit(f"The load client ended during {job.load.name!r}.")
        return Outcome(**json.loads(line))


def _pipes(process: subprocess.Popen[str]) -> tuple[IO[str], IO[str]]:
    assert process.stdin is not None
    assert process.stdout is not None
    return process.stdin, process.stdout


@contextlib.contextmanager
def _module(name: str) -> Generator[subprocess.Popen[str], None, None]:
    """Run a module of ours that ends with its standard input."""
    process = subprocess.Popen(
        [sys.executable, "-m", f"bench.{name}"],
        cwd=Path(__file__).parent.parent,
        env=environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,  # an interrupt is ours to pass on
    )
    try:
        yield process
    finally:
        wire_in, _ = _pipes(process)
        with contextlib.suppress(BrokenPipeError):
            wire_in.close()
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def start_peers(
    stack: contextlib.ExitStack, folder: Path, upstream: int, wanted: Collection[str] = ()
) -> list[Target]:
    """Start the *wanted* peers, or all; say which of them is not there."""
    targets: list[Target] = []
    for number, peer in enumerate(peers()):
        if (wanted and peer.name not in wanted) or (CHECK and peer.name not in OURS):
            continue
        own = folder / str(number)
        own.mkdir()
        try:
            targets.append(stack.enter_context(peer.start(own, upstream)))
        except Absent as reason:
            print(f"  {peer.name} is not measured: {reason}", flush=True)
    return targets


def measure(
    client: Client,
    targets: list[Target],
    loads: Sequence[Load],
    rounds: int,
    *,
    times: Times = _times,
    needed: Collection[str] = (),
) -> tuple[list[Target], Results]:
    """Put each load on each target, in another order each round; return the targets that can take them, and what came.

    Args:
        needed: names of targets without which nothing is measured.
    """
    fit = [target for target in targets if _is_fit(client, target, loads, target.name in needed)]
    results = Results(times)
    for number in range(rounds):
        print(f"  round {number + 1} of {rounds}", file=sys.stderr, flush=True)
        turn = number % len(fit)
        for load in loads:
            for target in fit[turn:] + fit[:turn]:
                results.put(load, target.name, number, client.do(_job(target, load)))
    return fit, results


def _is_fit(client: Client, target: Target, loads: Sequence[Load], needed: bool) -> bool:
    """Put each load on *target* once (imports, connections, caches)."""
    for load in loads:
        if error := client.do(_job(target, load)).error:
            if needed:
                raise SystemExit(f"{target.name}: {load.name}: {error}")
            print(f"  {target.name} is not measured: {load.name}: {error}", flush=True)
            return False
    return True


def _job(target: Target, load: Load) -> Job:
    if CHECK:
        load = replace(load, requests=2 * load.connections, seconds=0.5)
    return Job(port=target.port, prefix=target.prefix, load=load)


def spread(values: list[float], digits: int = 2) -> str:
    if not values:
        return "-"
    middle, least, most = statistics.median(values), min(values), max(values)
    return f"{middle:.{digits}f} ({least:.{digits}f} to {most:.{digits}f})"


def _table(results: Results, targets: list[Target]) -> None:
    for load in LOADS:
        unit = "chunks/s" if load.streams else "requests/s"
        print(f"  {load.name:24} {'p50 ms':>24} {'added p50':>24} {'p99 ms':>28} {unit:>12}")
        for target in targets:
            rates = results.each(load.name, target.name, lambda figures: figures.rate)
            p50 = spread(results.each(load.name, target.name, lambda figures: figures.p50))
            p99 = spread(results.each(load.name, target.name, lambda figures: figures.p99))
            added = results.over(load.name, target.name, DIRECT)
            more = spread([*added.values()]) if target.name != DIRECT else ""
            rate = f"{statistics.median(rates):,.0f}" if rates else "-"
            print(f"    {target.name:22} {p50:>24} {more:>24} {p99:>28} {rate:>12}")


def _share(results: Results, load: str, ours: str, peer: str, aim: float, aims: Aims) -> str:
    """Say which part of the peer's added p50 ours is: of the medians, and round by round."""
    mine, theirs = results.over(load, ours, DIRECT), results.over(load, peer, DIRECT)
    if not mine or not theirs:
        return f"not compared with {peer}"
    added = statistics.median(theirs.values())
    if added <= 0:
        return f"{peer} added nothing that could be measured"
    share = statistics.median(mine.values()) / added
    rounds = [mine[at] / theirs[at] for at in mine if theirs.get(at, 0) > 0]
    spread = f"rounds {min(rounds):.3f} to {max(rounds):.3f}" if rounds else "no common round"
    aims.at_most(f"{ours}, {load}, added p50, times that of {peer}", share, aim)
    return f"added p50 {share:.3f} of {peer}'s  ({spread})"


def _compared(results: Results, targets: list[Target]) -> Aims:
    """Print ours beside the peers; return the aims."""
    aims = Aims()
    names = {target.name.partition(" ")[0]: target.name for target in targets}
    for ours in OURS:
        for load in (ONE, SIXTEEN):
            for peer, aim in SHARES:
                said = _share(results, load, ours, names.get(peer, peer), aim, aims)
                print(f"    {ours}, {load}: {said}")
        for load, aim in DELAYS:
            more = [*results.over(load, ours, NGINX).values()]
            said = "not compared with nginx"
            if more:
                said = f"p50 {spread(more)} ms over nginx's"
                aims.at_most(f"{ours}, {load}, ms over nginx", statistics.median(more), aim)
            print(f"    {ours}, {load}: {said}")
    return aims


def _memory(targets: list[Target]) -> None:
    print("  resident memory, MB      started   after the loads")
    for target in targets:
        if target.process:
            after = resident(target.process)
            print(f"    {target.name:22} {target.started_mb:5.0f} {after:17.0f}")


@contextlib.contextmanager
def _ended_by_sigterm() -> Generator[None, None, None]:
    """Let SIGTERM end us in order, so that nothing is left running."""

    def end(signum: int, _frame: FrameType | None) -> None:
        raise SystemExit(128 + signum)

    previous = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)


@contextlib.contextmanager
def bench() -> Generator[tuple[contextlib.ExitStack, Path, int, Client], None, None]:
    """Run the upstream and the load client.

    Yields what ends the targets, a folder for them, the upstream's port, the client.
    """
    with contextlib.ExitStack() as stack:
        stack.enter_context(_ended_by_sigterm())
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="aileron-bench-"))
        upstream = stack.enter_context(_module("gateway_upstream"))
        port = int(_pipes(upstream)[1].readline())
        yield stack, Path(folder), port, Client(stack.enter_context(_module("gateway_client")))


def main() -> None:
    """Print the tables, ours beside the peers, the memory, and which aims were missed."""
    print(f"gateway: {ROUNDS} rounds in turn; medians of the rounds (least to most)", flush=True)
    began = time.monotonic()
    with bench() as (stack, folder, upstream, client):
        targets = [Target(name=DIRECT, port=upstream), *start_peers(stack, folder, upstream)]
        targets, results = measure(client, targets, LOADS, ROUNDS)
        _table(results, targets)
        print("  ours beside the peers")
        aims = _compared(results, targets)
        _memory(targets)
        for problem in results.problems:
            print(f"  failed: {problem}")
    print(f"  took {time.monotonic() - began:.0f} s")
    aims.report()


if __name__ == "__main__":
    main()
