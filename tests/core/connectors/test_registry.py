"""Which connector an action gets: exactly the one it names, or an error that helps."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from aileron_core.connectors.protocol import Limits
from aileron_core.connectors.registry import ConnectorRegistry
from aileron_core.connectors.store import ConnectorStore
from aileron_core.connectors.wasm.connector import WasmConnector
from aileron_core.errors import ConnectorRuntimeError, HashMismatch, NotFound
from tests.support.guests import printing

EXAMPLE = Path(__file__).parents[3] / "examples" / "connectors" / "mail-drafts"


async def test_an_installed_connector_is_found_by_all_three(
    store: ConnectorStore, registry: ConnectorRegistry
) -> None:
    installed = store.install(EXAMPLE)
    found = await registry.get(
        installed.identity.fqn, installed.identity.version, installed.identity.hash
    )
    assert found.identity == installed.identity
    assert found.hosts == ("gmail.googleapis.com:443",)
    listed, problems = await registry.installed()
    assert [c.identity for c in listed] == [installed.identity]
    assert problems == ()


async def test_what_is_missing_is_said_with_what_is_there(
    store: ConnectorStore, registry: ConnectorRegistry
) -> None:
    name, nothing = "local://aileron/mail-drafts", "sha256:" + "0" * 64
    with pytest.raises(NotFound, match="install it from its folder first"):
        await registry.get(name, "0.1.0", nothing)
    store.install(EXAMPLE)
    with pytest.raises(NotFound, match="a different hash"):
        await registry.get(name, "0.1.0", nothing)
    with pytest.raises(NotFound, match=r"installed versions: 0\.1\.0"):
        await registry.get(name, "0.2.0", "sha256:bound-at-release")


async def test_a_hash_of_another_connector_is_a_mismatch(
    store: ConnectorStore, registry: ConnectorRegistry
) -> None:
    """A hash alone does not make it the connector that the action names."""
    installed = store.install(EXAMPLE)
    with pytest.raises(HashMismatch, match="not local://else/where"):
        await registry.get("local://else/where", "0.1.0", installed.identity.hash)


@pytest.mark.parametrize("damage", ["change", "remove"])
async def test_bytes_are_checked_before_every_run(
    guest: Callable[..., WasmConnector], store: ConnectorStore, tmp_path: Path, damage: str
) -> None:
    """Also of a module that ran before and is in memory."""
    connector = guest(printing('{"output": 1}'))
    assert (await connector.call("x", {}, limits=Limits())).output == 1
    if damage == "remove":
        store.remove(connector.identity.hash)
    else:
        digits = connector.identity.hash.removeprefix("sha256:")
        folder = tmp_path / "home" / "store" / "connectors" / "sha256" / digits
        (folder / "manifest.toml").write_bytes(b"# changed")
    with pytest.raises(HashMismatch):
        await connector.call("x", {}, limits=Limits())


@pytest.mark.parametrize(
    ("imported", "named"),
    [
        ('(import "aileron_host" "http_request" (func (param i64)))', "http_request"),
        ('(import "env" "system" (func))', "unknown import: `env::system`"),
    ],
)
def test_an_import_that_the_host_does_not_offer_is_an_error_that_names_it(
    guest: Callable[..., WasmConnector], imported: str, named: str
) -> None:
    """Another signature, another function: nothing of it runs, however it came into the store."""
    text = f'(module {imported} (memory (export "memory") 1) (func (export "_start")))'
    with pytest.raises(ConnectorRuntimeError, match=named):
        asyncio.run(guest(text).prepare())
