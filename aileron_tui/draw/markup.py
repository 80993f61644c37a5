"""HTML and Markdown as readable text, of which nothing is lost in silence.

What the reader of a mail would not see is shown between two signs, or counted. No text is left out
because a style says so: styles only add a sign.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import groupby
from typing import TYPE_CHECKING, Any, cast

from aileron_core.text import escape
from aileron_core.text.rendering import MAX_BLANK_LINES
from aileron_tui import words
from aileron_tui.draw.css import Look, changes_direction, look_of
from aileron_tui.draw.styled_text import StyledLine, StyledText, names_other_host, parse_link
from aileron_tui.draw.text import Role

MAX_PREFIXES = 12
"""Quotes and lists within each other that are told apart."""

_BLANKS = re.compile(r"[ \t\n\r\f\u00a0]+")


@dataclass(slots=True)
class TextPage:
    """The lines so far; blanks are joined as HTML joins them."""

    lines: list[list[StyledText]] = field(default_factory=list[list[StyledText]])
    line: list[StyledText] = field(default_factory=list[StyledText])
    prefix: list[str] = field(default_factory=list[str])
    """What every line begins with, of at most `MAX_PREFIXES`: quotes and lists."""
    bullet: str = ""
    """What the next line begins with, in place of the last prefix."""
    unseen: int = 0
    misleading: int = 0
    blank_lines: int = 0
    not_drawn: Counter[str] = field(default_factory=Counter[str])
    _blank_due: bool = False
    _gap_due: bool = False
    _why: str = ""

    @property
    def is_at_start(self) -> bool:
        return not self.line

    def add(self, segment: StyledText) -> None:
        if not segment.text:
            return
        if not self.line:
            self._begin()
        elif self._blank_due:
            self.line.append(StyledText(" ", segment.role if segment.href else None, segment.href))
        self._blank_due = False
        self.line.append(segment)

    def add_text(self, text: str, role: Role | None, link: str) -> None:
        """Add *text*, its blanks joined."""
        for index, word in enumerate(_BLANKS.split(text)):
            if index and self.line:
                self._blank_due = True
            self.add(StyledText(word, role, link))

    def add_kept(self, text: str, role: Role | None, link: str) -> None:
        """Add *text* with its blanks and line breaks."""
        for index, each in enumerate(text.split("\n")):
            if index:
                self.break_line()
            self.add(StyledText(each, role, link))

    def sign(self, text: str, role: Role = "attn", link: str = "") -> None:
        """Add a sign of Aileron's."""
        self.add(StyledText(text, role, link, ours=True))

    def show_unseen(self, why: str) -> None:
        """What follows is not seen by the text's reader, for the reason *why*; empty: it is seen."""
        if why == self._why:
            return
        if self._why:
            last = self.line or (self.lines[-1] if self.lines else self.line)
            last.append(StyledText(words.item.SEEN_AGAIN, "attn", ours=True))
        self._why = why
        if why:
            self.unseen += 1
            self.sign(words.item.unseen(why))

    def break_line(self) -> None:
        """End the line, which may be empty."""
        if not self.line:
            self._begin()
        self.lines.append(self.line)
        self.line, self._blank_due = [], False

    def end_line(self, *, apart: bool = False) -> None:
        """End the line if there is one; *apart*: a blank line comes before the next."""
        if self.line:
            self.break_line()
        self._blank_due = False
        self._gap_due = self._gap_due or (apart and bool(self.lines))

    def _begin(self) -> None:
        if self._gap_due and self.lines:
            self.lines.append([])
        self._gap_due = False
        heads = self.prefix[:MAX_PREFIXES]
        if self.bullet:
            heads[-1:] = [self.bullet]
            self.bullet = ""
        self.line = [StyledText(head, "muted", ours=True) for head in heads if head]

    def finished(self) -> tuple[StyledLine, ...]:
        self.show_unseen("")
        self.end_line()
        return tuple(self._folded())

    def _folded(self) -> Iterator[StyledLine]:
        """Yield the lines, with a sign in place of many blank ones: text must not be pushed out of sight."""
        for is_blank, each in groupby(self.lines, lambda line: all(s.ours for s in line)):
            lines = list(map(tuple, each))
            if is_blank and len(lines) > MAX_BLANK_LINES and not any(map(_says, lines)):
                self.blank_lines += len(lines)
                yield (StyledText(words.item.blank_lines_sign(len(lines)), "attn", ours=True),)
            else:
                yield from lines


def _says(line: StyledLine) -> bool:
    """Tell whether a line of signs says more than that it is quoted."""
    return any(each.role != "muted" for each in line)


if TYPE_CHECKING:
    from justhtml import Node

MAX_CHARACTERS: Mapping[str, int] = {"html": 200_000, "markdown": 40_000}
"""Characters that are converted; of a longer text the source is shown. Markdown takes time with the square."""
MAX_LINES = 20_000
"""Lines of a converted text; beyond them the source is shown."""

MAX_REOPENED = 100_000
"""Times that elements may have to be opened again; beyond them the source is shown."""

_REOPENED = re.compile(
    r"<(?:b|big|code|em|font|i|nobr|s|small|strike|strong|tt|u)(?=[\s/>])[^>]*", re.IGNORECASE
)
_PLAIN_TAG = re.compile(
    r"<[a-zA-Z]++(?:\s++[a-zA-Z-]++(?:=(?:\"[^\"]*+\"|'[^']*+'|[^\s\"'=/]++))?)*+\s*+/?"
)
_BLOCKS = frozenset(
    [
        "address",
        "article",
        "aside",
        "blockquote",
        "body",
        "caption",
        "center",
        "dd",
        "details",
        "dialog",
        "div",
        "dl",
        "dt",
        "fieldset",
        "figcaption",
        "figure",
        "footer",
        "form",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "header",
        "hr",
        "html",
        "legend",
        "li",
        "main",
        "menu",
        "nav",
        "ol",
        "p",
        "pre",
        "section",
        "summary",
        "table",
        "tbody",
        "tfoot",
        "thead",
        "tr",
        "ul",
        "option",
    ]
)
_APART = frozenset(
    ["p", "h1", "h2", "h3", "h4", "h5", "h6", "blockquote", "pre", "table", "ul", "ol", "dl", "hr"]
)
_STRONG = frozenset(["b", "strong", "h1", "h2", "h3", "h4", "h5", "h6", "th", "dt"])
_STRUCK = frozenset(("s", "strike", "del"))
_INDENTED: Mapping[str, str] = {"blockquote": "> ", "li": "  ", "dd": "  "}
_RAISED: Mapping[str, str] = {"sup": "^", "sub": "_"}
_NOT_DRAWN: Mapping[str, str] = {
    "script": "script", "style": "style sheet", "template": "template", "title": "title",
    "iframe": "frame", "frame": "frame", "embed": "object", "noframes": "frame",
    "noembed": "object", "base": "base address", "link": "linked file",
    "datalist": "list of choices",
}  # fmt: skip
"""Elements that are counted, with all that is in them."""
_TEXT_DRAWN: Mapping[str, str] = {
    "object": "object", "video": "video", "audio": "sound", "canvas": "drawing", "svg": "drawing",
    "math": "formula", "map": "map of links",
}  # fmt: skip
"""Elements that are counted, and whose text is drawn: a mail reader may show it in their place, or in them."""
_SPOKEN = ("title", "aria-label", "aria-description", "summary", "label", "content")
"""Attributes that hold text for somebody: counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadableText:
    """A document as lines, and what its lines do not show plainly."""

    lines: tuple[StyledLine, ...]
    unseen: int = 0
    """Stretches of text that its reader would not see."""
    misleading: int = 0
    """Links whose text names another host than they lead to."""
    blank_lines: int = 0
    """Blank lines that are folded in signs."""
    not_drawn: tuple[tuple[str, int], ...] = ()
    """What is only in the source, and how often."""


@lru_cache(maxsize=32)
def convert(text: str, written: str) -> ReadableText | None:
    """Return *text*, `html` or `markdown`, as readable text; None where only the source can be shown."""
    if len(text) > MAX_CHARACTERS[written]:
        return None
    try:
        return _convert(text, written)
    except (RecursionError, ValueError):
        return None


def _convert(text: str, written: str) -> ReadableText | None:
    # Both are loaded when the first text of their kind is drawn.
    from justhtml import JustHTML

    left_out: list[str] = []
    if written == "markdown":
        text, left_out = _markdown_to_html(text)
    # A mail reader runs no scripts: what stands in `noscript` is text.
    if _repeats_elements(text):
        return None
    document = JustHTML(text, sanitize=False, scripting_enabled=False)
    page = TextPage()
    _Walker(page).walk(document.root)
    for each in left_out:
        page.show_unseen("")
        page.end_line()
        page.sign(words.item.ONLY_IN_SOURCE)
        page.add(StyledText(each))
    lines = page.finished()
    if len(lines) > MAX_LINES:
        return None
    return ReadableText(
        lines=lines,
        unseen=page.unseen,
        misleading=page.misleading,
        blank_lines=page.blank_lines,
        not_drawn=tuple(page.not_drawn.items()),
    )


def _repeats_elements(text: str) -> bool:
    """Tell whether *text* may become a far larger document.

    What is not closed in one paragraph, HTML opens again in each that follows; of equal ones three
    at most.
    """
    tags = _REOPENED.findall(text)
    plain = {tag for tag in tags if _PLAIN_TAG.fullmatch(tag)}
    # Of the others nobody knows without reading all of it where they end.
    unclear = sum(not _PLAIN_TAG.fullmatch(tag) for tag in tags)
    return (len(plain) + unclear) * text.count("<") > MAX_REOPENED


def _markdown_to_html(text: str) -> tuple[str, list[str]]:
    """Return *text* as HTML, and what that leaves out: addresses by name, names of code blocks."""
    from markdown_it import MarkdownIt

    class EveryLink(MarkdownIt):
        def validateLink(self, url: str) -> bool:  # noqa: N802 - the library's name
            return True  # the walker shows where it would lead

    environment: dict[str, Any] = {}
    reader = EveryLink("commonmark", {"html": True}).enable(["table", "strikethrough"])
    tokens = reader.parse(text, environment)
    made = cast("str", reader.renderer.render(tokens, reader.options, environment))
    known = list(cast("dict[str, dict[str, str]]", environment.get("references", {})).values())
    known += cast("list[dict[str, str]]", environment.get("duplicate_refs", []))
    texts = (f"{each.get('href', '')} {each.get('title', '')}".strip() for each in known)
    names = (token.info.strip() for token in tokens if token.type == "fence")
    return made, [each for each in (*texts, *names) if each]


@dataclass(frozen=True, slots=True)
class _Place:
    """What holds for the text at one place of the tree."""

    look: Look = field(default_factory=Look)
    role: Role | None = None
    href: str = ""
    keeps_blanks: bool = False
    number: Counter[str] | None = None
    """The numbers of the list that it is in; None where that has none."""


@dataclass(slots=True)
class _Walker:
    """Goes through the tree in order, without recursion: a mail may be nested as deep as it likes."""

    page: TextPage
    labels: list[list[str]] = field(default_factory=list[list[str]])
    """The text of the links that are open."""

    def walk(self, root: "Node") -> None:
        steps: list[Iterator[Node]] = [iter([root])]
        places, open_nodes = [_Place()], list["Node"]()
        while steps:
            node = next(steps[-1], None)
            if node is None:
                steps.pop()
                if open_nodes:
                    self._leave(open_nodes.pop(), places.pop(), places[-1])
                continue
            place = self._enter(node, places[-1])
            if place is not None:
                places.append(place)
                open_nodes.append(node)
                steps.append(iter(node.children or ()))

    def _enter(self, node: "Node", outer: _Place) -> _Place | None:
        """Draw the beginning of *node*; None if nothing in it is drawn."""
        name, page = str(node.name).casefold(), self.page
        if name == "#text":
            self._text(str(node.data or ""), outer)
            return None
        if name.startswith(("#comment", "!", "#processing", "?")):
            if "doctype" not in name:
                page.not_drawn["comment"] += 1
            return None
        if name.startswith("#"):
            return outer
        if name in _NOT_DRAWN:
            page.not_drawn[_NOT_DRAWN[name]] += 1
            return None
        attributes = cast("Mapping[str, str | None]", node.attrs or {})
        place = self._place(name, attributes, outer)
        if name in _BLOCKS:
            page.end_line(apart=name in _APART)
        self._begin_element(name, attributes, place, outer)
        return place

    def _place(self, name: str, attributes: Mapping[str, str | None], outer: _Place) -> _Place:
        look = look_of(attributes, outer.look)
        role: Role | None = "strong" if name in _STRONG else outer.role
        link, number = outer.href, outer.number
        if name == "a" and parse_link(attributes.get("href") or "") is not None:
            link, role = (attributes["href"] or "").strip(), "link"
        if name == "ol":
            start = attributes.get("start") or "1"
            number = Counter(next=int(start) if re.fullmatch(r"-?\d{1,6}", start) else 1)
        elif name in ("ul", "menu"):
            number = None
        keeps = outer.keeps_blanks or name in ("pre", "textarea", "listing", "xmp", "plaintext")
        return _Place(look, role, link, keeps, number)

    def _begin_element(
        self, name: str, attributes: Mapping[str, str | None], place: _Place, outer: _Place
    ) -> None:
        page = self.page
        if name == "br":
            page.break_line()
        elif name == "hr":
            page.sign("-" * 20, "muted")
        elif name in ("td", "th") and not page.is_at_start:
            page.sign(" | ", "muted")
        elif name in _INDENTED:
            page.prefix.append(_INDENTED[name])
            if name == "li":
                page.bullet = self._bullet(place)
        elif name in _RAISED:
            page.sign(_RAISED[name], "muted")
        elif name == "q":
            page.sign('"', "muted")
        elif name in ("img", "input"):
            page.show_unseen(place.look.unseen)
            self._replaced(name, attributes, place)
        self._count_element(name, attributes)
        if name == "a" and (attributes.get("href") or "").strip():
            self.labels.append([])
        if (name in _STRUCK or place.look.struck) and not outer.look.struck:
            page.sign(words.item.STRUCK, "attn")

    def _count_element(self, name: str, attributes: Mapping[str, str | None]) -> None:
        """Count what *name* does besides showing text."""
        page = self.page
        page.not_drawn.update(
            ["attribute with text"] * sum(map(bool, map(attributes.get, _SPOKEN)))
        )
        if name in _TEXT_DRAWN:
            page.not_drawn[_TEXT_DRAWN[name]] += 1
        if name == "bdo" or changes_direction(attributes):
            page.not_drawn["change of direction"] += 1
        elif name == "meta" and (attributes.get("http-equiv") or "").casefold() == "refresh":
            page.not_drawn["redirection"] += 1

    def _bullet(self, place: _Place) -> str:
        if place.number is None:
            return "- "
        place.number["next"] += 1
        return f"{place.number['next'] - 1}. "

    def _replaced(self, name: str, attributes: Mapping[str, str | None], place: _Place) -> None:
        """Draw what an image or a field says in place of itself."""
        if name == "img":
            text, kind = attributes.get("alt") or "", words.item.IMAGE
        else:
            kind = words.item.INPUT_FIELD
            text = attributes.get("value") or attributes.get("placeholder") or ""
            if (attributes.get("type") or "").casefold() == "hidden":
                self.page.not_drawn["hidden field"] += 1
                return
        shown = f"\u2039{kind}: {escape(text)}\u203a" if text else f"\u2039{kind}\u203a"
        self.page.sign(shown, "form", place.href)

    def _text(self, text: str, place: _Place) -> None:
        page = self.page
        if not text.strip(" \t\n\r\f\u00a0") and not place.keeps_blanks:
            page.add_text(text, place.role, place.href)
            return
        page.show_unseen(place.look.unseen)
        if place.keeps_blanks:
            page.add_kept(text, place.role, place.href)
        else:
            page.add_text(text, place.role, place.href)
        if self.labels:
            self.labels[-1].append(text)

    def _leave(self, node: "Node", place: _Place, outer: _Place) -> None:
        name, page = str(node.name).casefold(), self.page
        attributes = cast("Mapping[str, str | None]", node.attrs or {})
        if name == "a" and (attributes.get("href") or "").strip() and self.labels:
            self._end_link((attributes.get("href") or "").strip(), "".join(self.labels.pop()))
        if (name in _STRUCK or place.look.struck) and not outer.look.struck:
            page.sign(words.item.STRUCK_END, "attn")
        if name == "q":
            page.sign('"', "muted")
        if name in _BLOCKS:
            page.end_line(apart=name in _APART)
        if name in _INDENTED:
            page.prefix.pop()
            page.bullet = ""

    def _end_link(self, href: str, label: str) -> None:
        """Say where the link leads, unless its text says just that."""
        page, target, said = self.page, parse_link(href), label.strip()
        if target is None:
            if href.casefold().removeprefix("mailto:") != said.casefold():
                page.sign(f"\u2039{escape(href)}\u203a", "form")
            return
        if names_other_host(said, target.host) or target.has_user:
            page.misleading += 1
            page.sign(words.item.leads_elsewhere(target.host), "attn", href)
        elif said not in (href, target.url):
            page.sign(f"\u2039{target.host}\u203a", "form", href)
