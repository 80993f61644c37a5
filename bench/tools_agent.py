"""Makes calls of an MCP server over stdio and prints how long each took; standard library only.

    python tools_agent.py '{"server": [...], "rounds": 100}'

Its last argument alone counts, so that a launched agent's own may stand before it.
"""

import json
import subprocess
import sys
import time

_CALLS = {
    "Read": [{"file_path": "src/module_7.py"}],
    "Edit": [
        {"file_path": "notes.txt", "old_string": "one", "new_string": "two"},
        {"file_path": "notes.txt", "old_string": "two", "new_string": "one"},
    ],
    "Bash": [{"command": "true"}],
    "Grep": [{"pattern": "def function_1[0-9]"}],
}


def main() -> None:
    job = json.loads(sys.argv[-1])
    server = subprocess.Popen(job["server"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert server.stdin is not None
    assert server.stdout is not None
    last = 0

    def send(message: dict[str, object]) -> None:
        assert server.stdin is not None
        server.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        server.stdin.flush()

    def ask(method: str, params: dict[str, object]) -> dict[str, object]:
        nonlocal last
        last += 1
        send({"id": last, "method": method, "params": params})
        while True:
            assert server.stdout is not None
            answer = json.loads(server.stdout.readline())
            if answer.get("id") == last:
                return answer["result"]

    client = {"name": "bench", "version": "1"}
    ask("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client})
    send({"method": "notifications/initialized"})
    took: dict[str, list[float]] = {}
    for number in range(-6, job["rounds"]):  # the first few warm it up
        for name, given in _CALLS.items():
            began = time.perf_counter()
            answer = ask("tools/call", {"name": name, "arguments": given[number % len(given)]})
            lasted = time.perf_counter() - began
            if answer.get("isError") or "pending_approval" in json.dumps(answer):
                raise SystemExit(f"{name}: {json.dumps(answer)[:600]}")
            if number >= 0:
                took.setdefault(name, []).append(lasted)
    print("FIGURES " + json.dumps(took), flush=True)
    server.stdin.close()
    server.wait()


main()
