"""Accounts as front ends, the wire and commands show them: never their secrets."""

from collections.abc import Collection, Iterable
from dataclasses import fields

from aileron_core.connectors.http.target import parse_target
from aileron_core.connectors.manifest import CLIENT_PLACEHOLDER
from aileron_core.console_port.account_views import (
    BoundAccount,
    BoundAccountView,
    CredentialUserView,
)
from aileron_core.credentials.binding import LOGIN_ENDED, Binding, CredentialUser, binding_name


def account_view(
    binding: Binding, users: Iterable[CredentialUser], accepted: Collection[str]
) -> BoundAccountView:
    """Return *binding* as it is shown.

    Args:
        users: the accepted connectors that ask for a credential.
        accepted: the digests of the accepted action files.
    """
    problem = binding.problem_among(users)
    remedy = "reauthorize" if problem == LOGIN_ENDED else "rebind"
    return BoundAccountView(
        **{each.name: getattr(binding, each.name) for each in fields(BoundAccount)},
        problem=problem,
        remedy=remedy if problem else "",
        remembered_for=tuple(
            each.name for each in binding.remembered_for if each.sha256 in accepted
        ),
    )


def user_view(user: CredentialUser) -> CredentialUserView:
    """Return a connector that asks for an account."""
    need, login = user.requirement, user.requirement.oauth2
    usable = login is not None and login.client_secret != CLIENT_PLACEHOLDER
    return CredentialUserView(
        connector=user.identity.fqn,
        ref=user.identity.ref,
        hash=user.identity.hash,
        kind=need.kind,
        hosts=user.hosts,
        header=need.header,
        scope=need.scope,
        access_key_id=need.access_key_id,
        client_id=login.client_id if login is not None and usable else "",
        default_name=binding_name(user, "default"),
        scopes=login.scopes if login is not None else (),
        login_host=_host(login.authorize_url) if login is not None else "",
        token_host=_host(login.token_url) if login is not None else "",
        needs_region=user.needs_region,
    )


def _host(url: str) -> str:
    try:
        return parse_target(url).host_port
    except ValueError:
        return url  # a login is refused then
