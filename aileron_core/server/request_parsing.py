"""Reads requests strictly: one of another form is refused, with a sentence on what to send instead."""

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from starlette.requests import Request
from starlette.types import Scope

from aileron_core.app import App
from aileron_core.errors import Forbidden, InvalidRequest, Unauthorized
from aileron_core.home.owner import Peer
from aileron_core.server.auth import came_over_tcp, request_principal
from aileron_core.server.bodies import WAIT_SECONDS, Keywords, keywords_of
from aileron_core.sessions.model import Session
from aileron_core.tasks import spawn


def app_of(request: Request) -> App:
    app: App = request.state.app
    return app


def require_session(scope: Scope) -> Session:
    """Return the session on whose behalf a request is made.

    Raises:
        Unauthorized: none, or a token that opens nothing.
    """
    session = request_principal(scope).session
    if session is None:
        raise Unauthorized("This needs a session token: Authorization: Bearer <token>.")
    return session


def require_peer(request: Request) -> Peer:
    """Return the process at the other end of the home's socket.

    Raises:
        Forbidden: the request came another way, or with a session's token.
    """
    principal = request_principal(request.scope)
    if principal.session is not None:
        raise Forbidden("A session is not allowed to do this.")
    if principal.peer is None:
        raise Unauthorized("This is only available on the home's Unix socket.")
    return principal.peer


def require_page(request: Request) -> None:
    """Check that a request for the review page's API is of a page, whose origin the guard has checked.

    Raises:
        Forbidden: it came over a Unix socket, or with a session's token.
        Unauthorized: with another token.
    """
    principal = request_principal(request.scope)
    if principal.session is not None or not came_over_tcp(request.scope):
        raise Forbidden("Only a paired device is allowed to do this.")
    if "authorization" in request.headers:
        raise Unauthorized("No token opens this. Pair a device in the console.")


async def json_object(request: Request, allowed: Collection[str] | None = None) -> dict[str, Any]:
    """Return the body as a JSON object with no other keys than *allowed*; None: any.

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
        content: object = json.loads(
            body, object_pairs_hook=_refuse_repeated_keys, parse_constant=_refuse_constant
        )
    except (ValueError, RecursionError) as error:
        raise InvalidRequest(f"The body is not JSON: {_reason(error)}.") from error
    if not isinstance(content, Mapping):
        raise InvalidRequest("The body must be a JSON object.")
    body_object = cast("Mapping[str, Any]", content)
    if allowed is not None and (unknown := sorted(set(body_object) - set(allowed))):
        raise InvalidRequest(
            f"Unknown key {unknown[0]!r} in the body; known: {', '.join(sorted(allowed)) or 'none'}."
        )
    return dict(body_object)


def _refuse_repeated_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse a repeated key: two readers of one body must not see two bodies."""
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a key appears twice in one object")
    return members


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _reason(error: Exception) -> str:
    return "nested too deeply" if isinstance(error, RecursionError) else str(error)[:200]


@dataclass(frozen=True, slots=True)
class RequestBody:
    """A body whose values are held to the bounds and defaults of its type in `bodies`."""

    content: Mapping[str, Any] = field(repr=False)
    keywords: Mapping[str, Keywords]
    """The bounds of each key that is known."""
    required: Collection[str] = ()

    def text(self, key: str) -> str:
        """Return the string under *key*; one that is not required and absent is empty.

        Raises:
            InvalidRequest: missing, no string, of a wrong length, or not UTF-8 text.
        """
        if key not in self.content:
            if key in self.required:
                raise InvalidRequest(f"{key!r} is missing.")
            return ""
        value = self.content[key]
        least, most = self.keywords[key].min_length or 0, self.keywords[key].max_length
        assert most is not None, key
        if not isinstance(value, str) or not least <= len(value) <= most:
            raise InvalidRequest(f"{key!r} must be a string of {least} to {most} characters.")
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise InvalidRequest(
                f"{key!r} contains a lone surrogate, which is not valid text."
            ) from error
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        """Return the list of strings under *key*, empty if it is absent.

        Raises:
            InvalidRequest: it is something else, or too long.
        """
        found: Any = self.content.get(key, [])
        most = self.keywords[key].max_items
        assert most is not None, key
        if not isinstance(found, list) or len(cast("list[object]", found)) > most:
            raise InvalidRequest(f"{key!r} must be a list of at most {most} texts.")
        return tuple(str(each)[:4096] for each in cast("list[object]", found))

    def number(self, key: str) -> float | None:
        """Return the number under *key*; absent or null is the default, None where there is none.

        Raises:
            InvalidRequest: no number, or out of bounds.
        """
        value, bounds = self.content.get(key), self.keywords[key]
        if value is None:
            return bounds.default
        least, most = bounds.minimum, bounds.maximum
        assert least is not None, key
        assert most is not None, key
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not least <= value <= most:
            raise InvalidRequest(f"{key!r} must be a number from {least:g} to {most:g}.")
        return value

    def whole_number(self, key: str) -> int | None:
        """Return the integer under *key*; 5.0 is one, 5.5 is not.

        Raises:
            InvalidRequest: no whole number, or out of bounds.
        """
        value = self.number(key)
        if value is not None and value != int(value):
            raise InvalidRequest(f"{key!r} must be a whole number.")
        return None if value is None else int(value)

    def flag(self, key: str) -> bool:
        """Return a key that is true or false; absent is false.

        Raises:
            InvalidRequest: it is something else.
        """
        value = self.content.get(key, False)
        if not isinstance(value, bool):
            raise InvalidRequest(f"{key!r} must be true or false.")
        return value


async def read_body(request: Request, form: type) -> RequestBody:
    """Return the body, which has no other keys than *form*, one of the TypedDicts in `bodies`.

    Raises:
        InvalidRequest: it is no JSON object, or has another key.
        PayloadTooLarge: it is over the limit.
    """
    keywords = keywords_of(form)
    required: frozenset[str] = getattr(form, "__required_keys__", frozenset())
    return RequestBody(await json_object(request, keywords), keywords, required)


def wait_seconds(request: Request) -> float:
    """Return the seconds of `?wait=`, 0 without one.

    Raises:
        InvalidRequest: they are no whole seconds, or too many.
    """
    raw = request.query_params.get("wait")
    if raw is None:
        return 0.0
    most = WAIT_SECONDS.maximum
    assert most is not None
    if not raw.isascii() or not raw.isdigit() or len(raw) > 2 or int(raw) > most:
        raise InvalidRequest(f"'wait' must be a whole number of seconds from 0 to {most}.")
    return float(raw)


@contextlib.asynccontextmanager
async def watch_disconnect(request: Request) -> AsyncGenerator[asyncio.Event]:
    """Yield an event that is set once the client has disconnected."""
    await request.body()  # after it, the only message to come is the end of the connection
    disconnected = asyncio.Event()

    async def watch() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass
        disconnected.set()

    watching = spawn(watch(), name="watch a client")
    await asyncio.sleep(0)  # so that a client which hung up before is known from the first look on
    try:
        yield disconnected
    finally:
        watching.cancel()
