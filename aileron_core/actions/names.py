"""Names in an action file: connectors and sources, versions (Semantic Versioning 2.0.0)."""

import re

SCHEMES = ("github", "gitlab", "hub", "local")

_IDENTIFIERS = r"(?:0|[1-9]\d*|\d*[A-Za-z-][0-9A-Za-z-]*)"
_SEMVER = re.compile(
    r"(?:0|[1-9]\d*)\.(?:0|[1-9]\d*)\.(?:0|[1-9]\d*)"
    rf"(?:-{_IDENTIFIERS}(?:\.{_IDENTIFIERS})*)?"
    r"(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?",
    re.ASCII,
)
_MOST_CHARACTERS = 256
"""Of a version; int() of one with thousands of digits fails."""
_URI_CHARACTERS = re.compile(r"[A-Za-z0-9._~/+-]*")


def is_semver(text: str) -> bool:
    """Return whether *text* is a strict Semantic Version of at most 256 characters, without a leading v."""
    return len(text) <= _MOST_CHARACTERS and _SEMVER.fullmatch(text) is not None


def semver_order(version: str) -> tuple[object, ...]:
    """Return what a strict Semantic Version is compared by (SemVer 2.0.0, 11)."""
    core, _, pre = version.partition("+")[0].partition("-")
    parts = tuple(
        (0, int(part), "") if part.isdecimal() else (1, 0, part) for part in pre.split(".") if part
    )
    return (*map(int, core.split(".")), not pre, parts)


def fqn_problem(text: str) -> str | None:
    """Return why *text* is not `<scheme>://<owner>/<path>`, or None."""
    scheme, separator, rest = text.partition("://")
    if "@" in rest:
        return "must not contain @<version>: write the version under the key version"
    if not separator or _URI_CHARACTERS.fullmatch(rest) is None:
        return "not a valid URI of the form <scheme>://<owner>/<path>"
    if scheme not in SCHEMES:
        return f"scheme not recognized (expected one of {', '.join(SCHEMES)})"
    owner, _, path = rest.partition("/")
    if not owner:
        return "missing owner segment"
    if not path:
        return "missing path segment"
    if any(segment in ("", ".", "..") for segment in (owner, *path.split("/"))):
        return "not a valid URI: a path segment is empty or consists of dots"
    return None


def source_problem(text: str) -> str | None:
    """Return why *text* is not `<scheme>://<owner>/<path>@<version>`, or None."""
    fqn, separator, version = text.rpartition("@")
    if not separator:
        return "missing @<version> suffix"
    if not is_semver(version):
        return "version must be strict SemVer (e.g. 1.2.3)"
    return fqn_problem(fqn)
