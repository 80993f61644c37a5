"""The bubblewrap command line: what an agent sees of this machine, and its environment variables.

At the top of a project it cannot write `PROTECTED_NAMES`: `.envrc`, `.vscode` and others.

Pure, except that it looks at paths. An allow-list: what is not mounted does not exist in the sandbox.
A path is hidden by not mounting it, never by mounting something over it: what is covered can be
uncovered, or reached by another path.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from aileron_core.containment.programs import own_code_folders

SANDBOX_DIR = "/run/aileron"
SANDBOX_SOCKET = f"{SANDBOX_DIR}/session/s.sock"
SANDBOX_LAUNCH_DIR = f"{SANDBOX_DIR}/private"

PROTECTED_NAMES = (
    "aileron.toml", ".mcp.json", ".claude", ".codex", ".gemini", ".pi",
    "opencode.json", "opencode.jsonc", ".opencode", ".envrc", ".vscode", ".idea",
    # Agents, editors, shells and other version control: what runs when a person opens or enters the
    # folder and is asked nothing, or was asked once for another content.
    ".cursor", ".windsurf", ".kiro", ".continue", ".roo", ".amazonq", ".qwen", ".aider.conf.yml",
    "crush.json", ".crush.json", ".zed", ".fleet", ".helix", ".devcontainer", ".devcontainer.json",
    ".vimrc", ".gvimrc", ".exrc", ".nvimrc", ".nvim.lua", ".dir-locals.el", ".dir-locals-2.el",
    ".Rprofile", "mise.toml", ".mise.toml", "mise.local.toml", ".mise.local.toml", ".mise",
    ".tool-versions", ".hg", ".jj",
)  # fmt: skip
"""Names in the project through which an agent reaches the person's own tools."""

_PASSED_VARIABLES = frozenset(
    ("TERM", "COLORTERM", "LANG", "LANGUAGE", "TZ", "SHELL", "USER", "LOGNAME", "NO_COLOR",
     "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy",
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
    programs: tuple[Path, ...] = ()
    """Read-only: the agent's program, its interpreter, ours."""
    offline: bool = False
    """No network but the session's socket."""
    git_mounts: tuple[str, ...] | None = None
    """How the project's repositories are mounted; None leaves its own read-only."""


def sandbox_environment(environ: Mapping[str, str], extra_names: Iterable[str]) -> dict[str, str]:
    """Return the part of the person's environment that the agent gets: an allow-list, extended by *extra_names*."""
    wanted = _PASSED_VARIABLES.union(extra_names)
    return {
        name: value
        for name, value in environ.items()
        if (name in wanted or name.startswith("LC_")) and not name.startswith("AILERON_")
    }


def bwrap_argv(spec: SandboxSpec, argv: Iterable[str]) -> list[str]:
    """Return the command that runs *argv* in the sandbox *spec*.

    bubblewrap has to be started with exactly the sandbox's environment: `--setenv` would show a
    provider's key to every user of this machine.
    """
    command = [
        spec.bwrap,
        *("--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts"),
        "--unshare-cgroup-try",
        *(["--unshare-net"] if spec.offline else []),
        *("--disable-userns", "--die-with-parent", "--cap-drop", "ALL"),
    ]
    command += [*system_mount_arguments(), "--ro-bind", "/etc", "/etc"]
    command += ["--proc", "/proc", *proc_mask_arguments(), "--dev", "/dev"]
    command += ["--tmpfs", "/tmp", "--tmpfs", "/var/tmp"]  # noqa: S108
    command += ["--tmpfs", "/run", "--dir", SANDBOX_DIR]
    if _RESOLVED.is_dir():
        command += ["--ro-bind", str(_RESOLVED), str(_RESOLVED)]
    command += ["--bind", str(spec.private_home), str(spec.home)]
    for path in sorted(set(spec.programs)):
        command += ["--ro-bind", str(path), str(path)]
    command += _project(spec)
    command += ["--ro-bind", str(spec.launch_dir), SANDBOX_LAUNCH_DIR]
    if spec.socket is not None:
        command += ["--ro-bind", str(spec.socket.parent), str(PurePosixPath(SANDBOX_SOCKET).parent)]
        command += ["--symlink", SANDBOX_SOCKET, f"{SANDBOX_DIR}/s.sock"]
    return [*command, "--chdir", str(spec.project), "--", *argv]


def system_mount_arguments() -> list[str]:
    """Return the arguments that mount the system's programs read-only; links such as /bin stay links."""
    command = ["--ro-bind", "/usr", "/usr"]
    for name in _SYSTEM:
        path = Path("/", name)
        if path.is_symlink():
            command += ["--symlink", str(path.readlink()), str(path)]
        elif path.is_dir():
            command += ["--ro-bind", str(path), str(path)]
    return command


def proc_mask_arguments() -> list[str]:
    """Return the arguments that cover the machine-wide files in /proc that exist; bubblewrap fails at a missing one.

    File modes do not protect them: some are writable by anybody, all are root's, and the lists of
    keys are readable by anybody. There is no /sys in the sandbox.
    """
    command: list[str] = []
    for name in _READ_ONLY:
        if (path := Path("/proc", name)).exists():
            command += ["--ro-bind", str(path), str(path)]
    for name in _HIDDEN:
        if (path := Path("/proc", name)).exists():
            command += ["--ro-bind", "/dev/null", str(path)]
    return command


def _project(spec: SandboxSpec) -> list[str]:
    """Return the arguments that mount the project writable and its protected names read-only."""
    project = spec.project
    command = ["--bind", str(project), str(project)]
    git = project / ".git"
    if spec.git_mounts is not None:
        command += spec.git_mounts
    elif git.exists() and not git.is_symlink():
        command += ["--ro-bind", str(git), str(git)]
    for path in protected_paths(project):
        command += ["--ro-bind", str(path), str(path)]
    for path in own_code_folders():
        if path.is_relative_to(project):
            command += ["--ro-bind", str(path), str(path)]
    return command


def protected_paths(project: Path) -> list[Path]:
    """Return those of the protected names that exist in *project*."""
    named = [project / name for name in PROTECTED_NAMES]
    # Of a link what it leads to is kept, where that is in the project; the link itself is compared
    # before and after, for nothing can be mounted over it.
    real = {path.resolve() for path in named if path.exists()}
    return sorted(path for path in real if path.is_relative_to(project) and path != project)
