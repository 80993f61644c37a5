"""A real console whose vault is locked: agents see every tool, over MCP and REST, and every call waits."""

from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from examples.mailbox.server import Mailbox
from tests.support.server_harness import DRAFT, Console, Serve, aileron, eventually
from tests.support.variants import variants
from tests.support.vaults import PHRASE, make_vault


@pytest.fixture
def locked(home: Path, serve: Serve, mailbox: Mailbox) -> Console:
    """The example's files were accepted before there was a vault, which signed them; it is locked."""
    (home / "config.toml").write_text("[mcp]\nhold_seconds = 0\n")
    serve(mailbox).end()
    make_vault(home, PHRASE)
    console = serve(mailbox, accept=False)
    assert console.vault == "locked"
    return console


def test_over_rest_each_action_is_listed_and_each_run_waits(
    locked: Console, mailbox: Mailbox
) -> None:
    """The service hears of nothing before the unlock; then the read is run, and the other is asked about."""
    token = locked.session()["token"]
    listed = {each["name"] for each in locked.get("/v1/actions", token=token).json["items"]}
    assert {"list-drafts", "send-draft"} <= listed
    read = locked.run("list-drafts", {}, token)
    gated = locked.run("send-draft", {"draft_id": DRAFT}, token)
    assert [(each.status, each.json["status"]) for each in (read, gated)] == [
        (202, "pending_approval")
    ] * 2
    assert locked.rows("action, state") == [
        ("list-drafts", "awaiting_vault"),
        ("send-draft", "awaiting_vault"),
    ]
    assert [each.json["waits_for"] for each in (read, gated)] == ["the vault"] * 2
    assert "Then it runs without approval" in read.json["message"]
    assert "A person has to approve it after that" in gated.json["message"]
    said = aileron("status", home=locked.home).stdout
    assert "waiting for approval" not in said
    assert said.count("waits for the vault or an account") == 2
    assert mailbox.state()["requests"] == []
    assert locked.unlock(PHRASE).status == 200
    result = f"/v1/action-approvals/{read.json['approval_id']}/result?wait=20"
    assert locked.get(result, token=token).json["status"] == "completed"
    eventually(
        lambda: locked.rows("action, state")[1][1] == "pending", "the gated call is asked about"
    )
    of_gated = f"/v1/action-approvals/{gated.json['approval_id']}/result"
    assert locked.get(of_gated, token=token).json["waits_for"] == "a person's approval"
    assert mailbox.state()["sent"] == []


@pytest.mark.parametrize("era", variants(["2026-07-28", "legacy"]))
async def test_over_mcp_each_tool_is_listed_and_each_call_waits(
    locked: Console, mailbox: Mailbox, era: str
) -> None:
    import httpx2

    bearer = {"Authorization": f"Bearer {locked.session()['token']}"}
    async with httpx2.AsyncClient(headers=bearer, timeout=httpx2.Timeout(30)) as http:
        server: Any = streamable_http_client(f"{locked.url}/mcp", http_client=http)
        async with Client(server, mode=era, read_timeout_seconds=30) as client:
            tools = {each.name for each in (await client.list_tools()).tools}
            assert {"list_drafts", "send_draft"} <= tools
            read = await client.call_tool("list_drafts", {})
            gated = await client.call_tool("send_draft", {"draft_id": DRAFT})
            for each in (read, gated):
                assert each.structured_content is not None
                assert each.structured_content["status"] == "pending_approval"
                assert each.structured_content["waits_for"] == "the vault"
                assert "waits for the vault" in str(each.content)
            assert locked.rows("action, state") == [
                ("list-drafts", "awaiting_vault"),
                ("send-draft", "awaiting_vault"),
            ]
            assert mailbox.state()["requests"] == []
            assert locked.unlock(PHRASE).status == 200
            asked = {"approval_id": read.structured_content["approval_id"], "wait_seconds": 20}
            end = await client.call_tool("check_action_status", asked)
            assert end.structured_content is not None
            assert end.structured_content["status"] == "completed"
