"""What a call of an MCP server's tool sends, and what becomes of its answer."""

from pathlib import Path

from aileron_core.connectors.protocol import Limits
from aileron_core.connectors.servers.process import ServerProcesses
from tests.support.core_harness import run
from tests.support.mcp_servers import UnboxedServers, connector, table

LIMITS = Limits(wall_seconds=20)


def test_a_call_answers_with_the_servers_blocks_and_a_preview_with_what_they_say(
    servers: ServerProcesses, unboxed: UnboxedServers, tmp_path: Path
) -> None:
    small = connector(servers, table(tmp_path))
    answer = run(small.call("set", {"a": [1]}, limits=LIMITS))
    shown = run(small.call("get", {"a": [1]}, limits=LIMITS, read_only=True))
    assert answer.failure is None
    assert answer.output == {"content": [{"type": "text", "text": '{"a": [1]}'}]}
    assert shown.output == {"json": {"a": [1]}, "text": '{"a": [1]}'}
    assert (answer.writes_sent, shown.writes_sent) == (1, 0)
    assert unboxed.started == ["read"]
