"""What the gateway is measured beside, each a process of its own: nginx, mitmproxy, LiteLLM; and ours.

mitmproxy and LiteLLM are installed from the package registry into environments that end with the
run (`AILERON_BENCH_PEERS` names a folder to keep them in). nginx is the system's (Debian: nginx-light
or nginx). Each is set for its best: one worker, no logs, nothing buffered, connections kept.
"""

import contextlib
import http.client
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path

from aileron_core.home.client import HomeClient
from aileron_core.home.layout import Home
from bench.console import SETTLED, Screen
from bench.gateway_wire import PATH
from bench.support import AILERON

_PATIENCE = 120.0
"""Seconds from start to the first answer: LiteLLM takes ten on a quiet machine."""
_INSTALL = 900.0

_NGINX = """
daemon off;
worker_processes 1;
pid {folder}/pid;
error_log stderr crit;
{user}
events {{ worker_connections 1024; }}
http {{
    access_log off;
    client_max_body_size 0;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    keepalive_requests 1000000;
    upstream model {{ server 127.0.0.1:{upstream}; keepalive 256; keepalive_requests 1000000; }}
    server {{
        listen 127.0.0.1:{port};
        location / {{
            proxy_pass http://model;
            proxy_http_version 1.1;
            proxy_set_header Connection "";
            proxy_buffering off;
            proxy_request_buffering off;
        }}
    }}
}}
"""
_STREAM = """
def requestheaders(flow):
    flow.request.stream = True

def responseheaders(flow):
    flow.response.stream = True
"""


class Absent(Exception):
    """A peer that cannot be had here; the text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Something that answers as the upstream does."""

    name: str
    port: int
    prefix: str = ""
    process: int = 0
    """Its process, for the memory of it and its children; 0: none."""
    started_mb: float = 0.0
    """Resident memory before the first load."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """How a target is started."""

    name: str
    start: Callable[[Path, int], contextlib.AbstractContextManager[Target]]
    """From a folder of its own and the upstream's port."""


def peers() -> list[Peer]:
    """Return all of them; `Absent` comes when one is started."""
    return [
        Peer(name="nginx", start=_nginx),
        Peer(name="mitmproxy", start=_mitmproxy),
        Peer(name="LiteLLM", start=_litellm),
        Peer(name="ours, serve", start=_serve),
        Peer(name="ours, console", start=_console),
    ]


def free_port() -> int:
    """Return a port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def environment(**more: str) -> dict[str, str]:
    """Return ours without what would send loopback through a proxy."""
    kept = {
        name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")
    }
    return {**kept, **more}


def resident(process: int) -> float:
    """Return the resident memory of *process* and all below it in MB; NaN where it is not known."""
    try:
        status = Path(f"/proc/{process}/status").read_text(encoding="ascii")
        children = Path(f"/proc/{process}/task/{process}/children").read_text(encoding="ascii")
    except OSError:
        return float("nan")
    kilobytes = next(line.split()[1] for line in status.splitlines() if line.startswith("VmRSS"))
    return int(kilobytes) / 1000 + sum(resident(int(child)) for child in children.split())


@contextlib.contextmanager
def running(
    command: list[str], log: Path, env: dict[str, str]
) -> Generator[subprocess.Popen[bytes], None, None]:
    """Run *command* with its output in *log*; end it and what it started, whatever happens."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=env,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        for signum in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signum)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(10)


def _answers(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    """Wait until *port* answers HTTP; any status will do."""
    until = time.monotonic() + _PATIENCE
    while time.monotonic() < until and process.poll() is None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
        try:
            connection.request("GET", PATH)
            connection.getresponse().read()
        except (OSError, http.client.HTTPException):
            time.sleep(0.1)
        else:
            return
        finally:
            connection.close()
    said = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    raise Absent(f"it did not start: {' / '.join(said[-3:])[:300] or 'it said nothing'}")


@contextlib.contextmanager
def _nginx(folder: Path, upstream: int) -> Generator[Target, None, None]:
    # An ordinary user's PATH lacks the folder that Debian puts it in.
    program = shutil.which("nginx", path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin")
    if program is None:
        raise Absent("nginx is not installed (Debian: apt install nginx-light)")
    port, log = free_port(), folder / "log"
    configuration = folder / "nginx.conf"
    user = "user root;" if os.getuid() == 0 else ""
    configuration.write_text(
        _NGINX.format(folder=folder, upstream=upstream, port=port, user=user), encoding="utf-8"
    )
    command = [program, "-p", str(folder), "-c", str(configuration), "-e", "stderr"]
    with running(command, log, environment()) as process:
        _answers(process, port, log)
        yield Target(name="nginx", port=port, process=process.pid, started_mb=resident(process.pid))


def _installed(folder: Path, package: str, program: str) -> tuple[Path, str]:
    """Put *package* into an environment of its own; return the program in it and the version."""
    kept = os.environ.get("AILERON_BENCH_PEERS")
    venv = (Path(kept).absolute() if kept else folder) / f"venv-{program}"
    python = venv / "bin" / "python"
    if not (venv / "bin" / program).exists():
        print(f"  installing {package}", file=sys.stderr, flush=True)
        for command in (
            [sys.executable, "-m", "venv", str(venv)],
            [str(python), "-m", "pip", "install", "-q", package],
        ):
            _run(command)
    name = package.partition("[")[0]
    asked = f"import importlib.metadata as m; print(m.version({name!r}))"
    return venv / "bin" / program, _run([str(python), "-c", asked]).strip()


def _run(command: list[str]) -> str:
    try:
        done = subprocess.run(
            command, check=False, capture_output=True, text=True, timeout=_INSTALL
        )
    except subprocess.TimeoutExpired:
        raise Absent(f"it was not installed within {_INSTALL:.0f} s") from None
    if done.returncode:
        said = done.stderr.strip().splitlines()
        raise Absent(f"it could not be installed: {said[-1] if said else done.returncode}")
    return done.stdout


@contextlib.contextmanager
def _mitmproxy(folder: Path, upstream: int) -> Generator[Target, None, None]:
    program, version = _installed(folder, "mitmproxy", "mitmdump")
    port, log, script = free_port(), folder / "log", folder / "stream.py"
    script.write_text(_STREAM, encoding="utf-8")
    command = [str(program), "-q", "-s", str(script), "--mode"]
    command += [f"reverse:http://127.0.0.1:{upstream}@127.0.0.1:{port}"]
    command += ["--set", f"confdir={folder}", "--set", "flow_detail=0"]
    with running(command, log, environment()) as process:
        _answers(process, port, log)
        yield Target(
            name=f"mitmproxy {version}",
            port=port,
            process=process.pid,
            started_mb=resident(process.pid),
        )


@contextlib.contextmanager
def _litellm(folder: Path, upstream: int) -> Generator[Target, None, None]:
    program, version = _installed(folder, "litellm[proxy]", "litellm")
    port, log = free_port(), folder / "log"
    configuration = folder / "config.yaml"
    configuration.write_text("model_list: []\n", encoding="utf-8")
    command = [str(program), "--config", str(configuration), "--host", "127.0.0.1"]
    command += ["--port", str(port), "--num_workers", "1", "--telemetry", "False"]
    env = environment(
        ANTHROPIC_API_BASE=f"http://127.0.0.1:{upstream}",
        ANTHROPIC_API_KEY="sk-bench",
        LITELLM_LOCAL_MODEL_COST_MAP="True",
        LITELLM_LOG="ERROR",
        # No key of its own to check: its fastest way, and it listens on loopback for a minute.
        LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY="true",
    )
    with running(command, log, env) as process:
        _answers(process, port, log)
        yield Target(
            name=f"LiteLLM {version}",
            port=port,
            prefix="/anthropic",
            process=process.pid,
            started_mb=resident(process.pid),
        )


def _home(folder: Path, upstream: int) -> Home:
    home = Home(folder / "home")
    home.prepare()
    home.config.write_text(
        f'[gateway]\nanthropic = "http://127.0.0.1:{upstream}"\n', encoding="utf-8"
    )
    return home


def _session(name: str, home: Home, process: int) -> Target:
    _, opened = HomeClient(home.path).request(
        "POST", "/v1/sessions", {"agent": "bench", "cwd": "/"}
    )
    return Target(
        name=name,
        port=int(opened["url"].rpartition(":")[2]),
        prefix=f"/gw/{opened['gateway_token']}",
        process=process,
        started_mb=resident(process),
    )


def _up(home: Home, process: subprocess.Popen[bytes], log: Path | None = None) -> None:
    """Wait until the console of *home* listens."""
    until = time.monotonic() + _PATIENCE
    while not home.socket.exists():
        if process.poll() is not None or time.monotonic() > until:
            said = log.read_text(encoding="utf-8", errors="replace") if log else ""
            raise Absent(f"it did not start: {said.strip()[-300:]}")
        time.sleep(0.05)


@contextlib.contextmanager
def _serve(folder: Path, upstream: int) -> Generator[Target, None, None]:
    home, log = _home(folder, upstream), folder / "log"
    command = [*AILERON, "serve", "--accept-installed"]
    with running(command, log, environment(AILERON_HOME=str(home.path))) as process:
        _up(home, process, log)
        time.sleep(SETTLED)
        yield _session("ours, serve", home, process.pid)


@contextlib.contextmanager
def _console(folder: Path, upstream: int) -> Generator[Target, None, None]:
    """On a pty that is read as a terminal reads it, all the time."""
    home = _home(folder, upstream)
    env = environment(AILERON_HOME=str(home.path), LANG="C.UTF-8")
    with Screen([*AILERON, "console", "--accept-installed"], env) as screen:
        ended = threading.Event()

        def drain() -> None:
            with contextlib.suppress(OSError):  # it ended
                while not ended.is_set():
                    screen.read(0.1)
                    screen.raw = b""

        reader = threading.Thread(target=drain)
        try:
            screen.shows("Nothing is waiting.")
            _up(home, screen.process)
            reader.start()
            time.sleep(SETTLED)
            yield _session("ours, console", home, screen.process.pid)
        finally:
            ended.set()
            if reader.is_alive():
                reader.join()
