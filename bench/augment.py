"""Augment mode: what it adds to the first text of an answer and to each chunk of a stream, beside the normal mode.

One `aileron serve` with 20 actions has two sessions, one of each mode. Requests are conversations with
calls of an agent's ten tools; the answer has none of ours, so this is what reading and writing cost.
`first text` is from the request's first byte to the first chunk of text. All targets are asked in turn,
in another order each round, and every answer is compared with what the upstream said. LiteLLM is
the Anthropic pass-through of its proxy, from the package registry (see `gateway_peers`). It takes about three minutes.
"""

import contextlib
import statistics
import sys
import tempfile
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from pathlib import Path

from aileron_core.home.client import HomeClient
from bench.gateway import Client, ended_by_sigterm, module, pipes, spread, verdict
from bench.gateway_client import Job, Outcome
from bench.gateway_peers import Absent, Target, peers
from bench.gateway_wire import Load
from bench.support import fill, serving

ROUNDS = 7
ACTIONS = 20
NORMAL, AUGMENT = "ours, normal", "ours, augment"
_PEER = "LiteLLM"


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """A load, what of it counts, and by how many ms augment mode may be over the normal one."""

    load: Load
    aim: float
    values: Callable[[Outcome], tuple[float, ...]]


def _first(name: str, size: int, aim: float) -> Measure:
    load = Load(
        name=f"first text, {name}",
        model="sse-5-0",
        connections=1,
        requests=200,
        seconds=3,
        request_bytes=size,
        conversation=True,
    )
    return Measure(load=load, aim=aim, values=lambda outcome: outcome.firsts)


def _chunks(name: str, model: str, connections: int, seconds: float) -> Measure:
    load = Load(
        name=f"chunk delay, {name}",
        model=model,
        connections=connections,
        requests=connections * 4,
        seconds=seconds,
        request_bytes=20_000,
        conversation=True,
    )
    return Measure(load=load, aim=0.2, values=lambda outcome: outcome.delays)


MEASURES = (
    _first("20 kB", 20_000, 0.7),
    _first("200 kB", 200_000, 4.0),
    _first("1 MB", 1_000_000, 20.0),
    _chunks("1 stream", "sse-200-5", 1, 4),
    _chunks("16 streams", "sse-100-20", 16, 4),
)


@dataclass
class Figures:
    """Medians in ms, by measure and target, a round each; None for one that failed."""

    rounds: dict[tuple[str, str], list[float | None]] = field(
        default_factory=dict[tuple[str, str], list[float | None]]
    )
    problems: list[str] = field(default_factory=list[str])

    def put(self, measure: Measure, target: Target, outcome: Outcome) -> None:
        """Take what came of one job."""
        values = measure.values(outcome)
        found = statistics.median(values) * 1e3 if values and not outcome.error else None
        if found is None:
            said = outcome.error or "no answer"
            self.problems.append(f"{measure.load.name}, {target.name}: {said}")
        self.rounds.setdefault((measure.load.name, target.name), []).append(found)

    def of(self, measure: Measure, target: str) -> list[float]:
        """Return the medians of the rounds that went well."""
        found = self.rounds.get((measure.load.name, target), [])
        return [value for value in found if value is not None]

    def over(self, measure: Measure, target: str, floor: str) -> list[float]:
        """Return by how much *target* was over *floor* in each round."""
        mine = self.rounds.get((measure.load.name, target), [])
        theirs = self.rounds.get((measure.load.name, floor), [])
        pairs = zip(mine, theirs, strict=False)
        return [a - b for a, b in pairs if a is not None and b is not None]


@contextlib.contextmanager
def _ours(folder: Path, upstream: int) -> Generator[list[Target], None, None]:
    """Run one console; yield a session of it in each mode."""
    home = folder / "home"
    home.mkdir(mode=0o700)
    fill(home)
    text = (home / "actions" / "nothing.md").read_text(encoding="utf-8")
    for number in range(2, ACTIONS):
        name = f"nothing-{number}"
        copy = text.replace('name = "nothing"', f'name = "{name}"', 1)
        (home / "actions" / f"{name}.md").write_text(copy, encoding="utf-8")
    settings = f'[gateway]\nanthropic = "http://127.0.0.1:{upstream}"\n'
    (home / "config.toml").write_text(settings, encoding="utf-8")
    with serving(home) as said:
        port = int(said["url"].rpartition(":")[2])
        targets: list[Target] = []
        for name in (NORMAL, AUGMENT):
            asked = {"agent": "bench", "cwd": "/", "launched": True, "augment": name == AUGMENT}
            status, opened = HomeClient(home).request("POST", "/v1/sessions", asked)
            if status != 201:
                raise SystemExit(f"No session was opened: {opened}")
            targets.append(Target(name=name, port=port, prefix=f"/gw/{opened['gateway_token']}"))
        yield targets


def _job(target: Target, measure: Measure) -> Job:
    return Job(port=target.port, prefix=target.prefix, load=measure.load)


def _started(stack: contextlib.ExitStack, folder: Path, upstream: int) -> list[Target]:
    targets = [Target(name="direct", port=upstream)]
    targets += stack.enter_context(_ours(folder, upstream))
    for peer in peers():
        if peer.name == _PEER:
            try:
                targets.append(stack.enter_context(peer.start(folder, upstream)))
            except Absent as reason:
                print(f"  {peer.name} is not measured: {reason}", flush=True)
    return targets


def _fit(client: Client, targets: list[Target]) -> list[Target]:
    """Put each load on each target once; drop a peer that fails."""
    fit: list[Target] = []
    for target in targets:
        errors = [client.do(_job(target, measure)).error for measure in MEASURES]
        failed = [error for error in errors if error]
        if not failed:
            fit.append(target)
        elif target.name in (NORMAL, AUGMENT):
            raise SystemExit(f"{target.name}: {failed[0]}")
        else:
            print(f"  {target.name} is not measured: {failed[0]}", flush=True)
    return fit


def _table(figures: Figures, targets: list[Target]) -> None:
    for measure in MEASURES:
        print(f"  {measure.load.name:24} {'p50 ms':>24} {'over the normal mode':>26}")
        for target in targets:
            p50 = spread(figures.of(measure, target.name))
            over = spread(figures.over(measure, target.name, NORMAL))
            print(f"    {target.name:22} {p50:>24} {over if target.name != NORMAL else '':>26}")


def _aims(figures: Figures, targets: list[Target]) -> None:
    peer = next((each.name for each in targets if each.name.startswith(_PEER)), None)
    for measure in MEASURES:
        ours, normal = figures.of(measure, AUGMENT), figures.of(measure, NORMAL)
        over = statistics.median(figures.over(measure, AUGMENT, NORMAL))
        ratio = statistics.median(ours) / statistics.median(normal)
        said = (
            f"{over:.2f} ms more, {ratio:.2f} of the normal mode's ({verdict(over, measure.aim)})"
        )
        if peer is not None and (theirs := figures.of(measure, peer)):
            said += f"; {statistics.median(ours) / statistics.median(theirs):.3f} of {peer}'s"
        print(f"    {measure.load.name}: {said}")


def main() -> None:
    """Print the table, and the aims beside what was reached."""
    print(f"augment: {ROUNDS} rounds in turn; medians of the rounds (least to most)", flush=True)
    with contextlib.ExitStack() as stack:
        stack.enter_context(ended_by_sigterm())
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="aileron-bench-"))
        upstream = stack.enter_context(module("gateway_upstream"))
        port = int(pipes(upstream)[1].readline())
        client = Client(stack.enter_context(module("gateway_client")))
        targets = _fit(client, _started(stack, Path(folder), port))
        figures = Figures()
        for number in range(ROUNDS):
            print(f"  round {number + 1} of {ROUNDS}", file=sys.stderr, flush=True)
            turn = number % len(targets)
            for measure in MEASURES:
                for target in targets[turn:] + targets[:turn]:
                    figures.put(measure, target, client.do(_job(target, measure)))
        _table(figures, targets)
        print("  aims")
        _aims(figures, targets)
        for problem in figures.problems:
            print(f"  failed: {problem}")


if __name__ == "__main__":
    main()
