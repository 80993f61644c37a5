"""An MCP server over stdio that changes files, of the standard library alone; also what it lists."""

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

_TEXT = {"type": "string"}


def _tool(name: str, *required: str) -> dict[str, Any]:
    schema = {"type": "object", "properties": dict.fromkeys(required, _TEXT)}
    schema["required"] = [*required]
    return {"name": name, "description": f"To {name}.", "inputSchema": schema}


TOOLS = [
    _tool("append", "path", "text"), _tool("stamp", "path"), _tool("fail", "path"), _tool("read", "path"),
    _tool("drift", "path"), _tool("large"), _tool("leave"), _tool("connect", "path"),
    _tool("do", "path", "code"),
]  # fmt: skip


def _append(at: Path, asked: dict[str, Any]) -> str:
    with at.open("a") as file:
        file.write(asked["text"])
    (Path(os.environ["HOME"]) / "state").write_text("its own")
    return f"{at.name} has {at.stat().st_size} bytes"


def _fail(at: Path, asked: dict[str, Any]) -> str:
    at.write_text("half of it")
    raise ValueError("there is no room")


def _connect(at: Path, asked: dict[str, Any]) -> str:
    import socket

    socket.socket(socket.AF_INET, socket.SOCK_STREAM).close()
    return "connected"


def _do(at: Path, asked: dict[str, Any]) -> str:
    names: dict[str, Any] = {"at": at, "os": os, "said": "done"}
    exec(asked["code"], names)
    return names["said"]


_WORK: dict[str, Callable[[Path, dict[str, Any]], str]] = {
    "append": _append, "fail": _fail, "connect": _connect, "drift": _append, "do": _do,
    "read": lambda at, _: at.read_text(), "large": lambda _, __: "x" * 400_000,
    "stamp": lambda at, _: str(at.write_text(f"{time.time_ns()}\n")), "leave": lambda _, __: sys.exit(3),
}  # fmt: skip


def _result(asked: dict[str, Any]) -> dict[str, Any]:
    match asked["method"]:
        case "initialize":
            if "REFUSES" in os.environ:
                raise LookupError
            served = {"name": "notes", "version": "1"}
            known = {"capabilities": {"tools": {}}, "serverInfo": served}
            return {"protocolVersion": "2025-11-25", **known}
        case "tools/list":
            tools = [each | {"title": "new"} if each["name"] == "drift" else each for each in TOOLS]
            half = len(tools) // 2
            if "cursor" in asked["params"]:
                return {"tools": tools[half:]}
            return {"tools": tools[:half], "nextCursor": "2"}
        case "tools/call":
            name, args = asked["params"]["name"], asked["params"]["arguments"]
            print(f"{name} is called \x1b[2J", file=sys.stderr, flush=True)
            try:
                text = _WORK[name](Path(os.environ["PROJECT"], args.get("path", "")), args)
                return {"content": [{"type": "text", "text": text}]}
            except (OSError, ValueError) as error:
                return {"content": [{"type": "text", "text": str(error)}], "isError": True}
        case _:
            raise LookupError


def main() -> None:
    print(json.dumps({"jsonrpc": "2.0", "id": "p", "method": "roots/list"}), flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        if "id" not in asked or "method" not in asked:
            continue
        try:
            answer = {"result": _result(asked)}
        except LookupError:
            answer = {"error": {"code": -32601, "message": "no such method"}}
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **answer}), flush=True)


if __name__ == "__main__":
    main()
