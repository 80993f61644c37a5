"""Loading 516 generated action files, cold and again, beside tomllib alone.

The files are made here, in the shape of a published generated suite: GraphQL types, camelCase
names, a blank description here and there, up to 102 inputs, some inputs declared twice. Floor:
`tomllib.loads` of the same front matter, already cut out and in memory. A scan that knows the files
parses nothing.
"""

import random
import statistics
import tempfile
import time
import tomllib
from collections.abc import Callable
from pathlib import Path

from aileron_core.actions.catalog import Catalog, CatalogScan, scan
from bench.support import Aims, amount

FILES = amount(516, check=20)
ROUNDS = amount(7, check=1)
SEED = 20260601

_TYPES = ("String", "String", "String", "String", "Boolean", "Int", "Float", "DateTime", "JSON")
_WORDS = [
    "the",
    "identifier",
    "of",
    "team",
    "issue",
    "project",
    "label",
    "cycle",
    "to",
    "which",
    "this",
    "applies",
    "or",
    "none",
]
_HEAD = """\
name = "{name}"
version = "0.0.0-dev"
source = "github://acme/tracker/actions/{name}@0.0.0-dev"

[[requires.connectors]]
name = "github://acme/tracker"
version = "0.0.0-dev"
hash = "sha256:{hash}"
capabilities = ["{op}"]

[match]
intent = "{intent}"

[[execute]]
id = "step"
connector = "github://acme/tracker"
op = "{op}"
idempotent = {idempotent}
{approval}"""
_INPUT = """
[[inputs]]
name = "{name}"
type = "{type}"
description = "{description}"
required = {required}
"""


def _front(number: int, chance: random.Random) -> str:
    gated = chance.random() < 0.7
    front = _HEAD.format(
        name=f"issue-update-{number}",
        op=f"issue_update_{number}",
        hash=f"{number:064x}",
        intent=_sentence(chance, 14),
        idempotent=str(not gated).lower(),
        approval="\n[approval]\nrequired = true\n" if gated else "",
    )
    # Most have a few inputs, some dozens, one in forty a hundred, as in the published suite.
    count = chance.choice((0, 1, 1, 2, 2, 4, 6, 9, 12, 20))
    if number % 40 == 0:
        count = 102
    for each in range(count):
        front += _INPUT.format(
            name=f"relatedField{each - 1 if each % 25 == 24 else each}",
            type=chance.choice((*_TYPES, f"Nullable{number}Filter")),
            description="" if chance.random() < 0.005 else _sentence(chance, 12),
            required=str(chance.random() < 0.2).lower(),
        )
    return front


def _sentence(chance: random.Random, words: int) -> str:
    return " ".join(chance.choices(_WORDS, k=words)).capitalize() + "."


def _seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def _offered(found: CatalogScan) -> int:
    catalog = Catalog(found, {file.file: file.sha256 for file in found.files})
    return len(catalog.ready())


def main() -> None:
    """Print milliseconds for all files, and the ratio of the fastest rounds to the floor's."""
    chance = random.Random(SEED)
    fronts = [_front(number, chance) for number in range(FILES)]
    with tempfile.TemporaryDirectory(prefix="aileron-bench-") as name:
        folder = Path(name)
        for number, front in enumerate(fronts):
            (folder / f"{number:03}.md").write_text(f"+++\n{front}+++\n", encoding="utf-8")
        known = scan(folder)
        offered = _offered(known)
        warned = sum(bool(file.warnings) for file in known.files)
        size = sum(len(front) for front in fronts) // 1000
        print(
            f"load_manifests: {FILES} files, {size} kB, {offered} offered, {warned} with warnings"
        )
        works: dict[str, Callable[[], object]] = {
            "tomllib.loads alone (floor)": lambda: [tomllib.loads(front) for front in fronts],
            "scan, cold": lambda: scan(folder),
            "scan and catalog, cold": lambda: _offered(scan(folder)),
            "scan again, nothing changed": lambda: scan(folder, known),
        }
        taken: dict[str, list[float]] = {what: [] for what in works}
        for _ in range(ROUNDS):  # one after the other, so that a busy machine slows all alike
            for what, work in works.items():
                taken[what].append(_seconds(work))
        # The fastest round of each: other programs only ever add time.
        floor = min(taken["tomllib.loads alone (floor)"])
        for what, values in taken.items():
            print(
                f"  {what:30} best {min(values) * 1e3:7.1f} ms  (p50 "
                f"{statistics.median(values) * 1e3:.1f}, max {max(values) * 1e3:.1f})  "
                f"ratio {min(values) / floor:5.2f}"
            )
        aims = Aims()
        aims.at_most("scan, cold, times tomllib alone", min(taken["scan, cold"]) / floor, 2)
        aims.report()


if __name__ == "__main__":
    main()
