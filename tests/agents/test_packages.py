"""MCP servers from npm and PyPI, installed in a box and started from what was installed."""

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from aileron_core.connectors.servers.packages import installed
from aileron_core.connectors.servers.table import ServerTable
from aileron_core.errors import Unavailable
from tests.support.ordinary import ordinary_folder, run_as_ordinary
from tests.support.tls import certificate
from tests.support.variants import ALL

CHILD = Path(__file__).parent / "packages_child.py"
pytestmark = pytest.mark.skipif(
    shutil.which("bwrap", path="/usr/bin:/bin") is None or shutil.which("npm") is None,
    reason="needs bubblewrap and npm",
)


def _met(which: str) -> Iterator[dict[str, Any]]:
    with ordinary_folder() as folder:
        certificate(folder, "registry.example", "evil.example")
        yield json.loads(
            run_as_ordinary(CHILD, folder, which, timeout=600, HOME=str(folder)).stdout
        )


@pytest.fixture(scope="module")
def own() -> Iterator[dict[str, Any]]:
    yield from _met("own")


@pytest.fixture(scope="module")
def public() -> Iterator[dict[str, Any]]:
    yield from _met("public")


def test_a_package_is_installed_without_its_scripts(own: dict[str, Any]) -> None:
    """Its interpreter runs its entry file, and what is installed twice has one hash."""
    first, again = own["npx -y -p scripted serve x"], own["npx -p scripted@1 serve"]
    assert first["package"] == "npm:scripted@1.2.3"
    entry = "{tree}/node_modules/scripted/index.js"
    assert Path(first["program"][0]).name == "node"
    assert first["program"][1:] == ["--no-warnings", entry, "x"]
    assert first["said"] == "x\n"
    assert first["tree"] == again["tree"]
    assert "package-lock.json" in first["files"]
    assert "ran" not in first["files"]
    assert "has no program other. Its programs: serve." in own["npx -p scripted other"]
    assert own["left"] == []


def test_a_wheel_is_installed_and_nothing_is_built(own: dict[str, Any]) -> None:
    first = own["uvx --from wheeled serve"]
    assert first["package"] == "pypi:wheeled@1.0"
    assert first["said"] == "['serve']\n"
    assert own["uvx source"].startswith("Unavailable: source (wheels alone) could not be installed")
    assert "registry.example/files/source-1.0.tar.gz" not in own["seen"]


def test_an_installer_reaches_the_registry_and_no_other_host(own: dict[str, Any]) -> None:
    assert own["npx elsewhere"].endswith("evil.example:443 is no registry of your settings")
    assert not any(each.startswith("evil.example") for each in own["seen"])


def test_a_registry_with_a_login_or_without_tls_is_refused(own: dict[str, Any]) -> None:
    """Neither is another asked in its place: that could have another package of the name."""
    assert "asks for a login for private@latest" in own["npx private"]
    for line in ("npx scripted", "npx @acme/scripted", "uvx wheeled"):
        assert own[line].startswith("Forbidden: Your settings name registry.example with a login")
        assert "secret" not in own[line]
    assert "over https alone" in own["npx scripted@1"]


@pytest.mark.skipif(not ALL, reason="only with AILERON_TEST_ALL: it fetches from npm and PyPI")
def test_published_servers_start_from_what_was_installed(public: dict[str, Any]) -> None:
    """The same version has the same hash, and one changed byte is never started."""
    for line, package, server in (
        ("npx -y @modelcontextprotocol/server-memory", "npm:@modelcontextprotocol/server-memory@", "memory-server"),
        ("uvx mcp-server-time", "pypi:mcp-server-time@", "mcp-time"),
    ):  # fmt: skip
        met = public[line]
        assert met["package"].startswith(package)
        assert len({*met["trees"]}) == 1
        assert met["server"] == server
        assert met["changed"].startswith("HashMismatch: The files of the server's package changed")


@pytest.mark.skipif(os.getuid() != 0, reason="needs root")
def test_root_installs_nothing(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="root"):
        installed(tmp_path, ServerTable(run=("npx", "scripted")), lambda _: None)
