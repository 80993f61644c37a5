"""The sandboxes of the built-in tools, beside that of the agent: made, and ready, before the agent starts.

bubblewrap finds what it mounts by paths. A sandbox that is made while the agent runs could be made of
what the agent has put there meanwhile, so none ever is.
"""

import contextlib
from collections.abc import Callable, Generator, Mapping
from dataclasses import replace
from pathlib import Path

from aileron_core.connectors.builtin.commit_recovery import commit_journal
from aileron_core.connectors.builtin.worker_process import ToolWorker, WorkerKind
from aileron_core.containment.bubblewrap import (
    SANDBOX_LAUNCH_DIR,
    SandboxSpec,
    bwrap_argv,
    command_sandbox_argv,
    make_home_links,
    sandbox_mounts,
)
from aileron_core.containment.mounts import Mount
from aileron_core.containment.programs import own_interpreter
from aileron_core.containment.support import SandboxSupport
from aileron_core.launch.launch_dir import LaunchDir
from aileron_core.launch.prepare import LaunchRequest, PreparedLaunch
from aileron_core.launch.sandbox import (
    EMPTY_FILE,
    planned_git_mounts,
    sandbox_spec,
    shell_profiles,
    write_home_files,
)
from aileron_core.launch.tools.prepared_tools import PreparedTools
from aileron_core.launch.tools.relay import ToolRelay

_PRIVATE, _HOME, _WORKER = "private", "tools-home", "worker"


@contextlib.contextmanager
def contained_tools(
    request: LaunchRequest,
    prepared: PreparedLaunch,
    support: SandboxSupport,
    *,
    session_id: str,
    parent: Path,
    git_files: Mapping[str, str],
    git_mounts: tuple[Mount, ...],
    git_of_writable: tuple[Mount, ...] = (),
    say: Callable[[str], None] = lambda _: None,
) -> Generator[ToolRelay | None, None, None]:
    """Make both sandboxes, and yield their relay, attached to the console; None without built-in tools.

    Args:
        parent: where launches have their folders.
        git_files: the git settings of a private home.
        git_mounts: of the project's repositories.
        git_of_writable: of other folders that the session may write.
        say: called with what became of a commit that the end of the session met.

    Raises:
        Unavailable, ConsoleErrorResponse: see `ToolRelay.open`.
    """
    tools = prepared.builtin_tools
    if tools is None:
        yield None
        return
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(LaunchDir(parent))
        spec = tool_spec(
            request,
            prepared,
            folder=folder.path,
            git_mounts=git_mounts,
            git_of_writable=git_of_writable,
        )
        spec.private_home.mkdir(mode=0o700)
        profiles = shell_profiles(tools.env["PATH"])
        write_home_files(spec.private_home, {**profiles, **tools.files, **git_files})
        make_home_links(spec)
        folder.write(f"{_PRIVATE}/{EMPTY_FILE}", "")
        _write_program(folder, f"{_PRIVATE}/{_WORKER}", request)
        worker = _worker_argv(f"{SANDBOX_LAUNCH_DIR}/{_WORKER}")
        files, commands = (
            replace(spec, offline=not shared) for shared in tool_networks(request).values()
        )
        mounts = sandbox_mounts(spec)
        journal = stack.enter_context(
            commit_journal(request.aileron_home, session_id, spec.project, mounts, say)
        )
        argvs: dict[WorkerKind, list[str]] = {
            "files": bwrap_argv(files, [*worker, "files", str(request.project)]),
            "commands": command_sandbox_argv(
                commands, worker, filter(Path.is_dir, prepared.paths.writable), journal
            ),
        }
        yield stack.enter_context(
            _running(request, session_id, tools, folder.path, argvs, support, journal)
        )


@contextlib.contextmanager
def uncontained_tools(
    request: LaunchRequest, prepared: PreparedLaunch, *, session_id: str, parent: Path
) -> Generator[ToolRelay | None, None, None]:
    """Start both workers as plain processes, and yield their relay; None without built-in tools.

    Raises:
        Unavailable, ConsoleErrorResponse: see `ToolRelay.open`.
    """
    tools = prepared.builtin_tools
    if tools is None:
        yield None
        return
    with LaunchDir(parent) as folder:
        _write_program(folder, _WORKER, request)
        worker = _worker_argv(str(folder.path / _WORKER))
        argvs: dict[WorkerKind, list[str]] = {
            "files": [*worker, "files", str(request.project)],
            "commands": [*worker, "commands", str(request.project)],
        }
        with _running(request, session_id, tools, folder.path, argvs) as relay:
            yield relay


def tool_spec(
    request: LaunchRequest,
    prepared: PreparedLaunch,
    *,
    folder: Path,
    git_mounts: tuple[Mount, ...],
    git_of_writable: tuple[Mount, ...] = (),
) -> SandboxSpec:
    """Return what both sandboxes contain: what the agent's does, without what is the agent's own.

    They have one private home, so that a program is looked up where it is run.

    Args:
        folder: of the tools of this launch.
    """
    assert prepared.builtin_tools is not None
    spec = sandbox_spec(
        request,
        replace(prepared, mounts=prepared.builtin_tools.mounts),
        launch_dir=folder / _PRIVATE,
        private_home=folder / _HOME,
        socket=None,
        git_mounts=git_mounts,
        git_of_writable=git_of_writable,
    )
    return replace(spec, resolv_conf=None)  # none of them uses the launch's own resolver


def planned_tool_mounts(request: LaunchRequest, prepared: PreparedLaunch) -> list[Mount]:
    """Return what both would contain; see `planned_mounts`."""
    git_mounts = planned_git_mounts(request)
    return sandbox_mounts(
        tool_spec(request, prepared, folder=Path("<private>"), git_mounts=git_mounts)
    )


def tool_networks(request: LaunchRequest) -> Mapping[WorkerKind, bool]:
    """Return whether each sandbox, that for files first, has this machine's network."""
    return {"files": False, "commands": not request.own_network}


def _worker_argv(program: str) -> list[str]:
    return [str(own_interpreter()), "-I", program]


def _write_program(folder: LaunchDir, name: str, request: LaunchRequest) -> None:
    for path, content in request.worker().items():
        folder.write(f"{name}/{path}", content)


@contextlib.contextmanager
def _running(
    request: LaunchRequest,
    session_id: str,
    tools: PreparedTools,
    folder: Path,
    argvs: Mapping[WorkerKind, list[str]],
    support: SandboxSupport | None = None,
    journal: int | None = None,
) -> Generator[ToolRelay, None, None]:
    with contextlib.ExitStack() as stack:
        workers: list[ToolWorker] = []
        for kind, argv in argvs.items():
            worker = ToolWorker(
                kind,
                argv,
                env=tools.env,
                cwd=str(request.project),
                errors=folder / f"{kind}.errors",
                prepare=support.drop_privileges if support is not None else None,
                inherited=(journal,) if journal is not None and kind == "commands" else (),
            )
            stack.callback(worker.wait)
            stack.callback(worker.close_input)
            workers.append(worker)
        contained = support is not None
        relay = ToolRelay(request.aileron_home, session_id, workers, contained=contained)
        stack.callback(relay.stop)
        relay.open()
        yield relay
