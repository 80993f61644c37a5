"""What every test shares: Hypothesis profiles, a clean environment, a home of its own."""

import asyncio
import functools
import gc
import itertools
import os
import signal
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
import uvicorn.server
from hypothesis import HealthCheck, settings

from examples.mailbox.server import Mailbox

_SLOW = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("fast", _SLOW, max_examples=25)
settings.register_profile("deep", _SLOW, max_examples=2000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fast"))

# A run in a shell's background ignores SIGINT, and so would every process that a test interrupts.
signal.signal(signal.SIGINT, signal.default_int_handler)


_REAL = (
    "tests/agents/", "tests/screen/test_keys_at_a_terminal.py",
    *(f"tests/process/test_{name}.py" for name in (
        "attach", "canaries", "console_terminal", "crash", "demo", "newcomers", "oauth", "relay_restart",
    )),
)  # fmt: skip
"""What waits for a real terminal, a kill or an agent, as single tests with the mark `real` do. All else
runs in its own time and is tried once."""
_NOT_REAL = tuple(f"tests/agents/test_{name}.py" for name in (
    "agent_run", "box", "contained", "contained_git", "doctor", "gateway", "host_network",
    "no_credentials", "places", "settings",
))  # fmt: skip
"""One short program after another in a sandbox."""


_SANDBOXED = ("core/builtin", "core/containment", "core/launch")
_ON_DISK = tuple(f"tests/{each}/" for each in ("agents", "process", *_SANDBOXED))
"""Their sandboxes have a /dev of their own."""


_FIRST: tuple[str | tuple[str, ...], ...] = (
    ("tests/process/test_install_pages.py::", "tests/process/test_install_wheel.py::"),
    ("tests/core/server/augment/", "tests/fast/models/"),
    "tests/screen/test_hostile_text.py::",
    "tests/process/test_newcomers.py::test_the_page_leads_from_an_empty",
    "tests/process/test_newcomers.py::test_every_line",
    "tests/process/test_demo.py::",
    "tests/agents/test_packages.py::",
    "tests/process/test_newcomers.py::test_the_page_leads_from_nothing",
    "tests/agents/test_server_kills.py::",
    "tests/core/server/test_review_page.py::test_no_text_from_outside",
    "tests/screen/test_presses.py::test_each_press",
    "tests/process/test_hostile_text.py::test_a_hostile_world",
)
"""What takes longest, the longest first: begun last, it would keep one worker busy and the others idle.

Each is one worker's, which then builds the wheel, or imports the SDKs, for all.
"""


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Generator[None, None, None]:
    """A failure of a real test is tried once more; the longest tests begin before the others."""
    for item in items:
        if item.nodeid.startswith(_REAL) and not item.nodeid.startswith(_NOT_REAL):
            item.add_marker(pytest.mark.real)
        if item.get_closest_marker("real"):
            item.add_marker(pytest.mark.flaky(reruns=1))
    yield
    items[:] = _longest_first(items, int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Show each failure of a test that passed when it was tried again, so that the next change mends it."""
    failed = {each.nodeid for each in terminalreporter.getreports("failed")}
    for each in terminalreporter.getreports("rerun"):
        if each.nodeid not in failed:
            terminalreporter.write_line(f"flaky: {each.nodeid}\n{each.longreprtext}", red=True)


def _longest_first(items: list[pytest.Item], workers: int) -> list[pytest.Item]:
    """Return *items* with the longest at the heads of the parts that xdist deals to its *workers*."""
    found = [[item for item in items if item.nodeid.startswith(start)] for start in _FIRST]
    long = [each for each in found if each]
    taken = {item for each in long for item in each}
    others = iter([item for item in items if item not in taken])
    ordered: list[pytest.Item] = []
    for worker in range(workers):
        size = (len(items) - len(ordered)) // (workers - worker)
        part = list(itertools.chain.from_iterable(long[worker::workers]))
        ordered += [*part, *itertools.islice(others, max(0, size - len(part)))]
    return ordered


def pytest_collectstart() -> None:
    """Look for no garbage while tests are collected: there is next to none."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Leave what stays to the end out of every garbage collection: that is a sixth of a worker's time."""
    gc.freeze()  # with the little garbage there is: to find it takes a twelfth of the collection
    gc.set_threshold(10_000, 10, 10)  # an eighth of the rest
    gc.enable()


def pytest_sessionfinish() -> None:
    """Collect garbage once: pytest does so five times more, over all that a worker holds by then."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def no_collection() -> Iterator[None]:
    """For code that meets the limit of recursion: so would the finalizers of what other tests left."""
    gc.disable()
    yield
    gc.enable()


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


@pytest.fixture(scope="session", autouse=True)
def _servers_end_at_once() -> Iterator[None]:
    """uvicorn looks ten times a second whether its connections have ended, and waits as long where it had none."""

    async def sleep(seconds: float) -> None:
        await asyncio.sleep(min(seconds, 0.005))

    impatient = SimpleNamespace(**vars(asyncio) | {"sleep": sleep})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(uvicorn.server, "asyncio", impatient)
        yield


@functools.cache
def _memory() -> str | None:
    """Return the system's folder in memory, where there is room in it and programs in it may run."""
    try:
        found = os.statvfs("/dev/shm")
    except OSError:
        return None
    roomy = found.f_bavail * found.f_frsize > 2**30
    usable = os.access("/dev/shm", os.W_OK) and not found.f_flag & (os.ST_NOEXEC | os.ST_RDONLY)
    return "/dev/shm" if roomy and usable else None


@pytest.fixture
def folder(request: pytest.FixtureRequest) -> Iterator[Path]:
    """An empty folder, with a path short enough for a socket: where nothing waits for a disk, if it can be there."""
    place = None if request.node.nodeid.startswith(_ON_DISK) else _memory()
    with tempfile.TemporaryDirectory(prefix="ail-", dir=place) as made:
        yield Path(made)


@pytest.fixture
def home(folder: Path) -> Path:
    """A short-lived home folder with a path short enough for a socket."""
    path = folder / "home"
    path.mkdir(mode=0o700)
    return path


@pytest.fixture
def project(tmp_path: Path) -> Path:
    path = tmp_path / "project"
    path.mkdir()
    return path


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """Tests that are coroutines run on asyncio, each on a loop of its own."""
    return "asyncio"


@pytest.fixture
def mailbox() -> Iterator[Mailbox]:
    """The mail service behind the example connector, with its five drafts."""
    with Mailbox() as running:
        yield running
