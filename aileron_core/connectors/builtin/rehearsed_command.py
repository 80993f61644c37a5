"""One call's command in its rehearsal, from what a person is shown to the commit of exactly that."""

from collections.abc import Mapping
from typing import Any

from aileron_core.connectors.builtin.channel import ToolChannel, WorkerRefused
from aileron_core.connectors.stop_request import StopRequest

SECONDS = 60.0
"""How long a rehearsal may take with all that is read for it, and a comparison with it."""
GRACE_SECONDS = 10.0
"""How much longer than its own time limit a command's answer may take."""
NOT_KEPT = "What the rehearsal did is not kept any more. Nothing ran. Call it again."


class RehearsedCommand:
    """A command that a commands worker rehearses, and what that did."""

    def __init__(self, channel: ToolChannel) -> None:
        self._channel = channel
        self._rehearsal: str | None = None
        self.found: dict[str, Any] = {}
        """What its last rehearsal did, or as `fallback` why there is none; empty before the first."""
        self._over = StopRequest()
        """Made when the call has ended."""

    @property
    def is_kept(self) -> bool:
        """Whether there is something to commit."""
        return self._rehearsal is not None

    @property
    def is_settled(self) -> bool:
        """Whether another rehearsal would only take as long again."""
        return "fallback" in self.found

    async def rehearse(self, asked: Mapping[str, Any], stop: StopRequest | None = None) -> None:
        """Rehearse what is *asked*.

        Raises:
            WorkerRefused, WorkerLost: see `ToolChannel.call`; so do the others.
        """
        self.found = {}
        self.found = await self._ask("rehearse", asked, stop or self._over)
        self._rehearsal = self.found.get("rehearsal")
        if self._over.is_made:  # while the answer was on its way
            self.end()

    async def holds(self) -> bool:
        """Return whether what it was rehearsed on is as it was; else the rehearsal is dropped.

        It does not run again as long as it holds: two runs of one command differ.
        """
        if self._rehearsal is None:
            return False
        try:
            if (await self._ask("check", {"rehearsal": self._rehearsal})).get("holds"):
                return True
            await self._ask("discard", {"rehearsal": self._rehearsal})
        except WorkerRefused:  # it was dropped for others
            pass
        return False

    async def commit(self, stop: StopRequest | None) -> dict[str, Any]:
        """Make what it changed for real, once, and return what it printed, with `undo` where that can be taken back.

        Raises:
            WorkerRefused: `conflict` where something is not as it was, or the rehearsal is not kept; nothing changed.
        """
        number, self._rehearsal = self._rehearsal, None
        if number is None:
            raise WorkerRefused("conflict", NOT_KEPT, {})
        try:
            return await self._ask("commit", {"rehearsal": number}, stop)
        except WorkerRefused as error:
            if error.class_ == "not_found":
                raise WorkerRefused("conflict", NOT_KEPT, {}) from error
            if error.class_ == "conflict":
                message = f"{error.message} Call it again."
                raise WorkerRefused(error.class_, message, error.details) from error
            raise

    def end(self) -> None:
        """Have the worker end a rehearsal that is under way, and drop one that was made."""
        self._over.make()
        self.drop()

    def drop(self, fallback: str = "") -> None:
        """Have the worker drop what was made; *fallback* says why it does not count."""
        if fallback:
            self.found = {"fallback": fallback}
        if self._rehearsal is not None:
            self._channel.tell("commands", "discard", {"rehearsal": self._rehearsal})
            self._rehearsal = None

    async def _ask(
        self, op: str, args: Mapping[str, Any], stop: StopRequest | None = None
    ) -> dict[str, Any]:
        return await self._channel.call(
            "commands", op, args, seconds=SECONDS + GRACE_SECONDS, stop=stop
        )
