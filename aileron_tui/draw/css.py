"""What the `style` of an element in a mail does to its text: may its reader see it?

Only the attribute and the old presentational ones are read. Rules of a style sheet are not: their text
is drawn as visible, and the sheet is counted as not shown.
"""

import colorsys
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from aileron_tui import words

MIN_PIXELS = 5.0
"""Smaller letters count as invisible."""
MIN_CONTRAST = 40
"""Colours that differ by less in each of red, green and blue (0 to 255) count as the same."""
MIN_OPACITY = 0.15
MIN_SIDE = 2.0
"""Pixels of a box that shows nothing of what is in it."""

Colour: TypeAlias = tuple[int, int, int]
_Rules: TypeAlias = Mapping[str, Sequence[str]]
"""Every value that a property is given: which of several a mail reader takes, depends on the reader."""

_COMMENT = re.compile(r"/\*.*?(?:\*/|\Z)", re.DOTALL)
_LENGTH = re.compile(r"(-?\d*\.?\d+)(px|pt|em|rem|%|ex|vw|vh|mm|cm|in|pc)?")
_PIXELS: Mapping[str, float] = {
    "": 1, "px": 1, "pt": 4 / 3, "rem": 16, "ex": 8, "vw": 10, "vh": 10, "mm": 3.8, "cm": 38,
    "in": 96, "pc": 16,
}  # fmt: skip
# The possessive signs and what is before them keep the time of a search linear.
_FONT_SIZE = re.compile(r"(?<![\d.])-?(?:\d++(?:\.\d*+)?|\.\d++)(?:px|pt|em|rem|%)")
_FUNCTION = re.compile(r"(rgb|hsl)a?\(([^()]{0,80})\)")
_COLOURS = re.compile(r"(?:rgb|hsl)a?\([^()]{0,80}\)|[^\s]+")
_SIDES = ("height", "max-height", "width", "max-width")
_READ = frozenset(("style", "hidden", "color", "bgcolor"))
"""Attributes that say how text looks."""
_OFF_SCREEN = 400
"""Pixels to a side from which on something is out of sight."""

_NAMES: Mapping[str, Colour] = {
    "white": (255, 255, 255), "snow": (255, 250, 250), "ghostwhite": (248, 248, 255),
    "whitesmoke": (245, 245, 245), "ivory": (255, 255, 240), "azure": (240, 255, 255),
    "mintcream": (245, 255, 250), "floralwhite": (255, 250, 240), "aliceblue": (240, 248, 255),
    "lavenderblush": (255, 240, 245), "seashell": (255, 245, 238), "honeydew": (240, 255, 240),
    "oldlace": (253, 245, 230), "linen": (250, 240, 230), "lightyellow": (255, 255, 224),
    "cornsilk": (255, 248, 220), "beige": (245, 245, 220), "lavender": (230, 230, 250),
    "lightcyan": (224, 255, 255), "gainsboro": (220, 220, 220), "black": (0, 0, 0),
    "silver": (192, 192, 192), "gray": (128, 128, 128), "grey": (128, 128, 128),
    "red": (255, 0, 0), "maroon": (128, 0, 0), "yellow": (255, 255, 0), "olive": (128, 128, 0),
    "lime": (0, 255, 0), "green": (0, 128, 0), "aqua": (0, 255, 255), "teal": (0, 128, 128),
    "blue": (0, 0, 255), "navy": (0, 0, 128), "fuchsia": (255, 0, 255), "purple": (128, 0, 128),
    "orange": (255, 165, 0),
}  # fmt: skip
_HIDING: Mapping[str, frozenset[str]] = {
    "display": frozenset({"none"}),
    "visibility": frozenset({"hidden", "collapse"}),
    "content-visibility": frozenset({"hidden"}),
    "mso-hide": frozenset({"all"}),
    "zoom": frozenset({"0", "0%"}),
    "scale": frozenset({"0", "0%"}),
}
_DECORATIONS = ("text-decoration", "text-decoration-line")
_MOVES = (
    "left", "right", "top", "bottom", "text-indent", "margin-left", "margin-right", "margin-top",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Look:
    """How text looks at one place of a document; `unseen`: why its reader does not see it, or empty."""

    colour: Colour = (0, 0, 0)
    ground: Colour = (255, 255, 255)
    pixels: float = 16.0
    unseen: str = ""
    struck: bool = False


def look_of(attributes: Mapping[str, str | None], outer: Look) -> Look:
    """Return the look of an element with *attributes* within *outer*."""
    given = _given(attributes)
    if given.keys().isdisjoint(_READ):
        return outer
    style = given.get("style", "")
    rules = _rules(style)
    colours = [*_colours((given.get("color", ""), *rules.get("color", ())))]
    grounds = [*_grounds(rules, given)]
    sizes = [*_sizes(rules, outer.pixels)]
    look = replace(
        outer,
        colour=colours[-1] if colours else outer.colour,
        ground=grounds[-1] if grounds else outer.ground,
        pixels=sizes[-1] if sizes else outer.pixels,
        struck=outer.struck or any("line-through" in each for each in _of(rules, *_DECORATIONS)),
    )
    if outer.unseen:
        return look
    if "\\" in style:
        # An escape may spell a name in another way.
        return replace(look, unseen=words.item.UNSEEN_STYLE)
    why = _why_hidden(rules, given)
    if not why and min(sizes, default=look.pixels) < MIN_PIXELS:
        why = words.item.UNSEEN_SMALL
    if not why and any(
        _is_near(colour, ground)
        for colour in colours or [look.colour]
        for ground in grounds or [look.ground]
    ):
        why = words.item.UNSEEN_COLOUR
    return replace(look, unseen=why)


def changes_direction(attributes: Mapping[str, str | None]) -> bool:
    """Tell whether an element with *attributes* may draw its text from right to left."""
    given = _given(attributes)
    rules = _rules(given.get("style", ""))
    return "rtl" in (given.get("dir", "").casefold(), *_of(rules, "direction"))


def _given(attributes: Mapping[str, str | None]) -> dict[str, str]:
    return {name.casefold(): value or "" for name, value in attributes.items()}


def _why_hidden(rules: _Rules, given: Mapping[str, str]) -> str:
    item = words.item
    hidden = "hidden" in given or any(
        not _HIDING[name].isdisjoint(values) for name, values in rules.items() if name in _HIDING
    )
    if hidden:
        return item.UNSEEN_HIDDEN
    faint = (_number(each) for each in _of(rules, "opacity"))
    if any(each is not None and each < MIN_OPACITY for each in faint):
        return item.UNSEEN_COLOUR
    if any(map(_is_transparent, _of(rules, "color", "-webkit-text-fill-color"))):
        return item.UNSEEN_COLOUR
    cut = any(name.startswith("overflow") for name in rules)
    if cut and any(_to_pixels(each, 16.0) < MIN_SIDE for each in _of(rules, *_SIDES)):
        return item.UNSEEN_SMALL
    return item.UNSEEN_MOVED if _is_off_screen(rules) else ""


def _of(rules: _Rules, *names: str) -> Iterator[str]:
    """Yield every value of the properties *names*."""
    for name in names:
        yield from rules.get(name, ())


def _rules(style: str) -> dict[str, list[str]]:
    rules: dict[str, list[str]] = {}
    for rule in _COMMENT.sub("", style).split(";"):
        name, colon, value = rule.partition(":")
        if colon:
            rules.setdefault(name.strip().casefold(), []).append(
                value.split("!")[0].strip().casefold()
            )
    return rules


def _is_off_screen(rules: _Rules) -> bool:
    if "clip" in rules or "clip-path" in rules:
        return True
    if any("scale(0" in each or "translate" in each for each in _of(rules, "transform")):
        return True
    return any(_to_pixels(each, 16.0) < -_OFF_SCREEN for each in _of(rules, *_MOVES))


def _sizes(rules: _Rules, outer: float) -> Iterator[float]:
    """Yield the size of the letters in every way that it is given."""
    for each in _of(rules, "font"):
        if found := _FONT_SIZE.search(each):
            yield _to_pixels(found[0], outer)
    for each in _of(rules, "font-size"):
        if _LENGTH.match(each):
            yield _to_pixels(each, outer)


def _to_pixels(length: str, em: float) -> float:
    match = _LENGTH.match(length)
    if match is None:
        return em
    number, unit = float(match[1]), match[2] or ""
    if unit in ("em", "%"):
        return em * number / (100 if unit == "%" else 1)
    return number * _PIXELS[unit]


def _number(text: str) -> float | None:
    match = _LENGTH.match(text)
    if match is None:
        return None
    return float(match[1]) / (100 if match[2] == "%" else 1)


def _grounds(rules: _Rules, given: Mapping[str, str]) -> Iterator[Colour]:
    """Yield every colour that the background is given; one that lets the outer show through is none."""
    for text in (given.get("bgcolor", ""), *_of(rules, "background", "background-color")):
        parts = (each for each in _COLOURS.findall(text) if not _is_transparent(each))
        yield from _colours(parts)


def _colours(texts: Iterable[str]) -> Iterator[Colour]:
    yield from (colour for text in texts if (colour := _parse_colour(text)) is not None)


def _is_near(one: Colour, other: Colour) -> bool:
    return all(abs(a - b) < MIN_CONTRAST for a, b in zip(one, other, strict=True))


def _is_transparent(text: str) -> bool:
    """Tell whether the colour *text* cannot be seen on any ground."""
    digits = _hex_digits(text)
    if len(digits) == 8:
        return int(digits[6:], 16) / 255 < MIN_OPACITY
    parts = _arguments(text)
    return text == "transparent" or (len(parts) == 4 and (_number(parts[3]) or 0) < MIN_OPACITY)


def _arguments(text: str) -> list[str]:
    """Return the arguments of a colour that is written as a function."""
    match = _FUNCTION.fullmatch(text)
    return [each for each in re.split(r"[\s,/]+", match[2]) if each] if match else []


def _hex_digits(text: str) -> str:
    """Return the digits of a colour in hexadecimal, two of each part; empty where it is none."""
    digits = text.removeprefix("#")
    if len(digits) in (3, 4):
        digits = "".join(2 * digit for digit in digits)
    return digits if len(digits) in (6, 8) and re.fullmatch(r"[0-9a-f]+", digits) else ""


def _parse_colour(text: str) -> Colour | None:
    """Return the colour that *text* names; None if it names none that is known here."""
    text = text.strip().casefold()
    if text in _NAMES:
        return _NAMES[text]
    if digits := _hex_digits(text):
        return int(digits[0:2], 16), int(digits[2:4], 16), int(digits[4:6], 16)
    parts = _arguments(text)
    numbers = [number for each in parts[:3] if (number := _number(each)) is not None]
    if len(numbers) < 3:
        return None
    if text.startswith("hsl"):
        hue, saturation, light = numbers[0] / 360 % 1, min(1, numbers[1]), min(1, numbers[2])
        mixed = [part * 255 for part in colorsys.hls_to_rgb(hue, light, saturation)]
    else:
        # `_number` makes hundredths of percents.
        mixed = [
            number * 255 if each.endswith("%") else number
            for number, each in zip(numbers, parts, strict=False)
        ]
    red, green, blue = (int(max(0, min(255, part))) for part in mixed)
    return red, green, blue
