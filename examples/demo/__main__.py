"""Open the console on a throw-away home, with a mail service and an agent beside it.

    python -m examples.demo

No special path: it installs the example connector and actions with the `aileron` command, starts
the example mail service, starts an agent (a real MCP client over `aileron-mcp`) and opens the
console. AILERON_DEMO_HOME=DIR keeps everything in DIR.
"""

import contextlib
import json
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parent.parent
AILERON = [sys.executable, "-I", "-m", "aileron_tui.cli"]
GMAIL = "gmail.googleapis.com:443"


def _prepare(home: Path) -> int:
    """Put the example suite into *home* and return the console's port."""
    environment = {**os.environ, "AILERON_HOME": str(home)}
    for command in (
        ["connector", "install", str(EXAMPLES / "connector")],
        ["action", "add", str(EXAMPLES / "actions")],
    ):
        subprocess.run([*AILERON, *command], env=environment, check=True, stdout=subprocess.DEVNULL)
    config = home / "config.toml"
    if not config.exists():
        with socket.create_server(("127.0.0.1", 0)) as probe:
            port = probe.getsockname()[1]
        config.write_text(f'[server]\nlisten = "127.0.0.1:{port}"\n', encoding="utf-8")
    return int(config.read_text(encoding="utf-8").rpartition(":")[2].strip().strip('"'))


@contextlib.contextmanager
def _mailbox(log: Path) -> Iterator[int]:
    """Run the example mail service and yield its port."""
    with log.open("w") as errors:
        service = subprocess.Popen(
            [sys.executable, "-m", "examples.mailbox", "--port", "0"],
            cwd=EXAMPLES.parent,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
    assert service.stdout is not None
    try:
        yield int(json.loads(service.stdout.readline())["port"])
    finally:
        service.terminate()
        service.wait()


@contextlib.contextmanager
def _agent(home: Path, log: Path) -> Iterator[str]:
    """Run the agent, in a second pane where there is tmux, and yield where its lines are seen."""
    command = [sys.executable, "-u", "-m", "examples.demo.agent"]
    if os.environ.get("TMUX") and shutil.which("tmux"):
        line = f"{shlex.join(command)} 2>&1 | tee {shlex.quote(str(log))}; sleep 86400"
        pane = subprocess.run(
            ["tmux", "split-window", "-d", "-v", "-l", "12", "-P", "-F", "#{pane_id}",
             "-c", str(EXAMPLES.parent), "-e", f"AILERON_HOME={home}", line],
            check=True, capture_output=True, text=True,
        ).stdout.strip()  # fmt: skip
        try:
            yield "in the pane below"
        finally:
            subprocess.run(["tmux", "kill-pane", "-t", pane], check=False, capture_output=True)
        return
    with log.open("w") as lines:
        agent = subprocess.Popen(
            command,
            cwd=EXAMPLES.parent,
            env={**os.environ, "AILERON_HOME": str(home)},
            stdin=subprocess.DEVNULL,
            stdout=lines,
            stderr=lines,
            start_new_session=True,
        )
    try:
        yield "after the console closes"
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(agent.pid, signal.SIGTERM)
        agent.wait()


def _sent(port: int) -> list[dict[str, object]]:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/_state", timeout=5) as answer:
        return json.load(answer)["sent"]


def demo(home: Path) -> int:
    """Run the demo on *home* and return the console's exit code."""
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    port = _prepare(home)
    log = home / "log" / "agent.log"
    with _mailbox(home / "log" / "mailbox.log") as mail, _agent(home, log) as where:
        (home / "log" / "ports.json").write_text(
            json.dumps({"console": f"http://127.0.0.1:{port}", "mail": f"http://127.0.0.1:{mail}"}),
            encoding="utf-8",
        )
        print(f"home          {home}")
        print(f"console       http://127.0.0.1:{port}")
        print(f"mail service  http://127.0.0.1:{mail}  (GET /_state tells what was sent)")
        print(f"agent's log   {log}  (its lines show {where})", flush=True)
        console = subprocess.run(
            [*AILERON, "console", "--accept-installed", "--route", f"{GMAIL}=127.0.0.1:{mail}"],
            env={**os.environ, "AILERON_HOME": str(home)},
            check=False,
        )
        sent = _sent(mail)
    print("\nThe agent's lines:")
    print(log.read_text(encoding="utf-8").rstrip() or "(none)")
    print(f"\nThe mail service sent {len(sent)} message{'' if len(sent) == 1 else 's'}.")
    return console.returncode


def main() -> int:
    """Run the demo on AILERON_DEMO_HOME, or on a home that is removed afterwards."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        print("The demo needs a terminal.", file=sys.stderr)
        return 1
    if kept := os.environ.get("AILERON_DEMO_HOME"):
        return demo(Path(kept).expanduser().absolute())
    with tempfile.TemporaryDirectory(prefix="aileron-demo-") as folder:
        return demo(Path(folder) / "home")


if __name__ == "__main__":
    sys.exit(main())
