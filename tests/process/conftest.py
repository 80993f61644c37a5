"""Homes with the examples in them, the mailbox on loopback, and consoles on both."""

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from examples.mailbox.server import Mailbox
from tests.process.attended import ScreenConsole
from tests.support.installing import Installed, build_wheel
from tests.support.server_harness import ROOT, Attend, Attended, Console, Serve, aileron
from tests.support.vaults import PHRASE, make_vault


@pytest.fixture(scope="session")
def furnished() -> Iterator[Path]:
    """A home with the example actions and connector in it, nothing accepted yet; to be copied."""
    with tempfile.TemporaryDirectory(prefix="ail-") as folder:
        home = Path(folder) / "home"
        for file in sorted((ROOT / "examples" / "actions").glob("*.md")):
            aileron("action", "add", str(file), home=home)  # one by one: each is its own item
        connector = ROOT / "examples" / "connectors" / "mail-drafts"
        aileron("connector", "install", str(connector), home=home)
        yield home


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(ROOT, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="session")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return Installed(tmp_path_factory.mktemp("environment") / "venv", wheel)


@pytest.fixture
def home(furnished: Path, folder: Path) -> Path:
    """A furnished home of the test's own, with a path short enough for a socket."""
    return shutil.copytree(furnished, folder / "home")


@pytest.fixture
def serve(home: Path, mailbox: Mailbox) -> Iterator[Serve]:
    """Consoles of the test's home; all end before the mailbox, which would wait for what they still ask it."""
    with ExitStack() as ending:
        yield lambda *given, **more: ending.enter_context(closing(Console(home, *given, **more)))


@pytest.fixture
def console(serve: Serve, mailbox: Mailbox) -> Console:
    """`aileron serve` with everything accepted and the mailbox behind it."""
    return serve(mailbox)


@pytest.fixture
def unlocked(home: Path, serve: Serve) -> Console:
    """`aileron serve` on the test's home, with everything accepted and the vault unlocked."""
    make_vault(home, PHRASE)
    console = serve()
    assert console.unlock(PHRASE).status == 200
    return console


@pytest.fixture
def attend(home: Path, mailbox: Mailbox) -> Iterator[Attend]:
    with ExitStack() as ending:
        yield lambda **more: ending.enter_context(closing(Attended(home, mailbox, **more)))


@pytest.fixture
def sit(home: Path, mailbox: Mailbox) -> Iterator[Callable[..., ScreenConsole]]:
    with ExitStack() as ending:
        yield lambda **more: ending.enter_context(closing(ScreenConsole(home, mailbox, **more)))


@pytest.fixture
def attended(attend: Attend) -> Attended:
    return attend()


@pytest.fixture
def token(shared: Console) -> str:
    return shared.session()["token"]


@pytest.fixture(scope="session")
def shared(furnished: Path) -> Iterator[Console]:
    """One `aileron serve` for the tests that leave no trace which another would mind."""
    with tempfile.TemporaryDirectory(prefix="ail-") as folder, Mailbox() as mailbox:
        running = Console(shutil.copytree(furnished, Path(folder) / "home"), mailbox)
        yield running
        running.close()
