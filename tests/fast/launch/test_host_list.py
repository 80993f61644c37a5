"""The hosts that a sandbox may reach."""

from pathlib import Path

import pytest

from aileron_core.errors import FileProblems
from aileron_core.launch.agents import AGENTS
from aileron_core.launch.network.host_resolver import HostList, is_host_name, parse_entry
from aileron_core.settings import load_settings, parse_project_settings


def test_a_host_is_reached_on_the_port_that_is_listed() -> None:
    hosts = HostList(["GitHub.com:443", "registry.example:8443"], ["api.example"])
    assert "github.com:443" in hosts
    assert "api.example:443" in hosts
    assert "github.com:22" not in hosts
    assert "sub.github.com:443" not in hosts
    assert hosts.is_named("registry.example")
    assert not hosts.is_named("example")
    assert hosts.ports == (443, 8443)
    hosts.allow("late.example:443")
    assert "late.example:443" in hosts


def test_only_a_name_that_the_person_listed_may_lead_to_a_private_network() -> None:
    """One that the agent chose, and the person allowed with a key, leads to the Internet."""
    hosts = HostList(["git.corp.example"], ["api.example"])
    hosts.allow("late.example")
    assert hosts.may_be_private("git.corp.example")
    assert not hosts.may_be_private("api.example")
    assert not hosts.may_be_private("late.example")


@pytest.mark.parametrize("text", ["1.2.3.4:443", "[::1]:443", "a.example:0", "a b:443", "", ":443"])
def test_what_is_no_name_of_a_host_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_entry(text)
    assert not is_host_name(text)


def test_every_agent_names_hosts_of_its_own() -> None:
    for agent in AGENTS.values():
        assert agent.hosts
        assert all(parse_entry(each) == f"{each}:443" for each in agent.hosts)


def test_hosts_are_listed_in_the_persons_settings_and_never_in_a_projects(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text('[launch]\nhosts = ["github.com:443", "pypi.org"]\n[launch.codex]\nargs = []\n')
    settings = load_settings(path)
    assert settings.launch_hosts == ("github.com:443", "pypi.org")
    assert {*settings.launch} == {"codex"}
    for wrong in (
        '"*"',
        '"https://github.com"',
        '"1.2.3.4"',
        '"a.example:0"',
        '"a.example:65536"',
        "1",
    ):
        path.write_text(f"[launch]\nhosts = [{wrong}]\n")
        with pytest.raises(FileProblems, match="hosts"):
            load_settings(path)
    with pytest.raises(FileProblems, match=r"launch\.hosts"):
        parse_project_settings(path, '[launch]\nhosts = ["evil.example"]\n')
