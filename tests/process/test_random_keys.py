"""Thousands of random bytes in bursts, over a full queue of the real console: nothing is decided."""

import random
from collections.abc import Callable, Iterator
from time import monotonic, sleep

import pytest

from examples.mailbox.server import Mailbox
from tests.process.attended import ScreenConsole
from tests.support.server_harness import DRAFT, eventually
from tests.support.variants import ALL, variants

WAITING = 20
"""As many as one session may have."""
BYTES = 2_500 if ALL else 400
"""For each seed."""
SEEDS = variants(range(20))
APART = 0.2
"""Seconds between two keys of a hand: an escape alone is one after a tenth."""

TOKENS: tuple[tuple[int, tuple[bytes, ...]], ...] = (
    (30, (b"a", b"d", b"A", b"D", b"t", b"\r", b"\n", b"h", b"e", b"s")),
    (10, (b"\x1b", b" ", b"j", b"k", b"J", b"K", b"b", b"r", b"u", b"v", b"x", b"y", b"z")),
    (8, (b"1", b"2", b"3", b"4", b"5", b"/", b"?", b"P", b"R", b"q", b"o", b"f", b"g", b"O")),
    (8, tuple(bytes([code]) for code in range(1, 32))),
    (6, (b"\x1b[A", b"\x1b[B", b"\x1b[5~", b"\x1b[6~", b"\x1b[H", b"\x1b[F", b"\x1bOP", b"\x1b[Z")),
    (5, (b"\x1b[200~", b"\x1b[201~", b"\x1b[I", b"\x1b[O", b"\x1b[1;1R", b"\x1b[<35;40;9M")),
    (5, (b"\x1b[<0;60;9M", b"\x1b[<0;60;9m", b"\x1b[<0;9;6M", b"\x1b[<0;9;6m", b"\x1b[<64;9;9M")),
    (4, (b"\x1ba", b"\x1bd", b"\x1b\r", b"\x1b[", b"\x1b]0;a\x07", b"\x1bP", b"\x1b[1;5A")),
    (14, tuple(bytes([code]) for code in range(256))),
)
"""Weighted towards what decides, asks and breaks; the last: any byte at all."""


def bursts(seed: int) -> Iterator[tuple[bytes, float]]:
    """Yield bursts of at least two bytes, `BYTES` in all, and how many seconds of rest follow each."""
    chance = random.Random(seed)
    weights = [weight for weight, _ in TOKENS]
    left = BYTES
    while left > 0:
        size = chance.choice((2, 2, 2, 3, 3, 4, 6, 12, 40, 120))
        burst = chance.choice((b"", b"a", b"d", b"t", b"\r"))
        while len(burst) < size:
            burst += chance.choice(chance.choices(TOKENS, weights)[0][1])
        if _one_key(burst):
            continue  # that is what a person presses
        left -= len(burst)
        yield burst, chance.choice((0.03, 0.12, 0.45, 0.55))


def _one_key(burst: bytes) -> bool:
    """Tell two or more bytes that are one key all the same."""
    try:
        return len(burst.decode()) == 1
    except UnicodeDecodeError:
        return False


def propose(console: ScreenConsole, times: int) -> None:
    for _ in range(times):
        token = console.session(label="random keys")["token"]
        answer = console.run("send-draft", {"draft_id": DRAFT}, token)
        assert answer.status == 202
    console.pty.until(lambda: f" {times} " in console.pty.cells.lines[0], "all wait")


def decisions_of(console: ScreenConsole) -> list[str]:
    """Return what a person decided: ends of calls, files accepted or withdrawn, sessions ended."""
    chosen = ("approval.", "pin.", "library.", "session.ended")
    return [
        record["event"]
        for record in console.records()
        if record["actor"] == "person" and record["event"].startswith(chosen)
    ]


@pytest.mark.timeout(400)
@pytest.mark.parametrize("seed", SEEDS)
def test_random_bytes_in_bursts_decide_nothing(
    sit: Callable[..., ScreenConsole], mailbox: Mailbox, seed: int
) -> None:
    """No row changes; and the same console decides exactly one call for one key of a hand at rest."""
    console = sit(answers=seed % 2 == 0)
    propose(console, WAITING)
    before = decisions_of(console)
    late = 0
    for number, (burst, rest) in enumerate(bursts(seed)):
        if number % 12 == 0:
            come_back(console)
        late += send_burst(console, burst, apart=len(burst) <= 4 and number % 2 == 0)
        console.pty.settle(rest)
        assert console.process.poll() is None, console.pty.raw[-400:]
    console.pty.settle(1.0)
    assert console.pty.cells.strangers == []
    if late:
        # This busy machine made single keys of them, and a key at rest may count.
        assert console.rows("state").count(("pending",)) >= WAITING - late
        return
    assert console.rows("state") == [("pending",)] * WAITING
    assert decisions_of(console) == before
    assert mailbox.state()["sent"] == []
    approve_one(console)
    eventually(lambda: len(mailbox.state()["sent"]) == 1, "one mail is sent", seconds=40)
    assert console.rows("state").count(("pending",)) == WAITING - 1


def come_back(console: ScreenConsole) -> None:
    """Leave what the bursts opened, as a person does: where every key is dead they prove nothing."""
    for key in (b"\x1b[I", b"\x1b", b"1", b" ", b" "):
        console.pty.type(key)
        console.pty.settle(APART)


def send_burst(console: ScreenConsole, burst: bytes, *, apart: bool) -> bool:
    """Send a burst, its first byte 5 ms ahead where *apart*; return whether it took too long for one."""
    if not apart:
        console.pty.type(burst)
        return False
    at = monotonic()
    console.pty.type(burst[:1])
    while monotonic() < at + 0.005:
        sleep(0)
    console.pty.type(burst[1:])
    return monotonic() > at + 0.018


def approve_one(console: ScreenConsole) -> None:
    """Bring the console back to its list, whatever stands there, and approve one call as a person does."""
    console.pty.settle(2.5)  # a paste without an end is over by then
    # The last that was said of the focus may be that it is gone.
    for key in (b"\x1b", b"\x1b", b"\x1b", b"\x1b", b"\x1b[I", b"1", b"\x1b[H"):
        console.pty.type(key)
        console.pty.settle(APART)
    if "All calls are on hold" in console.pty.cells.text:
        console.pty.type(b"P")
        console.pty.settle(APART)
    for _ in range(30):
        if "All seen" in console.pty.cells.lines[-2]:
            break
        console.pty.type(b" ")
        console.pty.settle(0.5)
    since = len(console.pty.raw)
    console.pty.press(
        b"a", lambda: console.rows("state").count(("pending",)) < WAITING, "one is decided"
    )
    console.pty.until(lambda: console.pty.drew("Approved", since), "Approved")
