"""Reading requests strictly: what is not of the form is refused with what to do instead."""

import json
from collections.abc import Collection, Mapping
from typing import Any, cast

from starlette.requests import Request
from starlette.types import Scope

from aileron_core.errors import Forbidden, InvalidRequest, Unauthorized
from aileron_core.home.owner import Peer
from aileron_core.server.auth import principal_of
from aileron_core.sessions.model import Session


def require_session(scope: Scope) -> Session:
    """Return the session that a request speaks for.

    Raises:
        Unauthorized: none, or a token that opens nothing.
    """
    session = principal_of(scope).session
    if session is None:
        raise Unauthorized("A session token is needed: Authorization: Bearer <token>.")
    return session


def require_peer(request: Request) -> Peer:
    """Return the process at the other end of the home's socket.

    Raises:
        Forbidden: the request came another way, or with a session's token.
    """
    principal = principal_of(request.scope)
    if principal.session is not None:
        raise Forbidden("A session may not do this.")
    if principal.peer is None:
        raise Unauthorized("This is answered on the home's Unix socket only.")
    return principal.peer


def refuse_person_route(request: Request) -> None:
    """Refuse what only a person decides, before anything is looked up.

    Raises:
        Forbidden: to every session token.
        Unauthorized: otherwise.
    """
    if principal_of(request.scope).session is not None:
        raise Forbidden("Only a person decides and reads this, in the console.")
    raise Unauthorized("Only a person decides and reads this, in the console.")


async def json_object(request: Request, allowed: Collection[str]) -> dict[str, Any]:
    """Return the body as a JSON object with no other keys than *allowed*.

    Raises:
        InvalidRequest: it is something else.
        PayloadTooLarge: it is over the limit.
    """
    body = await request.body()
    if not body:
        return {}
    media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media != "application/json":
        raise InvalidRequest("Send the body as Content-Type: application/json.")
    try:
        content: object = json.loads(body, object_pairs_hook=_once, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise InvalidRequest(f"The body is not JSON: {_reason(error)}.") from error
    if not isinstance(content, Mapping):
        raise InvalidRequest("The body must be a JSON object.")
    found = cast("Mapping[str, Any]", content)
    if unknown := sorted(set(found) - set(allowed)):
        raise InvalidRequest(
            f"Unknown key {unknown[0]!r} in the body; known: {', '.join(sorted(allowed)) or 'none'}."
        )
    return dict(found)


def flag(body: Mapping[str, Any], name: str) -> bool:
    """Return a key that is true or false; absent is false.

    Raises:
        InvalidRequest: it is something else.
    """
    found = body.get(name, False)
    if not isinstance(found, bool):
        raise InvalidRequest(f"{name!r} must be true or false.")
    return found


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse a key that stands twice: two readers of one body must not see two bodies."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands twice in one object")
    return found


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _reason(error: Exception) -> str:
    return "nested too deeply" if isinstance(error, RecursionError) else str(error)[:200]


def text(
    body: Mapping[str, Any], key: str, *, most: int, default: str | None = None, least: int = 0
) -> str:
    """Return the string under *key*, at most *most* characters.

    Raises:
        InvalidRequest: missing without a *default*, no string, of a wrong length, or not UTF-8 text.
    """
    value = body.get(key, default)
    if value is None and key not in body:
        raise InvalidRequest(f"{key!r} is missing.")
    if not isinstance(value, str) or not least <= len(value) <= most:
        raise InvalidRequest(f"{key!r} must be a string of {least} to {most} characters.")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise InvalidRequest(f"{key!r} holds a lone surrogate, which is not text.") from error
    return value


def number(
    body: Mapping[str, Any], key: str, *, default: float | None, least: float, most: float
) -> float | None:
    """Return the number under *key*.

    Raises:
        InvalidRequest: no number, or out of bounds.
    """
    value = body.get(key)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
        raise InvalidRequest(f"{key!r} must be a number from {least:g} to {most:g}.")
    return value


def whole_number(
    body: Mapping[str, Any], key: str, *, default: int | None, least: int, most: int
) -> int | None:
    """Return the integer under *key*; 5.0 is one, 5.5 is not.

    Raises:
        InvalidRequest: no whole number, or out of bounds.
    """
    found = number(body, key, default=default, least=least, most=most)
    if found is not None and found != int(found):
        raise InvalidRequest(f"{key!r} must be a whole number.")
    return None if found is None else int(found)
