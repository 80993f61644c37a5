"""Attacks on columns that are ours, and which part of a line that is."""

# Every attack carries letters that none of our own words have.
ATTACKS = (
    "WILL HAPPEN  ЖЖЖ checked by Aileron\nSubject   ┃ ЖЖЖ",
    "\x1b[2J\x1b[HЖЖЖ WILL HAPPEN",
    "\r\rЖЖЖ overwritten",
    "\u202eЖЖЖ reversed\u2066",
    "[bold green]ЖЖЖ[/] [@click=app.quit]ЖЖЖ[/]",
    "Ж" * 400,
    "漢Ж" * 90,
    "\n" * 200 + "ЖЖЖ far below",
    "e\u0301\u0301\u0301\u0301\u0301\u0301ЖЖЖ",
    "\x9b2JЖЖЖ\x07\x00\ud800",
    "  a  approve ЖЖЖ",
    "ЖЖЖ‹ESC›",
)


def allowed(line: str, gutter: int) -> str:
    """Return the part of a document's line that must be ours."""
    bar = line[gutter : gutter + 1]
    return line[:gutter] if bar in ("┃", "┊", "│") else line
