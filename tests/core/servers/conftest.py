"""Servers that run without a box, and end with their test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from aileron_core.connectors.servers.process import ServerProcesses
from tests.support.mcp_servers import UnboxedServers


@pytest.fixture
def unboxed() -> UnboxedServers:
    return UnboxedServers()


@pytest.fixture
def servers(unboxed: UnboxedServers, tmp_path: Path) -> Iterator[ServerProcesses]:
    servers = ServerProcesses(unboxed, logs=tmp_path / "servers")
    yield servers
    servers.close()
