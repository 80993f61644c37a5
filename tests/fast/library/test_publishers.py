"""Names of publishers that may be taken for accepted ones."""

import pytest

from aileron_core.library.publishers import publisher_view

ACCEPTED = ("github://google/drive", "github://aileron-hq/mail")


def known(name: str, key: str = "SHA256:new") -> tuple[str, tuple[str, ...]]:
    """Return what the publisher *name* resembles, and as whom its key is known."""
    view = publisher_view(name, key, dict.fromkeys(ACCEPTED, "SHA256:theirs"))
    assert view is not None
    return view.resembles, view.known_as


@pytest.mark.parametrize(
    ("name", "resembles"),
    [
        ("github://goog1e/drive", "github://google/drive"),
        ("github://Google/other", "github://google/drive"),
        ("gitlab://google/drive", "github://google/drive"),
        ("github://g00gle/x", "github://google/drive"),
        ("github://googlee/drive", "github://google/drive"),
        ("github://aileron_hq/mail", "github://aileron-hq/mail"),
        ("github://google/gmail", ""),
        ("github://google/drive", ""),
        ("github://linear/drive", ""),
    ],
)
def test_a_name_that_resembles_an_accepted_publisher_is_said(name: str, resembles: str) -> None:
    """The owner's name is what counts: another repository of the same owner is no imitation."""
    assert known(name)[0] == resembles


def test_a_key_is_known_by_the_same_owners_repositories_alone() -> None:
    assert known("github://google/gmail", "SHA256:theirs")[1] == ("github://google/drive",)
    assert known("github://google/gmail")[1] == known("github://goggle/x", "SHA256:theirs")[1] == ()


def test_another_key_of_the_same_owner_is_said() -> None:
    """Of a key that is new: of no file that nobody signed, and not where one of the owner's has this key."""
    keys = {"github://google/drive": "SHA256:theirs", "github://aileron-hq/mail": "SHA256:new"}
    for name, key, other in (
        ("github://google/gmail", "SHA256:new", "github://google/drive"),
        ("github://google/gmail", "SHA256:theirs", ""),
        ("github://google/gmail", "", ""),
        ("github://google/drive", "SHA256:new", ""),
        ("github://linear/drive", "SHA256:new", ""),
    ):
        view = publisher_view(name, key, keys)
        assert view is not None
        assert view.other_key_of == other, (name, key)
