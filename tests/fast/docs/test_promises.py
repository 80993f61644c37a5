"""What the pages promise, each held to the test that proves it by tests/promises.toml."""

import ast
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
TESTS = ROOT / "tests"
THREAT_MODEL = "docs/threat-model.md"
_NO_PROMISES = frozenset({"threat-model", "limits"})
"""Sections of the threat model that promise nothing: its first lines, and what cannot be kept."""
_HEADING = re.compile(r"#+ +(.*)")


@dataclass(frozen=True)
class Promise:
    """One entry: a phrase of a page, and the tests that fail where it does not hold, below `tests`."""

    page: str
    text: str
    tests: tuple[str, ...]


@cache
def promises() -> tuple[Promise, ...]:
    manifest = tomllib.loads((TESTS / "promises.toml").read_text(encoding="utf-8"))
    found = [(page, *each) for page, entries in manifest.items() for each in entries.items()]
    return tuple(Promise(page, text, tuple(tests)) for page, text, tests in found)


@cache
def sections(page: str | Path) -> dict[str, str]:
    """Return the text below each heading of a page, by the heading's anchor on GitHub."""
    found: dict[str, str] = {}
    anchor, fenced = "", False
    for line in (ROOT / page).read_text(encoding="utf-8").splitlines():
        fenced ^= line.startswith("```")
        heading = None if fenced else _HEADING.fullmatch(line)
        if heading:
            shown = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading[1]).strip().lower()
            anchor = re.sub(r"[^\w\- ]", "", shown).replace(" ", "-")
            found[anchor] = ""
        else:
            found[anchor] = found.get(anchor, "") + line + "\n"
    return found


def units(section: str) -> Iterator[tuple[int, int]]:
    """Yield where each promise of a section stands: a bullet, a paragraph, or a cell.

    Of a table these are the cells from the third on: what somebody may do, and may never.
    """
    for block in re.finditer(r"(?:^.+\n)+", section, re.MULTILINE):
        text, start = block[0], block.start()
        if text.startswith("|"):
            for row in list(re.finditer(r"^.*$", text, re.MULTILINE))[2:]:
                for cell in list(re.finditer(r"[^|]+", row[0]))[2:]:
                    if cell[0].strip():
                        at = start + row.start()
                        yield at + cell.start(), at + cell.end()
        elif not text.startswith("!["):
            for part in re.finditer(r"^(?:\* )?.*\n(?:(?!\* ).*\n)*", text, re.MULTILINE):
                yield start + part.start(), start + part.end()


@cache
def cases(path: str) -> dict[str, bool]:
    module = ast.parse((TESTS / path).read_text(encoding="utf-8"))
    always = _begins_with_a_skip(module) or any(
        isinstance(node, ast.Assign) and "pytestmark" in ast.unparse(node) and _skips(node.value)
        for node in module.body
    )
    return {
        node.name: always
        or any(_skips(mark) for mark in node.decorator_list)
        or _begins_with_a_skip(node)
        for node in module.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }


def _skips(mark: ast.expr) -> bool:
    return re.search(r"mark\.(skip|xfail)\b", ast.unparse(mark)) is not None


def _begins_with_a_skip(test: ast.FunctionDef | ast.AsyncFunctionDef | ast.Module) -> bool:
    called = (ast.unparse(each) for each in test.body if isinstance(each, ast.Expr))
    return any(each.startswith(("pytest.skip(", "pytest.xfail(")) for each in called)


def test_each_promise_stands_once_under_its_heading() -> None:
    for promise in promises():
        page, _, anchor = promise.page.partition("#")
        assert anchor in sections(page), f"no such heading: {promise.page}"
        said = sections(page)[anchor].count(promise.text)
        assert said == 1, f"{promise.page} says it {said} times: {promise.text}"


def test_each_promise_is_proved_by_tests_that_are_there_and_run() -> None:
    for promise in promises():
        assert 1 <= len(promise.tests) <= 3, promise.text
        for named in promise.tests:
            path, _, name = named.partition("::")
            assert (TESTS / path).is_file(), f"no such file: {named}"
            assert name.startswith("test_"), named
            assert name in cases(path), f"no such test: {named}"
            assert not cases(path)[name], f"never runs: {named}"


@pytest.mark.parametrize("anchor", sorted(sections(THREAT_MODEL).keys() - _NO_PROMISES))
def test_each_sentence_of_the_threat_model_that_promises_has_a_test(anchor: str) -> None:
    section = sections(THREAT_MODEL)[anchor]
    proved = [
        (at, at + len(promise.text))
        for promise in promises()
        if promise.page == f"{THREAT_MODEL}#{anchor}"
        for at in (section.find(promise.text),)
    ]
    without = [
        section[start:end].strip()
        for start, end in units(section)
        if not any(begin < end and start < stop for begin, stop in proved)
    ]
    assert without == []
