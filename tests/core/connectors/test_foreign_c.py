"""The connector in C of the developers' page, built here by Zig's C compiler on wasi-libc."""

import importlib.util
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from aileron_core.actions.load import load_action
from aileron_core.connectors.http.client import OutgoingClient
from aileron_core.connectors.manifest import parse_manifest
from aileron_core.connectors.protocol import Route
from aileron_core.connectors.store import ConnectorStore
from tests.support.guests import MakeEngine, call, failed, install_guest, output

# The first build on a machine builds the C library too.
pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.skipif(not importlib.util.find_spec("ziglang"), reason="needs the connector group"),
]


def build(target: Path, source: Path) -> bytes:
    command = [sys.executable, "-m", "ziglang", "cc", "-target", "wasm32-wasi", "-O2", "-s"]
    subprocess.run([*command, "-o", str(target), str(source)], check=True, timeout=500)
    return target.read_bytes()


def blocks(page: str) -> list[str]:
    """The code blocks of a page of ours, in order."""
    return re.findall(r"^```\w*\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)


def test_the_connector_of_the_developers_page_works_as_the_page_says(tmp_path: Path, store: ConnectorStore, service: Any, make_client: Callable[..., OutgoingClient], make_engine: MakeEngine) -> None:  # fmt: skip
    """Its C compiles, its manifest is taken, its action file names nothing that is not there."""
    page = (Path(__file__).parents[3] / "docs" / "connectors.md").read_text(encoding="utf-8")
    page = page[page.index("## In C\n") :]
    source, manifest, action = blocks(page)[:3]
    (tmp_path / "connector.c").write_text(source, encoding="utf-8")
    built = build(tmp_path / "connector.wasm", tmp_path / "connector.c")
    host = parse_manifest(manifest.encode(), "manifest.toml").hosts[0]
    route = Route(host=host, address="127.0.0.1", port=service.port)
    engine = make_engine(make_client(routes=[route]))
    connector = install_guest(store, engine, built, manifest.encode())
    service.reply("/notes.json", b'[{"id": 9007199254740993, "text": "milk"}]')
    assert output(call(connector, "list_notes")) == [{"id": 2**53 + 1, "text": "milk"}]
    service.reply("/notes.json", b"", status=503)
    assert failed(call(connector, "list_notes")).class_ == "external_api_error"
    assert failed(call(connector, "nope")).message == "unknown op"
    (needed,) = load_action(action.encode(), "list-notes.md").requires
    identity = connector.identity
    assert (needed.fqn, needed.version) == (identity.fqn, identity.version)
