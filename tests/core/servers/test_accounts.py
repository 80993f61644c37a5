"""A server with secrets behind the gate: its calls wait for their account, and what it answers is without them."""

import gc
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from aileron_core.connectors.protocol import CredentialRequirement
from aileron_core.connectors.servers.definitions import definitions_bytes, from_listing
from aileron_core.connectors.servers.process import ServerKey
from aileron_core.connectors.servers.propose import manifest_bytes
from aileron_core.connectors.store import ConnectorStore
from aileron_core.console_port.account_intents import BindAccount, named_values
from aileron_core.console_port.view_models import ApprovalView
from aileron_core.credentials.binding import Binding
from aileron_core.vault.secret import Secret
from tests.support.core_harness import PASSPHRASE, Core
from tests.support.mcp_servers import UnboxedServers, install, notes, program, table
from tests.support.remote_mcp import remote_table, result, scripted_mcp
from tests.support.tls_service import Reply, Request

TOKEN, KEY = "canary-of-the-token", "canary-of-the-key"
TELLING = """
def call(id, name, args):
    token = os.environ["TOKEN"]
    if token.startswith("{"):
        token = json.loads(token)["Authorization"].split()[1]
    sys.stderr.write(token + "\\n")
    sys.stderr.flush()
    send(id=id, result=text(" ".join([token, *sys.argv[1:]])))
"""
TOOLS = ("get", "set")


@pytest.fixture
async def core(tmp_path: Path, unboxed: UnboxedServers) -> AsyncIterator[Core]:
    """A core with an accepted server that tells its secrets: one of its environment, one of its arguments."""
    home = tmp_path / "home"
    home.mkdir()
    words = (*program(tmp_path, TELLING), "--key=${secret.KEY}")
    made = table(tmp_path, TELLING, secrets=("TOKEN", "KEY"), hosts=("api.example:443",))
    tools = from_listing({"name": each, "inputSchema": {"type": "object"}} for each in TOOLS)
    manifest = manifest_bytes("small", replace(made, program=words))
    ConnectorStore(home).install_server(definitions_bytes(tools), manifest)
    async with Core.open(home, start_server=unboxed) as core:
        yield core


async def bind(core: Core, secret: Secret) -> Binding:
    """Bind an account, of a vault that is made for it."""
    core.app.vault.create(Secret(PASSPHRASE))
    user = core.user("small.get")
    hash_ = user.identity.hash
    asked = BindAccount(connector_hash=hash_, identity="work", account="", secret=secret)
    return await core.app.bindings.bind(user, asked)


async def bind_both(core: Core, token: str) -> Binding:
    """Bind an account with both secrets, and wait until the library is under the vault's key."""
    bound = await bind(core, named_values({"TOKEN": Secret(token), "KEY": Secret(KEY)}))
    await core.until_record("library.authenticated")
    return bound


async def waits(core: Core, action: str = "small.get") -> ApprovalView:
    answer = await core.call(action, {})
    return await core.view(answer.row.approval_id, lambda v: v.state == "awaiting_vault")


async def test_a_servers_call_waits_for_its_account_and_vault(core: Core, tmp_path: Path) -> None:
    """Nothing is started before; then it goes on by itself, and a yes covers whose account it uses."""
    view = await waits(core)
    need = view.account_need
    assert need is not None
    assert (need.reason, need.kind) == ("unbound", "environment")
    assert need.command == "aileron binding setup mcp://local/small"
    assert notes(tmp_path) == []
    bound = await bind_both(core, TOKEN)
    assert (await core.ended(view)).state == "completed"
    asked = await core.ask_for("small.set", {})
    assert [each.name for each in asked.accounts] == [bound.name]
    core.app.vault.lock()
    locked = await core.view(asked.approval_id, lambda v: v.state == "awaiting_vault")
    assert locked.account_need is not None
    assert locked.account_need.reason == "locked"
    assert "call set" not in notes(tmp_path)
    core.app.vault.unlock(Secret(PASSPHRASE))
    again = await core.looked(asked.approval_id, after=locked.version)
    assert (await core.run(again)).state == "completed"


async def test_a_locked_vault_ends_servers_with_secrets(
    core: Core, unboxed: UnboxedServers
) -> None:
    await bind_both(core, TOKEN)
    assert (await core.call("small.get", {})).row.state == "completed"
    (server,) = unboxed.processes
    core.app.vault.lock()
    await core.until(lambda: server.poll() is not None)
    await core.until(lambda: not keys_with_secrets())


def keys_with_secrets() -> list[ServerKey]:
    """Return what in memory a process with secrets could be started from."""
    return [each for each in gc.get_objects() if isinstance(each, ServerKey) and each.secrets]


@pytest.mark.parametrize(
    "value", [TOKEN, json.dumps({"Authorization": f"Bearer {TOKEN}", "Version": "call small.get"})]
)
async def test_a_server_gets_its_secrets_at_its_start_and_no_answer_or_file_has_them(
    core: Core, tmp_path: Path, value: str
) -> None:
    """In its environment and its arguments; in its answers, its log, the audit and the home they are not."""
    await bind_both(core, value)
    answer = await core.call("small.get", {})
    assert answer.row.state == "completed"
    assert answer.row.output is not None
    told = json.dumps(answer.row.output["output"])
    assert told.count("[removed]") == 2
    log = core.app.home.path / "servers" / "small.log"
    await core.until(lambda: log.exists() and "[removed]" in log.read_text())
    written = [each.read_bytes() for each in core.app.home.path.rglob("*") if each.is_file()]
    said = [told.encode(), repr(core.events).encode(), *written]
    said.append(json.dumps(await core.records()).encode())
    assert not any(each.encode() in text for each in (TOKEN, KEY) for text in said)


def spelled_otherwise(request: Request, id_: int) -> Reply:
    """Answer with the key, its first letter written by its number, below what is nested deeply."""
    key = request.headers["x-key"]
    text = json.dumps({"junk": "DEEP", **result(id_, f"your key: {key}")})
    deep = text.replace('"DEEP"', "[" * 600 + "]" * 600)
    return Reply(body=deep.replace(key, f"\\u{ord(key[0]):04x}{key[1:]}").encode())


async def test_a_remote_servers_key_is_in_its_header_and_no_answer_or_file(tmp_path: Path) -> None:
    """Its call waits for the account; once the server does not accept it, the person is told to bind another."""
    need = CredentialRequirement(kind="api_key", header="X-Key", format="{key}")
    home = tmp_path / "home"
    home.mkdir()
    install(home, remote_table(credential=need))
    with scripted_mcp(tmp_path) as remote:
        remote.call = lambda request, id_: result(id_, f"your key: {request.headers['x-key']}")
        async with Core.open(home, make_outgoing=remote.service.client) as core:
            view = await waits(core)
            assert view.account_need is not None
            assert (view.account_need.kind, remote.asked) == ("api_key", [])
            await bind(core, Secret(TOKEN))
            ended = await core.ended(view)
            assert {each.headers["x-key"] for each in remote.service.seen} == {TOKEN}
            told = json.dumps((await core.call("small.get", {})).row.output)
            remote.call = spelled_otherwise
            otherwise = json.dumps((await core.call("small.get", {"otherwise": 1})).row.output)
            assert all("your key: [removed]" in each for each in (told, otherwise))
            told += otherwise
            written = [each.read_bytes() for each in home.rglob("*") if each.is_file()]
            said = [told, repr(core.events), json.dumps(await core.records()), repr(ended)]
            assert not any(TOKEN.encode() in each for each in written)
            assert not any(TOKEN in each for each in said)
            remote.call = lambda request, id_: Reply(status=401)
            refused = (await core.call("small.get", {"again": 1})).row.failure
            assert refused is not None
            assert refused.class_ == "binding_failed"
