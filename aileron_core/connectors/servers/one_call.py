"""Starts an MCP server, calls one tool of it and prints the answer: the command that a rehearsal runs.

    python -I one_call.py REQUEST

REQUEST is a JSON file with `program`, `env`, `cwd`, `initialize` (parameters), `meta` (what each request has
in the era without `initialize`), `tool` (as it was accepted) and `arguments`. It prints a JSON object:
`listed`, what the server lists under that name, and `answer`, the JSON-RPC message; where the tool is another
one, nothing is called, and `listed` is the whole listing; or `failed`, the end of a sentence about the server.
In a rehearsal the kernel ends what it leaves running.

Runs as a script, from a copy; imports the standard library only.
"""

import contextlib
import ctypes
import json
import subprocess
import sys
from typing import Any, cast

_MAX_LINE = 16 << 20
_MAX_PAGES = 50
_MEMBERS = ("title", "description", "outputSchema", "annotations")
_PR_SET_DUMPABLE = 4
_END_SECONDS = 0.3
"""How long a server may take to write what it has not written, once its input has ended."""


class _Failed(Exception):
    pass


class _Server:
    def __init__(self, asked: dict[str, Any]) -> None:
        try:
            self._process = subprocess.Popen(
                asked["program"], env=asked["env"], cwd=asked["cwd"],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            )  # fmt: skip
        except OSError as error:
            raise _Failed(f"did not start: {error.strerror}") from None
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._input, self._output = self._process.stdin, self._process.stdout
        self._last_id = 0
        self._meta: dict[str, Any] = {}
        if "result" in self.ask("initialize", asked["initialize"]):
            self._send({"method": "notifications/initialized"})
        else:
            self._meta = {"_meta": asked["meta"]}

    def tools(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        params: dict[str, Any] = {}
        for _ in range(_MAX_PAGES):
            result: Any = self.ask("tools/list", params).get("result")
            try:
                found += [{**each} for each in result["tools"]]
                if not isinstance(result.get("nextCursor"), str):
                    return found
            except (AttributeError, LookupError, TypeError):
                raise _Failed("listed no tools") from None
            params = {"cursor": result["nextCursor"]}
        raise _Failed(f"lists its tools on more than {_MAX_PAGES} pages")

    def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Send a request and return its answer; nothing that the server asks for meanwhile is offered."""
        self._last_id += 1
        self._send({"id": self._last_id, "method": method, "params": {**params, **self._meta}})
        while line := self._output.readline(_MAX_LINE):
            message: Any = None
            with contextlib.suppress(ValueError, RecursionError):
                message = json.loads(line)
            if not isinstance(message, dict):
                continue  # a program that prints beside the protocol
            found = cast("dict[str, Any]", message)
            if "method" not in found and found.get("id") == self._last_id:
                return found
            if "method" in found and "id" in found:
                none = {"code": -32601, "message": "Aileron does not offer this."}
                done: dict[str, Any] = (
                    {"result": {}} if found["method"] == "ping" else {"error": none}
                )
                self._send({"id": found["id"], **done})
        raise _Failed(f"ended before it answered {method}")

    def _send(self, message: dict[str, Any]) -> None:
        with contextlib.suppress(BrokenPipeError):  # the answer does not come then
            self._input.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
            self._input.flush()

    def end(self) -> None:
        with contextlib.suppress(OSError):
            self._input.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_END_SECONDS)


def _stated(tool: dict[str, Any]) -> dict[str, Any]:
    """Return what counts of a tool, as `ToolDefinition.members` has it."""
    kept = {name: tool[name] for name in _MEMBERS if tool.get(name)}
    return {"name": tool.get("name"), "inputSchema": tool.get("inputSchema"), **kept}


def main() -> None:
    """Do what the file named on the command line asks for."""
    ctypes.CDLL(None).prctl(
        _PR_SET_DUMPABLE, 0, 0, 0, 0
    )  # else the server could write to its output
    with open(sys.argv[1], "rb") as file:  # noqa: PTH123 - `pathlib` takes longer to import
        asked = json.load(file)
    said: dict[str, Any]
    try:
        server = _Server(asked)
        listed = server.tools()
        tool: dict[str, Any] = asked["tool"]
        named = [each for each in listed if each.get("name") == tool["name"]]
        said = {"listed": listed, "answer": None}
        if [_stated(each) for each in named] == [tool]:
            call = {"name": tool["name"], "arguments": asked["arguments"]}
            said = {"listed": named, "answer": server.ask("tools/call", call)}
        server.end()
    except _Failed as error:
        said = {"failed": str(error)}
    print(json.dumps(said))  # noqa: T201


if __name__ == "__main__":
    main()
