"""What every test shares: Hypothesis profiles, a clean environment, a home of its own."""

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


_SLOW = (
    "tests/agents/",
    "tests/e2e/",
    "tests/tui/",
    "tests/unit/adversary/",
    "tests/unit/connectors/test_compiling.py",
    "tests/unit/containment/git/",
    "tests/unit/connectors/test_flooding_guests.py",
    "tests/unit/connectors/test_foreign_c.py",
    "tests/unit/connectors/test_posted_reads.py",
    "tests/unit/console/test_agent_at_the_door.py",
    "tests/unit/console/test_stop_everything.py",
    "tests/unit/console/test_suites.py",
    "tests/unit/console/test_who_asks.py",
    "tests/unit/cli/test_connector_check.py",
    "tests/unit/cli/test_logs.py",
    "tests/unit/runs/test_calling.py",
    "tests/unit/runs/test_decisions.py",
    "tests/unit/runs/test_halting.py",
    "tests/unit/runs/test_unknown_outcomes.py",
    "tests/unit/runs/test_pause.py",
    "tests/unit/runs/test_previews_by_post.py",
    "tests/unit/runs/test_recovery",
    "tests/unit/runs/test_refresh.py",
    "tests/unit/runs/test_retries.py",
    "tests/unit/runs/test_unwritable.py",
    "tests/unit/server/gateway/",
    "tests/unit/launch/",
    "tests/unit/tui/",
    "tests/property/test_http_frames.py",
    "tests/property/test_later_steps.py",
    "tests/property/test_outgoing_frames.py",
    "tests/property/test_gateway_bytes.py",
    "tests/property/test_queue.py",
    "tests/property/test_relay_frames.py",
    "tests/unit/mcp/test_clients.py",
    "tests/unit/mcp/test_mount.py",
    "tests/unit/mcp/test_relay.py",
)
"""Real processes, a real screen, long attacks: `make check` leaves them to `make test`."""


_SECOND_TRY = (
    "tests/tui/test_pictures_of_",
    "tests/tui/test_looks.py",
    "tests/tui/test_layouts.py",
)
"""Looks alone. What may decide, send or leak is tried once: a misfire now and then is a misfire."""


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave unread what `make check` would leave out: every worker reads all that it is given."""
    leaves_out = config.getoption("markexpr") == "not slow"
    return True if leaves_out and _named(collection_path).startswith(_SLOW) else None


def _named(path: Path) -> str:
    return path.relative_to(Path(__file__).parents[1]).as_posix()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what drives processes and screens as slow; a picture that came late is taken once more."""
    for item in items:
        path = _named(item.path)
        if path.startswith(_SLOW):
            item.add_marker(pytest.mark.slow)
        if path.startswith(_SECOND_TRY):
            item.add_marker(pytest.mark.flaky(reruns=1))


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


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """Tests that are coroutines run on asyncio, each on a loop of its own."""
    return "asyncio"
