"""Lines of several roles whose text comes from outside: rendered as one, then divided again; and the web addresses in them.

A look-alike or a hidden character must be found wherever the roles change: a word of two colours is
one word.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias
from urllib.parse import SplitResult, quote, urlsplit

from aileron_core.text import Rendered, Span, inline
from aileron_tui.draw.text import Line, Piece, Role

MAX_LENGTH = 8192
"""Characters of an address that can be opened."""

_ADDRESS = re.compile(r"https?://[^\s<>\"\u2039\u203a\x00-\x1f\x7f]+", re.IGNORECASE)
_WEB = re.compile(r"https?://", re.IGNORECASE)
_HOST = re.compile(r"[a-z0-9_.-]+|\[[0-9a-f:.]+\]")
# It begins where a word begins: from each letter of a long one it would take time with the square.
_NAMED_HOST = re.compile(r"(?<![^\s/@:?#<>()\"'])[^\s/@:?#<>()\"']+\.[^\W\d_]{2,}", re.IGNORECASE)
_CLOSING = {")": "(", "]": "[", "}": "{"}
_ENDS_SENTENCE = ".,;:!?'\"*`"
_KEPT = "%/:=&?~+!$,;'@()*[]|-._"
"""What is not escaped in a path or a query, besides letters and digits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkTarget:
    """An address that can be opened."""

    url: str
    """All of it in ASCII, as the browser gets it."""
    host: str
    """The host that it leads to, in ASCII and lower case."""
    has_user: bool
    """Something that is no host stands before it, and an `@` between."""
    is_renamed: bool
    """Its host is written in other letters than ASCII, or in punycode."""


def parse_link(written: str) -> LinkTarget | None:
    """Return where *written* leads; None if it is no plain address of `http` or `https`.

    Refused is what browsers read in different ways: blanks, control characters, backslashes, a host
    that has no ASCII form.
    """
    text = written.strip(" \t\r\n\f")
    if len(text) > MAX_LENGTH or not _WEB.match(text) or "\\" in text:
        return None
    if any(char.isspace() or not char.isprintable() for char in text):
        return None
    try:
        parts = urlsplit(text)
        host, port = parts.hostname or "", parts.port
        ascii_host = host if host.isascii() else host.encode("idna").decode("ascii").lower()
    except (ValueError, UnicodeError):
        return None
    named = f"[{ascii_host}]" if ":" in ascii_host else ascii_host
    if not _HOST.fullmatch(named):
        return None
    user, at, _ = parts.netloc.rpartition("@")
    place = f"{quote(user, safe=_KEPT)}{at}{named}" + (f":{port}" if port is not None else "")
    escaped = SplitResult(
        parts.scheme.lower(),
        place,
        quote(parts.path, safe=_KEPT),
        quote(parts.query, safe=_KEPT),
        quote(parts.fragment, safe=_KEPT),
    )
    return LinkTarget(
        url=escaped.geturl(),
        host=named,
        has_user=bool(at),
        is_renamed=not host.isascii() or "xn--" in ascii_host,
    )


def find_links(text: str) -> Iterator[tuple[int, int]]:
    """Yield `[start, end)` of every address in *text* that can be opened."""
    for match in _ADDRESS.finditer(text):
        end = match.start() + len(_without_end(match.group()))
        if parse_link(text[match.start() : end]) is not None:
            yield match.start(), end


def _without_end(address: str) -> str:
    """Return *address* without what belongs to the sentence around it."""
    counts = Counter(address)
    end = len(address)
    while end:
        last = address[end - 1]
        opening = _CLOSING.get(last)
        unopened = opening is not None and counts[last] > counts[opening]
        if last not in _ENDS_SENTENCE and not unopened:
            break
        counts[last] -= 1
        end -= 1
    return address[:end]


def names_other_host(label: str, host: str) -> bool:
    """Tell whether *label*, the text of a link to *host*, names another host."""
    for match in _NAMED_HOST.finditer(label):
        named = match.group().casefold().removeprefix("www.").strip(".")
        if host.removeprefix("www.") != named and not host.endswith(f".{named}"):
            return True
    return False


@dataclass(frozen=True, slots=True)
class StyledText:
    """Some text of a line: from outside and raw, or (`ours`) a sign of Aileron's, safe to draw."""

    text: str
    role: Role | None = None
    """None: the role of the field that it is in."""
    href: str = ""
    ours: bool = False


StyledLine: TypeAlias = tuple[StyledText, ...]


@dataclass(frozen=True, slots=True)
class _Stretch:
    """Characters `[start, end)` of a line's text from outside, drawn alike."""

    start: int
    end: int
    role: Role
    href: str


def draw_styled(texts: Sequence[StyledText], role: Role) -> tuple[Line, Rendered]:
    """Return *texts* as one drawn line, and what was found in it."""
    text = "".join(each.text for each in texts if not each.ours)
    rendered = inline(text)
    stretches: list[_Stretch] = []
    signs: list[tuple[int, Piece]] = []
    at = 0
    for each in texts:
        if each.ours:
            signs.append((at, Piece(each.text, each.role or role, href=each.href)))
            continue
        stretches.append(_Stretch(at, at + len(each.text), each.role or role, each.href))
        at += len(each.text)
    pieces = _divide(rendered.lines[0], _with_links(text, stretches), signs)
    return tuple(piece for piece in pieces if piece.text), rendered


def linked_lines(rendered: Rendered, text: str, role: Role) -> tuple[Line, ...]:
    """Return the lines of *rendered*, which was made of *text*; addresses of the web are links."""
    lines: list[Line] = []
    at = 0
    for spans in rendered.lines:
        size = sum(span.size for span in spans)
        raw = text[at : at + size]
        at += size + 1  # the line break
        if len(spans) == 1 and spans[0].kind == "plain" and "://" not in raw:
            lines.append((Piece(spans[0].text, role, foreign=True),))  # as nearly all are
            continue
        stretches = _with_links(raw, [_Stretch(0, size, role, "")])
        lines.append(tuple(piece for piece in _divide(spans, stretches, ()) if piece.text))
    return tuple(lines) or ((),)


def _with_links(text: str, stretches: Sequence[_Stretch]) -> list[_Stretch]:
    """Divide *stretches* where an address begins and ends."""
    divided: list[_Stretch] = []
    found = list(find_links(text)) if "://" in text else []
    present = 0
    for each in stretches:
        at = each.start
        while present < len(found) and found[present][1] <= at:
            present += 1
        index = present
        while not each.href and index < len(found) and found[index][0] < each.end:
            start, end = found[index]
            low, high = max(start, at), min(end, each.end)
            divided += [
                _Stretch(at, low, each.role, ""),
                _Stretch(low, high, "link", text[start:end]),
            ]
            at, index = high, index + 1
        divided.append(_Stretch(at, each.end, each.role, each.href))
    return [each for each in divided if each.start < each.end]


def _divide(
    spans: Sequence[Span], stretches: Sequence[_Stretch], signs: Sequence[tuple[int, Piece]]
) -> Iterator[Piece]:
    """Yield the pieces of one rendered line; a mark is never divided."""
    waiting = list(signs)
    at = index = 0
    for span in spans:
        begin, end = at, at + span.size
        while at < end:
            while waiting and waiting[0][0] <= at:
                yield waiting.pop(0)[1]
            while index < len(stretches) and stretches[index].end <= at:
                index += 1
            stretch = stretches[index]
            if span.kind == "mark":
                yield Piece(span.text, "mark", href=stretch.href)
                at = end
                continue
            stop = min(end, stretch.end, waiting[0][0] if waiting else end)
            role = stretch.role if span.kind == "plain" else "mark"
            yield Piece(span.text[at - begin : stop - begin], role, foreign=True, href=stretch.href)
            at = stop
    yield from (sign for _, sign in waiting)
