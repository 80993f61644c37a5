"""The launch's private folder, files injected into the agent's folders, and copied credentials."""

import json
import os
import subprocess
import sys
from pathlib import Path, PurePosixPath

import pytest

from aileron_core.errors import AileronError, Forbidden
from aileron_core.launch.agents import AGENTS
from aileron_core.launch.launch_dir import (
    InjectedFiles,
    LaunchDir,
    copy_back,
    copy_in,
    remove_stale,
)
from aileron_core.launch.plan import AgentFolder, InjectedFile, PlanContext

FOLDER = AgentFolder(path=PurePosixPath(".codex"), credentials=("auth.json",), leave_out=("log",))
BEFORE = '{"tokens": {"access": "old", "expires": 1}, "kind": "chatgpt"}'


def homes(tmp_path: Path) -> tuple[Path, Path]:
    person, own = tmp_path / "person", tmp_path / "own"
    (person / ".codex").mkdir(parents=True)
    own.mkdir()
    (person / ".codex" / "auth.json").write_text(BEFORE)
    return person, own


def test_a_private_folder_is_its_owners_alone_and_gone_at_the_end(tmp_path: Path) -> None:
    """0700, files 0600, nothing left."""
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


def test_refreshed_credentials_of_the_same_shape_come_back(tmp_path: Path) -> None:
    """A login that the agent renewed is not lost."""
    person, own = homes(tmp_path)
    copied = copy_in(person, own, [FOLDER])
    after = BEFORE.replace("old", "new")
    (own / ".codex" / "auth.json").write_text(after)
    assert copy_back(copied) == [person / ".codex" / "auth.json"]
    assert (person / ".codex" / "auth.json").read_text() == after
    assert (person / ".codex" / "auth.json").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    "after",
    [
        '{"tokens": {"access": "new", "expires": 1}, "kind": "chatgpt", "hooks": "evil"}',
        '{"tokens": {"access": "new", "expires": "1"}, "kind": "chatgpt"}',
        '{"tokens": "new", "kind": "chatgpt"}',
        '["new"]',
        "not json",
        "",
        json.dumps({"tokens": {"access": "x" * 2_000_000, "expires": 1}, "kind": "chatgpt"}),
        "[" * 100_000,
    ],
)
def test_anything_else_stays_in_the_sandbox(tmp_path: Path, after: str) -> None:
    """A key more, another type, no JSON, too much: the person's file stays as it is."""
    person, own = homes(tmp_path)
    copied = copy_in(person, own, [FOLDER])
    (own / ".codex" / "auth.json").write_text(after)
    (own / ".codex" / "config.toml").write_text("notify = ['evil']")
    assert copy_back(copied) == []
    assert (person / ".codex" / "auth.json").read_text() == BEFORE
    assert [each.name for each in (person / ".codex").iterdir()] == ["auth.json"]


def test_neither_a_link_nor_a_pipe_nor_a_folder_comes_back(tmp_path: Path) -> None:
    """A link would carry another file out; a pipe would hold the launcher for ever, a folder end it."""
    person, own = homes(tmp_path)
    (tmp_path / "other").write_text(BEFORE.replace("old", "new"))
    copied = copy_in(person, own, [FOLDER])
    copy = own / ".codex" / "auth.json"
    copy.unlink()
    copy.symlink_to(tmp_path / "other")
    assert copy_back(copied) == []
    copy.unlink()
    os.mkfifo(copy)
    assert copy_back(copied) == []
    copy.unlink()
    copy.mkdir()
    assert copy_back(copied) == []


def test_nothing_is_copied_in_through_a_link_that_an_agent_could_have_made(tmp_path: Path) -> None:
    """One that lies deeper than the home itself, or behind the person's: refused with a sentence."""
    person, own = homes(tmp_path)
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets" / "id").write_text("a key")
    deep = AgentFolder(path=PurePosixPath(".config/opencode"))
    (person / ".config").mkdir()
    (person / ".config" / "opencode").symlink_to(tmp_path / "secrets")
    (person / ".codex").rename(tmp_path / "kept")
    (person / ".codex").symlink_to("dotfiles/codex")
    (person / "dotfiles").mkdir()
    (person / "dotfiles" / "codex").symlink_to(tmp_path / "secrets")
    for folder in (deep, FOLDER):
        with pytest.raises(AileronError, match="is behind a link"):
            copy_in(person, own, [folder])
    assert list(own.iterdir()) == []


@pytest.mark.parametrize("absolute", [True, False])
def test_a_folder_that_the_person_keeps_elsewhere_is_copied_in(
    tmp_path: Path, absolute: bool
) -> None:
    """By a link in the home itself, where no agent can put one; nothing comes back, and that is told."""
    person, own = homes(tmp_path)
    (person / "dotfiles").mkdir()
    (person / ".codex").rename(person / "dotfiles" / "codex")
    (person / ".codex").symlink_to(person / "dotfiles" / "codex" if absolute else "dotfiles/codex")
    notices: list[str] = []
    copied = copy_in(person, own, [FOLDER], notices.append)
    assert (own / ".codex" / "auth.json").read_text() == BEFORE
    assert not (own / ".codex").is_symlink()
    (only,) = notices
    assert "a login that the agent renews is not copied back" in only
    (own / ".codex" / "auth.json").write_text(BEFORE.replace("old", "new"))
    assert copy_back(copied) == []


def test_nothing_comes_back_through_a_link(tmp_path: Path) -> None:
    """Neither from the agent's side, by a folder that is a link now, nor to the person's."""
    person, own = homes(tmp_path)
    other = tmp_path / "other"
    other.mkdir()
    (other / "auth.json").write_text(BEFORE.replace("old", "new"))
    copied = copy_in(person, own, [FOLDER])
    (own / ".codex").rename(own / "kept")
    (own / ".codex").symlink_to(other)
    assert copy_back(copied) == []
    (own / ".codex").unlink()
    (own / "kept").rename(own / ".codex")
    (own / ".codex" / "auth.json").write_text(BEFORE.replace("old", "new"))
    (other / "auth.json").write_text(BEFORE)
    (person / ".codex").rename(tmp_path / "kept")
    (person / ".codex").symlink_to(other)
    assert copy_back(copied) == []
    assert (other / "auth.json").read_text() == BEFORE


def test_links_in_an_agents_folder_stay_links(tmp_path: Path) -> None:
    """What they lead to is not copied; modes and times of files are."""
    person, own = homes(tmp_path)
    (person / ".codex" / "link").symlink_to("/etc/passwd")
    (person / ".codex" / "run").write_text("#!/bin/sh\n")
    (person / ".codex" / "run").chmod(0o755)
    os.utime(person / ".codex" / "run", (1, 1))
    copy_in(person, own, [FOLDER])
    assert (own / ".codex" / "link").readlink() == Path("/etc/passwd")
    assert (own / ".codex" / "run").stat().st_mode & 0o777 == 0o755
    assert (own / ".codex" / "run").stat().st_mtime == 1


def test_a_login_that_changed_outside_meanwhile_wins(tmp_path: Path) -> None:
    """Two sessions, or a login beside it: the person's own file is newer."""
    person, own = homes(tmp_path)
    copied = copy_in(person, own, [FOLDER])
    (person / ".codex" / "auth.json").write_text(BEFORE.replace("old", "outside"))
    (own / ".codex" / "auth.json").write_text(BEFORE.replace("old", "inside"))
    assert copy_back(copied) == []


def test_an_agents_folder_may_not_be_huge(tmp_path: Path) -> None:
    """A sentence instead of a minute of copying; what is left out does not count."""
    person, own = homes(tmp_path)
    for name in ("log", "big"):
        (person / ".codex" / name).mkdir()
        with (person / ".codex" / name / "file").open("wb") as file:
            file.truncate(65 * 1024 * 1024)
    with pytest.raises(AileronError, match="contains more than 64 MiB"):
        copy_in(person, own, [FOLDER])


def addition() -> InjectedFile:
    (found,) = AGENTS["gemini"].plan(_context()).injected_files
    return found


def _context() -> PlanContext:
    return PlanContext(relay="/r", launch_dir=PurePosixPath("/p"), env={})


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
