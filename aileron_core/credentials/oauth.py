"""OAuth 2 on the wire: what a token endpoint is asked, and what it answers; built on authlib.

Every request leaves through the outgoing client: a checked address, TLS, no proxy, no redirect. No message
quotes what an endpoint wrote, since it may repeat what it was sent.
"""

import asyncio
import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar, cast
from urllib.parse import parse_qsl, urlencode, urlsplit

from aileron_core.clock import Clock
from aileron_core.connectors.http.target import RequestTarget, parse_target
from aileron_core.credentials.oauth_tokens import OAuthClient, Provider, account_in
from aileron_core.errors import (
    BindingFailed,
    CapabilityDenied,
    ExternalApiError,
    InvalidRequest,
)
from aileron_core.vault.secret import Secret

if TYPE_CHECKING:
    from aileron_core.connectors.http.call import OutgoingCall
    from aileron_core.connectors.http.client import OutgoingClient

_T = TypeVar("_T")
_REQUEST_SECONDS = 20.0
_MAX_ANSWER = 256 * 1024
_FORM = {"Content-Type": "application/x-www-form-urlencoded"}
_REVOKED = frozenset(
    {"invalid_grant", "bad_refresh_token", "invalid_refresh_token", "token_revoked"}
)
"""`invalid_grant` is the standard's (RFC 6749, 5.2); the others are GitHub's and Slack's."""
_CODES = _REVOKED | {
    *("invalid_request", "invalid_client", "unauthorized_client", "unsupported_grant_type"),
    *("invalid_scope", "access_denied", "server_error", "temporarily_unavailable"),
    *("authorization_pending", "slow_down", "expired_token", "interaction_required"),
    *("incorrect_client_credentials", "redirect_uri_mismatch", "bad_verification_code"),
    *("invalid_code", "bad_client_secret", "device_flow_disabled", "incorrect_device_code"),
}
"""The errors that may be named: an endpoint's own word for one may hold anything."""


class TokenRefused(BindingFailed):
    """A token endpoint refused; `code` is its error where that is a known one, else empty."""

    def __init__(self, host: str, code: str) -> None:
        super().__init__(f"{host} refused: {code or 'an error of its own'}")
        self.code = code

    @property
    def is_revoked(self) -> bool:
        """Whether what was granted has ended, by a person or by its age."""
        return self.code in _REVOKED


class TokenEndpoint:
    """Asks the endpoints of providers, over an outgoing client that is made for the first request.

    Args:
        make_client: without routes: what is asked here holds secrets.
    """

    def __init__(self, make_client: "Callable[[], OutgoingClient]", clock: Clock) -> None:
        self._make_client = make_client
        self._clock = clock
        self._made: OutgoingClient | None = None
        self._making = threading.Lock()

    def close(self) -> None:
        """Close its connections."""
        with self._making:
            if self._made is not None:
                self._made.close()

    async def grant(
        self, url: str, client: OAuthClient, grant_type: str, **fields: str
    ) -> dict[str, Any]:
        """Return the answer of the token endpoint *url* to *client* with *fields*.

        Raises:
            TokenRefused: it said no.
            NetworkError, CapabilityDenied: it was not reached, or may not be.
            ExternalApiError: it answered with something else.
        """

        def ask(session: _Session) -> Any:
            wire = _authlib_client(url, client, session)
            return wire.fetch_token(url, grant_type=grant_type, **fields)

        return await self._ask(url, ask)

    async def device_code(self, url: str, client: OAuthClient, scope: str) -> dict[str, Any]:
        """Return what *url* answers to a request for a device code (RFC 8628, 3.1); errors as of `grant`."""

        def ask(session: _Session) -> Any:
            wire = _authlib_client(url, client, session)
            auth = wire.client_auth(wire.token_endpoint_auth_method)
            return wire.parse_response_token(session.post(url, {"scope": scope}, {}, auth))

        return await self._ask(url, ask)

    async def account(self, provider: Provider, access_token: Secret) -> str:
        """Return whose account it is as *provider* says, empty if it does not."""
        if not (url := provider.account_url):
            return ""
        bearer = {"Authorization": f"Bearer {access_token.reveal_text()}"}
        status, answer = await self._in_thread(
            lambda call: self._send(call, "GET", url, None, bearer)
        )
        return account_in(answer) if status == 200 and answer is not None else ""

    async def _ask(self, url: str, ask: "Callable[[_Session], Any]") -> dict[str, Any]:
        def asked(call: "OutgoingCall") -> dict[str, Any] | None:
            def send(body: str, headers: Mapping[str, str]) -> tuple[int, dict[str, Any] | None]:
                return self._send(call, "POST", url, body.encode(), headers)

            try:
                return dict(ask(_Session(send)))
            except (ValueError, TypeError, OverflowError):  # authlib's, which may quote the answer
                return None

        answer = await self._in_thread(asked)
        if answer is None:
            raise ExternalApiError(
                f"{parse_target(url).host} answered a request for a token with something that cannot be "
                "used."
            )
        return answer

    async def _in_thread(self, send: "Callable[[OutgoingCall], _T]") -> _T:
        """Return what *send* does, which blocks; it ends with the task that waits for it."""
        from aileron_core.connectors.http.call import OutgoingCall

        deadline = self._clock.monotonic() + _REQUEST_SECONDS
        call = OutgoingCall(self._clock, deadline, lambda _method, _host: None)
        try:
            return await asyncio.to_thread(send, call)
        except asyncio.CancelledError:
            call.stop()
            raise

    def _send(
        self,
        call: "OutgoingCall",
        method: str,
        url: str,
        body: bytes | None,
        headers: Mapping[str, str],
    ) -> tuple[int, dict[str, Any] | None]:
        """Return the status and the JSON object of an answer, None for anything else."""
        from aileron_core.connectors.http.client import OutgoingRequest

        target = https_target(url)
        accepting = {"Accept": "application/json", **headers}
        response = self._client().send(
            OutgoingRequest(method=method, url=url, headers=accepting, body=body),
            call,
            allowed=(target.host_port,),
            max_redirects=0,
            max_body=_MAX_ANSWER,
        )
        try:
            answer: Any = json.loads(response.body)
        except (ValueError, RecursionError):
            answer = None
        is_object = isinstance(answer, dict)
        return response.status, cast("dict[str, Any]", answer) if is_object else None

    def _client(self) -> "OutgoingClient":
        with self._making:
            if self._made is None:
                self._made = self._make_client()
            return self._made


def refusal(error: Any) -> str:
    """Return *error* as an endpoint or a redirect has it if it is a known one, else nothing of it."""
    return error if isinstance(error, str) and error in _CODES else ""


def https_target(url: str) -> RequestTarget:
    """Return *url* parsed.

    Raises:
        CapabilityDenied: it is not https: what is sent there is secret.
    """
    try:
        target = parse_target(url)
    except ValueError as error:
        raise CapabilityDenied(f"An address of the manifest cannot be used: {error}.") from error
    if target.scheme != "https":
        raise CapabilityDenied(
            f"{target.host_port} would be asked for a token in plain HTTP. Only https is used.",
            details={"requested": f"network:{target.host_port}"},
        )
    return target


@dataclass(frozen=True, slots=True)
class _Session:
    """What authlib sends its requests through, and reads its answers from."""

    send: Callable[[str, Mapping[str, str]], tuple[int, dict[str, Any] | None]]
    """Sends a body with headers; returns the status and the JSON object of the answer."""

    def post(
        self, url: str, data: Mapping[str, str], headers: Mapping[str, str], auth: Any
    ) -> "_Response":
        _, headers, body = auth.prepare("POST", url, {**headers, **_FORM}, urlencode(data))
        status, answer = self.send(body, headers)
        host = parse_target(url).host
        if status == 429 or status >= 500 or answer is None:
            raise ExternalApiError(
                f"{host} answered a request for a token with status {status}"
                + ("" if answer is not None else ", and with something that is no JSON object"),
                status=status,
            )
        if status >= 400 and not answer.get("error"):
            raise TokenRefused(host, "")
        return _Response(status, answer)


@dataclass(frozen=True, slots=True)
class _Response:
    status_code: int
    _answer: dict[str, Any]

    def json(self) -> dict[str, Any]:
        return self._answer


def _authlib_client(url: str, client: OAuthClient, session: _Session | None = None) -> Any:
    """Return authlib's client, which asks at *url* as *client*."""
    from authlib.oauth2.client import OAuth2Client

    secret, host = client.client_secret, parse_target(url).host
    made: Any = OAuth2Client(
        session,
        client_id=client.client_id,
        client_secret=secret.reveal_text() if secret else None,
        # In the body (RFC 6749, 2.3.1): GitHub and Slack expect it there.
        token_endpoint_auth_method="client_secret_post" if secret else "none",
        code_challenge_method="S256",
    )

    def refused(error: object, description: object) -> TokenRefused:
        return TokenRefused(host, refusal(error))

    # Its own quotes the endpoint's description, and fails on a line break in it.
    made.oauth_error_class = refused
    return made


def authorize_address(
    url: str,
    client: OAuthClient,
    *,
    redirect_uri: str,
    scope: str,
    state: Secret,
    verifier: Secret,
    more: Mapping[str, str],
) -> str:
    """Return the authorize URL with what it is asked, and *more*, beside what it has in its query.

    Raises:
        InvalidRequest: it brings one of the parameters itself.
        CapabilityDenied: it is not https.
    """
    https_target(url)
    address, _ = _authlib_client(url, client).create_authorization_url(
        url.partition("#")[0],
        state=state.reveal_text(),
        code_verifier=verifier.reveal_text(),
        redirect_uri=redirect_uri,
        scope=scope,
        **more,
    )
    own, names = _parameter_names(url), _parameter_names(address)
    if taken := sorted({each for each in own if names.count(each) > own.count(each)}):
        raise InvalidRequest(
            f"The manifest's authorize_url sets {', '.join(taken)} itself, so it cannot be used."
        )
    return str(address)


def _parameter_names(url: str) -> list[str]:
    return [name for name, _ in parse_qsl(urlsplit(url).query, keep_blank_values=True)]
