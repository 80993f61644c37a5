"""What a person enters for an account: checked, and in the form in which the vault keeps it."""

import json
from collections.abc import Sequence

from aileron_core.connectors.manifest import is_aws_region
from aileron_core.connectors.protocol import CredentialRequirement
from aileron_core.console_port.account_intents import BindAccount
from aileron_core.errors import InvalidRequest
from aileron_core.vault.secret import Secret

_SHORTEST_SECRET = 8
"""Bytes. A shorter one could not be told from ordinary text in an answer."""
_MAX_SECRET = 16 * 1024


def stored_secret(asked: BindAccount, need: CredentialRequirement) -> Secret:
    """Return what *asked* has for an account that *need* asks for, as the vault keeps it.

    Raises:
        InvalidRequest: a part is missing, too short, too long, or cannot be sent in a header.
    """
    kind = need.kind
    if kind == "environment":
        return _stored_values(need.names, asked.secret)
    if kind == "oauth2":
        raise InvalidRequest(
            "An account of kind oauth2 cannot be typed: you log in at its service, in a browser."
        )
    key = stored_key(asked.secret)
    _check_parts(asked, kind)
    if kind == "api_key":
        return key
    if not asked.user:
        missing = "the access key's id" if kind == "aws_sigv4" else "the user name"
        raise InvalidRequest(f"An account of kind {kind} needs {missing} too.")
    if kind == "basic":
        return Secret(json.dumps({"user": asked.user, "password": key.reveal_text()}))
    token = asked.session_token
    return Secret(
        json.dumps(
            {
                "access_key_id": asked.user,
                "secret_access_key": key.reveal_text(),
                **({"session_token": token.reveal_text()} if token else {}),
            }
        )
    )


def stored_key(secret: Secret) -> Secret:
    """Return a secret of one value as the vault keeps it; errors as of `stored_secret`."""
    size = len(secret)
    if not _SHORTEST_SECRET <= size <= _MAX_SECRET:
        raise InvalidRequest(
            f"The secret has {size} bytes; it needs {_SHORTEST_SECRET} to {_MAX_SECRET}. A shorter "
            "one could not be found and removed from a service's answers."
        )
    _check_sendable("secret", secret.reveal())
    return Secret(secret.reveal_text())


def _stored_values(names: Sequence[str], given: Secret) -> Secret:
    """Return the *given* values, which are as `named_values` makes them, as the vault keeps those of *names*.

    Raises:
        InvalidRequest: a value is missing, too short, or cannot be in an environment; or they are too long.
    """
    values = _values(given)
    if not values.keys() <= {*names}:
        raise InvalidRequest(f"Only these values are asked for: {', '.join(names)}.")
    for name in names:
        if name not in values:
            raise InvalidRequest(f"There is no value for {name}.")
        size = len(values[name].encode())
        if size < _SHORTEST_SECRET:
            raise InvalidRequest(
                f"The value of {name} has {size} bytes; it needs at least {_SHORTEST_SECRET}. A shorter one "
                "could not be found and removed from the server's answers. If it is not secret, put it into "
                "env in the server's manifest."
            )
    stored = json.dumps({name: values[name] for name in names})
    if len(stored) > _MAX_SECRET:
        raise InvalidRequest(f"The values have more than {_MAX_SECRET} bytes together.")
    return Secret(stored)


def _values(secret: Secret) -> dict[str, str]:
    try:
        values: dict[str, str] = json.loads(secret.reveal())
        if not any(b"\0" in str.encode(each) for each in values.values()):
            return values
    except (ValueError, TypeError, AttributeError, RecursionError):
        pass  # it is no such object; what it says of that quotes the values
    raise InvalidRequest("The values have to be a JSON object: each name with a text, without NUL.")


def _check_sendable(what: str, sent: bytes) -> None:
    if any(byte < 0x20 or byte > 0x7E for byte in sent):
        raise InvalidRequest(
            f"The {what} holds a line break or another character that cannot be sent in a header."
        )


def _check_parts(asked: BindAccount, kind: str) -> None:
    token = b"" if asked.session_token is None else asked.session_token.reveal()
    if len(token) + len(asked.user.encode()) > _MAX_SECRET:
        raise InvalidRequest(
            f"User name and session token are longer than {_MAX_SECRET} bytes together."
        )
    _check_sendable("session token", token)
    if not asked.user.isprintable() or (":" in asked.user and kind == "basic"):
        raise InvalidRequest("The user name holds a colon, a line break or a control character.")
    if kind == "aws_sigv4" and not asked.user.isascii():
        raise InvalidRequest("An access key's id has ASCII characters only.")
    if asked.region and kind != "aws_sigv4":
        raise InvalidRequest(f"An account of kind {kind} has no region.")
    if asked.region and not is_aws_region(asked.region):
        raise InvalidRequest(f"{asked.region[:80]!r} is no AWS region, such as eu-west-1.")
