"""Servers that run without a box, and end with their test."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from aileron_core.canonical import Json
from aileron_core.connectors.protocol import Limits, OpResult
from aileron_core.connectors.servers.connector import ServerConnector
from aileron_core.connectors.servers.process import ServerProcesses
from tests.support.core_harness import PATIENCE, run
from tests.support.mcp_servers import TOOLS, UnboxedServers, server_connector, server_notes, table

LIMITS = Limits(wall_seconds=PATIENCE)


@dataclass
class Small:
    """The server `small`, which runs what a test gives it, and calls of its tools."""

    servers: ServerProcesses
    folder: Path
    server_connector: ServerConnector = field(init=False)

    def runs(self, source: str = "", listed: Sequence[Json] = TOOLS, **more: Any) -> "Small":
        """Let it run *source*, as `table` has it; *listed* is what was accepted."""
        self.connector = server_connector(self.servers, table(self.folder, source, **more), listed)
        return self

    def call(self, op: str, limits: Limits = LIMITS, **more: Any) -> OpResult:
        return run(self.connector.call(op, more.pop("args", {}), limits=limits, **more))

    def causes(self, *ops: str) -> list[str]:
        """Call *ops* one after the other; return why each failed, "" for one that did not."""
        ended = [self.call(op).failure for op in ops]
        return [failure.class_ if failure else "" for failure in ended]

    def notes(self) -> list[str]:
        return server_notes(self.folder)

    def starts(self) -> list[int]:
        """Return the process ids of the starts that the server noted."""
        return [int(each.split()[1]) for each in self.notes() if each.startswith("start ")]


@pytest.fixture
def unboxed() -> UnboxedServers:
    return UnboxedServers()


@pytest.fixture
def servers(unboxed: UnboxedServers, tmp_path: Path) -> Iterator[ServerProcesses]:
    servers = ServerProcesses(unboxed, logs=tmp_path / "servers")
    yield servers
    servers.close()


@pytest.fixture
def small(servers: ServerProcesses, tmp_path: Path) -> Small:
    return Small(servers, tmp_path).runs()
