"""What is known of providers of OAuth 2 beside a manifest, and which token endpoint belongs to a login page."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from aileron_core.connectors.http.target import parse_target


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
