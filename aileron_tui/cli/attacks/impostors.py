"""Attacks by a program that answers in the console's place, to be given tokens and passphrases."""

import contextlib
import json
import subprocess
import sys
from collections.abc import Generator
from typing import Final

from aileron_core.errors import AileronError, ConsoleUnavailable
from aileron_core.home.client import HomeClient
from aileron_tui.cli.attacks.arena import HELLO, Arena, Attack, BrokeError, must
from aileron_tui.cli.runtime import core_thread

_LISTENS: Final = """
import socket, sys
where, real = sys.argv[1], int(sys.argv[2])
s = socket.socket(socket.AF_UNIX if where else socket.AF_INET)
s.bind(where or ("127.0.0.1", 0))
s.listen()
own = s.getsockname()[1]
print(own, flush=True)
answer = b'HTTP/1.1 200 OK\\r\\nContent-Type: application/json\\r\\nContent-Length: 15\\r\\n\\r\\n{"status":"ok"}'
while True:
    c, _ = s.accept()
    try:
        c.settimeout(5)
        data = c.recv(65536)
        head, _, body = data.partition(b"\\r\\n\\r\\n")
        stated = [int(each[15:]) for each in head.split(b"\\r\\n") if each[:15].lower() == b"content-length:"]
        while stated and len(body) < stated[0] and (chunk := c.recv(65536)):
            body, data = body + chunk, data + chunk
        print(data, flush=True)
        if real:  # pass the question on to the real console, and its answer back
            r = socket.create_connection(("127.0.0.1", real), 5)
            r.sendall(data.replace(b":%d" % own, b":%d" % real))
            answer = r.recv(65536)
        c.sendall(answer)
    except OSError:
        pass
    c.close()
"""


@contextlib.contextmanager
def _impostor(arena: Arena, where: str = "", real: int = 0) -> Generator[str]:
    """Have another process listen at *where*, or a port, and yield that; what it hears is judged at the end."""
    command = [sys.executable, "-I", "-c", _LISTENS, where, str(real)]
    with subprocess.Popen(command, cwd=arena.folder, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.kill()
        heard = process.stdout.read()
    must(arena.agent["token"] not in heard, "it was given the agent's token")
    must(arena.passphrase not in heard, "it was given the passphrase")


def _relay(arena: Arena, **env: str) -> None:
    """Have an agent's relay, which holds its token, look for the console."""
    env = {"AILERON_URL": "", "AILERON_TOKEN": arena.agent["token"], **env}
    env |= {"AILERON_HOME": str(arena.home.path), "AILERON_WAIT_SECONDS": "0.3"}
    arena.run([sys.executable, "-I", "-m", "aileron_mcp.relay"], f"{json.dumps(HELLO)}\n", env=env)


def _unlock(arena: Arena) -> bool:
    """Unlock the vault as `aileron vault unlock` does; return whether somebody was taken for the console."""
    frame = {"UnlockVault": {"passphrase": arena.passphrase}}
    try:
        HomeClient(arena.home.path).request("POST", "/v1/intents", frame, timeout=10.0)
    except ConsoleUnavailable:
        return False
    except AileronError:
        pass  # it is unlocked already
    return True


def _at_the_port(arena: Arena) -> str:
    with _impostor(arena) as port:
        _relay(arena, AILERON_URL=f"http://127.0.0.1:{port}")
    return "it has no proof that it knows the token, and is sent none"


def _passing_on(arena: Arena) -> str:
    with _impostor(arena, real=arena.port) as port:
        _relay(arena, AILERON_URL=f"http://127.0.0.1:{port}")
    return "the console's proof names the console's own address"


def _address_file(arena: Arena) -> str:
    arena.spoiled = True
    with _impostor(arena) as port:
        told = json.loads(arena.home.daemon_file.read_text("utf-8"))
        told |= {"url": f"http://127.0.0.1:{port}", "socket": str(arena.folder / "other.sock")}
        arena.home.daemon_file.write_text(json.dumps(told), "utf-8")
        _relay(arena)
        _unlock(arena)
    return "the console is found by the lock that it holds"


def _socket(arena: Arena) -> str:
    arena.spoiled = True
    arena.home.socket.rename(arena.home.socket.with_name("moved"))
    with _impostor(arena, where=str(arena.home.socket)):
        must(not _unlock(arena), "a command took it for the console")
        _relay(arena)
    return "the kernel says that it does not hold the home's lock, and it is sent nothing"


def _second_owner(arena: Arena) -> str:
    other = core_thread(arena.home, [arena.route])
    try:
        other.start()
    except AileronError:
        return "the home has an owner, and the second is refused"
    other.stop()
    raise BrokeError("it opened")


ATTACKS = (
    Attack("server-at-the-port", "Another server answers at the address that an agent's relay was given.", _at_the_port),
    Attack("server-in-between", "Another server passes questions on to the console, to show its proof.", _passing_on),
    Attack("edited-address", "`daemon.json` leads relay and command line to another server.", _address_file),
    Attack("replaced-socket", "Another process listens in place of the home's socket while you unlock the vault.", _socket),
    Attack("second-owner", "A second console opens the same home, to approve what the first one shows.", _second_owner),
)  # fmt: skip
