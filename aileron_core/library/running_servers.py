"""The MCP servers of a home that run, and what rehearses their calls; made when the first server is there."""

import asyncio
import os
from collections.abc import Callable, Collection
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from aileron_core.actions.model import Action, ConnectorIdentity
from aileron_core.clock import Clock
from aileron_core.connectors.builtin.channel import ToolChannels
from aileron_core.connectors.protocol import Connector
from aileron_core.connectors.servers.box import BoxedServers
from aileron_core.connectors.servers.definitions import ToolDefinition
from aileron_core.connectors.servers.process import LOGS, ServerProcesses
from aileron_core.connectors.servers.rehearsal import Rehearsals, RehearsingConnector
from aileron_core.connectors.servers.started import StartServer
from aileron_core.connectors.servers.table import server_name
from aileron_core.connectors.servers.trees import verify_tree
from aileron_core.connectors.store import InstalledConnector
from aileron_core.library.home_library import HomeLibrary
from aileron_core.tasks import spawn

if TYPE_CHECKING:
    from aileron_core.connectors.http.client import OutgoingClient

_QUIET_SECONDS: Final = 60.0


class RunningServers:
    """What starts servers and rehearses their calls, on the core's loop.

    Args:
        library: told what a server lists otherwise than it was accepted.
        changed: called when something that a person is shown of a server has changed.
        forgotten: called with the name that `channels` had a worker by, when what it kept for an undo is gone.
        start: what starts servers in place of their boxes, which rehearses nothing; for tests in this process.
        make_outgoing: as of `ServerProcesses`.
    """

    def __init__(
        self,
        home: Path,
        library: HomeLibrary,
        channels: ToolChannels,
        clock: Clock,
        *,
        changed: Callable[[], None],
        forgotten: Callable[[str], object],
        start: StartServer | None,
        make_outgoing: "Callable[[], OutgoingClient]",
    ) -> None:
        self._home, self._library, self._channels = home, library, channels
        self._changed, self._forgotten = changed, forgotten
        self._loop = asyncio.get_running_loop()
        self._boxes = BoxedServers(
            home,
            Path.home(),
            os.environ,
            tree=partial(verify_tree, home),
            refused=self._host_refused,
        )
        self._rehearses = start is None
        self._rehearsals: dict[str, Rehearsals] = {}
        """By the hash of the server."""
        self._differing: dict[ConnectorIdentity, tuple[ToolDefinition, ...] | None] = {}
        """Of each server that reported another listing within the last minute, the newest not yet passed on."""
        self.processes = ServerProcesses(
            start or self._boxes,
            make_outgoing=make_outgoing,
            logs=home / LOGS,
            on_listed=self._listed,
            on_held=lambda _: self._call(self._changed),
            clock=clock,
        )

    def for_call(
        self, connector: Connector, installed: InstalledConnector, action: Action
    ) -> Connector:
        """Return the server *connector* as one call of *action* uses it."""
        preview = action.approval.preview
        if preview is None or not preview.is_rehearsal or not self._rehearses:
            return connector
        table, identity = installed.manifest.server, installed.identity
        assert table is not None
        if identity.hash not in self._rehearsals:
            self._rehearsals[identity.hash] = Rehearsals(
                server_name(identity.fqn),
                table,
                installed.tools,
                boxes=self._boxes,
                home=self._home,
                channels=self._channels,
                differs=partial(self._listed, identity),
                ended=self._forgotten,
            )
        return RehearsingConnector(connector, self._rehearsals[identity.hash])

    def keep(self, accepted: Collection[str]) -> None:
        """End what rehearses the calls of servers whose hashes are not among *accepted*."""
        for hash_ in [each for each in self._rehearsals if each not in accepted]:
            spawn(self._rehearsals.pop(hash_).close(), name="end the rehearsals of a server")

    async def close(self) -> None:
        """End what rehearses; the processes end with the registry of connectors."""
        closing = tuple(each.close() for each in self._rehearsals.values())
        await asyncio.gather(*closing, return_exceptions=True)

    def _listed(self, identity: ConnectorIdentity, tools: tuple[ToolDefinition, ...]) -> None:
        self._call(partial(self._differs, identity, tools))

    def _differs(self, identity: ConnectorIdentity, tools: tuple[ToolDefinition, ...]) -> None:
        is_first = identity not in self._differing
        self._differing[identity] = tools
        if is_first:
            self._pass_on(identity)

    def _pass_on(self, identity: ConnectorIdentity) -> None:
        """Have the newest listing installed, then no other one for a minute: that costs the core's loop time."""
        if (tools := self._differing.pop(identity)) is not None:
            self._differing[identity] = None
            self._loop.call_later(_QUIET_SECONDS, self._pass_on, identity)
            spawn(self._library.server_differs(identity, tools), name="offer what a server lists")

    def _host_refused(self, name: str, host: str, problem: str) -> None:
        if self.processes.host_refused(name, host, problem):
            self._call(self._changed)

    def _call(self, what: Callable[[], None]) -> None:
        with suppress(RuntimeError):  # the console is closing
            self._loop.call_soon_threadsafe(what)
