"""Augment mode: what it adds to the first text of an answer and to each chunk of a stream, beside the normal mode.

One `aileron serve` with 20 actions has two sessions, one of each mode. Requests are conversations with
calls of an agent's ten tools; the answer has none of ours, so this is what reading and writing cost.
Each request is the one before it with another last turn; where it is `new`, with other turns throughout.
`first text` is from the request's first byte to the first chunk of text. All targets are asked in turn,
in another order each round, and every answer is compared with what the upstream said. LiteLLM is
the Anthropic pass-through of its proxy, from the package registry (see `gateway_peers`). It takes eight minutes.
"""

import contextlib
import statistics
from collections.abc import Generator
from pathlib import Path
from typing import Literal

from aileron_core.home.client import HomeClient
from bench.gateway import Results, bench, measure, spread, start_peers
from bench.gateway_client import Outcome
from bench.gateway_peers import Target
from bench.gateway_wire import Load
from bench.support import Aims, amount, fill, serving

ROUNDS = amount(7, check=1)
ACTIONS = 20
NORMAL, AUGMENT = "ours, normal", "ours, augment"
FIRST = "first text"
_PEER = "LiteLLM"


def _first(name: str, size: int, conversation: Literal["goes on", "is new"] = "goes on") -> Load:
    return Load(
        name=f"{FIRST}, {name}",
        model="sse-5-0",
        connections=1,
        requests=200,
        seconds=3,
        request_bytes=size,
        conversation=conversation,
    )


def _chunks(name: str, model: str, connections: int) -> Load:
    return Load(
        name=f"chunk delay, {name}",
        model=model,
        connections=connections,
        requests=connections * 4,
        seconds=4,
        request_bytes=20_000,
        conversation="goes on",
    )


AIMS = {
    _first("20 kB", 20_000): 0.7,
    _first("200 kB", 200_000): 4.0,
    _first("1 MB", 1_000_000): 20.0,
    _first("1 MB, new", 1_000_000, "is new"): 20.0,
    _chunks("1 stream", "sse-200-5", 1): 0.2,
    _chunks("16 streams", "sse-100-20", 16): 0.2,
}
"""By how many ms augment mode may be over the normal mode, by load."""


def _times(load: Load, outcome: Outcome) -> tuple[float, ...]:
    return outcome.firsts if load.name.startswith(FIRST) else outcome.delays


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


def _table(results: Results, targets: list[Target]) -> None:
    for load in AIMS:
        print(f"  {load.name:24} {'p50 ms':>24} {'over the normal mode':>26}")
        for target in targets:
            p50 = spread(_p50(results, load, target.name))
            over = spread([*results.over(load.name, target.name, NORMAL).values()])
            print(f"    {target.name:22} {p50:>24} {over if target.name != NORMAL else '':>26}")


def _p50(results: Results, load: Load, target: str) -> list[float]:
    return results.each(load.name, target, lambda figures: figures.p50)


def _compared(results: Results, targets: list[Target]) -> Aims:
    aims = Aims()
    peer = next((each.name for each in targets if each.name.startswith(_PEER)), None)
    for load, aim in AIMS.items():
        ours, normal = _p50(results, load, AUGMENT), _p50(results, load, NORMAL)
        over = statistics.median(results.over(load.name, AUGMENT, NORMAL).values())
        ratio = statistics.median(ours) / statistics.median(normal)
        said = f"{over:.2f} ms more, {ratio:.2f} of the normal mode's"
        aims.at_most(f"{load.name}, ms over the normal mode", over, aim)
        if peer is not None and (theirs := _p50(results, load, peer)):
            said += f"; {statistics.median(ours) / statistics.median(theirs):.3f} of {peer}'s"
        print(f"    {load.name}: {said}")
    return aims


def main() -> None:
    """Print the table, what augment mode adds, and which aims were missed."""
    print(f"augment: {ROUNDS} rounds in turn; medians of the rounds (least to most)", flush=True)
    with bench() as (stack, folder, upstream, client):
        targets = [
            Target(name="direct", port=upstream),
            *stack.enter_context(_ours(folder, upstream)),
            *start_peers(stack, folder, upstream, [_PEER]),
        ]
        targets, results = measure(
            client, targets, [*AIMS], ROUNDS, times=_times, needed=(NORMAL, AUGMENT)
        )
        _table(results, targets)
        print("  augment mode beside the others")
        aims = _compared(results, targets)
        for problem in results.problems:
            print(f"  failed: {problem}")
        aims.report()


if __name__ == "__main__":
    main()
