"""A megabyte to lay out holds up no key: its start stands there, and nothing decides until all does."""

import asyncio
import threading
from contextlib import nullcontext
from dataclasses import replace
from time import monotonic, process_time, thread_time

import pytest

from aileron_core.console_port.events import CallRead
from aileron_core.console_port.field_views import FieldView
from aileron_core.console_port.view_models import ApprovalView, CallView
from aileron_tui.draw.searching import MAX_MATCHES, find_matches, marked_rows
from aileron_tui.draw.text import plain_text
from aileron_tui.items import Item
from aileron_tui.pages.keymap import DEFAULT_REGISTRY
from aileron_tui.state import document_cache
from aileron_tui.state.decision_screens import DecisionScreens
from aileron_tui.state.opened_call import OpenedCall
from tests.screen.driving import drive_console
from tests.support.screens.states import NOW, body, mail, short, snapshot_of

PATIENCE = 60.0
FORM = document_cache.LayoutOptions(width=74, gutter=13)
NOTE = "characters are still being formatted"


def large(number: int, characters: int = 1_000_000, **changes: object) -> ApprovalView:
    view = mail(number)
    text = ("lorem ipsum dolor sit amet\n" * (characters // 27 + 1))[: characters - 1] + "\u202e"
    fields = (
        FieldView(label="Subject", value="a large one"),
        FieldView(label="Body", value=text, multiline=True),
    )
    return replace(view, preview=replace(view.preview, fields=fields), **changes)


def test_the_start_stands_there_at_once_and_the_whole_is_what_it_would_have_been() -> None:
    done = threading.Semaphore(0)
    pages = document_cache.DocumentCache(DEFAULT_REGISTRY, ready=done.release)
    item = Item(key="k", approval=large(1, 300_000))
    # Its own work alone: how long this thread stood still on a busy machine says nothing.
    began = thread_time()
    pages.layout(item, FORM, NOW)
    at_once = thread_time() - began
    assert not pages.is_complete
    text = "\n".join(map(plain_text, pages.current.lines))
    assert "Subject     ┃ a large one" in text
    assert NOTE in text
    deadline = monotonic() + PATIENCE
    while not pages.is_complete:
        assert done.acquire(timeout=deadline - monotonic())
        pages.layout(item, FORM, NOW)
    direct = document_cache.DocumentCache(DEFAULT_REGISTRY)
    began = thread_time()
    expected = direct.layout(item, FORM, NOW)
    directly = thread_time() - began
    assert pages.current == expected
    assert pages.warnings(item, file_changed=False) == direct.warnings(item, file_changed=False)
    assert "1 hidden character" in str(pages.warnings(item, file_changed=False))
    assert at_once < directly / 3


def test_only_what_is_large_or_has_to_be_converted_is_laid_out_elsewhere() -> None:
    """An ordinary mail or difference stands there whole with the key that selects it. A row made anew of the
    same call is not laid out again: so the list of decisions can show one at every drawing.
    """
    for characters, at_once in (
        (document_cache.LARGE_CHARACTERS - 100, True),
        (document_cache.LARGE_CHARACTERS + 1, False),
    ):
        pages = document_cache.DocumentCache(DEFAULT_REGISTRY, ready=lambda: None)
        view = large(1, characters)
        assert document_cache.foreign_size(view) >= characters
        first = pages.layout(Item(key="k", approval=view), FORM, NOW)
        assert pages.is_complete is at_once
        if at_once:
            assert pages.layout(Item(key="k", approval=view), FORM, NOW) is first
            assert pages.layout(Item(key="k", approval=large(1, 200)), FORM, NOW) is not first
    assert document_cache.START_CHARACTERS < document_cache.LARGE_CHARACTERS
    opened = OpenedCall(DecisionScreens())
    opened.open("r1")
    for form, at_once in (("", True), ("html", False)):
        call = CallView(approval=body("<p>lorem</p>" * 1_000, form), gated=True)
        opened.on_read(CallRead(run_id="r1", call=call))
        pages = document_cache.DocumentCache(DEFAULT_REGISTRY, ready=lambda: None)
        assert opened.page(pages, FORM, NOW) is not None
        assert pages.is_complete is at_once


async def test_nothing_can_be_decided_or_read_before_the_whole_stands_there() -> None:
    async with drive_console(snapshot_of(short(1), large(2, 800_000))) as shown:
        model = shown.model
        await shown.press("j")
        await shown.until(lambda: shown.selected == mail(2).approval_id)
        await shown.shows(NOTE)
        while NOTE in shown.text:
            assert model.laid_out_version is None
            assert "approve" not in shown.keys
            assert not shown.armed
            await asyncio.sleep(0.02)
        await shown.until(lambda: "not seen yet" in shown.status_line, "whole")
        assert model.laid_out_version is not None
        assert model.reading.total > 20_000
        assert model.reading.unseen > model.reading.total - 60
        await shown.shows("▲ hidden text")
        assert "approve" in shown.keys


async def test_keys_pass_over_large_texts_without_waiting_for_them() -> None:
    async with drive_console(
        snapshot_of(short(1), *(large(n, 250_000) for n in range(2, 12)))
    ) as shown:
        began = process_time()
        for number in range(2, 12):
            await shown.press("j")
            await shown.until(lambda n=number: shown.selected == mail(n).approval_id, "moved")
        walked = process_time() - began
        await shown.until(lambda: "not seen yet" in shown.status_line, "whole")
        began = process_time()
        cache, item = (
            document_cache.DocumentCache(DEFAULT_REGISTRY),
            Item(key="k", approval=large(3, 250_000)),
        )
        await asyncio.to_thread(cache.layout, item, FORM, NOW)
        # What was worked in both threads: ten that were waited for were ten that were laid out.
        assert walked < 8 * (process_time() - began)


def test_a_search_in_one_long_line_takes_no_longer_than_in_many() -> None:
    """Nobody can hold up the keys with a text of one line in which much is found."""

    def seconds(text: str) -> float:
        pages = document_cache.DocumentCache(DEFAULT_REGISTRY)
        layout = pages.layout(Item(key="k", approval=body(text)), FORM, NOW)
        began = thread_time()
        matches = find_matches(pages.blocks, layout, "lorem")
        assert len(matches) == MAX_MATCHES
        assert len(marked_rows(layout, matches, 0)) > MAX_MATCHES // 20
        return thread_time() - began

    assert seconds("lorem ipsum dolor " * 15_000) < 10 * seconds("lorem ipsum dolor\n" * 15_000)


def test_a_fault_in_the_other_thread_is_met_where_its_work_is_asked_for() -> None:
    done = threading.Semaphore(0)
    room = document_cache.BackgroundWorker[int](done.release)

    def fails() -> int:
        raise ValueError("broken")

    for key, work in ((1, fails), (2, lambda: 7)):
        assert room.request("kind", key, work) is None
        assert done.acquire(timeout=PATIENCE)
        found = room.request("kind", key, work)
        assert found is not None
        with pytest.raises(ValueError, match="broken") if key == 1 else nullcontext():
            assert found.get() == 7


def test_of_each_kind_only_the_last_that_was_asked_for_is_done() -> None:
    hold, begun, done = threading.Event(), threading.Event(), threading.Semaphore(0)
    worked: list[object] = []
    room = document_cache.BackgroundWorker[int](done.release)

    def first() -> int:
        begun.set()
        hold.wait(PATIENCE)
        return 0

    room.request("kind", "first", first)
    assert begun.wait(PATIENCE)
    for key in range(5):
        assert room.request("kind", key, lambda key=key: worked.append(key) or key) is None
    assert room.request("kind", "first", first) is None
    hold.set()
    assert done.acquire(timeout=PATIENCE)
    assert done.acquire(timeout=PATIENCE)
    assert worked in ([4], [])
    for number in range(document_cache.RESULTS_KEPT + 20):
        room.request(number, number, lambda: 1)
    for _ in range(document_cache.RESULTS_KEPT + 20):
        assert done.acquire(timeout=PATIENCE)
    assert len(room._done) == document_cache.RESULTS_KEPT
