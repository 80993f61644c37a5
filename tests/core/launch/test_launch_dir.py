"""The launch's private folder, and files injected into the agent's folders."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from aileron_core.errors import Forbidden
from aileron_core.launch.launch_dir import InjectedFiles, LaunchDir, remove_stale
from aileron_core.launch.plan import InjectedFile
from tests.core.launch.plans import plan_of


def test_a_private_folder_is_its_owners_alone_and_gone_at_the_end(tmp_path: Path) -> None:
    with LaunchDir(tmp_path / "run") as folder:
        token = folder.write("token", "secret")
        assert token.stat().st_mode & 0o777 == 0o600
        assert folder.path.stat().st_mode & 0o777 == 0o700
    assert list((tmp_path / "run").iterdir()) == []


def test_what_a_killed_launch_left_is_swept_and_a_living_one_is_not(tmp_path: Path) -> None:
    """By the process that its name tells; a folder of another form is nobody's."""
    done = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"],
                          capture_output=True, text=True, check=True)  # fmt: skip
    dead, alive = tmp_path / f"{done.stdout.strip()}-ab", tmp_path / f"{os.getpid()}-ab"
    for folder in (dead, alive, tmp_path / "odd"):
        folder.mkdir()
        (folder / "token").write_text("secret")
    remove_stale([tmp_path, tmp_path / "nothing here"])
    assert [each.name for each in tmp_path.iterdir()] == [alive.name]


def addition() -> InjectedFile:
    (found,) = plan_of("gemini").injected_files
    return found


def test_injected_files_go_with_the_folders_that_were_made_for_them(tmp_path: Path) -> None:
    """As before, also where the agent's own folder was not there."""
    with InjectedFiles(tmp_path, [addition()]):
        assert (tmp_path / addition().path).exists()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("depth", [1, 2])
def test_nothing_is_put_through_a_link(tmp_path: Path, depth: int) -> None:
    """Whoever made it: what it leads to stays as it is."""
    home, elsewhere = tmp_path / "home", tmp_path / "elsewhere"
    link = home.joinpath(*addition().path.parts[:depth])
    link.parent.mkdir(parents=True)
    elsewhere.mkdir()
    link.symlink_to(elsewhere)
    with pytest.raises(Forbidden, match="is behind a link"), InjectedFiles(home, [addition()]):
        pass
    assert list(elsewhere.iterdir()) == []


def test_an_addition_that_a_killed_launch_left_is_repaired(tmp_path: Path) -> None:
    """The next launch takes it over, and takes it away."""
    InjectedFiles(tmp_path, [addition()]).__enter__()
    with InjectedFiles(tmp_path, [addition()]):
        pass
    assert not (tmp_path / addition().path).parent.exists()


def test_what_is_not_ours_is_left_alone(tmp_path: Path) -> None:
    """Somebody else's extension of that name: a sentence, and nothing changed."""
    folder = (tmp_path / addition().path).parent
    folder.mkdir(parents=True)
    (folder / "theirs").write_text("x")
    with (
        pytest.raises(Forbidden, match="nothing was changed"),
        InjectedFiles(tmp_path, [addition()]),
    ):
        pass
    assert [each.name for each in folder.iterdir()] == ["theirs"]
