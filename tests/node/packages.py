"""The official TypeScript packages that `make node` fetched, and the processes that run them."""

import json
import os
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
_RESULT = re.compile(r"server-(?P<scenario>.+)-\d{4}-\d\d-\d\dT[\d-]+Z")


def node() -> str:
    """Return the Node to run; where there is none the test is left out, and in CI it fails."""
    chosen = HERE / "node_modules" / ".node"
    if not chosen.exists():
        sentence = "the official TypeScript MCP packages are not there: run `make node`"
        if os.environ.get("CI"):
            pytest.fail(sentence)
        pytest.skip(sentence)
    return chosen.read_text()


def environment() -> dict[str, str]:
    return {k: v for k, v in os.environ.items() if not k.lower().startswith(("node_", "npm_"))}


class Suite:
    """One release of the official conformance suite, *package* in node_modules; *options* say which scenarios to run."""

    def __init__(self, package: str, *options: str) -> None:
        self._options = options
        self._program = HERE / "node_modules" / package / "dist" / "index.js"

    def scenarios(self, *, scheduled: bool = False) -> set[str]:
        """Return the names of all its server scenarios, or (*scheduled*) of all that it would run."""
        options = self._options if scheduled and "--requirements" in self._options else ["--server"]
        command = [node(), str(self._program), "list", *options]
        said = subprocess.check_output(command, text=True, env=environment(), timeout=60)
        return set(re.findall(r"^ +- (\S+)", said, re.MULTILINE))

    def start(self, url: str, results: Path) -> subprocess.Popen[str]:
        """Run its scenarios at *url*; the results are whole once the process has ended."""
        program = ["--import", str(HERE / "patient.mjs"), str(self._program)]
        command = [node(), *program, "server", "--url", url, "-o", str(results), *self._options]
        env, both = environment(), subprocess.STDOUT
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=both, text=True, env=env)


def checks(results: Path) -> dict[str, dict[str, str]]:
    """Return the worst status of each check, by scenario: one may stand there more than once."""
    order = ["INFO", "SKIPPED", "SUCCESS", "WARNING", "FAILURE"]
    found: dict[str, dict[str, str]] = {}
    for folder in results.iterdir():
        name = _RESULT.fullmatch(folder.name)
        assert name is not None, folder.name
        worst = found.setdefault(name["scenario"], {})
        for check in json.loads((folder / "checks.json").read_text()):
            before = worst.get(check["id"], "INFO")
            worst[check["id"]] = max(before, check["status"], key=order.index)
    return found


class TypeScript:
    """A Node process with official clients in it, by name; it does what it is told by JSON lines (client.mjs)."""

    def __init__(self) -> None:
        command, env = [node(), str(HERE / "client.mjs")], environment()
        pipes: Any = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        self._process = subprocess.Popen(command, text=True, env=env, **pipes)

    def ask(self, do: str, client: str, **more: Any) -> Any:
        """Send a command and wait for its answer; raise the client's own message where it threw."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"do": do, "client": client, **more}) + "\n")
        self._process.stdin.flush()
        said = json.loads(self._process.stdout.readline())
        if "threw" in said:
            raise AssertionError(f"{said['threw']} (code {said['code']})")
        return said["value"]

    def call(self, client: str, tool: str, arguments: Mapping[str, Any]) -> Any:
        return self.ask("call", client, tool=tool, arguments=dict(arguments))

    def close(self) -> None:
        """Close every client, and fail if one of them, or the process, said anything on stderr."""
        try:
            _, said = self._process.communicate(timeout=60)
        finally:
            self._process.kill()
        assert (self._process.returncode, said) == (0, "")
