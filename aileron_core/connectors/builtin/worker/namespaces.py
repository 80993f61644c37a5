"""Namespaces, mounts and capabilities of one process: the system calls with which a command is shut in. Linux only."""

import ctypes
import os
import re
from dataclasses import dataclass
from pathlib import Path

NEW_MOUNTS, NEW_IPC, NEW_USER, NEW_PIDS, NEW_NETWORK = (
    0x20000, 0x8000000, 0x10000000, 0x20000000, 0x40000000,
)  # fmt: skip
"""CLONE_NEW* of linux/sched.h."""

_MS_RDONLY, _MS_NOSUID, _MS_NODEV, _MS_NOEXEC = 1, 2, 4, 8
_MS_REMOUNT, _MS_BIND, _MS_REC = 32, 4096, 16384
_MS_PRIVATE, _MS_SLAVE, _MS_SHARED = 1 << 18, 1 << 19, 1 << 20
_PR_SET_DUMPABLE, _PR_CAPBSET_DROP, _PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL = 4, 24, 47, 4
_CAPABILITY_VERSION_3 = 0x20080522
_ESCAPED = re.compile(rb"\\([0-7]{3})")
_MOVE_MOUNT, _OPEN_TREE, _FSOPEN, _FSCONFIG, _FSMOUNT = 429, 428, 430, 431, 432
_OPEN_TREE_CLONE, _AT_EMPTY_PATH = 1, 0x1000
_MOVE_FROM_HANDLE, _MOVE_TO_HANDLE = 0x04, 0x40
_FSCONFIG_SET_FLAG, _FSCONFIG_SET_STRING, _FSCONFIG_CREATE = 0, 1, 6
_MOUNT_ATTR_NOSUID, _MOUNT_ATTR_NODEV = 2, 4

_libc = ctypes.CDLL(None, use_errno=True)


def _check(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), what)
    return result


def unshare(kinds: int) -> None:
    """Give this process (for `NEW_PIDS`: its next child) namespaces of its own.

    Raises:
        OSError: the kernel refused, as everything in this module.
    """
    _check(_libc.unshare(kinds), "unshare")


def set_dumpable(dumpable: bool) -> None:
    """Let other processes of this user read this one's memory and descriptors, or not."""
    _check(_libc.prctl(_PR_SET_DUMPABLE, int(dumpable), 0, 0, 0), "PR_SET_DUMPABLE")


def drop_capabilities() -> None:
    """Give up every capability for good: what this process executes cannot have one either."""
    _check(_libc.prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0), "ambient capabilities")
    last = int(Path("/proc/sys/kernel/cap_last_cap").read_bytes())
    for number in range(last + 1):
        _check(_libc.prctl(_PR_CAPBSET_DROP, number, 0, 0, 0), "bounding capabilities")
    head = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    _check(_libc.capset(head, (ctypes.c_uint32 * 6)()), "capset")


def make_mounts_private() -> None:
    """Keep what is mounted here from showing anywhere else, and what is mounted elsewhere from showing here."""
    _check(_libc.mount(None, b"/", None, _MS_REC | _MS_PRIVATE, None), "mount /")


def keep_private(path: str) -> None:
    """Keep what is mounted on *path* from showing anywhere else."""
    _check(_libc.mount(None, path.encode(), None, _MS_PRIVATE, None), path)


def follow_mounts() -> None:
    """Keep what is mounted here from showing anywhere else; what the worker gets shows here too."""
    _check(_libc.mount(None, b"/", None, _MS_REC | _MS_SLAVE, None), "mount /")


def show_mounts() -> None:
    """Have what is mounted here from now on show where `follow_mounts` is called in a copy of this namespace."""
    _check(_libc.mount(None, b"/", None, _MS_REC | _MS_SHARED, None), "mount /")


def real_ids() -> tuple[int, int]:
    """Return the user and group id outside this user namespace, of which each maps one."""
    users, groups = (
        Path(f"/proc/self/{name}_map").read_text(encoding="ascii").split()
        for name in ("uid", "gid")
    )
    return int(users[1]), int(groups[1])


def become_ordinary(user: int, group: int, limits: int) -> None:
    """Enter a user namespace of one's own, in which one is *user* as outside, and nobody makes another.

    Args:
        limits: a descriptor of /proc/sys/user, of a mount that is not read-only.
    """
    unshare(NEW_USER)
    set_dumpable(True)  # the files below are root's otherwise; nobody else sees this process yet
    own = Path("/proc/self")
    (own / "setgroups").write_text("deny", encoding="ascii")
    (own / "uid_map").write_text(f"{user} 0 1", encoding="ascii")
    (own / "gid_map").write_text(f"{group} 0 1", encoding="ascii")
    handle = os.open("max_user_namespaces", os.O_WRONLY | os.O_CLOEXEC, dir_fd=limits)
    os.write(handle, b"0\n")
    os.close(handle)
    set_dumpable(False)


@dataclass(frozen=True, slots=True)
class MountedAt:
    """One line of /proc/self/mountinfo."""

    number: int
    """By which the kernel knows it."""
    parent: int
    device: str
    root: str
    """What of its file system is mounted."""
    path: str
    read_only: bool
    kind: str
    """Of file system."""


def mounts() -> list[MountedAt]:
    """Return this process's mounts, the later over the earlier."""
    found: list[MountedAt] = []
    for line in Path("/proc/self/mountinfo").read_bytes().splitlines():
        before, _, after = line.partition(b" - ")
        words, more = before.split(b" "), after.split(b" ")
        options = {*words[5].split(b","), *more[2].split(b",")}
        found.append(
            MountedAt(
                number=int(words[0]),
                parent=int(words[1]),
                device=words[2].decode("ascii"),
                root=_unescaped(words[3]),
                path=_unescaped(words[4]),
                read_only=b"ro" in options,
                kind=more[0].decode("ascii"),
            )
        )
    return found


def _unescaped(word: bytes) -> str:
    return os.fsdecode(_ESCAPED.sub(lambda found: bytes([int(found[1], 8)]), word))


def mount_number(handle: int) -> int:
    """Return the number of the mount on which an open file lies."""
    text = Path(f"/proc/self/fdinfo/{handle}").read_text(encoding="ascii")
    return int(text.split("mnt_id:")[1].split()[0])


def mount_own_processes(covers: list[tuple[str, bool]]) -> int:
    """Mount a /proc of this process's namespace over the one that is there, and cover in it what is covered there.

    Args:
        covers: paths, and whether each is the kernel's own file there, read-only, or something else.

    Returns:
        A descriptor of its /proc/sys/user, which is not covered.
    """
    others = [os.open(path, os.O_PATH | os.O_CLOEXEC) for path, _ in covers]
    flags = _MS_NOSUID | _MS_NODEV | _MS_NOEXEC
    _check(_libc.mount(b"proc", b"/proc", b"proc", flags, None), "mount /proc")
    limits = os.open("/proc/sys/user", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    for (path, is_own), other in zip(covers, others, strict=True):
        name = os.fsencode(path)
        if is_own:
            mount_on_itself(path)
            read_only = flags | _MS_BIND | _MS_REMOUNT | _MS_RDONLY
            _check(_libc.mount(None, name, None, read_only, None), path)
        else:
            target = os.open(path, os.O_PATH | os.O_CLOEXEC)
            attach(clone_mount(other), target)
            os.close(target)
        os.close(other)
    return limits


def process_covers() -> list[tuple[str, bool]]:
    """Return what is covered in /proc, for `mount_own_processes`."""
    return [(each.path, each.kind == "proc") for each in mounts() if each.path.startswith("/proc/")]


def mount_on_itself(path: str) -> None:
    """Make *path* a mount point, with everything that is mounted below: it cannot be renamed then."""
    name = os.fsencode(path)
    _check(_libc.mount(name, name, None, _MS_BIND | _MS_REC, None), path)


def clone_mount(source: int) -> int:
    """Return a descriptor of a new, unattached mount of what *source* has open, without what is mounted below."""
    flags = _OPEN_TREE_CLONE | _AT_EMPTY_PATH | os.O_CLOEXEC
    return _check(_libc.syscall(_OPEN_TREE, source, b"", flags), "open_tree")


def attach(mount: int, target: int) -> None:
    """Mount an unattached *mount* on what *target* has open."""
    both = _MOVE_FROM_HANDLE | _MOVE_TO_HANDLE
    _check(_libc.syscall(_MOVE_MOUNT, mount, b"", target, b"", both), "move_mount")


def make_read_only(*paths: str) -> None:
    """Make the mounts at *paths* read-only, not those below; devices can still be written to."""
    flags = _MS_REMOUNT | _MS_BIND | _MS_RDONLY | _MS_NOSUID
    for path in paths:
        no_devices = 0 if path == "/dev" else _MS_NODEV
        _check(_libc.mount(None, path.encode(), None, flags | no_devices, None), path)


def new_mount(kind: str, flags: tuple[str, ...] = (), **options: str) -> int:
    """Return a descriptor of a new, unattached mount of a new file system of *kind*."""
    context = _check(_libc.syscall(_FSOPEN, kind.encode(), 1), "fsopen")
    try:
        for name, value in options.items():
            _check(
                _libc.syscall(
                    _FSCONFIG, context, _FSCONFIG_SET_STRING, name.encode(), value.encode(), 0
                ),
                f"{kind} {name}",
            )
        for name in flags:
            _check(
                _libc.syscall(_FSCONFIG, context, _FSCONFIG_SET_FLAG, name.encode(), None, 0),
                f"{kind} {name}",
            )
        _check(_libc.syscall(_FSCONFIG, context, _FSCONFIG_CREATE, None, None, 0), kind)
        attributes = _MOUNT_ATTR_NOSUID | _MOUNT_ATTR_NODEV
        return _check(_libc.syscall(_FSMOUNT, context, 1, attributes), f"mount {kind}")
    finally:
        os.close(context)
