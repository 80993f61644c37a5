"""Listeners that are not the console: neither relay nor command line gives one a token, or a byte where it can be told apart.

Each of them does what another program of the same user can do: take the socket's name, take the
old port, edit `daemon.json`, pass questions on to the real console.
"""

import contextlib
import fcntl
import json
import os
import socket
import ssl
import threading
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from tests.support.impostors import listening, locked_by_another_process
from tests.support.mcp_harness import NEW, TOKEN, RawRelay, ThreadConsole, listen_tcp, listen_unix
from tests.support.server_harness import Console, aileron, aileron_json
from tests.support.tls_service import certificate


@pytest.fixture
def real_console(tmp_path: Path) -> Iterator[ThreadConsole]:
    running = ThreadConsole(tmp_path / "home")
    yield running
    running.stop()


def http(**content: Any) -> bytes:
    body = json.dumps(content).encode()
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    return head % len(body) + body


HEALTHY = http(status="ok")


def refused(home: Path, **environment: str) -> str:
    """Have the relay ask something; return its one sentence once it has given up."""
    relay = RawRelay(home, AILERON_WAIT_SECONDS="0.2", **environment)
    relay.send("server/discover", 1, _meta=NEW)
    answer = relay.answer(1)
    code, said = relay.outcome()
    assert code == 69
    assert said.count("\n") == 1
    assert TOKEN not in said
    assert answer["error"]["message"] in said
    return said


APPROVAL = "act-20260101T000000-0123456789abcdef"
RUN = ("action", "run", "get-draft", "--arg", "id=the-secret-argument")
COMMANDS = [("status",), RUN, ("open", "approval", APPROVAL)]


def all_refused(home: Path) -> list[str]:
    """Have the relay and some commands ask; return what each says once it has given up."""
    said = [aileron(*command, home=home, code=69).stderr for command in COMMANDS]
    return [refused(home, AILERON_TOKEN=TOKEN), *said]


def test_a_socket_of_another_process_than_the_owner_gets_not_one_byte(home: Path) -> None:
    """It is connected to, the kernel says whose it is, and nothing is sent. Exit 69."""
    with (
        locked_by_another_process(home),
        listening(listen_unix(home / "run" / "console.sock"), HEALTHY) as listener,
    ):
        relay, *commands = all_refused(home)
    assert len(listener.heard) > len(COMMANDS), "it was connected to"
    assert b"".join(listener.heard) == b""
    assert "is not the console" in relay
    assert all("does not own" in each for each in commands)


def test_in_a_home_that_nobody_holds_no_listener_is_even_connected_to(home: Path) -> None:
    """Neither the home's socket, nor what `daemon.json` names; a shared lock is a reader's, and holds nothing."""
    elsewhere = home.parent / "s"
    with (
        listening(listen_unix(home / "run" / "console.sock"), HEALTHY) as own,
        listening(listen_tcp(), HEALTHY) as tcp,
        listening(listen_unix(elsewhere), HEALTHY) as unix,
    ):
        url = f"http://127.0.0.1:{tcp.port}"
        entry = {"version": 1, "url": url, "socket": str(elsewhere), "pid": os.getpid()}
        (home / "daemon.json").write_text(json.dumps(entry))
        assert all("No console is running on" in each for each in all_refused(home))
        descriptor = os.open(home, os.O_RDONLY)
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        all_refused(home)
        os.close(descriptor)
    assert (own.heard, tcp.heard, unix.heard) == ([], [], [])


@pytest.mark.parametrize(
    "answer",
    [
        HEALTHY,
        http(status="ok", proof="0" * 64),
        http(status="ok", proof=None),
        http(status="ok", proof=sha256(TOKEN.encode()).hexdigest()),
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n[]",
        b"HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Bearer\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 307 Moved\r\nLocation: /v1/health\r\nContent-Length: 0\r\n\r\n",
        b"\x00\xff" * 50,
    ],
)
def test_a_listener_on_the_port_gets_a_question_and_no_token(tmp_path: Path, answer: bytes) -> None:
    """It cannot prove that it knows the token, whatever it answers."""
    with listening(listen_tcp(), answer) as listener:
        url = f"http://127.0.0.1:{listener.port}"
        said = refused(tmp_path / "home", AILERON_URL=url, AILERON_TOKEN=TOKEN)
    heard = b"".join(listener.heard)
    assert heard.startswith(b"GET /v1/health HTTP/1.1\r\n")
    assert b"Aileron-Challenge: " in heard
    assert TOKEN.encode() not in heard
    assert sha256(TOKEN.encode()).hexdigest().encode() not in heard
    assert b"uthorization" not in heard
    assert b"/mcp" not in heard
    assert "no token was sent" in said


def test_the_console_proves_itself_on_its_port(real_console: ThreadConsole, tmp_path: Path) -> None:
    """Where only the port can be reached, the session goes on over it.

    AILERON_URL may name a port that is somebody else's by now: if there is a socket, that is taken instead.
    """
    with listening(listen_tcp(), HEALTHY) as listener:
        url = f"http://127.0.0.1:{listener.port}"
        relay = RawRelay(real_console.home, AILERON_URL=url, AILERON_TOKEN=TOKEN)
        assert "result" in relay.handshake()
        assert relay.end() == (0, "")
    assert listener.heard == []
    url = f"http://127.0.0.1:{real_console.port}"
    relay = RawRelay(tmp_path / "elsewhere", AILERON_URL=url, AILERON_TOKEN=TOKEN)
    assert "result" in relay.handshake()
    relay.send("tools/call", 1, name="read_inbox", arguments={})
    assert relay.answer(1)["result"]["isError"] is False
    assert relay.end() == (0, "")


def test_passing_the_question_on_to_the_console_proves_nothing(real_console: ThreadConsole) -> None:
    """The port stands in the proof, so one for another port is worthless."""
    sock = listen_tcp()
    heard: list[bytes] = []

    def pass_on() -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = sock.accept()
                with connection, socket.create_connection(("127.0.0.1", real_console.port)) as real:
                    heard.append(connection.recv(65536))
                    real.sendall(heard[-1])
                    connection.sendall(real.recv(65536))
                    connection.settimeout(2)
                    heard.append(connection.recv(65536))

    thread = threading.Thread(target=pass_on)
    thread.start()
    url = f"http://127.0.0.1:{sock.getsockname()[1]}"
    try:
        refused(real_console.home / "elsewhere", AILERON_URL=url, AILERON_TOKEN=TOKEN)
    finally:
        sock.shutdown(socket.SHUT_RDWR)
        sock.close()
        thread.join(60)
    assert b"Aileron-Challenge" in heard[0]
    assert TOKEN.encode() not in b"".join(heard)


def test_any_other_address_is_refused_with_the_forms_there_are(tmp_path: Path) -> None:
    for url in (
        *("http://localhost:80", "http://127.0.0.1", "http://127.0.0.1:1@evil.example:80"),
        *("http://0.0.0.0:80", "https://127.0.0.1:1", "ftp://127.0.0.1:1", "127.0.0.1:80"),
    ):
        said = refused(tmp_path / "home", AILERON_URL=url, AILERON_TOKEN=TOKEN)
        assert "AILERON_URL must be" in said, url


@pytest.mark.parametrize("right_pin", [True, False])
def test_over_tls_only_a_pinned_console_is_sent_anything(tmp_path: Path, right_pin: bool) -> None:
    both = certificate(tmp_path, "x")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(both)
    der = ssl.PEM_cert_to_DER_cert(both.read_text().partition("-----BEGIN PRIVATE")[0])
    pin = sha256(der).hexdigest() if right_pin else "0" * 64
    tcp = listen_tcp()
    url = f"https://127.0.0.1:{tcp.getsockname()[1]}"
    environment = {"AILERON_URL": url, "AILERON_TOKEN": TOKEN, "AILERON_CERT_SHA256": pin.upper()}
    answer = http(jsonrpc="2.0", id=1, result={"from": "tls"})
    with listening(context.wrap_socket(tcp, server_side=True), answer) as listener:
        if right_pin:
            relay = RawRelay(tmp_path / "home", **environment)
            relay.send("server/discover", 1, _meta=NEW)
            assert relay.answer(1)["result"] == {"from": "tls"}
            assert relay.end() == (0, "")
        else:
            assert "is not the one" in refused(tmp_path / "home", **environment)
    assert (TOKEN.encode() in b"".join(listener.heard)) == right_pin


def test_a_home_of_another_user_is_refused(tmp_path: Path) -> None:
    """Whoever owns the folder could hold its lock and be believed."""
    if os.getuid() != 0:
        pytest.skip("giving a folder away needs root")
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    descriptor = os.open(home, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    with listening(listen_unix(home / "run" / "console.sock"), HEALTHY) as listener:
        os.chown(home, 12345, 12345)
        said = refused(home, AILERON_TOKEN=TOKEN)
    os.close(descriptor)
    assert listener.heard == []
    assert "another user" in said


def misled(home: Path, port: int) -> Path:
    elsewhere = home.parent / "elsewhere.sock"
    content = {
        "version": 1, "url": f"http://127.0.0.1:{port}", "socket": str(elsewhere),
        "pid": os.getpid(), "started_at": "2026-01-01T00:00:00.000Z",
    }  # fmt: skip
    (home / "daemon.json").write_text(json.dumps(content))
    return elsewhere


def test_an_edited_daemon_json_leads_nobody_astray(console: Console) -> None:
    """The running console is found by its lock; what the file says is not asked.

    Nor once it has stopped, and its port, its name and its address file are in other hands.
    """
    home = console.home
    with (
        listening(listen_tcp()) as on_port,
        listening(listen_unix(misled(home, on_port.port))) as on_socket,
    ):
        assert aileron_json("status", home=home)["url"] == console.url
        assert aileron_json("action", "run", "list-drafts", home=home)["status"]
        opened = aileron_json("open", "approval", APPROVAL, home=home, env={"DISPLAY": ""})
    assert opened["url"].startswith(console.url + "/review/")
    assert on_port.heard == on_socket.heard == []
    console.end()
    with (
        listening(listen_tcp(console.port)) as on_port,
        listening(listen_unix(misled(home, console.port))) as on_socket,
    ):
        for command in COMMANDS:
            aileron(*command, home=home, code=69)
    assert on_port.heard == on_socket.heard == []
