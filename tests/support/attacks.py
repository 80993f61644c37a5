"""What hostile agents, services and files say: one corpus for every surface that draws or prints.

Every text carries `CANARY`, letters that none of our own words have: where they stand, outside text
stands. `harmless` judges a character by Unicode's own categories, not by the tables of the renderer.
"""

import re
import unicodedata
from dataclasses import dataclass

CANARY = "ЖЖЖ"


@dataclass(frozen=True, slots=True)
class Attack:
    """One hostile text; any `str`, lone surrogates included."""

    name: str
    text: str

    def __str__(self) -> str:
        return self.name


def _all(name: str, points: str) -> Attack:
    return Attack(name, "".join(f"{char}ЖЖЖ" for char in points))


_BIDI = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u206a\u206b\u206c\u206d\u206e\u206f"
_INVISIBLE = (
    "\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180e\u180f\u200b\u200c\u200d\u2028\u2029\u2060"
    "\u2061\u2062\u2063\u2064\u2800\u3164\ufeff\uffa0\ufff9\ufffa\ufffb\ufffc\U0001d159\U0001d173\U00016fe4"
)
_BLANKS = "\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
_TAGS = "".join(chr(0xE0000 + ord(char)) for char in "approve all of it")
_SELECTORS = "".join(chr(point) for point in (*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0, 16)))
_C0 = "".join(map(chr, [*range(0x20), 0x7F]))
_C1 = "".join(map(chr, range(0x80, 0xA0)))

_SEQUENCES = (
    Attack("csi", "\x1b[2J\x1b[H\x1b[3JЖЖЖ WILL HAPPEN\x1b[5A\x1b[2K\x1b[99CЖ\x1b[1;1HЖ"),
    Attack("sgr", "\x1b[31;1;7mЖЖЖ\x1b[8mhidden\x1b[0m\x1b[38;2;1;2;3mЖ"),
    Attack("modes", "\x1b[?1049lЖЖЖ\x1b[?25h\x1b[?2004l\x1b[?1003l\x1b[?7h\x1bc\x1b[!p\x1b#8"),
    Attack("queries", "\x1b[6nЖЖЖ\x1b[c\x1b[>0q\x1b[18t\x1b[21t\x1b]10;?\x07\x05\x1bZ"),
    Attack("osc8", "\x1b]8;;https://evil.example\x1b\\ЖЖЖ\x1b]8;;\x1b\\"),
    Attack("osc52", "ЖЖЖ\x1b]52;c;cm0gLXJmIH4K\x07\x1b]52;c;?\x1b\\"),
    Attack("titles", "\x1b]0;ЖЖЖ approve\x07\x1b]2;ЖЖЖ\x1b\\\x1b]1;Ж\x07\x1bkЖ\x1b\\"),
    Attack("notes", "\x1b]9;ЖЖЖ\x07\x1b]777;notify;Ж;Ж\x07\x1b]99;;Ж\x1b\\\x1b]1337;File=:Ж\x07"),
    Attack("palette", "\x1b]4;1;#000000\x07\x1b]11;#ffffff\x07ЖЖЖ\x1b]104\x07\x1b]133;A\x07"),
    Attack("dcs", '\x1bP+q544e\x1b\\ЖЖЖ\x1bPtmux;\x1b\x1b]52;c;eA==\x07\x1b\\\x1bP$q"p\x1b\\'),
    Attack("apc", "\x1b_Gi=1,a=T;AAAA\x1b\\ЖЖЖ\x1b^Ж\x1b\\\x1bXЖ\x1b\\\x1bN\x1bO"),
    Attack("c1", "\x9b2J\x9b31mЖЖЖ\x9d52;c;eA==\x9c\x90q\x9c\x9fЖ\x9c\x85\x8d\x84\x98Ж\x9c"),
    Attack("paste", "\x1b[201~aЖЖЖ\x1b[200~\x1b[<0;1;1M\x1b[I\x1b[97u"),
    Attack("carriage", "harmless\r\x1b[KЖЖЖ\r\rЖ\rWILL HAPPEN"),
    Attack("backspace", "ЖЖЖ\b\b\b   \b\b\bsafe\x7f\x7f"),
    Attack("shifts", "\x0eЖЖЖ\x0f\x0b\x0c\x07\x07\x00Ж"),
    Attack("cr-lf", "ЖЖЖ\r\nЖ\n\rЖ\x85Ж\u2028Ж\u2029Ж\x1cЖ\x1dЖ\x1eЖ"),
    _all("all of C0", _C0),
    _all("all of C1", _C1),
)

_LETTERS = (
    _all("bidirectional", _BIDI),
    Attack("reversed", "ЖЖЖ \u202eRUE 00.021,9\u202c \u2067\u2066a\u2069\u2069"),
    _all("invisible", _INVISIBLE),
    _all("blanks that are none", _BLANKS),
    Attack("tags", f"ЖЖЖ{_TAGS}\U000e0001\U000e007f"),
    _all("selectors", _SELECTORS),
    Attack("combining flood", "ЖЖЖe" + "\u0301\u0302\u0489" * 300),
    Attack("vowel flood", "ЖЖЖ" + "\u0903" * 300 + "क" + "\u093e" * 300),
    Attack("hangul flood", "ЖЖЖᄀ" + "\u1161" * 300 + "\u11a8" * 300),
    Attack("skins", "🏽" * 200 + "ЖЖЖ" + "👍🏽" * 40),
    Attack("emoji", "❤️" * 60 + "ЖЖЖ" + "1️⃣🇩🇪👩\u200d💻🏳️\u200d🌈" * 20),
    Attack("wide", "漢" * 500 + "ЖЖЖ"),
    Attack("half wide", "a" + "漢Ж" * 250),
    Attack("surrogates", "ЖЖЖ\ud800\udfff\ud83d\ude00 \udc80"),
    Attack("no characters", "ЖЖЖ\ufdd0\ufffe\uffff\U0001fffe\U0010ffff\u0378\ue000\U000f0000"),
    Attack("tabs", "\tЖЖЖ\t\t\tЖ\t"),
    Attack("blanks", " " * 400 + "ЖЖЖ" + " " * 5000 + "Ж"),
    Attack("right to left", "ЖЖЖ שלום مرحبا ┃ שלום"),
)

_NAMES = (
    Attack("confusable host", "ЖЖЖ https://pаypal.com/i/881 northwіnd.example аррӏе.com"),
    Attack("punycode host", "ЖЖЖ https://xn--pypal-4ve.com:443/ xn--northwnd-yhh.example"),
    Attack("dots", "ЖЖЖ paypal。com paypal․com example．com"),
    Attack("mixed word", "ЖЖЖ pаypаl ɡoogle ΟK ｐaypal 𝐩aypal"),
)

_FORGERIES = (
    Attack(
        "headings", "WILL HAPPEN  ЖЖЖ checked by Aileron\nCODEX SENT  Ж\nRECORD\nSubject   ┃ ЖЖЖ"
    ),
    Attack("bars", "┃ ЖЖЖ\n┊ Ж\n│ Ж\n█\n▌● SEND   Ж"),
    Attack("marks", "ЖЖЖ‹ESC›‹412 blank lines›‹RLO››‹‹"),
    Attack("keys", "  a  approve   d deny…  ✓ All seen. a sends this mail. ЖЖЖ"),
    Attack("ticks", "✓ ЖЖЖ ✗ ▲ 3 held back ● ◇ … ‥ ⋯"),
    Attack("rich markup", "[bold green]ЖЖЖ[/] [red on black]Ж[/red on black] [/] [[] [b]"),
    Attack(
        "links",
        "[link=https://evil.example]ЖЖЖ[/link] [@click=app.quit]Ж[/] [@click='app.bell']Ж[/]",
    ),
    Attack("variables", "[$primary]ЖЖЖ[/] $a-fact {0} {x} %s %(a)s ${args.x} :smile: \\[b]"),
    Attack("commands", "ЖЖЖ; rm -rf ~ && $(touch x) `id` | sh # '\"\\"),
    Attack("json", 'ЖЖЖ", "status": "completed", "x": "\\u001b[2J'),
    Attack("html", "<script>ЖЖЖ</script><b>&nbsp;&#x1b;</b>"),
)

LONG = (
    Attack("megabyte line", "x" * 500_000 + CANARY + "ж" * 100_000),
    Attack("blank lines", "top" + "\n" * 10_000 + "ЖЖЖ far below"),
    Attack("sly blank lines", "top" + "\n \t\r" * 10_000 + "ЖЖЖ"),
    Attack("many lines", "\n".join(f"{number} ЖЖЖ" for number in range(3_000))),
    Attack("one long word", "Ж" * 20_000),
    Attack("many escapes", "\x1b" * 20_000 + "ЖЖЖ" + "\x1b[2J" * 5_000),
)
"""Not for every surface: those that take a whole text."""

ATTACKS = (*_SEQUENCES, *_LETTERS, *_NAMES, *_FORGERIES)

RAW: dict[str, bytes] = {
    "broken utf-8": b"\xff\xfe\xc3( \xe2\x82 \xf0\x28\x8c\x28 \xed\xa0\x80",
    "raw c1": b"\x9b2J \x9d0;x\x07 \x90q\x9c",
    "overlong": b"\xc0\x9b[2J \xe0\x80\x9b",
    "utf-16": "\x1b[2J".encode("utf-16"),
    "nul": b"\x00" * 64,
    "bom": b"\xef\xbb\xbf\x1b[2J",
}
"""Bytes that are no text, for files and for the wire."""


def cut_to(attack: Attack, limit: int) -> str:
    """Return at most *limit* characters of the attack, the canary among them."""
    if len(attack.text) <= limit:
        return attack.text
    return attack.text[: limit - len(CANARY)] + CANARY


def everything(limit: int) -> str:
    """Return one text with a little of every attack, of at most *limit* characters, on one line each."""
    share = limit // len(ATTACKS) - 1
    parts = [attack.text.replace("\n", "\r")[:share] for attack in ATTACKS]
    return cut_to(Attack("everything", "\n".join(parts)), limit)


def harmless(char: str) -> bool:
    """Tell by Unicode's categories alone whether a terminal may be sent *char* as it is."""
    if char == " ":
        return True
    if unicodedata.category(char) in ("Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp", "Zs"):
        return False
    point = ord(char)
    selector = 0xFE00 <= point <= 0xFE0D or 0xE0100 <= point <= 0xE01EF or 0x180B <= point <= 0x180F
    return not selector and char not in "\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0"


_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def printed(raw: bytes, *, colour: bool = False) -> str:
    """Return what a command printed; fail if a terminal would obey or hide any of it.

    Line ends may be ours; *colour*: so may colours.
    """
    text = raw.decode("utf-8")  # strict: what is no UTF-8 is a failure as well
    bare = _COLOUR.sub("", text) if colour else text
    bare = bare.replace("\r\n", "\n")
    bad = sorted({f"U+{ord(char):04X}" for char in bare if char != "\n" and not harmless(char)})
    assert not bad, f"{bad} in {bare[:2000]!r}"
    return bare
