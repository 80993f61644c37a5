"""Which package a command names, and a package kept by the hash of its files."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from aileron_core.connectors.servers import trees
from aileron_core.connectors.servers.packages import PackageRequest, package_request
from aileron_core.connectors.store import staging
from aileron_core.errors import HashMismatch, InvalidRequest, NotFound


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("npx -y @acme/mcp@^1.2 /data --x", PackageRequest(registry="npm", name="@acme/mcp", version="^1.2", args=("/data", "--x"))),
        ("/opt/node/bin/npx --package=mcp@latest go -y", PackageRequest(registry="npm", name="mcp", command="go", args=("-y",))),
        ("uvx Acme_MCP@1.0 -v", PackageRequest(registry="pypi", name="acme-mcp", version="==1.0", command="Acme_MCP", args=("-v",))),
        ("uv tool run --from mcp[cli]>=2,<3 mcp run", PackageRequest(registry="pypi", name="mcp", extras="[cli]", version=">=2,<3", command="mcp", args=("run",))),
        ("/usr/bin/node server.js", None),
        ("uv run server.py", None),
    ],
)  # fmt: skip
def test_a_command_names_its_package(line: str, wanted: PackageRequest | None) -> None:
    assert package_request(line.split()) == wanted


BAD_LINES = {
    "outside Aileron's box": ("docker run -i mcp/github", "/usr/bin/podman run x"),
    "npx -c:": ("npx -c evil",),
    "npx --registry:": ("npx --registry=https://evil.example mcp",),
    "uvx --with:": ("uvx --with other mcp",),
    "write a package of the registry": (
        *("npx github:acme/mcp", "npx -y ./mcp", "npx -y"),
        "uvx --from git+https://example.com/mcp mcp",
    ),
}


@pytest.mark.parametrize("why", BAD_LINES)
def test_what_is_not_understood_is_refused_by_name(why: str) -> None:
    for line in BAD_LINES[why]:
        with pytest.raises(InvalidRequest, match=why):
            package_request(line.split())


def _kept(home: Path, change: Callable[[Path], object] = str) -> str:
    with staging(trees.packages_root(home)) as folder:
        (folder / "lib" / "empty").mkdir(parents=True)
        (folder / "lib" / "index.js").write_text("serve()")
        (folder / "run").write_text("#!/bin/sh")
        (folder / "run").chmod(0o755)
        (folder / "bin").symlink_to("lib/index.js")
        change(folder)
        return trees.keep_tree(home, folder)


def _rewrite(folder: Path) -> None:
    """Change one byte, and put the time of the change back."""
    file = folder / "lib" / "index.js"
    times = file.stat()
    file.chmod(0o600)
    file.write_text("serveX)")
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))


def _relink(folder: Path) -> None:
    (folder / "bin").unlink()
    (folder / "bin").symlink_to("run")


_CHANGES: dict[str, Callable[[Path], object]] = {
    "byte": _rewrite,
    "link": _relink,
    "added": lambda folder: (folder / "lib" / "new.js").touch(),
    "removed": lambda folder: (folder / "run").unlink(),
    "folder": lambda folder: (folder / "lib" / "empty").rmdir(),
    "executable": lambda folder: (folder / "lib" / "index.js").chmod(0o755),
}


def _read_again(folder: Path) -> str:
    raise AssertionError(folder)


@pytest.mark.parametrize("name", _CHANGES)
def test_a_package_that_changed_is_not_started(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Although its files were read before and believed by their times since."""
    monkeypatch.setattr(trees, "_SETTLED_SECONDS", -60)
    change = _CHANGES[name]
    tree = _kept(tmp_path)
    assert tree == _kept(tmp_path / "other") != _kept(tmp_path, change)
    folder = trees.verify_tree(tmp_path, tree)
    with monkeypatch.context() as unread:
        unread.setattr(trees, "tree_hash", _read_again)
        assert trees.verify_tree(tmp_path, tree) == folder
    assert not any(each.stat().st_mode & 0o222 for each in folder.rglob("*") if each.is_file())
    probe = tmp_path / "probe"
    probe.touch()
    while probe.stat().st_ctime_ns <= folder.stat().st_ctime_ns:  # the file system's clock ticks
        probe.touch()
    change(folder)
    with pytest.raises(HashMismatch, match="changed on disk"):
        trees.verify_tree(tmp_path, tree)


@pytest.mark.parametrize("target", ["/etc/passwd", "../../outside", ".."])
def test_a_package_with_a_link_that_leads_out_is_not_kept(tmp_path: Path, target: str) -> None:
    with pytest.raises(trees.BadTree, match="leads out of it"):
        _kept(tmp_path, lambda folder: (folder / "out").symlink_to(target))
    assert [*(tmp_path / "store" / "servers").glob("*/*")] == []


def test_a_package_that_no_server_names_is_removed(tmp_path: Path) -> None:
    tree, other = _kept(tmp_path), _kept(tmp_path, _rewrite)
    trees.collect(tmp_path, [other])
    trees.verify_tree(tmp_path, other)
    with pytest.raises(NotFound, match="aileron server update"):
        trees.verify_tree(tmp_path, tree)
