"""Finding an agent's program on PATH, never in the project, and what it needs mounted in the sandbox to run."""

import importlib.util
import os
import shutil
import sys
from pathlib import Path

from aileron_core.errors import Forbidden, NotFound

SYSTEM_FOLDERS = tuple(map(Path, ("/usr", "/bin", "/lib", "/lib64", "/sbin", "/etc")))
OR_WITHOUT = " Or launch with --no-sandbox."
"""Ends what a launch is told where it cannot be contained; nothing else can go without a sandbox."""
_SHEBANG = 256
_PACKAGES = ("aileron_core", "aileron_mcp", "aileron_tui")


def find_program(name: str, path: str, project: Path) -> Path:
    """Return the path of the program *name* found on the search path *path*, never one inside *project*.

    Raises:
        NotFound: there is none outside the project.
    """
    folders = [
        folder
        for folder in path.split(os.pathsep)
        if folder and Path(folder).is_absolute() and not _inside(Path(folder), project)
    ]
    program = shutil.which(name, path=os.pathsep.join(folders)) if folders else None
    if program is None or _inside(Path(program).resolve(), project):
        raise NotFound(
            f"{name} is not installed outside the project {project}. Aileron does not run an "
            "agent that is installed in its own project."
        )
    return Path(program)


def _inside(path: Path, folder: Path) -> bool:
    # Not `Path.resolve`, which raises at a loop of links: PATH may name one.
    return path == folder or Path(os.path.realpath(path)).is_relative_to(folder.resolve())


def own_interpreter() -> Path:
    """Return the Python interpreter of this process, with virtual environments resolved."""
    return Path(getattr(sys, "_base_executable", sys.executable)).resolve()


def own_code_folders() -> tuple[Path, ...]:
    """Return the folders of the code of this process, which no agent may write to."""
    specs = [importlib.util.find_spec(name) for name in _PACKAGES]
    packages = [Path(spec.origin).parent for spec in specs if spec is not None and spec.origin]
    folders = [Path(sys.prefix), Path(sys.base_prefix), *packages]
    return tuple(sorted({folder.resolve() for folder in folders}))


def mount_roots(
    program: Path, path: str, *, home: Path, excluded: tuple[Path, ...]
) -> tuple[Path, ...]:
    """Return what has to be mounted read-only so that *program* runs, without the system's own programs.

    Args:
        program: as found on the search path.
        path: the search path, for the interpreter that a script names.
        home: the person's; of `~/.local` only the program itself is mounted.
        excluded: other folders that no mount may contain (Aileron's home, the project).

    Raises:
        Forbidden: mounting the program would expose all of one of *excluded*.
        NotFound: it is a script whose interpreter is missing or would not be in the sandbox.
    """
    real = program.resolve()
    shared = home.resolve() / ".local"
    roots = {_root(real, shared)}
    asked = script_interpreter(real)
    interpreter = _interpreter(program, asked, path, excluded) if asked else None
    if interpreter is not None:
        roots.add(_prefix(interpreter.resolve(), shared))
    wanted = tuple(
        sorted(root for root in roots if not any(root.is_relative_to(s) for s in SYSTEM_FOLDERS))
    )
    for root in wanted:
        for kept in (home.resolve(), *(each.resolve() for each in excluded)):
            if kept.is_relative_to(root):
                raise Forbidden(
                    f"{program} is installed in {root}, so the sandbox would have to show the agent "
                    f"{kept}. Install it somewhere else.{OR_WITHOUT}"
                )
    if interpreter is not None and not _is_reachable(asked, interpreter, wanted):
        raise NotFound(
            f"{program} is a script for {asked}, and {interpreter} is not in the sandbox under "
            f"that name. Install {program.name} with the system's interpreter or with one in its "
            f"own folder.{OR_WITHOUT}"
        )
    return wanted


def _root(real: Path, shared: Path) -> Path:
    """Return what to mount for a program: its outermost `node_modules`, else its installation or its own file."""
    parents = [parent for parent in real.parents if parent.name == "node_modules"]
    if parents:
        return parents[-1]
    whole = real.parent.name == "bin" and (real.parent.parent / "lib").is_dir()
    return _prefix(real, shared) if whole else real


def _prefix(program: Path, shared: Path) -> Path:
    """Return the prefix of a program in `<prefix>/bin`; for a prefix in *shared*, the program's file alone."""
    prefix = program.parent.parent
    return prefix if program.parent.name == "bin" and prefix != shared else program


def script_interpreter(real: Path) -> str:
    """Return the interpreter in a script's first line: a path, or the name given to `env`; empty for a binary.

    Raises:
        OSError: the file cannot be read.
    """
    with real.open("rb") as file:
        head = file.read(_SHEBANG)
    words = head[2:].split(b"\n", 1)[0].decode("utf-8", "replace").split()
    if not head.startswith(b"#!") or not words:
        return ""
    if Path(words[0]).name != "env":
        return words[0]
    names = [word for word in words[1:] if not word.startswith("-") and "=" not in word]
    return names[0] if names else ""


def _interpreter(program: Path, asked: str, path: str, excluded: tuple[Path, ...]) -> Path:
    """Return the path of the interpreter *asked* for, outside *excluded*.

    Raises:
        NotFound: there is none, or only a shim that looks the real one up.
    """
    folders = [Path(each) for each in path.split(os.pathsep) if Path(each).is_absolute()]
    outside = [
        str(each) for each in folders if not any(_inside(each, folder) for folder in excluded)
    ]
    interpreter = (
        shutil.which(asked, path=os.pathsep.join(outside)) if outside or "/" in asked else None
    )
    if interpreter is None:
        where = "which does not exist" if "/" in asked else f"and {asked} is not on PATH"
        raise NotFound(f"{program} is a script for {asked}, {where}. Install {asked} first.")
    for each in (program, Path(interpreter)):
        if each.parent.name == "shims":
            raise NotFound(
                f"{each} is a version manager's shim: files of the project choose what it starts. "
                f"Put the folder of the real {each.name} first on PATH.{OR_WITHOUT}"
            )
    return Path(interpreter)


def _is_reachable(asked: str, interpreter: Path, roots: tuple[Path, ...]) -> bool:
    """Return whether a script finds its interpreter in a sandbox with *roots* and the system's programs."""
    if any(interpreter.is_relative_to(folder) for folder in SYSTEM_FOLDERS):
        return True
    if "/" in asked:
        return any(interpreter.is_relative_to(root) for root in roots)
    return any(root.name == asked or (root / "bin" / asked).exists() for root in roots)


def named_interpreter(
    program: Path, path: str, *, excluded: tuple[Path, ...]
) -> tuple[str, Path] | None:
    """Return the name by which the script *program* asks for its interpreter, and that interpreter.

    None where it gives a path, or is no script.

    Raises:
        NotFound: there is none outside *excluded*, or only a shim.
    """
    asked = script_interpreter(program.resolve())
    return (
        (asked, _interpreter(program, asked, path, excluded))
        if asked and "/" not in asked
        else None
    )
