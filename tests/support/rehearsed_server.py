"""An MCP server whose calls are rehearsed, in a process of its own as an ordinary user.

    with rehearsed_server({"a.txt": "one\n"}) as server:
        call = server.call("edit", {"path": "a.txt", "text": "two\n"})
        assert call.preview()["output"]["changes"] == ["changed a.txt"]

The server is `notes_server.py`. What is not rehearsed is answered with `{"for real": ...}`.
"""

import asyncio
import contextlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tests.support import making
from tests.support.ordinary import AS_ORDINARY, OWNS, give, ordinary_folder

ROOT = Path(__file__).resolve().parents[2]
SERVER = Path(__file__).with_name("notes_server.py")


@dataclass
class Call:
    """One call, as the gate makes it: first a preview, perhaps several, then the effect."""

    server: "RehearsedServer"
    number: int
    tool: str
    args: dict[str, Any]

    def preview(self) -> dict[str, Any]:
        return self._ask(read_only=True)

    def commit(self) -> dict[str, Any]:
        return self._ask(read_only=False)

    def _ask(self, **how: bool) -> dict[str, Any]:
        return self.server.ask(call=self.number, tool=self.tool, args=self.args, **how)


@dataclass
class RehearsedServer:
    """The process, and the folder that the server may write."""

    process: "subprocess.Popen[str]"
    home: Path
    project: Path
    _calls: int = 0

    def call(self, tool: str, **args: Any) -> Call:
        self._calls += 1
        return Call(self, self._calls, tool, args)

    def undo(self, done: dict[str, Any]) -> dict[str, Any]:
        return self.ask(undo=done["undo"])

    def told(self) -> list[str]:
        """Return what those around it were told: `differs`, `ended`."""
        return self.ask(told=True)["told"]

    def ask(self, **what: Any) -> dict[str, Any]:
        assert self.process.stdout is not None
        print(json.dumps(what), file=self.process.stdin, flush=True)
        line = self.process.stdout.readline()
        assert line, "the process has ended"
        return json.loads(line)

    def tree(self) -> dict[str, str]:
        """Return the content of each file of the project, by its path."""
        files = (each for each in sorted(self.project.rglob("*")) if each.is_file())
        return {str(each.relative_to(self.project)): each.read_text() for each in files}


@contextlib.contextmanager
def rehearsed_server(
    files: dict[str, str],
    write: Sequence[str] = (".",),
    *,
    previews: dict[str, Any] | None = None,
    env: dict[str, str] | None = None,
) -> Iterator[RehearsedServer]:
    """Yield a server on a project with *files*, of which it may write the paths *write*."""
    with ordinary_folder() as folder:
        for name in ("aileron", "person", "project"):
            (folder / name).mkdir(mode=0o700)
        shutil.copy(SERVER, folder / "server.py")
        for name, text in files.items():
            making.program(folder / "project" / name, text, 0o644)
        give(folder)
        program = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from tests.support.rehearsed_server import main; main()"
        terms = json.dumps({"write": list(write), "previews": previews or {}, "env": env or {}})
        with subprocess.Popen(
            [*AS_ORDINARY, sys.executable, "-I", "-c", program, str(folder), terms],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**os.environ, OWNS: str(folder)},
        ) as process:  # fmt: skip
            yield RehearsedServer(process, folder / "aileron", folder / "project")
            assert process.stdin is not None
            process.stdin.close()


def main() -> None:
    """Serve calls from standard input, on the folder and the terms on the command line."""
    asyncio.run(_serve_folder(Path(sys.argv[1]), json.loads(sys.argv[2])))


async def _serve_folder(folder: Path, terms: dict[str, Any]) -> None:
    from aileron_core.actions.model import ConnectorIdentity, Preview
    from aileron_core.canonical import JsonObject
    from aileron_core.connectors.builtin.channel import ToolChannels, WorkerRefused
    from aileron_core.connectors.protocol import Limits, OpResult
    from aileron_core.connectors.servers.box import BoxedServers
    from aileron_core.connectors.servers.definitions import from_listing
    from aileron_core.connectors.servers.rehearsal import Rehearsals, RehearsingConnector
    from aileron_core.connectors.servers.table import ServerTable
    from tests.support import notes_server

    class Real:
        """The server itself, of which nothing is started here."""

        identity = ConnectorIdentity(fqn="mcp://local/notes", version="0.0.0", hash="sha256:0")

        async def call(self, op: str, args: JsonObject, **how: Any) -> OpResult:
            return OpResult(output={"for real": op, "args": args, "text": "as it is"})

    project = folder / "project"
    table = ServerTable(
        program=(sys.executable, "-I", str(folder / "server.py")),
        files_read=(str(folder / "server.py"),),
        files_write=tuple(str(project / each) for each in terms["write"]),
        rehearse=True,
        env={"PROJECT": str(project), **terms["env"]},
        tools={each["name"]: "ask" for each in notes_server.TOOLS} | {"read": "look"},
        previews={name: Preview(**each) for name, each in terms["previews"].items()},
    )
    boxes = BoxedServers(folder / "aileron", folder / "person", {}, tree=Path)
    channels = ToolChannels()
    told: list[str] = []
    rehearsals = Rehearsals(
        "notes", table, from_listing(notes_server.TOOLS), home=folder / "aileron", channels=channels,
        boxes=boxes, ended=lambda _: told.append("ended"), differs=lambda _: told.append("differs"),
    )  # fmt: skip
    calls: dict[int, RehearsingConnector] = {}
    while line := await asyncio.to_thread(sys.stdin.readline):
        asked = json.loads(line)
        if "undo" in asked:
            worker, _, name = asked["undo"].partition(":")
            name, _, key = name.partition("@")
            answer: dict[str, Any] = {}
            try:
                await channels.get(key).call(worker, "undo", {"undo": name}, seconds=20)  # pyright: ignore[reportArgumentType]
            except WorkerRefused as error:
                answer = {"refused": error.message}
        elif "end" in asked:
            calls[asked["end"]].call_ended()
            answer = {}
        elif "told" in asked:
            answer = {"told": told}
        else:
            call = calls.setdefault(asked["call"], RehearsingConnector(Real(), rehearsals))  # pyright: ignore[reportArgumentType]
            how: Any = {"limits": Limits(), "read_only": asked["read_only"]}
            answer = asdict(await call.call(asked["tool"], asked["args"], **how))
        print(json.dumps(answer), flush=True)
    await rehearsals.close()


if __name__ == "__main__":
    main()
