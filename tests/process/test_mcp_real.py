"""The home that a relay is told of, by its option."""

import subprocess
from pathlib import Path

import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters

from tests.process.test_accepting import NEW, RELAY
from tests.support.server_harness import Attended


async def test_a_client_that_passes_no_variables_on_finds_the_home_that_is_named(
    attended: Attended, tmp_path: Path
) -> None:
    """Most pass a few safe ones only: by AILERON_HOME alone the agent would be in another home, unnoticed."""
    agent = StdioServerParameters(
        command=RELAY, args=["--home", str(attended.home)], env={"HOME": str(tmp_path)}
    )
    async with Client(agent, mode=NEW, read_timeout_seconds=60) as client:
        assert "send_draft" in {tool.name for tool in (await client.list_tools()).tools}


@pytest.mark.parametrize("words", [["--home"], ["--home", ""], ["--home", "/a", "/b"], ["/a"]])
def test_a_home_is_named_once_and_by_its_option(words: list[str]) -> None:
    done = subprocess.run([RELAY, *words], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("Usage: aileron-mcp [--home DIR ")
