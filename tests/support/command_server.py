"""Python with every command imported, which forks a process for each: none of them imports it first.

Where the subject is the start itself, tests start the program; `make test-all` always does.
"""

import atexit
import functools
import importlib
import json
import os
import pkgutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn


@functools.cache
def _command_server() -> socket.socket:
    """Start this worker's server of commands; it ends with the socket."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        words = [sys.executable, "-I", __file__, str(theirs.fileno())]
        server = subprocess.Popen(words, pass_fds=(theirs.fileno(),), stdin=subprocess.DEVNULL)
    atexit.register(server.wait)
    atexit.register(ours.close)
    return ours


def forked(
    command: Sequence[str], stdin: str, cwd: Path | None
) -> subprocess.CompletedProcess[str]:
    """Run one command in a process that need not import it first."""
    request = {"words": list(command[4:]), "env": dict(os.environ), "cwd": str(cwd or Path.cwd())}
    ours, theirs = socket.socketpair()
    with (
        ours,
        tempfile.TemporaryFile() as given,
        tempfile.TemporaryFile() as out,
        tempfile.TemporaryFile() as err,
    ):
        given.write(stdin.encode())
        given.seek(0)
        with theirs:
            socket.send_fds(_command_server(), [b"c"], [theirs.fileno()])
        files = [given.fileno(), out.fileno(), err.fileno()]
        socket.send_fds(ours, [json.dumps(request).encode()], files)
        ours.settimeout(60)
        code = int(ours.recv(16))
        out.seek(0)
        err.seek(0)
        printed = [stream.read().decode().replace("\r\n", "\n") for stream in (out, err)]
    return subprocess.CompletedProcess([*command], code, *printed)


def _command(request: dict[str, object], descriptors: list[int]) -> NoReturn:
    """Be the process of one command."""
    for number, descriptor in enumerate(descriptors):
        os.dup2(descriptor, number)
        os.close(descriptor)
    code: object = 1
    try:
        for number, name in enumerate(("stdin", "stdout", "stderr")):
            old = getattr(sys, name)
            new = open(  # noqa: SIM115, PTH123 - a descriptor, open to the end
                number, "w" if number else "r", encoding=old.encoding, errors=old.errors
            )
            setattr(sys, name, new)
            setattr(sys, f"__{name}__", new)
        os.environ.clear()
        os.environ.update(request["env"])  # type: ignore[call-overload]
        time.tzset()
        os.chdir(str(request["cwd"]))
        sys.argv[1:] = request["words"]  # type: ignore[assignment]
        from aileron_tui.cli import main

        main()
        code = 0
    except SystemExit as end:
        code = end.code
    except BaseException:
        traceback.print_exc()
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code if isinstance(code, int) else int(code is not None))


def _answer(connection: socket.socket) -> NoReturn:
    data, descriptors, _, _ = socket.recv_fds(connection, 1 << 20, 3)
    pid = os.fork()
    if pid == 0:
        connection.close()
        _command(json.loads(data), descriptors)
    for descriptor in descriptors:
        os.close(descriptor)
    _, status = os.waitpid(pid, 0)
    connection.sendall(str(os.waitstatus_to_exitcode(status)).encode())
    os._exit(0)


def main() -> None:
    import aileron_tui.cli

    for module in pkgutil.iter_modules(aileron_tui.cli.__path__, "aileron_tui.cli."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    sys.argv[0] = str(Path(aileron_tui.cli.__file__ or "").with_name("__main__.py"))
    control = socket.socket(fileno=int(sys.argv[1]))
    os.set_inheritable(control.fileno(), False)
    while True:
        data, descriptors, _, _ = socket.recv_fds(control, 1, 1)
        if not data:
            return
        connection = socket.socket(fileno=descriptors[0])
        if os.fork() == 0:
            control.close()
            _answer(connection)
        connection.close()
        while _ended():
            pass


def _ended() -> bool:
    try:
        return os.waitpid(-1, os.WNOHANG)[0] != 0
    except ChildProcessError:
        return False


if __name__ == "__main__":
    main()
