"""What the measurements share: a home with a no-op action, a running console, figures with their spread, aims."""

import asyncio
import contextlib
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import wasmtime

from aileron_core.connectors.store import ConnectorStore

_T = TypeVar("_T")

CHECK = "--check" in sys.argv
"""Only find out whether a script still runs to its end: its figures say nothing."""


def amount(full: _T, *, check: _T) -> _T:
    """Return how many rounds, calls or seconds to measure with."""
    return check if CHECK else full


class Aims:
    """What a script was to reach; it says at its end what was missed."""

    def __init__(self) -> None:
        self._count = 0
        self._missed: list[str] = []

    def at_most(self, name: str, measured: float, aim: float) -> None:
        """Count an aim that *measured* must not exceed."""
        self._add(f"{name}: {measured:.3g} (aim {aim:g})", met=measured <= aim)

    def at_least(self, name: str, measured: float, aim: float) -> None:
        """Count an aim that *measured* has to reach."""
        self._add(f"{name}: {measured:.4g} (aim at least {aim:g})", met=measured >= aim)

    def _add(self, said: str, *, met: bool) -> None:
        self._count += 1
        if not met:
            self._missed.append(said)

    def report(self) -> None:
        """Print which aims were missed, or that none was."""
        if CHECK:
            print(f"  checked ({self._count} aims)")
        elif self._missed:
            print(f"  missed {len(self._missed)} of {self._count} aims:")
            print(*(f"    {each}" for each in self._missed), sep="\n")
        else:
            print(f"  all aims met ({self._count})")


AILERON = [sys.executable, "-I", "-m", "aileron_tui.cli"]
RELAY = Path(sys.executable).with_name("aileron-mcp")

# The smallest guest there is: it reads nothing and prints nothing, which is success with {}.
WAT = '(module (memory (export "memory") 1) (func (export "_start")))'
MANIFEST = """\
[connector]
name = "local://bench/nothing"
version = "1.0.0"

[capabilities.network]
hosts = []

[capabilities.runtime]
imports = []
"""
_ACTION = """\
+++
name = "nothing"
version = "1.0.0"
source = "local://bench/nothing@1.0.0"

[[requires.connectors]]
name = "local://bench/nothing"
version = "1.0.0"
hash = "{hash}"
capabilities = ["nothing"]

[match]
intent = "do nothing"

[[execute]]
id = "nothing"
connector = "local://bench/nothing"
op = "nothing"
idempotent = true
{more}+++

# Do nothing
"""
_GATED = "\n[approval]\nrequired = true\n"
_INPUT = '\n[[inputs]]\nname = "n"\ntype = "integer"\ndescription = "a number"\nrequired = false\n'


def fill(home: Path, module: bytes | None = None) -> str:
    """Put a connector that does nothing, an ungated and a gated action into *home*; return its hash.

    Args:
        module: the connector's; None: the smallest that there is.
    """
    module = module or wasmtime.wat2wasm(WAT)
    installed = ConnectorStore(home).install_bytes(module, MANIFEST.encode())
    actions = home / "actions"
    actions.mkdir(parents=True, exist_ok=True)
    digest = installed.identity.hash
    for name, more in (("nothing", _INPUT), ("ask-nothing", _INPUT + _GATED)):
        text = _ACTION.format(hash=digest, more=more).replace(
            'name = "nothing"', f'name = "{name}"', 1
        )
        (actions / f"{name}.md").write_text(text, encoding="utf-8")
    return digest


@contextlib.contextmanager
def home() -> Iterator[Path]:
    """A short-lived home with the no-op actions."""
    with tempfile.TemporaryDirectory(prefix="aileron-bench-") as folder:
        path = Path(folder) / "home"
        path.mkdir(mode=0o700)
        fill(path)
        yield path


@contextlib.contextmanager
def serving(
    path: Path, routes: Sequence[str] = (), python: str = sys.executable
) -> Iterator[dict[str, str]]:
    """Run *python*'s `aileron serve` on *path* with *routes* and yield what it says of itself."""
    given = [word for route in routes for word in ("--route", route)]
    process = subprocess.Popen(
        [python, *AILERON[1:], "serve", "--json", "--accept-installed", *given],
        env={**os.environ, "AILERON_HOME": str(path)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        yield json.loads(process.stdout.readline())
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()


def core_loop() -> asyncio.AbstractEventLoop:
    """Return a loop of the kind that the core runs on."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


def p99(values: Sequence[float]) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))]


def milliseconds(values: Sequence[float]) -> str:
    """Return median, 99th percentile and range of seconds, in milliseconds."""
    ordered = sorted(values)
    return (
        f"p50 {statistics.median(ordered) * 1e3:8.2f}  p99 {p99(ordered) * 1e3:8.2f}  "
        f"min {ordered[0] * 1e3:8.2f}  max {ordered[-1] * 1e3:8.2f}  ms  (n={len(ordered)})"
    )


def processor_seconds(pid: int) -> float:
    """Return the processor time that process *pid* has taken."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
