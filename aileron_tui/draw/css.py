"""What the `style` of an element in a mail does to its text: may its reader see it?

Only the attribute and the old presentational ones are read. Rules of a style sheet are not: their text
is drawn as visible, and the sheet is counted as not shown.
"""

import re
from collections.abc import Mapping
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

_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_LENGTH = re.compile(r"(-?\d*\.?\d+)(px|pt|em|rem|%|ex|vw|vh|mm|cm|in|pc)?")
_PIXELS: Mapping[str, float] = {
    "": 1, "px": 1, "pt": 4 / 3, "rem": 16, "ex": 8, "vw": 10, "vh": 10, "mm": 3.8, "cm": 38,
    "in": 96, "pc": 16,
}  # fmt: skip
_RGB = re.compile(r"rgba?\(\s*(\d+)[\s,]+(\d+)[\s,]+(\d+)(?:[\s,/]+([\d.]+)%?)?\s*\)")
_SIDES = ("height", "max-height", "width", "max-width")
_READ = frozenset(("style", "hidden", "color", "bgcolor"))
"""Attributes that say how text looks."""
_OFF_SCREEN = 400
"""Pixels to the left or above from which on something is out of sight."""

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
_INHERITED = ("inherit", "initial", "unset", "revert", "currentcolor", "windowtext")


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
    given = {name.casefold(): value or "" for name, value in attributes.items()}
    if given.keys().isdisjoint(_READ):
        return outer
    style = given.get("style", "")
    rules = _rules(style)
    look = replace(
        outer,
        colour=_colour(rules.get("color", given.get("color", "")), outer.colour),
        ground=_ground(rules, given, outer.ground),
        pixels=_pixels(rules, outer.pixels),
        struck=outer.struck or "line-through" in rules.get("text-decoration", ""),
    )
    return replace(look, unseen=outer.unseen or _why_unseen(look, rules, given, style))


def _why_unseen(look: Look, rules: Mapping[str, str], given: Mapping[str, str], style: str) -> str:
    item = words.item
    if "\\" in style:
        return item.UNSEEN_STYLE  # an escape that spells a name in another way
    hidden = "hidden" in given or rules.get("display") == "none" or rules.get("mso-hide") == "all"
    if hidden or rules.get("visibility") in ("hidden", "collapse"):
        return item.UNSEEN_HIDDEN
    opacity = _number(rules.get("opacity", ""))
    if opacity is not None and opacity < MIN_OPACITY:
        return item.UNSEEN_COLOUR
    if look.pixels < MIN_PIXELS:
        return item.UNSEEN_SMALL
    if "overflow" in rules and any(_length(rules, name) < MIN_SIDE for name in _SIDES):
        return item.UNSEEN_SMALL
    if _is_off_screen(rules):
        return item.UNSEEN_MOVED
    near = all(abs(a - b) < MIN_CONTRAST for a, b in zip(look.colour, look.ground, strict=True))
    return item.UNSEEN_COLOUR if near else ""


def _length(rules: Mapping[str, str], name: str) -> float:
    return _to_pixels(rules.get(name, ""), 16.0)


def _rules(style: str) -> dict[str, str]:
    rules: dict[str, str] = {}
    for rule in _COMMENT.sub("", style).split(";"):
        name, colon, value = rule.partition(":")
        if colon:
            rules[name.strip().casefold()] = value.split("!")[0].strip().casefold()
    return rules


def _is_off_screen(rules: Mapping[str, str]) -> bool:
    if "clip" in rules or "clip-path" in rules or "scale(0" in rules.get("transform", ""):
        return True
    moved = ("left", "top", "text-indent", "margin-left", "margin-top")
    return any(_length(rules, name) < -_OFF_SCREEN for name in moved)


def _pixels(rules: Mapping[str, str], outer: float) -> float:
    size = rules.get("font-size", "")
    if not size and "font" in rules:
        found = re.search(r"(-?\d*\.?\d+(?:px|pt|em|rem|%))", rules["font"])
        size = found[1] if found else ""
    return _to_pixels(size, outer) if size and _LENGTH.match(size) else outer


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


def _ground(rules: Mapping[str, str], given: Mapping[str, str], outer: Colour) -> Colour:
    for each in (rules.get("background-color"), rules.get("background"), given.get("bgcolor")):
        for word in re.findall(r"rgba?\([^)]*\)|[^\s]+", each or ""):
            if (colour := _parse_colour(word)) is not None:
                return colour
    return outer


def _colour(text: str, outer: Colour) -> Colour:
    colour = _parse_colour(text)
    return colour if colour is not None else outer


def _parse_colour(text: str) -> Colour | None:
    """Return the colour that *text* names; None if it names none that is known here."""
    text = text.strip().casefold()
    if text in _NAMES:
        return _NAMES[text]
    if text in _INHERITED:
        return None
    if match := _RGB.fullmatch(text):
        red, green, blue = (min(255, int(match[at][:4])) for at in (1, 2, 3))
        return red, green, blue
    digits = text.removeprefix("#")
    if len(digits) in (3, 4):
        digits = "".join(2 * digit for digit in digits)
    if len(digits) in (6, 8) and re.fullmatch(r"[0-9a-f]+", digits):
        return int(digits[0:2], 16), int(digits[2:4], 16), int(digits[4:6], 16)
    return None
