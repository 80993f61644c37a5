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
import termios
import urllib.request
from collections.abc import Generator
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parent.parent
AILERON = [sys.executable, "-I", "-m", "aileron_tui.cli"]
GMAIL = "gmail.googleapis.com:443"
TERMINAL_BACK = (
    "\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?1015l"  # mouse
    "\x1b[?1004l\x1b[?2004l\x1b[?2048l\x1b[<u"  # focus, paste and size reports, key protocol
    "\x1b[?1049l\x1b[?7h\x1b[?25h\x1b[0m"  # alternate screen, wrapping, cursor, colour
)
"""What a console that was killed could not take back of the terminal any more."""


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
def _mailbox(log: Path) -> Generator[int]:
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


def _tmux(*words: str) -> str:
    return subprocess.run(
        ["tmux", *words], check=True, capture_output=True, text=True
    ).stdout.strip()


def _pane_size() -> tuple[int, int]:
    pane = os.environ.get("TMUX_PANE", "")
    size = _tmux("display-message", "-p", "-t", pane, "#{pane_width} #{pane_height}")
    width, height = size.split()
    return int(width), int(height)


def room_for_agent(width: int, height: int) -> tuple[tuple[str, ...], str]:
    """Return the tmux words that make the agent's pane, and where it is then seen.

    The console keeps 80 by 24 cells of the *width* by *height* that it has now: in less, a person
    reads a mail through a slit, and below 60 by 16 nothing can be decided.
    """
    if height >= 24 + 1 + 6:
        rows = min(12, height - 24 - 1)
        return ("split-window", "-v", "-l", str(rows)), "in the pane below"
    if width >= 80 + 1 + 40:
        columns = min(60, width - 80 - 1)
        return ("split-window", "-h", "-l", str(columns)), "in the pane beside it"
    return ("new-window", "-n", "agent"), "in the tmux window `agent`"


@contextlib.contextmanager
def _agent(home: Path, log: Path) -> Generator[str]:
    """Run the agent, in a second pane where there is tmux, and yield where its lines are seen."""
    command = [sys.executable, "-u", "-m", "examples.demo.agent"]
    if os.environ.get("TMUX") and shutil.which("tmux"):
        line = f"{shlex.join(command)} 2>&1 | tee {shlex.quote(str(log))}; sleep 86400"
        split, where = room_for_agent(*_pane_size())
        pane = _tmux(
            *split, "-d", "-P", "-F", "#{pane_id}",
            "-c", str(EXAMPLES.parent), "-e", f"AILERON_HOME={home}", line,
        )  # fmt: skip
        try:
            yield where
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


def _console(home: Path, mail: int) -> int:
    """Run the console until it ends, and return its exit code."""
    settings = termios.tcgetattr(sys.stdin)
    console = subprocess.run(
        [*AILERON, "console", "--accept-installed", "--route", f"{GMAIL}=127.0.0.1:{mail}"],
        env={**os.environ, "AILERON_HOME": str(home)},
        check=False,
    )
    if console.returncode >= 0:
        return console.returncode
    termios.tcsetattr(sys.stdin, termios.TCSANOW, settings)
    print(f"{TERMINAL_BACK}\nThe console was killed by signal {-console.returncode}.")
    return 128 - console.returncode


def _sent(port: int) -> list[dict[str, object]]:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/_state", timeout=5) as answer:
        return json.load(answer)["sent"]


def demo(home: Path, *, kept: bool) -> int:
    """Run the demo on *home*, which is *kept* or not, and return the console's exit code."""
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    port = _prepare(home)
    log = home / "log" / "agent.log"
    with _mailbox(home / "log" / "mailbox.log") as mail, _agent(home, log) as where:
        (home / "log" / "ports.json").write_text(
            json.dumps({"console": f"http://127.0.0.1:{port}", "mail": f"http://127.0.0.1:{mail}"}),
            encoding="utf-8",
        )
        print(f"home          {home}{'' if kept else '  (removed at the end)'}")
        print(f"console       http://127.0.0.1:{port}")
        print(f"mail service  http://127.0.0.1:{mail}  (GET /_state tells what was sent)")
        print(f"agent's log   {log}  (its lines show {where})", flush=True)
        code = _console(home, mail)
        sent = _sent(mail)
    print("\nThe agent's lines:")
    print(log.read_text(encoding="utf-8").rstrip() or "(none)")
    print(f"\nThe mail service sent {len(sent)} message{'' if len(sent) == 1 else 's'}.")
    return code


def main() -> int:
    """Run the demo on AILERON_DEMO_HOME, or on a home that is removed afterwards."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        print("The demo needs a terminal.", file=sys.stderr)
        return 1
    if kept := os.environ.get("AILERON_DEMO_HOME"):
        return demo(Path(kept).expanduser().absolute(), kept=True)
    with tempfile.TemporaryDirectory(prefix="aileron-demo-") as folder:
        return demo(Path(folder) / "home", kept=False)


if __name__ == "__main__":
    sys.exit(main())
