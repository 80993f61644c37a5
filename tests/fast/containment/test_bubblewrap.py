"""What the sandbox's command line mounts, for projects and programs in unusual places; who cannot be contained."""

import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from aileron_core.containment import bubblewrap
from aileron_core.containment.bubblewrap import SandboxSpec, bwrap_argv, sandbox_mounts
from aileron_core.containment.git.repository import find_repository, object_folders
from aileron_core.containment.mounts import Mount
from aileron_core.containment.programs import find_program, mount_roots, own_code_folders
from aileron_core.containment.protected_paths import ProtectedPaths
from aileron_core.containment.support import is_root_outside
from aileron_core.errors import Forbidden, NotFound
from aileron_tui.cli.dry_run import mount_table
from tests.support.making import program

GIT = ("git", "-c", "user.name=a", "-c", "user.email=a@b", "-c", "protocol.file.allow=always")


def git_in(where: Path, *words: str) -> None:
    subprocess.run([*GIT, "-C", str(where), *words], check=True, capture_output=True)


def repository_at(path: Path) -> Path:
    git_in(path.parent, "init", "-q", str(path))
    git_in(path, "commit", "-q", "--allow-empty", "-m", "first")
    return path


def spec_of(project: Path, **more: Any) -> SandboxSpec:
    folder = project.parent
    given: dict[str, Any] = {"bwrap": "bwrap", "project": project, "home": folder / "home"}
    given |= {"private_home": folder / "own", "launch_dir": folder / "private", "socket": None}
    return SandboxSpec(**given | more)


def mounts(project: Path) -> list[tuple[str, str]]:
    """Return (how, what) of each mount for *project*, in order."""
    argv = bwrap_argv(spec_of(project), ["agent"])
    return [(how, argv[at + 2]) for at, how in enumerate(argv) if how in ("--bind", "--ro-bind")]


def test_the_table_of_a_dry_run_is_what_bubblewrap_gets(project: Path) -> None:
    """One list: nothing is mounted that the table does not show, and a folder comes before what is in it."""
    inner = Mount(path=Path("/opt/tool/bin"), how="hidden", why="b")
    outer = Mount(path=Path("/opt/tool"), how="read-only", why="a")
    spec = spec_of(project, socket=project.parent / "s.sock", mounts=(inner, outer))
    listed = sandbox_mounts(spec)
    argv = bwrap_argv(spec, ["agent"])
    flags = {"--ro-bind": 2, "--bind": 2, "--symlink": 2, "--tmpfs": 1, "--proc": 1, "--dev": 1}
    mounted = [argv[at + flags[word]] for at, word in enumerate(argv) if word in flags]
    assert mounted == [str(each.path) for each in listed]
    assert listed.index(outer) < listed.index(inner)
    table = "\n".join(mount_table(listed, spec.home))
    assert all(str(each.path) in table for each in listed if each.path != spec.home)
    assert "\n~ " in table


@pytest.mark.parametrize("offline", [False, True])
def test_a_sandbox_with_a_network_of_its_own_has_no_resolvers_socket(
    offline: bool, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """systemd-resolved answers over a socket, whose network is not the sandbox's."""
    monkeypatch.setattr(bubblewrap, "_RESOLVED", tmp_path)
    given = project.parent / "resolv.conf" if offline else None
    listed = sandbox_mounts(spec_of(project, offline=offline, resolv_conf=given))
    assert any(each.path == tmp_path for each in listed) != offline
    assert any(each.source == given for each in listed if given is not None) == offline


def test_the_resolvers_settings_are_mounted_where_links_lead_out_of_etc(tmp_path: Path) -> None:
    """Nothing can be mounted over a link; in the sandbox it leads to what is mounted at its end."""
    etc, run = tmp_path / "etc", tmp_path / "run"
    etc.mkdir()
    (etc / "resolv.conf").symlink_to("other.conf")
    (etc / "other.conf").symlink_to("../run/stub-resolv.conf")
    assert bubblewrap.resolv_conf_path(etc) == run / "stub-resolv.conf"
    (etc / "other.conf").unlink()
    (etc / "other.conf").touch()
    assert bubblewrap.resolv_conf_path(etc) == etc / "other.conf"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A worktree, on a path with a blank and letters beyond ASCII, of a repository beside it."""
    main, tree = repository_at(tmp_path / "main"), tmp_path / "wörk tree"
    git_in(main, "worktree", "add", "-q", "-b", "side", str(tree))
    return tree


def test_without_a_stand_in_the_repository_is_read_only(tree: Path) -> None:
    """Whoever makes a sandbox and forgets about git leaves nothing open."""
    main = tree.parent / "main"
    assert ("--ro-bind", str(tree / ".git")) in mounts(tree)
    assert ("--ro-bind", str(main / ".git")) in mounts(main)
    assert ("--bind", str(main / ".git")) not in mounts(main)


def test_a_submodules_repository_is_found_above_it(tmp_path: Path) -> None:
    """In the one above, also where that is an additional work tree or the path has slashes."""
    other, main = repository_at(tmp_path / "other"), repository_at(tmp_path / "main")
    tree = tmp_path / "tree"
    git_in(main, "submodule", "add", "-q", str(other), "a/part")
    git_in(main, "commit", "-qm", "part")
    git_in(main, "worktree", "add", "-q", str(tree))
    git_in(tree, "submodule", "update", "-q", "--init")
    found = find_repository(main / "a" / "part")
    assert found.git_dir == found.common_dir == main / ".git" / "modules" / "a" / "part"
    found = find_repository(tree / "a" / "part")
    assert found.git_dir == main / ".git" / "worktrees" / "tree" / "modules" / "a" / "part"


def test_a_git_file_shows_no_folder_that_does_not_name_it_back(tree: Path, project: Path) -> None:
    """The file is the project's word: any folder of the person's could stand in it."""
    real = (tree / ".git").read_bytes()
    main = tree.parent / "main" / ".git"
    found = find_repository(tree)
    assert (found and found.common_dir) == main
    for text in (real, f"gitdir: {main}\n".encode(), b"gitdir: /etc\n", b"\xff" * 100):
        (project / ".git").write_bytes(text)
        assert find_repository(project) is None


@pytest.mark.parametrize("at", [".git", "planted/config", "planted/gitdir", "planted/commondir"])
def test_a_nul_in_a_planted_path_ends_nothing(project: Path, at: str) -> None:
    """No path can have one: asking where it leads raised an error that ended the launch."""
    program(project / "planted" / "HEAD")
    (project / ".git").write_text("gitdir: planted\n")
    if at in ("planted/gitdir", "planted/commondir"):
        (project / "planted" / "gitdir").write_text(f"{project}/.git\n")
        (project / "planted" / "commondir").write_text("../..\n")
    (project / at).write_text("gitdir: a\0b\nworktree = a\0b\n")
    assert find_repository(project) is None


def test_a_nul_among_the_alternates_names_no_folder(tmp_path: Path) -> None:
    program(tmp_path / "objects" / "info" / "alternates", "/a\0b/objects\n")
    assert object_folders(tmp_path) == [tmp_path / "objects"]


def test_a_planted_config_is_read_in_no_time(project: Path) -> None:
    """Of 64 KiB of empty lines each was searched to the end: that took a minute."""
    (project / ".git").write_text("gitdir: planted\n")
    program(project / "planted" / "HEAD")
    (project / "planted" / "config").write_text("\n" * 65536 + f"worktree =\t{project} \r\n")
    began = time.process_time()
    assert find_repository(project) is None
    assert time.process_time() - began < 2


def test_what_a_protected_link_leads_to_is_protected(project: Path) -> None:
    """`.envrc` may be a link into the project; behind it lies what the person's shell runs."""
    program(project / "env" / "dev", "export A=1")
    (project / ".envrc").symlink_to("env/dev")
    (project / ".vscode").symlink_to("/etc")
    found = mounts(project)
    assert ("--ro-bind", str(project / "env" / "dev")) in found
    assert [what for _, what in found if what == "/etc"] == ["/etc"]


def test_a_link_that_was_replaced_is_put_back_and_reported(project: Path, tmp_path: Path) -> None:
    """Nothing can be mounted over a link, so it is compared."""
    (project / "env").write_text("export A=1")
    (project / ".envrc").symlink_to("env")
    protected = ProtectedPaths.capture(project)
    assert protected.restore(tmp_path / "aside").notices == ()
    (project / ".envrc").unlink()
    (project / ".envrc").write_text("evil")
    (notice,) = protected.restore(tmp_path / "aside").notices
    assert notice.startswith(".envrc was a link and has been replaced")
    assert str((project / ".envrc").readlink()) == "env"
    assert (tmp_path / "aside" / ".envrc").read_text() == "evil"


def test_a_checkout_of_aileron_is_read_only_to_its_agent() -> None:
    """A project that holds Aileron's own code does not hand the agent the console."""
    root = Path(__file__).resolve().parents[3]
    for path in own_code_folders():
        if path.is_relative_to(root):
            assert ("--ro-bind", str(path)) in mounts(root)
    assert ("--ro-bind", str(root / "aileron_core")) in mounts(root)


def test_an_agent_of_nvm_brings_its_packages_and_its_node(tmp_path: Path) -> None:
    """`~/.nvm/versions/node/<v>`: the packages, and the installation of the interpreter."""
    node = tmp_path / ".nvm" / "versions" / "node" / "v22.1.0"
    program(node / "bin" / "node")
    packages = node / "lib" / "node_modules"
    real = program(packages / "@openai" / "codex" / "bin" / "codex.js", "#!/usr/bin/env node\n")
    (node / "bin" / "codex").symlink_to(real)
    found = mount_roots(node / "bin" / "codex", str(node / "bin"), home=tmp_path, excluded=())
    assert set(found) == {node, packages}


def test_of_dot_local_the_program_alone_is_shown(tmp_path: Path) -> None:
    """`~/.local` holds keyrings and other programs' data beside `bin` and `lib`."""
    (tmp_path / ".local" / "lib").mkdir(parents=True)
    (tmp_path / ".local" / "share" / "keyrings").mkdir(parents=True)
    codex = program(tmp_path / ".local" / "bin" / "codex")
    script = program(tmp_path / ".local" / "bin" / "pi", "#!/usr/bin/env node\n")
    node = program(tmp_path / ".local" / "bin" / "node")
    path = str(codex.parent)
    assert mount_roots(codex, path, home=tmp_path, excluded=()) == (codex,)
    assert set(mount_roots(script, path, home=tmp_path, excluded=())) == {script, node}


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("#!/usr/bin/env nosuch-node\n", "nosuch-node is not on PATH"),
        ("#!{home}/nowhere/python\n", "which does not exist"),
        ("#!{home}/venv/bin/python -u\n", "is not in the sandbox under that name"),
        ("#!/usr/bin/env -S linked --flag\n", "is not in the sandbox under that name"),
        ("#!/usr/bin/env shimmed\n", "version manager's shim"),
        ("#!/usr/bin/env projects\n", "projects is not on PATH"),
    ],
)
def test_a_script_whose_interpreter_is_not_in_the_sandbox_is_reported(
    project: Path, tmp_path: Path, script: str, said: str
) -> None:
    """At the launch, with what to do; not as "No such file or directory" out of the sandbox."""
    home = tmp_path / "home"
    program(home / "venv" / "bin" / "real")
    (home / "venv" / "bin" / "python").symlink_to("/usr/bin/env")
    real = program(tmp_path / "opt" / "bin" / "real-22")
    shims, bin_ = program(home / ".pyenv" / "shims" / "shimmed").parent, home / "bin"
    codex = program(bin_ / "codex", script.format(home=home))
    (bin_ / "linked").symlink_to(real)
    inside = program(project / "bin" / "projects").parent
    path = f"{inside}:{bin_}:{shims}:/usr/bin:/bin"
    with pytest.raises(NotFound, match=said):
        mount_roots(codex, path, home=home, excluded=(project,))


def test_a_home_by_another_name_is_still_the_home(tmp_path: Path) -> None:
    """HOME may be a link; a program whose folder is the real one would show all of it."""
    real = tmp_path / "real"
    (real / "lib").mkdir(parents=True)
    codex = program(real / "bin" / "codex")
    link = tmp_path / "link"
    link.symlink_to(real)
    with pytest.raises(Forbidden, match="would have to show the agent"):
        mount_roots(codex, str(codex.parent), home=link, excluded=())


def test_a_program_of_the_project_is_never_the_agent(project: Path) -> None:
    inside = program(project / "bin" / "codex")
    outside = project.parent / "bin"
    outside.mkdir()
    (outside / "codex").symlink_to(inside)
    for path in (str(inside.parent), str(outside), ".", ""):
        with pytest.raises(Exception, match="not installed outside the project"):
            find_program("codex", path, project)


INITIAL = "         0          0 4294967295\n"


@pytest.mark.parametrize(
    ("euid", "uid_map", "root"),
    [
        (0, INITIAL, True),
        (1000, INITIAL, False),
        (1000, "      1000          0          1\n", True),  # unshare --map-user=1000, by root
        (0, "         0       1000          1\n", False),  # root of a container of an ordinary user
        (1, "         0       1000          1\n         1     100000      65536\n", False),
        (7, "         0       1000          1\n", False),
        (0, "", True),
        (1000, "", False),
    ],
)
def test_root_is_who_root_is_outside(euid: int, uid_map: str, root: bool) -> None:
    """Another number inside changes nothing, and neither does the number 0 inside."""
    assert is_root_outside(euid, uid_map) is root
