"""A core that serves its review page, a drawing of its own, and what a device does there.

async with serving(core) as review:
    device = await review.paired()
"""

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import httpx

from aileron_core.canonical import Json, JsonObject
from aileron_core.console_port.devices import ConfirmDevice, DevicesUpdated, LinkMade, MakeLink
from aileron_core.console_port.view_models import ApprovalView
from aileron_core.devices.signed import Verdict
from aileron_core.server.asgi import create_app
from aileron_core.server.embedded import EmbeddedServer
from aileron_core.server.review_items import DrawnPart, Offer, ReviewDrawing
from aileron_core.server.sockets import bind_tcp, bind_unix
from tests.support.core_harness import PATIENCE, Core
from tests.support.paired_devices import Device


@dataclass
class Drawing:
    """Draws a call as the lines of its arguments, in parts of ten lines."""

    lines: int = 4
    offer_of: Callable[[Verdict, int], Offer] = lambda verdict, unseen: Offer(
        ask=f"{unseen} lines were not seen." if unseen and verdict == "approve" else ""
    )
    padding: str = ""
    paused: list[bool] = field(default_factory=list[bool])

    def rows(self, views: Sequence[ApprovalView]) -> Sequence[JsonObject]:
        return [{"title": view.title, "padding": self.padding} for view in views]

    def item(self, view: ApprovalView) -> "Drawn":
        return Drawn(self, view)


@dataclass
class Drawn:
    drawing: Drawing
    view: ApprovalView
    shown: JsonObject = field(default_factory=dict[str, Json])

    @property
    def parts(self) -> Sequence[DrawnPart]:
        texts: list[Json] = [f"{self.view.action} {n}" for n in range(self.drawing.lines)]
        tens = [texts[n : n + 10] for n in range(0, len(texts), 10)]
        return [DrawnPart(blocks=each, lines=len(each)) for each in tens]

    def offer(self, verdict: Verdict, unseen: int, *, paused: bool, writable: bool) -> Offer:
        assert writable
        self.drawing.paused.append(paused)
        return self.drawing.offer_of(verdict, unseen)


@dataclass
class Review:
    """A core that serves its review page, and devices for it."""

    core: Core
    url: str
    drawing: Drawing

    async def link(self) -> str:
        await self.core.do(MakeLink())
        return self.core.last(LinkMade).url.partition("#")[2]

    def device(self, **more: Any) -> Device:
        return Device(url=self.url, **more)

    async def unconfirmed(self, **more: Any) -> Device:
        device = self.device(**more)
        assert (await device.redeem(await self.link())).status_code == 200
        assert (await device.show_key()).status_code == 200
        return device

    async def paired(self, **more: Any) -> Device:
        device = await self.unconfirmed(**more)
        await self.core.do(ConfirmDevice(device_id=device.device_id, words=device.words))
        return device

    def shown(self) -> tuple[Any, ...]:
        return self.core.last(DevicesUpdated).devices


@contextlib.asynccontextmanager
async def served(core: Core, drawing: ReviewDrawing) -> AsyncGenerator[None]:
    """Serve *core* on a port and on its home's socket; its devices are no programs of the core's session."""
    core.app.sessions.add(replace(core.session, pid=None))
    tcp, unix = bind_tcp("127.0.0.1", 0), bind_unix(core.app.home.socket)
    core.app.address.listen_on(tcp.getsockname()[1])
    async with EmbeddedServer(create_app(core.app, review=drawing), [tcp, unix]):
        yield


@contextlib.asynccontextmanager
async def serving(core: Core) -> AsyncGenerator[Review]:
    drawing = Drawing()
    async with served(core, drawing):
        yield Review(core, core.app.address.url, drawing)


@contextlib.asynccontextmanager
async def listing(device: Device) -> AsyncGenerator[Callable[[], Any]]:
    """Open the device's stream, for a minute at most; yields what reads its next line, None at its end."""
    headers, url = device.headers("events", b"{}"), f"{device.url}/review/api/events"
    async with (
        asyncio.timeout(PATIENCE),
        httpx.AsyncClient(timeout=PATIENCE, verify=False) as client,
        client.stream("POST", url, content=b"{}", headers=headers) as stream,
    ):
        assert stream.status_code == 200
        lines = stream.aiter_lines()

        async def following() -> Any:
            line = await anext(lines, None)
            return None if line is None else json.loads(line)

        yield following


def error_of(answer: httpx.Response) -> str:
    """Return the class of the error body, which is all that a refusal is."""
    assert answer.headers["content-type"] == "application/json"
    assert set(answer.json()) == {"error"}
    assert "Traceback" not in answer.text
    return answer.json()["error"]["class"]
