"""What every test shares: Hypothesis profiles, a clean environment, a home of its own."""

import gc
import itertools
import os
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "fast", max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile(
    "full", max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile(
    "deep", max_examples=2000, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fast"))

# A run in a shell's background ignores SIGINT, and so would every process that a test interrupts.
signal.signal(signal.SIGINT, signal.default_int_handler)


_SECOND_TRY = (
    "tests/screen/test_pictures_of_",
    "tests/screen/test_looks.py",
    "tests/screen/test_layouts.py",
)
"""Looks alone. What may decide, send or leak is tried once: a misfire now and then is a misfire."""


_FIRST = (
    "tests/process/test_first_connector.py::",
    "tests/process/test_readme.py::test_every_line",
    "tests/process/test_random_keys.py::",
    "tests/process/test_demo.py::",
    "tests/screen/test_presses.py::test_each_of_200",
    "tests/process/test_hostile_console.py::",
)
"""What takes longest, the longest first: begun last, it would keep one worker busy and the others idle."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A picture that came late is taken once more; the longest tests begin before the others."""
    for item in items:
        if item.nodeid.startswith(_SECOND_TRY):
            item.add_marker(pytest.mark.flaky(reruns=1))
    items[:] = _longest_first(items, int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")))


def _longest_first(items: list[pytest.Item], workers: int) -> list[pytest.Item]:
    """Return *items* with the longest at the heads of the parts that xdist deals to its *workers*."""
    long = [item for start in _FIRST for item in items if item.nodeid.startswith(start)]
    taken = set(long)
    others = iter([item for item in items if item not in taken])
    ordered: list[pytest.Item] = []
    for worker in range(workers):
        size = (len(items) - len(ordered)) // (workers - worker)
        part = long[worker::workers]
        ordered += [*part, *itertools.islice(others, max(0, size - len(part)))]
    return ordered


def pytest_collectstart() -> None:
    """Look for no garbage while tests are collected: there is next to none."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Leave what stays to the end out of every garbage collection: that is a sixth of a worker's time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 10, 10)  # an eighth of the rest
    gc.enable()


def pytest_sessionfinish() -> None:
    """Collect garbage once: pytest does so five times more, over all that a worker holds by then."""
    gc.collect()
    gc.freeze()


def pytest_make_parametrize_id(val: object) -> str | None:
    """A short name for a long value: pytest puts it in the environment of every process started."""
    if isinstance(val, str | bytes) and len(val) > 60:
        return f"{val[:20]!r}... of {len(val)}"
    return None


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test sees the person's own home, token or colours."""
    for name in [name for name in os.environ if name.startswith("AILERON_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AILERON_HOME", "/nonexistent/aileron-home")


@pytest.fixture
def home() -> Iterator[Path]:
    """A short-lived home folder with a path short enough for a socket."""
    with tempfile.TemporaryDirectory(prefix="ail-") as folder:
        path = Path(folder) / "home"
        path.mkdir(mode=0o700)
        yield path


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """An empty project."""
    path = tmp_path / "project"
    path.mkdir()
    return path


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """Tests that are coroutines run on asyncio, each on a loop of its own."""
    return "asyncio"
