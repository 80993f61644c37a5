"""The outgoing client on real sockets: addresses, names, certificates, redirects, bounds."""

import http.server
import socket
import threading
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from aileron_core.connectors.http.addresses import AddressGuard
from aileron_core.connectors.http.call import OutgoingCall
from aileron_core.connectors.http.client import OutgoingClient, OutgoingRequest, OutgoingResponse
from aileron_core.connectors.protocol import Route
from aileron_core.errors import CapabilityDenied, NetworkError, ResourceLimitExceeded
from tests.core.connectors.conftest import LOOPBACK, Service

Make = Callable[..., OutgoingClient]


class Wire:
    """Sends to the test's service, which is listed, and counts what left."""

    def __init__(self, make: Make, resolver: Any, service: Service, clock: Any) -> None:
        self.resolver, self.service, self._clock = resolver, service, clock
        self.client = make(resolver=resolver, guard=LOOPBACK)
        self.place = f"api.example:{service.port}"
        self.sent = 0
        self.exchange: OutgoingCall | None = None

    def send(
        self,
        where: str,
        *others: str,
        seconds: float = 20,
        method: str = "GET",
        headers: dict[str, str] | None = None,
        body: bytes | None = None,
        **more: Any,
    ) -> OutgoingResponse:
        """Send to a path of the service, or to a URL; with *others* listed too."""
        self._clock.level()

        def count(_method: str, _place: str) -> None:
            self.sent += 1

        self.exchange = OutgoingCall(self._clock, self._clock.monotonic() + seconds, count)
        url = f"http://{self.place}{where}" if where.startswith("/") else where
        request = OutgoingRequest(method=method, url=url, headers=headers or {}, body=body)
        return self.client.send(request, self.exchange, allowed=[self.place, *others], **more)


@pytest.fixture
def wire(make_client: Make, resolver: Any, service: Any, leaping: Any) -> Wire:
    return Wire(make_client, resolver, service, leaping)


@pytest.fixture
def tls(wire: Wire, make_client: Make, service_over_tls: Any) -> Wire:
    """With a client that trusts the certificate of the service."""
    _, trust = service_over_tls
    wire.client = make_client(resolver=wire.resolver, guard=LOOPBACK, ssl_context=trust)
    return wire


def test_listed_hosts_answer(wire: Wire, service: Any) -> None:
    """Name in the Host header, the guest's own headers, the body as it came."""
    service.reply("/x", b"\x00\xff", status=418)
    headers = {"X-Mine": "1", "Host": "evil", "Cookie": "c"}
    answer = wire.send("/x?y=1", method="POST", headers=headers, body=b"hi")
    assert (answer.status, answer.body, wire.sent) == (418, b"\x00\xff", 1)
    ((method, path, seen, body),) = service.seen
    assert (method, path, body, seen["Host"]) == ("POST", "/x?y=1", b"hi", wire.place)
    assert (seen["X-Mine"], "Cookie" in seen) == ("1", False)


def test_a_host_that_is_not_listed_is_denied(wire: Wire) -> None:
    """Port and all, and nobody is even asked for its address."""
    with pytest.raises(CapabilityDenied) as caught:
        wire.send("http://api.example:81/")
    assert caught.value.details["requested"] == "network:api.example:81"
    assert caught.value.details["granted"] == [f"network:{wire.place}"]
    assert (wire.sent, wire.resolver.asked) == (0, [])


@pytest.mark.parametrize("method", ["PROPFIND", "M-SEARCH"])
def test_a_method_is_any_name_of_http(wire: Wire, service: Any, method: str) -> None:
    """Calendar and file services have methods of their own (RFC 9110, 9.1: any token)."""
    service.reply("/x", b"done")
    assert wire.send("/x", method=method).body == b"done"
    assert [seen for seen, *_ in service.seen] == [method]


@pytest.mark.parametrize("method", ["CONNECT", "TRACE", "trace", "GET /", "G\u00cbT", "", "X" * 41])
def test_a_method_for_proxies_or_none_at_all_does_not_leave(wire: Wire, method: str) -> None:
    """Nothing that could open a tunnel, echo a credential or begin a second request line."""
    with pytest.raises(ValueError, match="method"):
        wire.send("/x", method=method)
    assert (wire.sent, wire.service.seen) == (0, [])


class NoRanges(AddressGuard):
    """As for a public address of this machine: no list of ranges knows it, the connection itself does."""

    def problem(self, address: str, *, is_listed: bool = False) -> str | None:
        return None


@pytest.mark.parametrize(
    ("guard", "addresses", "said"),
    [
        (AddressGuard(), ["127.0.0.1"], "no request may go there"),
        (AddressGuard(), ["169.254.169.254"], "no request may go there"),
        (AddressGuard(), ["::ffff:127.0.0.1"], "no request may go there"),
        (AddressGuard(), ["1.1.1.1", "10.0.0.1"], "no request may go there"),
        (NoRanges(), ["127.0.0.1"], "an address of this machine"),
    ],
)
def test_a_name_that_leads_inside_is_denied(
    wire: Wire, make_client: Make, guard: AddressGuard, addresses: list[str], said: str
) -> None:
    """One inner address among them is enough, and no byte is sent."""
    wire.resolver.table["api.example"] = addresses
    wire.client = make_client(resolver=wire.resolver, guard=guard)
    with pytest.raises(CapabilityDenied, match=said):
        wire.send("/")
    assert (wire.sent, wire.service.seen) == (0, [])


def test_the_address_that_was_checked_is_connected_to(wire: Wire, make_client: Make) -> None:
    """A name that leads elsewhere the second time it is asked is asked once."""
    answers = [["127.0.0.1"], ["127.0.0.2"]]
    rebinding = SimpleNamespace(resolve=lambda host, port: answers.pop(0))
    wire.service.reply("/")
    wire.client = make_client(resolver=rebinding, guard=LOOPBACK)
    assert (wire.send("/").status, answers) == (200, [["127.0.0.2"]])


def test_a_redirect_is_followed_within_the_list(wire: Wire, service: Any) -> None:
    """POST becomes GET after 302 and stays POST after 307, as browsers have it."""
    service.reply("/a", status=302, Location="/b")
    service.reply("/c", status=307, Location=f"http://{wire.place}/b")
    service.reply("/b", b"there")
    for path in ("/a", "/c"):
        assert wire.send(path, method="POST", body=b"x").body == b"there"
    asked = [(method, path, body) for method, path, _, body in service.seen]
    assert asked[:2] == [("POST", "/a", b"x"), ("GET", "/b", b"")]
    assert (asked[2:], wire.sent) == ([("POST", "/c", b"x"), ("POST", "/b", b"x")], 4)


def test_a_redirect_to_get_leaves_what_described_the_body_behind(wire: Wire, service: Any) -> None:
    """RFC 9110, 15.4: Content-Type belongs to the body, which the GET does not have."""
    service.reply("/a", status=303, Location="/b")
    service.reply("/b")
    headers = {"Content-Type": "application/json", "X-Mine": "1"}
    wire.send("/a", method="POST", headers=headers, body=b"{}")
    (_, _, first, _), (method, _, second, body) = service.seen
    assert (first["Content-Type"], method, body) == ("application/json", "GET", b"")
    assert ("Content-Type" in second, second["X-Mine"]) == (False, "1")


@pytest.mark.parametrize(
    ("location", "path"),
    [(b"/b?q=\xc3\xbc", "/b?q=%C3%BC"), (b"/b?q=\xfc", "/b?q=%C3%BC"), (b"/b c", "/b%20c")],
)
def test_a_redirect_to_a_raw_path_is_followed_as_the_service_meant_it(
    wire: Wire, service: Any, location: bytes, path: str
) -> None:
    """UTF-8 where it is UTF-8, Latin-1 where it can be nothing else, as browsers and Go have it."""
    head = b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: %b\r\n\r\n" % location
    wire.service.answers["/a"] = lambda request: request.wfile.write(head)
    service.reply(path.split("?")[0])
    wire.send("/a")
    assert [seen for _, seen, *_ in service.seen] == ["/a", path]


def test_a_redirect_to_nowhere_is_an_answer(wire: Wire) -> None:
    """An empty Location names no place, least of all the one that was just asked."""
    wire.service.reply("/a", b"look around", status=302, Location="")
    answer = wire.send("/a")
    assert (answer.status, answer.body, wire.sent) == (302, b"look around", 1)


@pytest.mark.parametrize(
    "location",
    ["http://other.example/", "//other.example:80/", "http://127.0.0.1:1/", "http://api.example@other.example/", "gopher://x/"],
)  # fmt: skip
def test_a_redirect_out_of_the_list_is_not_followed(wire: Wire, location: str) -> None:
    wire.service.reply("/a", status=302, Location=location)
    with pytest.raises((CapabilityDenied, NetworkError)):
        wire.send("/a")
    assert wire.sent == 1


def test_a_listed_host_that_turns_inside_by_redirect_is_denied(wire: Wire) -> None:
    wire.resolver.table["inner.example"] = ["127.0.0.2"]
    inner = f"inner.example:{wire.service.port}"
    wire.service.reply("/a", status=302, Location=f"http://{inner}/secret")
    with pytest.raises(CapabilityDenied, match=r"inner\.example"):
        wire.send("/a", inner)


def test_endless_redirects_end(wire: Wire) -> None:
    """Five, then an error that is not worth repeating."""
    wire.service.reply("/a", status=302, Location="/a")
    with pytest.raises(NetworkError, match="more than 5 times") as caught:
        wire.send("/a")
    assert (caught.value.retriable, wire.sent) == (False, 6)


def test_authorization_does_not_follow_to_another_host(wire: Wire, service: Any) -> None:
    wire.resolver.table["b.example"] = ["127.0.0.1"]
    other = f"b.example:{service.port}"
    service.reply("/a", status=307, Location=f"http://{other}/b")
    service.reply("/b")
    wire.send("/a", other, headers={"Authorization": "Bearer x"})
    assert ["Authorization" in seen for _, _, seen, _ in service.seen] == [True, False]


def test_cookies_are_not_kept(wire: Wire, service: Any) -> None:
    """Neither on the next hop of the same request nor in the next call, also not the guest's own."""
    service.reply("/a", Set_Cookie="id=7")
    service.reply("/hop", status=307, Location="/a", Set_Cookie="id=8")
    for path in ("/a", "/a", "/hop", "/hop"):
        wire.send(path, headers={"Cookie": "id=9"})
    assert [path for _, path, *_ in service.seen] == ["/a", "/a", "/hop", "/a", "/hop", "/a"]
    assert all("Cookie" not in seen for _, _, seen, _ in service.seen)


def test_a_body_over_the_limit_is_cut_off(wire: Wire) -> None:
    def endless(handler: http.server.BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.end_headers()
        try:
            while True:
                handler.wfile.write(b"x" * 65536)
        except OSError:
            handler.close_connection = True

    wire.service.answers["/a"] = endless
    with pytest.raises(ResourceLimitExceeded) as caught:
        wire.send("/a", max_body=100_000)
    assert caught.value.details["limit"] == "response_body"


def test_answers_that_were_cut_off_give_their_connections_back(wire: Wire) -> None:
    """More of them than there are connections, and the next request still finds one."""
    wire.service.reply("/large", b"x" * 300_000)
    wire.service.reply("/small")
    for _ in range(70):
        with pytest.raises(ResourceLimitExceeded):
            wire.send("/large", max_body=1000)
    assert wire.send("/small").status == 200


def test_a_waiting_request_can_be_stopped(wire: Wire) -> None:
    """From another thread, at once, while the service says nothing."""
    asked = wire.service.hold("/a")

    def stop() -> None:
        asked.wait(10)
        assert wire.exchange is not None
        wire.exchange.stop()

    stopper = threading.Thread(target=stop)
    stopper.start()
    began = time.monotonic()
    with pytest.raises(NetworkError):
        wire.send("/a", seconds=30)
    stopper.join()
    assert time.monotonic() - began < 15


def test_a_name_that_hangs_holds_up_no_other_name(wire: Wire, make_client: Make) -> None:
    """However many calls of one agent ask for it: they wait for one look-up."""
    release = threading.Event()
    asked: list[str] = []

    def resolve(host: str, port: int) -> list[str]:
        asked.append(host)
        if host == "hangs.example":
            release.wait(20)
        return ["127.0.0.1"]

    wire.client = make_client(resolver=SimpleNamespace(resolve=resolve), guard=LOOPBACK)
    wire.service.reply("/")
    try:
        for _ in range(40):
            with pytest.raises(NetworkError, match="did not answer in time"):
                wire.send("http://hangs.example/", "hangs.example:80", seconds=0.01)
        assert (wire.sent, wire.send("/").status) == (0, 200)
        assert asked == ["hangs.example", "api.example"]
    finally:
        release.set()


def test_what_is_not_there_is_a_network_error_and_nothing_left(wire: Wire) -> None:
    with pytest.raises(NetworkError) as caught:
        wire.send("http://no.example/s3cret?q=s3cret", "no.example:80")
    assert "no.example:80 cannot be reached" in caught.value.message
    assert "s3cret" not in caught.value.message
    assert caught.value.retriable
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and does not listen; given back, it may be another's at once
        place = f"api.example:{taken.getsockname()[1]}"
        with pytest.raises(NetworkError):
            wire.send(f"http://{place}/", place)
    assert wire.sent == 0


def test_a_routed_host_is_plain_http_with_its_own_name(wire: Wire, make_client: Make) -> None:
    """Whatever the URL says, the route's address gets it, under the original Host."""
    wire.service.reply("/x", b"hello")
    route = Route(host="Api.example:443", address="127.0.0.1", port=wire.service.port)
    wire.client = make_client(routes=[route])
    assert wire.send("https://api.example/x", "api.example:443").body == b"hello"
    assert wire.service.seen[0][2]["Host"] == "api.example"
    assert wire.client.is_routed("api.example:443")
    with pytest.raises(CapabilityDenied):
        wire.send("https://api.example/x", "other.example:443")


def test_tls_goes_by_name_although_the_address_was_given(tls: Wire) -> None:
    """The certificate is checked for the name; another name at the same address is refused."""
    tls.resolver.table["other.example"] = ["127.0.0.1"]
    other = f"other.example:{tls.service.port}"
    assert tls.send(f"https://{tls.place}/x").body == b"secure"
    # The first connection is still open and trusted, for its own name only.
    with pytest.raises(NetworkError, match="certificate is not trusted"):
        tls.send(f"https://{other}/x", other)
    assert tls.sent == 1


@pytest.mark.usefixtures("service_over_tls")
def test_an_unknown_certificate_is_refused(wire: Wire) -> None:
    """The default trust store does not know the test's authority, and no request leaves."""
    with pytest.raises(NetworkError, match="certificate is not trusted"):
        wire.send(f"https://{wire.place}/x")
    assert (wire.sent, wire.service.seen) == (0, [])


def test_a_downgrade_by_redirect_is_refused(tls: Wire) -> None:
    tls.service.reply("/down", status=302, Location="http://api.example:80/x")
    with pytest.raises(CapabilityDenied, match="plain HTTP"):
        tls.send(f"https://{tls.place}/down", "api.example:80")


def test_proxies_of_the_system_are_ignored(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    """The address check could not hold through one."""
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    wire.service.reply("/x", b"direct")
    assert wire.send("/x").body == b"direct"
