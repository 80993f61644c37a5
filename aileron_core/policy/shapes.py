"""Shapes: what each argument and fetched field of a call must be for a rule or a grant to answer it. Pure, bounded."""

import re
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Final, TypeAlias

from aileron_core.console_port.standing import FieldTest
from aileron_core.policy.values import HOST, Value, Values, address
from aileron_core.text import render

MAX_FIELDS: Final = 64
MAX_PLAIN: Final = 20_000
"""Characters of a text that may be let through unread."""
_MAX_CHECKED: Final = 65_536
"""Characters of a value that a pattern, a place or a number is looked for in."""
_NUMBER: Final = re.compile(r"-?[0-9]{1,30}(?:\.[0-9]{1,30})?")
_URL: Final = re.compile(
    r"https?://([^/?#@:\\\s]+)(?::[0-9]{1,5})?(?:[/?#][^\\\s]*)?", re.IGNORECASE
)
_LINK: Final = re.compile(r"\.[^\W\d_]{2}|:[^\s\d()]|&#|&[A-Za-z]+;|@|//")
"""What a program may make a link of: a domain, a scheme, an entity of HTML that hides one, an address."""
_NUMERIC_HOST: Final = re.compile(r"[0-9]\.[0-9]+\.[0-9]+\.[0-9]")
_LAYOUT: Final = str.maketrans(dict.fromkeys("\n\t", " "))
_DOTS: Final = str.maketrans(dict.fromkeys("\u3002\uff0e\uff61\u2024\ufe52", "."))


Shape: TypeAlias = Mapping[str, FieldTest]
"""By `args.NAME` and `fetched.LABEL`."""


def misfits(shape: Shape, values: Values, *, is_open: bool = False) -> tuple[str, ...]:
    """Return the fields that keep *shape* from allowing a call, in the call's order; none if it does.

    Args:
        shape: what is not named in it must be absent.
        values: of the call.
        is_open: what is not named may be anything that can be read.
    """
    if len(shape) > MAX_FIELDS or len(values) > MAX_FIELDS:
        return tuple(values)
    unnamed = FieldTest("any" if is_open else "absent")
    found = [key for key, value in values.items() if not fits(shape.get(key, unnamed), value)]
    return (*found, *(key for key in shape if key not in values))


def restricts(shape: Shape, values: Values) -> bool | None:
    """Return whether a call is one that *shape* denies or asks about; None where a field of it cannot be read.

    What is not named in it may be anything, one of several values is enough, and upper and lower case are one.
    """
    unsure = len(values) > MAX_FIELDS
    for key, test in shape.items():
        value = values.get(key)
        if value is None:
            return False  # the action has no such field
        if value.status == "unreadable":
            unsure = True
        elif not _one_fits(test, value):
            return False
    return None if unsure else True


def _one_fits(test: FieldTest, value: Value) -> bool:
    folded = replace(test, values=tuple(map(str.casefold, test.values)))
    items = tuple(map(str.casefold, value.items))
    whole = replace(value, items=items)
    return fits(folded, whole) or any(fits(folded, replace(whole, items=(each,))) for each in items)


def fits(test: FieldTest, value: Value) -> bool:
    """Return whether *value* passes *test*. What cannot be read passes none, what is n/a only `absent`."""
    if value.status == "unreadable":
        return False
    if value.status == "n/a" or test.name == "absent":
        return test.name == "absent" and value.status != "given"
    if value.status == "none":
        return test.name in ("any", "only", "plain")
    if test.name == "any":
        return True
    if test.name == "only":
        return {*value.items} <= {*test.values, *filter(None, map(address, test.values))}
    if test.name == "is":
        pairs = zip(value.items, test.values, strict=False)
        same = len(value.items) == len(test.values)
        return same and all(item in (each, address(each) or each) for item, each in pairs)
    if value.is_json or not value.items:
        return False
    check = _CHECKS[test.name]
    return all(len(item) <= _MAX_CHECKED and check(test.values, item) for item in value.items)


def is_plain(text: str, most: int) -> bool:
    """Return whether *text* has at most *most* characters, and nothing that is hidden or that leads elsewhere."""
    if len(text) > most or _hides(text):
        return False
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text.translate(_DOTS))
    return not (_LINK.search(text) or (text.count(".") > 2 and _NUMERIC_HOST.search(text)))


def _hides(text: str) -> bool:
    if text.isascii():
        return not text.translate(_LAYOUT).isprintable()
    return bool(render(text).hidden)


def is_like(pattern: str, text: str) -> bool:
    """Return whether *text*, one line with nothing hidden, is *pattern*, in which `*` stands for any characters."""
    first, *rest = pattern.split("*")
    if "\n" in text or not text.startswith(first) or _hides(text):
        return False
    if not rest:
        return text == first
    at, last = len(first), rest[-1]
    for part in rest[:-1]:
        found = text.find(part, at)
        if found < 0:
            return False
        at = found + len(part)
    return len(text) - at >= len(last) and text.endswith(last)


def is_within(place: str, text: str) -> bool:
    """Return whether *text* is at *place*: a mail address, a folder (with a `/`), or a domain.

    At a domain are the mail addresses and the hosts of exactly that name; `*.` before it means those below it.
    """
    if "@" in place:
        return address(text) == address(place) != ""
    if "/" in place:
        folder, parts = place.rstrip("/"), text.split("/")
        is_path = text.isprintable() and "\\" not in text and not {".", ".."} & {*parts}
        return is_path and "" not in parts[1:] and text.startswith(f"{folder}/")
    domain = _domain(text)
    if place.startswith("*."):
        return domain.endswith(place[1:].lower())
    return domain == place.lower()


def _domain(text: str) -> str:
    """Return the domain of a mail address, a web address or a host; empty where *text* is none of them."""
    url = _URL.fullmatch(text)
    domain = (url[1] if url is not None else address(text).rpartition("@")[2] or text).lower()
    return domain if HOST.fullmatch(domain) else ""


def number(text: str) -> Decimal | None:
    """Return the number that *text* is, whole; None where it is none."""
    return Decimal(text) if _NUMBER.fullmatch(text) else None


def _at_most(values: tuple[str, ...], text: str) -> bool:
    found = number(text)
    return found is not None and found <= Decimal(values[0])


def _at_least(values: tuple[str, ...], text: str) -> bool:
    found = number(text)
    return found is not None and found >= Decimal(values[0])


_CHECKS: Final[Mapping[str, Callable[[tuple[str, ...], str], bool]]] = {
    "within": lambda values, text: any(is_within(each, text) for each in values),
    "like": lambda values, text: any(is_like(each, text) for each in values),
    "at_most": _at_most,
    "at_least": _at_least,
    "plain": lambda values, text: is_plain(text, int(values[0])),
}
