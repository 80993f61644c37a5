"""The document of the selected item, laid out once for a width and kept; a large one on another thread, so that no key is delayed."""

import threading
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Generic, TypeAlias, TypeVar

from aileron_core.console_port.field_views import FieldView
from aileron_core.console_port.file_views import FileContentView
from aileron_core.console_port.view_models import ApprovalView
from aileron_tui import words
from aileron_tui.draw.acceptance import unvouched_key
from aileron_tui.draw.blocks import COMPACT_GUTTER, Block, Layout, blank, lay_out, value
from aileron_tui.draw.context import Section
from aileron_tui.draw.document import (
    approval_blocks,
    batch_blocks,
    context_blocks,
    first_heading,
    same_heading,
)
from aileron_tui.draw.file_page import file_blocks, problem_blocks, suite_blocks, with_content
from aileron_tui.draw.formats import hidden_characters_of
from aileron_tui.draw.header import file_warnings, warnings, warnings_beyond_head
from aileron_tui.draw.hidden_characters import HiddenCharacters, findings_of
from aileron_tui.draw.read_back import OutcomeKeys
from aileron_tui.draw.text import Line, Piece
from aileron_tui.input.commands import CommandRegistry
from aileron_tui.items import Batch, Item, SuiteFiles

_T = TypeVar("_T")

RESULTS_KEPT = 64
"""Results that nobody has fetched yet; more than any pane shows rows."""


@dataclass(frozen=True, slots=True)
class WorkResult(Generic[_T]):
    """The outcome of some work: a value or an exception."""

    value: _T | None = None
    error: Exception | None = None

    def get(self) -> _T:
        """Return the value.

        Raises:
            Exception: whatever the work raised.
        """
        if self.error is not None:
            raise self.error
        assert self.value is not None
        return self.value


class BackgroundWorker(Generic[_T]):
    """Does one job after the other, and of each kind only the one that was requested last.

    A person who walks over large texts must not wait for those that are out of sight already.
    """

    def __init__(self, ready: Callable[[], object]) -> None:
        """*ready* is called on the other thread each time that something is done."""
        self._ready = ready
        self._lock = threading.Lock()
        self._asked: dict[Hashable, tuple[Hashable, Callable[[], _T]]] = {}
        self._done: dict[Hashable, tuple[Hashable, WorkResult[_T]]] = {}
        self._doing: tuple[Hashable, Hashable] | None = None
        self._works = False

    def request(
        self, kind: Hashable, key: Hashable, work: Callable[[], _T]
    ) -> WorkResult[_T] | None:
        """Return the result of *work*, which *key* names; None while it is still to be done."""
        with self._lock:
            known = self._done.get(kind)
            if known is not None and known[0] == key:
                return known[1]
            if self._doing != (kind, key):
                self._asked[kind] = (key, work)
            if not self._works:
                self._works = True
                threading.Thread(target=self._work, name="aileron-layout", daemon=True).start()
        return None

    def forget(self, kind: Hashable) -> None:
        with self._lock:
            self._asked.pop(kind, None)
            self._done.pop(kind, None)

    def _next(self) -> tuple[Hashable, Hashable, Callable[[], _T]] | None:
        with self._lock:
            if not self._asked:
                self._works, self._doing = False, None
                return None
            kind = next(iter(self._asked))
            key, work = self._asked.pop(kind)
            self._doing = (kind, key)
            return kind, key, work

    def _work(self) -> None:
        while (task := self._next()) is not None:
            kind, key, work = task
            done: WorkResult[_T]
            try:
                done = WorkResult(work())
            except Exception as error:  # noqa: BLE001 - the thread's edge: raised where it is asked for
                done = WorkResult(error=error)
            with self._lock:
                self._done[kind] = (key, done)
                if len(self._done) > RESULTS_KEPT:
                    del self._done[next(iter(self._done))]
                self._doing = None
            with suppress(RuntimeError):  # the loop has ended
                self._ready()


FINDINGS_KEPT = 200
"""Items whose findings are kept: more than any pane shows rows."""

LARGE_CHARACTERS = 40_000
"""Characters that are laid out at once: about a twentieth of a second on a slow machine."""

_PAGE = "page"
"""Under which the findings of the file that a page shows are kept."""
CONVERSION_FACTOR = 10
"""How much longer than to lay it out it takes at the worst to make readable text of HTML."""

START_CHARACTERS = 6_000
"""Characters of a larger text that are shown until the whole is there: more than a pane holds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutOptions:
    """How a document is to be laid out."""

    width: int
    gutter: int
    unfold: bool = False
    """Marks with their code points, and nothing folded."""
    context: tuple[Section, ...] = ()
    """The sections at the end, if there is no rail beside it."""
    file_changed: bool = False
    """`Queue.file_changed` of the item."""


@dataclass(frozen=True, slots=True)
class _Document:
    """One document, ready to be shown."""

    blocks: tuple[Block, ...]
    layout: Layout
    has_marks: bool
    is_converted: bool


def _make(blocks: tuple[Block, ...], options: LayoutOptions) -> _Document:
    roles = {piece.role for each in blocks for piece in each.pieces}
    return _Document(
        blocks, lay_out(blocks, options.width, options.gutter), "mark" in roles, "form" in roles
    )


def _join(parts: Sequence[tuple[Block, ...]], options: LayoutOptions) -> _Document:
    """Return one document of *parts*; their places in the text are numbered by part."""
    whole, *others = (_make(each, options) for each in parts)
    for each in others:
        layout = whole.layout.with_tail(each.layout, len(whole.blocks))
        marked = whole.has_marks or each.has_marks
        converted = whole.is_converted or each.is_converted
        whole = _Document((*whole.blocks, *each.blocks), layout, marked, converted)
    return whole


class DocumentCache:
    """Keeps what is expensive to make: the layout of one item, and the hidden characters of each."""

    def __init__(
        self,
        registry: CommandRegistry,
        ready: Callable[[], object] | None = None,
    ) -> None:
        """Lay out large texts on another thread where *ready* is given: it is called there each time."""
        self._registry = registry
        self._findings_room = (
            BackgroundWorker[HiddenCharacters](ready) if ready is not None else None
        )
        self._layout_room = BackgroundWorker[_Document](ready) if ready is not None else None
        self._start: tuple[object, Layout] = ((), Layout())
        self.is_complete = True
        """The layout that was asked for last is that of the whole text."""
        self._of: tuple[object, ...] = ()
        """What `_main` was made from."""
        self._blocks: tuple[Block, ...] = ()
        self._main = Layout()
        self._context: tuple[tuple[Section, ...], int, int] = ((), 0, 0)
        self._tail_blocks: tuple[Block, ...] = ()
        self._whole = Layout()
        self._findings: dict[str, tuple[object, HiddenCharacters]] = {}
        self.has_marks = False
        """Something in the document is drawn as a mark."""
        self.is_converted = False
        """Something in it is drawn as another text than its source."""
        self.page_findings: tuple[str, ...] = ()
        """What was found in the file that `page` showed last, most dangerous first."""

    def findings(self, item: Item) -> HiddenCharacters:
        return self._hidden(item.key, shown_by(item)) or HiddenCharacters()

    def _hidden(self, key: str, shown: "Shown") -> HiddenCharacters | None:
        """Return the hidden characters of *shown*, kept by *key*; None while a large text is rendered."""
        known = self._findings.get(key)
        if known is None or known[0] is not shown:
            counts = self._find(key, shown)
            if counts is None:
                return None
            known = (shown, counts)
            self._findings[key] = known
            if len(self._findings) > FINDINGS_KEPT:
                del self._findings[next(iter(self._findings))]
        return known[1]

    def _find(self, key: str, shown: "Shown") -> HiddenCharacters | None:
        room = self._findings_room
        if room is None or not is_large(shown):
            return _hidden_in(shown)
        done = room.request(key, IdentityKey(shown), lambda: _hidden_in(shown))
        if done is None:
            return None
        room.forget(key)
        return done.get()

    def findings_in(self, item: Item | None) -> tuple[str, ...]:
        """Return what makes a yes to *item* more than a plain one, most dangerous first."""
        if item is None:
            return ()
        return (*unvouched_key(item.file), *findings_of(item.approval, self.findings(item)))

    def warnings(self, item: Item, *, file_changed: bool) -> list[Line]:
        """Return the warnings of the item's head; *file_changed*: `Queue.file_changed`."""
        if item.file is not None:
            return file_warnings(item.file, self.findings(item))
        found = self.findings(item)
        lines = (warnings(each, found, file_changed=file_changed) for each in item.calls)
        return [*dict.fromkeys(text for each in lines for text in each)]

    @property
    def current(self) -> Layout:
        """The layout that was asked for last."""
        return self._whole

    @property
    def blocks(self) -> tuple[Block, ...]:
        """The blocks that it was made from, as `Layout.blocks` numbers them."""
        return (*self._blocks, *self._tail_blocks)

    def layout(self, item: Item | None, options: LayoutOptions, now: float) -> Layout:
        """Return the layout of *item*; the same object while nothing in it differs."""
        if item is None:
            return self.page((), options)
        made_from = (
            IdentityKey(item.approval or item),
            options.width,
            options.gutter,
            options.unfold,
            options.file_changed,
            self._registry.commands,
        )
        self.is_complete = True
        if self._of != made_from:
            made = self._made(item, options, now)
            if made is None:
                return self._start_of(item, options, now)
            self._take(made, made_from)
        elif item.approval is not None:
            self._age(first_heading(item.approval, now), options)
        elif item.batch is not None:
            self._age(same_heading(item.batch, now), options)
        return self._with_tail(options)

    def page(
        self,
        blocks: tuple[Block, ...],
        options: LayoutOptions,
        content: FileContentView | None = None,
    ) -> Layout:
        """Return the layout of *blocks*, which are no item's, with *content* if they are about a file.

        The same object while they are equal; a large content is laid out in the background.
        """
        hidden = self._hidden(_PAGE, content)
        self.page_findings = hidden.findings() if hidden is not None else ()
        self.is_complete = hidden is not None
        made_from = (blocks, IdentityKey(content), options.width, options.gutter, options.unfold)
        if self._of != made_from:

            def make() -> _Document:
                return _make(with_content(blocks, content, unfold=options.unfold), options)

            made = self._done(made_from, make, large=is_large(content))
            if made is None:
                begin = (*start_blocks(content, 0), *blocks)
                return self._show_start(lay_out(begin, options.width, options.gutter))
            self._take(made, made_from)
        return self._with_tail(options)

    def parts(
        self,
        key: object,
        make: Callable[[], Sequence[tuple[Block, ...]]],
        options: LayoutOptions,
        *,
        large: bool,
    ) -> Layout:
        """Return the layout of what *make* returns, one part below the other.

        The same object while *key* is the same. What is *large* is made in the background, and a
        note takes its place until then.
        """
        made_from = (key, options.width, options.gutter, options.unfold)
        self.is_complete = True
        if self._of != made_from:
            made = self._done(made_from, lambda: _join(make(), options), large=large)
            if made is None:
                note = value("", (Piece(words.views.LAYING_OUT, "attn"),), "record")
                return self._show_start(lay_out((note,), options.width, options.gutter))
            self._take(made, made_from)
        return self._whole

    def _done(self, key: object, make: Callable[[], _Document], *, large: bool) -> _Document | None:
        """Return what *make* returns; None while it is made in the background, since it is *large*."""
        room = self._layout_room
        if room is None or not large:
            return make()
        done = room.request("layout", key, make)
        return done.get() if done is not None else None

    def _show_start(self, start: Layout) -> Layout:
        """Show *start* until the whole is laid out; nothing of it can be read or decided."""
        self.is_complete, self.has_marks, self.is_converted = False, False, False
        self._of, self._blocks, self._tail_blocks = (), (), ()
        self._main = self._whole = start
        return start

    def _made(self, item: Item, options: LayoutOptions, now: float) -> _Document | None:
        """Return the document of *item*; None while a large one is being made."""
        shown = shown_by(item)
        large = is_large(shown)
        if large and self._layout_room is not None and self._hidden(item.key, shown) is None:
            return None  # they are part of it
        warnings = self.warnings(item, file_changed=options.file_changed)
        key = (
            IdentityKey(shown),
            options.width,
            options.gutter,
            options.unfold,
            options.file_changed,
            self._registry.commands,
        )
        return self._done(
            key, lambda: _make(self._blocks_of(item, options, now, warnings), options), large=large
        )

    def _start_of(self, item: Item, options: LayoutOptions, now: float) -> Layout:
        """Return the layout of the document's start, while the rest is laid out."""
        shown = shown_by(item)
        key = (IdentityKey(shown), options.width, options.gutter)
        if self._start[0] != key:
            blocks = start_blocks(shown, now)
            if item.file is not None:
                blocks = (*blocks, *file_blocks(replace(item.file, content=None)))
            elif item.suite is not None:
                blocks = (*blocks, *suite_blocks(item.suite.without_contents()))
            self._start = (key, lay_out(blocks, options.width, options.gutter))
        return self._show_start(self._start[1])

    def _take(self, made: _Document, made_from: tuple[object, ...]) -> None:
        self._of, self._blocks = made_from, made.blocks
        self.has_marks = made.has_marks
        self.is_converted = made.is_converted
        self._main = self._whole = made.layout
        self._context = ((), 0, 0)
        self._tail_blocks = ()

    def _with_tail(self, options: LayoutOptions) -> Layout:
        """Return the layout with the context of the call at its end; that changes by itself."""
        context = (
            (options.context, options.width, options.gutter) if options.context else ((), 0, 0)
        )
        if context != self._context:
            self._context = context
            self._tail_blocks = tuple(context_blocks(options.context))
            tail = lay_out(self._tail_blocks, options.width, options.gutter)
            self._whole = self._main.with_tail(tail, len(self._blocks))
        return self._whole

    def _age(self, first: Block, options: LayoutOptions) -> None:
        """Draw the first heading anew: it alone shows an age."""
        if first == self._blocks[0]:
            return
        old = self._main.blocks.count(0)
        head = lay_out((first,), options.width, options.gutter)
        self._blocks = (first, *self._blocks[1:])
        self._main = self._whole = head.with_tail(self._main.without_first(old), 0)
        self._context = ((), 0, 0)

    @property
    def outcome_keys(self) -> OutcomeKeys:
        """The keys about an unknown outcome."""
        return _outcome_keys(self._registry)

    def _blocks_of(
        self, item: Item, options: LayoutOptions, now: float, warnings: list[Line]
    ) -> tuple[Block, ...]:
        if item.approval is not None:
            compact = options.gutter == COMPACT_GUTTER
            beyond = warnings_beyond_head(warnings, options.width, compact=compact)
            return call_blocks(self._registry, item.approval, now, beyond, unfold=options.unfold)
        if item.batch is not None:
            return batch_blocks(item.batch, now, unfold=options.unfold)
        if item.problem is not None:
            return problem_blocks(item.problem)
        if item.suite is not None:
            return suite_blocks(item.suite, unfold=options.unfold)
        return file_blocks(item.file, unfold=options.unfold) if item.file is not None else ()


def call_blocks(
    registry: CommandRegistry,
    view: ApprovalView,
    now: float,
    warnings: Sequence[Line] = (),
    *,
    unfold: bool = False,
) -> tuple[Block, ...]:
    """Return the document of *view*, with the keys of *registry*; *warnings*: those of its record."""
    return approval_blocks(
        view,
        now,
        warnings,
        unfold=unfold,
        refresh_key=registry.key_label("refresh"),
        keys=_outcome_keys(registry),
        unlock_key=registry.key_label("unlock_vault"),
        choose_key=registry.key_label("choose_account"),
        accounts_key=registry.key_label("view_accounts"),
    )


def _outcome_keys(registry: CommandRegistry) -> OutcomeKeys:
    label = registry.key_label
    return OutcomeKeys(look=label("look_again"), acknowledge=label("acknowledge"))


class IdentityKey:
    """Is equal only to itself: comparing large values would take as long as the work that it saves."""

    def __init__(self, value: object) -> None:
        self._value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, IdentityKey) and self._value is other._value

    def __hash__(self) -> int:
        return id(self._value)


def is_large(shown: "Shown", result: Iterable[FieldView] = ()) -> bool:
    """Tell whether to draw *shown* and the *result* of its run takes long enough to be noticed."""
    if isinstance(shown, Batch):
        return any(map(is_large, shown.calls)) or foreign_size(shown) > LARGE_CHARACTERS
    size = foreign_size(shown) + sum(len(field.value) for field in result)
    if isinstance(shown, ApprovalView):
        looked = shown.look.preview.fields if shown.look is not None else ()
        converted = (*shown.preview.fields, *looked, *shown.agent_fields)
        size += CONVERSION_FACTOR * sum(len(field.value) for field in converted if field.format)
    return size > LARGE_CHARACTERS


Shown: TypeAlias = ApprovalView | Batch | FileContentView | SuiteFiles | None


def shown_by(item: Item) -> Shown:
    """Return that of *item* which holds the text from outside."""
    if item.file is not None:
        return item.file.content
    return item.approval or item.batch or item.suite


def foreign_size(shown: Shown) -> int:
    """Return how many characters of *shown* come from outside."""
    if shown is None:
        return 0
    if isinstance(shown, Batch):
        return sum(map(foreign_size, shown.calls))
    if not isinstance(shown, ApprovalView):
        return sum(_file_size(each) for each in _files_of(shown))
    changed = shown.drift.changed if shown.drift is not None else ()
    inputs = [field for step in shown.steps for field in step.inputs]
    looked = shown.look.preview.fields if shown.look is not None else ()
    fields = (*shown.preview.fields, *looked, *shown.agent_fields, *inputs)
    sizes = [len(field.value) for field in fields]
    sizes += [len(each.before or "") + len(each.after or "") for each in changed]
    for read in (shown.read_back, shown.look.comparison if shown.look is not None else None):
        differing = read.differing if read is not None else ()
        sizes += [len(each.approved.value) + len(each.found.value) for each in differing]
    return sum(sizes)


def _files_of(shown: FileContentView | SuiteFiles) -> tuple[FileContentView, ...]:
    return (shown,) if isinstance(shown, FileContentView) else shown.contents


def _file_size(content: FileContentView) -> int:
    before = content.before.text if content.before is not None else None
    return len(content.text) + len(before or "")


def _hidden_in(shown: Shown) -> HiddenCharacters:
    if shown is None:
        return HiddenCharacters()
    if isinstance(shown, Batch):
        return hidden_characters_of(*shown.calls)
    return hidden_characters_of(
        *((shown,) if isinstance(shown, ApprovalView) else _files_of(shown))
    )


def start_blocks(view: Shown, now: float) -> tuple[Block, ...]:
    """Return the start of *view*'s document, and a note that there is more; none of it counts as read."""
    notice = words.item.laying_out(foreign_size(view))
    note = (value("", (Piece(notice, "attn"),), "record"), blank())
    if not isinstance(view, ApprovalView):
        return note
    if view.drift is not None or view.steps or view.is_compared:
        return (first_heading(view, now), *note)
    fetched = tuple(_starts(view.preview.fields))
    begin = replace(view, preview=replace(view.preview, fields=fetched), arguments=())
    if (look := view.look) is not None:  # it comes after the first blank line
        begin = replace(begin, look=replace(look, preview=replace(look.preview, fields=())))
    blocks = approval_blocks(begin, now)
    end = next((at for at, block in enumerate(blocks) if block.kind == "blank"), len(blocks))
    return (blocks[0], *note, *blocks[1:end])


def _starts(fields: Iterable[FieldView]) -> Iterator[FieldView]:
    """Yield *fields* up to `START_CHARACTERS` in all."""
    left = START_CHARACTERS
    for field in fields:
        if left <= 0:
            return
        yield replace(field, value=field.value[:left])
        left -= len(field.value)
