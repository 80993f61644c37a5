"""Which paths a sandbox may have beside the project, and which are refused with a reason."""

import contextlib
import os
import re
import socket
from dataclasses import replace
from pathlib import Path

import pytest

import aileron_core
from aileron_core.containment.mounts import Mount
from aileron_core.containment.paths import CheckedPaths, PathChecker
from aileron_core.errors import Forbidden, NotFound
from aileron_core.settings import LaunchPaths
from tests.support.making import program


@pytest.fixture
def checker(tmp_path: Path) -> PathChecker:
    home, project = tmp_path / "person", tmp_path / "person" / "work" / "project"
    for each in (home / ".aileron", home / "notes", home / "scratch", project, tmp_path / "data"):
        each.mkdir(parents=True)
    for name in (".aileron/aileron.db", ".ssh/id", ".aws/credentials", ".config/gh/hosts.yml", ".config/app/settings",
                 ".cache/uv/wheel", "bin/mine", "apps/tool/run", "go/bin/x", "dotfiles/bashrc",
                 "rc/env.sh"):  # fmt: skip
        program(home / name)
    (home / ".bashrc").symlink_to("dotfiles/bashrc")
    program(home / ".profile", 'if true; then . "$HOME/rc/env.sh"; fi\n')
    program(home / "repo" / ".git" / "HEAD")
    run = home / "apps/tool/run"
    tool = Mount(path=home / "bin/mine", how="read-only", why="on PATH", source=run)
    env = {"PATH": f"{home}/bin:/usr/bin", "UV_CACHE_DIR": str(tmp_path / "uv-cache")}
    aileron = home / ".aileron"
    return PathChecker(home=home, project=project, aileron_home=aileron, env=env, tools=(tool,))


def typed_paths(checker: PathChecker, **paths: str) -> CheckedPaths:
    options = LaunchPaths(**{how: (path,) for how, path in paths.items()})
    return checker.check(LaunchPaths(), options, ())


def test_what_may_be_read_written_and_hidden(checker: PathChecker) -> None:
    """A folder of one's own, under the home or elsewhere; what the sandbox has anyway is no mount."""
    home, project = checker.home, checker.project
    program(project / ".env")
    program(project / "secrets" / "key")
    read = ("~/notes", "/usr/share", str(project), "~/gone")
    settings = LaunchPaths(read=read, write=("~/scratch",), hide=(".env", "~/nowhere"))
    found = checker.check(settings, LaunchPaths(read=("..",)), ("secrets", "secrets/key"))
    shown = [(home / "notes", "read-only"), (home / "work", "read-only")]
    hidden = [(project / ".env", "hidden"), (project / "secrets", "hidden")]
    assert [(each.path, each.how) for each in found.mounts] == shown + hidden
    assert found.writable == (home / "scratch",)


REFUSED = (
    ("read", "~", "contains your home folder"),
    ("read", "~/.aileron/aileron.db", "Aileron's home"),
    ("read", "~/.config", "where credentials are kept; name what you need"),
    ("read", "/run/user", "sockets and devices"),
    ("read", "/proc/1", "sockets and devices"),
    ("write", "~/.ssh", "credentials are kept there"),
    ("write", "~/.config/app", "hidden folders"),
    ("write", "~/bin", "is on PATH"),
    ("write", "~/apps", "is a program that you use"),
    ("write", "~/go", "is used by your own programs"),
    ("write", "~/dotfiles", "is read when you log in"),
    ("write", "~/rc/env.sh", "is read by"),
    ("write", "~/repo", "contains git repositories"),
    ("write", "~/repo/.git", "your own tools act on it"),
    ("write", "~/scratch/.vscode", "your own tools act on it"),
    ("write", "~/work", "contains the project"),
    ("write", "/usr/local/bin", "belongs to the system"),
    ("write", "{data}/../uv-cache/wheels", "is used outside (UV_CACHE_DIR)"),
    ("write", "{aileron}", "Aileron's own code"),
    ("read", "~/link/inner", "is behind a link"),
    ("read", "~/sockets", "is a socket"),
    ("read", "~/sockets/s", "neither a file nor a folder"),
    ("write", "~/linked", "has other names"),
    ("hide", ".", "a session needs it"),
    ("hide", ".git/config", "a session needs it"),
    ("hide", "~", "a session needs it"),
    ("hide", "/usr", "a session needs it"),
)


@pytest.mark.parametrize(("how", "path", "why"), REFUSED)
def test_what_is_refused_says_why(
    checker: PathChecker, tmp_path: Path, how: str, path: str, why: str
) -> None:
    """By the option and by the setting alike, and nothing is mounted."""
    home = checker.home
    (home / "link").symlink_to(tmp_path / "data")
    program(tmp_path / "data" / "inner")
    program(tmp_path / "uv-cache" / "wheels")
    program(checker.project / ".git" / "config")
    program(home / "scratch" / ".vscode" / "tasks.json")
    os.link(program(home / "notes" / "one"), home / "linked")
    (home / "sockets").mkdir()
    path = path.format(data=tmp_path / "data", aileron=Path(str(aileron_core.__file__)).parent)
    with socket.socket(socket.AF_UNIX) as listener, contextlib.chdir(home / "sockets"):
        listener.bind("s")  # the whole path may be too long for a socket
    with pytest.raises(Forbidden, match=re.escape(why)):
        typed_paths(checker, **{how: path})
    if path.startswith(("~/", "/")):
        with pytest.raises(Forbidden):
            checker.check(LaunchPaths(**{how: (path,)}), LaunchPaths(), ())


def test_a_server_may_have_what_is_protected_where_it_is_listed(checker: PathChecker) -> None:
    """It has no project. What runs or is obeyed outside, and credentials, stay refused."""
    server = replace(checker, project=None)
    home = server.home
    program(home / "scratch" / ".vscode" / "tasks.json")
    for name in ("work", "repo", "repo/.git", "scratch/.vscode", "scratch/.vscode/tasks.json"):
        server.refuse(home / name, home / name, "write")
    for name in ("bin", "dotfiles", ".config/app", ".ssh"):
        with pytest.raises(Forbidden, match="A server may not write"):
            server.refuse(home / name, home / name, "write")
    with pytest.raises(Forbidden, match=r"credentials are kept there\. "):
        server.refuse(home / ".ssh", home / ".ssh", "read")


def test_a_folder_of_credentials_is_read_only_where_typed_by_name(checker: PathChecker) -> None:
    """For one launch, and the launch says so; a line of config.toml would be forgotten."""
    found = typed_paths(checker, read="~/.aws")
    assert [each.path for each in found.mounts] == [checker.home / ".aws"]
    (notice,) = found.notices
    assert notice == f"The agent can read {checker.home}/.aws, where credentials are kept."
    with pytest.raises(Forbidden, match="--read on the command line allows it"):
        checker.check(LaunchPaths(read=("~/.aws/credentials",)), LaunchPaths(), ())


def test_a_path_that_is_missing_stops_the_launch_only_if_it_was_typed(checker: PathChecker) -> None:
    """A disk that is not connected does not stop every launch; it is said."""
    with pytest.raises(NotFound, match="does not exist"):
        typed_paths(checker, read="~/gone")
    (notice,) = checker.check(LaunchPaths(write=("~/gone",)), LaunchPaths(), ()).notices
    why = "does not exist, so it is not in the sandbox (`write` in config.toml)."
    assert notice == f"{checker.home}/gone {why}"


def test_a_home_that_is_a_link_is_the_home(checker: PathChecker, tmp_path: Path) -> None:
    """`/home/me` may lead to another disk: what is in it is mounted where the agent looks for it."""
    link = tmp_path / "linked-home"
    link.symlink_to(checker.home)
    moved = replace(checker, home=link, aileron_home=link / ".aileron", env={}, tools=())
    (mount,) = typed_paths(moved, read="~/notes").mounts
    assert (mount.path, mount.source) == (link / "notes", checker.home / "notes")
    with pytest.raises(Forbidden, match="Aileron's home"):
        typed_paths(moved, read=str(checker.home / ".aileron"))
