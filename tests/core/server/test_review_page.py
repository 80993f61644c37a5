"""The review page in a real browser, on a real core with its server and the mailbox: what it shows, and what a press does."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from functools import partial
from typing import Any

import pytest
from playwright.async_api import Browser, Locator, Page, expect
from starlette.requests import Request

from aileron_core.console_port.devices import ConfirmDevice, DevicesUpdated, EndDevice
from aileron_core.console_port.intents import Deny
from aileron_core.console_port.view_models import ApprovalView
from aileron_core.server import review_routes
from aileron_core.server.review_items import SentItem
from tests.screen.hostile_views import hostile_snapshot
from tests.support.attacks import ATTACKS, Attack, cut_to, everything
from tests.support.browsers import chromium
from tests.support.core_harness import Core, Mailbox, writes
from tests.support.review_pages import PHONE, Review, must_be_text, reviewed
from tests.support.screens.calls import fixtures
from tests.support.variants import ALL

pytestmark = [pytest.mark.real, pytest.mark.timeout(120)]


@pytest.fixture(scope="module")
async def browser() -> AsyncIterator[Browser]:
    async with chromium() as started:
        yield started


@pytest.fixture
async def review(core: Core, browser: Browser) -> AsyncIterator[Review]:
    async with reviewed(core, browser) as served:
        yield served


async def decides(page: Page) -> None:
    await expect(page.locator("#approve.decides")).to_be_visible()


async def read(page: Page) -> None:
    """Read to the end, half a screen at a time; again from the top where the call changed meanwhile."""
    for _ in range(20):
        await page.evaluate("scrollTo(0, 0)")
        for _ in range(12):
            if await page.locator("#approve.decides").count():
                return
            await page.wait_for_timeout(250)
            await page.mouse.wheel(0, 250)
    pytest.fail(f"it was not all seen: {await page.locator('body').inner_text()}")


def said_line(page: Page) -> Locator:
    return page.locator("#said")


async def test_a_page_is_paired_and_its_answers_count(review: Review, mailbox: Mailbox) -> None:
    """The words are the console's; before a person confirms them nothing is shown. Approve sends; a denial has its reason."""
    core = review.core
    first, second = await core.ask(), await core.ask("r-1")
    page = await review.open()
    device = core.last(DevicesUpdated).devices[-1]
    await expect(page.locator("#door-words")).to_have_text(" · ".join(device.words))
    assert "#" not in page.url
    assert await page.locator("#rows li, .row").count() == 0
    await core.do(ConfirmDevice(device_id=device.device_id, words=device.words))
    await expect(page.locator("#rows li")).to_have_count(2)
    await expect(page.locator("#document")).to_contain_text("WILL HAPPEN")
    await read(page)
    await page.keyboard.press("a")
    await expect(said_line(page)).to_have_text("✓ Approved.")
    sent = await core.ended(first)
    assert (sent.state, sent.hand) == ("completed", "-".join(device.words))
    assert writes(mailbox)[-1] == "POST send"
    await expect(page.locator("#rows li")).to_have_count(1)
    await page.keyboard.press("j")
    await expect(page.locator("[aria-current]")).to_have_count(1)
    await page.wait_for_timeout(200)  # a hand's pause: keys in one burst decide nothing
    await page.keyboard.press("d")
    await expect(page.locator("#reason")).to_be_focused()
    await page.locator("#reason").press_sequentially("wrong list", delay=30)
    await page.wait_for_timeout(500)
    await page.keyboard.press("Enter")
    denied = await core.view(second.approval_id, lambda view: view.state == "denied")
    assert (denied.reason, denied.hand) == ("wrong list", sent.hand)


async def test_what_was_not_seen_asks_for_a_second_press(review: Review, mailbox: Mailbox) -> None:
    """On a small screen the first press says how much is unread and sends nothing; a key between forgets it."""
    view = await review.core.ask()
    page = await review.paired(f"/{view.approval_id}", viewport={"width": 360, "height": 400})
    await expect(page.locator("#document")).to_contain_text("WILL HAPPEN")
    await page.wait_for_timeout(600)
    await page.locator("#approve").click()
    await expect(said_line(page)).to_contain_text("Press Approve again")
    await page.keyboard.press("x")
    await expect(said_line(page)).to_have_text("")
    await page.wait_for_timeout(600)
    await page.locator("#approve").click()
    await expect(said_line(page)).to_contain_text("Press Approve again")
    assert "POST send" not in writes(mailbox)
    await decides(page)
    await page.locator("#approve").click()
    assert (await review.core.ended(view)).state == "completed"


async def test_a_call_that_changes_says_that_unseen_lines_are_above(review: Review) -> None:
    """It stays where the person reads; whoever reads on downwards would never see the rest."""
    view = await review.core.ask()
    page = await review.paired(f"/{view.approval_id}", viewport={"width": 1200, "height": 500})
    await read(page)
    await expect(page.locator("#standing")).not_to_contain_text("lines not seen")
    review.core.app.approvals.requester_changed(review.core.session.session_id)
    await expect(page.locator("#standing")).to_contain_text("▲")
    await read(page)


async def test_a_reason_typed_while_a_call_changes_is_one(review: Review, mailbox: Mailbox) -> None:
    """An agent can make its call change at any time; what a person types on is still the reason for a no."""
    view = await review.core.ask()
    page = await review.paired(f"/{view.approval_id}", viewport={"width": 1200, "height": 1800})
    await decides(page)
    await page.keyboard.press("d")
    await expect(page.locator("#reason")).to_be_focused()
    await page.keyboard.type("no, ", delay=40)
    review.core.app.approvals.requester_changed(review.core.session.session_id)
    await expect(said_line(page)).to_have_text("This call changed. Look at it again.")
    await page.wait_for_timeout(1000)
    await page.keyboard.type("a mistake", delay=40)
    await page.wait_for_timeout(1000)
    await page.keyboard.press("Enter")
    denied = await review.core.view(view.approval_id, lambda now: now.state != "pending")
    assert (denied.state, denied.reason) == ("denied", "no, a mistake")
    assert "POST send" not in writes(mailbox)


async def test_a_call_off_a_narrow_screen_is_not_decided(review: Review, mailbox: Mailbox) -> None:
    view, _ = await review.core.ask(), await review.core.ask("r-1")
    page = await review.paired(f"/{view.approval_id}", viewport={"width": 800, "height": 1800})
    await decides(page)
    await page.keyboard.press("Escape")
    await page.keyboard.press("Tab")
    await page.wait_for_timeout(1000)
    await page.keyboard.press("a")
    await page.wait_for_timeout(1000)
    assert (await review.core.view(view.approval_id, lambda _: True)).state == "pending"
    assert "POST send" not in writes(mailbox)


@pytest.mark.parametrize("key", ["Enter", "Space"])
async def test_the_focused_button_is_pressed(review: Review, mailbox: Mailbox, key: str) -> None:
    view = await review.core.ask()
    page = await review.paired(f"/{view.approval_id}", viewport={"width": 1200, "height": 1800})
    await decides(page)
    await page.locator("#approve").focus()
    await page.keyboard.press(key)
    assert (await review.core.ended(view)).state == "completed"
    assert writes(mailbox)[-1] == "POST send"


async def test_a_page_says_whose_answer_came_first(review: Review, mailbox: Mailbox) -> None:
    view = await review.core.ask()
    page = await review.paired(f"/{view.approval_id}", viewport={"width": 1200, "height": 1800})
    await decides(page)
    await review.core.do(Deny(approval_id=view.approval_id))
    await expect(said_line(page)).to_contain_text("answered already: the console denied it at ")
    await page.keyboard.press("a")
    await expect(said_line(page)).to_contain_text("Approve did nothing: the console denied it at ")
    assert "POST send" not in writes(mailbox)
    device = review.core.last(DevicesUpdated).devices[-1]
    await review.core.do(EndDevice(device_id=device.device_id))
    await expect(page.locator("#door-title")).to_have_text("This pairing has ended")
    assert await page.locator("#rows li, .row").count() == 0


async def test_a_lost_connection_disarms(
    review: Review, mailbox: Mailbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A console that says nothing for three seconds is lost: no press counts, and the page says so."""
    view = await review.core.ask()
    page = await review.paired()
    await read(page)

    async def silent(request: Request, *_: object) -> AsyncGenerator[bytes]:
        await request.app.state.draining.wait()
        yield b""

    monkeypatch.setattr(review_routes, "_BEAT_SECONDS", 3600.0)
    monkeypatch.setattr(review_routes, "_lines", silent)  # connected again, it hears nothing either
    await expect(page.locator("#link")).to_have_text("○ connection lost", timeout=15_000)
    await expect(said_line(page)).to_contain_text("Nothing can be decided here")
    await expect(page.locator("#approve")).to_have_attribute("aria-disabled", "true")
    monkeypatch.undo()
    await expect(page.locator("#link")).to_have_text("● connected", timeout=15_000)
    assert "POST send" not in writes(mailbox)
    assert (await review.core.view(view.approval_id, lambda _: True)).state == "pending"


_SIDEWAYS = "Math.max(document.documentElement.scrollWidth, document.body.scrollWidth) - innerWidth"
_DRAW_EACH = """(given) => {
  sending = true; // the list fetches nothing by itself
  return JSON.stringify(JSON.parse(given).map(([item, row, parts]) => {
    open = { ...item, paused: false, shown: '', lines: 0, required: 0, next: 1, seen: new Set(), asked: null, waits: true };
    showList({ waiting: [row], paused: false });
    draw(item);
    for (const blocks of parts) { open.next += 1; append(blocks); }
    const wide = ['item', 'list'].map((view) => {
      document.body.dataset.view = view;
      return Math.max(document.documentElement.scrollWidth, document.body.scrollWidth) - innerWidth;
    });
    const all = [...document.querySelectorAll('*')];
    const texts = [document.body.textContent];
    for (const text of [item.approve.why_not, item.approve.ask, item.deny.why_not, item.deny.ask]) {
      say(text);
      texts.push($('said').textContent, $('standing').textContent);
    }
    const attributes = all.flatMap((each) => [...each.attributes].map((of) => of.name));
    return [[...new Set(all.map((each) => each.tagName))], [...new Set(attributes)], [...new Set(texts.join(''))].join(''), Math.max(...wide)];
  }));
}"""
"""Draws calls with the page's own functions, as it does with those that it is sent."""


@pytest.mark.timeout(7200 if ALL else 600)
async def test_no_text_from_outside_is_more_than_text(review: Review) -> None:
    """Every attack in every field, with AILERON_TEST_ALL each alone: no element, attribute, hidden character or scroll sideways."""
    await review.core.ask()
    page = await review.paired(viewport=PHONE)
    usual, drawing = set[str](), partial(drawn_for_the_page, review)
    html = (each for each in ATTACKS if each.name == "html")
    together = [Attack("everything", everything(700)), *html]
    for attack in (Attack("plain", "plain"), *(ATTACKS if ALL else together)):
        text = cut_to(attack, 3_000)
        views = hostile_snapshot(review.core.app.clock.now(), lambda text=text: text).approvals
        # Not on the server's loop: the page would take its connection for lost.
        drawn = json.dumps(await asyncio.to_thread(list, map(drawing, views)))
        results = json.loads(await page.evaluate(_DRAW_EACH, drawn))
        for view, found in zip(views, results, strict=True):
            usual = usual or {*found[1]} | {"aria-current", "data-lost"}
            must_be_text(found, usual, (attack.name, view.approval_id))


def drawn_for_the_page(review: Review, view: ApprovalView) -> list[Any]:
    sent = SentItem.draw(view, review.drawing, paused=False, writable=True, more={"arm_ms": 400})
    (row,) = review.drawing.rows([view])
    ids = {"id": view.approval_id, "version": view.version, "digest": view.digest}
    parts = [json.loads(each)["blocks"] for each in sent.parts]
    return [json.loads(sent.body), {**row, **ids}, parts]


_UNREADABLE = """() => {
  const parse = colour => colour.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map(v => v / 255).map(
    v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4
  ).reduce((sum, v, at) => sum + v * [0.2126, 0.7152, 0.0722][at], 0);
  const ground = each => {
    for (; each; each = each.parentElement) {
      const colour = parse(getComputedStyle(each).backgroundColor);
      if (colour.length === 3 || colour[3] === 1) return colour;
    }
    return [255, 255, 255];
  };
  const found = [];
  for (const each of document.querySelectorAll('body *')) {
    const box = each.getBoundingClientRect();
    if (!box.width || !box.height || !each.checkVisibility()) continue;
    if (['BUTTON', 'INPUT'].includes(each.tagName) && Math.min(box.width, box.height) < 44) {
      found.push(`${each.id || each.className}: ${box.width} x ${box.height}`);
    }
    if (![...each.childNodes].some(node => node.nodeType === 3 && node.data.trim())) continue;
    const [one, other] = [light(parse(getComputedStyle(each).color)), light(ground(each))];
    const ratio = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
    if (ratio < 4.5) found.push(`${each.className || each.id || each.tagName}: ${ratio.toFixed(2)}`);
  }
  return [...new Set(found)];
}"""
_TREE = """
- banner:
  - heading "aileron" [level=1]
  - paragraph: /\\w+ · \\w+ · \\w+/
  - status: ● connected
- main:
  - navigation "Waiting (1)":
    - heading "Waiting (1)" [level=2]
    - list:
      - listitem:
        - button /SEND Q3 numbers, final → 3 people codex \\d+:\\d+/
  - article "Send a mail draft":
    - paragraph: SEND
    - heading "Send a mail draft" [level=2]
    - paragraph: /left/
    - paragraph: /codex asks, \\d+ s ago/
    - paragraph: /via gmail.send_draft on gmail.googleapis.com · as of/
    - region "WILL HAPPEN":
      - heading "WILL HAPPEN" [level=3]
      - paragraph: /fetched by Aileron from gmail.googleapis.com/
      - term: To
      - definition: priya.nair@northwind.example jonas.weber@northwind.example
      - term: Cc
      - definition: board-prep@lindholm-partners.example
      - term: Subject
      - definition: Q3 numbers, final
      - term: Attached
      - definition: q3-final.xlsx
      - term: Body
      - definition: /Hi all, attached are the final Q3 numbers/
    - region "CODEX SENT":
      - heading "CODEX SENT" [level=3]
      - paragraph: used exactly as shown; not checked with the service
      - term: draft_id
      - definition: "the agent says: r-8842190447"
    - region "RECORD"
    - region "WHO ASKS"
- contentinfo:
  - status
  - paragraph: /lines not seen yet/
  - button "Deny… d"
  - button "Approve… a"
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_the_page_can_be_read_and_touched(review: Review, scheme: Any) -> None:
    """Contrast of 4.5:1 and targets of 44 px in each kind of call; at 360 px and 200 % text nothing is cut off."""
    await review.core.ask()
    page = await review.paired(viewport=PHONE, color_scheme=scheme, reduced_motion="reduce")
    for view in fixtures(review.core.app.clock.now()):
        review.drawing.other = view
        await page.locator("#rows button").click()
        await expect(page.locator("article #title span").first).to_be_visible()
        await page.wait_for_timeout(500)  # and so the next press counts
        assert await page.evaluate(_UNREADABLE) == [], view.title
        await page.evaluate("document.documentElement.style.fontSize = '200%'")
        assert await page.evaluate(_SIDEWAYS) <= 0, view.title
        await page.evaluate("document.documentElement.style.fontSize = ''")
        await page.locator("#back").click()
        assert await page.evaluate(_UNREADABLE) == []
        await page.evaluate("document.getElementById('title').replaceChildren()")


async def test_a_reader_of_the_screen_is_told_facts_and_claims(review: Review) -> None:
    await review.core.ask()
    review.drawing.other = fixtures(review.core.app.clock.now())[0]
    page = await review.paired()
    await expect(page.locator("#document")).to_contain_text("RECORD")
    await expect(page.locator("body")).to_match_aria_snapshot(_TREE)
