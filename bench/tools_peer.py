"""Read, Edit, Bash and Grep as a bare stdio MCP server on the `mcp` package: no gate, no sandbox, no record."""

import asyncio
import os
import re
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

_TEXT = {"type": "object", "additionalProperties": {"type": "string"}}


def _grep(pattern: str) -> str:
    wanted, found = re.compile(pattern), list[str]()
    for folder, _, names in os.walk("."):
        for name in names:
            path = Path(folder, name)
            if wanted.search(path.read_text(encoding="utf-8")):
                found.append(str(path))
    return "\n".join(found)


def _edit(path: Path, old: str, new: str) -> str:
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1
    beside = path.with_suffix(".new")
    beside.write_text(text.replace(old, new), encoding="utf-8")
    beside.replace(path)
    return "done"


async def _bash(command: str) -> str:
    process = await asyncio.create_subprocess_exec(
        "bash", "-c", command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    out, err = await process.communicate()
    return f"{out.decode()}{err.decode()}exit code {process.returncode}"


async def _call(_ctx: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
    args = params.arguments or {}
    match params.name:
        case "Read":
            lines = Path(args["file_path"]).read_text(encoding="utf-8").splitlines()
            text = "\n".join(f"{number:6}\t{line}" for number, line in enumerate(lines, 1))
        case "Edit":
            text = _edit(Path(args["file_path"]), args["old_string"], args["new_string"])
        case "Bash":
            text = await _bash(args["command"])
        case _:
            text = _grep(args["pattern"])
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)])


async def _list(_ctx: Any, _params: Any) -> types.ListToolsResult:
    names = ("Read", "Edit", "Bash", "Grep")
    return types.ListToolsResult(
        tools=[types.Tool(name=name, input_schema=_TEXT) for name in names]
    )


async def _main() -> None:
    server = Server("bare", on_list_tools=_list, on_call_tool=_call)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


anyio.run(_main)
