"""The tools that a person's shell finds, for the sandbox: toolchains in the home, by a table, and programs on PATH.

Everything is mounted read-only. Of a toolchain only the parts in the table are mounted, and of a
folder on PATH only its programs, each with what it is known to need: other folders of the home
hold credentials beside the tools. Pure, except that it looks at paths.
"""

import os
import re
import stat
import tomllib
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from aileron_core.containment.mounts import Mount
from aileron_core.containment.programs import SYSTEM_FOLDERS, script_interpreter
from aileron_core.errors import Forbidden, NotFound


@dataclass(frozen=True, slots=True, kw_only=True)
class Toolchain:
    """A tool that keeps programs in a folder of its own."""

    name: str
    variable: str
    """The environment variable that moves the folder."""
    folder: str
    """Its usual place, relative to the home; what begins with `.local/share` moves with XDG_DATA_HOME."""
    parts: tuple[str, ...]
    """What of it is mounted, as patterns; everything else is left out."""


TOOLCHAINS = (
    Toolchain(name="nvm", variable="NVM_DIR", folder=".nvm",
              parts=("versions", "alias", "nvm.sh", "nvm-exec")),
    Toolchain(name="pyenv", variable="PYENV_ROOT", folder=".pyenv",
              parts=("versions", "version", "shims", "bin", "libexec", "pyenv.d", "plugins", "completions")),
    Toolchain(name="mise", variable="MISE_DATA_DIR", folder=".local/share/mise",
              parts=("installs", "shims", "plugins")),
    Toolchain(name="asdf", variable="ASDF_DATA_DIR", folder=".asdf",
              parts=("installs", "shims", "plugins", "bin", "lib", "libexec", "asdf.sh", "completions")),
    Toolchain(name="rustup", variable="RUSTUP_HOME", folder=".rustup", parts=("toolchains", "settings.toml")),
    Toolchain(name="Go", variable="", folder="sdk", parts=("go1.*",)),
    Toolchain(name="uv", variable="UV_PYTHON_INSTALL_DIR", folder=".local/share/uv/python",
              parts=("cpython-*", "pypy-*", "graalpy-*")),
)  # fmt: skip
"""docs/launch.md#tools"""

_CHOICES = frozenset(("PYENV_VERSION", "RUSTUP_TOOLCHAIN", "GOTOOLCHAIN", "UV_PYTHON"))
"""Variables by which a person chooses among the versions of a toolchain."""
_LOCATIONS = frozenset(("VIRTUAL_ENV", "GOROOT", "JAVA_HOME"))
"""Variables that name the folder of a tool; passed on if it is in the sandbox."""
_WORD = re.compile(r"[A-Za-z0-9_.:/@+ -]{1,128}")
_MAX_PROGRAMS = 600
"""More programs of PATH folders than this are left out: each is a mount, and thousands break bubblewrap."""
_SNAP = Path("/snap")
_SHARED = (".local/share", ".config", ".cargo/bin", "go/bin")
"""Folders of the home beside tools and credentials: whatever contains one of them is not mounted as a whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools:
    """What the sandbox gets of the person's tools."""

    mounts: tuple[Mount, ...] = ()
    path: tuple[str, ...] = ()
    """The folders of PATH that are in the sandbox, in the person's order."""
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    files: Mapping[str, str] = field(default_factory=dict[str, str])
    """Relative path -> text, written into the private home."""
    left_out: tuple[str, ...] = ()
    """Why a toolchain, or a folder or program of PATH, is not in the sandbox, a clause each, not yet escaped."""


def find_tools(
    env: Mapping[str, str],
    home: Path,
    project: Path | None,
    *,
    excluded: Iterable[Path],
    mounted: Iterable[Path] = (),
) -> Tools:
    """Return what the person's shell finds, as far as the sandbox can have it.

    Args:
        env: the person's environment: PATH, and the variables that move toolchains.
        project: None where there is none.
        excluded: folders that no mount may contain or be in (Aileron's home).
        mounted: what the sandbox has anyway, read-only.
    """
    search = _Search(home, project, tuple(excluded), tuple(mounted))
    moved: dict[str, str] = {}
    files: dict[str, str] = {}
    for toolchain in TOOLCHAINS:
        usual = home / toolchain.folder
        folder = _folder(toolchain, env, home)
        found: list[Path] = []
        with search.leaving_out(f"{toolchain.name}'s toolchains in {folder}"):
            os.scandir(folder).close()
            found = [part for pattern in toolchain.parts for part in sorted(folder.glob(pattern))]
        for part in found:
            search.add(part, f"{toolchain.name}'s toolchains")
        if not found:
            continue
        if folder != usual:
            moved[toolchain.variable] = str(folder)
        if toolchain.name == "mise" and project is not None:
            moved["MISE_TRUSTED_CONFIG_PATHS"] = str(project)
            if text := _mise_tools(home / ".config" / "mise" / "config.toml"):
                files[".config/mise/config.toml"] = text
        if toolchain.name == "asdf":
            search.add(home / ".tool-versions", "asdf's versions")
    for name in dict.fromkeys(env.get("PATH", os.defpath).split(os.pathsep)):
        if Path(name).is_absolute():
            with search.leaving_out(name):
                os.scandir(name).close()
                search.add_folder(Path(name))
    chosen = {name: env[name] for name in _CHOICES if _WORD.fullmatch(env.get(name, ""))}
    for name in _LOCATIONS & env.keys():
        if Path(env[name]).is_absolute() and search.is_visible(Path(env[name])):
            chosen[name] = env[name]
    return Tools(
        mounts=tuple(search.mounts.values()),
        path=tuple(search.path),
        env={**moved, **chosen},
        files=files,
        left_out=tuple(search.left_out),
    )


def program_mounts(program: Path, home: Path, *, excluded: Iterable[Path]) -> tuple[Mount, ...]:
    """Return what the sandbox needs of *program*, which may be a link, besides the system's programs.

    Args:
        excluded: as of `find_tools`.

    Raises:
        NotFound: it does not exist.
        Forbidden: it would show more than it is for, or cannot be looked at.
    """
    if not program.exists():
        raise NotFound(f"The program {program} does not exist. Install it.")
    search = _Search(home, None, tuple(excluded), ())
    with search.leaving_out(str(program)):
        search.add_needs(program)
        search.add_program(program)
    if search.left_out:
        raise Forbidden(f"A sandbox cannot have {search.left_out[0]}. Install that somewhere else.")
    return tuple(search.mounts.values())


def _folder(toolchain: Toolchain, env: Mapping[str, str], home: Path) -> Path:
    """Return the folder of *toolchain*, where the person's variables have it."""
    if given := env.get(toolchain.variable, ""):
        return Path(given) if Path(given).is_absolute() else home / toolchain.folder
    data = Path(env.get("XDG_DATA_HOME", ""))
    below = Path(toolchain.folder)
    if data.is_absolute() and below.is_relative_to(".local/share"):
        return data / below.relative_to(".local/share")
    return home / below


def _mise_tools(path: Path) -> str:
    """Return the versions that the person's settings of mise choose; its other tables may hold secrets."""
    try:
        tools: Any = tomllib.loads(path.read_text("utf-8")).get("tools", {})
    except (OSError, ValueError, RecursionError):
        return ""
    lines = ["[tools]"]
    for name, value in cast("dict[str, Any]", tools).items() if isinstance(tools, dict) else ():
        version: Any = (
            cast("dict[str, Any]", value).get("version") if isinstance(value, dict) else value
        )
        versions: list[Any] = cast("list[Any]", version) if isinstance(version, list) else [version]
        words = [str(each) for each in versions]
        if all(map(_WORD.fullmatch, (name, *words))):
            quoted = ", ".join(f'"{word}"' for word in words)
            lines.append(f'"{name}" = [{quoted}]')
    return "\n".join(lines) + "\n" if len(lines) > 1 else ""


class _Search:
    """The mounts that were found so far, by their paths."""

    def __init__(
        self, home: Path, project: Path | None, excluded: Sequence[Path], mounted: Sequence[Path]
    ) -> None:
        self._home = home
        self._project = () if project is None else (project.resolve(),)
        self._around = (*SYSTEM_FOLDERS, *self._project, *mounted)
        self._excluded = tuple(each.resolve() for each in excluded)
        shared = (home.resolve() / name for name in _SHARED)
        self._kept_apart = (home.resolve(), *shared, *self._project, *self._excluded)
        self.mounts: dict[Path, Mount] = {}
        self.path: list[str] = []
        self.left_out: list[str] = []
        self._programs = 0

    @contextmanager
    def leaving_out(self, what: str) -> Generator[None]:
        """Leave *what* out where it, or what it needs, cannot be looked at; say why, unless there is nothing."""
        before = self.mounts.copy()
        try:
            yield
        except FileNotFoundError:
            self.mounts = before
        except (OSError, RuntimeError) as error:  # RuntimeError: a loop of links
            self.mounts = before
            reason = error.strerror if isinstance(error, OSError) else "a loop of links"
            self.left_out.append(f"{what} ({reason})")

    def is_visible(self, path: Path) -> bool:
        """Return whether *path*, or something in it, is in the sandbox."""
        return self._is_covered(path) or any(
            each.is_relative_to(path) for each in (*self._around, *self.mounts)
        )

    def _is_covered(self, path: Path) -> bool:
        return any(path.is_relative_to(each) for each in self._around) or any(
            each in self.mounts for each in (path, *path.parents)
        )

    def add(self, path: Path, why: str) -> bool:
        """Mount *path* read-only where it is; return False if that would show more than it is for."""
        try:
            real = path.resolve(strict=True)
        except (OSError, RuntimeError):  # RuntimeError: a loop of links
            return False
        if any(kept.is_relative_to(real) for kept in self._kept_apart):
            return False
        if any(real.is_relative_to(kept) for kept in (*self._project, *self._excluded)):
            return False
        if not self._is_covered(path):
            source = None if real == path else real
            # A link that was found first is in there; bubblewrap could not make it once more.
            for each in [link for link in self.mounts if link.is_relative_to(path)]:
                if self.mounts[each].how == "link":
                    del self.mounts[each]
            self.mounts[path] = Mount(path=path, how="read-only", why=why, source=source)
        return True

    def add_folder(self, folder: Path) -> None:
        """Mount the programs of *folder*, a folder of PATH."""
        real = folder.resolve()
        if any(real.is_relative_to(kept) for kept in self._excluded):
            return
        if self._is_covered(folder):
            self.path.append(str(folder))
            return
        if self._is_covered(real):
            self.path.append(str(real))
            return
        if real.is_relative_to(_SNAP):
            self.left_out.append(f"{folder} (snaps are started by a service outside the sandbox)")
            return
        whole = _installation(real / "python3") or (real.parent if _is_of_system(real) else None)
        if whole is not None and self.add(whole, "an installation on PATH"):
            self.path.append(str(real))
            return
        names = sorted(entry.name for entry in os.scandir(folder) if _is_program(entry))
        self._programs += len(names)
        if self._programs > _MAX_PROGRAMS:
            self.left_out.append(f"{folder} ({len(names)} programs, more than fit)")
            return
        before = len(self.mounts)
        for name in names:
            with self.leaving_out(f"{folder / name}"):
                self.add_program(folder / name)
        if names and (len(self.mounts) > before or self.is_visible(folder)):
            self.path.append(str(folder))

    def add_program(self, program: Path) -> None:
        """Mount one program, the links to it, and what it is known to need."""
        path = program
        for _ in range(16):
            if not path.is_symlink() or self._is_covered(path):
                break
            target = Path(os.path.normpath(path.parent.resolve() / path.readlink()))
            self.mounts[path] = Mount(path=path, how="link", why="on PATH", source=target)
            path = target
        if self._is_covered(path):
            return
        self.add_needs(path)
        if not self._is_covered(path) and not self.add(path, "on PATH"):
            self.mounts.pop(program, None)
            self.left_out.append(f"{program} (it is in {path})")

    def add_needs(self, program: Path) -> None:
        """Mount what *program* is known to need besides its own file."""
        for needed, why in self._needs(program):
            self.add(needed, why)

    def _needs(self, program: Path) -> Iterator[tuple[Path, str]]:
        """Yield the folders that *program* is known to need besides its own file."""
        packages = [each for each in program.parents if each.name == "node_modules"]
        if packages:
            yield packages[-1], "packages of programs on PATH"
        elif (whole := _installation(program)) is not None:
            yield whole, f"what {program.name} needs"
        try:
            asked = script_interpreter(program)
        except OSError:  # it may be run and not read
            asked = ""
        if asked.startswith("/"):
            interpreter = Path(asked)
            if "python" in interpreter.name and program.parent == self._home / ".local/bin":
                yield from (
                    (each, "packages of `pip install --user`")
                    for each in self._home.glob(".local/lib/python3*/site-packages")
                )
            if (whole := _installation(interpreter)) is not None:
                yield whole, f"what {program.name} needs"
            if not self._is_covered(interpreter):
                self.add_program(interpreter)
        for each in _bases(program):
            yield each, f"the Python of {program.name}"


def _installation(program: Path) -> Path | None:
    """Return the folder of the virtual environment or installation that *program*, in its `bin`, belongs to."""
    prefix = program.parent.parent
    if program.parent.name != "bin":
        return None
    marks = (
        "pyvenv.cfg",
        "lib/python3*/os.py",
        "src/runtime/runtime.go",
        "lib/modules",
        "lib/node_modules/npm",
    )
    return prefix if any(next(prefix.glob(mark), None) is not None for mark in marks) else None


def _bases(program: Path) -> Iterator[Path]:
    """Yield the installation that the virtual environment of *program* was made from."""
    if program.parent.name == "bin" and (program.parent.parent / "pyvenv.cfg").is_file():
        python = (program.parent / "python").resolve()
        if (base := _installation(python)) is not None:
            yield base


def _is_of_system(folder: Path) -> bool:
    """Return whether *folder* is the `bin` of software that only root can change: `/opt/NAME/bin`."""
    prefix = folder.parent
    if folder.name != "bin" or len(prefix.parts) < 3 or not (prefix / "lib").is_dir():
        return False
    for each in (folder, prefix):
        status = each.stat()
        if status.st_uid != 0 or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            return False
    return os.getuid() != 0


def _is_program(entry: "os.DirEntry[str]") -> bool:
    try:
        return entry.is_file() and os.access(entry.path, os.X_OK)
    except OSError:
        return False
