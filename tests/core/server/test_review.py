"""The review page's API on a real server, with a device that is a program: who gets in, what is shown, what counts."""

import asyncio
import contextlib
import json
import os
import random
import re
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import httpx
import pytest

from aileron_core.audit.device_answers import DeviceAnswers
from aileron_core.canonical import JsonObject, sha256_hex
from aileron_core.console import device_service
from aileron_core.console_port.devices import ConfirmDevice, EndDevice, LinkMade, MakeLink
from aileron_core.console_port.intents import Deny, SetPause, StopEverything
from aileron_core.console_port.view_models import ApprovalView
from aileron_core.devices.pairing import MOST_DEVICES
from aileron_core.errors import Conflict
from aileron_core.server import review_routes
from aileron_core.server.review_items import Offer
from aileron_core.sessions.processes import Holders
from aileron_core.settings import ConsoleSettings, Settings
from tests.support.core_harness import PATIENCE, Core, Mailbox, audit_problems, writes
from tests.support.frozen_clock import FrozenClock
from tests.support.paired_devices import JSON, Device, new_key, point_of
from tests.support.review_harness import Review, error_of, listing, serving

QUICK = Settings(console=ConsoleSettings(arm_ms=0))
"""A device's program answers as fast as it can; one test is about rest."""
pytestmark = pytest.mark.core(settings=QUICK)


async def looking_page(review: Review) -> tuple[Core, Device, ApprovalView]:
    """Return a paired device that was sent a call."""
    device, view = await review.paired(), await review.core.ask()
    await device.look(view.approval_id)
    return review.core, device, view


async def test_a_confirmed_device_approves_what_it_saw(review: Review, mailbox: Mailbox) -> None:
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
    assert (approved["hand"], json.loads(approved["signed"])["shown"]) == (hand, device.shown)
    assert [each["words"] for each in await core.records("device.paired")] == [list(device.words)]
    assert (await core.opened(view.run_id)).approval.hand == hand
    assert audit_problems(core.app.home.path) == []


async def test_a_pairing_needs_a_right_link_and_its_fixed_key(
    review: Review, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel is asked only after a right link; a key that was not fixed ends the pairing on record."""
    asked: list[object] = []
    monkeypatch.setattr(device_service, "pids_at", lambda *ends: asked.append(ends) or Holders())
    link, device = await review.link(), review.device()
    for _ in range(20):
        assert error_of(await device.redeem("0" * 32)) == "forbidden"
    assert asked == []
    assert (await device.redeem(link)).status_code == 200
    assert len(asked) == 1
    assert error_of(await review.device().redeem(link)) == "forbidden"
    assert review.shown()[0].pid is None
    device.key = new_key()
    assert (error_of(await device.show_key()), review.shown()) == ("unauthorized", ())
    (refused,) = await review.core.records("device.refused")
    assert (refused["actor"], refused["device"]) == ("aileron", device.device_id)


async def test_a_sessions_program_is_refused_and_uses_the_link_up(review: Review) -> None:
    """This process opened the session of this test, so whatever connects from here is the session's."""
    core, device = review.core, review.device()
    session = replace(core.session, pid=os.getpid())
    core.app.sessions.add(session)
    link = await review.link()
    made = core.last(LinkMade)
    assert error_of(await device.redeem(link)) == "forbidden"
    over = core.last(LinkMade)
    assert over.url == made.url
    assert over.expires_at <= core.app.clock.now() < made.expires_at
    core.app.sessions.add(replace(session, pid=None))
    assert error_of(await device.redeem(link)) == "forbidden"
    (refused,) = await core.records("device.refused")
    assert refused["summary"] == "A program of an agent's session tried to pair a device"


@pytest.mark.parametrize("closed", [frozenset[int](), frozenset({os.getpid()})])
async def test_a_hidden_program_is_refused(
    review: Review, monkeypatch: pytest.MonkeyPatch, closed: frozenset[int]
) -> None:
    """It passes its connection from hand to hand, or lets nobody look; sshd does too, and is no session's."""
    hidden = lambda *_: Holders(closed, seen=False)  # noqa: E731
    monkeypatch.setattr(device_service, "pids_at", hidden)
    core = review.core
    core.app.sessions.add(replace(core.session, pid=os.getpid()))
    assert error_of(await review.device().redeem(await review.link())) == "forbidden"
    core.app.sessions.add(replace(core.session, pid=None))
    found = await review.device().redeem(await review.link())
    assert found.status_code == (200 if closed else 403)
    there = core.app.devices.pairings.devices()
    assert [each.program.pid for each in there] == ([None] if closed else [])


async def test_no_more_than_four_and_a_person_may_refuse_one(review: Review) -> None:
    devices = [await review.unconfirmed() for _ in range(MOST_DEVICES)]
    assert error_of(await review.device().redeem(await review.link())) == "conflict"
    waiting = asyncio.create_task(devices[0].post("wait", {}))
    await asyncio.sleep(0)
    await review.core.do(EndDevice(device_id=devices[0].device_id))
    assert error_of(await waiting) == "unauthorized"
    assert len(review.shown()) == MOST_DEVICES - 1
    assert [each["actor"] for each in await review.core.records("device.refused")] == ["person"]
    with pytest.raises(Conflict):
        await review.core.do(ConfirmDevice(device_id=devices[1].device_id, words=("a", "b", "c")))
    assert await review.core.records("device.paired") == []


async def test_a_request_that_was_sent_before_or_altered_is_401_in_one_body(review: Review) -> None:
    device, body = await review.paired(), b'{"id":"x"}'
    kept = device.headers("item", body)
    assert error_of(await device.post("item", body, kept)) == "not_found"
    older, later = device.headers("item", body), device.headers("item", body)
    assert (await device.post("item", body, later)).status_code == 404

    answers = [
        await device.post("item", body, kept),
        await device.post("item", body, older),
        await device.post("item", b'{"id":"y"}', device.headers("item", body)),
        await device.post("part", body, device.headers("item", body)),
        await device.post("item?x=1", body, device.headers("item?x=1", body)),
        await device.post("item?x=1", body, device.headers("item", body)),
        await device.post("item", body, device.browser_headers() | JSON),
    ]
    wrong = {
        "Aileron-Number": ("-1", "9" * 17, "1.0"),
        "Aileron-Signature": ("0" * 128, "x"),
        "Aileron-Device": ("dev-0", ""),
    }
    for name, values in wrong.items():
        for value in values:
            headers = device.headers("item", body) | {name: value}
            answers.append(await device.post("item", body, headers))
    device.start = "0" * 32  # that of another console
    answers.append(await device.post("item", body))
    assert {each.status_code for each in answers} == {401}
    assert len({each.content for each in answers}) == 1


async def test_a_token_a_socket_and_a_page_elsewhere_get_nothing_for_any_id(review: Review) -> None:
    """The same for a call that is there and one that is not, with a device's own signature too."""
    core, device = review.core, await review.paired()
    view = await core.ask()
    host, other = review.url.removeprefix("http://"), "http://127.0.0.1:1"
    refused = {
        "session": (403, {"Authorization": f"Bearer {core.token}"}),
        "token": (401, {"Authorization": f"Bearer {'x' * 43}"}),
        "null": (403, {"Origin": "null"}),
        "port": (403, {"Origin": other}),
        "name": (403, {"Origin": f"http://localhost:{host.partition(':')[2]}"}),
        "https": (403, {"Origin": f"https://{host}"}),
        "site": (403, {"Sec-Fetch-Site": "same-site"}),
        "cross": (403, {"Sec-Fetch-Site": "cross-site"}),
        "none": (403, {"Sec-Fetch-Site": "none"}),
        "host": (403, {"Host": "evil.example"}),
    }
    for status, more in refused.values():
        bodies = set[bytes]()
        for approval_id in (view.approval_id, view.approval_id[:-1] + "x"):
            body = json.dumps({"id": approval_id}).encode()
            answer = await device.post("item", body, device.headers("item", body) | more)
            assert (answer.status_code, len(answer.json())) == (status, 1), more
            bodies.add(answer.content)
        assert len(bodies) == 1
    for left_out in ("Origin", "Sec-Fetch-Site"):
        headers = device.headers("item", b"{}")
        del headers[left_out]
        assert error_of(await device.post("item", b"{}", headers)) == "forbidden"

    transport = httpx.AsyncHTTPTransport(uds=str(core.app.home.socket))
    async with httpx.AsyncClient(transport=transport, verify=False) as local:
        for name in ("link", "item", "decide"):
            url = f"{review.url}/review/api/{name}"
            for headers in ({}, {"Authorization": f"Bearer {core.token}"}):
                assert (await local.post(url, json={}, headers=headers)).status_code == 403
            page = await local.post(url, json={}, headers=device.headers(name, b"{}"))
            assert page.status_code == 403
    async with httpx.AsyncClient(verify=False) as client:
        for method in ("GET", "PUT", "OPTIONS"):
            url = f"{review.url}/review/api/item"
            answer = await client.request(method, url, headers=device.browser_headers())
            assert answer.status_code == 403
            assert not any(name.startswith("access-control") for name in answer.headers)


async def test_the_page_is_the_same_for_every_id_and_asks_its_own_server(review: Review) -> None:
    view = await review.core.ask()
    async with httpx.AsyncClient(base_url=review.url, verify=False) as client:
        pages = [
            await client.get(path)
            for path in ("/review", f"/review/{view.approval_id}", "/review?x=1",
                         f"/review/act-20260101T000000-{'0' * 16}")
        ]  # fmt: skip
        assert len({each.content for each in pages}) == 1
        assert len({str(each.headers) for each in pages}) == 1
        for path in ("/review", "/review.js", "/review.css"):
            headers = (await client.get(path)).headers
            policy = headers["content-security-policy"]
            assert "unsafe" not in policy
            for each in ("default-src 'none'", "frame-ancestors 'none'", "trusted-types 'none'",
                         "require-trusted-types-for 'script'", "form-action 'none'"):  # fmt: skip
                assert each in policy
            assert headers["cross-origin-opener-policy"] == "same-origin"
            assert headers["cache-control"] == "no-store"
            assert headers["x-content-type-options"] == "nosniff"


@pytest.mark.core(settings=replace(QUICK, review_origins=("https://box.example",)))
async def test_a_proxy_that_the_person_named_passes_and_is_linked_to(review: Review) -> None:
    """Whether it names itself as Host or the console; no header says who somebody is."""
    await review.core.do(MakeLink())
    made = review.core.last(LinkMade)
    assert made.elsewhere == "https://box.example/review#" + made.url.partition("#")[2]
    device = await review.paired(origin="https://box.example")
    for host in ("box.example", review.url.removeprefix("http://")):
        headers = device.headers("item", b'{"id":"x"}') | {"Host": host}
        assert (await device.post("item", b'{"id":"x"}', headers)).status_code == 404
        async with httpx.AsyncClient(verify=False) as client:
            page = await client.get(f"{review.url}/review", headers={"Host": host})
            assert page.status_code == 200
            other = await client.get(f"{review.url}/v1/health", headers={"Host": host})
            assert other.status_code == (403 if host == "box.example" else 200)
    device.origin = "https://box.example.evil.example"
    assert error_of(await device.post("item", {"id": "x"})) == "forbidden"


@pytest.mark.core(settings=replace(QUICK, review_origins=("https://box.example",)))
async def test_settings_that_nobody_accepted_are_not_in_force(protected: None, core: Core) -> None:
    """With a vault: another program may have written the file, and a link would lead there."""
    await core.do(MakeLink())
    assert (core.last(LinkMade).elsewhere, core.app.devices.hosts) == ("", core.app.address.hosts)
    assert core.app.devices.arm_ms == 400


async def test_what_was_not_seen_asks_for_a_second_press(review: Review, mailbox: Mailbox) -> None:
    """The home counts them, by the parts that it sent; a number of the device's own decides nothing."""
    core, device = review.core, await review.paired()
    review.drawing.lines = 25
    view = await core.ask()
    item = await device.look(view.approval_id)
    assert (item["lines"], [each["lines"] for each in item["parts"]]) == (10, [10, 5])
    first = await device.decide("approve")  # it claims all 25, and was sent 10
    assert first.status_code == 409
    assert first.json() == {"ask": "15 lines were not seen.", "unseen": 15}
    for wrong in (0, 14, 16):
        again = await device.decide("approve", unseen=wrong)
        assert again.json() == {"ask": "15 lines were not seen.", "unseen": 15}

    body = {"id": item["id"], "version": item["version"], "n": 2}
    assert sha256_hex((await device.post("part", body)).content) == item["parts"][1]["sha256"]
    assert error_of(await device.post("part", {**body, "n": 3})) == "invalid_request"
    assert error_of(await device.post("part", {**body, "version": 99})) == "not_found"
    fewer = await device.decide("approve", unseen=15, seen=[[0, 9], [5, 24]])
    assert fewer.json() == {"ask": "10 lines were not seen.", "unseen": 10}
    assert writes(mailbox).count("POST send") == 0
    assert (await device.decide("approve", unseen=10, seen=[[0, 9], [5, 24]])).status_code == 200
    await core.ended(view)
    (approved,) = await core.records("approval.approved")
    assert approved["unseen_lines"] == json.loads(approved["signed"])["unseen"] == 10


@pytest.mark.core(settings=Settings(console=ConsoleSettings(arm_ms=400)))
async def test_an_answer_after_a_change_is_too_soon(clock: FrozenClock, review: Review) -> None:
    """By the home's clock, whatever the device says: after the item, and after the question for a second press."""
    review.drawing.offer_of = lambda _verdict, _unseen: Offer(ask="It has findings.")
    device, view = await review.paired(), await review.core.ask()
    item = await device.look(view.approval_id)
    assert item["arm_ms"] == 400
    assert item["approve"] == {"offered": True, "why_not": "", "ask": "It has findings."}
    clock.advance(0.39)
    assert error_of(await device.decide("approve", at=0)) == "conflict"
    clock.advance(0.02)
    assert (await device.decide("approve")).json() == {"ask": "It has findings.", "unseen": 0}
    clock.advance(0.39)
    assert error_of(await device.decide("approve")) == "conflict"
    clock.advance(0.02)
    assert (await device.decide("approve")).status_code == 200
    await review.core.ended(view)


async def test_an_answer_counts_for_what_was_sent_last_and_is_still_so(review: Review) -> None:
    core, device = review.core, await review.paired()
    first, second = await core.ask(), await core.ask("r-8842189950")
    await device.look(first.approval_id)
    old = device.answer("approve")
    await device.look(second.approval_id)
    assert error_of(await device.post("decide", old)) == "conflict"
    wrong = {"shown": "0" * 64, "digest": "0" * 64, "approval": first.approval_id}
    for name, value in wrong.items():
        assert error_of(await device.decide("approve", **{name: value})) == "conflict", name
    for name, value in {"home": "/elsewhere", "device": "dev-0"}.items():
        assert error_of(await device.decide("approve", **{name: value})) == "invalid_request"
    assert error_of(await device.decide("approve", key=new_key())) == "invalid_request"
    other = await review.paired()
    other.item, other.shown = device.item, device.shown
    assert error_of(await other.decide("approve")) == "not_found"
    review.drawing.offer_of = lambda _verdict, _unseen: Offer(why_not="All calls are on hold.")
    assert (await device.decide("approve")).json()["error"]["message"] == "All calls are on hold."
    review.drawing.offer_of = lambda _verdict, _unseen: Offer()
    await core.app.approvals.refresh(second.approval_id)
    await core.looked(second.approval_id, after=second.version)
    assert error_of(await device.decide("approve")) == "conflict"
    assert await core.records("approval.approved") == []
    await core.do(SetPause(paused=True))
    await device.look(second.approval_id)
    assert review.drawing.paused[-1]
    assert error_of(await device.decide("approve")) == "unavailable"


async def test_of_two_hands_one_counts_and_the_other_is_told_whose(review: Review) -> None:
    core, device, view = await looking_page(review)
    other = await review.paired()
    await other.look(view.approval_id)
    both = (each.decide("deny", reason="not today") for each in (device, other))
    answers = await asyncio.gather(*both)
    assert sorted(each.status_code for each in answers) == [200, 409]
    winner, loser = sorted(answers, key=lambda each: each.status_code)
    hand = "-".join((device if winner is answers[0] else other).words)
    assert winner.json() == {"state": "denied"}
    told = loser.json()["error"]["message"]
    whose = f"This call was answered already: {hand} denied it at [0-9:]{{8}}. .*"
    assert re.fullmatch(whose, told)
    ended = await core.ended(view)
    assert (ended.hand, ended.reason) == (hand, "not today")
    with pytest.raises(Conflict, match=hand):
        await core.do(Deny(approval_id=view.approval_id))
    with pytest.raises(Conflict, match=hand):
        await core.approve(view)


async def test_bad_input_is_refused_and_decides_nothing(review: Review, mailbox: Mailbox) -> None:
    """Nor does any of 400 answers that were changed after they were signed, in requests signed as they are."""
    core, device, view = await looking_page(review)

    def changed(**members: Any) -> bytes:
        return json.dumps(device.answer("approve") | members).encode()

    bodies: list[bytes] = [
        b"", b"{", b"[]", b"null", b"\xff", b"[" * 30_000, b'{"decision":' * 5_000, b'{"seen":1,"seen":2}',
        b'{"seen":NaN}', b'{"seen":1e999}', b'{"seen":' + b"9" * 5_000 + b"}",
        changed(more=1), changed(signature="0" * 128), changed(signature="x"), changed(signature=5),
        changed(seen=None), changed(seen={}), changed(seen=[[0, 4]]), changed(seen=[[-1, 0]]),
        changed(seen=[[1, 0]]), changed(seen=[[0]]), changed(seen=[[0, 1.0]]), changed(seen=[[True, 1]]),
        changed(seen=[["0", "1"]]), changed(seen=[[0, 2**53]]), changed(seen=[[0, 1]] * 2_001),
        changed(reason="y"), changed(reason=5), changed(reason="\ud800"), changed(decision=None),
        json.dumps(device.answer("deny", reason="x" * 2_001)).encode(),
        json.dumps(device.answer("approve", unseen=2**53 - 1)).encode(),
        json.dumps(device.answer("approve", change=lambda b: b["decision"].update(at=2**53))).encode(),
        json.dumps(device.answer("approve", change=lambda b: b["decision"].update(at=-1))).encode(),
        json.dumps(device.answer("maybe")).encode(),
    ]  # fmt: skip
    for body in bodies:
        answer = await device.post("decide", body)
        assert answer.status_code in (400, 409), (body[:200], answer.text)
        assert set(answer.json()) in ({"error"}, {"ask", "unseen"})
    large = await device.post("decide", changed(reason="x" * 70_000))
    assert error_of(large) == "payload_too_large"
    for kind in ({}, {"Content-Type": "text/plain"}):
        headers = device.headers("decide", bodies[-1])
        del headers["Content-Type"]
        assert (await device.post("decide", bodies[-1], headers | kind)).status_code == 400
    for name, body in (
        ("link", {"secret": "0" * 32}), ("link", {"secret": 1, "commitment": "0" * 64}),
        ("key", {"device": "\ud800", "key": "0" * 130, "random": "0" * 64}),
        ("key", {"device": "dev-0", "key": "04" * 65, "random": "0" * 63}),
    ):  # fmt: skip
        answer = await device.post(name, body, device.browser_headers() | JSON)
        assert error_of(answer) == "invalid_request"
    unknown = {"device": "dev-0", "key": "0" * 130, "random": "0" * 64}
    answer = await device.post("key", unknown, device.browser_headers() | JSON)
    assert error_of(answer) == "unauthorized"
    for name, body in (("item", {"id": 5}), ("item", {}), ("wait", {"x": 1}), ("events", [])):
        assert error_of(await device.post(name, body)) == "invalid_request"
    draw = random.Random(32)
    for _ in range(400):
        text = json.dumps(device.answer("approve"))
        begin, end = re.search(r'"decision": \{.*?\}', text).span()  # type: ignore[union-attr]
        at = draw.randrange(begin, end)
        changed_text = text[:at] + draw.choice('0123456789abcdef"{}[]:, -') + text[at + 1 :]
        with contextlib.suppress(ValueError):
            if json.loads(changed_text) == json.loads(text):
                continue
        answer = await device.post("decide", changed_text.encode())
        assert answer.status_code in (400, 404, 409), changed_text
    assert (core.live(view).row.state, await core.records("approval.approved")) == ("pending", [])
    assert writes(mailbox).count("POST send") == 0


async def test_the_list_follows_what_waits_and_ends_with_the_device(review: Review) -> None:
    core, device = review.core, await review.paired()
    async with listing(device) as following:
        assert await following() == {"list": {"waiting": [], "more": 0, "paused": False}}

        async def listed(ready: Callable[[Any], bool]) -> Any:
            while True:
                line = await following()
                assert line is not None
                if "list" in line and ready(line["list"]):
                    return line["list"]

        while "beat" not in await following():
            pass
        began = core.app.clock.monotonic()
        view = await core.ask()
        found = await listed(lambda each: each["waiting"] and each["waiting"][0]["digest"])
        (row,) = found["waiting"]
        assert (row["id"], row["digest"]) == (view.approval_id, view.digest)
        assert row["title"] == view.title
        await core.do(Deny(approval_id=view.approval_id))
        assert (await core.ended(view)).hand == "console"
        assert [each["hand"] for each in await core.records("approval.denied")] == ["console"]
        await listed(lambda each: not each["waiting"])
        await core.do(SetPause(paused=True))
        await listed(lambda each: each["paused"])
        assert core.app.clock.monotonic() - began < 10
        (paired,) = core.app.devices.pairings.devices()
        async with listing(device) as another:
            await another()
            assert paired.streams == 2
        await core.until(lambda: paired.streams == 1)  # a tab that was closed is noticed
        await core.do(EndDevice(device_id=device.device_id))
        while (line := await following()) is not None:
            assert "beat" in line or line["list"]["paused"]
    assert error_of(await device.post("item", {"id": view.approval_id})) == "unauthorized"
    assert [each["actor"] for each in await core.records("device.ended")] == ["person"]


async def test_stopping_everything_ends_each_device_link_and_stream(review: Review) -> None:
    core, device = review.core, await review.paired()
    strange, link = await review.unconfirmed(), await review.link()
    view = await core.ask()
    async with listing(device) as following:
        await following()
        await core.do(StopEverything())
        while await following() is not None:
            pass
    for each in (device, strange):
        assert error_of(await each.post("wait", {})) == "unauthorized"
    assert error_of(await review.device().redeem(link)) == "forbidden"
    assert review.shown() == ()
    ends = [*await core.records("device.ended"), *await core.records("device.refused")]
    assert sorted(each["device"] for each in ends) == sorted([device.device_id, strange.device_id])
    assert {each["actor"] for each in ends} == {"person"}
    assert (await core.ended(view)).hand == "console"


async def test_nothing_of_a_device_that_ended_counts(review: Review, mailbox: Mailbox) -> None:
    core, device, viewer = review.core, await review.paired(), await review.paired()
    held, drawing, rows = threading.Event(), asyncio.Event(), review.drawing.rows
    loop = asyncio.get_running_loop()

    def held_up(views: Sequence[ApprovalView]) -> Sequence[JsonObject]:
        if views:
            loop.call_soon_threadsafe(drawing.set)
            held.wait(PATIENCE)
        return rows(views)

    async with listing(viewer) as following:
        await following()
        review.drawing.rows = held_up
        view = await core.ask()
        await device.look(view.approval_id)
        run = core.app.registry.by_approval(view.approval_id)
        assert run is not None
        async with run.lock:
            answering = asyncio.create_task(device.decide("approve"))
            await drawing.wait()
            while not run.lock._waiters:
                await asyncio.sleep(0.01)
            for each in (device, viewer):
                await core.do(EndDevice(device_id=each.device_id))
        assert error_of(await answering) == "unauthorized"
        held.set()
        while (line := await following()) is not None:
            assert "list" not in line
    assert await core.records("approval.approved") == []
    assert "POST send" not in writes(mailbox)


async def test_a_device_that_does_not_read_is_cut_off(
    review: Review, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(review_routes, "_STALLED_SECONDS", 0.2)
    monkeypatch.setattr(review_routes, "_BETWEEN_LISTS", 0.0)
    core, device = review.core, await review.paired()
    review.drawing.padding = "x" * 1_000_000
    await core.ask()
    async with listing(device) as following:
        await following()
        (paired,) = core.app.devices.pairings.devices()
        async with asyncio.timeout(PATIENCE):
            while paired.streams:
                await core.do(SetPause(paused=not core.app.pause.is_on))
                await asyncio.sleep(0.01)
        with contextlib.suppress(httpx.HTTPError):
            while await following() is not None:
                pass


async def test_an_answer_that_was_rewritten_is_found_by_its_signature(review: Review) -> None:
    """Also by a program that makes the chain whole again behind it: it has no device's key."""
    core, device, view = await looking_page(review)
    assert (await device.decide("approve")).status_code == 200
    await core.ended(view)
    bodies = await core.records()
    assert not any(map(DeviceAnswers().problem, bodies))

    def found(change: Callable[[dict[str, Any]], object]) -> list[str]:
        copies = [dict(each) for each in bodies]
        for each in copies:
            if each["event"] == "approval.approved":
                change(each)
        return [each for each in map(DeviceAnswers().problem, copies) if each]

    def resigned(body: dict[str, Any]) -> None:
        forged = Device(url="", device_id=device.device_id, item=device.item, shown=device.shown)
        answer = forged.answer("approve")
        text = json.dumps(answer["decision"], sort_keys=True, separators=(",", ":"))
        key = point_of(forged.key).hex()
        body.update(signed=text, device_key=key, signature=answer["signature"])

    changes: list[Callable[[dict[str, Any]], object]] = [
        lambda b: b.update(digest="0" * 64),
        lambda b: b.update(approval="act-20260101T000000-" + "0" * 16),
        lambda b: b.update(event="approval.denied"),
        lambda b: b.update(hand="amber-fox-lantern"),
        lambda b: b.update(hand="console"),
        lambda b: b.update(unseen_lines=7),
        lambda b: b.update(signature="0" * 128),
        lambda b: b.update(signature=b["signature"].upper()),
        lambda b: b.update(signed=b["signed"].replace("approve", "deny")),
        lambda b: b.update(signed="{"),
        lambda b: b.pop("signed"),
        lambda b: [b.pop(name) for name in ("signed", "device_key", "signature")],
        lambda b: b.update(event="console.resumed"),
        resigned,
    ]
    for number, change in enumerate(changes):
        assert len(found(change)) == 1, number
    answer = next(each for each in bodies if each["event"] == "approval.approved")
    assert any(map(DeviceAnswers().problem, [*bodies, answer])), "the same answer once more"
    started = next(each for each in bodies if each["event"] == "console.started")
    at = bodies.index(answer)
    assert any(map(DeviceAnswers().problem, [*bodies[:at], started, *bodies[at:]]))
    for event in ("device.ended", "device.refused"):
        over = {"event": event, "device": device.device_id, "hand": "-".join(device.words)}
        late = map(DeviceAnswers().problem, [*bodies[:at], over, *bodies[at:]])
        assert [each for each in late if each] == ["its device had ended before"]


async def test_the_hand_is_told_after_a_restart_too(start: Any) -> None:
    async with start() as core, serving(core) as review:
        core, device, view = await looking_page(review)
        assert (await device.decide("deny")).status_code == 200
        await core.ended(view)
    async with start() as core:
        for _ in ("as it is in memory", "from its record alone"):
            assert (await core.opened(view.run_id)).approval.hand == "-".join(device.words)
            if (run := core.app.registry.get(view.run_id)) is not None:
                core.app.registry.discard(run)
        (ended,) = await core.records("device.ended")
        assert ended["summary"].endswith("ended: the console stopped")
        assert audit_problems(core.app.home.path) == []
        async with serving(core) as review:
            device.url = review.url
            assert error_of(await device.post("item", {"id": "x"})) == "unauthorized"
