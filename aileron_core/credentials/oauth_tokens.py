"""What the vault keeps of an account of kind oauth2, what an answer of a token endpoint says, and what is known of providers."""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, cast

from aileron_core.connectors.http.target import parse_target
from aileron_core.connectors.protocol import OAuth2Requirement
from aileron_core.credentials.kinds import parse_json_secret
from aileron_core.errors import BindingFailed
from aileron_core.vault.secret import Secret


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """Who answers at the host of an authorize URL."""

    name: str
    token_hosts: frozenset[str] = frozenset()
    """Of its token endpoints, where it is not the login page's. Nothing else is served there that a stranger
    could make keep, or pass on, what is sent to it."""
    issuer: str = ""
    """What it calls itself in `iss`; empty if that differs by customer."""
    device_url: str = ""
    """Where a device code is asked for (RFC 8628); empty if it has none."""
    account_url: str = ""
    """What tells, with GET and the access token, whose account it is."""
    account_scopes: tuple[str, ...] = ()
    """Asked for besides those of the manifest, so that it tells the account, and can be renewed."""
    parameters: Mapping[str, str] = field(default_factory=dict[str, str])
    """Of the authorize URL: a choice of account, and a refresh token."""
    scope_separator: str = " "
    scope_prefix: str = ""
    """Of scopes that are granted under a longer name than they were asked for, or a shorter one."""


UNKNOWN = Provider(name="")
PROVIDERS: Mapping[str, Provider] = {
    "accounts.google.com": Provider(
        name="Google",
        token_hosts=frozenset({"oauth2.googleapis.com"}),
        issuer="https://accounts.google.com",
        device_url="https://oauth2.googleapis.com/device/code",
        account_url="https://openidconnect.googleapis.com/v1/userinfo",
        account_scopes=("openid", "email"),
        parameters={"access_type": "offline", "prompt": "consent select_account"},
        scope_prefix="https://www.googleapis.com/auth/userinfo.",
    ),
    "github.com": Provider(
        name="GitHub",
        device_url="https://github.com/login/device/code",
        account_url="https://api.github.com/user",
        parameters={"prompt": "select_account"},
    ),
    "login.microsoftonline.com": Provider(
        name="Microsoft",
        device_url="https://login.microsoftonline.com/common/oauth2/v2.0/devicecode",
        account_url="https://graph.microsoft.com/oidc/userinfo",
        account_scopes=("openid", "email", "offline_access"),
        parameters={"prompt": "select_account"},
        scope_prefix="https://graph.microsoft.com/",
    ),
    "auth.atlassian.com": Provider(
        name="Atlassian",
        account_url="https://api.atlassian.com/me",
        account_scopes=("offline_access",),
        parameters={"audience": "api.atlassian.com", "prompt": "consent"},
    ),
    "slack.com": Provider(name="Slack", scope_separator=","),
    "linear.app": Provider(
        name="Linear",
        token_hosts=frozenset({"api.linear.app"}),
        parameters={"prompt": "consent"},
        scope_separator=",",
    ),
}
"""By the host of the authorize URL."""


def provider_of(authorize_url: str, providers: Mapping[str, Provider] = PROVIDERS) -> Provider:
    """Return who answers at *authorize_url*, `UNKNOWN` where that is not known.

    Raises:
        ValueError: it is not a URL.
    """
    return providers.get(parse_target(authorize_url).host, UNKNOWN)


def is_own_token_host(authorize_url: str, token_url: str, provider: Provider) -> bool:
    """Return whether the token endpoint is at the login page's host, or at one known to be the provider's.

    A code, and all that it opens, goes to the token endpoint: a manifest could name somebody else's
    beside a login page that a person trusts. Hosts that share a domain do not count, nor do names below
    the login page's: many services give those to their customers.

    Raises:
        ValueError: one of them is not a URL.
    """
    login, token = parse_target(authorize_url), parse_target(token_url)
    if token.port != login.port:
        return False
    return token.host == login.host or token.host in provider.token_hosts


REFRESH_SECONDS = 60.0
"""How long before its end an access token is renewed."""
_MAX_TOKEN = 16 * 1024
_SHORTEST_TOKEN = 8
"""Bytes. A shorter one could not be told from ordinary text in a service's answer."""
_MAX_ACCOUNT = 200
_MAX_SCOPE, _MAX_SCOPES = 300, 100
_LONGEST_LIFE = 10 * 365 * 86400.0
_UNNAMED_SCOPES = frozenset({"openid", "offline_access"})
"""Granted without being listed, by some providers."""
_ACCOUNT_CLAIMS = ("email", "preferred_username", "login", "name")
_CLOCKS_DIFFER = 60
"""Seconds by which a provider's clock may be before or behind this one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OAuthClient:
    """As whom a provider knows this program: the manifest's registration, or the person's own."""

    client_id: str
    client_secret: Secret | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokens:
    """What an account of kind oauth2 is in the vault."""

    access_token: Secret
    refresh_token: Secret | None
    expires_at: float | None
    """Epoch seconds; None if it does not end by itself."""
    client: OAuthClient
    token_url: str
    scopes: tuple[str, ...]
    """Granted."""

    def is_due(self, now: float) -> bool:
        """Return whether it has to be renewed before it is used."""
        return self.expires_at is not None and now >= self.expires_at - REFRESH_SECONDS

    def is_over(self, now: float) -> bool:
        return self.expires_at is not None and now >= self.expires_at

    def to_secret(self) -> Secret:
        """Return it as the vault keeps it."""
        refresh, secret = self.refresh_token, self.client.client_secret
        return Secret(
            json.dumps(
                {
                    "access_token": self.access_token.reveal_text(),
                    "refresh_token": refresh.reveal_text() if refresh else "",
                    "expires_at": self.expires_at,
                    "token_type": "Bearer",
                    "client_id": self.client.client_id,
                    "client_secret": secret.reveal_text() if secret else "",
                    "token_url": self.token_url,
                    "scopes": list(self.scopes),
                }
            )
        )

    @classmethod
    def from_secret(cls, secret: Secret) -> "Tokens":
        """Read what `to_secret` or upstream Aileron wrote.

        Raises:
            BindingFailed: it is something else.
        """
        fields = parse_json_secret(secret)
        refresh, client_secret = str(fields.get("refresh_token") or ""), fields.get("client_secret")
        return cls(
            access_token=Secret(str(fields.get("access_token") or "")),
            refresh_token=Secret(refresh) if refresh else None,
            expires_at=_moment(fields.get("expires_at")),
            client=OAuthClient(
                client_id=str(fields.get("client_id") or ""),
                client_secret=Secret(str(client_secret)) if client_secret else None,
            ),
            token_url=str(fields.get("token_url") or ""),
            scopes=parse_scopes(fields.get("scopes")) or (),
        )

    @classmethod
    def from_answer(
        cls,
        answer: Mapping[str, Any],
        *,
        client: OAuthClient,
        token_url: str,
        asked: tuple[str, ...],
        now: float,
    ) -> "Tokens":
        """Return what a token endpoint's *answer* grants; all of *asked* where it names no scope.

        Raises:
            BindingFailed: there is no token in it that can be used.
        """
        token, kind = answer.get("access_token"), answer.get("token_type", "Bearer")
        host = parse_target(token_url).host
        if not _is_token(token) or str(kind).lower() in ("mac", "dpop", "pop"):
            raise BindingFailed(f"{host} answered without an access token that can be used.")
        refresh = answer.get("refresh_token")
        granted = parse_scopes(answer.get("scope"))
        return cls(
            access_token=Secret(str(token)),
            refresh_token=Secret(str(refresh)) if _is_token(refresh) else None,
            expires_at=_expiry(answer.get("expires_in"), now),
            client=client,
            token_url=token_url,
            scopes=asked if granted is None else granted,
        )

    def renewed(self, answer: Mapping[str, Any], now: float) -> "Tokens":
        """Return what *answer*, to a refresh, makes of it: what it leaves out stays.

        Raises:
            BindingFailed: there is no token in it that can be used.
        """
        new = Tokens.from_answer(
            answer, client=self.client, token_url=self.token_url, asked=self.scopes, now=now
        )
        return replace(new, refresh_token=new.refresh_token or self.refresh_token)


def parse_scopes(value: Any) -> tuple[str, ...] | None:
    """Return the scopes of an answer, whichever way it separates them; None if it has none."""
    if isinstance(value, list):
        found = [each for each in cast("list[Any]", value) if isinstance(each, str)]
    elif isinstance(value, str):
        found = [each for each in re.split(r"[ ,]+", value) if each]
    else:
        return None
    known = [each for each in found if each.isprintable() and len(each) <= _MAX_SCOPE]
    return tuple(dict.fromkeys(known))[:_MAX_SCOPES]


def missing_scopes(need: OAuth2Requirement, granted: Iterable[str]) -> tuple[str, ...]:
    """Return what *need* asks for and was not granted."""
    prefix = provider_of(need.authorize_url).scope_prefix
    names = {each.removeprefix(prefix) for each in granted}
    return tuple(
        each
        for each in need.scopes
        if each not in _UNNAMED_SCOPES and each.removeprefix(prefix) not in names
    )


def account_in(claims: Mapping[str, Any]) -> str:
    """Return the name of an account in what a provider says of it, empty if there is none to show."""
    for key in _ACCOUNT_CLAIMS:
        value = claims.get(key)
        if isinstance(value, str) and 0 < len(value) <= _MAX_ACCOUNT and value.isprintable():
            return value
    return ""


def account_in_answer(answer: Mapping[str, Any], client_id: str, issuer: str, now: float) -> str:
    """Return the account in the `id_token` of a token endpoint's *answer*, empty if there is none.

    Its signature is not looked at: it came from the endpoint itself, over TLS (OpenID Connect Core,
    3.1.3.7). One for another client, of another issuer or of another time does not count.
    """
    token = answer.get("id_token")
    if not isinstance(token, str) or len(token) > _MAX_TOKEN:
        return ""
    from joserfc.errors import JoseError
    from joserfc.jws import extract_compact
    from joserfc.jwt import JWTClaimsRegistry

    expected = JWTClaimsRegistry(
        now=int(now),
        leeway=_CLOCKS_DIFFER,
        aud={"essential": True, "value": client_id},
        iss={"essential": True, "value": issuer} if issuer else {},
    )
    try:
        claims: Any = json.loads(extract_compact(token.encode()).payload)
        if not isinstance(claims, dict):
            return ""
        expected.validate(cast("dict[str, Any]", claims))
    except (JoseError, ValueError, RecursionError):
        return ""
    return account_in(cast("dict[str, Any]", claims))


def _is_token(value: Any) -> bool:
    """Return whether *value* is one that a header can carry and an answer can be searched for."""
    return (
        isinstance(value, str)
        and _SHORTEST_TOKEN <= len(value) <= _MAX_TOKEN
        and value.isascii()
        and value.isprintable()
    )


def _expiry(seconds: Any, now: float) -> float | None:
    if isinstance(seconds, str) and seconds.isascii() and seconds.isdigit():
        seconds = int(seconds[:12])
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        return None
    return now + (seconds if 0 <= seconds <= _LONGEST_LIFE else 0.0)


def _moment(value: Any) -> float | None:
    """Return epoch seconds from a number, or from RFC 3339 as upstream Aileron writes it."""
    if isinstance(value, str) and value:
        try:
            return datetime.fromisoformat(value).timestamp()
        except ValueError:
            return 0.0
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
