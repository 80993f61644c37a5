"""System calls of Linux that Python does not wrap: death signal, keyring, Landlock, seccomp, openat2, mounts.

Called through ctypes. Their numbers are the same on every Linux architecture that has had them
since 5.13, except for `keyctl`.
"""

import ctypes
import errno
import fcntl
import functools
import os
import platform
import struct
import sys

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS = 1, 4, 22, 38
_SECCOMP_MODE_FILTER = 2
_INSTRUCTION_BYTES = 8
"""Of struct sock_filter."""
_LANDLOCK_CREATE_RULESET, _LANDLOCK_RESTRICT_SELF = 444, 446
_OPENAT2 = 437
_TRIES = 1000
"""Of openat2, whose way up by `..` the kernel gives up where anything at all is renamed meanwhile (EAGAIN)."""
_OPEN_TREE, _MOVE_MOUNT = 428, 429
_OPEN_TREE_CLONE, _AT_EMPTY_PATH, _AT_RECURSIVE = 1, 0x1000, 0x8000
_EMPTY_SOURCE_PATH, _EMPTY_TARGET_PATH = 0x04, 0x40
"""MOVE_MOUNT_F_EMPTY_PATH and MOVE_MOUNT_T_EMPTY_PATH of linux/mount.h."""
_MOUNT_SETATTR, _MOUNT_ATTR_RDONLY, _MS_PRIVATE = 442, 1, 1 << 18
_NS_GET_USERNS = 0xB701
_CLONE_NEWUSER, _CLONE_NEW = 0x10000000, {"mnt": 0x00020000, "net": 0x40000000}
_RENAME_EXCHANGE = 2
_CREATE_RULESET_VERSION = 1
_SCOPE_ABSTRACT_UNIX_SOCKET, _SCOPE_SIGNAL = 1, 2
SCOPE_ABI = 6
"""The first Landlock ABI with scopes (Linux 6.12)."""
_KEYCTL = {"x86_64": 250, "aarch64": 219, "riscv64": 219}
_KEYCTL_JOIN_SESSION_KEYRING = 1


@functools.cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _fail(what: str) -> OSError:
    number = ctypes.get_errno()
    return OSError(number, f"{what}: {os.strerror(number)}")


def die_with_parent(signal_number: int) -> None:
    """Have the kernel send *signal_number* to this process when its parent ends; does nothing except on Linux."""
    if sys.platform == "linux":
        _libc().prctl(_PR_SET_PDEATHSIG, signal_number, 0, 0, 0)


def close_memory_to_others() -> None:
    """Keep other processes of this user from reading or changing this one's memory; does nothing except on Linux."""
    if sys.platform == "linux":
        _libc().prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def no_new_privileges() -> None:
    """Keep this process and its children from gaining privileges by set-uid files or file capabilities.

    Raises:
        OSError: the kernel refused.
    """
    if _libc().prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        raise _fail("PR_SET_NO_NEW_PRIVS")


def join_empty_keyring() -> bool:
    """Give this process an empty session keyring; return False if the kernel has no keyrings."""
    number = _KEYCTL.get(platform.machine())
    if number is None:
        return False
    return _libc().syscall(number, _KEYCTL_JOIN_SESSION_KEYRING, None, 0, 0, 0) >= 0


def landlock_abi() -> int:
    """Return the version of the kernel's Landlock ABI, 0 without Landlock."""
    if sys.platform != "linux":
        return 0
    version: int = _libc().syscall(_LANDLOCK_CREATE_RULESET, None, 0, _CREATE_RULESET_VERSION)
    return max(version, 0)


def scope_sockets_and_signals() -> None:
    """Use Landlock to confine this process and its children to their own abstract sockets and signals.

    To be called before the sandbox is built. It handles no file-system rights: those would forbid
    the sandbox's mounts. Needs `no_new_privileges` first.

    Raises:
        OSError: the kernel refused, or its ABI is below 6.
    """
    if landlock_abi() < SCOPE_ABI:
        raise OSError(0, "this kernel has no Landlock scopes, which need Linux 6.12")
    libc = _libc()
    # struct landlock_ruleset_attr: handled_access_fs, handled_access_net, scoped
    attributes = struct.pack("QQQ", 0, 0, _SCOPE_ABSTRACT_UNIX_SOCKET | _SCOPE_SIGNAL)
    ruleset = libc.syscall(_LANDLOCK_CREATE_RULESET, attributes, len(attributes), 0)
    if ruleset < 0:
        raise _fail("landlock_create_ruleset")
    try:
        if libc.syscall(_LANDLOCK_RESTRICT_SELF, ruleset, 0) != 0:
            raise _fail("landlock_restrict_self")
    finally:
        os.close(ruleset)


def openat2(folder: int, path: bytes, flags: int, resolve: int, mode: int = 0) -> int:
    """Open *path* relative to *folder* and return the descriptor.

    Args:
        flags: as for `openat`; O_CLOEXEC is not added.
        resolve: the sum of RESOLVE_* flags of linux/openat2.h.

    Raises:
        OSError: the kernel refused, or is older than 5.6.
    """
    # struct open_how: flags, mode, resolve. A mode without O_CREAT is refused.
    how = struct.pack("QQQ", flags, mode if flags & os.O_CREAT else 0, resolve)
    number = 0
    for _ in range(_TRIES):
        descriptor: int = _libc().syscall(_OPENAT2, folder, path, how, len(how))
        if descriptor >= 0:
            return descriptor
        number = ctypes.get_errno()
        if number != errno.EAGAIN:
            break
    raise OSError(number, os.strerror(number), os.fsdecode(path))


def join_namespace(namespace: int, kind: str) -> None:
    """Move this process into a mount or network namespace, and first into the user namespace that owns it.

    Args:
        namespace: a descriptor of it.
        kind: `mnt` or `net`, as in /proc.

    Raises:
        OSError: this process has threads, or no rights over that user namespace.
    """
    owner = fcntl.ioctl(namespace, _NS_GET_USERNS)
    for descriptor, flag in ((owner, _CLONE_NEWUSER), (namespace, _CLONE_NEW[kind])):
        if _libc().setns(descriptor, flag) != 0:
            raise _fail("setns")


def bind_mount(source: int, target: int) -> None:
    """Mount the folder or file *source*, with what is mounted below, on *target* in this process's mount namespace.

    Args:
        source: an open descriptor, as *target* is.

    Raises:
        OSError: the kernel refused, or is older than 5.2.
    """
    flags = _OPEN_TREE_CLONE | _AT_EMPTY_PATH | _AT_RECURSIVE | os.O_CLOEXEC
    tree: int = _libc().syscall(_OPEN_TREE, source, b"", flags)
    if tree < 0:
        raise _fail("open_tree")
    try:
        empty = _EMPTY_SOURCE_PATH | _EMPTY_TARGET_PATH
        if _libc().syscall(_MOVE_MOUNT, tree, b"", target, b"", empty) != 0:
            raise _fail("move_mount")
    finally:
        os.close(tree)


def set_mount_read_only(mount: int, *, read_only: bool) -> None:
    """Let nothing be written through a mount, or again; that is so at once for all that has something open in it.

    Args:
        mount: a descriptor of what is mounted; what is mounted below stays as it is.

    Raises:
        OSError: the kernel refused: a file is open for writing there (EBUSY), for one.
    """
    on, off = (_MOUNT_ATTR_RDONLY, 0) if read_only else (0, _MOUNT_ATTR_RDONLY)
    # Private: what is mounted on the machine later does not come in.
    attributes = struct.pack("=QQQQ", on, off, _MS_PRIVATE, 0)
    call = (_MOUNT_SETATTR, mount, b"", _AT_EMPTY_PATH, attributes, len(attributes))
    if _libc().syscall(*call) != 0:
        raise _fail("mount_setattr")


def exchange_names(folder: int, name: str, path: str) -> None:
    """Exchange what *name* in *folder* and the absolute *path* name, in one step that nobody sees half done.

    Raises:
        OSError: the kernel refused, or the C library is older than the call.
    """
    rename = getattr(_libc(), "renameat2", None)
    if rename is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    if rename(folder, os.fsencode(name), -1, os.fsencode(path), _RENAME_EXCHANGE) != 0:
        raise _fail("renameat2")


class _Program(ctypes.Structure):
    """The C type `struct sock_fprog`."""

    _fields_ = (("len", ctypes.c_ushort), ("filter", ctypes.c_char_p))


def install_seccomp_filter(program: bytes) -> None:
    """Install *program* as the seccomp filter of this process and its children.

    Needs `no_new_privileges` first, and cannot be undone.

    Args:
        program: as `seccomp.build_filter` returns it.

    Raises:
        OSError: the kernel refused, or has no seccomp filters.
    """
    filter_program = _Program(len(program) // _INSTRUCTION_BYTES, program)
    if (
        _libc().prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.byref(filter_program), 0, 0)
        != 0
    ):
        raise _fail("PR_SET_SECCOMP")
