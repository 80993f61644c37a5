"""Addresses of the web in text from outside: where they stand, and what opening one would open."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import SplitResult, quote, urlsplit

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
