"""Where upstreams may lead, which certificates count, and through which proxy."""

import asyncio
import datetime
import ipaddress
import json
import socket
import ssl
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from aileron_core.app import App
from aileron_core.connectors.http.addresses import AddressGuard
from aileron_core.server.gateway.connect import Dialer, Proxies
from aileron_core.server.gateway.providers import GatewayError
from aileron_core.server.gateway.upstreams import upstreams
from aileron_core.settings import GatewaySettings
from tests.core.server.gateway.harness import Gateway, Upstream, passing, read_head, run


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


def dialling(
    names: Names, *, guard: AddressGuard | None = None, proxies: Proxies | None = None, ca: str = ""
) -> Callable[[App], Dialer]:
    """Return what makes the gateway's dialer, with a resolver of the test's own."""
    return lambda app: Dialer(
        own_port=lambda: int(app.address.url.rpartition(":")[2]),
        ca_file=ca,
        proxies=proxies or Proxies({}),
        resolver=names,
        guard=guard,
    )


async def refused(gateway: Gateway) -> tuple[bytes, str]:
    """Return the status line and the message of a request to OpenAI."""
    head, body = await (await gateway.client()).ask(b"GET", b"/v1/models")
    return head.partition(b"\r\n")[0], json.loads(body)["error"]["message"]


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "127.8.8.8", "::1", "0.0.0.0", "::", "10.1.2.3", "192.168.1.1", "172.20.0.1",
        "169.254.169.254", "fe80::1", "fd00:ec2::254", "fd12::1", "100.64.0.1", "::ffff:127.0.0.1",
        "::ffff:169.254.169.254", "64:ff9b::7f00:1", "224.0.0.1", "240.0.0.1", "2002:7f00:1::",
    ],
)  # fmt: skip
async def test_a_providers_own_name_never_leads_to_this_machine_or_its_network(
    address: str,
) -> None:
    """DNS answers are checked; one bad one among good ones refuses them all."""

    names = Names("203.0.114.7", address)
    async with passing(settings=GatewaySettings(), dialer=dialling(names)) as gateway:
        status, message = await refused(gateway)
        assert status == b"HTTP/1.1 403 Forbidden"
        assert f"api.openai.com resolves to {address}" in message
        assert names.asked == ["api.openai.com"]


@pytest.mark.parametrize(
    "address",
    [
        "169.254.169.254",
        "fe80::1",
        "fd00:ec2::254",
        "0.0.0.0",
        "::ffff:169.254.169.254",
        "100.100.100.200",
        "64:ff9b:1::100.100.100.200",
        "224.0.0.1",
    ],
)
async def test_a_name_in_config_never_leads_to_metadata_either(address: str) -> None:
    """It may be of this machine or its network, which metadata services are not."""

    settings = GatewaySettings(openai="http://models.example:80")
    names = Names(address)
    async with passing(settings=settings, dialer=dialling(names)) as gateway:
        status, message = await refused(gateway)
        assert status == b"HTTP/1.1 403 Forbidden"
        assert f"models.example resolves to {address}" in message


async def test_a_name_in_config_may_lead_to_this_machine_and_that_address_is_used() -> None:
    """Resolved once, checked, and connected to; Host says the name."""

    async with Upstream().listening() as upstream:
        settings = GatewaySettings(openai=f"http://models.example:{upstream.port}/v")
        names = Names("127.0.0.1")
        async with passing(settings=settings, dialer=dialling(names)) as gateway:
            client = await gateway.client()
            assert (await client.ask(b"GET", b"/v1/models"))[1] == b"ok"
            host = b"Host: models.example:%d" % upstream.port
            assert upstream.seen[0].lines == [host]
            assert names.asked == ["models.example"]


async def test_the_console_is_nobodys_upstream() -> None:
    """Not even where config.toml says so, by name or by address."""

    for host in ("127.0.0.1", "me.example"):
        settings = GatewaySettings(openai=f"http://{host}:65535")
        names = Names("127.0.0.1")
        async with passing(settings=settings, dialer=dialling(names)) as gateway:
            url = f"http://{host}:{gateway.port}"
            gateway.handler._upstreams = upstreams(GatewaySettings(openai=url))
            status, message = await refused(gateway)
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
def test_an_upstream_that_cannot_be_reached_is_named_in_an_error_of_the_providers_shape(
    url: str, words: str
) -> None:
    """What failed, and on what."""

    async def speak(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Plain\r\n\r\n")

    async def test() -> None:
        async with Upstream(serving=speak).listening() as plain:
            at = url.format(closed=closed, port=plain.port)
            settings = GatewaySettings(openai=at)
            async with passing(settings=settings, dialer=dialling(Names())) as gateway:
                status, message = await refused(gateway)
                assert status == b"HTTP/1.1 502 Bad Gateway"
                assert words in message

    with socket.socket() as unheard:
        unheard.bind(("127.0.0.1", 0))  # bound, so that nobody else listens there
        closed = unheard.getsockname()[1]
        run(test())


async def test_where_one_address_does_not_answer_the_next_one_does() -> None:
    """A name with a dead address first costs no request."""

    async with Upstream().listening() as upstream:
        settings = GatewaySettings(openai=f"http://two.example:{upstream.port}")
        names = Names("127.0.0.9", "::1", "127.0.0.1")
        async with passing(settings=settings, dialer=dialling(names)) as gateway:
            assert (await (await gateway.client()).ask(b"GET", b"/v1/models"))[1] == b"ok"


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
            settings = GatewaySettings(openai=f"http://three.example:{upstream.port}")
            names = Names("::ffff:127.0.0.5", "::ffff:127.0.0.6", "127.0.0.1")
            async with passing(settings=settings, dialer=dialling(names)) as gateway:
                assert (await (await gateway.client()).ask(b"GET", b"/v1/models"))[1] == b"ok"
            with pytest.raises(BlockingIOError):
                next_of_its_family.accept()


# TLS


def certificates(folder: Path, *names: str) -> tuple[ssl.SSLContext, str]:
    """Return a server's context for *names*, and the file of the authority that vouches for it."""
    now = datetime.datetime.now(datetime.UTC)
    keys = [ec.generate_private_key(ec.SECP256R1()) for _ in range(2)]
    root = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "a test's authority")])

    def built(subject: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(root)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(hours=1))
            .not_valid_after(now + datetime.timedelta(hours=1))
        )

    usage = x509.KeyUsage(
        digital_signature=True, content_commitment=False, key_encipherment=False,
        data_encipherment=False, key_agreement=False, key_cert_sign=True, crl_sign=True,
        encipher_only=False, decipher_only=False,
    )  # fmt: skip
    authority = (
        built(root, keys[0])
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(keys[0].public_key()), False)
        .sign(keys[0], hashes.SHA256())
    )
    general: list[x509.GeneralName] = [
        x509.IPAddress(ipaddress.ip_address(name)) if name[0].isdigit() else x509.DNSName(name)
        for name in names
    ]
    leaf = (
        built(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "a test")]), keys[1])
        .add_extension(x509.SubjectAlternativeName(general), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(keys[0].public_key()), False
        )
        .sign(keys[0], hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    (folder / "ca.pem").write_bytes(authority.public_bytes(pem))
    (folder / "leaf.pem").write_bytes(
        leaf.public_bytes(pem)
        + keys[1].private_bytes(
            pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "leaf.pem")
    context.set_alpn_protocols(["h2", "http/1.1"])
    return context, str(folder / "ca.pem")


async def test_an_https_upstream_is_verified_by_its_name_and_a_ca_of_ones_own(
    tmp_path: Path,
) -> None:
    """`[gateway] ca_file`; without it, or under another name, nothing is sent."""
    context, ca = certificates(tmp_path, "models.example", "127.0.0.1")

    async with Upstream(ssl=context).listening() as upstream:
        for host, file, good in (
            ("models.example", ca, True),
            ("127.0.0.1", ca, True),
            ("models.example", "", False),
            ("other.example", ca, False),
        ):
            settings = GatewaySettings(openai=f"https://{host}:{upstream.port}")
            names = Names("127.0.0.1")
            async with passing(settings=settings, dialer=dialling(names, ca=file)) as gateway:
                if good:
                    client = await gateway.client()
                    for _ in range(2):
                        assert (await client.ask(b"GET", b"/v1/models"))[1] == b"ok"
                else:
                    status, message = await refused(gateway)
                    assert status == b"HTTP/1.1 502 Bad Gateway"
                    assert "its certificate is not trusted" in message
        assert len(upstream.seen) == 4
        assert upstream.connections == 2


async def test_a_large_stream_passes_over_tls_as_it_does_without(tmp_path: Path) -> None:
    """8 MB both ways."""
    context, ca = certificates(tmp_path, "models.example")
    body = bytes(range(256)) * 32768

    async def answering(seen, _reader, writer) -> None:  # type: ignore[no-untyped-def]
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(seen.body) + seen.body)

    async with Upstream(answering, ssl=context).listening() as upstream:
        settings = GatewaySettings(openai=f"https://models.example:{upstream.port}")
        dialer = dialling(Names("127.0.0.1"), ca=ca)
        async with passing(settings=settings, dialer=dialer) as gateway:
            client = await gateway.client()
            assert (await client.ask(b"POST", b"/v1/responses", body=body))[1] == body


# Proxies


class Proxy:
    """A proxy for CONNECT that leads everything to one place, or refuses."""

    def __init__(self, to: int, *, status: bytes = b"200 Fine") -> None:
        self.to = to
        self.status = status
        self.heads: list[bytes] = []

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
    """CONNECT by name, with the proxy's credentials, which go no further; TLS ends upstream."""
    context, ca = certificates(tmp_path, "api.openai.com")

    async with Upstream(ssl=context).listening() as upstream:
        serve = Proxy(upstream.port)
        async with Upstream(serving=serve).listening() as proxy:
            names = Names("127.0.0.1")
            url = f"http://me:p%40ss@127.0.0.1:{proxy.port}"
            dialer = dialling(names, proxies=Proxies({"https_proxy": url}), ca=ca)
            async with passing(settings=GatewaySettings(), dialer=dialer) as gateway:
                client = await gateway.client()
                assert (await client.ask(b"GET", b"/v1/models"))[1] == b"ok"
                client.hang_up()
            (head,) = serve.heads
            assert head.startswith(b"CONNECT api.openai.com:443 HTTP/1.1\r\n")
            assert b"\r\nHost: api.openai.com:443\r\n" in head
            assert b"\r\nProxy-Authorization: Basic bWU6cEBzcw==\r\n" in head
            assert upstream.seen[0].lines == [b"Host: api.openai.com"]
            assert names.asked == []


async def test_a_proxy_that_refuses_is_named_without_what_it_said() -> None:
    """Nor with its credentials."""

    serve = Proxy(0, status=b"407 Who are you")
    async with Upstream(serving=serve).listening() as proxy:
        proxies = Proxies({"https_proxy": f"http://me:secret@127.0.0.1:{proxy.port}"})
        dialer = dialling(Names(), proxies=proxies)
        async with passing(settings=GatewaySettings(), dialer=dialer) as gateway:
            status, message = await refused(gateway)
            assert status == b"HTTP/1.1 502 Bad Gateway"
            assert "(status 407)" in message
            assert "secret" not in message


@pytest.mark.parametrize("names", [("HTTPS_PROXY", "NO_PROXY"), ("https_proxy", "no_proxy")])
def test_the_proxy_is_that_of_the_consoles_own_environment(
    monkeypatch: pytest.MonkeyPatch, names: tuple[str, str]
) -> None:
    """And one that cannot be used is said, not passed by."""
    for name in ("HTTPS_PROXY", "https_proxy", "NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(names[0], "http://proxy.example:8080")
    monkeypatch.setenv(names[1], "api.openai.com")
    found = upstreams(GatewaySettings())
    proxies = Proxies.of_this_process()
    assert proxies.proxy_for(found["openai"]) is None
    proxy = proxies.proxy_for(found["anthropic"])
    assert proxy is not None
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
    """Whole names, suffixes, ports, `*`; plain HTTP goes through no proxy."""
    proxies = Proxies({"HTTPS_PROXY": "proxy.example:3128", "NO_PROXY": no_proxy})
    upstream = upstreams(GatewaySettings(openai=url))["openai"]
    found = proxies.proxy_for(upstream)
    assert (found is not None) is through
    assert found is None or (found.host, found.port) == ("proxy.example", 3128)
