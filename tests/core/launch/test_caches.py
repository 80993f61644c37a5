"""The caches of contained launches: copies of the person's, kept for one project."""

from pathlib import Path

import pytest

from aileron_core.launch import caches
from aileron_core.launch.caches import cache_mounts, prepare_caches


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


def prepared(tmp_path: Path, cached_home: Path) -> tuple[dict[str, Path], list[str]]:
    """Return the caches of a project by their path in the home, and what was said."""
    said: list[str] = []
    home, project = tmp_path / "aileron", tmp_path / "project"
    prepare_caches(home, cached_home, project, said.append)
    found = cache_mounts(home, cached_home, project)
    return {str(m.path.relative_to(cached_home)): Path(str(m.source)) for m in found}, said


def test_they_begin_as_copies_and_are_the_projects_own_from_then_on(
    tmp_path: Path, cached_home: Path
) -> None:
    """What an agent edits in one is nowhere else, and stays for the next launch."""
    found, said = prepared(tmp_path, cached_home)
    wheel = found[".cache/uv"] / "wheels" / "a.whl"
    assert wheel.read_text() == "mine"
    assert (found[".cache/uv"] / "link").readlink() == Path("wheels/a.whl")
    assert [each.name for each in found[".npm"].iterdir()] == ["_cacache"]
    assert list(found[".cache/pip"].iterdir()) == []
    assert said == [
        f"Copying {cached_home}/.cache/uv, once for this project.",
        f"Copying {cached_home}/.npm, once for this project.",
    ]
    wheel.write_text("edited")
    assert (cached_home / ".cache/uv/hard").read_text() == "mine"
    (cached_home / ".cache/uv/wheels/b.whl").write_text("mine")
    again, said = prepared(tmp_path, cached_home)
    assert (again, said) == (found, [])
    assert {each.name: each.read_text() for each in wheel.parent.iterdir()} == {"a.whl": "edited"}
    assert not list(tmp_path.glob("aileron/caches/*/*.partial*"))


def test_a_large_one_begins_empty(
    tmp_path: Path, cached_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(caches, "_COPY_BYTES", 3)
    found, said = prepared(tmp_path, cached_home)
    assert list(found[".cache/uv"].iterdir()) == []
    assert f"{cached_home}/.cache/uv contains more than" in said[0]


def test_no_link_is_followed(tmp_path: Path, cached_home: Path) -> None:
    """An agent that was not contained could have put it there, in place of a cache or in one."""
    (tmp_path / "keys").mkdir()
    (tmp_path / "keys" / "id").write_text("secret")
    (cached_home / ".cache" / "pip").symlink_to(tmp_path / "keys")
    (cached_home / ".cache" / "uv" / "keys").symlink_to(tmp_path / "keys")
    found, said = prepared(tmp_path, cached_home)
    assert list(found[".cache/pip"].iterdir()) == []
    assert (found[".cache/uv"] / "keys").is_symlink()
    assert any(f"{cached_home}/.cache/pip was not copied (Too many levels" in each for each in said)
