"""`[gateway]` in config.toml: what it may say, and that the rest is refused at start."""

from pathlib import Path

import pytest

from aileron_core.credentials.upstreams import upstreams
from aileron_core.errors import FileProblems
from aileron_core.settings import GatewaySettings, load_settings


def write_config(folder: Path, text: str) -> Path:
    path = folder / "config.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_without_a_word_in_config_each_provider_is_its_own() -> None:
    found = upstreams(GatewaySettings())
    assert {each.authority for each in found.values()} == {
        "api.anthropic.com", "api.openai.com", "generativelanguage.googleapis.com",
    }  # fmt: skip
    assert not any(each.configured for each in found.values())
    assert {(each.scheme, each.port) for each in found.values()} == {("https", 443)}
    assert {each.base_path for each in found.values()} == {b""}


def test_an_upstream_of_ones_own_has_scheme_port_and_base_path(tmp_path: Path) -> None:
    text = '[gateway]\nopenai = "http://[::1]:8080/base/"\nanthropic = "https://x.example"\n'
    found = upstreams(load_settings(write_config(tmp_path, text)).gateway)
    openai, anthropic = found["openai"], found["anthropic"]
    assert (openai.scheme, openai.host, openai.port) == ("http", "::1", 8080)
    assert openai.base_path == b"/base"
    assert (openai.authority, openai.configured) == ("[::1]:8080", True)
    assert (anthropic.authority, anthropic.port) == ("x.example", 443)
    assert not found["gemini"].configured


@pytest.mark.parametrize(
    "line",
    [
        'openai = "api.openai.com"',
        'openai = "ftp://x.example"',
        'openai = "https://"',
        'openai = "https://user:pass@x.example"',
        'openai = "https://x.example/?key=1"',
        'openai = "https://x.example/#a"',
        'openai = "https://x.example:0"',
        'openai = "https://x.example:99999"',
        'openai = "https://x.example/a b"',
        'openai = "https://x.example\\r\\nX: y"',
        'openai = "https://exämple"',
        'openai = "https://[::1"',
        "openai = 3",
        'ca_file = "relative.pem"',
        'ca_file = "/nonexistent/ca.pem"',
        'ca_file = "/a\\u0000b"',
        "ca_file = true",
        'mode = "augment"',
        'opneai = "https://x.example"',
    ],
)
def test_what_cannot_be_meant_is_refused_with_its_key(tmp_path: Path, line: str) -> None:
    with pytest.raises(FileProblems) as raised:
        load_settings(write_config(tmp_path, f"[gateway]\n{line}\n"))
    (problem,) = raised.value.problems
    assert problem.key == f"gateway.{line.partition(' ')[0]}"
