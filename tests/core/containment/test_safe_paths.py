"""Files beneath a folder: no link on the way, races included; and folders that go away whatever is in them."""

import errno
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import pytest

from aileron_core.containment import safe_paths
from aileron_core.containment.linux_syscalls import openat2
from aileron_core.containment.safe_paths import (
    open_beneath,
    open_folder,
    open_folder_beneath,
    remove_tree,
)
from tests.support.ordinary import as_ordinary, ordinary_folder


@pytest.fixture(params=["openat2", "folder by folder"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Both ways: the kernel's call, and what stands in for it where there is none."""
    if request.param != "openat2":
        monkeypatch.setattr(safe_paths, "_has_openat2", lambda: False)
    elif not safe_paths._has_openat2():
        pytest.skip("this kernel has no openat2")
    return request.param


@pytest.mark.parametrize(
    "path", ["link/secret", "in/link/secret", "in/file", "../outside/secret", "/etc/passwd", ""]
)
def test_nothing_is_opened_through_a_link_or_outside(way: str, tmp_path: Path, path: str) -> None:
    """Neither in the middle, nor at the end, nor by a path that leads out."""
    outside, root = tmp_path / "outside", tmp_path / "root"
    outside.mkdir()
    (root / "in").mkdir(parents=True)
    (outside / "secret").write_text("secret")
    (root / "link").symlink_to(outside)
    (root / "in" / "link").symlink_to(outside)
    (root / "in" / "file").symlink_to(outside / "secret")
    with open_folder(root) as handle, pytest.raises(OSError) as refused:
        open_beneath(handle, path, os.O_RDONLY)
    assert refused.value.errno == (errno.ELOOP if path.startswith(("link", "in")) else errno.EXDEV)


def test_folders_are_made_and_noted_and_none_through_a_link(way: str, tmp_path: Path) -> None:
    """What was there is not noted; a link is not gone through, and nothing is made behind it."""
    (tmp_path / "root" / "there").mkdir(parents=True)
    (tmp_path / "outside").mkdir()
    (tmp_path / "root" / "link").symlink_to(tmp_path / "outside")
    made: list[PurePosixPath] = []
    with open_folder(tmp_path / "root") as root:
        with open_folder_beneath(root, PurePosixPath("there/a/b"), created=made):
            assert (tmp_path / "root" / "there" / "a" / "b").is_dir()
        linked = open_folder_beneath(root, PurePosixPath("link/a"), created=made)
        with pytest.raises(OSError), linked:
            pass
    assert made == [PurePosixPath("there/a"), PurePosixPath("there/a/b")]
    assert list((tmp_path / "outside").iterdir()) == []


def test_no_race_leads_out(way: str, tmp_path: Path) -> None:
    """A folder that changes places with a link as fast as it can: what is read is never behind the link."""
    for name in ("root/folder", "outside"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "root" / "folder" / "file").write_text("inside")
    (tmp_path / "outside" / "file").write_text("outside")
    (tmp_path / "root" / "link").symlink_to(tmp_path / "outside")
    over = threading.Event()

    def exchange() -> None:
        root = tmp_path / "root"
        while not over.is_set():
            (root / "folder").rename(root / "kept")
            (root / "link").rename(root / "folder")
            (root / "folder").rename(root / "link")
            (root / "kept").rename(root / "folder")

    thread = threading.Thread(target=exchange)
    thread.start()
    found: set[str] = set()
    try:
        with open_folder(tmp_path / "root") as root:
            for _ in range(3000):
                try:
                    handle = open_beneath(root, "folder/file", os.O_RDONLY)
                except OSError as error:
                    found.add(errno.errorcode[error.errno or 0])
                    continue
                with os.fdopen(handle) as file:
                    found.add(file.read())
    finally:
        over.set()
        thread.join()
    assert found <= {"inside", "ELOOP", "ENOENT", "ENOTDIR"}


def test_a_folder_goes_whatever_its_modes() -> None:
    """An agent that shut its folders leaves no copy of a login behind."""

    def shut_and_remove() -> None:
        own = folder / "own"
        for name in ("a/b", "c"):
            (own / name).mkdir(parents=True)
        (own / "a" / "b" / "auth.json").write_text("secret")
        (own / "c" / "link").symlink_to("/etc")
        for name in ("a/b", "a", "c", "."):
            (own / name).chmod(0)
        assert remove_tree(own)
        assert not os.path.lexists(own)

    with ordinary_folder() as folder:
        as_ordinary(shut_and_remove)


def test_a_folder_goes_whatever_its_depth(tmp_path: Path) -> None:
    """Deeper than a path may be long, and than descriptors or calls may be nested."""
    root = tmp_path / "own"
    root.mkdir()
    (tmp_path / "kept").write_text("x")
    at = os.open(root, os.O_RDONLY)
    for _ in range(1200):
        os.mkdir("deep", dir_fd=at)
        below = os.open("deep", os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = below
    os.symlink(tmp_path, "link", dir_fd=at)
    os.close(at)
    assert remove_tree(root)
    assert [each.name for each in tmp_path.iterdir()] == ["kept"]


def test_a_way_up_is_found_while_others_rename(tmp_path: Path) -> None:
    """The kernel gives such a way up (EAGAIN) whenever anything is renamed on the machine meanwhile."""
    for name in ("a", "b", "moved"):
        (tmp_path / name).mkdir()
    move = "import os, sys\nwhile True: os.rename('moved', 'there'); os.rename('there', 'moved')"
    root = os.open(tmp_path, os.O_RDONLY)
    with subprocess.Popen([sys.executable, "-c", move], cwd=tmp_path) as mover:
        try:
            for _ in range(20_000):
                os.close(openat2(root, b"a/../b/../a/../b", os.O_RDONLY, 0x08))
        finally:
            mover.kill()
            os.close(root)
