"""The bubblewrap command line: what an agent sees of this machine, and its environment variables.

At the top of a project it cannot write `PROTECTED_NAMES`: `.envrc`, `.vscode` and others.

Pure, except that it looks at paths. An allow-list: what is not mounted does not exist in the sandbox.
A path is hidden by not mounting it, never by mounting something over it: what is covered can be
uncovered, or reached by another path.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from aileron_core.containment.mounts import Mount, mount_arguments
from aileron_core.containment.programs import own_code_folders
from aileron_core.containment.safe_paths import PROTECTED_NAMES

SANDBOX_DIR = "/run/aileron"
SANDBOX_SOCKET = f"{SANDBOX_DIR}/session/s.sock"
SANDBOX_LAUNCH_DIR = f"{SANDBOX_DIR}/private"

_PASSED_VARIABLES = frozenset(
    ("TERM", "COLORTERM", "LANG", "LANGUAGE", "TZ", "SHELL", "USER", "LOGNAME", "NO_COLOR",
     "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy",
     "no_proxy",
     "GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL",
     "SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "COLUMNS", "LINES")
)  # fmt: skip
"""What of the person's environment goes in, beside LC_* and what the agent's module needs."""

_SYSTEM = ("bin", "lib", "lib32", "lib64", "libx32", "sbin")
_READ_ONLY = ("sys", "sysrq-trigger", "irq", "bus")
_HIDDEN = ("keys", "key-users")
_RESOLVED = Path("/run/systemd/resolve")


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxSpec:
    """What one sandbox contains: mounts, network and working folder."""

    bwrap: str
    project: Path
    """Writable, but for `PROTECTED_NAMES`."""
    home: Path
    """The person's home: its place is taken by `private_home`."""
    private_home: Path
    """A folder of this launch with private copies of the agent's own files."""
    launch_dir: Path
    """Seen as `SANDBOX_LAUNCH_DIR`, read-only."""
    socket: Path | None
    """The session's own socket, seen as `SANDBOX_SOCKET`.

    Its folder is what is mounted: a console that starts again makes a new socket in it.
    """
    mounts: tuple[Mount, ...] = ()
    """What else is mounted, over the private home and under the project: programs, for one."""
    offline: bool = False
    """A network of its own, in which nothing is but what is opened in it from outside."""
    resolv_conf: Path | None = None
    """The settings of its resolver; None leaves the system's."""
    git_mounts: tuple[Mount, ...] | None = None
    """How the project's repositories are mounted; None leaves its own read-only."""


def sandbox_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the part of the person's environment that the agent gets: an allow-list."""
    return {
        name: value
        for name, value in environ.items()
        if (name in _PASSED_VARIABLES or name.startswith("LC_")) and not name.startswith("AILERON_")
    }


def bwrap_argv(spec: SandboxSpec, argv: Iterable[str]) -> list[str]:
    """Return the command that runs *argv* in the sandbox *spec*.

    bubblewrap has to be started with exactly the sandbox's environment: `--setenv` would show a
    provider's key to every user of this machine.
    """
    return [
        spec.bwrap,
        *("--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts"),
        "--unshare-cgroup-try",
        *(["--unshare-net"] if spec.offline else []),
        *("--disable-userns", "--die-with-parent", "--cap-drop", "ALL"),
        *mount_arguments(sandbox_mounts(spec)),
        *("--chdir", str(spec.project), "--", *argv),
    ]


def sandbox_mounts(spec: SandboxSpec) -> list[Mount]:
    """Return everything that the sandbox *spec* contains, in the order in which it is mounted."""
    mounts = [
        *system_mounts(),
        Mount(path=Path("/etc"), how="read-only", why="the system's settings"),
        *process_mounts(),
        *(_private(path, "empty") for path in ("/tmp", "/var/tmp", "/run")),  # noqa: S108
    ]
    if not spec.offline and _RESOLVED.is_dir():  # its socket leads out of any network
        mounts.append(Mount(path=_RESOLVED, how="read-only", why="where names are looked up"))
    if spec.resolv_conf is not None:
        why = "names are answered by Aileron"
        mounts.append(
            Mount(path=resolv_conf_path(), how="read-only", why=why, source=spec.resolv_conf)
        )
    why = "your home: empty but for what is listed below and copies of the agent's own files"
    mounts.append(Mount(path=spec.home, how="copy", why=why, source=spec.private_home))
    shown = [each for each in spec.mounts if each.how != "hidden"]
    shown = [each for each in dict.fromkeys(shown) if not _is_shown_anyway(spec, each, shown)]
    mounts += sorted(shown, key=lambda each: each.path)  # folders before what is in them
    mounts += writable_mounts(spec.project, spec.git_mounts)
    mounts += [each for each in spec.mounts if each.how == "hidden"]
    why = "the connection to Aileron"
    mounts.append(
        Mount(path=Path(SANDBOX_LAUNCH_DIR), how="read-only", why=why, source=spec.launch_dir)
    )
    if spec.socket is not None:
        socket = Path(SANDBOX_SOCKET)
        mounts += [
            Mount(path=socket.parent, how="read-only", why=why, source=spec.socket.parent),
            Mount(path=Path(SANDBOX_DIR, "s.sock"), how="link", why=why, source=socket),
        ]
    return mounts


def make_home_links(spec: SandboxSpec) -> None:
    """Make the links of *spec* that are in its home, so that several sandboxes can have that home.

    bubblewrap makes a link once: the next sandbox would not start, as the link is there.
    """
    for mount in sandbox_mounts(spec):
        if mount.how == "link" and mount.path.is_relative_to(spec.home):
            assert mount.source is not None
            link = spec.private_home / mount.path.relative_to(spec.home)
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(mount.source)


def _is_shown_anyway(spec: SandboxSpec, mount: Mount, all_mounts: Iterable[Mount]) -> bool:
    """Return whether bubblewrap could not make *mount*, and need not.

    It makes no link in place of another file, and nothing new in what is read-only.
    """
    is_new = mount.how == "link"
    if mount.path.is_relative_to(spec.home):
        copied = os.path.lexists(spec.private_home / mount.path.relative_to(spec.home))
        if is_new and copied:
            return True
    if is_new or not mount.path.exists():
        parents = mount.path.parents
        return any(each.how == "read-only" and each.path in parents for each in all_mounts)
    return False


def resolv_conf_path(etc: Path = Path("/etc")) -> Path:
    """Return where the system's programs read the resolver's settings: at the end of links in *etc*."""
    path = etc / "resolv.conf"
    while path.is_relative_to(etc) and path.is_symlink():
        path = Path(os.path.normpath(path.parent / path.readlink()))
    return path


def system_mounts() -> list[Mount]:
    """Return the system's programs, read-only; links such as /bin stay links."""
    why = "the system's programs"
    mounts = [Mount(path=Path("/usr"), how="read-only", why=why)]
    for path in (Path("/", name) for name in _SYSTEM):
        if path.is_symlink():
            mounts.append(Mount(path=path, how="link", why=why, source=path.readlink()))
        elif path.is_dir():
            mounts.append(Mount(path=path, how="read-only", why=why))
    return mounts


def process_mounts() -> list[Mount]:
    """Return the sandbox's own /proc and /dev.

    The machine-wide files of /proc that exist are covered; bubblewrap fails at a missing one. File
    modes do not protect them: some are writable by anybody, all are root's, and the lists of keys
    are readable by anybody. There is no /sys in the sandbox.
    """
    found = [
        path for path in (Path("/proc", name) for name in _READ_ONLY + _HIDDEN) if path.exists()
    ]
    return [
        _private("/proc", "its own processes"),
        *(
            Mount(
                path=path, how="hidden" if path.name in _HIDDEN else "read-only", why="the kernel's"
            )
            for path in found
        ),
        _private("/dev", "a minimal set of devices"),
    ]


def _private(path: str, why: str) -> Mount:
    return Mount(path=Path(path), how="private", why=why)


def writable_mounts(
    folder: Path, git_mounts: Iterable[Mount] | None, why: str = "the project"
) -> list[Mount]:
    """Return *folder*, writable, and what of it is not: its git folder and its protected names."""
    mounts = [Mount(path=folder, how="writable", why=why)]
    git = folder / ".git"
    if git_mounts is not None:
        mounts += git_mounts
    elif git.exists() and not git.is_symlink():
        mounts.append(Mount(path=git, how="read-only", why="git's settings and hooks"))
    for path in protected_paths(folder):
        mounts.append(Mount(path=path, how="read-only", why="your own tools act on it"))
    for path in own_code_folders():
        if path.is_relative_to(folder):
            mounts.append(Mount(path=path, how="read-only", why="Aileron's own code"))
    return mounts


def protected_paths(project: Path) -> list[Path]:
    """Return those of the protected names that exist in *project*."""
    named = [project / name for name in PROTECTED_NAMES]
    # Of a link what it leads to is kept, where that is in the project; the link itself is compared
    # before and after, for nothing can be mounted over it.
    real = {path.resolve() for path in named if path.exists()}
    return sorted(path for path in real if path.is_relative_to(project) and path != project)


_RIGHTS = ("CAP_SYS_ADMIN", "CAP_SETPCAP", "CAP_SETFCAP", "CAP_DAC_OVERRIDE")
"""To make namespaces and mounts, to give rights up, to be an ordinary user again, and to make overlays."""


def command_sandbox_argv(
    spec: SandboxSpec,
    worker: Iterable[str],
    writable: Iterable[Path] = (),
    journal: int | None = None,
) -> list[str]:
    """Return the command that runs the commands worker in the sandbox *spec*, in which a session's commands run.

    To be started with `SandboxSupport.drop_privileges` before it is executed; the rest as of
    `worker_sandbox_argv`.

    Args:
        spec: without a `socket`; the worker's code is in its `launch_dir` or its `mounts`.
        writable: folders beside the project that *spec* mounts writable for the person's own files.
    """
    network = ["--unshare-net"] if spec.offline else []
    folders = [spec.project, *writable]
    return worker_sandbox_argv(
        [spec.bwrap, *network], sandbox_mounts(spec), worker, folders, journal
    )


def worker_sandbox_argv(
    bwrap: Sequence[str],
    mounts: Iterable[Mount],
    worker: Iterable[str],
    folders: Sequence[Path],
    journal: int | None = None,
) -> list[str]:
    """Return the command that runs the commands worker in a sandbox that contains *mounts*.

    The worker starts every command in namespaces of its own, so it keeps the rights that this takes; a
    command has none of them, and makes no user namespace. Which user the worker is inside does not matter
    to commands: they are the person's own.

    To be started before anything hostile can write to what is mounted, with the environment that
    commands are to have, and pipes for standard input and output.

    Args:
        bwrap: bubblewrap, with arguments for the network and the filter of system calls.
        worker: the interpreter and the worker's code.
        folders: where commands start, then other folders that are mounted writable for the person's own
            files: a rehearsal shows what changes there.
        journal: the descriptor of a file that it inherits, for its commits.
    """
    project, *others = (str(each) for each in folders)
    return [
        *bwrap,
        # As user 0, bubblewrap needs no second user namespace, in which no overlay could be made.
        *("--unshare-user", "--uid", "0", "--gid", "0"),
        *("--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"),
        *("--die-with-parent", "--new-session", "--cap-drop", "ALL"),
        *(word for right in _RIGHTS for word in ("--cap-add", right)),
        *mount_arguments(mounts),
        # Its links lead to the shell, the loader and the libraries of every later command.
        *("--remount-ro", "/"),
        *("--chdir", "/", "--"),
        *worker,
        "commands",
        project,
        "sandboxed" if journal is None else f"sandboxed={journal}",
        *others,
    ]
