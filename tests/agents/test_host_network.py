"""A sandbox that reaches listed hosts only, as real TLS clients in it meet it (`--sandbox=hosts`)."""

import errno
import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.agents.agents_bench import Bench
from tests.support.ordinary import ordinary_folder, run_as_ordinary
from tests.support.tls import certificate

CHILD = Path(__file__).parent / "host_network_child.py"
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


@pytest.fixture(scope="module")
def result() -> Iterator[dict[str, Any]]:
    with ordinary_folder() as folder:
        certificate(folder, *(f"{each}.example" for each in ("alpha", "beta", "late")))
        yield json.loads(run_as_ordinary(CHILD, folder).stdout)


def test_a_listed_name_is_reached_by_clients_that_know_no_proxy(result: dict[str, Any]) -> None:
    """Two names at one address, each over TLS that ends at the host itself: certificates are checked."""
    met = result["met"]
    assert (met["alpha"], met["beta"], met["big"]) == ("alpha.example", "beta.example", 3_000_000)
    assert (met["curl"], met["node"]) == ("0 alpha.example\n", "0 beta.example\n")
    assert met["by stream"] == "127.0.0.5"
    assert met["proxies"] == []
    assert result["failure"] == ""


def test_a_connection_names_the_host_that_was_asked_for(result: dict[str, Any]) -> None:
    """An address serves many names: another one, none, or no TLS at all is refused, and reported."""
    met, refused = result["met"], result["refused"]
    for way in ("other name", "listed elsewhere", "nameless", "plain"):
        assert met[way] == f"ConnectionResetError {errno.ECONNRESET}", way
    assert refused[f"gamma.example:{result['port']}"].endswith("address of alpha.example")
    assert refused[f"evil.example:{result['port']}"] == ""
    assert (
        refused[f"alpha.example:{result['port']}"] == "the connection does not name its host in TLS"
    )


def test_a_name_that_is_not_listed_does_not_exist(result: dict[str, Any]) -> None:
    """It is reported and never looked up outside: not even as a question does it leave the machine."""
    met, refused = result["met"], result["refused"]
    assert met["unlisted"] == "gaierror -2"
    assert refused["late.example:443"] == ""
    strange = "a.\x1b[31m\\xff\x00b:443"
    assert met["strange"] == 3
    assert refused[strange] == "it is not a host name"
    assert {*result["asked"]} == {
        f"{name}.example"
        for name in (
            "alpha",
            "beta",
            "meta",
            "loop",
            "own",
            "corporate",
            "public",
            "broken",
            "late",
        )
    }
    assert result["asked"].count("late.example") == 1  # once it was allowed


def test_an_error_of_ailerons_ends_one_exchange_and_is_kept(result: dict[str, Any]) -> None:
    """The two questions got no answer, and all that came after them did; the person is told at the end."""
    assert result["met"]["broken by stream"].startswith("OSError")
    (bug,) = result["bugs"]
    assert bug.startswith("KeyError in host_network_child.py, line ")


def test_a_listed_name_leads_to_no_address_of_this_machine_or_its_cloud(
    result: dict[str, Any],
) -> None:
    """Loopback and metadata never; a private network only where the person listed the name."""
    met, refused = result["met"], result["refused"]
    for way, host, problem in (
        ("metadata", "meta.example:443", "169.254.169.254, which is link-local"),
        ("to loopback", "loop.example:443", "127.0.0.1, which is loopback"),
        ("to private", "own.example:443", "10.255.255.254, which is a private address"),
    ):
        assert met[way] == "gaierror -2"
        assert problem in refused[host]
    assert met["listed private"] == "10.255.255.253"


def test_no_other_address_is_reached(result: dict[str, Any]) -> None:
    """Those of listed names are the sandbox's own; there is no way to any other, nor to this machine's loopback."""
    met = result["met"]
    assert met["public"] == "connected"
    assert met["loopback"] == f"ConnectionRefusedError {errno.ECONNREFUSED}"
    assert met["loopback where hosts are served"] == f"ConnectionResetError {errno.ECONNRESET}"
    for way in ("public unlisted", "metadata address", "datagram"):
        assert met[way] == f"OSError {errno.ENETUNREACH}", way
    assert met["bind"] == f"PermissionError {errno.EACCES}"


def test_a_host_that_is_allowed_while_the_sandbox_runs_is_reached_at_once(
    result: dict[str, Any],
) -> None:
    assert result["met"]["allowed"] == "late.example"
    assert result["uid"] != 0


def test_a_launched_agents_refused_host_reaches_the_person_who_allows_it(bench: Bench) -> None:
    """From the sandbox over launcher and console to a person, and back: from then on the name is looked up."""
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
    assert f"NOW {socket.EAI_AGAIN} []" in ended.output, (
        "it is asked for outside, where nobody knows it"
    )
    assert "Hosts that the agent could not reach: other.invalid:443." in ended.output
    events = bench.events()
    assert events.index("session.host_refused") < events.index("session.host_allowed")
