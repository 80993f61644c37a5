"""A suite of 515 files at a real console: added, accepted with one key, and offered as the settings say."""

from pathlib import Path

import pytest
from mcp import Client

from examples.mailbox.server import Mailbox
from tests.process.test_accepting import NEW, OLD, relay_of
from tests.support.server_harness import DRAFT, ROOT, Serve, aileron, aileron_json
from tests.support.variants import variants


@pytest.fixture
def home(home: Path) -> Path:
    for file in (home / "actions").iterdir():
        file.unlink()
    return home


@pytest.mark.anyio
@pytest.mark.parametrize("era", variants([NEW, OLD]))
async def test_agents_get_the_tools_that_the_settings_name_and_call_no_other(
    home: Path, serve: Serve, mailbox: Mailbox, era: str
) -> None:
    """By action or tool, with globs; the list's size is what `action list` says."""
    for file in (ROOT / "examples" / "actions").glob("*.md"):
        (home / "actions" / file.name).write_bytes(file.read_bytes())
    (home / "config.toml").write_text('[mcp]\ntools = ["list-*", "send_draft", "none-*"]\n')
    serve(mailbox)
    async with Client(relay_of(home), mode=era, read_timeout_seconds=60) as client:
        tools = (await client.list_tools()).tools
        own = {"check_action_status", "withdraw_action"}
        assert {tool.name for tool in tools} == {"list_drafts", "send_draft", *own}
        refused = await client.call_tool("get_draft", {"id": DRAFT})
        assert refused.is_error
        assert refused.structured_content["error"]["class"] == "not_found"
        assert not (await client.call_tool("list_drafts", {})).is_error
    taken = sum(len(each.model_dump_json(by_alias=True, exclude_none=True)) + 1 for each in tools)
    action_list = aileron_json("action", "list", home=home)
    assert action_list["tools"] == {"count": 4, "bytes": taken}
    offered = {each["name"]: each["offered"] for each in action_list["items"]}
    assert offered == {"get-draft": False, "list-drafts": True, "send-draft": True}
    text = aileron("action", "list", home=home).stdout
    assert "contains none-*, which matches no action." in text
    get_draft = next(line for line in text.splitlines() if "get-draft" in line)
    assert get_draft.endswith("no tool")
    assert text.splitlines()[-1] == f"Agents get 4 tools ({taken / 1000:,.1f} kB)."
