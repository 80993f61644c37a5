"""A sandbox that reaches listed hosts only, as real TLS clients in it meet it (`--sandbox=hosts`).

As a program with FOLDER, which has `both.pem`, this file is such a sandbox, beside local TLS servers that stand for
its hosts. Clients in it are the system's curl and node, and `INSIDE`; what they met is printed as JSON.
"""

import asyncio
import errno
import ipaddress
import json
import os
import shutil
import socket
import ssl
import subprocess
import sys
import threading
from importlib.resources import files
from pathlib import Path
from typing import Any

from aileron_core.connectors.http.addresses import AddressGuard
from aileron_core.connectors.network.host_network import HostNetwork
from aileron_core.connectors.network.host_resolver import HostList
from aileron_core.console_port.view_models import RefusedHost
from aileron_core.containment.bubblewrap import SandboxSpec, bwrap_argv
from aileron_core.containment.support import find_sandbox_support
from tests.agents.agents_bench import Bench
from tests.support.ordinary import ordinary_folder, run_as_ordinary
from tests.support.tls_service import certificate

ADDRESS, OTHER = "127.0.0.5", "127.0.0.6"
PUBLIC = "93.184.215.14"
LISTED = ("alpha", "beta", "gamma", "meta", "loop", "public", "corporate", "broken", "own")
"""The last as the agent's own, the others as the person's."""
ADDRESSES = {
    "alpha.example": [ADDRESS],
    "beta.example": [ADDRESS],
    "gamma.example": [OTHER],
    "late.example": [OTHER],
    "meta.example": ["169.254.169.254"],
    "loop.example": ["127.0.0.1"],
    "public.example": [PUBLIC],
    "own.example": ["10.255.255.254"],
    "corporate.example": ["10.255.255.253"],
}

INSIDE = r'''
import json, os, socket, ssl, subprocess, sys, time
PORT, OUTSIDE = int(sys.argv[1]), int(sys.argv[2])
met = {}

def attempt(name, call):
    try:
        met[name] = call()
    except Exception as error:
        met[name] = f"{type(error).__name__} {getattr(error, 'errno', '')}"

def fetch(host, sni=None, address=None, size=0):
    context = ssl.create_default_context(cafile="both.pem")
    context.check_hostname = sni is None and address is None
    if not context.check_hostname:
        context.verify_mode = ssl.CERT_NONE
    raw = socket.create_connection((address or host, PORT), 20)
    with context.wrap_socket(raw, server_hostname=sni if sni is not None else host) as tls:
        tls.sendall(f"{size}\n".encode())
        got = b""
        while data := tls.recv(65536):
            got += data
    return got.decode() if size == 0 else len(got)

def plain():
    with socket.create_connection(("alpha.example", PORT), 20) as raw:
        raw.sendall(b"GET / HTTP/1.1\r\nHost: alpha.example\r\n\r\n")
        return raw.recv(10).decode()

def nameless():
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    raw = socket.create_connection(("alpha.example", PORT), 20)
    with context.wrap_socket(raw) as tls:
        return tls.recv(10).decode()

def connect(address, port):
    socket.create_connection((address, port), 5).close()
    return "connected"

def datagram():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as raw:
        raw.connect(("9.9.9.9", 53))
        return "sent"

def ask(name, wait=True):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as raw:
        raw.settimeout(20)
        raw.sendto(b"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00" + name + b"\x00\x01\x00\x01", ("127.0.0.1", 53))
        return raw.recv(512)[3] & 15 if wait else None

def ask_by_stream(name):
    with socket.create_connection(("127.0.0.1", 53), 20) as raw:
        query = b"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00" + name + b"\x00\x01\x00\x01"
        raw.sendall(len(query).to_bytes(2, "big") + query)
        return socket.inet_ntoa(raw.recv(512)[-4:])

def run(*words):
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    return f"{done.returncode} {done.stdout}"

attempt("alpha", lambda: fetch("alpha.example"))
attempt("beta", lambda: fetch("beta.example"))
attempt("big", lambda: fetch("beta.example", size=3000000))
attempt("other name", lambda: fetch("alpha.example", sni="evil.example"))
attempt("listed elsewhere", lambda: fetch("alpha.example", sni="gamma.example"))
attempt("nameless", nameless)
attempt("plain", plain)
attempt("by stream", lambda: ask_by_stream(b"\x05alpha\x07example\x00"))
attempt("broken by stream", lambda: ask_by_stream(b"\x06broken\x07example\x00"))
attempt("broken", lambda: ask(b"\x06broken\x07example\x00", wait=False))
attempt("unlisted", lambda: fetch("late.example"))
attempt("strange", lambda: ask(b"\x01a\x08\x1b[31m\xff\x00b\x00"))
attempt("metadata", lambda: fetch("meta.example"))
attempt("to loopback", lambda: fetch("loop.example"))
attempt("to private", lambda: fetch("own.example"))
attempt("listed private", lambda: socket.gethostbyname("corporate.example"))
attempt("public", lambda: connect("public.example", PORT))
attempt("public unlisted", lambda: connect("93.184.215.15", PORT))
attempt("loopback", lambda: connect("127.0.0.1", OUTSIDE))
attempt("loopback where hosts are served", lambda: fetch("alpha.example", address="127.0.0.1"))
attempt("metadata address", lambda: connect("169.254.169.254", 80))
attempt("datagram", datagram)
attempt("bind", lambda: socket.create_server(("127.0.0.1", 80)).close())
attempt("curl", lambda: run("/usr/bin/curl", "-s", "--cacert", "both.pem", f"https://alpha.example:{PORT}/"))
attempt("node", lambda: run("/usr/bin/node", "-e", """
process.env.NODE_OPTIONS = '';
fetch('https://beta.example:' + process.argv[1] + '/').then(r => r.text()).then(t => console.log(t.trim()), e => console.log(e.cause?.code ?? e));
""", str(PORT)))
met["proxies"] = [name for name in os.environ if "proxy" in name.lower()]
print("FIRST", flush=True)
sys.stdin.readline()
attempt("allowed", lambda: fetch("late.example"))
print(json.dumps(met), flush=True)
'''


class _Names:
    """The resolver, in the place of the system's; says what it was asked. Of broken.example it knows nothing: KeyError."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def resolve(self, host: str, port: int) -> list[str]:
        self.asked.append(host)
        return ADDRESSES[host]


def _serve_tls(folder: Path, port: int) -> None:
    """Serve TLS on both addresses: answers with the name that was asked for, or as many bytes as asked for."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "both.pem")
    context.sni_callback = lambda tls, name, _: setattr(tls, "asked", name)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        name = writer.get_extra_info("ssl_object").asked
        first = (await reader.readline()).strip()
        if first.startswith(b"GET"):
            while (await reader.readline()).strip():
                pass
            body = f"{name}\n".encode()
            writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: ")
            writer.write(str(len(body)).encode() + b"\r\n\r\n" + body)
        else:
            writer.write(b"x" * int(first) or name.encode())
        await writer.drain()
        writer.close()

    ready, loop = threading.Event(), asyncio.new_event_loop()

    async def serve() -> None:
        for address in (ADDRESS, OTHER, "127.0.0.1"):
            await asyncio.start_server(answer, address, port, ssl=context)
        ready.set()
        await asyncio.Event().wait()

    threading.Thread(target=lambda: loop.run_until_complete(serve()), daemon=True).start()
    assert ready.wait(20)


def try_network(folder: Path) -> None:
    with socket.create_server((ADDRESS, 0)) as free:
        port = free.getsockname()[1]
    _serve_tls(folder, port)
    listed = [f"{name}.example:{port}" for name in LISTED]
    project, own, private = (folder / name for name in ("project", "own", "private"))
    for each in (project, own, private):
        each.mkdir()
    shutil.copy(folder / "both.pem", project)
    init = files("aileron_core.containment").joinpath("sandbox_init.py").read_text("utf-8")
    (private / "start.py").write_text(init)
    (private / "resolv.conf").write_text("nameserver 127.0.0.1\n")
    spec = SandboxSpec(
        bwrap=shutil.which("bwrap") or "bwrap", project=project, home=folder / "person",
        private_home=own, launch_dir=private, socket=None, offline=True,
        resolv_conf=private / "resolv.conf",
    )  # fmt: skip
    reported: list[RefusedHost] = []
    names = _Names()
    allowed = [ipaddress.ip_network(f"{each}/32") for each in (ADDRESS, OTHER)]
    hosts, guard = HostList(listed[:-1], listed[-1:]), AddressGuard(allowed)
    network = HostNetwork(hosts, lambda one: not reported.append(one), resolver=names, guard=guard)
    support = find_sandbox_support(offline=True)
    start = ["/usr/bin/python3", "-I", "/run/aileron/private/start.py", "0:53"]
    outside = socket.create_server(("127.0.0.1", 0))
    agent = ["/usr/bin/python3", "-c", INSIDE, str(port), str(outside.getsockname()[1])]
    process = subprocess.Popen(
        bwrap_argv(spec, [*start, *agent]),
        env={"HOME": str(spec.home), "PATH": "/usr/bin:/bin", "NODE_EXTRA_CA_CERTS": "both.pem"},
        cwd="/", stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        preexec_fn=support.drop_privileges,
    )  # fmt: skip
    assert process.stdin
    assert process.stdout
    network.start(process.pid)
    first = process.stdout.readline()
    refused = {one.host: one.problem for one in reported}
    assert first == "FIRST\n", first
    network.hosts.allow(f"late.example:{port}")
    process.stdin.write("\n")
    process.stdin.close()
    met: dict[str, Any] = json.loads(process.stdout.readline())
    process.wait(60)
    network.stop()
    result = {"met": met, "refused": refused, "asked": names.asked, "bugs": [*network.bugs]}
    print(json.dumps({**result, "port": port, "uid": os.getuid(), "failure": network.failure}))


LOOKS_UP = """#!/usr/bin/env python3
import os, socket, time

def look_up(name="late.invalid"):
    try:
        return socket.getaddrinfo(name, 443)
    except socket.gaierror as error:
        return error.errno

print("FIRST", look_up(), flush=True)
until = time.monotonic() + 60
while look_up() == socket.EAI_NONAME and time.monotonic() < until:
    time.sleep(0.05)
look_up("other.invalid")
print("NOW", look_up(), [name for name in os.environ if "proxy" in name.lower()])
"""


def test_listed_names_are_reached_by_clients_that_know_no_proxy_and_nothing_else() -> None:
    """Over TLS that ends at the host itself, for the name that was asked for. An error of ours ends one exchange alone."""
    with ordinary_folder() as folder:
        certificate(folder, *(f"{each}.example" for each in ("alpha", "beta", "late")))
        result = json.loads(run_as_ordinary(Path(__file__), folder).stdout)
    met, refused = result["met"], result["refused"]
    assert (met["alpha"], met["beta"], met["big"]) == ("alpha.example", "beta.example", 3_000_000)
    assert (met["curl"], met["node"]) == ("0 alpha.example\n", "0 beta.example\n")
    assert (met["by stream"], met["proxies"]) == ("127.0.0.5", [])
    assert result["failure"] == ""
    assert result["met"]["broken by stream"].startswith("OSError")
    (bug,) = result["bugs"]
    assert bug.startswith("KeyError in test_host_network.py, line ")
    assert result["met"]["allowed"] == "late.example"
    assert result["uid"] != 0
    # What is not listed is reported and never looked up outside.
    assert met["unlisted"] == "gaierror -2"
    assert refused["late.example:443"] == ""
    assert met["strange"] == 3
    assert refused["a.\x1b[31m\\xff\x00b:443"] == "it is not a host name"
    asked = ["alpha", "beta", "meta", "loop", "own", "corporate", "public", "broken", "late"]
    assert {*result["asked"]} == {f"{name}.example" for name in asked}
    assert result["asked"].count("late.example") == 1  # once it was allowed
    # An address serves many names: another one, none, or no TLS at all is refused.
    for way in ("other name", "listed elsewhere", "nameless", "plain"):
        assert met[way] == f"ConnectionResetError {errno.ECONNRESET}", way
    port = result["port"]
    assert refused[f"gamma.example:{port}"].endswith("address of alpha.example")
    assert refused[f"evil.example:{port}"] == ""
    assert refused[f"alpha.example:{port}"] == "the connection does not name its host in TLS"
    # Loopback and metadata never; a private network only where the person listed the name.
    for way, host, problem in (
        ("metadata", "meta.example:443", "169.254.169.254, which is link-local"),
        ("to loopback", "loop.example:443", "127.0.0.1, which is loopback"),
        ("to private", "own.example:443", "10.255.255.254, which is a private address"),
    ):
        assert met[way] == "gaierror -2"
        assert problem in refused[host]
    assert (met["listed private"], met["public"]) == ("10.255.255.253", "connected")
    assert met["loopback"] == f"ConnectionRefusedError {errno.ECONNREFUSED}"
    assert met["loopback where hosts are served"] == f"ConnectionResetError {errno.ECONNRESET}"
    for way in ("public unlisted", "metadata address", "datagram"):
        assert met[way] == f"OSError {errno.ENETUNREACH}", way
    assert met["bind"] == f"PermissionError {errno.EACCES}"


def test_a_launched_agents_refused_host_reaches_the_person_who_allows_it(bench: Bench) -> None:
    env = {"HTTPS_PROXY": "http://proxy.invalid:3128", "CODEX_API_KEY": "x"}
    env |= bench.stand_in(LOOKS_UP)
    hosts = bench.console.hosts
    with bench.launched("codex", options=("--sandbox=hosts",), env=env) as running:
        assert bench.console.until(lambda: bool(hosts), 60)
        (session,) = hosts
        assert hosts[session]["refused"] == {"late.invalid:443": ""}
        bench.console.tell(session=session, allow_host="late.invalid:443")
        ended = running.end()
    assert f"FIRST {socket.EAI_NONAME}" in ended.output
    assert f"NOW {socket.EAI_AGAIN} []" in ended.output, "nobody outside knows it"
    assert "Hosts that the agent could not reach: other.invalid:443." in ended.output
    events = bench.events()
    assert events.index("session.host_refused") < events.index("session.host_allowed")


if __name__ == "__main__":
    try_network(Path(sys.argv[1]))
