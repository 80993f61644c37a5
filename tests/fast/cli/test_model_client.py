"""`aileron run`: where it sends a key, where it does not, and what a person types at it."""

import io
import sys

import pytest

from aileron_core.errors import InvalidRequest
from aileron_tui.cli.agent_run import read_line
from aileron_tui.cli.model_client import key_for

SECRET = "canary-key"
UNENCRYPTED = ("http://models.example/v1", "http://127.0.0.1.evil.example/v1")
USERS = ("http://127.0.0.1@evil.example/v1", f"https://me:{SECRET}@models.example/v1?x")
PLACES = ("http://[::1/v1", "http://127.0.0.1:abc/v1", "file:///etc/passwd", "")
NO_BASE = (*USERS, *PLACES, "http://127.0.0.1:1/\x1bv1", "http://127.0.0.1:1/v1?x=1")
REFUSED: dict[str, str] = dict.fromkeys(UNENCRYPTED, "unencrypted")
REFUSED.update(dict.fromkeys(NO_BASE, "is not a base URL"))


@pytest.mark.parametrize("url", REFUSED)
def test_an_address_for_no_key_is_refused(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setenv("MY_KEY", SECRET)
    with pytest.raises(InvalidRequest) as refused:
        key_for(url, "MY_KEY")
    assert REFUSED[url] in refused.value.message
    assert SECRET not in refused.value.message


@pytest.mark.parametrize(
    "url",
    ["https://a.example/v1", "http://127.0.0.1:1/v1", "http://[::1]:1", "http://LOCALHOST/v1/"],
)
def test_an_address_where_it_may_go_is_taken(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setenv("MY_KEY", SECRET)
    assert key_for(url, "MY_KEY") == SECRET
    assert key_for(url, None) == ""


@pytest.mark.parametrize("errors", ["strict", "surrogateescape"])
def test_a_line_not_in_utf8_is_an_error_alone(monkeypatch: pytest.MonkeyPatch, errors: str) -> None:
    typed = io.TextIOWrapper(io.BytesIO(b"caf\xff\n"), encoding="utf-8", errors=errors)
    monkeypatch.setattr(sys, "stdin", typed)
    with pytest.raises(InvalidRequest, match="not UTF-8"):
        read_line("")
