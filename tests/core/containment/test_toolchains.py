"""What the person's shell finds, run in a real sandbox: toolchains of the home, and programs on PATH."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from aileron_core.containment.bubblewrap import SandboxSpec, bwrap_argv
from aileron_core.containment.programs import find_program
from aileron_core.containment.toolchains import TOOLCHAINS, Tools, find_tools, program_mounts
from aileron_core.errors import Forbidden, NotFound
from tests.support.making import program
from tests.support.ordinary import as_ordinary, ordinary_folder

BWRAP = shutil.which("bwrap", path="/usr/bin:/bin")
SYSTEM = "/usr/local/bin:/usr/bin:/bin"


def put_file(path: Path, text: str = "secret\n") -> None:
    program(path, text, 0o644)


class Person:
    """A home with tools, and a project."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "person"
        self.project = folder / "project"
        self.aileron = self.home / ".aileron"
        self.folder = folder
        for each in (self.home, self.project, self.aileron, folder / "private"):
            each.mkdir()
        self.path: list[str] = []

    def tools(self, **env: str) -> Tools:
        path = os.pathsep.join([*self.path, SYSTEM])
        return find_tools({"PATH": path, **env}, self.home, self.project, excluded=(self.aileron,))

    def inside(self, tools: Tools, script: str) -> str:
        """Return what a shell script prints in the sandbox."""
        assert BWRAP is not None
        own = self.folder / "own"
        own.mkdir(exist_ok=True)
        for name, text in tools.files.items():
            put_file(own / name, text)
        spec = SandboxSpec(
            bwrap=BWRAP, project=self.project, home=self.home, private_home=own,
            launch_dir=self.folder / "private", socket=None, mounts=tools.mounts,
        )  # fmt: skip
        done = subprocess.run(
            bwrap_argv(spec, ["/bin/sh", "-c", script]),
            env={"HOME": str(self.home), "PATH": os.pathsep.join(tools.path), **tools.env},
            cwd="/", stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        return (done.stdout + done.stderr).strip()


@pytest.fixture
def owner(tmp_path: Path) -> Person:
    if BWRAP is None:
        pytest.skip("needs bubblewrap")
    return Person(tmp_path)


def test_toolchains_and_programs_run_and_what_lies_beside_does_not_exist(owner: Person) -> None:
    """By the table: the parts of each toolchain, and programs with what they need; no credential, no cache."""
    home = owner.home
    node = home / ".nvm/versions/node/v22.1.0/bin"
    program(node / "node", "#!/bin/sh\necho nvm-node\n")
    put_file(home / ".nvm/.cache/x")
    program(home / ".rustup/toolchains/stable/bin/cargo", "#!/bin/sh\necho real-cargo\n")
    chosen = '"$HOME/.rustup/toolchains/stable/bin/$(basename "$0")"'
    program(home / ".cargo/bin/rustup", f"#!/bin/sh\nexec {chosen}\n")
    (home / ".cargo/bin/cargo").symlink_to("rustup")
    put_file(home / ".cargo/credentials.toml")
    venv = home / ".local/share/uv/tools/demo"
    subprocess.run(["/usr/bin/python3", "-m", "venv", "--without-pip", venv], check=True)
    (site,) = venv.glob("lib/python3*/site-packages")
    put_file(site / "demo.py", "WORD = 'uv-tool'\n")
    program(venv / "bin/demo", f"#!{venv}/bin/python\nimport demo; print(demo.WORD)\n")
    (home / ".local/bin").mkdir(parents=True)
    (home / ".local/bin/demo").symlink_to(venv / "bin/demo")
    own = home / ".local/lib" / site.parent.name / "site-packages"
    put_file(own / "of_user.py", "WORD = 'pip-user'\n")
    of_user = "#!/usr/bin/python3\nimport of_user; print(of_user.WORD)\n"
    program(home / ".local/bin/of-user", of_user)
    put_file(home / ".local/share/keyrings/login.keyring")
    package = home / ".npm-global/lib/node_modules/tool"
    put_file(package / "word", "npm-package\n")
    program(package / "cli", '#!/bin/sh\ncat "$(dirname "$(readlink -f "$0")")/word"\n')
    (home / ".npm-global/bin").mkdir()
    (home / ".npm-global/bin/tool").symlink_to("../lib/node_modules/tool/cli")
    program(home / "bin/mine", "#!/bin/sh\necho mine\n")
    put_file(home / "bin/passwords.txt")
    program(owner.project / ".venv/bin/of-project", "#!/bin/sh\necho of-project\n")
    owner.path = [str(owner.project / ".venv/bin"), str(home / "bin"), str(node)]
    owner.path += [str(home / each) for each in (".local/bin", ".cargo/bin", ".npm-global/bin")]
    tools = owner.tools()
    assert tools.path == (*owner.path, *SYSTEM.split(":"))
    assert tools.left_out == ()
    names = "node cargo demo of-user tool mine of-project"
    printed = owner.inside(tools, f"for name in {names}; do $name; done")
    expected = "nvm-node real-cargo uv-tool pip-user npm-package mine of-project"
    assert " ".join(printed.split()) == expected
    said = owner.inside(tools, 'grep -rsl secret "$HOME"; echo >> "$(which mine)"')
    assert said.endswith("Read-only file system")


def test_a_shim_finds_the_versions_that_the_person_chose(owner: Person) -> None:
    """mise's settings choose versions and may hold secrets: only the versions are in the sandbox."""
    home = owner.home
    program(home / ".local/bin/mise", '#!/bin/sh\ncat "$HOME/.config/mise/config.toml"\n')
    (home / ".local/share/mise/installs/node/22/bin").mkdir(parents=True)
    (home / ".local/share/mise/shims").mkdir()
    (home / ".local/share/mise/shims/node").symlink_to(home / ".local/bin/mise")
    put_file(
        home / ".config/mise/config.toml",
        '[env]\nTOKEN = "secret"\n[tools]\nnode = "22"\npython = ["3.12", "3.11"]\n'
        'go = { version = "1.22", postinstall = "secret" }\n"odd\\"" = "1"\n',
    )
    owner.path = [str(home / ".local/share/mise/shims"), str(home / ".local/bin")]
    printed = owner.inside(owner.tools(), "node; echo $MISE_TRUSTED_CONFIG_PATHS")
    chosen = '[tools]\n"node" = ["22"]\n"python" = ["3.12", "3.11"]\n"go" = ["1.22"]\n'
    assert printed == f"{chosen}{owner.project}"


def test_a_variable_moves_a_toolchain_and_brings_in_nothing_else(owner: Person) -> None:
    """A project's `.envrc` can set these: a folder that is none of that tool's shows nothing."""
    elsewhere = owner.folder / "data"
    program(elsewhere / "cpython-3.12.1-linux/bin/python3.12", "#!/bin/sh\necho moved\n")
    program(owner.home / ".ssh/id_ed25519", "secret\n", 0o600)
    tools = owner.tools(UV_PYTHON_INSTALL_DIR=str(elsewhere))
    assert owner.inside(tools, '"$UV_PYTHON_INSTALL_DIR"/cpython-*/bin/python3.12') == "moved"
    owner.path = [str(owner.home / ".ssh"), str(owner.home)]
    secret = str(owner.home / ".ssh")
    names = ("UV_PYTHON_INSTALL_DIR", "NVM_DIR", "PYENV_ROOT", "MISE_DATA_DIR", "ASDF_DATA_DIR",
             "RUSTUP_HOME", "XDG_DATA_HOME", "VIRTUAL_ENV", "GOROOT")  # fmt: skip
    tools = owner.tools(**dict.fromkeys(names, secret))
    assert tools.mounts == ()
    assert dict(tools.env) == {}
    assert tools.path == tuple(SYSTEM.split(":"))


def test_no_folder_beside_credentials_is_mounted_as_a_whole(owner: Person) -> None:
    """An npm whose prefix is `~/.local` looks like an installation; so may the home itself."""
    home = owner.home
    put_file(home / ".local/lib/node_modules/npm/package.json")
    put_file(home / "lib/node_modules/npm/package.json")
    put_file(home / ".local/share/keyrings/login.keyring")
    one = program(home / ".local/bin/one", "#!/bin/sh\necho one\n")
    two = program(home / "bin/two", "#!/bin/sh\necho two\n")
    owner.path = [str(one.parent), str(two.parent)]
    tools = owner.tools()
    assert [each.path for each in tools.mounts] == [one, two]
    assert owner.inside(tools, "one; two") == "one\ntwo"


def test_nothing_comes_in_from_the_project_or_from_aileron(owner: Person) -> None:
    """By a link on PATH, say. What is left out is named, and so is a folder with too many programs."""
    key = program(owner.aileron / "vault.json", "secret\n")
    inside = program(owner.project / "evil", "#!/bin/sh\n")
    bin_ = owner.home / "bin"
    bin_.mkdir()
    (bin_ / "a").symlink_to(key)
    (bin_ / "b").symlink_to(inside)
    many = owner.home / "many"
    for number in range(601):
        program(many / f"p{number}", "")
    owner.path = [str(bin_), str(many), str(owner.aileron)]
    tools = owner.tools()
    too_many = f"{many} (601 programs, more than fit)"
    assert tools.left_out == (f"{bin_ / 'a'} (it is in {key})", too_many)
    (mount,) = tools.mounts
    assert mount.path == bin_ / "b"  # a link; the project has its target
    assert owner.inside(tools, f"ls {owner.aileron} {many}").count("No such file") == 2


def unreadable(kind: str, folder: Path) -> str:
    """Make *folder* one that nobody can look into; return the reason."""
    if kind == "a loop of links":
        folder.symlink_to(folder.name)
        return "Too many levels of symbolic links"
    if kind == "a file":
        put_file(folder)
        return "Not a directory"
    folder.mkdir()
    (folder if kind == "no right to read" else folder.parent).chmod(0)
    return "Permission denied"


UNREADABLE = ["no right to read", "in a folder without", "a loop of links", "a file"]


@pytest.mark.parametrize(
    ("variable", "kind"),
    [
        *((each.variable, UNREADABLE[0]) for each in TOOLCHAINS if each.variable),
        *(("PYENV_ROOT", kind) for kind in UNREADABLE[1:]),
        *((each, kind) for each in ("PATH", "XDG_DATA_HOME") for kind in UNREADABLE),
    ],
)
def test_a_folder_that_cannot_be_looked_at_is_left_out_and_said(variable: str, kind: str) -> None:
    """A launch stopped at a `PYENV_ROOT` in the home of another user."""

    def look() -> None:
        person = Person(folder)
        (folder / "another").mkdir()
        given = folder / "another/tools"
        person.path = [str(given)] if variable == "PATH" else []
        reason = unreadable(kind, given)
        tools = person.tools(**({} if variable == "PATH" else {variable: str(given)}))
        # The agent's program is looked for there, too.
        assert find_program("sh", os.pathsep.join([*person.path, SYSTEM]), person.project)
        assert tools.left_out
        for sentence in tools.left_out:
            assert str(given) in sentence
            assert sentence.endswith(f"({reason})")
        assert tools.mounts == ()
        assert tools.path == tuple(SYSTEM.split(":"))

    with ordinary_folder() as folder:
        as_ordinary(look)


def test_one_program_has_what_it_needs_and_nothing_beside_it(owner: Person) -> None:
    """A virtual environment's Python, a version manager's Node and a script, as an MCP server is started."""
    home = owner.home
    venv = home / "venv"
    subprocess.run(["/usr/bin/python3", "-m", "venv", "--without-pip", venv], check=True)
    (site,) = venv.glob("lib/python3*/site-packages")
    put_file(site / "demo.py", "WORD = 'of-venv'\n")
    node = program(home / ".nvm/versions/node/v22/bin/node", "#!/bin/sh\ncat $0/../../lib/word\n")
    put_file(home / ".nvm/versions/node/v22/lib/node_modules/npm/x")
    put_file(home / ".nvm/versions/node/v22/lib/word", "of-node")
    put_file(home / ".nvm/.cache/x")
    alone = program(home / "bin/alone", "#!/bin/sh\necho alone\n")
    put_file(home / "bin/passwords.txt")
    (home / "link").symlink_to(alone)
    for asked, script, word in (
        (venv / "bin/python", f"{venv}/bin/python -c 'import demo; print(demo.WORD)'", "of-venv"),
        (node, f"cat {node.parents[1]}/lib/word", "of-node"),
        (home / "link", str(home / "link"), "alone"),
        (Path("/usr/bin/env"), "/usr/bin/env echo system", "system"),
    ):
        found = program_mounts(asked, home, excluded=(owner.aileron,))
        tools = Tools(mounts=found, path=("/usr/bin",))
        script += '; grep -rsl ^secret "$HOME/bin" "$HOME/.nvm/.cache"'
        assert owner.inside(tools, script) == word
    with pytest.raises(NotFound, match="does not exist"):
        program_mounts(home / "gone", home, excluded=(owner.aileron,))
    own = program(owner.aileron / "bin/own", "#!/bin/sh\n")
    with pytest.raises(Forbidden, match="cannot have"):
        program_mounts(own, home, excluded=(owner.aileron,))
