"""Shapes: what each argument and fetched field of a call must be for a rule or a grant to answer it. Pure, bounded."""

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from typing import Final, TypeAlias

from aileron_core.console_port.standing import FieldTest, TestName
from aileron_core.policy.values import ARGUMENT, HOST, Value, Values, address, addresses
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
_LINK: Final = re.compile(
    r"\.[^\W\d_](?:[^\W\d_]|[^\x00-\x7f])|:[^\s\d()]|[A-Za-z]:\d|&#|&[A-Za-z]+;|@|//|<[A-Za-z/!?]|\][(:]"
)
"""What a program may make a link of: a domain, a scheme, an entity of HTML that hides one, an address, markup."""
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
    every = dict.fromkeys([*values, *shape])
    return tuple(key for key in every if not fits(shape.get(key, unnamed), _at(values, key)))


def _at(values: Values, key: str) -> Value:
    return values.get(key) or Value("none" if key.startswith(ARGUMENT) else "n/a")


def restricts(shape: Shape, values: Values) -> bool | None:
    """Return whether a call is one that *shape* denies or asks about; None where a field of it cannot be read for its test.

    What is not named in it may be anything, one of several values is enough, and upper and lower case are one.
    """
    if len(values) > MAX_FIELDS:
        return None
    found = {_restricts(test, _at(values, key)) for key, test in shape.items()}
    return False if False in found else None if None in found else True


def _restricts(test: FieldTest, value: Value) -> bool | None:
    if value.status == "unreadable":
        return None
    if test.name == "absent" or value.status != "given":
        return test.name == "absent" and value.status != "given"
    if test.name == "any":
        return True
    if value.is_json and test.name != "is":
        return None
    folded = tuple(map(str.casefold, test.values))
    found = {_one_restricts(test.name, folded, item.casefold()) for item in value.items}
    return True if True in found else None if None in found else False


def _one_restricts(name: TestName, wanted: tuple[str, ...], item: str) -> bool | None:
    """Return whether *item* passes a test; None where it is not what the test is of, or two programs may read it differently."""
    listed = addresses(item)
    if name in ("is", "only"):
        return not {item, *listed}.isdisjoint(
            {*wanted, *(a for each in wanted for a in addresses(each))}
        )
    if len(item) > _MAX_CHECKED:
        return None
    if name == "like":
        return None if _hides(item) else any(_is_like(each, item) for each in wanted)
    if name == "within":
        if any(is_within(place, each) for place in wanted for each in (item, *listed)):
            return True
        return False if all(_is_placed(place, item, listed) for place in wanted) else None
    if name != "plain" and number(item) is None:
        return None
    return _CHECKS[name](wanted, item)


def _is_placed(place: str, item: str, listed: tuple[str, ...]) -> bool:
    """Return whether it is certain where *item* is, for a test of whether it is at *place*."""
    if "@" not in place and "/" in place:
        return is_path(item)
    return bool(listed) or bool(_domain(item))


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


def _is_like(pattern: str, text: str) -> bool:
    """Return whether *text* is *pattern*, in which `*` stands for any characters."""
    first, *rest = pattern.split("*")
    if not text.startswith(first):
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


def is_like(patterns: Iterable[str], text: str) -> bool:
    """Return whether *text*, one line with nothing hidden, is one of *patterns*, in which `*` stands for any characters."""
    return "\n" not in text and not _hides(text) and any(_is_like(each, text) for each in patterns)


def is_path(text: str) -> bool:
    """Return whether *text* is a path that every program reads alike."""
    parts = text.split("/")
    return (
        text.isprintable()
        and "\\" not in text
        and not {".", ".."} & {*parts}
        and "" not in parts[1:]
    )


def is_within(place: str, text: str) -> bool:
    """Return whether *text* is at *place*: a mail address, a folder (with a `/`), or a domain.

    At a domain are the mail addresses and the hosts of exactly that name; `*.` before it means those below it.
    """
    if "@" in place:
        return address(text) == address(place) != ""
    if "/" in place:
        return is_path(text) and text.startswith(f"{place.rstrip('/')}/")
    domain = _domain(text)
    if place.startswith("*."):
        return domain.endswith(place[1:].lower())
    return domain == place.lower()


def is_place(text: str) -> bool:
    """Return whether *text* can be the place of a test."""
    if "@" in text:
        return address(text) != ""
    if "/" in text:
        return "://" not in text and is_path(text.rstrip("/")) and text.strip("/") != ""
    return HOST.fullmatch(text.lower().removeprefix("*.")) is not None


def _domain(text: str) -> str:
    """Return the domain of a mail address, a web address or a host; empty where *text* is none of them."""
    url = _URL.fullmatch(text)
    domain = (url[1] if url is not None else address(text).rpartition("@")[2] or text).lower()
    return domain if HOST.fullmatch(domain) else ""


def number(text: str) -> Decimal | None:
    """Return the number that *text* is, whole; None where it is none."""
    return Decimal(text) if _NUMBER.fullmatch(text) else None


def is_well_formed(test: FieldTest) -> bool:
    """Return whether *test* has the values that its name needs."""
    first = test.values[0] if test.values else ""
    if test.name in ("at_most", "at_least"):
        return len(test.values) == 1 and number(first) is not None
    if test.name == "plain":
        is_count = len(test.values) == 1 and first.isascii() and first.isdigit() and len(first) < 6
        return is_count and 1 <= int(first) <= MAX_PLAIN
    if test.name == "within":
        return bool(test.values) and all(map(is_place, test.values))
    if test.name == "like":
        return 0 < len(test.values) <= MAX_FIELDS
    return len(test.values) <= MAX_FIELDS or test.name == "is"


_CHECKS: Final[Mapping[str, Callable[[tuple[str, ...], str], bool]]] = {
    "within": lambda values, text: any(is_within(each, text) for each in values),
    "like": is_like,
    "at_most": lambda values, text: (
        (found := number(text)) is not None and found <= Decimal(values[0])
    ),
    "at_least": lambda values, text: (
        (found := number(text)) is not None and found >= Decimal(values[0])
    ),
    "plain": lambda values, text: is_plain(text, int(values[0])),
}
