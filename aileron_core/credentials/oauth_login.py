"""The two ways to log in at a provider: in a browser on this machine, or with a code entered on any device."""

import asyncio
import contextlib
import errno
import hmac
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self, TypeAlias
from urllib.parse import parse_qsl

from aileron_core.connectors.http.target import parse_target
from aileron_core.connectors.protocol import OAuth2Requirement
from aileron_core.credentials.oauth import (
    TokenEndpoint,
    TokenRefused,
    authorize_address,
    https_target,
    refusal,
)
from aileron_core.credentials.oauth_tokens import OAuthClient, Provider
from aileron_core.errors import (
    AileronError,
    BindingFailed,
    InvalidRequest,
    NetworkError,
    Unavailable,
)
from aileron_core.ids import new_token
from aileron_core.tasks import spawn
from aileron_core.vault.secret import Secret

PATH = "/callback"
_MAX_HEAD = 16 * 1024
_HEAD_SECONDS = 10.0
_MAX_CONNECTIONS = 16
_PORTS_TRIED = 20
_PAGE = (
    b"<!doctype html><meta charset=utf-8><title>Aileron</title>"
    b"<p>Aileron has received the answer. Close this page and continue in the terminal."
)
_HEADERS = (
    b"Content-Type: text/html; charset=utf-8\r\n"
    b"Content-Security-Policy: default-src 'none'\r\n"
    b"Referrer-Policy: no-referrer\r\n"
    b"X-Content-Type-Options: nosniff\r\n"
    b"Cache-Control: no-store\r\n"
    b"Connection: close\r\n"
)
_LONGEST_DEVICE_SECONDS = 900.0
_DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code"


class RedirectListener:
    """Receives one GET of the exact path with *state*, and is gone then; anything else is answered with 404.

    Whoever does not know the state (another program, a page in the browser) cannot end the login.
    It accepts connections itself: one that an `asyncio.Server` accepts as it closes is never answered.
    """

    def __init__(self, state: Secret, sock: socket.socket, beside: socket.socket | None) -> None:
        self._state = state
        self._socket = sock
        self._beside = beside
        """Holds `[::1]` at the same port, so that nobody else can answer there."""
        self._place = f"127.0.0.1:{sock.getsockname()[1]}"
        self._answer: asyncio.Future[Mapping[str, str]] = asyncio.get_running_loop().create_future()
        self._serving: dict[asyncio.Task[None], None] = {}
        self._accepting = spawn(self._accept(), name="redirect listener")
        # Not before its end: until then the loop watches the socket.
        self._accepting.add_done_callback(lambda _: sock.close())

    @classmethod
    def open(cls, state: Secret) -> Self:
        """Listen at a free port for the answer with *state*.

        Raises:
            Unavailable: there is none.
        """
        return cls(state, *_two_sockets())

    @property
    def redirect_uri(self) -> str:
        """Where the provider sends the browser."""
        return f"http://{self._place}{PATH}"

    async def receive(self) -> Mapping[str, str]:
        """Return the parameters of the one request."""
        return await asyncio.shield(self._answer)

    def close(self) -> None:
        """Give the port back. A second time nothing happens."""
        self._stop_listening()
        self._answer.cancel()
        for each in self._serving:
            each.cancel()

    def _stop_listening(self) -> None:
        self._accepting.cancel()
        if self._beside is not None:
            self._beside.close()

    async def _accept(self) -> None:
        while True:
            connection, _ = await asyncio.get_running_loop().sock_accept(self._socket)
            if len(self._serving) >= _MAX_CONNECTIONS:
                # The oldest: else whoever opens these and says nothing keeps the browser out.
                oldest = next(iter(self._serving))
                del self._serving[oldest]
                oldest.cancel()
            task = spawn(self._serve(connection), name="redirect")
            self._serving[task] = None
            task.add_done_callback(lambda each: self._serving.pop(each, None))

    async def _serve(self, connection: socket.socket) -> None:
        reader, writer = await asyncio.open_connection(sock=connection, limit=_MAX_HEAD)
        try:
            async with asyncio.timeout(_HEAD_SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
            await self._respond(writer, self._parameters(head))
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # what sent no request gets no answer
        finally:
            writer.close()

    async def _respond(self, writer: asyncio.StreamWriter, found: Mapping[str, str] | None) -> None:
        if found is None or self._answer.done():
            head, page = b"HTTP/1.1 404 Not Found\r\n", b""
        else:
            self._answer.set_result(found)
            self._stop_listening()  # the next one is not even connected
            head, page = b"HTTP/1.1 200 OK\r\n", _PAGE
        writer.write(head + _HEADERS + b"Content-Length: %d\r\n\r\n" % len(page) + page)
        with contextlib.suppress(OSError):
            await writer.drain()

    def _parameters(self, head: bytes) -> Mapping[str, str] | None:
        """Return the query of a request that is meant for this, None for any other."""
        lines = head.decode("latin-1").split("\r\n")
        words = lines[0].split(" ")
        headers = [line.partition(":") for line in lines[1:] if line]
        hosts = [value.strip() for name, _, value in headers if name.lower() == "host"]
        if len(words) != 3 or words[0] != "GET" or hosts != [self._place]:
            return None
        path, _, query = words[1].partition("?")
        if path != PATH:
            return None
        try:
            pairs = parse_qsl(query, keep_blank_values=True, errors="strict", max_num_fields=50)
        except ValueError:
            return None
        found = dict(pairs)
        if len(found) != len(pairs):  # two readers of one address could see two answers
            return None
        is_right = hmac.compare_digest(found.get("state", "").encode(), self._state.reveal())
        return found if is_right else None


def _two_sockets() -> tuple[socket.socket, socket.socket | None]:
    """Return a socket at a free port of 127.0.0.1, and one that holds the same port of `::1`."""
    for _ in range(_PORTS_TRIED):
        sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            sock.bind(("127.0.0.1", 0))
            sock.listen(_MAX_CONNECTIONS)
            sock.setblocking(False)
            return sock, _hold_ipv6(int(sock.getsockname()[1]))
        except OSError as error:
            sock.close()
            if error.errno != errno.EADDRINUSE:
                raise Unavailable(f"No port of 127.0.0.1 is free: {error.strerror}.") from error
    raise Unavailable("No port is free on both 127.0.0.1 and [::1]. Try again.")


def _hold_ipv6(port: int) -> socket.socket | None:
    """Return a socket at *port* of `::1` that is bound and refuses connections; None without IPv6.

    Raises:
        OSError: somebody else has the port.
    """
    try:
        sock = socket.socket(socket.AF_INET6, socket.SOCK_STREAM)
    except OSError:
        return None
    try:
        sock.bind(("::1", port))
    except OSError as error:
        sock.close()
        if error.errno == errno.EADDRINUSE:
            raise
        return None
    return sock


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginRequest:
    """What is asked of which provider, and as whom."""

    need: OAuth2Requirement
    provider: Provider
    client: OAuthClient
    scopes: tuple[str, ...]

    @property
    def scope(self) -> str:
        """The scopes as the provider separates them."""
        return self.provider.scope_separator.join(self.scopes)

    def is_issuer(self, value: str) -> bool:
        """Return whether *value* is the provider's `iss`: the known one, or else one at the login page's host."""
        if self.provider.issuer:
            return value == self.provider.issuer
        try:
            target = parse_target(value)
        except ValueError:
            return False
        login = parse_target(self.need.authorize_url)
        return (target.scheme, target.host_port) == (login.scheme, login.host_port)


class BrowserLogin:
    """Authorization code with PKCE; the browser brings the code to a port of this machine (RFC 8252).

    Raises:
        InvalidRequest, CapabilityDenied: the authorize URL cannot be used.
        Unavailable: no port is free.
    """

    user_code = ""

    def __init__(self, request: LoginRequest, endpoint: TokenEndpoint, seconds: float) -> None:
        self._request = request
        self._endpoint = endpoint
        self.seconds = seconds
        state, self._verifier = Secret(new_token()), Secret(new_token())
        self._listener = RedirectListener.open(state)
        try:
            self.url = authorize_address(
                request.need.authorize_url,
                request.client,
                redirect_uri=self._listener.redirect_uri,
                scope=request.scope,
                state=state,
                verifier=self._verifier,
                more=request.provider.parameters,
            )
        except AileronError:
            self.close()
            raise

    def close(self) -> None:
        self._listener.close()

    async def obtain(self) -> dict[str, Any]:
        found = await self._listener.receive()
        self.close()
        if "iss" in found and not self._request.is_issuer(found["iss"]):
            raise BindingFailed(
                "The answer in the browser is from another provider (its iss differs). Begin again."
            )
        need = self._request.need
        if "code" not in found:
            raise TokenRefused(parse_target(need.authorize_url).host, refusal(found.get("error")))
        return await self._endpoint.grant(
            need.token_url,
            self._request.client,
            "authorization_code",
            code=found["code"],
            redirect_uri=self._listener.redirect_uri,
            code_verifier=self._verifier.reveal_text(),
        )


@dataclass(slots=True, kw_only=True)
class DeviceLogin:
    """A device code (RFC 8628), which needs no browser here."""

    url: str
    user_code: str
    seconds: float
    _code: Secret
    _interval: float
    """Seconds between two questions."""
    _request: LoginRequest
    _endpoint: TokenEndpoint = field(repr=False)

    @classmethod
    async def begin(cls, request: LoginRequest, endpoint: TokenEndpoint) -> Self:
        """Ask the provider for a code.

        Raises:
            InvalidRequest: it is not known to give any.
            BindingFailed, NetworkError, CapabilityDenied, ExternalApiError: it gave none.
        """
        if not request.provider.device_url:
            raise InvalidRequest(
                f"{parse_target(request.need.authorize_url).host} is not known to give device codes. "
                "Leave out --device, and open the address in a browser on this machine."
            )
        answer = await endpoint.device_code(
            request.provider.device_url, request.client, request.scope
        )
        where = answer.get("verification_uri", answer.get("verification_url"))
        code, user_code = answer.get("device_code"), answer.get("user_code")
        if not all(_is_short(each) for each in (where, code, user_code)):
            raise BindingFailed("The provider answered without a device code that can be used.")
        https_target(str(where))
        return cls(
            url=str(where),
            user_code=str(user_code),
            seconds=min(_number(answer.get("expires_in"), 600.0), _LONGEST_DEVICE_SECONDS),
            _code=Secret(str(code)),
            _interval=max(_number(answer.get("interval"), 5.0), 1.0),
            _request=request,
            _endpoint=endpoint,
        )

    def close(self) -> None:
        pass

    async def obtain(self) -> dict[str, Any]:
        url, client = self._request.need.token_url, self._request.client
        code, interval = self._code.reveal_text(), self._interval
        while True:
            await asyncio.sleep(interval)
            try:
                return await self._endpoint.grant(url, client, _DEVICE_GRANT, device_code=code)
            except NetworkError:
                interval += 5
            except TokenRefused as refused:
                if refused.code == "slow_down":
                    interval += 5
                elif refused.code != "authorization_pending":
                    raise


Login: TypeAlias = BrowserLogin | DeviceLogin
"""One that waits for the person: `obtain` returns the token endpoint's answer, within `seconds`."""


def _is_short(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= 2048 and value.isprintable()


def _number(value: Any, default: float) -> float:
    usual = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 86400
    return float(value) if usual else default
