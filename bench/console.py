"""The console: first frame, key to durable decision, an agent's request while the screen is busy.

Everything is a real process on a real terminal (a pty of 120 by 36), with the server inside, on a
home in which so many calls wait. First frame: from exec until the item and the list stand there,
beside a Textual App that shows the same rows in a DataTable and does nothing else, in the same
rounds; the first line that stands there meanwhile; what console and example service take of a core
at rest. Key to durable decision: from the byte written to the pty until another reader of the
database sees the commit; 20 ms of it are the silence that a press wants. The request: a call that
runs an action which does nothing, records included, while a person holds a key down and calls keep
coming, beside `aileron serve` on the same home.
"""

import asyncio
import contextlib
import fcntl
import http.client
import json
import os
import pty
import re
import select
import signal
import sqlite3
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from aileron_core.app import App, AppOptions
from aileron_core.home.client import HomeClient
from aileron_core.home.layout import Home
from aileron_core.runs import Call
from aileron_core.settings import Settings
from aileron_tui.words.bars import NOTHING_WAITS
from bench.support import (
    AILERON,
    Aims,
    amount,
    fill,
    milliseconds,
    p99,
    processor_seconds,
    serving,
)

WAITING = amount((0, 1_000, 10_000), check=(0, 20))
ROUNDS = amount(5, check=1)
DECISIONS = amount(25, check=1)
REQUESTS = amount(600, check=20)
REST = amount(30.0, check=1.0)
"""Seconds for which the processor time at rest is counted."""
PACE = 0.02
"""Seconds from one request to the next."""
HELD = 0.033
"""Seconds between the repeats of a key that is held down."""
SETTLED = amount(15.0, check=1.0)
"""After the start: the `mcp` package is imported behind the first frame, and what waited is taken up."""
PER_SESSION = 20
PATIENCE = amount(120.0, check=60.0)

_FOREIGN = frozenset({"COLUMNS", "LINES", "NO_COLOR"})
"""Variables that test runners pin a size with."""
_SGR = re.compile(rb"\x1b\[[0-9;]*m")
_FILLED = re.compile(rb"48;2;95;201;184[0-9;]*m a ")
"""The approve key in ink on teal: the very next press decides."""

DRAWN = ("┊ n ", " asks, ")
"""A row of the list, and the item's head: with calls that wait, the first frame stands there."""

_APPROVED = "SELECT 1 FROM audit WHERE seq > ? AND event = 'approval.approved'"

_BARE = """
import sys
from textual.app import App
from textual.widgets import DataTable

class Bare(App):
    def compose(self):
        yield DataTable(cursor_type="row")

    def on_mount(self):
        table = self.query_one(DataTable)
        table.add_columns("", "effect", "gist", "agent", "left")
        table.add_rows(
            ("o", "ASK", f"n {number}", "bench", "no deadline") for number in range(int(sys.argv[1]))
        )
        self.query_one(DataTable).focus()

Bare().run()
"""


class Screen:
    """A program on a pty: what it draws, and when."""

    def __init__(self, command: list[str], environment: dict[str, str]) -> None:
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 36, 120, 0, 0))
        self.began = time.perf_counter()
        self.process = subprocess.Popen(
            command,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env={
                **{name: value for name, value in environment.items() if name not in _FOREIGN},
                "TERM": "xterm-256color",
                "COLORTERM": "truecolor",
                "COLORFGBG": "15;0",  # this terminal answers no question for its ground
            },
            start_new_session=True,
        )
        os.close(slave)
        self.raw = b""

    def read(self, seconds: float) -> bool:
        """Take what comes within *seconds*; return whether anything did."""
        ready, _, _ = select.select([self.master], [], [], seconds)
        if ready:
            self.raw += os.read(self.master, 65536)
        return bool(ready)

    def until(self, holds: Callable[[bytes], bool]) -> float:
        """Read until *holds* of everything since the last call; return the seconds since the start."""
        deadline = time.perf_counter() + PATIENCE
        while not holds(self.raw):
            assert time.perf_counter() < deadline, _SGR.sub(b"", self.raw)[-2000:]
            self.read(0.5)
        self.raw = b""
        return time.perf_counter() - self.began

    def shows(self, *texts: str) -> float:
        """Wait until all of *texts* were drawn."""
        wanted = [text.encode() for text in texts]
        return self.until(lambda raw: all(text in _SGR.sub(b"", raw) for text in wanted))

    def press(self, key: bytes) -> None:
        """Write *key* as a terminal would."""
        os.write(self.master, key)

    def rest(self, seconds: float) -> None:
        """Let it work for so long, and take what it draws."""
        until = time.perf_counter() + seconds
        while (rest := until - time.perf_counter()) > 0:
            self.read(rest)

    @property
    def resident(self) -> float:
        """Resident memory in MB."""
        status = Path(f"/proc/{self.process.pid}/status").read_text(encoding="ascii")
        found = re.search(r"VmRSS:\s+(\d+) kB", status)
        return int(found[1]) / 1000 if found else float("nan")

    @property
    def processor(self) -> float:
        """Processor time so far, in seconds."""
        return processor_seconds(self.process.pid)

    def __enter__(self) -> "Screen":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.send_signal(signal.SIGTERM)
        while self.process.poll() is None:
            with contextlib.suppress(OSError):
                self.read(0.05)
        os.close(self.master)


def _environment(home: Path) -> dict[str, str]:
    return {**os.environ, "AILERON_HOME": str(home), "LANG": "C.UTF-8"}


def _console(home: Path) -> Screen:
    return Screen([*AILERON, "console", "--accept-installed"], _environment(home))


async def _wait_for(home: Home, count: int) -> None:
    settings = Settings(expires_seconds=0)
    async with App.open(home, AppOptions(accept_installed=True, settings=settings)) as app:
        for first in range(0, count, PER_SESSION):
            opened = await app.session_service.open(
                agent="bench", label="", cwd="/", claimed_pid=None, peer_pid=os.getpid(), ttl=3600
            )
            calls = (
                app.gate.run(Call(session=opened.session, action="ask-nothing", args={"n": number}))
                for number in range(first, min(first + PER_SESSION, count))
            )
            await asyncio.gather(*calls)


def _home(folder: Path, count: int, *, filled: bool = True) -> Path:
    home = Home(folder / f"home-{count}{'' if filled else '-empty'}")
    home.prepare()
    if not filled:
        return home.path
    fill(home.path)
    home.config.write_text("[approval]\nexpires_seconds = 0\n", encoding="utf-8")
    asyncio.run(_wait_for(home, count))
    return home.path


def _first_frames(homes: dict[str, tuple[int, Path]], aims: Aims) -> None:
    print(f"  first frame, exec to drawn, {ROUNDS} rounds in turn")
    ours: dict[str, list[float]] = {name: [] for name in homes}
    bare: dict[str, list[float]] = {name: [] for name in homes}
    work: dict[str, list[float]] = {name: [] for name in homes}
    bare_work: dict[str, list[float]] = {name: [] for name in homes}
    lines: list[float] = []
    memory: dict[str, float] = {}
    for _ in range(ROUNDS):
        for name, (count, home) in homes.items():
            drawn = DRAWN if count else (NOTHING_WAITS,)
            with _console(home) as screen:
                lines.append(screen.shows("aileron: opening"))
                ours[name].append(screen.shows(*drawn))
                work[name].append(screen.processor)
                memory[name] = screen.resident
            with Screen([sys.executable, "-c", _BARE, str(count)], dict(os.environ)) as peer:
                bare[name].append(peer.shows("n 5" if count else "effect"))
                bare_work[name].append(peer.processor)
    print(f"    first line       {milliseconds(lines)}")
    aims.at_most("first line, ms", statistics.median(lines) * 1e3, 150)
    for name in homes:
        ratio = statistics.median(ours[name]) / statistics.median(bare[name])
        of_work = statistics.median(work[name]) / statistics.median(bare_work[name])
        if (aim := {"empty home": 2.0, str(max(WAITING)): 1.4}.get(name)) is not None:
            aims.at_most(f"first frame, {name}, times a bare application", ratio, aim)
        print(f"    {name:>15s}  {milliseconds(ours[name])}   {memory[name]:.0f} MB")
        print(f"      DataTable      {milliseconds(bare[name])}   ratio {ratio:.2f}")
        print(f"      processor time: ratio {of_work:.2f}")


def _at_rest(home: Path, aims: Aims) -> None:
    print(f"  at rest for {REST:.0f} s, of one core")
    with _console(home) as screen:
        screen.shows(NOTHING_WAITS)
        screen.rest(SETTLED)
        begun = screen.processor
        screen.rest(REST)
        taken = (screen.processor - begun) / REST
    print(f"    console, empty  {taken:.2%}")
    aims.at_most("console at rest, % of a core", taken * 100, 1)
    service = subprocess.Popen(
        [*AILERON, "example", "--port", "0", "--json"], stdout=subprocess.PIPE
    )
    assert service.stdout is not None
    service.stdout.readline()
    begun = processor_seconds(service.pid)
    time.sleep(REST)
    taken = (processor_seconds(service.pid) - begun) / REST
    print(f"    example         {taken:.2%}")
    aims.at_most("example at rest, % of a core", taken * 100, 1)
    service.terminate()
    service.wait()


def _decisions(home: Path, count: int, aims: Aims) -> None:
    """Press the approve key on one item after the other, each time as soon as it is filled."""
    database = sqlite3.connect(f"file:{home / 'aileron.db'}?mode=ro", uri=True)
    took: list[float] = []
    dropped = 0
    with _console(home) as screen:
        screen.rest(SETTLED)
        while len(took) < DECISIONS:
            screen.until(lambda raw: _FILLED.search(raw) is not None)
            while screen.read(0.05):
                pass
            screen.raw = b""  # what was drawn of this item says nothing of the next
            seconds = _yes(screen, database)
            if seconds is None:
                dropped += 1  # the machine was so slow that the press did not meet a hand at rest
            else:
                took.append(seconds)
    database.close()
    dropped_note = f"  ({dropped} presses did not count)" if dropped else ""
    print(f"    {count:6d} wait   {milliseconds(took)}{dropped_note}")
    aims.at_most(f"key to decision, {count} wait, p50 ms", statistics.median(took) * 1e3, 50)


def _yes(screen: Screen, database: sqlite3.Connection) -> float | None:
    """Press the key; return the seconds until its record is committed, None if there comes none."""
    (last,) = database.execute("SELECT max(seq) FROM audit").fetchone()
    pressed = time.perf_counter()
    screen.press(b"a")
    while (seconds := time.perf_counter() - pressed) < 2:
        if database.execute(_APPROVED, (last,)).fetchone() is not None:
            return seconds
    return None


@contextlib.contextmanager
def _busy(screen: Screen) -> Iterator[None]:
    """Hold a key down and draw what comes, on a thread: the screen works without a pause."""
    ended = threading.Event()

    def work() -> None:
        keys = 0
        due = time.perf_counter()
        while not ended.is_set():
            while (rest := due - time.perf_counter()) > 0:
                screen.read(rest)
            screen.press(b"jk"[keys // 40 % 2 : keys // 40 % 2 + 1])
            keys, due = keys + 1, due + HELD
            screen.raw = b""

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _requests(home: Path, url: str) -> list[float]:
    opened = HomeClient(home).request("POST", "/v1/sessions", {"agent": "bench", "cwd": "/"})[1]
    headers = {"Authorization": f"Bearer {opened['token']}", "Content-Type": "application/json"}
    connection = http.client.HTTPConnection(url.removeprefix("http://"))
    took: list[float] = []
    due = time.perf_counter()
    for number in range(REQUESTS + 20):
        time.sleep(max(0.0, due - time.perf_counter()))
        due += PACE
        name = "ask-nothing" if number % 50 == 0 and number < 900 else "nothing"
        began = time.perf_counter()
        body = json.dumps({"args": {"n": number}}).encode()
        connection.request("POST", f"/v1/actions/{name}/run", body, headers)
        response = connection.getresponse()
        said = response.read()
        if number >= 20:
            took.append(time.perf_counter() - began)
        assert response.status in (200, 202), said
    return took


def _agent(home: Path, count: int, aims: Aims) -> None:
    with _console(home) as screen:
        screen.shows(*DRAWN)
        screen.rest(SETTLED)
        while not (home / "daemon.json").exists():  # it listens some time after the first frame
            assert time.perf_counter() - screen.began < PATIENCE
            screen.read(0.1)
        url = json.loads((home / "daemon.json").read_text(encoding="utf-8"))["url"]
        with _busy(screen):
            busy = _requests(home, url)
    with serving(home) as server:
        time.sleep(SETTLED)
        alone = _requests(home, server["url"])
    ratio = statistics.median(busy) / statistics.median(alone)
    print(f"    busy screen, {count:6d} wait   {milliseconds(busy)}")
    aims.at_most(f"request beside a busy screen, {count} wait, p99 ms", p99(busy) * 1e3, 10)
    print(f"    serve, {count:6d} wait         {milliseconds(alone)}  ratio of p50 {ratio:.2f}")


def main() -> None:
    """Print all of them."""
    print("console: on a pty of 120 by 36")
    aims = Aims()
    with tempfile.TemporaryDirectory(prefix="aileron-bench-") as name:
        homes = {count: _home(Path(name), count) for count in WAITING}
        empty = _home(Path(name), 0, filled=False)
        frames = {str(count): (count, home) for count, home in homes.items()}
        _first_frames({"empty home": (0, empty), **frames}, aims)
        _at_rest(empty, aims)
        print(f"  key to durable decision, {DECISIONS} yeses")
        for count in WAITING[1:]:
            _decisions(homes[count], count, aims)
        print(f"  an agent's request, {REQUESTS} of them, one each {PACE * 1e3:.0f} ms")
        for count in WAITING[1:]:
            _agent(homes[count], count, aims)
    aims.report()


if __name__ == "__main__":
    main()
