"""The sandbox of one launch, from what was prepared: its mounts, the files of its home, its environment."""

import os
import shlex
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from aileron_core.containment.bubblewrap import (
    SANDBOX_LAUNCH_DIR,
    SandboxSpec,
    sandbox_mounts,
    writable_mounts,
)
from aileron_core.containment.git.prepare import GIT_WHY
from aileron_core.containment.mounts import Mount
from aileron_core.launch.named_programs import search_folders
from aileron_core.launch.prepare import LaunchRequest, PreparedLaunch
from aileron_core.launch.tools.prepared_tools import SYSTEM_PATH

RESOLV_CONF = "resolv.conf"
EMPTY_FILE = "empty"
"""A file of the launch's folder: what covers files that are hidden."""


def sandbox_spec(
    request: LaunchRequest,
    prepared: PreparedLaunch,
    *,
    launch_dir: Path,
    private_home: Path,
    socket: Path | None,
    git_mounts: tuple[Mount, ...],
    git_of_writable: tuple[Mount, ...] = (),
) -> SandboxSpec:
    """Return what the sandbox of a contained launch contains.

    Args:
        git_mounts: of the project's repositories.
        git_of_writable: of other folders that the agent may write.
    """
    assert prepared.support is not None
    mounts = [
        replace(each, source=launch_dir / EMPTY_FILE) if each.how == "hidden" else each
        for each in prepared.mounts
    ]
    why = "you let the agent write it"
    writable = [
        mount for each in prepared.paths.writable for mount in writable_mounts(each, (), why)
    ]
    return SandboxSpec(
        bwrap=prepared.support.bwrap,
        project=request.project,
        home=request.home,
        private_home=private_home,
        launch_dir=launch_dir,
        socket=socket,
        mounts=(*mounts, *writable, *git_of_writable),
        offline=request.own_network,
        resolv_conf=launch_dir / RESOLV_CONF if request.sandbox == "hosts" else None,
        git_mounts=git_mounts,
    )


def planned_mounts(request: LaunchRequest, prepared: PreparedLaunch) -> list[Mount]:
    """Return what the sandbox would contain; of repositories only that of the project itself, as nothing is made.

    Nothing where the agent is not contained.
    """
    if prepared.support is None:
        return []
    made = Path("<private>")
    spec = sandbox_spec(
        request,
        prepared,
        launch_dir=made,
        private_home=made / "home",
        socket=made / "session" / "s.sock",
        git_mounts=planned_git_mounts(request),
    )
    return sandbox_mounts(spec)


def planned_git_mounts(request: LaunchRequest) -> tuple[Mount, ...]:
    git = request.project / ".git"
    return (Mount(path=git, how="copy", why=GIT_WHY),) if git.exists() else ()


def write_home_files(own_home: Path, texts: Mapping[str, str]) -> None:
    """Write *texts* into the new private home, by their relative paths."""
    for name, text in texts.items():
        path = own_home / name
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def shell_profiles(path: str) -> dict[str, str]:
    """Return the profiles of the sandbox's home, by name, which keep *path* in a login shell.

    Codex runs each command in such a shell, and /etc/profile of many systems sets PATH anew.
    """
    quoted = shlex.quote(path)
    text = f'case ":$PATH:" in *:{quoted}:*) ;; *) export PATH={quoted}:"$PATH" ;; esac\n'
    return {".profile": text, ".zprofile": text}


def sandboxed_environment(request: LaunchRequest, prepared: PreparedLaunch) -> dict[str, str]:
    """Return the environment variables of the sandbox."""
    named = search_folders(prepared.named_programs, request.env.get("PATH", os.defpath))
    folders = dict.fromkeys((*prepared.tools.path, *named, *SYSTEM_PATH))
    path = os.pathsep.join([f"{SANDBOX_LAUNCH_DIR}/bin", *folders])
    return {**prepared.env, "HOME": str(request.home), "PATH": path}
