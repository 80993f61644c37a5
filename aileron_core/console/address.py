"""Where this console listens: the port that it keeps from one start to the next, and `daemon.json`."""

import json
import os
import re

from aileron_core.clock import Clock, rfc3339
from aileron_core.console.records import ConsoleRecords
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
        """Remember *port* for the next start, and write `daemon.json` for other programs.

        Raises:
            StorageUnavailable: the port could not be remembered.
            OSError: `daemon.json` cannot be written.
        """
        self.listen_on(port)
        if not await self.remembered_port():

            def remember(tx: Tx) -> None:
                tx.execute("INSERT INTO meta VALUES('port', ?)", (str(port),))

            await self._records.record_port(port, remember)
        _write_daemon_file(self._home, self.url, self._clock.now())


def _write_daemon_file(home: Home, url: str, now: float) -> None:
    """Write where this process listens to `daemon.json`: mode 0600, whole or not at all, no secret in it.

    Raises:
        OSError: it cannot be written.
    """
    content = {
        "version": 1,
        "url": url,
        "socket": str(home.socket),
        "pid": os.getpid(),
        "started_at": rfc3339(now),
    }
    temporary = home.daemon_file.with_suffix(".new")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as opened:
        opened.write(json.dumps(content))
    temporary.replace(home.daemon_file)
