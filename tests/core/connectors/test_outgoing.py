"""The outgoing client on real sockets: addresses, names, certificates, redirects, bounds."""

import http.server
import socket
import ssl
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

Make = Callable[..., OutgoingClient]
Send = Callable[..., OutgoingResponse]
Tls = tuple[Any, ssl.SSLContext]


class Sender:
    """Sends through a client and counts what left."""

    def __init__(self, clock: Any) -> None:
        self._clock = clock
        self.sent = 0
        self.exchange: OutgoingCall | None = None

    def send(
        self,
        client: OutgoingClient,
        url: str,
        allowed: list[str],
        *,
        seconds: float = 20,
        method: str = "GET",
        headers: dict[str, str] | None = None,
        body: bytes | None = None,
        **kwargs: Any,
    ) -> OutgoingResponse:
        clock = self._clock
        clock.level()

        def count(_method: str, _place: str) -> None:
            self.sent += 1

        self.exchange = OutgoingCall(clock, clock.monotonic() + seconds, count)
        request = OutgoingRequest(method=method, url=url, headers=headers or {}, body=body)
        return client.send(request, self.exchange, allowed=allowed, **kwargs)


@pytest.fixture
def sender(leaping: Any) -> Sender:
    return Sender(leaping)


@pytest.fixture
def open_client(make_client: Make, resolver: Any, loopback_guard: AddressGuard) -> OutgoingClient:
    resolver.table["api.example"] = ["127.0.0.1"]
    return make_client(resolver=resolver, guard=loopback_guard)


@pytest.fixture
def tls_client(
    make_client: Make, resolver: Any, loopback_guard: AddressGuard, service_over_tls: Tls
) -> OutgoingClient:
    """A client that trusts the certificate of `tls_service`."""
    resolver.table["api.example"] = ["127.0.0.1"]
    return make_client(resolver=resolver, guard=loopback_guard, ssl_context=service_over_tls[1])


@pytest.fixture
def service_place(service: Any) -> str:
    return f"api.example:{service.port}"


@pytest.fixture
def send(open_client: OutgoingClient, service_place: str, sender: Sender) -> Send:
    """Send to a path of the service, which is listed."""

    def to_service(path: str, **options: Any) -> OutgoingResponse:
        return sender.send(open_client, f"http://{service_place}{path}", [service_place], **options)

    return to_service


def test_listed_hosts_answer(send: Send, service: Any, sender: Sender, service_place: str) -> None:
    """Name in the Host header, the guest's own headers, the body as it came."""
    service.reply("/x", b"\x00\xff", status=418)
    headers = {"X-Mine": "1", "Host": "evil", "Cookie": "c"}
    answer = send("/x?y=1", method="POST", headers=headers, body=b"hi")
    assert (answer.status, answer.body, sender.sent) == (418, b"\x00\xff", 1)
    ((method, path, seen, body),) = service.seen
    assert (method, path, body, seen["Host"]) == ("POST", "/x?y=1", b"hi", service_place)
    assert seen["X-Mine"] == "1"
    assert "Cookie" not in seen


def test_a_host_that_is_not_listed_is_denied(open_client: OutgoingClient, sender: Sender) -> None:
    """Port and all, and nobody is even asked for its address."""
    with pytest.raises(CapabilityDenied) as caught:
        sender.send(open_client, "http://api.example:81/", ["api.example:80"])
    assert caught.value.details == {
        "requested": "network:api.example:81",
        "granted": ["network:api.example:80"],
    }
    assert sender.sent == 0


@pytest.mark.parametrize("method", ["PROPFIND", "M-SEARCH"])
def test_a_method_is_any_name_of_http(send: Send, service: Any, method: str) -> None:
    """Calendar and file services have methods of their own (RFC 9110, 9.1: any token)."""
    service.reply("/x", b"done")
    assert send("/x", method=method).body == b"done"
    assert [seen for seen, *_ in service.seen] == [method]


@pytest.mark.parametrize("method", ["CONNECT", "TRACE", "trace", "GET /", "G\u00cbT", "", "X" * 41])
def test_a_method_for_proxies_or_none_at_all_does_not_leave(
    send: Send, service: Any, sender: Sender, method: str
) -> None:
    """Nothing that could open a tunnel, echo a credential or begin a second request line."""
    with pytest.raises(ValueError, match="method"):
        send("/x", method=method)
    assert (sender.sent, service.seen) == (0, [])


@pytest.mark.parametrize(
    "addresses", [["127.0.0.1"], ["169.254.169.254"], ["::ffff:127.0.0.1"], ["1.1.1.1", "10.0.0.1"]]
)
def test_a_name_that_leads_inside_is_denied(
    make_client: Make,
    resolver: Any,
    sender: Sender,
    service: Any,
    service_place: str,
    addresses: list[str],
) -> None:
    """One inner address among them is enough, and no byte is sent."""
    resolver.table["api.example"] = addresses
    with pytest.raises(CapabilityDenied, match="no request may go there"):
        sender.send(make_client(resolver=resolver), f"http://{service_place}/", [service_place])
    assert (sender.sent, service.seen) == (0, [])


def test_the_address_that_was_checked_is_the_one_connected_to(
    make_client: Make,
    sender: Sender,
    service: Any,
    loopback_guard: AddressGuard,
    service_place: str,
) -> None:
    """A name that leads elsewhere the second time it is asked is asked once."""
    answers = [["127.0.0.1"], ["127.0.0.2"]]
    rebinding = SimpleNamespace(resolve=lambda host, port: answers.pop(0))
    service.reply("/")
    client = make_client(resolver=rebinding, guard=loopback_guard)
    assert sender.send(client, f"http://{service_place}/", [service_place]).status == 200
    assert answers == [["127.0.0.2"]]


def test_a_connection_that_ends_on_this_machine_carries_no_request(
    make_client: Make, resolver: Any, sender: Sender, service: Any, service_place: str
) -> None:
    """A public address may be our own: no list of ranges knows it, the connection itself does."""

    class NoRanges(AddressGuard):
        def problem(self, address: str, *, is_listed: bool = False) -> str | None:
            return None

    resolver.table["api.example"] = ["127.0.0.1"]
    with pytest.raises(CapabilityDenied, match="an address of this machine"):
        sender.send(
            make_client(resolver=resolver, guard=NoRanges()),
            f"http://{service_place}/",
            [service_place],
        )
    assert (sender.sent, service.seen) == (0, [])


def test_a_redirect_is_followed_within_the_list(
    send: Send, service: Any, sender: Sender, service_place: str
) -> None:
    """POST becomes GET after 302 and stays POST after 307, as browsers have it."""
    service.reply("/a", status=302, Location="/b")
    service.reply("/c", status=307, Location=f"http://{service_place}/b")
    service.reply("/b", b"there")
    for path in ("/a", "/c"):
        answer = send(path, method="POST", body=b"x")
        assert answer.body == b"there"
    assert [(m, p, b) for m, p, _, b in service.seen] == [
        ("POST", "/a", b"x"),
        ("GET", "/b", b""),
        ("POST", "/c", b"x"),
        ("POST", "/b", b"x"),
    ]
    assert sender.sent == 4


def test_a_redirect_to_get_leaves_what_described_the_body_behind(send: Send, service: Any) -> None:
    """RFC 9110, 15.4: Content-Type belongs to the body, which the GET does not have."""
    service.reply("/a", status=303, Location="/b")
    service.reply("/b")
    headers = {"Content-Type": "application/json", "X-Mine": "1"}
    send("/a", method="POST", headers=headers, body=b"{}")
    (_, _, first, _), (method, _, second, body) = service.seen
    assert (first["Content-Type"], method, body) == ("application/json", "GET", b"")
    assert ("Content-Type" in second, second["X-Mine"]) == (False, "1")


@pytest.mark.parametrize(
    ("location", "path"),
    [(b"/b?q=\xc3\xbc", "/b?q=%C3%BC"), (b"/b?q=\xfc", "/b?q=%C3%BC"), (b"/b c", "/b%20c")],
)
def test_a_redirect_to_a_raw_path_is_followed_as_the_service_meant_it(
    send: Send, service: Any, location: bytes, path: str
) -> None:
    """UTF-8 where it is UTF-8, Latin-1 where it can be nothing else, as browsers and Go have it."""

    def redirect(handler: http.server.BaseHTTPRequestHandler) -> None:
        handler.wfile.write(b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: %b\r\n\r\n" % location)  # fmt: skip

    service.answers["/a"] = redirect
    service.reply(path.split("?")[0])
    send("/a")
    assert [seen for _, seen, *_ in service.seen] == ["/a", path]


def test_a_redirect_to_nowhere_is_an_answer(send: Send, service: Any, sender: Sender) -> None:
    """An empty Location names no place, least of all the one that was just asked."""
    service.reply("/a", b"look around", status=302, Location="")
    answer = send("/a")
    assert (answer.status, answer.body, sender.sent) == (302, b"look around", 1)


@pytest.mark.parametrize(
    "location",
    ["http://other.example/", "//other.example:80/", "http://127.0.0.1:1/", "http://api.example@other.example/", "gopher://x/"],
)  # fmt: skip
def test_a_redirect_out_of_the_list_is_not_followed(
    send: Send, service: Any, sender: Sender, location: str
) -> None:
    service.reply("/a", status=302, Location=location)
    with pytest.raises((CapabilityDenied, NetworkError)):
        send("/a")
    assert sender.sent == 1


def test_a_listed_host_that_turns_inside_by_redirect_is_denied(
    open_client: OutgoingClient, resolver: Any, service: Any, sender: Sender, service_place: str
) -> None:
    resolver.table["inner.example"] = ["127.0.0.2"]
    inner = f"inner.example:{service.port}"
    service.reply("/a", status=302, Location=f"http://{inner}/secret")
    with pytest.raises(CapabilityDenied, match=r"inner\.example"):
        sender.send(open_client, f"http://{service_place}/a", [service_place, inner])


def test_endless_redirects_end(send: Send, service: Any, sender: Sender) -> None:
    """Five, then an error that is not worth repeating."""
    service.reply("/a", status=302, Location="/a")
    with pytest.raises(NetworkError, match="more than 5 times") as caught:
        send("/a")
    assert not caught.value.retriable
    assert sender.sent == 6


def test_authorization_does_not_follow_to_another_host(
    open_client: OutgoingClient, resolver: Any, service: Any, sender: Sender, service_place: str
) -> None:
    resolver.table["b.example"] = ["127.0.0.1"]
    places, headers = [service_place, f"b.example:{service.port}"], {"Authorization": "Bearer x"}
    service.reply("/a", status=307, Location=f"http://{places[1]}/b")
    service.reply("/b")
    sender.send(open_client, f"http://{service_place}/a", places, headers=headers)
    assert ["Authorization" in seen for _, _, seen, _ in service.seen] == [True, False]


def test_cookies_are_not_kept(send: Send, service: Any) -> None:
    """Neither on the next hop of the same request nor in the next call, also not the guest's own."""
    service.reply("/a", Set_Cookie="id=7")
    service.reply("/hop", status=307, Location="/a", Set_Cookie="id=8")
    for path in ("/a", "/a", "/hop", "/hop"):
        send(path, headers={"Cookie": "id=9"})
    assert [path for _, path, *_ in service.seen] == ["/a", "/a", "/hop", "/a", "/hop", "/a"]
    assert all("Cookie" not in seen for _, _, seen, _ in service.seen)


def test_a_body_over_the_limit_is_cut_off(send: Send, service: Any) -> None:
    def endless(handler: http.server.BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.end_headers()
        try:
            while True:
                handler.wfile.write(b"x" * 65536)
        except OSError:
            handler.close_connection = True

    service.answers["/a"] = endless
    with pytest.raises(ResourceLimitExceeded) as caught:
        send("/a", max_body=100_000)
    assert caught.value.details["limit"] == "response_body"


def test_answers_that_were_cut_off_give_their_connections_back(send: Send, service: Any) -> None:
    """More of them than there are connections, and the next request still finds one."""
    service.reply("/large", b"x" * 300_000)
    service.reply("/small")
    for _ in range(70):
        with pytest.raises(ResourceLimitExceeded):
            send("/large", max_body=1000)
    assert send("/small").status == 200


def test_a_waiting_request_can_be_stopped(send: Send, service: Any, sender: Sender) -> None:
    """From another thread, at once, while the service says nothing."""
    asked = service.hold("/a")

    def stop() -> None:
        asked.wait(10)
        sender.exchange.stop()

    stopper = threading.Thread(target=stop)
    stopper.start()
    began = time.monotonic()
    with pytest.raises(NetworkError):
        send("/a", seconds=30)
    stopper.join()
    assert time.monotonic() - began < 15


def test_a_name_that_hangs_holds_up_no_other_name(
    make_client: Make,
    sender: Sender,
    service: Any,
    loopback_guard: AddressGuard,
    service_place: str,
) -> None:
    """However many calls of one agent ask for it: they wait for one look-up."""
    release = threading.Event()
    asked: list[str] = []

    def resolve(host: str, port: int) -> list[str]:
        asked.append(host)
        if host == "hangs.example":
            release.wait(20)
        return ["127.0.0.1"]

    client = make_client(resolver=SimpleNamespace(resolve=resolve), guard=loopback_guard)
    service.reply("/")
    try:
        for _ in range(40):
            with pytest.raises(NetworkError, match="did not answer in time"):
                sender.send(client, "http://hangs.example/", ["hangs.example:80"], seconds=0.01)
        assert sender.sent == 0
        assert sender.send(client, f"http://{service_place}/", [service_place]).status == 200
        assert asked == ["hangs.example", "api.example"]
    finally:
        release.set()


def test_an_unknown_name_is_a_network_error(open_client: OutgoingClient, sender: Sender) -> None:
    with pytest.raises(NetworkError) as caught:
        sender.send(open_client, "http://no.example/s3cret?q=s3cret", ["no.example:80"])
    assert "no.example:80 cannot be reached" in caught.value.message
    assert "s3cret" not in caught.value.message
    assert caught.value.retriable


def test_a_closed_port_is_a_network_error_and_nothing_left(
    open_client: OutgoingClient, sender: Sender
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and does not listen; given back, it may be another's at once
        port = taken.getsockname()[1]
        with pytest.raises(NetworkError):
            sender.send(open_client, f"http://api.example:{port}/", [f"api.example:{port}"])
    assert sender.sent == 0


def test_a_routed_host_is_plain_http_with_its_own_name(
    make_client: Make, service: Any, sender: Sender
) -> None:
    """Whatever the URL says, the route's address gets it, under the original Host."""
    service.reply("/x", b"hello")
    route = Route(host="Api.example:443", address="127.0.0.1", port=service.port)
    client = make_client(routes=[route])
    answer = sender.send(client, "https://api.example/x", ["api.example:443"])
    assert answer.body == b"hello"
    assert service.seen[0][2]["Host"] == "api.example"
    assert client.is_routed("api.example:443")
    with pytest.raises(CapabilityDenied):
        sender.send(client, "https://api.example/x", ["other.example:443"])


def test_tls_goes_by_name_although_the_address_was_given(
    tls_client: OutgoingClient, resolver: Any, service: Any, sender: Sender, service_place: str
) -> None:
    """The certificate is checked for the name; another name at the same address is refused."""
    resolver.table["other.example"] = ["127.0.0.1"]
    places = [service_place, f"other.example:{service.port}"]
    assert sender.send(tls_client, f"https://{service_place}/x", places).body == b"secure"
    # The first connection is still open and trusted, for its own name only.
    with pytest.raises(NetworkError, match="certificate is not trusted"):
        sender.send(tls_client, f"https://{places[1]}/x", places)
    assert sender.sent == 1


def test_an_unknown_certificate_is_refused(
    open_client: OutgoingClient, service_over_tls: Tls, sender: Sender, service_place: str
) -> None:
    """The default trust store does not know the test's authority, and no request leaves."""
    with pytest.raises(NetworkError, match="certificate is not trusted"):
        sender.send(open_client, f"https://{service_place}/x", [service_place])
    assert (sender.sent, service_over_tls[0].seen) == (0, [])


def test_a_downgrade_by_redirect_is_refused(
    tls_client: OutgoingClient, service: Any, sender: Sender, service_place: str
) -> None:
    service.reply("/down", status=302, Location="http://api.example:80/x")
    with pytest.raises(CapabilityDenied, match="plain HTTP"):
        sender.send(tls_client, f"https://{service_place}/down", [service_place, "api.example:80"])


def test_proxies_of_the_environment_are_ignored(
    send: Send, service: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The address check could not hold through one."""
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    service.reply("/x", b"direct")
    assert send("/x").body == b"direct"
