"""Which folders are no projects: those that would hand the agent more."""

import os
from pathlib import Path

import pytest

from aileron_core.errors import Forbidden
from aileron_core.launch.agents import AGENTS
from aileron_core.launch.project import check_project, refuse_agent_folder


def homes(tmp_path: Path) -> tuple[Path, Path]:
    home = tmp_path / "people" / "me"
    (home / ".aileron").mkdir(parents=True)
    return home, home / ".aileron"


def test_a_project_beside_or_below_the_home_is_one(tmp_path: Path) -> None:
    """Where people work."""
    home, own = homes(tmp_path)
    for project in (home / "src" / "a", tmp_path / "elsewhere", tmp_path / "people" / "you"):
        check_project(project, home, own)


@pytest.mark.parametrize("above", [".", "..", "../..", "/"])
def test_what_holds_the_home_is_refused(tmp_path: Path, above: str) -> None:
    """The home itself, or above it; Aileron's own folder may lie elsewhere."""
    home, _ = homes(tmp_path)
    project = Path(os.path.normpath(home / above))
    with pytest.raises(Forbidden, match="contains your home"):
        check_project(project, home, tmp_path / "aileron")


def test_a_home_by_another_name_is_held_too(tmp_path: Path) -> None:
    """HOME may be a link."""
    home, _ = homes(tmp_path)
    link = tmp_path / "link"
    link.symlink_to(home)
    with pytest.raises(Forbidden, match="contains your home"):
        check_project(tmp_path / "people", link, tmp_path / "aileron")


@pytest.mark.parametrize(
    ("project", "why"),
    [
        ("/tmp", "contains /tmp"), ("/var", "contains /var/tmp"), ("/run/user/1000", "a system folder"),
        ("/run", "contains /run"), ("/dev", "contains /dev/shm"), ("/proc/self", "a system folder"),
    ],
)  # fmt: skip
def test_folders_of_sockets_and_devices_are_refused(project: str, why: str) -> None:
    """tmux keeps its socket in /tmp, the session bus its own in /run: no sandbox could keep them out."""
    home = Path("/people/me")
    with pytest.raises(Forbidden, match=why):
        check_project(Path(project), home, home / ".aileron")
    check_project(Path("/run/media/me/stick/project"), home, home / ".aileron")


def test_aileron_stays_out(tmp_path: Path) -> None:
    """A project that holds its home, or lies in it."""
    home, own = homes(tmp_path)
    with pytest.raises(Forbidden, match="Aileron's own files"):
        check_project(home / "x", home, home / "x" / "aileron")
    with pytest.raises(Forbidden, match="inside Aileron's home"):
        check_project(own / "actions", home, own)


@pytest.mark.parametrize("project", [".claude", ".claude/skills/mine", ".config", ".config/goose"])
def test_no_sandbox_has_an_agents_own_folder_as_its_project(tmp_path: Path, project: str) -> None:
    """Hooks and servers that an agent writes there run outside any sandbox, also another agent's."""
    home, _ = homes(tmp_path)
    for name in (".claude/skills/mine", ".config/goose"):
        (home / name).mkdir(parents=True)
    with pytest.raises(Forbidden, match="could change what runs outside its sandbox"):
        refuse_agent_folder(home / project, home, AGENTS.values())
    for other in ("src/app", ".config/nvim", ".codex"):
        refuse_agent_folder(home / other, home, AGENTS.values())
