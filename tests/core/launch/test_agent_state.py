"""An agent's history and caches in Aileron's home: where they are, who shares them, and how one conversation
leaves.
"""

import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path, PurePosixPath

import pytest

from aileron_core.containment.mounts import Mount, refuse_nested
from aileron_core.errors import AileronError, Forbidden, NotFound
from aileron_core.launch import caches
from aileron_core.launch.agent_state import export_conversation, make_state, state_mounts
from aileron_core.launch.agents import AGENTS
from aileron_core.launch.caches import cache_mounts, prepare_caches
from tests.core.launch.plans import plan_of

CLAUDE = AGENTS["claude"]
HOME = Path("/home/ana")


def test_history_is_kept_by_agent_and_project_for_the_owner_alone(tmp_path: Path) -> None:
    """Two projects of one name have two. What an agent closed is open again in the next launch."""
    projects = Path("/a/My App"), Path("/b/My App")
    sources: list[set[Path]] = []
    mounts: tuple[Mount, ...] = ()
    for project in projects:
        make_state(tmp_path, CLAUDE, project)
        mounts = state_mounts(tmp_path, HOME, CLAUDE, project, "1-a")
        assert {each.how for each in mounts} == {"writable"}
        assert HOME / ".claude/projects" in {each.path for each in mounts}
        sources.append({each.source for each in mounts if each.source})
        assert all(each.exists() for each in sources[-1])
    assert not sources[0] & sources[1]
    for path in (tmp_path / "agents").rglob("*"):
        assert path.stat().st_mode & 0o077 == 0
    assert {each.name[:7] for each in (tmp_path / "agents/claude").iterdir()} == {"My-App-"}
    for each in mounts:
        each.source.chmod(0)
    make_state(tmp_path, CLAUDE, projects[1])
    modes = {each.source.stat().st_mode & 0o777 for each in mounts if each.source}
    assert modes == {0o600, 0o700}


def test_launches_that_begin_at_once_share_what_is_kept(tmp_path: Path) -> None:
    """One of two said "File exists" and did not start."""
    with ThreadPoolExecutor(8) as pool:
        for each in range(25):
            made = [pool.submit(make_state, tmp_path, CLAUDE, Path(f"/a/{each}")) for _ in range(8)]
            assert [each.result() for each in made] == [None] * 8


@pytest.mark.parametrize("agent", AGENTS)
def test_no_setting_no_program_and_no_login_is_in_what_is_kept(agent: str) -> None:
    """What an agent writes there it finds again: history, never what it takes as settings."""
    for folder in AGENTS[agent].folders:
        kept = [PurePosixPath(name) for name in (*folder.state, *folder.state_files)]
        kept += [folder.database.path.parent] if folder.database else []
        named = (*folder.settings, *folder.credentials, *folder.read_only)
        for pattern in map(PurePosixPath, named):
            for path in kept:
                assert not pattern.is_relative_to(path), (pattern, path)
                assert not path.is_relative_to(pattern), (pattern, path)
                assert not path.match(str(pattern)), (pattern, path)


def test_nothing_is_mounted_into_what_an_agent_could_write() -> None:
    """bubblewrap would follow a link that an earlier agent left in the way."""
    kept = Mount(path=HOME / ".claude/projects", how="writable", why="", source=Path("/kept"))
    hook = Mount(path=HOME / ".claude/projects/x/hook", how="read-only", why="")
    refuse_nested([kept], Path("/srv/app"))
    for mounts, project in (([kept, hook], Path("/srv/app")), ([kept], kept.path / "app")):
        with pytest.raises(Forbidden, match="where an agent may have put links"):
            refuse_nested(mounts, project)


def write_conversation(home: Path, name: str, at: int) -> Path:
    mounts = state_mounts(home, HOME, CLAUDE, Path("/a/app"), "1-a")
    (mount,) = (each for each in mounts if each.path.name == "projects")
    path = mount.source / "-a-app" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(name)
    os.utime(path, (at, at))
    return path


def test_the_newest_conversation_leaves_or_the_one_that_is_named(tmp_path: Path) -> None:
    """A copy for the owner alone, in a folder that was empty; the rest stays."""
    make_state(tmp_path, CLAUDE, Path("/a/app"))
    for at, name in enumerate(("one-11.jsonl", "two-22.jsonl", "notes.txt"), 1000):
        write_conversation(tmp_path, name, at)
    out = tmp_path / "out"
    found = export_conversation(tmp_path, CLAUDE, Path("/a/app"), "", out)
    assert (found.path, found.count) == (out / "two-22.jsonl", 2)
    assert [each.read_text() for each in out.iterdir()] == ["two-22.jsonl"]
    assert found.path.stat().st_mode & 0o777 == 0o600
    with pytest.raises(AileronError, match="Name a new or empty folder"):
        export_conversation(tmp_path, CLAUDE, Path("/a/app"), "", out)
    named = export_conversation(tmp_path, CLAUDE, Path("/a/app"), "one-1", tmp_path / "other")
    assert named.path.name == "one-11.jsonl"
    for agent, project, wanted, why in (
        ("claude", "/a/app", "33", "no conversation named 33"),
        ("claude", "/b/app", "", "no conversation from a contained launch in /b/app"),
        ("goose", "/a/app", "", "Goose has no conversation from a contained launch"),
    ):
        with pytest.raises(NotFound, match=why):
            export_conversation(tmp_path, AGENTS[agent], Path(project), wanted, tmp_path / "more")


def test_a_name_or_a_link_of_an_agents_brings_nothing_else_out(tmp_path: Path) -> None:
    """The file's name is the agent's too: a plain one, or one of ours."""
    make_state(tmp_path, CLAUDE, Path("/a/app"))
    (tmp_path / "secret").write_text("a key")
    write_conversation(tmp_path, "\x1b[2J.jsonl", 1000)
    link = write_conversation(tmp_path, "link.jsonl", 2000)
    link.unlink()
    link.symlink_to(tmp_path / "secret")
    (link.parent.parent / "away").symlink_to(tmp_path)
    found = export_conversation(tmp_path, CLAUDE, Path("/a/app"), "", tmp_path / "out")
    assert (found.path.name, found.count) == ("conversation.jsonl", 1)
    assert found.path.read_text() == "\x1b[2J.jsonl"
    (tmp_path / "home").mkdir()
    (tmp_path / "home/agents").symlink_to(tmp_path)
    with pytest.raises(AileronError, match="cannot be used"):
        make_state(tmp_path / "home", CLAUDE, Path("/a/app"))
    assert {each.name for each in tmp_path.iterdir()} == {"home", "agents", "out", "secret"}


def argv(agent: str, settings: dict[str, str], *args: str, contained: bool = True) -> str:
    return " ".join(plan_of(agent, args=args, settings=settings, contained=contained).argv)


def test_what_a_person_chose_counts_over_what_a_conversation_recorded() -> None:
    """Both agents go on in the mode of the conversation, which the agent wrote, unless an option says otherwise."""
    plan = json.dumps({"permissions": {"defaultMode": "plan"}})
    unsafe = json.dumps({"permissions": {"defaultMode": "bypassPermissions"}})
    theirs = {"~/.claude/settings.json": plan}
    assert "--permission-mode=plan" in argv("claude", theirs)
    assert "--permission-mode=plan" not in argv("claude", theirs, "--permission-mode", "auto")
    assert "--permission-mode" not in argv("claude", theirs, contained=False)
    assert "--permission-mode" not in argv("claude", {"~/.claude/settings.json": unsafe})
    assert "--permission-mode" not in argv("claude", {**theirs, ".claude/settings.json": unsafe})
    config = {"~/.codex/config.toml": 'approval_policy = "on-request"\n'}
    assert 'approval_policy="on-request"' in argv("codex", config)
    assert "approval_policy" not in argv("codex", config, "--profile=fast")
    assert "approval_policy" not in argv("codex", {"~/.codex/config.toml": 'model = "x"\n'})
    for option in ("--continue", "--resume=1"):  # a person who chose none gets the default
        assert "--permission-mode=default" in argv("claude", {}, option)
    assert "--permission-mode" not in argv("claude", {}, "-c", "--dangerously-skip-permissions")
    assert 'approval_policy="on-request"' in argv("codex", {}, "resume", "--last")
    assert "approval_policy" not in argv("codex", {}, "exec", "resume", "--last")


@pytest.fixture
def cached_home(tmp_path: Path) -> Path:
    """A home with a cache of uv and one of npm."""
    home = tmp_path / "person"
    for name in (".cache/uv/wheels/a.whl", ".npm/_cacache/index", ".npm/_logs/debug.log"):
        (home / name).parent.mkdir(parents=True)
        (home / name).write_text("mine")
    (home / ".cache/uv/link").symlink_to("wheels/a.whl")
    (home / ".cache/uv/hard").hardlink_to(home / ".cache/uv/wheels/a.whl")
    return home


def prepared_state(tmp_path: Path, cached_home: Path) -> tuple[dict[str, Path], list[str]]:
    """Return the caches of a project by their path in the home, and what was said."""
    said: list[str] = []
    home, project = tmp_path / "aileron", tmp_path / "project"
    prepare_caches(home, cached_home, project, said.append)
    found = cache_mounts(home, cached_home, project)
    return {str(m.path.relative_to(cached_home)): Path(str(m.source)) for m in found}, said


def test_they_begin_as_copies_and_are_the_projects_own_from_then_on(
    tmp_path: Path, cached_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What an agent edits in one is nowhere else, and stays for the next launch. A large one begins empty."""
    found, said = prepared_state(tmp_path, cached_home)
    wheel = found[".cache/uv"] / "wheels" / "a.whl"
    assert wheel.read_text() == "mine"
    assert (found[".cache/uv"] / "link").readlink() == Path("wheels/a.whl")
    assert [each.name for each in found[".npm"].iterdir()] == ["_cacache"]
    assert list(found[".cache/pip"].iterdir()) == []
    copied = [f"{cached_home}/{each}" for each in (".cache/uv", ".npm")]
    assert said == [f"Copying {each}, once for this project." for each in copied]
    wheel.write_text("edited")
    assert (cached_home / ".cache/uv/hard").read_text() == "mine"
    (cached_home / ".cache/uv/wheels/b.whl").write_text("mine")
    again, said = prepared_state(tmp_path, cached_home)
    assert (again, said) == (found, [])
    assert {each.name: each.read_text() for each in wheel.parent.iterdir()} == {"a.whl": "edited"}
    assert not list(tmp_path.glob("aileron/caches/*/*.partial*"))
    monkeypatch.setattr(caches, "_COPY_BYTES", 3)
    found, said = prepared_state(tmp_path / "more", cached_home)
    assert list(found[".cache/uv"].iterdir()) == []
    assert f"{cached_home}/.cache/uv contains more than" in said[0]


def test_no_link_is_followed(tmp_path: Path, cached_home: Path) -> None:
    """An agent that was not contained could have put it there, in place of a cache or in one."""
    (tmp_path / "keys").mkdir()
    (tmp_path / "keys" / "id").write_text("secret")
    (cached_home / ".cache" / "pip").symlink_to(tmp_path / "keys")
    (cached_home / ".cache" / "uv" / "keys").symlink_to(tmp_path / "keys")
    found, said = prepared_state(tmp_path, cached_home)
    assert list(found[".cache/pip"].iterdir()) == []
    assert (found[".cache/uv"] / "keys").is_symlink()
    assert any(f"{cached_home}/.cache/pip was not copied (Too many levels" in each for each in said)
