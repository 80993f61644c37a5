"""Dividing what all sessions share, so that one session at its limit has no other one refused."""


class Shares:
    """Counts how much of something each session holds.

    A session may hold *each* while there is room for it in *total*. Without room it may still hold an
    equal share: *total* divided by the number of sessions that hold some. So whoever holds more pays for
    the shortage, and all together may hold more than *total*: with 20 sessions at most 3.1 times as
    much if *each* is half of it.
    """

    def __init__(self, total: int, each: int | None = None) -> None:
        self.total = total
        self.each = total // 2 if each is None else min(each, total // 2)
        self._held: dict[str, int] = {}
        self._used = 0

    def held(self, session_id: str) -> int:
        return self._held.get(session_id, 0)

    def fits(self, session_id: str, amount: int = 1) -> bool:
        """Return whether the session may hold *amount* more."""
        mine = self.held(session_id) + amount
        if mine > self.each:
            return False
        holders = len(self._held.keys() | {session_id})
        return self._used + amount <= self.total or mine <= self.total // holders

    def add(self, session_id: str, amount: int = 1) -> None:
        self._used += amount
        self._held[session_id] = self.held(session_id) + amount

    def give_back(self, session_id: str, amount: int = 1) -> None:
        self._used -= amount
        self._held[session_id] -= amount
        if not self._held[session_id]:
            del self._held[session_id]
