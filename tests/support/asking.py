"""Has `forked.py` run a command in this process's place: with its environment and descriptors, its signals, its end."""

import json
import os
import signal
import socket
import struct
import sys


def run_elsewhere() -> None:
    where, *command = sys.argv[1:]
    cwd = os.getcwd()  # noqa: PTH109 - to import pathlib takes longer than all else here
    request = json.dumps({"command": command, "env": dict(os.environ), "cwd": cwd}).encode()
    with socket.socket(socket.AF_UNIX) as parent:
        parent.connect(where)
        socket.send_fds(parent, [struct.pack("!I", len(request))], [0, 1, 2])
        parent.sendall(request)
        (pid,) = struct.unpack("!i", parent.recv(4))
        for each in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
            signal.signal(each, lambda number, _: os.kill(pid, number))
        (status,) = struct.unpack("!i", parent.recv(4))
    if os.WIFSIGNALED(status):
        signal.signal(os.WTERMSIG(status), signal.SIG_DFL)
        os.kill(os.getpid(), os.WTERMSIG(status))
    sys.exit(os.WEXITSTATUS(status))


run_elsewhere()
