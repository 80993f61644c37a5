"""The review page's API on a real server, with a device that is a program: who gets in, what is shown, what counts."""

import asyncio
import contextlib
import json
import os
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import httpx
import pytest

from aileron_core.canonical import Json, JsonObject
from aileron_core.console_port.devices import (
    ConfirmDevice,
    DevicesUpdated,
    DeviceView,
    LinkMade,
    MakeLink,
)
from aileron_core.console_port.intents import Deny
from aileron_core.console_port.view_models import ApprovalView
from aileron_core.devices.signed import Verdict
from aileron_core.server.asgi import create_app
from aileron_core.server.embedded import EmbeddedServer
from aileron_core.server.review_items import DrawnPart, Offer
from aileron_core.server.sockets import bind_tcp, bind_unix
from aileron_core.settings import ConsoleSettings, Settings
from tests.support.core_harness import PATIENCE, Core, Mailbox, audit_problems, writes
from tests.support.paired_devices import Device

QUICK = Settings(console=ConsoleSettings(arm_ms=0))
"""A device's program answers as fast as it can; one test is about rest."""
pytestmark = pytest.mark.core(settings=QUICK)


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

    @property
    def parts(self) -> Sequence[DrawnPart]:
        texts: list[Json] = [f"{self.view.action} {n}" for n in range(self.drawing.lines)]
        return [
            DrawnPart(blocks=texts[n : n + 10], lines=len(texts[n : n + 10]))
            for n in range(0, len(texts), 10)
        ]

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

    def shown(self) -> tuple[DeviceView, ...]:
        return self.core.last(DevicesUpdated).devices


@contextlib.asynccontextmanager
async def serving(core: Core) -> AsyncGenerator[Review]:
    """Serve *core* on a port and on its home's socket."""
    tcp, unix = bind_tcp("127.0.0.1", 0), bind_unix(core.app.home.socket)
    core.app.address.listen_on(tcp.getsockname()[1])
    drawing = Drawing()
    async with EmbeddedServer(create_app(core.app, review=drawing), [tcp, unix]):
        yield Review(core, core.app.address.url, drawing)


@pytest.fixture
async def review(core: Core) -> AsyncIterator[Review]:
    # Its session was opened by this very process, in which the devices are too.
    core.app.sessions.add(replace(core.session, pid=None))
    async with serving(core) as found:
        yield found


@contextlib.asynccontextmanager
async def listing(device: Device) -> AsyncGenerator[Callable[[], Any]]:
    """Open the device's stream; yields what reads its next line, None at its end."""
    headers = device.headers("events", b"{}")
    async with (
        httpx.AsyncClient(timeout=PATIENCE) as client,
        client.stream(
            "POST", f"{device.url}/review/api/events", content=b"{}", headers=headers
        ) as stream,
    ):
        assert stream.status_code == 200
        lines = stream.aiter_lines()

        async def following() -> Any:
            async with asyncio.timeout(PATIENCE):
                line = await anext(lines, None)
            return None if line is None else json.loads(line)

        yield following


def error_of(answer: httpx.Response) -> str:
    """Return the class of the error body, which is all that a refusal is."""
    assert answer.headers["content-type"] == "application/json"
    assert set(answer.json()) == {"error"}
    assert "Traceback" not in answer.text
    return answer.json()["error"]["class"]


# Pairing


async def test_a_device_that_a_person_confirmed_by_its_words_approves_what_it_was_shown(
    review: Review, mailbox: Mailbox
) -> None:
    """From the link to the effect; the record keeps what was signed, and is verified with the rest."""
    core, device = review.core, await review.unconfirmed()
    (found,) = review.shown()
    assert (found.words, found.confirmed, found.kind) == (device.words, False, "page")
    assert found.pid is not None  # of this very process, on Linux
    assert "python" in found.program
    assert error_of(await device.post("item", {"id": "act"})) == "unauthorized"
    waiting = asyncio.create_task(device.post("wait", {}))
    await core.do(ConfirmDevice(device_id=device.device_id, words=device.words))
    assert (await waiting).json() == {"confirmed": True}

    view = await core.ask()
    item = await device.look(view.approval_id)
    assert (item["digest"], item["words"]) == (view.digest, list(view.words or ()))
    answer = await device.decide("approve")
    assert answer.status_code == 200, answer.text
    ended = await core.ended(view)
    hand = "-".join(device.words)
    assert (ended.state, ended.decided_by, ended.hand) == ("completed", "person", hand)
    assert writes(mailbox).count("POST send") == 1
    (approved,) = await core.records("approval.approved")
    assert approved["hand"] == hand
    assert json.loads(approved["signed"])["shown"] == device.shown
    assert [each["words"] for each in await core.records("device.paired")] == [list(device.words)]
    assert (await core.opened(view.run_id)).approval.hand == hand
    assert audit_problems(core.app.home.path) == []


async def test_the_console_is_named_as_the_hand_of_its_own_answers(core: Core) -> None:
    view = await core.ask()
    await core.do(Deny(approval_id=view.approval_id, reason="no"))
    assert (await core.ended(view)).hand == "console"
    assert [each["hand"] for each in await core.records("approval.denied")] == ["console"]


async def test_wrong_links_are_403_and_the_kernel_is_asked_only_after_a_right_one(
    review: Review, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []

    def programs(*ends: object) -> frozenset[int]:
        asked.append(ends)
        return frozenset()

    monkeypatch.setattr("aileron_core.console.device_service.pids_at", programs)
    link, device = await review.link(), review.device()
    for _ in range(20):
        assert error_of(await device.redeem("0" * 32)) == "forbidden"
    assert asked == []
    assert (await device.redeem(link)).status_code == 200
    assert len(asked) == 1
    assert error_of(await review.device().redeem(link)) == "forbidden"
    assert review.shown()[0].pid is None


async def test_a_program_below_a_sessions_process_is_refused_and_uses_the_link_up(
    review: Review,
) -> None:
    """This process opened the session of this test, so whatever connects from here is the session's."""
    core, device = review.core, review.device()
    session = replace(core.session, pid=os.getpid())
    core.app.sessions.add(session)
    link = await review.link()
    assert error_of(await device.redeem(link)) == "forbidden"
    core.app.sessions.add(replace(session, pid=None))
    assert error_of(await device.redeem(link)) == "forbidden"
    assert [each["summary"] for each in await core.records("device.refused")] == [
        "A program of an agent's session tried to pair a device"
    ]
