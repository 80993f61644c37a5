"""Files beneath a folder: no link on the way, races included; folders that go away whatever is in them; hard links.

Of files with other names ours become files of their own, and a project's are counted.
"""

import errno
import os
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import click
import pytest

import aileron_core
from aileron_core.containment import hard_links, safe_paths
from aileron_core.containment.hard_links import break_hard_links, hard_linked_files
from aileron_core.containment.linux_syscalls import openat2
from aileron_core.containment.safe_paths import open_beneath, open_folder, remove_tree
from aileron_core.errors import Forbidden
from aileron_core.launch.doctor.machine import check_hard_links
from tests.support.making import program
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
    ("path", "error"),
    [
        *((path, errno.ELOOP) for path in ("link/secret", "in/link/secret", "in/file")),
        *((path, errno.EXDEV) for path in ("../outside/secret", "/etc/passwd", "")),
        ("plain/secret", errno.ENOTDIR),
    ],
)
def test_nothing_is_opened_through_a_link_or_outside(
    way: str, tmp_path: Path, path: str, error: int
) -> None:
    """Neither in the middle, nor at the end, nor by a path that leads out."""
    outside, root = tmp_path / "outside", tmp_path / "root"
    outside.mkdir()
    (root / "in").mkdir(parents=True)
    (outside / "secret").write_text("secret")
    (root / "link").symlink_to(outside)
    (root / "in" / "link").symlink_to(outside)
    (root / "in" / "file").symlink_to(outside / "secret")
    (root / "plain").write_text("")
    with open_folder(root) as handle, pytest.raises(OSError) as refused:
        open_beneath(handle, path, os.O_RDONLY)
    assert refused.value.errno == error


def test_folders_are_made_and_noted_and_none_through_a_link(way: str, tmp_path: Path) -> None:
    """What was there is not noted; a link is not gone through, and nothing is made behind it."""
    (tmp_path / "root" / "there").mkdir(parents=True)
    (tmp_path / "outside").mkdir()
    (tmp_path / "root" / "link").symlink_to(tmp_path / "outside")
    made: list[PurePosixPath] = []
    with open_folder(tmp_path / "root") as root:
        with safe_paths.open_folder_beneath(root, PurePosixPath("there/a/b"), created=made):
            assert (tmp_path / "root" / "there" / "a" / "b").is_dir()
        linked = safe_paths.open_folder_beneath(root, PurePosixPath("link/a"), created=made)
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


def linked_package(folder: Path) -> tuple[Path, Path]:
    """Return a package's file and its other name in a cache."""
    ours, cache = folder / "site-packages" / "click" / "__init__.py", folder / "cache.py"
    program(ours, "good", 0o640)
    os.utime(ours, (1, 1))
    cache.hardlink_to(ours)
    return ours, cache


def test_a_file_of_ours_with_another_name_becomes_one_of_its_own(tmp_path: Path) -> None:
    """Same mode and time; what is written to the other name reaches it no more, and who has it open reads on."""
    ours, cache = linked_package(tmp_path)
    (tmp_path / "site-packages" / "alone.py").write_text("x")
    assert hard_linked_files([tmp_path / "site-packages"]) == [ours]
    with ours.open() as opened:
        break_hard_links([ours])
        cache.write_text("evil")
        assert opened.read() == "evil"  # it was open before: the running process keeps what it had
    assert ours.read_text() == "good"
    assert stat.S_IMODE(ours.stat().st_mode) == 0o640
    assert (ours.stat().st_mtime, ours.stat().st_nlink) == (1, 1)
    assert [each.name for each in ours.parent.iterdir()] == ["__init__.py"]
    assert hard_linked_files([tmp_path / "site-packages"]) == []


def test_where_that_cannot_be_done_the_launch_is_refused() -> None:
    """With the command that mends it; nothing of the attempt is left."""

    def refused() -> None:
        ours, _ = linked_package(folder)
        ours.parent.chmod(0o555)
        with pytest.raises(Forbidden, match="UV_LINK_MODE=copy uv"):
            break_hard_links([ours])
        assert [each.name for each in ours.parent.iterdir()] == ["__init__.py"]
        ours.parent.chmod(0o755)

    with ordinary_folder() as folder:
        as_ordinary(refused)


def test_what_we_run_is_looked_at(tmp_path: Path) -> None:
    """Our packages, what they import, the standard library; not what is installed beside that for others."""
    folders = hard_links.own_folders()
    for module in (aileron_core, click, os):
        assert any(Path(module.__file__).resolve().is_relative_to(each) for each in folders)
    assert tmp_path not in folders
    (tmp_path / "a.py").hardlink_to(program(tmp_path / "lib" / "site-packages" / "a.py", "x"))
    assert hard_linked_files([tmp_path / "lib"]) == []


def test_the_doctor_warns_of_them(tmp_path: Path) -> None:
    """With how many, one of them, and what mends it; without any it says nothing."""
    ours, _ = linked_package(tmp_path)
    found = check_hard_links([tmp_path])
    assert (found.level, found.topic) == ("warning", "code")
    assert str(ours) in found.text or str(tmp_path / "cache.py") in found.text
    assert "UV_LINK_MODE=copy" in found.text
    break_hard_links([ours])
    assert check_hard_links([tmp_path]) is None


def test_files_of_a_project_with_names_outside_are_counted(project: Path, tmp_path: Path) -> None:
    """Once each, however many names; links inside the project, and git's objects, are nobody else's."""
    assert hard_links.find_outside_links(project).warning() is None
    for name in ("a", "inside", ".git/object"):
        program(project / name, "x")
    for name, other in (("a", tmp_path / "1"), (".git/object", tmp_path / "2")):
        other.hardlink_to(project / name)
    (project / "a2").hardlink_to(project / "a")
    (project / "inside2").hardlink_to(project / "inside")
    found = hard_links.find_outside_links(project)
    assert (found.count, found.is_complete) == (1, True)
    said = found.warning()
    assert said.startswith("Files of this project that are hard links to files outside it: 1, ")
    assert "UV_LINK_MODE=copy" in said


def test_a_running_program_does_not_notice(tmp_path: Path) -> None:
    """A library that is mapped, and modules not imported yet."""
    package = tmp_path / "package"
    for name in ("__init__", "later"):
        program(package / f"{name}.py", f"name = '{name}'\n")
        (tmp_path / f"{name}.py").hardlink_to(package / f"{name}.py")
    script = (
        "import sys; sys.path.insert(0, sys.argv[1]); import package\n"
        "print('up', flush=True); sys.stdin.readline(); import package.later as l; print(l.name)\n"
    )
    words, pipe = [sys.executable, "-I", "-B", "-c", script, str(tmp_path)], subprocess.PIPE
    with subprocess.Popen(words, stdin=pipe, stdout=pipe, text=True) as running:
        assert running.stdout.readline() == "up\n"
        break_hard_links(hard_linked_files([package]))
        (tmp_path / "later.py").write_text("name = 'evil'\n")
        out, _ = running.communicate("\n", timeout=20)
    assert out == "later\n"
