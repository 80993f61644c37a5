"""Connectors in Python, by MicroPython with a script written into it, and in C, by Zig: as the pages say."""

import importlib.util
import random
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
from aileron_core.connectors.protocol import Limits, Route
from aileron_core.connectors.store import ConnectorStore
from aileron_core.connectors.wasm.connector import WasmConnector
from aileron_core.connectors.wasm.engine import WasmEngine
from aileron_tui.cli.scaffold import connector_templates
from tests.support.guests import MakeEngine, call, failed, install_guest, output

MANIFEST = b"""
[connector]
name = "local://tests/python"
version = "1.0.0"
[capabilities.network]
hosts = ["api.example:443"]
[capabilities.runtime]
imports = ["http_request", "http_response_size", "http_response_status", "http_response_read"]
"""
TEMPLATE = connector_templates() / "python"
Script = Callable[[str], WasmConnector]


@pytest.fixture
def script(tmp_path: Path, store: ConnectorStore, routed: WasmEngine) -> Script:
    """Build a script as the template's own build.py does; `args`, `say` and `ask` are there for it."""
    prelude = (
        "import json, aileron_host\n"
        "args = json.loads(aileron_host.read())['args']\n"
        "say = lambda value: aileron_host.write(json.dumps({'output': value}))\n"
        "ask = lambda **request: aileron_host.http_request(json.dumps(request))\n"
    )

    def build(text: str) -> WasmConnector:
        for name in ("build.py", "micropython.wasm"):
            (tmp_path / name).write_bytes((TEMPLATE / name).read_bytes())
        (tmp_path / "connector.py").write_text(prelude + text, encoding="utf-8")
        subprocess.run([sys.executable, tmp_path / "build.py"], check=True, timeout=60)
        return install_guest(store, routed, (tmp_path / "connector.wasm").read_bytes(), MANIFEST)

    return build


@pytest.mark.parametrize(
    "args",
    [
        {},
        {"n": [2**53 + 1, -(2**63), 12345678901234567890], "text": "Grüße, 世界 😀", "f": 0.1},
        {"deep": {"er": [[], {}, None, True]}, "long": "x" * 100_000, '\n"\\': "\x01\t"},
    ],
)
def test_arguments_come_through_as_they_were_given(script: Script, args: dict[str, Any]) -> None:
    """Every digit of a number, every character of a text."""
    assert output(call(script("say(args)"), args=args)) == args


def test_a_number_with_a_point_stays_the_same_number(script: Script) -> None:
    """Amounts, any other, the largest and the least; as text they look as they do in Python."""
    chance = random.Random(1)
    amounts = [round(chance.uniform(0, 10**6), 2) for _ in range(500)]
    floats = [0.92, 0.1 + 0.2, 1e22, 5e-324, 1.7976931348623157e308, -0.0, 123456789.123456789]
    floats += [chance.random() * 10 ** chance.randint(-300, 300) for _ in range(500)]
    text = """
values = [1234.567, -0.5, 1e300, 0.92, 1e16]
texts = [f"{v:.2f}" for v in values[:2]] + [f"{v:.3e}" for v in values] + [f"{1.5:+g}", "%5.1f" % 2.25]
texts += [str(v) for v in values] + [str(float("1_000.5")), str(float("1e400")), str(float("-.5e1"))]
say([args["n"], texts])"""
    numbers, texts = output(call(script(text), args={"n": amounts + floats}))
    assert [repr(each) for each in numbers] == [repr(each) for each in amounts + floats]
    assert texts == [
        *("1234.57", "-0.50", "1.235e+03", "-5.000e-01", "1.000e+300", "9.200e-01", "1.000e+16"),
        *("+1.5", "  2.2", "1234.567", "-0.5", "1e+300", "0.92", "1e+16"),
        *("1000.5", "inf", "-5.0"),
    ]


def test_it_has_no_files_no_environment_and_no_devices(script: Script) -> None:
    """What it cannot import cannot be used by mistake; a file is never there."""
    text = """
missing = []
for name in ("os", "socket", "machine", "select", "ssl", "vfs", "network", "asyncio", "nothing"):
    try:
        __import__(name)
    except ImportError:
        missing.append(name)
try:
    open("/etc/passwd")
except OSError:
    missing.append("files")
say(missing)"""
    missing = ["os", "socket", "machine", "select", "ssl", "vfs", "network", "asyncio", "nothing"]
    assert output(call(script(text))) == [*missing, "files"]


def test_an_exception_is_reported_with_its_line_and_what_was_printed(script: Script) -> None:
    failure = failed(call(script("print('so far')\n{}['key']")))
    assert failure.class_ == "connector_runtime_error"
    message = failure.message
    assert "so far" in message
    assert 'File "connector.py", line 6' in message
    assert "KeyError: key" in message
    assert "SyntaxError" not in message
    ended = failed(call(script("raise SystemExit(3)")))
    assert ended.message.startswith("the connector exited with 3")


def test_deep_calls_end_in_an_exception(script: Script) -> None:
    """Before the call stack of the sandbox ends, which a script could not catch."""
    text = """
def down(n):
    return [n, down(n + 1)]
for what in (lambda: down(0), lambda: json.loads("[" * 100000), lambda: eval("(" * 5000 + ")" * 5000),
             lambda: sorted([1, 2], key=lambda n: down(0)), lambda: json.dumps(nested)):
    nested = []
    for _ in range(100000):
        nested = [nested]
    try:
        what()
    except (RuntimeError, SyntaxError, MemoryError, ValueError) as error:
        pass
say("caught")"""
    assert output(call(script(text), limits=Limits(wall_seconds=60))) == "caught"


def test_a_script_that_does_not_fit_is_refused(script: Script, tmp_path: Path) -> None:
    """Never cut off; nor is what a service could not have read."""
    script("say(1)" + " " * 100_000)
    (tmp_path / "connector.wasm").unlink()
    with pytest.raises(subprocess.CalledProcessError):
        script("say(1)" + " " * 131_072)
    assert not (tmp_path / "connector.wasm").exists()
    with pytest.raises(subprocess.CalledProcessError):
        script("say(")


def build(target: Path, source: Path) -> bytes:
    command = [sys.executable, "-m", "ziglang", "cc", "-target", "wasm32-wasi", "-O2", "-s"]
    subprocess.run([*command, "-o", str(target), str(source)], check=True, timeout=500)
    return target.read_bytes()


def blocks(page: str) -> list[str]:
    """The code blocks of a page of ours, in order."""
    return re.findall(r"^```\w*\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)


@pytest.mark.timeout(600)  # the first build on a machine builds the C library too
@pytest.mark.skipif(not importlib.util.find_spec("ziglang"), reason="needs the connector group")
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
