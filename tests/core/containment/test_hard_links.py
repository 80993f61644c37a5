"""Files with other names: ours become files of their own, a project's are counted."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import click
import pytest

import aileron_core
from aileron_core.containment.hard_links import (
    break_hard_links,
    find_outside_links,
    hard_linked_files,
    own_folders,
)
from aileron_core.errors import Forbidden
from aileron_core.launch.doctor.machine import check_hard_links
from tests.support.ordinary import as_ordinary, ordinary_folder


def linked_package(folder: Path) -> tuple[Path, Path]:
    """Return a package's file and its other name in a cache."""
    ours, cache = folder / "site-packages" / "click" / "__init__.py", folder / "cache.py"
    ours.parent.mkdir(parents=True)
    ours.write_text("good")
    ours.chmod(0o640)
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
    folders = own_folders()
    for module in (aileron_core, click, os):
        assert any(Path(module.__file__).resolve().is_relative_to(each) for each in folders)
    assert tmp_path not in folders
    beside = tmp_path / "lib" / "site-packages"
    beside.mkdir(parents=True)
    (beside / "a.py").write_text("x")
    (tmp_path / "a.py").hardlink_to(beside / "a.py")
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
    assert find_outside_links(project).warning() is None
    (project / ".git").mkdir()
    for name in ("a", "inside", ".git/object"):
        (project / name).write_text("x")
    for name, other in (("a", tmp_path / "1"), (".git/object", tmp_path / "2")):
        other.hardlink_to(project / name)
    (project / "a2").hardlink_to(project / "a")
    (project / "inside2").hardlink_to(project / "inside")
    found = find_outside_links(project)
    assert (found.count, found.is_complete) == (1, True)
    said = found.warning()
    assert said.startswith("Files of this project that are hard links to files outside it: 1, ")
    assert "UV_LINK_MODE=copy" in said


def test_a_running_program_does_not_notice(tmp_path: Path) -> None:
    """A library that is mapped, and modules not imported yet."""
    package = tmp_path / "package"
    package.mkdir()
    for name in ("__init__", "later"):
        (package / f"{name}.py").write_text(f"name = '{name}'\n")
        (tmp_path / f"{name}.py").hardlink_to(package / f"{name}.py")
    program = (
        "import sys; sys.path.insert(0, sys.argv[1]); import package\n"
        "print('up', flush=True); sys.stdin.readline(); import package.later as l; print(l.name)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-I", "-B", "-c", program, str(tmp_path)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as running:  # fmt: skip
        assert running.stdout.readline() == "up\n"
        break_hard_links(hard_linked_files([package]))
        (tmp_path / "later.py").write_text("name = 'evil'\n")
        out, _ = running.communicate("\n", timeout=20)
    assert out == "later\n"
