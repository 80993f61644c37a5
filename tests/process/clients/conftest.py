"""Two consoles with a person each, one that waits for them and one that does not, over a scripted model.

The programs of `programs/` are real processes that `aileron launch --augment` starts.
"""

import asyncio
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.core.server.augment.harness import _furnish
from tests.core.server.augment.scripted_model import Call, ScriptedModel, Text
from tests.core.server.gateway.harness import Upstream
from tests.support.forked import forked
from tests.support.server_harness import CLI, Attended

PROGRAMS = Path(__file__).parent / "programs"
KEYS = {"OPENAI_API_KEY": "sk-own", "ANTHROPIC_API_KEY": "sk-own"}


class Model:
    """A scripted model on loopback, on a loop of its own; each program gets its own script."""

    def __init__(self) -> None:
        self.script = ScriptedModel()
        self._loop = asyncio.new_event_loop()
        self._over = asyncio.Event()
        self._up = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        self._up.wait()

    def _run(self) -> None:
        self._loop.run_until_complete(self._serve())

    async def _serve(self) -> None:
        async def answer(*given: Any) -> None:
            await self.script(*given)

        async with Upstream(answer).listening() as upstream:
            self.url = f"http://127.0.0.1:{upstream.port}"
            self._up.set()
            await self._over.wait()

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join()
        self._loop.close()


@dataclass
class Client:
    """A program that runs, the model that it asks, and the person who is asked."""

    process: "subprocess.Popen[str]"
    console: Attended
    model: ScriptedModel
    stderr: Path
    reads: "Callable[[Client], str]"
    """Reads the program's answer to one question."""
    before: frozenset[str]
    """What the console had been asked before this program."""
    goodbye: str = ""
    """What it wants to hear before it ends in order."""
    notes: list[str] = field(default_factory=list)
    """What the program's own tool wrote down."""

    def ask(self, question: str, *answers: Sequence[Text | Call]) -> None:
        self.model.answers += answers
        assert self.process.stdin is not None
        self.process.stdin.write(question + "\n")
        self.process.stdin.flush()

    def answer(self) -> str:
        text = self.reads(self)
        assert self.model.answers == []
        return text

    def line(self) -> str:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, f"the program ended: {self.stderr.read_text()[-3000:]}"
        return line

    def waiting(self) -> str:
        """Return the approval that the model's call became, once a person could answer it."""
        views = self.console.views

        def mine() -> list[str]:
            assert self.process.poll() is None, self.stderr.read_text()[-3000:]
            return [each for each in views if each not in self.before and views[each]["digest"]]

        assert self.console.until(lambda: bool(mine()))
        (approval_id,) = mine()
        assert views[approval_id]["state"] == "pending"
        return approval_id

    def told(self, request: int) -> list[str]:
        """Return each item of the history that the model was asked with, as JSON."""
        body = self.model.requests[request]
        history = body["messages"] if "messages" in body else body["input"]
        items = history if isinstance(history, list) else [history]
        return [json.dumps(each) for each in items]

    def end(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(self.goodbye)
        self.process.stdin.close()
        assert self.process.wait(60) == 0, self.stderr.read_text()

    def close(self) -> None:
        self.process.kill()
        for stream in (self.process.stdin, self.process.stdout):
            assert stream is not None
            with contextlib.suppress(BrokenPipeError):
                stream.close()
        self.process.wait()


def _read_json(client: Client) -> str:
    said = json.loads(client.line())
    client.notes = said["notes"]
    return said["text"]


@dataclass
class Room:
    """A console with a person, and the programs that are launched under it."""

    console: Attended
    model: Model
    folder: Path

    def launch(
        self, *words: str, reads: Callable[[Client], str] = _read_json, goodbye: str = ""
    ) -> Client:
        self.model.script = ScriptedModel()
        if words[0].endswith(".py"):
            words = (sys.executable, str(PROGRAMS / words[0]), *words[1:])
        project = Path(tempfile.mkdtemp(dir=self.folder))
        stderr = project / "stderr"
        kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        with stderr.open("wb") as file:
            process = forked(
                [*CLI, "launch", "--home", str(self.console.home), "--augment", *words],
                cwd=project,
                env={**kept, **KEYS, "HOME": str(project)},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=file,
                text=True,
            )
        return Client(
            process=process,
            console=self.console,
            model=self.model.script,
            stderr=stderr,
            reads=reads,
            before=frozenset(self.console.views),
            goodbye=goodbye,
        )


@pytest.fixture(scope="module")
def model() -> Iterator[Model]:
    """The model behind both consoles."""
    made = Model()
    yield made
    made.close()


def _room(model: Model, settings: str) -> Iterator[Room]:
    with tempfile.TemporaryDirectory(prefix="ail-") as name:
        folder = Path(name)
        home = folder / "home"
        home.mkdir(mode=0o700)
        _furnish(home)
        gateway = f'[gateway]\nanthropic = "{model.url}"\nopenai = "{model.url}"\n'
        (home / "config.toml").write_text(gateway + settings, encoding="utf-8")
        with contextlib.closing(Attended(home)) as console:
            yield Room(console, model, folder)


@pytest.fixture(scope="module")
def patient(model: Model) -> Iterator[Room]:
    """A console that holds a call for a person as long as it takes."""
    yield from _room(model, "[mcp]\nhold_seconds = 30\n")


@pytest.fixture(scope="module")
def impatient(model: Model) -> Iterator[Room]:
    """A console that says at once that a call is pending."""
    yield from _room(model, "[mcp]\nhold_seconds = 0\n")
