"""MCP servers as their authors published them: in their boxes, behind the gate, before a service that plays their API.

Run as a program with FOLDER and a server's name, this file adds and uses it as an ordinary user, and prints
what came of it as JSON; of playwright its tools alone.
"""

import asyncio
import contextlib
import json
import logging
import shutil
import socket
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from aileron_core.connectors.network.host_network import HostNetwork
from aileron_core.connectors.servers.box import BoxedServers
from aileron_core.connectors.servers.definitions import definitions_bytes
from aileron_core.connectors.servers.process import list_tools
from aileron_core.connectors.servers.propose import manifest_bytes, propose_previews, propose_words
from aileron_core.connectors.servers.table import ServerTable
from aileron_core.connectors.store import ConnectorStore
from aileron_core.console_port.account_intents import BindAccount, named_values
from aileron_core.server.agent_api import AgentApi
from aileron_core.server.asgi import create_app
from aileron_core.server.embedded import EmbeddedServer
from aileron_core.server.sockets import bind_tcp
from aileron_core.vault.secret import Secret
from aileron_mcp.lazy_mount import LazyMcpApp
from tests.support.core_harness import PASSPHRASE, Core
from tests.support.ordinary import ordinary_folder, run_as_ordinary
from tests.support.tls_service import OneAddress, Reply, Request, TlsService, tls_service
from tests.support.vaults import cheap_passphrases

SERVERS = Path(__file__).resolve().parents[1] / "node" / "servers"
TOKEN = "canary-of-the-token"
PUBLIC = "93.184.215.14"
"""The address of every name; a connection to it goes to the service."""
Json = dict[str, Any]


def issue_of(asked: Request) -> Json:
    """Answer as GitHub does of an issue; hostile, it repeats the token."""
    title = json.loads(asked.body)["title"] if asked.method == "PATCH" else "Old"
    return {"number": 7, "title": title, "body": f"asked with {asked.headers.get('authorization')}"}


def page(asked: Request) -> Json:
    """Answer as Notion does of a page; hostile, it repeats the token."""
    archived = json.loads(asked.body)["archived"] if asked.method == "PATCH" else False
    told = f"asked with {asked.headers.get('authorization')}"
    return {"object": "page", "id": PAGE, "archived": archived, "url": told}


PAGE = "59833787-2cf9-4fdf-8782-e53db20768a5"


@dataclass(frozen=True, kw_only=True)
class Published:
    """A server, the API that it is for, and a read and a change of one thing there."""

    package: str
    entry: str
    host: str = ""
    secret: str = ""
    answer: Callable[[Request], Json] = issue_of
    read: str = ""
    change: str = ""
    thing: Mapping[str, Any] | None = None
    changes: Mapping[str, Any] | None = None


PUBLISHED = {
    "github": Published(
        package="@modelcontextprotocol/server-github", entry="dist/index.js",
        host="api.github.com", secret="GITHUB_PERSONAL_ACCESS_TOKEN", answer=issue_of,
        read="get_issue", change="update_issue",
        thing={"owner": "ana", "repo": "work", "issue_number": 7}, changes={"title": "New"},
    ),
    "notion": Published(
        package="@notionhq/notion-mcp-server", entry="bin/cli.mjs",
        host="api.notion.com", secret="NOTION_TOKEN", answer=page,
        read="API-retrieve-a-page", change="API-patch-page",
        thing={"page_id": PAGE}, changes={"archived": True},
    ),
    "playwright": Published(package="@playwright/mcp", entry="cli.js"),
}  # fmt: skip


def _divert(service: TlsService) -> None:
    """Have what a box lets through arrive at *service*: no ordinary user serves port 443."""

    async def connect(network: HostNetwork, name: str, address: str, port: int) -> socket.socket:
        assert (address, port) == (PUBLIC, 443)
        upstream = socket.socket()
        upstream.setblocking(False)
        await asyncio.get_running_loop().sock_connect(upstream, ("127.0.0.1", service.port))
        return upstream

    HostNetwork._connect = connect


@contextlib.asynccontextmanager
async def agent_of(core: Core) -> AsyncIterator[Client]:
    """Serve the core, and yield an agent's MCP client of it."""
    tcp = bind_tcp("127.0.0.1", 0)
    core.app.address.listen_on(tcp.getsockname()[1])
    agents = AgentApi(core.app)
    mounted = LazyMcpApp(agents)
    served = create_app(core.app, {"/mcp": mounted.app}, agents=agents)
    bearer = {"Authorization": f"Bearer {core.token}"}
    url = f"{core.app.address.url}/mcp"
    async with (
        mounted.run(),
        EmbeddedServer(served, [tcp]),
        httpx2.AsyncClient(headers=bearer, timeout=60) as http,
        Client(streamable_http_client(url, http_client=http), mode="2026-07-28") as client,
    ):
        yield client


async def _through_the_gate(home: Path, boxes: BoxedServers, name: str, each: Published) -> Json:
    """Read and change the thing as an agent does, with a person who says yes; return what was seen and kept."""
    assert each.thing is not None
    assert each.changes is not None
    async with Core.open(home, start_server=boxes) as core:
        core.app.vault.create(Secret(PASSPHRASE))
        user, values = core.user(f"{name}.{each.read}"), named_values({each.secret: Secret(TOKEN)})
        hash_ = user.identity.hash
        bound = BindAccount(connector_hash=hash_, identity="work", account="", secret=values)
        await core.app.bindings.bind(user, bound)
        await core.until_record("library.authenticated")
        async with agent_of(core) as client:
            tool = core.app.library.find(f"{name}.{each.read}").action.tool_name
            answer = await client.call_tool(tool, {**each.thing})
        view = await core.ask_for(f"{name}.{each.change}", {**each.thing, **each.changes})
        ended = await core.run(view)
        result = (await core.result(view.approval_id)).output
        records = await core.records()
        said = [answer.model_dump_json(), repr(core.events), *map(json.dumps, [result, *records])]
    files = [path for path in home.rglob("*") if path.is_file()]
    return {
        "blocks": [block.model_dump(mode="json", exclude_none=True) for block in answer.content],
        "before": {field.label: field.value for field in view.preview.fields},
        "after": {field.label: field.value for field in view.new_values},
        "state": ended.state,
        "hosts": ended.hosts_asked,
        "on record": [each["hosts_asked"] for each in records if each["event"] == "run.completed"],
        "told the token": sum(TOKEN in text for text in said),
        "kept the token": [path.name for path in files if TOKEN.encode() in path.read_bytes()],
    }


async def try_server(folder: Path, name: str) -> Json:
    each = PUBLISHED[name]
    home = folder / "home"
    home.mkdir(mode=0o700)
    refused: list[str] = []
    boxes = BoxedServers(
        home, folder, {"NODE_EXTRA_CA_CERTS": str(folder / "both.pem")},
        tree=lambda _: SERVERS, refused=lambda _, host, __: refused.append(host), resolver=OneAddress(PUBLIC),
    )  # fmt: skip
    version = json.loads((SERVERS / "package.json").read_text())["dependencies"][each.package]
    table = ServerTable(
        run=("npx", "-y", each.package),
        program=(shutil.which("node") or "", f"{{tree}}/node_modules/{each.package}/{each.entry}"),
        package=f"npm:{each.package}@{version}",
        tree=f"sha256:{'0' * 64}",
        hosts=(f"{each.host}:443",) if each.host else (),
        secrets=(each.secret,) if each.secret else (),
    )
    tools = await asyncio.to_thread(list_tools, boxes, name, table)
    if not each.host:
        return {"tools": [tool.name for tool in tools]}
    words = {**propose_words(name, tools), each.read: "run"}
    table = replace(table, tools=words, previews=propose_previews(tools, words))
    ConnectorStore(home).install_server(definitions_bytes(tools), manifest_bytes(name, table))
    with tls_service(folder, each.host) as service:
        json_ = {"Content-Type": "application/json"}
        service.answer = lambda asked: Reply(body=each.answer(asked), headers=json_)
        _divert(service)
        met = await _through_the_gate(home, boxes, name, each)
        asked = service.seen
        return {
            **met,
            "refused": refused,
            "asked": [[one.method, one.path, one.headers.get("authorization")] for one in asked],
            "sent": [json.loads(one.body) for one in asked if one.method == "PATCH"],
        }


PLACES = {"github": "/repos/ana/work/issues/7", "notion": f"/v1/pages/{PAGE}"}
pytestmark = pytest.mark.skipif(
    shutil.which("bwrap", path="/usr/bin:/bin") is None
    or not all((SERVERS / "node_modules" / each.package).exists() for each in PUBLISHED.values()),
    reason="needs bubblewrap, and `make node` for tests/node/servers",
)


def met(name: str) -> dict[str, Any]:
    """Return what came of the server *name*, with all that was logged meanwhile."""
    with ordinary_folder() as folder:
        done = run_as_ordinary(Path(__file__), folder, name)
    return {**json.loads(done.stdout), "logged": done.stderr}


@pytest.mark.parametrize("name", ["github", "notion"])
def test_a_call_shows_before_and_after_and_its_yes_is_one_request_with_the_token(name: str) -> None:
    """Its reads before that are the agent's, the preview and the look again; the service repeats the token."""
    each, used = PUBLISHED[name], met(name)
    ((field, new),) = (each.changes or {}).items()
    old = {"title": "Old", "archived": "false"}[field]
    assert (used["state"], used["before"][field]) == ("completed", old)
    assert used["after"] == {field: new if isinstance(new, str) else json.dumps(new)}
    place, bearer = PLACES[name], f"Bearer {TOKEN}"
    assert used["asked"] == [["GET", place, bearer]] * 3 + [["PATCH", place, bearer]]
    assert (used["sent"], used["hosts"]) == ([each.changes], [f"{each.host}:443"])
    assert used["on record"] == [[f"{each.host}:443"]] * 2
    (block,) = used["blocks"]
    assert block["type"] == "text"
    told = json.loads(block["text"])
    assert told == {
        "github": {"number": 7, "title": "Old", "body": "asked with Bearer [removed]"},
        "notion": {"object": "page", "id": PAGE, "archived": False, "url": "asked with Bearer [removed]"},
    }[name]  # fmt: skip
    assert (used["told the token"], used["kept the token"]) == (0, [])
    assert TOKEN not in used["logged"]
    assert "[removed]" in used["before"]["Answer"]
    assert used["refused"] == []


def test_a_server_for_browsers_lists_its_tools_without_a_browser_or_a_host() -> None:
    tools = met("playwright")["tools"]
    assert {"browser_navigate", "browser_snapshot", "browser_click"} <= {*tools}


if __name__ == "__main__":
    logging.basicConfig(level=logging.DEBUG)
    with cheap_passphrases():
        print(json.dumps(asyncio.run(try_server(Path(sys.argv[1]), sys.argv[2])), default=list))
