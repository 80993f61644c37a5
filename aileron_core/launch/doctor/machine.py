"""Whether this machine can contain an agent, and whether its terminal could be driven from inside."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from aileron_core.containment.git.sandboxed_git import find_git
from aileron_core.containment.linux_syscalls import SCOPE_ABI, landlock_abi
from aileron_core.containment.support import abstract_listeners, find_sandbox_support
from aileron_core.errors import AileronError
from aileron_core.launch.doctor import Finding

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
