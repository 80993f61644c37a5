"""Which characters are drawn as they are, which as marks, and what the marks are called."""

import unicodedata
from collections.abc import Mapping
from typing import Literal

GlyphKind = Literal["letter", "blank", "combining", "joining", "selector", "mark"]


def glyph_kind(char: str) -> GlyphKind:
    """Return how *char* is drawn; a selector depends on what it follows (`selects_emoji`)."""
    if char == " ":
        return "blank"
    if char in "\ufe0e\ufe0f":
        return "selector"
    if char in _NAMES or _is_ignorable(ord(char)):
        return "mark"
    category = unicodedata.category(char)
    if category in _MARKED_CATEGORIES:
        return "mark"
    if category in ("Mn", "Me"):
        return "combining"
    return "joining" if category == "Mc" or _joins(ord(char)) else "letter"


def is_combining(char: str) -> bool:
    """Return whether *char* is drawn with the character before it, over it or as part of it."""
    return glyph_kind(char) in ("combining", "joining")


def _joins(point: int) -> bool:
    """Tell vowels and ends of decomposed Hangul, and the skin of an emoji: parts of what they follow.

    Tables of widths give them no cell of their own; terminals that do not join them give one or two.
    """
    return 0x1160 <= point <= 0x11FF or 0xD7B0 <= point <= 0xD7FF or 0x1F3FB <= point <= 0x1F3FF


def selects_emoji(line: str, index: int) -> bool:
    """Return whether the selector at *index* follows a character that has an emoji form."""
    if index == 0:
        return False
    base = line[index - 1]
    if base in "#*0123456789":
        return line[index + 1 : index + 2] == "\u20e3"  # a keycap
    return (unicodedata.category(base) == "So" and base not in _NAMES) or base in _EMOJI_BASES


def mark_name(char: str) -> str:
    """Return what stands between `‹` and `›` for *char*: its short name, else `U+XXXX`."""
    return _NAMES.get(char) or f"U+{ord(char):04X}"


def _is_ignorable(point: int) -> bool:
    """Tell code points that draw nothing though their category says letter or mark.

    Source: Default_Ignorable_Code_Point of Unicode's DerivedCoreProperties; the rest of that
    property is covered by the categories Cf and Cn.
    """
    return (
        point in (0x034F, 0x17B4, 0x17B5)
        or 0x180B <= point <= 0x180F
        or 0xFE00 <= point <= 0xFE0F
        or 0xE0100 <= point <= 0xE01EF
    )


_MARKED_CATEGORIES = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp", "Zs"})

_EMOJI_BASES = frozenset("‼⁉ℹ↔↕↖↗↘↙⤴⤵〰〽▪▫▶◀◽◾🏻🏼🏽🏾🏿")
"""Characters of emoji-variation-sequences.txt whose category is not So."""

_C0 = (
    "NUL SOH STX ETX EOT ENQ ACK BEL BS TAB LF VT FF CR SO SI "
    "DLE DC1 DC2 DC3 DC4 NAK SYN ETB CAN EM SUB ESC FS GS RS US"
)
_C1 = (
    "PAD HOP BPH NBH IND NEL SSA ESA HTS HTJ VTS PLD PLU RI SS2 SS3 "
    "DCS PU1 PU2 STS CCH MW SPA EPA SOS SGC SCI CSI ST OSC PM APC"
)
_FORMAT = {
    0x007F: "DEL",
    0x00A0: "NBSP",
    0x00AD: "SHY",
    0x034F: "CGJ",
    0x061C: "ALM",
    0x115F: "HCF",
    0x1160: "HJF",
    0x1680: "OGSP",
    0x180E: "MVS",
    0x2000: "NQSP",
    0x2001: "MQSP",
    0x2002: "ENSP",
    0x2003: "EMSP",
    0x2004: "3/EMSP",
    0x2005: "4/EMSP",
    0x2006: "6/EMSP",
    0x2007: "FSP",
    0x2008: "PSP",
    0x2009: "THSP",
    0x200A: "HSP",
    0x200B: "ZWSP",
    0x200C: "ZWNJ",
    0x200D: "ZWJ",
    0x200E: "LRM",
    0x200F: "RLM",
    0x2028: "LS",
    0x2029: "PS",
    0x202A: "LRE",
    0x202B: "RLE",
    0x202C: "PDF",
    0x202D: "LRO",
    0x202E: "RLO",
    0x202F: "NNBSP",
    0x205F: "MMSP",
    0x2060: "WJ",
    0x2066: "LRI",
    0x2067: "RLI",
    0x2068: "FSI",
    0x2069: "PDI",
    0x2800: "BRBL",
    0x3000: "IDSP",
    0x3164: "HF",
    0xFEFF: "BOM",
    0xFFA0: "HWHF",
    0xFFFC: "OBJ",
    0x16FE4: "KFILL",
    0x1D159: "BLNOTE",  # a note head that draws nothing
    0xE0001: "TAG LANG",
    0xE0020: "TAG SP",
    0xE007F: "TAG END",
}


def _name_table() -> dict[str, str]:
    names = {chr(point): name for point, name in enumerate(_C0.split())}
    names |= {chr(0x80 + offset): name for offset, name in enumerate(_C1.split())}
    names |= {chr(point): name for point, name in _FORMAT.items()}
    names |= {chr(0xFE00 + offset): f"VS{offset + 1}" for offset in range(16)}
    names |= {chr(0xE0100 + offset): f"VS{offset + 17}" for offset in range(240)}
    # Tag characters smuggle ASCII past the eye: the mark says which.
    names |= {chr(0xE0000 + point): f"TAG {chr(point)}" for point in range(0x21, 0x7F)}
    names |= dict.fromkeys(("‹", "›"), "")  # their own mark must not hold them: U+2039, U+203A
    return names


_NAMES: Mapping[str, str] = _name_table()
