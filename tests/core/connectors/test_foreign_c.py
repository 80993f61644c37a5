"""A connector in C on wasi-libc, written from the interface's description alone and built here by Zig's C compiler."""

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
from aileron_core.connectors.protocol import MIB, Route
from aileron_core.connectors.store import ConnectorStore
from aileron_core.connectors.wasm.compiler import Compiler
from aileron_core.connectors.wasm.connector import WasmConnector
from aileron_core.connectors.wasm.engine import WasmEngine
from tests.support.guests import MakeEngine, call, failed, install_guest, output

# The first build on a machine builds the C library too.
pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.skipif(not importlib.util.find_spec("ziglang"), reason="needs the connector group"),
]

SOURCE = Path(__file__).parent / "foreign" / "connector.c"
MANIFEST = b"""
[connector]
name = "github://stranger/c"
version = "1.0.0"
[capabilities.network]
hosts = ["api.example:443"]
[capabilities.runtime]
imports = ["log", "http_request", "http_response_size", "http_response_status", "http_response_read"]
"""


def build(target: Path, *flags: str, source: Path = SOURCE) -> bytes:
    command = [sys.executable, "-m", "ziglang", "cc", "-target", "wasm32-wasi", "-O2", "-s", *flags]
    subprocess.run([*command, "-o", str(target), str(source)], check=True, timeout=500)
    return target.read_bytes()


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The built module; `make setup` installs the compiler."""
    return build(tmp_path_factory.mktemp("c") / "connector.wasm")


@pytest.fixture
def stranger(module: bytes, store: ConnectorStore, routed: WasmEngine) -> WasmConnector:
    """The connector, its one host routed to the test's service."""
    return install_guest(store, routed, module, MANIFEST)


def test_arguments_come_through_as_they_were_given(stranger: WasmConnector) -> None:
    """Every digit of a number, every character of a text, an empty object."""
    for args in (
        {},
        {"n": [2**53 + 1, -(2**63), 12345678901234567890], "text": "Grüße, 世界 😀", "f": 0.1},
        {"deep": {"er": [[], {}, None, True]}, "long": "x" * 100_000},
    ):
        assert output(call(stranger, "echo", args=args)) == args


def test_the_world_of_a_program_is_its_name_a_clock_and_chance(stranger: WasmConnector) -> None:
    """No environment, no file to read, none to write, no terminal; numbers are 64 bits wide."""
    found = output(call(stranger, "world"))
    assert found.pop("year") >= 2025
    assert found == {
        "argc": 1,
        "name": "connector",
        "home": None,
        "random": True,
        "file": False,
        "own": False,
        "folder": False,
        "tty": 0,
        "largest": 2**63 - 1,
        "unsigned": 2**64 - 1,
        "third": 1 / 3,
    }


@pytest.mark.parametrize("body", [b"", bytes(range(256)), b"\x00" * 5, b"x" * (15 * MIB)])
def test_answers_arrive_byte_for_byte(stranger: WasmConnector, service: Any, body: bytes) -> None:
    """Through a redirect, binary or large, into memory that grows for it."""
    service.reply("/old", status=302, Location="/new")
    service.reply("/new", body)
    found = output(call(stranger, "get", args={"url": "https://api.example/old", "method": "GET"}))
    total = 0
    for byte in body if len(body) < MIB else b"":
        total = (total * 31 + byte) % 2**32
    assert (found["status"], found["size"], found["got"]) == (200, len(body), len(body))
    assert found["sum"] == total or len(body) >= MIB
    assert [path for _, path, *_ in service.seen] == ["/old", "/new"]


def test_what_it_sends_arrives_byte_for_byte(stranger: WasmConnector, service: Any) -> None:
    """A header with several values stays one line; text is UTF-8 in header and body."""
    service.reply("/x")
    call(stranger, "get", args={"url": "https://api.example/x", "method": "PUT"})
    ((method, _, headers, body),) = service.seen
    assert (method, body) == ("PUT", "<é>".encode())
    assert headers["Accept"] == "application/json, text/*;q=0.5"
    assert headers["X-Name"].encode("latin-1").decode() == "Jürgen"


def test_a_reactor_is_refused_with_what_it_should_be(tmp_path: Path) -> None:
    """Built with the other of the two execution models, the same source has no `_start`."""
    reactor = build(tmp_path / "reactor.wasm", "-mexec-model=reactor")
    (problem,) = Compiler().check(reactor).problems
    assert "it is a WASI reactor, but a connector must be a WASI command" in problem


def blocks(page: str) -> list[str]:
    """The code blocks of a page of ours, in order."""
    return re.findall(r"^```\w*\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)


def test_the_connector_of_the_developers_page_works_as_the_page_says(tmp_path: Path, store: ConnectorStore, service: Any, make_client: Callable[..., OutgoingClient], make_engine: MakeEngine) -> None:  # fmt: skip
    """Its C compiles, its manifest is taken, its action file names nothing that is not there."""
    page = (Path(__file__).parents[3] / "docs" / "connectors.md").read_text(encoding="utf-8")
    page = page[page.index("## In C\n") :]
    source, manifest, action = blocks(page)[:3]
    (tmp_path / "connector.c").write_text(source, encoding="utf-8")
    built = build(tmp_path / "connector.wasm", source=tmp_path / "connector.c")
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
