import re
import subprocess
import sys
import tomllib
from pathlib import Path

from aileron_core import __version__

ROOT = Path(__file__).resolve().parents[3]


def test_generated_docs_and_pictures_are_those_of_the_code_and_the_snapshots() -> None:
    """A diagram or picture that the code no longer draws is stale."""
    done = subprocess.run(
        [sys.executable, "docs/generate.py", "--check"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout


def test_every_dependency_has_a_line_that_says_what_it_carries() -> None:
    """docs/dependencies.md names each package of pyproject.toml."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    page = (ROOT / "docs" / "dependencies.md").read_text()
    for dependency in project["dependencies"]:
        name = re.match(r"[a-z0-9-]+", dependency)
        assert name is not None
        assert f"| {name[0]} |" in page


def test_the_first_heading_of_the_changelog_is_unreleased_or_the_version() -> None:
    version = __version__
    headings = re.findall(r"^## \[(.+?)\]", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert headings[0] in ("Unreleased", version)
