"""Names and versions of connectors."""

import pytest

from aileron_core.connectors.names import Fqn, is_semver, split_ref


@pytest.mark.parametrize(
    "text",
    ["github://ALRubinger/aileron-connector-google", "hub://o/p/sub/deep", "local://a/b.c_d~e-f"],
)
def test_a_name_is_kept_letter_for_letter(text: str) -> None:
    """What was parsed prints as it was written."""
    assert str(Fqn.parse(text)) == text


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
        "github://a/\u202eb",
        "local://a/" + "b" * 300,
    ],
)
def test_what_is_no_name_is_refused(text: str) -> None:
    """Nothing but scheme, owner and path in plain letters is a name."""
    with pytest.raises(ValueError, match=r"."):
        Fqn.parse(text)


def test_a_reference_is_split_at_its_last_at_sign() -> None:
    """The version follows the name."""
    fqn, version = split_ref("github://o/r/sub@1.2.3-rc.1+b.5")
    assert (str(fqn), version) == ("github://o/r/sub", "1.2.3-rc.1+b.5")


@pytest.mark.parametrize("ref", ["local://a/b", "local://a/b@", "local://a/b@v1.0.0", "@1.0.0"])
def test_a_reference_without_name_or_version_is_refused(ref: str) -> None:
    """Both parts are needed, and the version is strict."""
    with pytest.raises(ValueError, match=r"."):
        split_ref(ref)


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
    """Only semver.org's own grammar counts."""
    assert is_semver(text) is good
