"""Words and host names that imitate others with letters of another script.

A word counts when it mixes Latin letters with letters that are drawn like them, a name with dots
when it has any letter that is not ASCII (after Unicode TS 39 and RFC 5890), or a label in punycode
that stands for such a name. A whole word in another script is a word of that script and is left alone.
"""

import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from aileron_core.text.confusables import CONFUSABLES


@dataclass(frozen=True, slots=True, kw_only=True)
class Lookalike:
    """One imitating word or name, in its spellings; all of them are safe to draw."""

    written: str
    """As it stands in the text, hidden characters as marks."""
    punycode: str
    """In ASCII, as it would go over the wire (RFC 3492); empty for a word too long for a name."""
    decoded: str = ""
    """What a name that was written in ASCII stands for, as browsers show it; else empty."""
    resembles: str
    """The ASCII name that it looks like; empty where it looks like none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundLookalikes:
    """What one line holds: the places of imitating letters, and the words they stand in."""

    letters: frozenset[int] = frozenset()
    entries: tuple[Lookalike, ...] = ()


def lookalikes(line: str, *, escape: Callable[[str], str]) -> FoundLookalikes:
    """Return the look-alikes of *line*; *escape* makes a spelling safe to draw."""
    if line.isascii() and not has_punycode(line):
        return FoundLookalikes()
    letters: set[int] = set()
    entries: list[Lookalike] = []
    for start, name in _stretches(line, _in_name):
        if name.isascii():
            if (stands_for := _decoded(name.strip(_DOTS))) and not stands_for.isascii():
                letters.update(range(start, start + len(name)))
                entries.append(_decoded_entry(name.strip(_DOTS), stands_for, escape))
            continue
        if _is_host_like(name):
            letters.update(start + at for at, char in enumerate(name) if _deviates(char))
            entries.append(_entry(name.strip(_DOTS), escape))
            continue
        for offset, word in _stretches(name, _in_word):
            if places := _mixed(word):
                letters.update(start + offset + at for at in places)
                entries.append(_entry(word, escape))
    return FoundLookalikes(letters=frozenset(letters), entries=tuple(entries))


def has_punycode(line: str) -> bool:
    """Return whether *line* may hold a name written in punycode."""
    return _PUNYCODE.search(line) is not None


def _stretches(text: str, belongs: Callable[[str], bool]) -> Iterator[tuple[int, str]]:
    """Yield (place, stretch) for each longest stretch of characters that belong together."""
    start = -1
    for index, char in enumerate(text):
        if belongs(char):
            start = index if start < 0 else start
        elif start >= 0:
            yield start, text[start:index]
            start = -1
    if start >= 0:
        yield start, text[start:]


def _in_word(char: str) -> bool:
    return char.isalnum() or (not char.isascii() and unicodedata.category(char)[0] == "M")


def _in_name(char: str) -> bool:
    return char in "-_" or char in _DOTS or _in_word(char)


def _deviates(char: str) -> bool:
    return not char.isascii() and (char.isalpha() or char in _DOTS)


def _is_host_like(name: str) -> bool:
    """Return whether *name*, which is not all ASCII, could be meant as a host's name."""
    bare = name.strip(_DOTS)
    if len(bare) > MAX_HOST or bare.isascii():
        return False
    labels = _DOT.split(bare)
    top = labels[-1]
    if len(labels) < 2 or len(top) < 2 or not all(0 < len(label) <= MAX_LABEL for label in labels):
        return False
    # The ideographic full stop ends sentences too; before an ASCII label it imitates a dot.
    plain_dots = all(char == "." for char in bare if char in _DOTS)
    return not top.isdigit() and (plain_dots or top.isascii())


def _mixed(word: str) -> list[int]:
    """Return the places of the letters that are not Latin, where scripts that look alike are mixed."""
    if word.isascii():
        return []
    scripts = [_script(char) for char in word]
    if len({script for script in scripts if script}) < 2:
        return []
    return [index for index, script in enumerate(scripts) if script not in ("", "LATIN")]


def _script(char: str) -> str:
    """Return LATIN, a script whose letters are drawn like Latin ones, or "" for what cannot imitate."""
    if not char.isalpha():
        return ""
    if char.isascii():
        return "LATIN"
    if char in _PHONETIC:
        return "PHONETIC"
    script = unicodedata.name(char, "").split(" ", 1)[0]
    return script if script in _CONFUSABLE_SCRIPTS else ""


def _entry(written: str, escape: Callable[[str], str]) -> Lookalike:
    return Lookalike(
        written=escape(written), punycode=_punycode(written), resembles=_resembles(written)
    )


def _decoded_entry(written: str, stands_for: str, escape: Callable[[str], str]) -> Lookalike:
    return Lookalike(
        written=written,
        punycode=written.lower(),
        decoded=escape(stands_for),
        resembles=_resembles(stands_for),
    )


def _decoded(name: str) -> str:
    """Return what the punycode labels of an ASCII *name* stand for; empty where they are none."""
    labels = name.split(".")
    if len(name) > MAX_HOST or any(len(label) > MAX_LABEL for label in labels):
        return ""
    try:
        return ".".join(_unicode_label(label) for label in labels)
    except UnicodeError:
        return ""


def _unicode_label(label: str) -> str:
    if not label.lower().startswith("xn--"):
        return label
    # Not by the codec for names: it refuses the letters that a forger would like best.
    return label[4:].encode("ascii").decode("punycode")


def _punycode(name: str) -> str:
    labels = _DOT.split(name)
    if len(name) > MAX_HOST or any(len(label) > MAX_LABEL for label in labels):
        return ""
    return ".".join(_ascii_label(label) for label in labels)


def _ascii_label(label: str) -> str:
    if label.isascii():
        return label.lower()
    try:
        return label.encode("idna").decode("ascii")
    except UnicodeError:  # not a valid label; its letters still have an ASCII form
        return "xn--" + label.lower().encode("punycode").decode("ascii")


def _resembles(written: str) -> str:
    if len(written) > MAX_HOST:
        return ""
    letters = (_ASCII.get(char, char) for char in written)
    bare = unicodedata.normalize("NFKD", "".join(letters))
    drawn = "".join(_ASCII.get(char, char) for char in bare if unicodedata.category(char) != "Mn")
    drawn = _DOT.sub(".", drawn)
    return drawn if drawn.isascii() and drawn.isprintable() else ""


MAX_LABEL = 63
MAX_HOST = 253

_DOTS = ".。．｡․"
"""The full stop and what IDNA or the eye takes for one (RFC 3490, 3.1)."""
_DOT = re.compile(f"[{_DOTS}]")

_PUNYCODE = re.compile("xn--", re.IGNORECASE)

_CONFUSABLE_SCRIPTS = frozenset(
    {
        "LATIN",
        "CYRILLIC",
        "GREEK",
        "COPTIC",
        "ARMENIAN",
        "CHEROKEE",
        "LISU",
        "DESERET",
        "GOTHIC",
        "OLD",
        "CARIAN",
        "LYCIAN",
        "LYDIAN",
        "GLAGOLITIC",
        "WARANG",
        "ELBASAN",
        "OSAGE",
        "CANADIAN",
        "VAI",
        "BAMUM",
        "MIAO",
        "TIFINAGH",
        "RUNIC",
        "MATHEMATICAL",
        "FULLWIDTH",
        "DOUBLE-STRUCK",
        "SCRIPT",
        "BLACK-LETTER",
        "CIRCLED",
        "PARENTHESIZED",
        "SQUARED",
        "NEGATIVE",
        "TURNED",
    }
)
"""First words of Unicode names. Han, Kana and Hangul stand beside Latin in honest words."""

_PHONETIC = frozenset("ɑɡɩɪʙɢʜʟɴʀʏ") | {chr(point) for point in range(0x1D00, 0x1D23)}
"""Latin by name, but letters of phonetic notation that imitate ordinary ones."""

_ASCII = {like: letter for letter, drawn in CONFUSABLES.items() for like in drawn} | dict(
    zip("кмтнвпиԚκτεχηωյʙɢʜʟɴʀӏІΙ", "kmthbnuQktexnwjbghlnrlII", strict=True)
)
"""The letter or digit that each is drawn like; by hand what Unicode leaves out, or takes for another."""
