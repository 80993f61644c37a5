"""Codex without a model: it makes the tool calls that its last argument lists, and prints each answer.

`[["Read", {"file_path": "a"}], ...]`; the answers are lines of JSON, `{"tools": [...]}` first.
"""

import json
import os
import subprocess
import sys
import tomllib

given = next(each for each in sys.argv if each.startswith("mcp_servers.aileron="))
server = tomllib.loads(given)["mcp_servers"]["aileron"]
relay = subprocess.Popen(
    [server["command"], *server.get("args", ())],
    env={**os.environ, **server.get("env", {})},
    stdin=subprocess.PIPE,
    stdout=subprocess.PIPE,
    text=True,
)
number = 0


def ask(method, params=None, *, notify=False):
    global number
    message = {"jsonrpc": "2.0", "method": method, "params": params or {}}
    if not notify:
        number += 1
        message["id"] = number
    relay.stdin.write(json.dumps(message) + "\n")
    relay.stdin.flush()
    while not notify:
        answer = json.loads(relay.stdout.readline())
        if answer.get("id") == number:
            return answer.get("result", answer)
    return None


def say(**fields):
    print("ANSWER " + json.dumps(fields), flush=True)


client = {"name": "mcp-agent", "version": "1"}
ask("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client})
ask("notifications/initialized", notify=True)
say(tools=[tool["name"] for tool in ask("tools/list")["tools"]])
for name, arguments in json.loads(sys.argv[-1]):
    result = ask("tools/call", {"name": name, "arguments": arguments})
    while (result.get("structuredContent") or {}).get("status") == "pending_approval":
        waited = {"approval_id": result["structuredContent"]["approval_id"], "wait_seconds": 30}
        result = ask("tools/call", {"name": "check_action_status", "arguments": waited})
    text = "\n".join(part["text"] for part in result["content"])
    say(name=name, failed=result["isError"], text=text)
relay.stdin.close()
relay.wait()
