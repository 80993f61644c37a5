"""The review page and its API: what a paired device sends, is shown, and decides (docs/review-api.md).

The page itself is the same for everybody and shows nothing. Its API is for pages of an origin that the person
named (`auth.check_review`), and behind `link` and `key` for requests that a paired device signed.
"""

import asyncio
import contextlib
import html
import re
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from importlib import resources
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from aileron_core import tasks
from aileron_core.app import App
from aileron_core.canonical import JsonObject, in_utf8, sha256_hex
from aileron_core.console_port.codec import to_bytes
from aileron_core.console_port.events import ApprovalUpdated, CoreEvent, PauseChanged
from aileron_core.console_port.intents import Approve, Deny
from aileron_core.devices import Hand
from aileron_core.devices.pairing import Device
from aileron_core.devices.signed import Decision, SignedDecision
from aileron_core.errors import InvalidRequest, NotFound, Unavailable
from aileron_core.ids import APPROVAL_ID
from aileron_core.runs import LiveRun
from aileron_core.server.auth import REVIEW_API, drop_connection, hold_connection
from aileron_core.server.request_parsing import app_of, json_object, watch_disconnect
from aileron_core.server.review_items import ReviewDrawing, SentItem
from aileron_core.server.route_spec import RouteSpec

_WAIT_SECONDS: Final = 20.0
_BEAT_SECONDS: Final = 1.0
_BETWEEN_LISTS: Final = 0.2
"""Seconds: calls may come by the hundred."""
_PIECE_BYTES: Final = 256 * 1024
_STALLED_SECONDS: Final = 10.0
"""After which a device that does not read what it is sent is cut off."""
_MOST_REASON: Final = 2_000


# The page


@cache
def _page(name: str) -> bytes:
    return resources.files("aileron_core.server").joinpath("page", name).read_bytes()


_PAGE_HEADERS: Final[Mapping[str, str]] = {
    "cache-control": "no-store",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-embedder-policy": "require-corp",
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
        "require-trusted-types-for 'script'; trusted-types 'none'"
    ),
}


def _response(content: bytes, media_type: str) -> Response:
    return Response(content, media_type=media_type, headers=_PAGE_HEADERS)


async def page(request: Request) -> Response:
    """Show the same page for every id of an approval, known or not, and without one."""
    approval_id = request.path_params.get("id")
    if approval_id is not None and not APPROVAL_ID.fullmatch(approval_id):
        raise NotFound("This is not an approval id.")
    shown = html.escape(app_of(request).devices.link_key).encode()
    return _response(_page("review.html").replace(b"LINK_KEY", shown), "text/html")


async def script(_request: Request) -> Response:
    """Return the page's script."""
    return _response(_page("review.js"), "text/javascript")


async def style(_request: Request) -> Response:
    """Return the page's style sheet."""
    return _response(_page("review.css"), "text/css")


# What a request is


@dataclass(slots=True)
class ReviewRoom:
    """What the API needs besides the core: how calls are drawn, and what each device was sent last."""

    drawing: ReviewDrawing
    sent: dict[str, SentItem] = field(default_factory=dict[str, SentItem])


def _room(request: Request) -> ReviewRoom:
    room: ReviewRoom | None = request.app.state.review
    if room is None:
        raise Unavailable("This console shows no review page. Decide in the console.")
    return room


def _text(body: Mapping[str, Any], key: str, most: int) -> str:
    """Return the string under *key*.

    Raises:
        InvalidRequest: it is none, longer than *most*, or not UTF-8 text.
    """
    found = body.get(key)
    if not isinstance(found, str) or len(found) > most:
        raise InvalidRequest(f"{key!r} must be a string of at most {most} characters.")
    if found != in_utf8(found):
        raise InvalidRequest(f"{key!r} contains a lone surrogate, which is not valid text.")
    return found


def hex_bytes(body: Mapping[str, Any], key: str, size: int) -> bytes:
    """Return the bytes under *key*, which stand there in lower-case hex.

    Raises:
        InvalidRequest: they are something else.
    """
    found = body.get(key)
    if not isinstance(found, str) or not re.fullmatch(f"[0-9a-f]{{{2 * size}}}", found):
        raise InvalidRequest(f"{key!r} must be {size} bytes in lower-case hex.")
    return bytes.fromhex(found)


def _number(body: Mapping[str, Any], key: str) -> int:
    found = body.get(key)
    if type(found) is not int:
        raise InvalidRequest(f"{key!r} must be a whole number.")
    return found


async def signing_device(
    request: Request, *, confirmed: bool = True, peer: int | None = None
) -> Device:
    """Return the paired device that signed *request*; *peer*: the process that sent it over the home's socket.

    Raises:
        Unauthorized: none did, or a person has not confirmed it.
    """
    pairings, headers = app_of(request).devices.pairings, request.headers
    number, signature = headers.get("aileron-number", ""), headers.get("aileron-signature", "")
    is_formed = re.fullmatch("[0-9]{1,16}", number) and re.fullmatch("[0-9a-f]{128}", signature)
    query: bytes = request.scope["query_string"]
    device = pairings.authenticate(
        headers.get("aileron-device", ""),
        # A number below any, or no signature at all, is refused as every other wrong one is.
        int(number) if is_formed and not query else -1,
        bytes.fromhex(signature) if is_formed else b"",
        request.scope["path"],
        await request.body(),
        peer=peer,
    )
    if confirmed:
        pairings.require_confirmed(device)
    hold_connection(request.scope, device.device_id)
    return device


# Pairing


async def link(request: Request) -> Response:
    """Redeem a link for a device that has fixed its key."""
    app, body = app_of(request), await json_object(request, ("secret", "commitment"))
    client, server = request.scope.get("client"), request.scope.get("server")
    device = await app.devices.redeem(
        hex_bytes(body, "secret", 16).hex(),
        hex_bytes(body, "commitment", 32),
        (client[0], client[1]) if client else None,
        (server[0], server[1]) if server else None,
    )
    return _json(
        {
            "device": device.device_id,
            "start": app.devices.pairings.start,
            "nonce": device.nonce.hex(),
        }
    )


async def key(request: Request) -> Response:
    """Take the key that a device had fixed, and say its words."""
    body = await json_object(request, ("device", "key", "random"))
    device = await app_of(request).devices.reveal(
        _text(body, "device", 64), hex_bytes(body, "key", 65), hex_bytes(body, "random", 32)
    )
    return _json({"words": device.words})


async def wait(request: Request) -> Response:
    """Say whether a person has confirmed the device, at once or after at most 20 seconds."""
    device, app = await signing_device(request, confirmed=False), app_of(request)
    await json_object(request, ())
    draining: asyncio.Event = request.app.state.draining
    await tasks.any_set(device.confirmed, device.ended, draining, seconds=_WAIT_SECONDS)
    if device.confirmed.is_set() or device.ended.is_set():
        app.devices.pairings.require_confirmed(device)
    return _json({"confirmed": device.confirmed.is_set()})


# Showing


async def events(request: Request) -> Response:
    """Stream what waits, at once and on each change, and a sign of life every second."""
    device, room = await signing_device(request), _room(request)
    await json_object(request, ())
    return LineStream(_lines(request, device, room.drawing))


class LineStream(Response):
    """JSON, a line each, until there are no more or the client stops reading: then it is cut off."""

    media_type = "application/jsonl"

    def __init__(self, lines: AsyncGenerator[bytes]) -> None:
        super().__init__(headers={"cache-control": "no-store"})
        del self.headers["content-length"]
        self._lines = lines

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        start = {"type": "http.response.start", "status": 200, "headers": self.raw_headers}
        await send(start)
        try:
            async with contextlib.aclosing(self._lines):
                async for line in self._lines:
                    for at in range(0, len(line), _PIECE_BYTES):
                        body = line[at : at + _PIECE_BYTES]
                        async with asyncio.timeout(_STALLED_SECONDS):
                            await send(
                                {"type": "http.response.body", "body": body, "more_body": True}
                            )
            await send({"type": "http.response.body", "body": b""})
        except TimeoutError:
            drop_connection(scope)


async def _lines(request: Request, device: Device, drawing: ReviewDrawing) -> AsyncGenerator[bytes]:
    app = app_of(request)
    draining: asyncio.Event = request.app.state.draining
    changed = asyncio.Event()

    def heard(event: CoreEvent) -> None:
        if isinstance(event, ApprovalUpdated | PauseChanged):
            changed.set()

    unsubscribe, beat = app.events.subscribe(heard), 0
    device.streams += 1
    try:
        async with watch_disconnect(request) as gone:
            ends = (device.ended, draining, gone)
            changed.set()
            while not any(each.is_set() for each in ends):
                if changed.is_set():
                    changed.clear()
                    drawn = await _list(app, drawing)
                    if device.ended.is_set():
                        return
                    yield to_bytes({"list": drawn}) + b"\n"
                    await tasks.any_set(*ends, seconds=_BETWEEN_LISTS)
                elif not await tasks.any_set(changed, *ends, seconds=_BEAT_SECONDS):
                    beat += 1
                    yield to_bytes({"beat": beat}) + b"\n"
    finally:
        unsubscribe()
        device.streams -= 1
        device.used_at = app.clock.monotonic()


async def _list(app: App, drawing: ReviewDrawing) -> JsonObject:
    first, more = app.publisher.first_waiting()
    rows = await asyncio.to_thread(drawing.rows, first)
    return {
        "waiting": [
            {**row, "id": view.approval_id, "version": view.version, "digest": view.digest}
            for view, row in zip(first, rows, strict=True)
        ],
        "more": more,
        "paused": app.pause.paused_since is not None,
    }


def live_run(app: App, approval_id: str) -> LiveRun:
    run = app.registry.by_approval(approval_id)
    if run is None:
        raise NotFound("This console has no such call.")
    return run


def _circumstances(app: App) -> dict[str, bool]:
    """Return what of the console an answer depends on (`DrawnItem.offer`)."""
    return {
        "paused": app.pause.paused_since is not None,
        "writable": app.storage.health.writable,
    }


async def item(request: Request) -> Response:
    """Return one call as the console shows it; what the device decides next is about this."""
    device, app, room = await signing_device(request), app_of(request), _room(request)
    body = await json_object(request, ("id",))
    view = app.publisher.view(live_run(app, _text(body, "id", 64)))
    more: JsonObject = {"home": in_utf8(str(app.home.path)), "arm_ms": app.devices.arm_ms}
    sent = await asyncio.to_thread(
        SentItem.draw, view, room.drawing, more=more, **_circumstances(app)
    )
    sent.sent_at = app.clock.monotonic()
    app.devices.pairings.require_confirmed(device)
    there = {each.device_id for each in app.devices.pairings.devices()}
    room.sent = {each: kept for each, kept in room.sent.items() if each in there}
    room.sent[device.device_id] = sent
    return _sent(sent.body)


async def part(request: Request) -> Response:
    """Return a later part of the item that the device was sent last."""
    device = await signing_device(request)
    body = await json_object(request, ("id", "version", "n"))
    sent = _last_sent(request, device)
    if (body.get("id"), body.get("version")) != (sent.view.approval_id, sent.view.version):
        raise NotFound("This is not what the page was sent last.")
    return _sent(sent.part(_number(body, "n")))


def _last_sent(request: Request, device: Device) -> SentItem:
    sent = _room(request).sent.get(device.device_id)
    if sent is None:
        raise NotFound("The page was sent no call.")
    return sent


# Deciding


async def decide(request: Request) -> Response:
    """Approve or deny a call with a signature, as the device showed it."""
    device, app = await signing_device(request), app_of(request)
    body = await json_object(request, ("decision", "signature", "reason", "seen"))
    signed = signed_decision(device, body, in_utf8(str(app.home.path)))
    reason, sent = _text(body, "reason", _MOST_REASON), _last_sent(request, device)
    decision, approves = signed.decision, signed.decision.verdict == "approve"
    if sha256_hex(reason.encode()) != decision.reason:
        raise InvalidRequest("'reason' is not the one that was signed.")
    unseen = sent.unseen(body.get("seen"))
    now, run = app.clock.monotonic(), live_run(app, decision.approval)
    # Before all else, so that whose answer counted is said.
    (app.approvals.require_waiting if approves else app.approvals.require_open)(run)
    rest = app.devices.arm_ms / 1000
    sent.require_shown(decision, app.publisher.view(run), now - sent.sent_at - rest)
    ask = sent.require_offered(decision.verdict, unseen, **_circumstances(app))
    if approves and not sent.acknowledges(decision.unseen, unseen, ask):
        sent.asked, sent.sent_at = unseen, now
        return _json({"ask": ask, "unseen": unseen}, 409)
    id_ = decision.approval
    intent = (
        Approve(approval_id=id_, digest=decision.digest, unseen_lines=unseen)
        if approves
        else Deny(approval_id=id_, reason=reason)
    )
    still_paired = partial(app.devices.pairings.require_confirmed, device)
    hand = Hand(name=device.name, proof=signed.to_record(), require=still_paired)
    await tasks.uninterrupted(app.console.decide(intent, hand), name="decide from a device")
    return _json({"state": str(run.row.state)})


def signed_decision(device: Device, body: Mapping[str, Any], home: str) -> SignedDecision:
    """Return the decision in *body*, which this device signed for this home.

    Raises:
        InvalidRequest: it is something else.
    """
    try:
        decision = Decision.from_json(body.get("decision"))
    except ValueError as error:
        raise InvalidRequest(f"'decision' is not valid: {error}.") from None
    signature = hex_bytes(body, "signature", 64)
    signed = SignedDecision(decision=decision, key=device.point, signature=signature)
    if (decision.device, decision.home) != (device.device_id, home) or not signed.holds:
        raise InvalidRequest("'decision' is not signed by this device for this home.")
    return signed


def _json(body: JsonObject, status: int = 200) -> Response:
    return JSONResponse(body, status_code=status, headers={"cache-control": "no-store"})


def _sent(body: bytes) -> Response:
    return Response(body, media_type="application/json", headers={"cache-control": "no-store"})


def _route(endpoint: Any) -> RouteSpec:
    return RouteSpec(
        "POST", f"{REVIEW_API}{endpoint.__name__}", "a device", endpoint, {200: dict, 409: dict}
    )


ROUTES: tuple[RouteSpec, ...] = (
    RouteSpec("GET", "/review", "anybody", page, {200: None}),
    RouteSpec("GET", "/review/{id}", "anybody", page, {200: None}),
    RouteSpec("GET", "/review.js", "anybody", script, {200: None}),
    RouteSpec("GET", "/review.css", "anybody", style, {200: None}),
    *(_route(each) for each in (link, key, wait, item, part, decide)),
    RouteSpec("POST", f"{REVIEW_API}events", "a device", events, {200: None}),
)
