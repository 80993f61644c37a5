"""Make the table of look-alike letters, aileron_core/text/confusables.py, from Unicode's own.

    python .ci/confusables.py

Unicode's confusables.txt comes as a package, `confusable-homoglyphs`, which `make confusables` installs.
"""

import unicodedata
from importlib import metadata
from pathlib import Path

from confusable_homoglyphs.confusables import confusables_data

TABLE = Path(__file__).resolve().parents[1] / "aileron_core" / "text" / "confusables.py"
UNICODE = {"3.3.1": "15.1"}
"""The version of the data in a release of the package, which does not name it itself."""

MODULE = '''\
"""Characters that are drawn like a letter or digit of ASCII; made by .ci/confusables.py.

From the confusables.txt of Unicode {version}, as in confusable-homoglyphs {release}.
Copyright Unicode, Inc., https://www.unicode.org/license.txt.
"""

CONFUSABLES = {{
{lines}}}
'''


def in_ascii(char: str) -> str | None:
    """Return the letter or digit of ASCII that Unicode calls confusable with *char*."""
    others = {entry["c"] for entry in confusables_data.get(char, ())}
    plain = {each for each in others if len(each) == 1 and each.isascii() and each.isalnum()}
    return plain.pop() if plain else None


def base(char: str) -> str:
    """Return *char* without its marks and without its style."""
    parts = unicodedata.normalize("NFKD", char)
    return "".join(each for each in parts if unicodedata.category(each) != "Mn")


def table() -> dict[str, list[str]]:
    """Return, for each letter and digit, what only a table can tell is like it, escaped."""
    drawn_like: dict[str, list[str]] = {}
    for char in sorted(confusables_data):
        if len(char) != 1 or char.isascii() or not char.isalnum():
            continue
        letter, without = in_ascii(char), base(char)
        if letter is None or (without != char and (without.isascii() or in_ascii(without))):
            continue
        drawn_like.setdefault(letter, []).append(char.encode("unicode_escape").decode())
    return drawn_like


if __name__ == "__main__":
    release = metadata.version("confusable-homoglyphs")
    lines = "".join(
        f'    "{letter}": "{"".join(like)}",\n' for letter, like in sorted(table().items())
    )
    TABLE.write_text(MODULE.format(version=UNICODE[release], release=release, lines=lines), "ascii")
