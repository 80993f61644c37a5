"""Patterns of paths, for rules and for searches."""

from fnmatch import fnmatchcase

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aileron_core.path_patterns import HiddenPaths, matches


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("*.txt", "README.txt"),
        ("*.txt", "docs/a/README.txt"),
        ("docs/*.txt", "docs/a.txt"),
        ("docs/**", "docs/a/b.txt"),
        ("docs/", "docs/a/b.txt"),
        ("docs/", "old/docs/b.txt"),
        ("./docs/", "docs/b.txt"),
        ("**/build/x", "build/x"),
        ("a/**/z", "a/z"),
        ("a/**/z", "a/b/c/z"),
        ("[ab].txt", "b.txt"),
    ],
)
def test_a_pattern_means(pattern: str, path: str) -> None:
    assert matches(pattern, path, strict=True)


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("docs/*.txt", "docs/a/b.txt"),
        ("docs/*.txt", "old/docs/b.txt"),
        ("./docs/", "old/docs/b.txt"),
        ("./Makefile", "sub/Makefile"),
        ("*.txt", "notes.txt/run.sh"),
        ("*.txt", "README.TXT"),
        ("*.txt", "README.txt\n"),
        ("?.txt", "/.txt"),
        ("a/**/z", "a/b/zz"),
        ("*", "."),
        ("?", "."),
        ("*", ""),
    ],
)
def test_what_allows_means_no_more(pattern: str, path: str) -> None:
    """In particular not what is in a folder with such a name, which an agent could make."""
    assert not matches(pattern, path, strict=True)


def test_what_denies_disregards_case_and_means_all_that_is_within() -> None:
    """`.ENV` is `.env` where the file system says so."""
    assert matches(".env", ".ENV", strict=False)
    assert matches("private", "docs/private/a/b.txt", strict=False)
    assert not matches("private", "docs/privateer", strict=False)
    hidden = HiddenPaths((".env*", "!.env.example", "docs/"))  # the last that matches says so
    paths = ("a/.env.local", "a/.env.example", "docs/.env.example")
    assert [hidden.hides(each) for each in paths] == [True, False, True]


_NAMES = st.lists(st.text("ab.*", min_size=1, max_size=4), min_size=1, max_size=4)


@given(_NAMES)
def test_a_literal_path_means_itself_and_nothing_longer(names: list[str]) -> None:
    """Whatever a name consists of, its brackets and stars in brackets are only that name."""
    path = "/".join(names)
    literal = "./" + "/".join("".join(f"[{each}]" for each in name) for name in names)
    if all(name not in (".", "..") for name in names):
        assert matches(literal, path, strict=True)
        assert not matches(literal, f"{path}/x", strict=True)
        assert not matches(literal, f"{path}x", strict=True)
        assert matches(literal, f"{path}/x", strict=False)


_PATTERNS = st.lists(
    st.sampled_from(["a", "!a", "b/", "!b/**", "**/a.*", "a/b", "!./b", "**", "[ab]*", "!*.b"]),
    max_size=4,
)


@given(_PATTERNS, _NAMES)
def test_the_last_pattern_that_matches_decides(patterns: list[str], names: list[str]) -> None:
    """However few names are compared with all of the patterns."""
    path = "/".join(names)
    matching = [p for p in patterns if matches(p.lstrip("!"), path, strict=p.startswith("!"))]
    hides = bool(matching) and not matching[-1].startswith("!")
    assert HiddenPaths(patterns).hides(path) == hides


def means(pattern: list[str], names: list[str]) -> bool:
    """What a pattern means, name by name."""
    if not pattern:
        return not names
    if pattern[0] == "**":
        return means(pattern[1:], names) or bool(names and means(pattern, names[1:]))
    return bool(names and fnmatchcase(names[0], pattern[0]) and means(pattern[1:], names[1:]))


_WORDS = st.sampled_from(["a", "b", "ab", "a*", "?b", "[!a]", "**"])


@given(
    st.lists(_WORDS, min_size=1, max_size=4),
    st.lists(st.text("ab", min_size=1, max_size=2), min_size=1, max_size=4),
)
def test_what_allows_is_decided_name_by_name(pattern: list[str], names: list[str]) -> None:
    """However the last name alone decides it sooner."""
    anywhere = ["**"] if len(pattern) == 1 else []
    expected = means(anywhere + pattern, names)
    assert matches("/".join(pattern), "/".join(names), strict=True) == expected
    assert matches("./" + "/".join(pattern), "/".join(names), strict=True) == means(pattern, names)
