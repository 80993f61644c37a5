"""The two ways to log in at a provider: in a browser on this machine, or with a code entered on any device."""

import asyncio
from dataclasses import dataclass, field
from typing import Any, Protocol, Self

from aileron_core.connectors.http.target import parse_target
from aileron_core.connectors.manifest import OAuth2Requirement
from aileron_core.credentials.oauth import (
    TokenEndpoint,
    TokenRefused,
    authorize_address,
    https_target,
    refusal,
)
from aileron_core.credentials.oauth_listener import RedirectListener
from aileron_core.credentials.oauth_providers import Provider
from aileron_core.credentials.oauth_tokens import OAuthClient
from aileron_core.errors import AileronError, BindingFailed, InvalidRequest, NetworkError
from aileron_core.ids import new_token
from aileron_core.vault.secret import Secret

_LONGEST_DEVICE_SECONDS = 900.0
_DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code"


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


class Login(Protocol):
    """One that waits for the person at the provider."""

    @property
    def url(self) -> str:
        """Where the person goes."""
        ...

    @property
    def user_code(self) -> str:
        """What they enter there; empty if nothing."""
        ...

    @property
    def seconds(self) -> float:
        """How long it may take."""
        ...

    async def obtain(self) -> dict[str, Any]:
        """Wait for the person, and return the token endpoint's answer.

        Raises:
            BindingFailed, NetworkError, CapabilityDenied, ExternalApiError: there is none.
        """
        ...

    def close(self) -> None:
        """Stop listening."""
        ...


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


def _is_short(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= 2048 and value.isprintable()


def _number(value: Any, default: float) -> float:
    usual = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 86400
    return float(value) if usual else default
