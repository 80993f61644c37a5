"""Names and versions of connectors."""

from collections.abc import Iterator

import pytest

from aileron_core.actions.names import is_semver
from aileron_core.actions.problems import KeyProblem
from aileron_core.connectors.manifest_rules import manifest_problems


def name_problems(text: str) -> Iterator[KeyProblem]:
    return manifest_problems({"connector": {"name": text, "version": "1.0.0"}})


@pytest.mark.parametrize(
    "text",
    [
        "",
        "github:/a/b",
        "http://a/b",
        "GITHUB://a/b",
        "github://a",
        "github:///b",
        "github://a/",
        "github://a/../b",
        "github://a/b@1.0.0",
        "github://a/b?x",
        "github://a//b",
        "github://a/b c",
        "github://a/b+c",
        "github://a/\u202eb",
        "local://a/" + "b" * 300,
    ],
)
def test_what_is_no_name_is_refused(text: str) -> None:
    """Nothing but scheme, owner and path in plain letters is a name."""
    (problem,) = name_problems(text)
    assert problem.path == ("connector", "name")


@pytest.mark.parametrize(
    ("text", "good"),
    [
        ("0.0.0-dev", True),
        ("1.0.0-a.1.b", True),
        ("1.0.0+x", True),
        ("1.0", False),
        ("01.0.0", False),
        ("v1.0.0", False),
        ("1.0.0-01", False),
        ("1.0.0\n", False),
        ("١.0.0", False),
    ],
)
def test_versions_are_strict(text: str, good: bool) -> None:
    assert is_semver(text) is good
