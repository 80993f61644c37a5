"""A core that serves its review page to a real browser, and the pages opened there.

async with reviewed(core, browser) as review:
    page = await review.paired()
"""

import contextlib
from collections.abc import AsyncGenerator, Collection, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest
from playwright.async_api import Browser, BrowserContext, Page, expect

from aileron_core.canonical import JsonObject
from aileron_core.console_port.devices import ConfirmDevice, DevicesUpdated, LinkMade, MakeLink
from aileron_core.console_port.events import VaultStatus
from aileron_core.console_port.view_models import ApprovalView
from aileron_tui.review import PageDrawing, PageItem
from tests.support.attacks import harmless
from tests.support.core_harness import Core
from tests.support.review_harness import served

expect.set_options(timeout=20_000)  # a busy machine is slow

_ELEMENTS = {
    *("HTML", "HEAD", "META", "TITLE", "LINK", "SCRIPT", "BODY", "HEADER", "H1", "H2", "H3", "P"),
    *("MAIN", "NAV", "UL", "LI", "ARTICLE", "DIV", "SECTION", "DL", "DT", "DD", "FOOTER", "SPAN"),
    *("BUTTON", "KBD", "LABEL", "INPUT", "DIALOG"),
}
PHONE, DESK = {"width": 360, "height": 640}, {"width": 1200, "height": 800}


class OtherDrawing(PageDrawing):
    """Draws every call as *other*, where there is one."""

    other: ApprovalView | None = None

    def rows(self, views: Sequence[ApprovalView]) -> Sequence[JsonObject]:
        return super().rows([self.other or each for each in views])

    def item(self, view: ApprovalView) -> PageItem:
        return super().item(self.other or view)


async def new_link(core: Core, path: str = "", *, elsewhere: bool = False) -> str:
    await core.do(MakeLink())
    made = core.last(LinkMade)
    return (made.elsewhere if elsewhere else made.url).replace("/review#", f"/review{path}#")


async def confirm(core: Core) -> None:
    device = core.last(DevicesUpdated).devices[-1]
    await core.do(ConfirmDevice(device_id=device.device_id, words=device.words))


@dataclass
class Review:
    core: Core
    browser: Browser
    drawing: OtherDrawing

    async def open(
        self, path: str = "", *, elsewhere: bool = False, viewport: Any = DESK, **options: Any
    ) -> Page:
        """Open the page of a new link; it is not confirmed yet."""
        context = await self.browser.new_context(viewport=viewport, **options)
        page = await context.new_page()
        page.on("pageerror", lambda error: pytest.fail(f"the page's script failed: {error}"))
        await page.goto(await new_link(self.core, path, elsewhere=elsewhere))
        await expect(page.locator("#door-words")).to_be_visible()
        return page

    async def paired(self, path: str = "", **options: Any) -> Page:
        page = await self.open(path, **options)
        await confirm(self.core)
        await expect(page.locator("#link")).to_have_text("● connected")
        return page


def must_be_text(found: Sequence[Any], usual: Collection[str], told: object) -> None:
    """Check what a page has: its elements, attributes, letters, and by how much it is too wide; *usual*: attributes."""
    elements, attributes, letters, beyond = found
    assert {*elements} <= _ELEMENTS, told
    assert {*attributes} <= {*usual}, told
    bad = {hex(ord(char)) for char in letters if char != "\n" and not harmless(char)}
    assert not bad, (told, bad)
    assert beyond <= 0, (told, beyond)


@contextlib.asynccontextmanager
async def serving_pages(core: Core) -> AsyncGenerator[OtherDrawing]:
    around: Any = SimpleNamespace(not_accepted=(), vault=VaultStatus(state="absent"))
    drawing = OtherDrawing(core.app.clock, around)
    async with served(core, drawing):
        yield drawing


@contextlib.asynccontextmanager
async def reviewed(core: Core, browser: Browser) -> AsyncGenerator[Review]:
    """Serve *core* to *browser*, and close the pages at the end."""
    before: list[BrowserContext] = list(browser.contexts)
    async with serving_pages(core) as drawing:
        yield Review(core, browser, drawing)
        for context in browser.contexts:
            if context not in before:
                await context.close()
