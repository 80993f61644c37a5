"""Homes with the examples in them, the mailbox on loopback, and consoles on both."""

import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from examples.mailbox.server import Mailbox
from tests.process.attended import ScreenConsole
from tests.support.server_harness import ROOT, Attend, Attended, Console, Serve, aileron


@pytest.fixture(scope="session")
def furnished() -> Iterator[Path]:
    """A home with the example actions and connector in it, nothing accepted yet; to be copied."""
    with tempfile.TemporaryDirectory(prefix="ail-") as folder:
        home = Path(folder) / "home"
        for file in sorted((ROOT / "examples" / "actions").glob("*.md")):
            aileron("action", "add", str(file), home=home)  # one by one: each is its own item
        aileron(
            "connector", "install", str(ROOT / "examples" / "connectors" / "mail-drafts"), home=home
        )
        yield home


@pytest.fixture
def home(furnished: Path) -> Iterator[Path]:
    """A furnished home of the test's own, with a path short enough for a socket."""
    with tempfile.TemporaryDirectory(prefix="ail-") as folder:
        path = Path(folder) / "home"
        shutil.copytree(furnished, path)
        yield path


@pytest.fixture
def mailbox() -> Iterator[Mailbox]:
    """The service behind the example connector, with its five drafts."""
    with Mailbox() as running:
        yield running


@pytest.fixture
def serve(home: Path) -> Iterator[Serve]:
    """Start `aileron serve` on the test's home; ended with the test."""
    running: list[Console] = []

    def start(*arguments: Any, **more: Any) -> Console:
        running.append(Console(home, *arguments, **more))
        return running[-1]

    yield start
    for console in running:
        console.close()


@pytest.fixture
def console(serve: Serve, mailbox: Mailbox) -> Console:
    """`aileron serve` with everything accepted and the mailbox behind it."""
    return serve(mailbox)


@pytest.fixture
def attend(home: Path, mailbox: Mailbox) -> Iterator[Attend]:
    """Start a console with a person in it; its first life may have a failpoint."""
    running: list[Attended] = []

    def start(**more: Any) -> Attended:
        running.append(Attended(home, mailbox, **more))
        return running[-1]

    yield start
    for console in running:
        console.close()


@pytest.fixture
def sit(home: Path, mailbox: Mailbox) -> Iterator[Callable[..., ScreenConsole]]:
    """Start the real console on a terminal; ended with the test."""
    running: list[ScreenConsole] = []

    def start(**options: object) -> ScreenConsole:
        running.append(ScreenConsole(home, mailbox, **options))
        return running[-1]

    yield start
    for console in running:
        console.close()


@pytest.fixture
def attended(attend: Attend) -> Attended:
    """A console with a person in it."""
    return attend()


@pytest.fixture(scope="session")
def shared_mailbox() -> Iterator[Mailbox]:
    """The mailbox behind `shared`."""
    with Mailbox() as running:
        yield running


@pytest.fixture(scope="session")
def shared(furnished: Path, shared_mailbox: Mailbox) -> Iterator[Console]:
    """One `aileron serve` for the tests that leave no trace which another would mind."""
    with tempfile.TemporaryDirectory(prefix="ail-") as folder:
        path = Path(folder) / "home"
        shutil.copytree(furnished, path)
        running = Console(path, shared_mailbox)
        yield running
        running.close()


@pytest.fixture
def token(shared: Console) -> str:
    """A session's token at `shared`."""
    return shared.session()["token"]
