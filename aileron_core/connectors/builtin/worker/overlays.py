"""The mounts of a rehearsal: an overlay over everything that a command could write, its changes in memory.

What is mounted below such a folder is mounted again on the overlay, an overlay itself where it can be
written, so that what is read-only or hidden stays so. A worker's sandbox is the person's folders with
hostile processes at work in them. So each mount is opened by its path without following links, and has
to be the one that the kernel lists there.
"""

import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Literal

from aileron_core.connectors.builtin.worker import namespaces
from aileron_core.connectors.builtin.worker.first_process import Box, NotStarted
from aileron_core.connectors.builtin.worker.namespaces import MountedAt
from aileron_core.containment.linux_syscalls import openat2

MEMORY = 256 * 1024 * 1024
"""Bytes that all rehearsals of a session may have written, with what is kept to take commits back."""
_SHM = "shm"
UNDO = "undo"
"""The folder beside those of the layers, for what a commit replaces."""
_FILES = 20_000
"""Of all rehearsals of a session."""
_SHARED_MEMORY = "/dev/shm"  # noqa: S108 - the sandbox's own
_SEPARATE_GIT = "/run/aileron/git"
"""`record.SANDBOX_GIT_DIR`."""
_STAND_IN = "README-aileron.txt"
"""`hidden_repositories.README`: all that is in the place of a repository that is hidden from the person."""
_PATH = getattr(os, "O_PATH", 0) | os.O_CLOEXEC
_AT_FDCWD = -100
_NO_MAGIC_LINKS, _NO_LINKS, _BENEATH = 0x02, 0x04, 0x08
"""RESOLVE_* of linux/openat2.h."""
_MAX_GIT_FILE = 4096

Purpose = Literal["shown", "git", "own"]
"""Of a writable folder: the person's, a repository's of the session, the sandbox's own (its home, /tmp)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """One mount of the sandbox."""

    mounted: MountedAt
    handle: int
    """Of what is mounted there, open."""
    purpose: Purpose | None
    """None: it cannot be written."""

    @property
    def path(self) -> PurePosixPath:
        return PurePosixPath(self.mounted.path)

    @property
    def source(self) -> tuple[str, str, str]:
        """Return what tells whether it is the same mount in another namespace."""
        return self.mounted.path, self.mounted.device, self.mounted.root


def read_layers(project: Path, shown: Sequence[Path]) -> list[Layer]:
    """Open the mounts of this process's namespace, folders before what is in them.

    Args:
        shown: the folders besides *project* that are the person's.

    Raises:
        NotStarted: one cannot be reached by its path, or cannot be rehearsed.
    """
    folders = [str(each) for each in (project, *shown)]
    layers: list[Layer] = []
    found = [each for each in _uncovered(namespaces.mounts()) if not _is_left(each.path)]
    writable = [each.path for each in found if not each.read_only]
    for mounted in sorted(found, key=lambda each: (each.path.count("/"), each.path)):
        if not any(is_inside(mounted.path, each) for each in writable):
            continue
        try:
            flags = _NO_LINKS | _NO_MAGIC_LINKS
            handle = openat2(_AT_FDCWD, os.fsencode(mounted.path), _PATH, flags)
        except OSError:
            handle = -1
        if handle < 0 or namespaces.mount_number(handle) != mounted.number:
            raise NotStarted(f"{mounted.path} cannot be reached: a folder above it was renamed.")
        purpose = None if mounted.read_only else _purpose(mounted.path, folders)
        if purpose and not stat.S_ISDIR(os.fstat(handle).st_mode):
            raise NotStarted(f"{mounted.path} is a file that is mounted by itself, to be written.")
        layers.append(Layer(mounted=mounted, handle=handle, purpose=purpose))
    return layers


def pin_mount_points(project: Path, shown: Sequence[Path]) -> None:
    """Keep commands from renaming the folders above what is mounted in the sandbox's own folders.

    In its home and /tmp these are anybody's: another program could be put where a tool was. To be
    called in the worker's mount namespace before any command has run. In the person's
    folders they stay as they are: a command may rename them as the agent may.
    """
    folders = [str(each) for each in (project, *shown)]
    found = _uncovered(namespaces.mounts())
    around = {each.number: each for each in found}
    pinned = {each.path for each in found}
    for each in sorted(found, key=lambda each: each.path):
        outer = around.get(each.parent)
        if outer is None or outer.read_only or _is_left(outer.path):
            continue
        if _purpose(outer.path, folders) != "own":
            continue
        for folder in [*PurePosixPath(each.path).parents][::-1]:
            path = str(folder)
            if is_inside(path, outer.path) and path not in pinned:
                namespaces.mount_on_itself(path)
                pinned.add(path)


def _is_left(path: str) -> bool:
    """Return whether what is mounted at *path* is no concern of an overlay's."""
    return path == "/" or is_inside(path, "/proc") or is_inside(path, "/dev")


def _uncovered(mounts: list[MountedAt]) -> list[MountedAt]:
    """Leave out what another mount was made over."""
    by_parent: dict[int, list[MountedAt]] = {}
    for each in mounts:
        by_parent.setdefault(each.parent, []).append(each)
    left: list[MountedAt] = []
    covered: set[int] = set()
    for each in mounts:
        siblings = by_parent[each.parent]
        later = siblings[siblings.index(each) + 1 :]
        on_top = (one.path == each.path for one in by_parent.get(each.number, ()))
        over = (is_inside(each.path, one.path) for one in later)
        if each.parent in covered or any(over) or (each.path != "/" and any(on_top)):
            covered.add(each.number)
        else:
            left.append(each)
    return left


def is_inside(path: str, folder: str) -> bool:
    """Return whether the absolute *path* is *folder* or below it."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _purpose(path: str, folders: Sequence[str]) -> Purpose:
    if is_inside(path, _SEPARATE_GIT):
        return "git"
    if any(is_inside(path, each) for each in folders):
        return "git" if path.endswith("/.git") else "shown"
    return "own"


def mount_memory() -> int:
    """Mount the file system in memory in which rehearsals write, where no command can reach it; return its descriptor.

    One for all of them, so that the kernel holds a session to `MEMORY`. It lies under /dev/shm,
    which is mounted over it. To be called before any command has run.
    """
    place = os.open(_SHARED_MEMORY, _PATH)
    cover = namespaces.clone_mount(place)
    memory = namespaces.new_mount("tmpfs", size=str(MEMORY), nr_inodes=str(_FILES), mode="700")
    namespaces.attach(memory, place)
    namespaces.keep_private(_SHARED_MEMORY)  # or what is mounted on a part of it would show here
    namespaces.attach(cover, memory)
    handle = os.open(f"/proc/self/fd/{memory}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    for each in (place, cover, memory):
        os.close(each)
    return handle


def new_upper(layers: Sequence[Layer], memory: int, name: str) -> int:
    """Return a descriptor of a mount with the folders that `arrange` needs for *layers*: the folder *name* of *memory*.

    Raises:
        NotStarted: this kernel's cannot hold what an overlay writes.
        OSError: the memory is full.
    """
    os.mkdir(name, 0o700, dir_fd=memory)
    folder = os.open(name, _PATH, dir_fd=memory)
    upper = namespaces.clone_mount(folder)
    os.close(folder)
    os.mkdir(_SHM, dir_fd=upper)
    os.chmod(_SHM, 0o1777, dir_fd=upper)  # noqa: S103 - as /dev/shm has it
    for number, layer in enumerate(layers):
        if layer.purpose is not None:
            mode = stat.S_IMODE(os.fstat(layer.handle).st_mode)
            os.mkdir(f"{number}", dir_fd=upper)
            os.mkdir(f"{number}/up", dir_fd=upper)
            os.chmod(f"{number}/up", mode, dir_fd=upper)
            os.mkdir(f"{number}/work", dir_fd=upper)
    os.mkdir(UNDO, dir_fd=upper)
    try:
        os.setxattr(f"/proc/self/fd/{upper}", "user.aileron", b"")
    except OSError:
        raise NotStarted("Rehearsals need Linux 6.6 or newer.") from None
    return upper


def arrange(
    box: Box, expected: Sequence[Layer], upper: int, shown: Sequence[Path]
) -> tuple[int, dict[int, int]]:
    """Mount the overlays in this process's own mount namespace.

    Args:
        expected: the layers as they were when *upper* was made for them.

    Returns:
        A descriptor of the project, and by the device of each overlay one of what lies under it.

    Raises:
        NotStarted: a mount has moved, or would show what is hidden.
        OSError: the kernel refuses an overlay.
    """
    os.close(box.open_project())
    layers = read_layers(box.project, shown)
    if [each.source for each in layers] != [each.source for each in expected]:
        raise NotStarted("What is mounted has changed meanwhile.")
    writable = next(each for each in layers if each.purpose)
    namespaces.attach(upper, writable.handle)  # where it is; an overlay's upper has to be somewhere
    made: dict[PurePosixPath, int] = {}
    unders: dict[int, int] = {}
    for number, layer in enumerate(layers):
        above = next((each for each in layer.path.parents if each in made), None)
        if above is None and layer.purpose is None:
            continue
        if layer.purpose is None:
            mount = namespaces.clone_mount(layer.handle)
        else:
            mount = _overlay(layer.handle, upper, number)
            unders[os.fstat(mount).st_dev] = layer.handle
        target = layer.handle if above is None else _target(layer, layers, above, made[above])
        namespaces.attach(mount, target)
        made[layer.path] = mount
    namespaces.make_read_only("/", "/dev")
    shm = os.open(_SHM, _PATH, dir_fd=upper)
    namespaces.attach(namespaces.clone_mount(shm), os.open(_SHARED_MEMORY, _PATH))
    project = made.get(PurePosixPath(box.project))
    if project is None:
        raise NotStarted("The project cannot be written in this session.")
    return project, unders


def _overlay(under: int, upper: int, number: int) -> int:
    up, work = (os.open(f"{number}/{name}", _PATH, dir_fd=upper) for name in ("up", "work"))
    folders = {"lowerdir": under, "upperdir": up, "workdir": work}
    options = {name: f"/proc/self/fd/{handle}" for name, handle in folders.items()}
    try:
        return namespaces.new_mount("overlay", ("userxattr",), **options)
    finally:
        os.close(up)
        os.close(work)


def merged(layer: Layer, upper: int, number: int) -> int:
    """Return a descriptor of what a command left of *layer*: its changes over what was there, read-only.

    Args:
        upper: as `mount_memory` has it: the mount that `new_upper` returns went with the command.
    """
    up = os.open(f"{number}/up", _PATH, dir_fd=upper)
    try:
        both = f"/proc/self/fd/{up}:/proc/self/fd/{layer.handle}"
        return namespaces.new_mount("overlay", ("userxattr",), lowerdir=both)
    finally:
        os.close(up)


def _target(layer: Layer, layers: Sequence[Layer], above: PurePosixPath, root: int) -> int:
    """Open the place of *layer* in the overlay *root* at *above*.

    Raises:
        NotStarted: something is covered there that a rename would show.
    """
    inside = layer.path.relative_to(above)
    try:
        target = openat2(root, os.fsencode(str(inside)), _PATH, _BENEATH | _NO_LINKS)
    except OSError:
        raise NotStarted(f"{layer.path} was moved meanwhile.") from None
    around = next(each for each in layers if each.path == above)
    place = (around.mounted.device, str(PurePosixPath(around.mounted.root) / inside))
    is_itself = (layer.mounted.device, layer.mounted.root) == place
    # What lies in the folder itself cannot be moved: it is a mount point in every sandbox.
    if len(inside.parts) == 1 or is_itself or _is_harmless(target, inside.name):
        return target
    raise NotStarted(
        f"{layer.path} hides something in a subfolder, which a rehearsed command could rename to read it."
    )


def _is_harmless(target: int, name: str) -> bool:
    status = os.fstat(target)
    if stat.S_ISDIR(status.st_mode):
        handle = os.open(f"/proc/self/fd/{target}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            return {*os.listdir(handle)} <= {_STAND_IN}  # noqa: PTH208 - of the open folder
        finally:
            os.close(handle)
    return status.st_size == 0 or (name == ".git" and status.st_size < _MAX_GIT_FILE)
