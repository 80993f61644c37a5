"""Whether what a scripted model was asked came through the console's gateway, and as the agent sent it."""

import contextlib
import hashlib
import re
from pathlib import Path
from typing import Any

from tests.agents.llm import ModelRequest
from tests.support.processes import eventually
from tests.support.server_harness import query

_TOKEN = re.compile(rb"[A-Za-z0-9_-]{20,}")


def caller(port: int, server: int) -> int | None:
    """Return the process that connected from *port* to *server*, both on loopback."""
    ends = [f"0100007F:{each:04X}" for each in (port, server)]
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    inodes = {f"socket:[{row[9]}]" for row in rows if row[1:3] == ends}
    for folder in Path("/proc").glob("[0-9]*/fd"):
        with contextlib.suppress(OSError):  # gone, or not ours to look at
            for entry in folder.iterdir():
                with contextlib.suppress(OSError):
                    if str(entry.readlink()) in inodes:
                        return int(folder.parent.name)
    return None


def gateway_hashes(home: Path) -> set[str]:
    return {row for (row,) in query(home, "SELECT gateway_hash FROM sessions")}


def nothing_of_ours(seen: ModelRequest, hashes: set[str]) -> None:
    """Fail if a request holds our prefix, a gateway token, or a header of ours."""
    assert b"/gw/" not in seen.raw
    words = {hashlib.sha256(word).hexdigest() for word in _TOKEN.findall(seen.raw)}
    assert not words & hashes
    for name, value in seen.headers.items():
        assert "aileron" not in f"{name} {value}".lower()
        assert not name.startswith(("x-forwarded", "forwarded", "via"))


def on_record(console: Any, count: int) -> list[list[Any]]:
    """Return the requests that the audit says have passed, once there are *count* of them."""

    def passed() -> list[list[Any]]:
        told = [each for each in console.records() if each["event"] == "gateway.passed"]
        return [each for record in told for each in record["requests"]]

    return eventually(lambda: len(found := passed()) >= count and found)
