"""What names a heading of a page names one that is there."""

import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
_NAMED = re.compile(
    r"\b((?:docs/(?:agents/)?[a-z-]+|CONTRIBUTING|README|CHANGELOG)\.md)(?:#([\w-]+))?"
)
"""A page as code and tests name it: from the root of the repository."""
_ELSEWHERE = re.compile(
    r"\b(?:DESIGN|FACTS|THREATS|EXPERIMENTS|AGENT-CLIS)\b"
    r"|\b(?:WIRE|CONSOLE|PERFORMANCE|SERVERS|FIELD|STYLE|LEARNED|HOUSE)"
    r"(?:\.md\b|,? (?:section )?(?:\d|[A-Z]\.?\d)|, (?:Audit|Defaults|Digest|MCP|Tokens)\b)"
    r'|"""(?:WIRE|CONSOLE|PERFORMANCE|SERVERS|FIELD|STYLE|HOUSE)\b'
)
"""A page in capitals, as plans and notes name theirs; none of them is in the repository."""
_CLAUSE = re.compile(
    r"\((?:clause |issue )?[A-Z]\d{1,2}(?:(?:, | and )[A-Z]\d{1,2})*\)"
    r'|"""[A-Z]\d{1,2}(?:, [A-Z]\d{1,2})*[:;,.] '
    r"|\b(?:clause|issue) [A-Z]\d{0,2}\b"
)
"""A point of a plan, such as a letter and a number in brackets or before a sentence."""
_LINK = re.compile(r"\]\(([^)#\s]*)(?:#([^)\s]+))?\)")


def tracked(*patterns: str) -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each file of the repository that matches."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", *patterns], cwd=ROOT, capture_output=True, text=True, check=True
    )
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).is_file():
            yield name, (ROOT / name).read_text(encoding="utf-8")


@cache
def anchors(page: Path) -> frozenset[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    text = re.sub(
        r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL
    )
    found: set[str] = set()
    for heading in re.findall(r"^#+ +(.*)$", text, re.MULTILINE):
        shown = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).strip()
        found.add(re.sub(r"[^\w\- ]", "", shown.lower()).replace(" ", "-"))
    return frozenset(found)


def test_every_page_and_heading_that_a_file_names_is_there() -> None:
    missing = [
        f"{name}: {page}#{anchor}" if anchor else f"{name}: {page}"
        for name, text in tracked("*.py", "*.md", "*.toml", "Makefile")
        for page, anchor in _NAMED.findall(text)
        if not (ROOT / page).is_file() or (anchor and anchor not in anchors(ROOT / page))
    ]
    assert missing == []


def test_every_link_between_pages_leads_to_a_file_and_a_heading() -> None:
    missing: list[str] = []
    for name, text in tracked("*.md"):
        for target, anchor in _LINK.findall(text):
            if ":" in target:
                continue
            page = (ROOT / name).parent / target if target else ROOT / name
            if not page.exists() or (anchor and anchor not in anchors(page)):
                missing.append(f"{name}: {target}#{anchor}")
    assert missing == []


def test_every_file_of_the_code_that_a_page_names_is_there() -> None:
    named = re.compile(r"`((?:aileron_\w+|tests|docs|bench|examples)/[\w/.-]*)`")
    missing = [
        f"{name}: {path}"
        for name, text in tracked("docs/*.md", "README.md", "CONTRIBUTING.md")
        for path in named.findall(text)
        if not (ROOT / path).exists()
    ]
    assert missing == []


def test_no_file_names_a_page_or_a_point_of_a_plan_that_is_not_in_the_repository() -> None:
    itself = Path(__file__).resolve().relative_to(ROOT).as_posix()
    found = [
        f"{name}:{number}: {hit[0]}"
        for name, text in tracked("*.py", "*.md", "*.toml", "*.tcss", "Makefile", ".ci")
        if name != itself
        for number, line in enumerate(text.splitlines(), 1)
        if (hit := _ELSEWHERE.search(line) or _CLAUSE.search(line))
    ]
    assert found == []
