"""The bubblewrap command line of the sandbox in which a session's commands run, started by a worker of ours.

The worker starts every command in namespaces of its own, so it keeps the rights that this takes; a
command has none of them, and makes no user namespace. Which user the worker is inside does not matter to
commands: they are the person's own.
"""

from collections.abc import Iterable
from pathlib import Path

from aileron_core.containment.bubblewrap import SandboxSpec, sandbox_mounts
from aileron_core.containment.mounts import mount_arguments

_RIGHTS = ("CAP_SYS_ADMIN", "CAP_SETPCAP", "CAP_SETFCAP", "CAP_DAC_OVERRIDE")
"""To make namespaces and mounts, to give rights up, to be an ordinary user again, and to make overlays."""


def command_sandbox_argv(
    spec: SandboxSpec, worker: Iterable[str], writable: Iterable[Path] = ()
) -> list[str]:
    """Return the command that runs the commands worker in the sandbox *spec*.

    To be started before anything hostile can write to what *spec* mounts, with the environment that
    commands are to have, `SandboxSupport.drop_privileges` before it is executed, and pipes for
    standard input and output.

    Args:
        spec: without a `socket`; the worker's code is in its `launch_dir` or its `mounts`.
        worker: the interpreter and the worker's code.
        writable: folders beside the project that *spec* mounts writable for the person's own files; a
            rehearsal shows what changes there.
    """
    command = [
        spec.bwrap,
        # As user 0, bubblewrap needs no second user namespace, in which no overlay could be made.
        *("--unshare-user", "--uid", "0", "--gid", "0"),
        *("--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"),
        *(["--unshare-net"] if spec.offline else []),
        *("--die-with-parent", "--new-session", "--cap-drop", "ALL"),
        *(word for right in _RIGHTS for word in ("--cap-add", right)),
        *mount_arguments(sandbox_mounts(spec)),
        # Its links lead to the shell, the loader and the libraries of every later command.
        *("--remount-ro", "/"),
        *("--chdir", "/", "--"),
    ]
    return [
        *command,
        *worker,
        "commands",
        str(spec.project),
        "sandboxed",
        *(str(each) for each in writable),
    ]
