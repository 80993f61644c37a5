"""Where this console listens: the port that it keeps from one life to the next, and `daemon.json`."""

import re

from aileron_core.clock import Clock
from aileron_core.console.records import ConsoleRecords
from aileron_core.home.daemon_file import write_daemon_file
from aileron_core.home.layout import Home
from aileron_core.storage.database import Database, Tx


class ConsoleAddress:
    """The TCP address of a console; its URL is empty until a server has one."""

    def __init__(
        self, home: Home, database: Database, clock: Clock, records: ConsoleRecords
    ) -> None:
        self._home = home
        self._database = database
        self._clock = clock
        self._records = records
        self.url = ""

    @property
    def hosts(self) -> frozenset[str]:
        """The Host headers that are answered over TCP."""
        return frozenset({self.url.removeprefix("http://")})

    def listen_on(self, port: int) -> None:
        """Note the port of the server that is about to serve."""
        self.url = f"http://127.0.0.1:{port}"

    async def remembered_port(self) -> int:
        """Return the TCP port that was given to the first console of this home, 0 if none was."""
        query = "SELECT value FROM meta WHERE key = 'port'"
        found = await self._database.read(lambda c: c.execute(query).fetchone())
        # Another program may have written there; any free port will do then.
        return int(found[0]) if found and re.fullmatch(r"\d{1,5}", str(found[0])) else 0

    async def announce(self, port: int) -> None:
        """Remember *port* for the next life, and tell other programs of this one.

        Raises:
            StorageUnavailable: the port could not be remembered.
            OSError: `daemon.json` cannot be written.
        """
        self.listen_on(port)
        if not await self.remembered_port():

            def remember(tx: Tx) -> None:
                tx.execute("INSERT INTO meta VALUES('port', ?)", (str(port),))

            await self._records.listens(port, remember)
        write_daemon_file(self._home, self.url, self._clock.now())
