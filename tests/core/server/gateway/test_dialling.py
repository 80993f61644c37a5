"""What `[gateway]` may say: where upstreams may lead, which certificates count, and through which proxy."""

import asyncio
import json
import socket
import ssl
import sys
import threading
from contextlib import AbstractAsyncContextManager, ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from aileron_core.credentials.upstreams import upstreams
from aileron_core.errors import FileProblems
from aileron_core.server.gateway.connect import Dialer, Proxies
from aileron_core.server.gateway.providers import GatewayError
from aileron_core.settings import GatewaySettings, load_settings
from tests.core.server.gateway.harness import PATIENCE, Gateway, Upstream, passing, read_head
from tests.support.tls_service import Authority


class Names:
    """A resolver with answers of the test's own."""

    def __init__(self, *addresses: str) -> None:
        self.addresses = list(addresses)
        self.asked: list[str] = []

    def resolve(self, host: str, port: int) -> list[str]:
        self.asked.append(host)
        if not self.addresses:
            raise OSError("no such name")
        return self.addresses


def dialling(names: Names, *, proxies: Proxies | None = None, ca: str = "") -> Any:
    """Return what makes the gateway's dialer, with a resolver of the test's own."""
    return lambda app: Dialer(
        own_port=lambda: int(app.address.url.rpartition(":")[2]),
        ca_file=ca,
        proxies=proxies or Proxies({}),
        resolver=names,
    )


def leading(url: str, names: Names, **more: Any) -> AbstractAsyncContextManager[Gateway]:
    """Run a gateway to OpenAI at *url*, its own where that is empty, with those names."""
    return passing(settings=GatewaySettings(openai=url), dialer=dialling(names, **more))


async def answer_refused(gateway: Gateway) -> tuple[bytes, str]:
    head, body = await gateway.get()
    return head.partition(b"\r\n")[0], json.loads(body)["error"]["message"]


OURS = ("127.0.0.1", "10.1.2.3", "fd00:ec2::254", "::ffff:169.254.169.254", "64:ff9b::7f00:1")
METADATA = ("169.254.169.254", "fd00:ec2::254", "64:ff9b:1::100.100.100.200")


@pytest.mark.parametrize(
    ("host", "address"),
    [
        *(("api.openai.com", each) for each in OURS),
        *(("models.example", each) for each in METADATA),
    ],
)
async def test_no_name_leads_where_it_must_not(host: str, address: str) -> None:
    """A provider's not to this machine or its network, one in config not to metadata.

    DNS answers are checked; one bad one among good ones refuses them all.
    """
    names = Names("203.0.114.7", address)
    async with leading("" if host == "api.openai.com" else f"http://{host}", names) as gateway:
        status, message = await answer_refused(gateway)
        assert status == b"HTTP/1.1 403 Forbidden"
        assert f"{host} resolves to {address}" in message
        assert names.asked == [host]


async def test_a_name_that_does_not_resolve_delays_no_other(monkeypatch: Any) -> None:
    """However many requests wait for it: the threads that resolve names are for all sessions."""
    monkeypatch.setattr("aileron_core.server.gateway.connect._RESOLVE_SECONDS", PATIENCE)
    go_on = threading.Event()

    class Slow(Names):
        def resolve(self, host: str, port: int) -> list[str]:
            found = super().resolve(host, port)
            if host == "slow.example":
                go_on.wait(PATIENCE)
            return found

    names = Slow("127.0.0.1")
    async with Upstream().listening() as upstream, asyncio.timeout(PATIENCE / 2):
        fast = f"http://fast.example:{upstream.port}"
        settings = GatewaySettings(openai="http://slow.example:80", anthropic=fast)
        try:
            async with passing(settings=settings, dialer=dialling(names)) as gateway:
                for _ in range(20):
                    await gateway.asking(b"GET", b"/v1/responses/x")
                await gateway.until_traffic(lambda view: view.in_flight == 20)
                other = await gateway.client((await gateway.another_session()).gateway_token)
                head, _ = await other.ask(b"POST", b"/v1/messages", body=b"{}")
                assert head.startswith(b"HTTP/1.1 200 ")
                assert names.asked.count("slow.example") == 1
                go_on.set()
        finally:
            go_on.set()


@pytest.mark.parametrize("addresses", [("127.0.0.1",), ("127.0.0.9", "::1", "127.0.0.1")])
async def test_a_name_in_config_may_lead_to_this_machine(addresses: tuple[str, ...]) -> None:
    async with Upstream().listening() as upstream:
        names = Names(*addresses)
        async with leading(f"http://models.example:{upstream.port}/v", names) as gateway:
            assert (await gateway.get())[1] == b"ok"
            assert upstream.seen[0].lines == [b"Host: models.example:%d" % upstream.port]
            assert names.asked == ["models.example"]


async def test_the_console_is_nobodys_upstream() -> None:
    for host in ("127.0.0.1", "me.example"):
        async with leading(f"http://{host}:65535", Names("127.0.0.1")) as gateway:
            url = f"http://{host}:{gateway.port}"
            gateway.handler._upstreams = upstreams(GatewaySettings(openai=url))
            status, message = await answer_refused(gateway)
            assert status == b"HTTP/1.1 403 Forbidden"
            assert "is this console" in message


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("http://127.0.0.1:{closed}", "cannot be reached"),
        ("https://127.0.0.1:{port}", "the connection failed while it was being opened"),
        ("http://nowhere.example", "cannot be resolved"),
    ],
)
async def test_an_upstream_that_cannot_be_reached_is_named(url: str, words: str) -> None:
    async def speak(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Plain\r\n\r\n")

    with socket.socket() as unheard:
        unheard.bind(("127.0.0.1", 0))  # bound, so that nobody else listens there
        async with Upstream(serving=speak).listening() as plain:
            at = url.format(closed=unheard.getsockname()[1], port=plain.port)
            async with leading(at, Names()) as gateway:
                status, message = await answer_refused(gateway)
                assert status == b"HTTP/1.1 502 Bad Gateway"
                assert words in message


@pytest.mark.skipif(
    sys.platform != "linux", reason="127.0.0.0/8, and a full backlog that is silent"
)
async def test_a_family_that_is_silent_gives_way_to_the_other() -> None:
    """Not each of its addresses in turn: a network without IPv6 costs one head start."""
    async with Upstream().listening() as upstream:
        with ExitStack() as closing:
            silent, next_of_its_family = (
                closing.enter_context(socket.create_server((address, upstream.port), backlog=0))
                for address in ("127.0.0.5", "127.0.0.6")
            )
            next_of_its_family.setblocking(False)
            for _ in range(3):  # as many as fill it, and more
                waiting = closing.enter_context(socket.socket())
                waiting.setblocking(False)
                waiting.connect_ex(silent.getsockname())
            names = Names("::ffff:127.0.0.5", "::ffff:127.0.0.6", "127.0.0.1")
            async with leading(f"http://three.example:{upstream.port}", names) as gateway:
                assert (await gateway.get())[1] == b"ok"
            with pytest.raises(BlockingIOError):
                next_of_its_family.accept()


def certificates(folder: Path, name: str) -> tuple[ssl.SSLContext, str]:
    """Return a server's context for *name*, and the file of the authority that vouches for it."""
    authority = Authority(folder)
    context = authority.context(name)
    context.set_alpn_protocols(["h2", "http/1.1"])
    return context, str(authority.file)


async def test_an_https_upstream_is_verified_by_name_and_a_ca_of_ones_own(tmp_path: Path) -> None:
    context, ca = certificates(tmp_path, "models.example")
    async with Upstream(ssl=context).listening() as upstream:
        for host, file, good in (
            ("models.example", ca, True),
            ("models.example", "", False),
            ("other.example", ca, False),
        ):
            url, names = f"https://{host}:{upstream.port}", Names("127.0.0.1")
            async with leading(url, names, ca=file) as gateway:
                if good:
                    client = await gateway.client()
                    for _ in range(2):
                        assert (await client.ask(b"GET", b"/v1/models"))[1] == b"ok"
                else:
                    status, message = await answer_refused(gateway)
                    assert status == b"HTTP/1.1 502 Bad Gateway"
                    assert "its certificate is not trusted" in message
        assert (len(upstream.seen), upstream.connections) == (2, 1)


@dataclass
class Proxy:
    """A proxy for CONNECT that leads everything to one place, or refuses."""

    to: int
    status: bytes = b"200 Fine"
    heads: list[bytes] = field(default_factory=list[bytes])

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.heads.append(await read_head(reader))
        writer.write(b"HTTP/1.1 " + self.status + b"\r\nX-Proxy: yes\r\n\r\n")
        if not self.status.startswith(b"2"):
            return
        up_reader, up_writer = await asyncio.open_connection("127.0.0.1", self.to)

        async def pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
            try:
                while data := await source.read(65536):
                    sink.write(data)
                    await sink.drain()
            except ConnectionError:
                pass
            finally:
                sink.close()

        async with asyncio.TaskGroup() as group:
            group.create_task(pump(reader, up_writer))
            group.create_task(pump(up_reader, writer))


async def test_an_https_upstream_is_reached_through_https_proxy(tmp_path: Path) -> None:
    """By name; one that refuses is named without what it said."""
    context, ca = certificates(tmp_path, "api.openai.com")
    async with Upstream(ssl=context).listening() as upstream:
        serve = Proxy(upstream.port)
        async with Upstream(serving=serve).listening() as proxy:
            names = Names("127.0.0.1")
            through = Proxies({"https_proxy": f"http://me:p%40ss@127.0.0.1:{proxy.port}"})
            async with leading("", names, proxies=through, ca=ca) as gateway:
                client = await gateway.client()
                assert (await client.ask(b"GET", b"/v1/models"))[1] == b"ok"
                client.hang_up()
            (head,) = serve.heads
            assert head.startswith(b"CONNECT api.openai.com:443 HTTP/1.1\r\n")
            assert b"\r\nHost: api.openai.com:443\r\n" in head
            assert b"\r\nProxy-Authorization: Basic bWU6cEBzcw==\r\n" in head
            assert (upstream.seen[0].lines, names.asked) == ([b"Host: api.openai.com"], [])
            serve.status = b"407 Who are you"
            async with leading("", names, proxies=through, ca=ca) as gateway:
                status, message = await answer_refused(gateway)
            assert status == b"HTTP/1.1 502 Bad Gateway"
            assert "(status 407)" in message
            assert not [said for said in ("p%40ss", "p@ss", "Who are you") if said in message]


@pytest.mark.parametrize("names", [("HTTPS_PROXY", "NO_PROXY"), ("https_proxy", "no_proxy")])
def test_the_proxy_is_as_set(monkeypatch: pytest.MonkeyPatch, names: tuple[str, str]) -> None:
    """And one that cannot be used is said, not passed by."""
    for name in ("HTTPS_PROXY", "https_proxy", "NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(names[0], "http://proxy.example:8080")
    monkeypatch.setenv(names[1], "api.openai.com")
    found = upstreams(GatewaySettings())
    proxies = Proxies.of_this_process()
    assert proxies.proxy_for(found["openai"]) is None
    proxy = proxies.proxy_for(found["anthropic"])
    assert (proxy.host, proxy.port, proxy.credentials) == ("proxy.example", 8080, None)
    for wrong in ("socks5://proxy.example:1", "https://proxy.example", "http://", "http://[x"):
        monkeypatch.setenv(names[0], wrong)
        with pytest.raises(GatewayError, match="HTTPS_PROXY must be"):
            Proxies.of_this_process().proxy_for(found["anthropic"])


@pytest.mark.parametrize(
    ("no_proxy", "url", "through"),
    [
        ("", "https://api.openai.com", True),
        ("api.openai.com", "https://api.openai.com", False),
        ("x.example, .openai.com", "https://api.openai.com", False),
        ("openai.com", "https://api.openai.com", False),
        ("*.openai.com", "https://api.openai.com", False),
        ("*", "https://api.openai.com", False),
        ("enai.com", "https://api.openai.com", True),
        ("api.openai.com:443", "https://api.openai.com", False),
        ("api.openai.com:8443", "https://api.openai.com", True),
        ("openai.com:443", "https://api.openai.com", False),
        ("127.0.0.1", "https://127.0.0.1:8443", False),
        ("", "http://api.openai.com", False),
    ],
)
def test_no_proxy_is_respected(no_proxy: str, url: str, through: bool) -> None:
    proxies = Proxies({"HTTPS_PROXY": "proxy.example:3128", "NO_PROXY": no_proxy})
    found = proxies.proxy_for(upstreams(GatewaySettings(openai=url))["openai"])
    assert (found is not None) is through
    assert found is None or (found.host, found.port) == ("proxy.example", 3128)


def test_an_upstream_of_ones_own_has_scheme_port_and_base_path(tmp_path: Path) -> None:
    """Without a word in config each provider is its own."""
    found = upstreams(GatewaySettings())
    assert {each.authority for each in found.values()} == {
        "api.anthropic.com", "api.openai.com", "generativelanguage.googleapis.com",
    }  # fmt: skip
    assert not any(each.configured for each in found.values())
    assert {(each.scheme, each.port) for each in found.values()} == {("https", 443)}
    assert {each.base_path for each in found.values()} == {b""}
    text = '[gateway]\nopenai = "http://[::1]:8080/base/"\nanthropic = "https://x.example"\n'
    (tmp_path / "config.toml").write_text(text, encoding="utf-8")
    found = upstreams(load_settings(tmp_path / "config.toml").gateway)
    openai, anthropic = found["openai"], found["anthropic"]
    assert (openai.scheme, openai.host, openai.port) == ("http", "::1", 8080)
    assert (openai.base_path, openai.authority, openai.configured) == (b"/base", "[::1]:8080", True)
    assert (anthropic.authority, anthropic.port) == ("x.example", 443)
    assert not found["gemini"].configured


NO_URLS = ("api.openai.com", "ftp://x.example", "https://", "https://[::1", "https://exämple")
WITH_MORE = ("https://user:pass@x.example", "https://x.example/?key=1", "https://x.example/#a")
NO_TEXTS = ("https://x.example/a b", "https://x.example\\r\\nX: y")
NO_PORTS = ("https://x.example:0", "https://x.example:99999")


@pytest.mark.parametrize(
    "line",
    [
        *(f'openai = "{each}"' for each in (*NO_URLS, *WITH_MORE, *NO_TEXTS, *NO_PORTS)),
        *(f"ca_file = {each}" for each in ('"relative.pem"', '"/nonexistent/ca.pem"', "true")),
        'ca_file = "/a\\u0000b"',
        "openai = 3",
        'mode = "augment"',
        'opneai = "https://x.example"',
    ],
)
def test_what_cannot_be_meant_is_refused_with_its_key(tmp_path: Path, line: str) -> None:
    (tmp_path / "config.toml").write_text(f"[gateway]\n{line}\n", encoding="utf-8")
    with pytest.raises(FileProblems) as raised:
        load_settings(tmp_path / "config.toml")
    (problem,) = raised.value.problems
    assert problem.key == f"gateway.{line.partition(' ')[0]}"
