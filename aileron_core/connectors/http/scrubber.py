"""Removing a credential from what a service answers: verbatim, percent-encoded, in JSON, and in base64.

Other encodings are not seen: HTML entities, hexadecimal, percent-encoding twice, base64 in lines, other
alphabets and letter cases, a secret in two parts. Searching for a fixed text is quick (memmem), where a pattern that allows
each byte in each spelling would take seconds for the largest answer.
"""

import base64
import json
from collections.abc import Iterable, Iterator
from typing import Final
from urllib.parse import quote_from_bytes

REPLACEMENT: Final = b"[removed]"
_LEFT_IN_URLS: Final = ("", "/", "!*'()", "*", "$&+=:@", "!*'()/:@&=+$,;", "!*'();/?:@&=+$,#")
"""What encoders leave as it is besides letters, digits and `-._~`: RFC 3986, Python, JavaScript's
encodeURIComponent, Java, Go's PathEscape, a path, encodeURI."""
_ESCAPED_IN_JSON: Final = ("<>&", "\"&'+<>`")
"""What encoders write by number although they need not: those of Go and Ruby on Rails, that of .NET."""
_SHORTEST: Final = 4
"""Bytes. What is shorter stands in every answer, and would take it apart."""


class Scrubber:
    """Removes *secrets* from bytes in the spellings named above."""

    def __init__(self, secrets: Iterable[bytes]) -> None:
        self._secrets: set[bytes] = set()
        self._spellings: list[bytes] = []
        self.add(secrets)

    def add(self, secrets: Iterable[bytes]) -> None:
        """Remove *secrets* as well from now on."""
        new = {each for each in secrets if len(each) >= _SHORTEST} - self._secrets
        if not new:
            return
        self._secrets |= new
        spellings = {*self._spellings, *(each for secret in new for each in spellings_of(secret))}
        # Longest first, so that no spelling leaves a part of a longer one.
        self._spellings = sorted(spellings, key=lambda each: (-len(each), each))

    @property
    def longest(self) -> int:
        """How many bytes the longest spelling of a secret has."""
        return len(self._spellings[0]) if self._spellings else 0

    def finds(self, data: bytes) -> bool:
        """Return whether *data* holds a spelling of a secret."""
        return any(spelling in data for spelling in self._spellings)

    def scrub(self, data: bytes) -> bytes:
        """Return *data* with every spelling of a secret replaced."""
        for spelling in self._spellings:
            if spelling in data:
                data = data.replace(spelling, REPLACEMENT)
        return data


def spellings_of(secret: bytes) -> Iterator[bytes]:
    """Yield *secret* as the usual encoders write it; one may come twice."""
    yield secret
    for text in {secret.decode("latin-1"), secret.decode("utf-8", "replace")}:
        yield from _json_spellings(text)
    for safe in _LEFT_IN_URLS:
        percent = quote_from_bytes(secret, safe=safe)
        for each in (percent, percent.replace("~", "%7E")):
            yield from (each.encode(), _lower_hex(each).encode())
            yield each.replace("%20", "+").encode()
    everything = "".join(f"%{byte:02X}" for byte in secret)
    yield from (everything.encode(), everything.lower().encode())
    yield from _base64_spellings(secret)


def _json_spellings(text: str) -> Iterator[bytes]:
    """Yield *text* as the usual encoders write it in a JSON string."""
    for ascii_only in (True, False):
        quoted = json.dumps(text, ensure_ascii=ascii_only)[1:-1]
        yield from (quoted.encode(), quoted.replace("/", "\\/").encode())
    for escaped in _ESCAPED_IN_JSON:
        for number in ("\\u{:04x}", "\\u{:04X}"):
            characters = (
                number.format(ord(each)) if each in escaped else json.dumps(each)[1:-1]
                for each in text
            )
            yield "".join(characters).encode()


def _lower_hex(percent: str) -> str:
    """Return percent-encoded text with its hex digits in lower case."""
    parts = percent.split("%")
    return "%".join([parts[0], *(part[:2].lower() + part[2:] for part in parts[1:])])


def _base64_spellings(secret: bytes) -> Iterator[bytes]:
    """Yield what base64 makes of *secret* at each of the three places in a group of three bytes.

    The characters that depend on what stands beside it are left off.
    """
    for shift in range(3):
        encoded = base64.b64encode(bytes(shift) + secret)
        first, last = (0, 2, 3)[shift], (shift + len(secret)) * 8 // 6
        middle = encoded[first:last]
        yield middle
        yield middle.translate(bytes.maketrans(b"+/", b"-_"))
        yield middle.replace(b"/", b"\\/")
        yield middle.replace(b"+", b"\\u002B")
        yield quote_from_bytes(middle, safe="").encode()
