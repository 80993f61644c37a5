"""What names a heading, a file or a command of a page names one that is there; what is generated is not stale."""

import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from itertools import pairwise, takewhile
from pathlib import Path

import click
import pytest

from aileron_core import __version__
from aileron_core.actions.load import load_action
from aileron_tui.cli.commands import aileron
from tests.fast.docs.test_promises import sections

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
GENERATED = ROOT / "docs" / "command-line.md"
PAGES = [ROOT / "README.md", *sorted({*(ROOT / "docs").glob("*.md")} - {GENERATED})]
CONNECTORS = sorted((ROOT / "examples" / "connectors").glob("*/README.md"))


def tracked(*patterns: str) -> Iterator[tuple[str, str]]:
    command = ["git", "ls-files", "-z", *patterns]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).is_file():
            yield name, (ROOT / name).read_text(encoding="utf-8")


def test_every_page_and_heading_that_a_file_names_or_a_page_links_is_there() -> None:
    missing = [
        f"{name}: {page}#{anchor}" if anchor else f"{name}: {page}"
        for name, text in tracked("*.py", "*.md", "*.toml", "Makefile")
        for page, anchor in _NAMED.findall(text)
        if not (ROOT / page).is_file() or (anchor and anchor not in sections(page))
    ]
    assert missing == []
    missing: list[str] = []
    for name, text in tracked("*.md"):
        for target, anchor in _LINK.findall(text):
            if ":" in target:
                continue
            page = (ROOT / name).parent / target if target else ROOT / name
            if not page.exists() or (anchor and anchor not in sections(page)):
                missing.append(f"{name}: {target}#{anchor}")
    assert missing == []


def test_every_file_of_the_code_that_a_page_names_is_there() -> None:
    named = re.compile(r"`((?:aileron_\w+|tests|docs|bench|examples)/[\w/.-]*)`")
    pages = tracked("docs/*.md", "README.md", "CONTRIBUTING.md")
    paths = [(name, path) for name, text in pages for path in named.findall(text)]
    assert [each for each in paths if not (ROOT / each[1]).exists()] == []


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


def test_generated_docs_and_pictures_are_those_of_the_code_and_the_snapshots() -> None:
    command = [sys.executable, "docs/generate.py", "--check"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_every_dependency_has_a_line_that_says_what_it_carries() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    page = (ROOT / "docs" / "dependencies.md").read_text()
    for dependency in project["dependencies"]:
        name = re.match(r"[a-z0-9-]+", dependency)
        assert name is not None
        assert f"| {name[0]} |" in page


def test_the_first_heading_of_the_changelog_is_unreleased_or_the_version() -> None:
    headings = re.findall(r"^## \[(.+?)\]", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert headings[0] in ("Unreleased", __version__)


def commands_in(page: Path) -> list[list[str]]:
    """Return the words of each line of *page* that calls `aileron`, without what a shell does with its output."""
    lines = (line[4:] for line in page.read_text().splitlines() if line.startswith("    aileron "))
    typed = (shlex.split(line.partition("  #")[0]) for line in lines if "..." not in line)
    return [list(takewhile(lambda word: word not in (">", "|", "&"), words)) for words in typed]


@pytest.mark.parametrize("page", [*PAGES, *CONNECTORS], ids=lambda p: str(p.relative_to(ROOT)))
def test_a_command_on_a_page_can_be_typed(page: Path) -> None:
    for words in commands_in(page):
        command: click.Command = aileron
        context, rest = click.Context(command, info_name=words[0]), words[1:]
        try:
            while isinstance(command, click.Group):
                _, found, rest = command.resolve_command(context, rest)
                assert found is not None
                command, context = found, click.Context(found, parent=context, info_name=found.name)
            command.parse_args(context, rest)
        except click.UsageError as error:
            pytest.fail(f"{shlex.join(words)}: {error.message}")


@pytest.mark.parametrize("page", CONNECTORS, ids=lambda page: page.parent.name)
def test_a_connectors_page_names_its_own_files_and_inputs(page: Path) -> None:
    for words in commands_in(page):
        for word in words:
            if word.startswith("examples/"):
                assert (ROOT / word).is_dir(), word
        if words[1:3] != ["action", "run"]:
            continue
        action = load_action((page.parent / "actions" / f"{words[3]}.md").read_bytes(), words[3])
        named = {text.partition("=")[0] for option, text in pairwise(words) if option == "--arg"}
        assert named <= {each.name for each in action.inputs}
        assert named >= {each.name for each in action.inputs if each.required}
