"""Where `aileron run` sends a key, and where it does not."""

import pytest

from aileron_core.errors import InvalidRequest
from aileron_tui.cli.model_client import direct_client

SECRET = "canary-key"
REFUSED = {
    "http://models.example/v1": "unencrypted",
    "http://127.0.0.1.evil.example/v1": "unencrypted",
    "http://127.0.0.1@evil.example/v1": "has a user in it",
    f"https://me:{SECRET}@models.example/v1?x": "has a user in it",
    "http://[::1/v1": "is not a base URL",
    "http://127.0.0.1:abc/v1": "is not a base URL",
    "http://127.0.0.1:1/\x1bv1": "is not a base URL",
    "file:///etc/passwd": "is not a base URL",
    "http://127.0.0.1:1/v1?x=1": "is not a base URL",
}


@pytest.mark.parametrize("url", REFUSED)
def test_an_address_where_a_key_may_not_go_is_refused(
    monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    """With what is wrong, and without a password that is in it."""
    monkeypatch.setenv("MY_KEY", SECRET)
    with pytest.raises(InvalidRequest) as refused:
        direct_client("openai", url, "MY_KEY")
    assert REFUSED[url] in refused.value.message
    assert SECRET not in refused.value.message


@pytest.mark.parametrize("proxy", ["socks5://me:pw@proxy.example", "socks://proxy.example:1"])
def test_a_proxy_that_cannot_be_used_is_an_error_that_names_the_variables(
    monkeypatch: pytest.MonkeyPatch, proxy: str
) -> None:
    """Desktops set SOCKS proxies; its password is not quoted."""
    monkeypatch.setenv("ALL_PROXY", proxy)
    with pytest.raises(InvalidRequest, match="ALL_PROXY") as refused:
        direct_client("openai", "https://models.example/v1", None)
    assert "pw" not in refused.value.message


@pytest.mark.parametrize(
    "url",
    [
        "https://models.example/v1",
        "http://127.0.0.1:1/v1",
        "http://[::1]:1",
        "http://LOCALHOST/v1/",
    ],
)
def test_an_address_where_it_may_go_is_taken(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setenv("MY_KEY", SECRET)
    direct_client("openai", url, "MY_KEY").close()
