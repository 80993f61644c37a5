"""Who may use a connector: never shared and alone together, nobody forgotten."""

import asyncio
from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from aileron_core.runs.locks import ConnectorLocks

KEYS = [("local://a/one", None), ("local://a/two", None)]
# Both: leave and cancel without a turn of the loop in between.
LEAVING = st.tuples(st.sampled_from(["leave", "cancel", "both"]), st.integers(0, 20), st.booleans())
COMING = st.tuples(st.just("come"), st.integers(1, 3), st.booleans())
STEPS = st.lists(COMING | LEAVING, max_size=30)


@dataclass
class Floor:
    """Who holds which key now."""

    shared: dict[object, int] = field(default_factory=dict)
    alone: dict[object, int] = field(default_factory=dict)
    most_shared: int = 0

    def enter(self, keys: list[tuple[str, str | None]], *, alone: bool) -> None:
        book = self.alone if alone else self.shared
        for key in keys:
            book[key] = book.get(key, 0) + 1
            assert self.alone.get(key, 0) <= 1
            assert not (self.alone.get(key) and self.shared.get(key)), "shared and alone together"
        self.most_shared = max([self.most_shared, *self.shared.values()])

    def leave(self, keys: list[tuple[str, str | None]], *, alone: bool) -> None:
        book = self.alone if alone else self.shared
        for key in keys:
            book[key] -= 1


class User:
    """One run: takes its keys, then holds them until it is told to leave."""

    def __init__(self, locks: ConnectorLocks, floor: Floor, mask: int, *, alone: bool) -> None:
        self.keys = [key for index, key in enumerate(KEYS) if mask >> index & 1]
        self.alone = alone
        self.inside = False
        self.go = asyncio.Event()
        self.task = asyncio.ensure_future(self._use(locks, floor))

    def lock_keys(self) -> list[tuple[str, str | None]]:
        return self.keys

    async def _use(self, locks: ConnectorLocks, floor: Floor) -> None:
        async with locks.acquire(self, exclusive=self.alone):
            floor.enter(self.keys, alone=self.alone)
            self.inside = True
            try:
                await self.go.wait()
            finally:
                self.inside = False
                floor.leave(self.keys, alone=self.alone)


async def _settle() -> None:
    for _ in range(8):
        await asyncio.sleep(0)


@given(STEPS)
async def test_alone_means_alone_and_a_waiter_may_cancel(
    steps: list[tuple[str, int, bool]],
) -> None:
    locks, floor = ConnectorLocks(), Floor()
    users: list[User] = []
    for what, number, flag in steps:
        living = [user for user in users if not user.task.done()]
        if what == "come":
            users.append(User(locks, floor, number, alone=flag))
        elif living:
            chosen = living[number % len(living)]
            if what in ("leave", "both"):
                for user in living:
                    if user.inside:
                        user.go.set()
                        if what == "both":
                            await asyncio.sleep(0)
                        break
            if what in ("cancel", "both"):
                chosen.task.cancel()
        if flag:
            await _settle()
    for user in users:
        user.go.set()
    async with asyncio.timeout(5):
        ends = await asyncio.gather(*(user.task for user in users), return_exceptions=True)
    for end in ends:
        assert end is None or isinstance(end, asyncio.CancelledError), repr(end)
    # No trace is left: the next one that wants everything alone gets it at once.
    last = User(locks, floor, 3, alone=True)
    await _settle()
    assert last.inside
    last.go.set()
    await last.task


async def test_a_waiting_gated_run_goes_before_ungated_ones_that_come_later() -> None:
    locks, floor = ConnectorLocks(), Floor()
    first = User(locks, floor, 1, alone=False)
    await _settle()
    gated = User(locks, floor, 1, alone=True)
    await _settle()
    later = [User(locks, floor, 1, alone=False) for _ in range(3)]
    await _settle()
    assert first.inside
    assert not gated.inside
    assert not any(user.inside for user in later)
    first.go.set()
    await _settle()
    assert gated.inside
    gated.go.set()
    await _settle()
    assert all(user.inside for user in later)
    for user in later:
        user.go.set()
    await asyncio.gather(*(user.task for user in [first, gated, *later]))
    assert floor.most_shared == 3


async def test_a_waiter_cancelled_in_the_moment_of_its_turn_ends_as_cancelled() -> None:
    """Regression: the one that released had dropped it already, and it ended in a ValueError."""
    locks, floor = ConnectorLocks(), Floor()
    holder = User(locks, floor, 1, alone=True)
    await _settle()
    waiter = User(locks, floor, 1, alone=True)
    third = User(locks, floor, 1, alone=False)
    await _settle()
    holder.task.cancel()  # lets go first, and finds the waiter's turn cancelled
    waiter.task.cancel()
    results = await asyncio.gather(holder.task, waiter.task, return_exceptions=True)
    assert [type(each) for each in results] == [asyncio.CancelledError] * 2
    await _settle()
    assert third.inside
    third.go.set()
    await third.task
