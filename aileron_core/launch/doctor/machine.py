"""Whether this machine can contain an agent, whether its terminal could be driven from inside, who can change Aileron's code."""

import os
import re
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from aileron_core.containment.git.sandboxed_git import find_git
from aileron_core.containment.hard_links import hard_linked_files, reinstall_hint
from aileron_core.containment.linux_syscalls import SCOPE_ABI, landlock_abi
from aileron_core.containment.support import abstract_listeners, find_sandbox_support
from aileron_core.errors import AileronError, FileProblems
from aileron_core.home.layout import Home
from aileron_core.launch.doctor import Finding
from aileron_core.library.accepted_settings import load_policy
from aileron_core.settings import load_settings

_SECONDS = 5.0
_NAMED = 5
_CONF_BYTES = 1024 * 1024
_BARE_REPOSITORY = (2, 38)
"""The first git that has the setting `safe.bareRepository`."""
_REMOTE = re.compile(r"^\s*allow_remote_control\s+(?!no\b)(\S+)", re.MULTILINE)


def check_machine() -> Iterator[Finding]:
    """Report what the sandbox can use here, and what is missing."""
    if sys.platform != "linux":
        text = (
            "Aileron has no sandbox for this system. Run agents in a container or as another user."
        )
        yield Finding(level="warning", topic="sandbox", text=text)
        return
    try:
        support = find_sandbox_support(offline=True)
    except AileronError as error:
        yield Finding(level="broken", topic="sandbox", text=error.message)
    else:
        text = (
            f"{support.bwrap} can create sandboxes here (user namespaces work), with a system "
            "call filter."
        )
        yield Finding(level="ok", topic="sandbox", text=text)
    yield _landlock()


def _landlock() -> Finding:
    abi, reachable = landlock_abi(), abstract_listeners()
    if abi >= SCOPE_ABI:
        text = (
            f"Landlock ABI {abi} keeps sandboxed agents from abstract sockets ({len(reachable)} "
            "here) and from signalling other processes."
        )
        return Finding(level="ok", topic="landlock", text=text)
    has = f"has Landlock ABI {abi}" if abi else "does not support Landlock"
    text = (
        f"This kernel {has}. ABI {SCOPE_ABI} (Linux 6.12) would keep sandboxed agents from "
        "abstract sockets."
    )
    if not reachable:
        return Finding(level="note", topic="landlock", text=f"{text} None is open now.")
    names = ", ".join(reachable[:_NAMED])
    more = f" and {len(reachable) - _NAMED} more" if len(reachable) > _NAMED else ""
    text += (
        " While these are open, `aileron launch` needs --sandbox=offline or "
        f"--allow-abstract-sockets: {names}{more}."
    )
    return Finding(level="warning", topic="landlock", text=text)


def check_git(env: Mapping[str, str]) -> Iterator[Finding]:
    """Advise `safe.bareRepository=explicit`, with which git obeys no repository that is not called `.git`."""
    version = re.match(r"git version (\d+)\.(\d+)", _git(env, "--version"))
    if version is None or (int(version[1]), int(version[2])) < _BARE_REPOSITORY:
        return
    if _git(env, "config", "--get", "safe.bareRepository").strip().lower() == "explicit":
        text = "git obeys no repository in a folder that is not called .git (safe.bareRepository)."
        yield Finding(level="ok", topic="git", text=text)
        return
    text = (
        "git obeys a repository in any folder that you enter, also in one that an agent made a "
        "moment ago. `git config --global safe.bareRepository explicit` ends that; bare "
        "repositories of your own then need --git-dir."
    )
    yield Finding(level="note", topic="git", text=text)


def _git(env: Mapping[str, str], *words: str) -> str:
    """Return what the system's git prints with the person's settings, and no repository's; empty if it fails."""
    git = find_git()
    passed = {name: env[name] for name in ("HOME", "XDG_CONFIG_HOME") if name in env}
    try:
        return subprocess.run(
            [git or "git", *words], env={**passed, "PATH": os.defpath, "GIT_DIR": os.devnull},
            cwd="/", stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_SECONDS,
            check=False,
        ).stdout if git else ""  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return ""


def check_terminal(env: Mapping[str, str], home: Path) -> Iterator[Finding]:
    """Warn of terminals that let an agent's output control them."""
    if env.get("TMUX"):
        yield _tmux(env)
    remote = _kitty(env, home)
    if remote is not None:
        yield remote


def _tmux(env: Mapping[str, str]) -> Finding:
    tmux = shutil.which("tmux", path="/usr/bin:/bin:/usr/local/bin:/opt/homebrew/bin")
    passthrough = ""
    if tmux is not None:
        tmux_env = {"TMUX": env["TMUX"], "PATH": os.defpath}
        try:
            passthrough = subprocess.run(
                [tmux, "show-options", "-gwv", "allow-passthrough"],
                env=tmux_env, capture_output=True, text=True, timeout=_SECONDS, check=False,
            ).stdout.strip()  # fmt: skip
        except (OSError, subprocess.TimeoutExpired):
            passthrough = ""
    if passthrough in ("on", "all"):
        text = (
            "tmux passes an agent's escape sequences on to your terminal. Put `set -g "
            "allow-passthrough off` into the tmux.conf of the tmux that agents run in."
        )
        return Finding(level="warning", topic="tmux", text=text)
    sentence = (
        f"allow-passthrough is {passthrough}"
        if passthrough
        else "allow-passthrough could not be read"
    )
    return Finding(level="ok" if passthrough else "note", topic="tmux", text=f"{sentence}.")


def _kitty(env: Mapping[str, str], home: Path) -> Finding | None:
    folder = env.get("KITTY_CONFIG_DIRECTORY") or f"{home}/.config/kitty"
    try:
        with Path(folder, "kitty.conf").open("rb") as file:
            found = _REMOTE.search(file.read(_CONF_BYTES).decode("utf-8", "replace"))
    except OSError:
        found = None
    if found is None and not env.get("KITTY_LISTEN_ON"):
        return None
    text = (
        "kitty allows remote control (allow_remote_control, or a listening socket), so "
        "another program can type into the console. Put `allow_remote_control no` into "
        "kitty.conf."
    )
    return Finding(level="warning", topic="kitty", text=text)


def check_code(packages: Iterable[Path], *, uid: int) -> Finding:
    """Report whether a program of the user *uid* can change a file of Aileron's code."""
    files, open_ = 0, 0
    first: Path | None = None
    for path in _all_of(packages):
        files += 1
        if _can_change(path, uid):
            open_ += 1
            first = first or path
    if first is None:
        text = (
            f"Aileron's code ({files} files) belongs to another user, so programs that you run "
            "cannot change it."
        )
        return Finding(level="ok", topic="code", text=text)
    text = (
        f"Any program that you run outside a sandbox can change Aileron's code ({open_} of "
        f"{files} files and folders, for example {first}). To prevent that, install Aileron "
        "as root."
    )
    return Finding(level="note", topic="code", text=text)


def check_hard_links(folders: Iterable[Path]) -> Finding | None:
    """Warn of Aileron's files that are hard links shared with other environments."""
    shared = hard_linked_files(folders)
    if not shared:
        return None
    text = (
        f"{len(shared)} of Aileron's files are hard links that share their content with an "
        f"installer's cache (for example {shared[0]}). Whoever can write to the other names "
        "can change Aileron, including an agent in an environment made from that cache. The "
        f"next launch replaces them with copies. {reinstall_hint()}"
    )
    return Finding(level="warning", topic="code", text=text)


def _all_of(packages: Iterable[Path]) -> Iterator[Path]:
    parents: set[Path] = set()
    for package in packages:
        real = package.resolve()
        parents |= {*real.parents}
        for folder, folders, names in os.walk(real):
            folders[:] = [name for name in folders if name != "__pycache__"]
            yield Path(folder)
            yield from (Path(folder, name) for name in names)
    yield from sorted(parents)


def _can_change(path: Path, uid: int) -> bool:
    """Return whether *uid* owns or may write to *path*; a folder's sticky bit protects files of others."""
    try:
        status = path.lstat()
    except OSError:
        return False
    if status.st_uid == uid:
        return True
    if stat.S_ISLNK(status.st_mode):
        return False
    if stat.S_ISDIR(status.st_mode) and status.st_mode & stat.S_ISVTX:
        return False
    return os.access(path, os.W_OK, effective_ids=os.access in os.supports_effective_ids)


def check_home(home: Home, *, uid: int) -> Iterator[Finding]:
    """Report who owns the home, which of its files others can open, and whether its settings are valid."""
    try:
        status = home.path.stat()
    except FileNotFoundError:
        text = f"{home.path} does not exist yet; the first console creates it."
        yield Finding(level="note", topic="home", text=text)
        return
    if status.st_uid != uid:
        text = f"{home.path} belongs to another user. Set AILERON_HOME to a folder of your own."
        yield Finding(level="broken", topic="home", text=text)
        return
    loose = [path for path in _kept(home) if _is_loose(path)]
    for path in loose:
        text = f"Other users can open {path}. Run `chmod go= {path}`."
        yield Finding(level="broken", topic="home", text=text)
    if not loose:
        yield Finding(level="ok", topic="home", text=f"{home.path} is ready; only you can read it.")
    for load, path in ((load_settings, home.config), (load_policy, home.policy)):
        try:
            load(path)
        except FileProblems as error:
            yield Finding(level="broken", topic="settings", text=error.message)


def _kept(home: Home) -> Iterator[Path]:
    yield home.path
    for name in ("run", "log", "store", "actions", "aileron.db", "vault.json", "daemon.json"):
        if (path := home.path / name).exists():
            yield path


def _is_loose(path: Path) -> bool:
    try:
        return bool(stat.S_IMODE(path.stat().st_mode) & 0o077) and not _closed_above(path)
    except OSError:
        return False


def _closed_above(path: Path) -> bool:
    """Return whether a folder above keeps others out, so that the path's own mode does not matter."""
    above = path.resolve().parents
    return any(not stat.S_IMODE(each.stat().st_mode) & 0o011 for each in above)
