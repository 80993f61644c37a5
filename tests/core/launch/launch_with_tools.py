"""Launches `codex` of a folder with built-in tools, both of whose workers run commands; see test_tool_sandboxes.py.

python launch_with_tools.py FOLDER SANDBOX
"""

import os
import sys
from pathlib import Path
from typing import Any, cast

from aileron_core.connectors.builtin.connector import worker_files
from aileron_core.launch.agents import AGENTS
from aileron_core.launch.launcher import launch
from aileron_core.launch.prepare import LaunchRequest
from aileron_core.settings import LaunchPaths
from aileron_tui.cli.launching import HomeSessions

WORKER = b"""
import json, os, struct, subprocess, sys
if sys.argv[1] == "commands":
    from pathlib import Path
    from aileron_core.connectors.builtin.worker.command_worker import serve
    sys.exit(serve(Path(sys.argv[2]), sys.argv[3:]))
def say(frame):
    data = json.dumps(frame).encode()
    os.write(1, struct.pack(">I", len(data)) + data)
say({"ready": True, "features": {}})
while head := sys.stdin.buffer.read(4):
    frame = json.loads(sys.stdin.buffer.read(struct.unpack(">I", head)[0]))
    done = subprocess.run(
        ["/bin/sh", "-c", frame["args"]["command"]], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        stdin=subprocess.DEVNULL, text=True,
    )
    say({"id": frame["id"], "result": {"stdout": done.stdout}})
"""
"""The files worker runs no program: in its place is one that does. That of commands is the real one."""


class _Person:
    def say(self, text: str) -> None:
        sys.stderr.write(f"{text}\n")


def main() -> None:
    folder, sandbox = Path(sys.argv[1]), cast("Any", sys.argv[2])
    request = LaunchRequest(
        agent=AGENTS["codex"],
        args=(),
        project=folder / "project",
        home=folder / "person",
        aileron_home=folder / "aileron",
        env=dict(os.environ),
        relay={},
        sandbox=sandbox,
        allow_abstract=True,
        gateway=False,
        typed_paths=LaunchPaths(read=("~/notes",)) if sandbox != "off" else LaunchPaths(),
        worker=lambda: {**worker_files(), "__main__.py": WORKER},
        builtins="beside",
    )
    sys.exit(launch(request, HomeSessions(request.aileron_home), cast("Any", _Person())))


if __name__ == "__main__":
    main()
