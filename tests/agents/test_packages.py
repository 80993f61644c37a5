"""MCP servers from npm and PyPI, installed in a box and started from what was installed.

As a program with FOLDER own (or public), this file installs them as an ordinary user from its own registries.
"""

import base64
import hashlib
import http.server
import io
import json
import os
import shutil
import ssl
import sys
import tarfile
import threading
import zipfile
from pathlib import Path
from typing import Any

import pytest

from aileron_core.connectors.servers.box import BoxedServers
from aileron_core.connectors.servers.packages import installed
from aileron_core.connectors.servers.table import ServerTable
from aileron_core.connectors.servers.trees import verify_tree
from aileron_core.errors import AileronError, Unavailable
from tests.support.ordinary import ordinary_folder, run_as_ordinary
from tests.support.tls_service import OneAddress, certificate
from tests.support.variants import ALL

ADDRESS = "127.0.0.5"
HELLO = {
    "jsonrpc": "2.0", "id": 1, "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}},
}  # fmt: skip


class Registry:
    """npm at `/NAME` and PyPI at `/simple/NAME/`, with packages whose scripts would leave a trace."""

    def __init__(self, certificate: Path) -> None:
        self.seen: list[str] = []
        registry = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                registry.seen.append(f"{self.headers['Host'].partition(':')[0]}{self.path}")
                body = registry.files.get(self.path.rstrip("/"))
                status = 401 if "/private" in self.path else 404 if body is None else 200
                self.send_response(status)
                kind = "text/html" if "simple" in self.path else "application/json"
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body or b"")))
                self.end_headers()
                self.wfile.write(body or b"")

            def log_message(self, format: str, *args: object) -> None: ...  # noqa: A002

        server = http.server.ThreadingHTTPServer((ADDRESS, 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
        self.port = server.server_address[1]
        self.url = f"https://registry.example:{self.port}"
        self.files: dict[str, bytes] = {}
        for name, host in (("scripted", "registry"), ("elsewhere", "evil")):
            self._add_npm(name, f"https://{host}.example:{self.port}")
        self._add_pypi()
        threading.Thread(target=server.serve_forever, daemon=True).start()

    def _add_npm(self, name: str, files: str) -> None:
        trace = "touch /package/ran $HOME/ran"
        manifest = {
            "name": name, "version": "1.2.3", "bin": {"serve": "index.js"},
            "scripts": dict.fromkeys(("preinstall", "install", "postinstall", "prepare"), trace),
        }  # fmt: skip
        data = io.BytesIO()
        with tarfile.open(fileobj=data, mode="w:gz") as archive:
            entry = "#!/usr/bin/env -S node --no-warnings\nconsole.log(process.argv[2])\n"
            for path, text in {"package.json": json.dumps(manifest), "index.js": entry}.items():
                info = tarfile.TarInfo(f"package/{path}")
                info.size = len(text)
                archive.addfile(info, io.BytesIO(text.encode()))
        self.files[f"/{name}/-/{name}-1.2.3.tgz"] = packed = data.getvalue()
        digest = base64.b64encode(hashlib.sha512(packed).digest()).decode()
        dist = {"tarball": f"{files}/{name}/-/{name}-1.2.3.tgz", "integrity": f"sha512-{digest}"}
        versions = {"1.2.3": {**manifest, "hasInstallScript": True, "dist": dist}}
        listed = {"name": name, "dist-tags": {"latest": "1.2.3"}, "versions": versions}
        self.files[f"/{name}"] = json.dumps(listed).encode()

    def _add_pypi(self) -> None:
        data = io.BytesIO()
        info = "wheeled-1.0.dist-info"
        main = "import sys\nclass Main:\n    def run(): print(sys.argv)\n"
        texts = {
            "wheeled/__init__.py": main,
            f"{info}/METADATA": "Metadata-Version: 2.1\nName: wheeled\nVersion: 1.0\n",
            f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
            f"{info}/entry_points.txt": "[console_scripts]\nserve = wheeled:Main.run\n",
            f"{info}/RECORD": "",
        }
        with zipfile.ZipFile(data, "w") as archive:
            for path, text in texts.items():
                archive.writestr(path, text)
        self.files["/files/wheeled-1.0-py3-none-any.whl"] = data.getvalue()
        self.files["/files/source-1.0.tar.gz"] = b"never read"
        for file in ("wheeled-1.0-py3-none-any.whl", "source-1.0.tar.gz"):
            name = file.partition("-")[0]
            self.files[f"/simple/{name}"] = f'<a href="/files/{file}">{file}</a>'.encode()


def _own(folder: Path) -> dict[str, Any]:
    registry = Registry(folder / "both.pem")
    certificate = str(folder / "both.pem")
    own = {
        "PATH": os.environ["PATH"], "HOME": str(folder), "npm_config_registry": registry.url,
        "npm_config_cafile": certificate, "PIP_INDEX_URL": f"{registry.url}/simple", "PIP_CERT": certificate,
    }  # fmt: skip
    home = folder / "home"
    met: dict[str, Any] = {"port": registry.port}
    for line in (
        "npx -y -p scripted serve x", "npx -p scripted@1 serve", "npx -p scripted other", "npx elsewhere",
        "npx private", "uvx --from wheeled serve", "uvx source",
    ):  # fmt: skip
        met[line] = _installed_there(home, line, own)
    logged_in = registry.url.replace("//", "//me:secret@")
    for line, change in (
        ("npx scripted", {"npm_config_registry": logged_in}),
        ("npx @acme/scripted", {"npm_config_@acme:registry": logged_in}),
        ("npx scripted@1", {"npm_config_registry": "http://registry.example/"}),
        ("uvx wheeled", {"PIP_EXTRA_INDEX_URL": f"{logged_in}/simple"}),
    ):
        met[line] = _installed_there(home, line, own | change)
    met["seen"] = registry.seen
    met["left"] = sorted(each.name for each in (home / "store" / "servers" / "tmp").iterdir())
    return met


def _installed_there(home: Path, line: str, env: dict[str, str]) -> dict[str, Any] | str:
    """Install what *line* names, and start it; return what is there then, or why it was not."""
    try:
        table = ServerTable(run=tuple(line.split()))
        found = installed(home, table, lambda _: None, env=env, resolver=OneAddress(ADDRESS))
    except AileronError as error:
        return f"{type(error).__name__}: {error.message}"
    place = verify_tree(home, found.tree)
    return {
        "package": found.package, "tree": found.tree,
        "files": sorted(str(each.relative_to(place)) for each in place.rglob("*") if "__pycache__" not in each.parts),
        "program": found.program, "said": _start(home, found.program, found.tree, b""),
    }  # fmt: skip


def _start(home: Path, program: tuple[str, ...], tree: str, stdin: bytes) -> str:
    """Return what the installed program prints first, in a server's box."""
    box = BoxedServers(home, home.parent, os.environ, tree=lambda each: verify_tree(home, each))
    try:
        started = box.start("it", ServerTable(program=program, tree=tree), "read", {})
    except AileronError as error:
        return f"{type(error).__name__}: {error.message}"
    assert started.process.stdin
    assert started.process.stdout
    try:
        started.process.stdin.write(stdin)
        started.process.stdin.flush()
        return started.process.stdout.readline().decode()
    finally:
        started.stop()


def _public(folder: Path) -> dict[str, Any]:
    home = folder / "home"
    met: dict[str, Any] = {}
    for line in ("npx -y @modelcontextprotocol/server-memory", "uvx mcp-server-time"):
        table = ServerTable(run=tuple(line.split()))
        times = 2 if line.startswith("uvx") else 1  # its bytecode is compiled anew each time
        found = [installed(home, table, lambda _: None) for _ in range(times)]
        first = found[0]
        hello = json.dumps(HELLO).encode() + b"\n"
        answer = json.loads(_start(home, first.program, first.tree, hello))
        pattern = "index.js" if line.startswith("npx") else "*.pyc"
        file = next(verify_tree(home, first.tree).rglob(pattern))
        data = file.read_bytes()
        file.chmod(0o600)
        file.write_bytes(bytes([data[0] ^ 1]) + data[1:])
        met[line] = {
            "package": first.package, "trees": [each.tree for each in found],
            "server": answer["result"]["serverInfo"]["name"],
            "changed": _start(home, first.program, first.tree, hello),
        }  # fmt: skip
    return met


pytestmark = pytest.mark.skipif(
    shutil.which("bwrap", path="/usr/bin:/bin") is None or shutil.which("npm") is None,
    reason="needs bubblewrap and npm",
)


def met_in(which: str) -> dict[str, Any]:
    with ordinary_folder() as folder:
        certificate(folder, "registry.example", "evil.example")
        done = run_as_ordinary(Path(__file__), folder, which, timeout=600, HOME=str(folder))
        return json.loads(done.stdout)


def test_a_package_is_installed_without_its_scripts_from_the_registry_alone() -> None:
    """Where a registry has a login no other is asked: that could have another package of the name."""
    own = met_in("own")
    first, again = own["npx -y -p scripted serve x"], own["npx -p scripted@1 serve"]
    assert first["package"] == "npm:scripted@1.2.3"
    entry = "{tree}/node_modules/scripted/index.js"
    assert Path(first["program"][0]).name == "node"
    assert (first["program"][1:], first["said"]) == (["--no-warnings", entry, "x"], "x\n")
    assert first["tree"] == again["tree"]
    assert "package-lock.json" in first["files"]
    assert "ran" not in first["files"]
    assert "has no program other. Its programs: serve." in own["npx -p scripted other"]
    assert own["left"] == []
    first = own["uvx --from wheeled serve"]
    assert (first["package"], first["said"]) == ("pypi:wheeled@1.0", "['serve']\n")
    assert own["uvx source"].startswith("Unavailable: source (wheels alone) could not be installed")
    assert "registry.example/files/source-1.0.tar.gz" not in own["seen"]
    assert own["npx elsewhere"].endswith("evil.example:443 is no registry of your settings")
    assert not any(each.startswith("evil.example") for each in own["seen"])
    assert "asks for a login for private@latest" in own["npx private"]
    for line in ("npx scripted", "npx @acme/scripted", "uvx wheeled"):
        assert own[line].startswith("Forbidden: Your settings name registry.example with a login")
        assert "secret" not in own[line]
    assert "over https alone" in own["npx scripted@1"]


@pytest.mark.skipif(not ALL, reason="only with AILERON_TEST_ALL: it fetches from npm and PyPI")
def test_published_servers_start_from_what_was_installed() -> None:
    """The same version has the same hash, and one changed byte is never started."""
    public = met_in("public")
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


if __name__ == "__main__":
    print(json.dumps({"own": _own, "public": _public}[sys.argv[2]](Path(sys.argv[1]))))
