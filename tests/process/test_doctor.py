"""`aileron doctor` beside a real console."""

import os
from pathlib import Path

import pytest

from tests.support.server_harness import Console, aileron, aileron_json
from tests.support.variants import variants


def test_the_doctor_names_what_is_not_contained(home: Path) -> None:
    """Agents, machine, code and home; a session that opened itself is an uncontained neighbour."""
    console = Console(home)
    session = console.session()["session_id"]
    said = aileron_json("doctor", home=home, code=None)
    assert {each["name"] for each in said["agents"]} == {
        "codex", "claude", "opencode", "goose", "pi", "gemini",
    }  # fmt: skip
    assert all(each["controls"] and each["outside"] for each in said["agents"])
    found = {each["topic"]: each for each in said["findings"]}
    assert {"sandbox", "code", "home", "sessions"} <= set(found)
    assert found["sessions"]["level"] == "warning"
    assert session in found["sessions"]["text"]
    assert found["home"]["level"] == "ok"
    console.end()


def test_a_missing_agent_fails_only_if_it_was_asked_for(home: Path, tmp_path: Path) -> None:
    """Exit 0 unless something is broken."""
    nothing = {"PATH": f"/usr/bin{os.pathsep}/bin", "HOME": str(tmp_path)}
    done = aileron("doctor", "codex", home=home, code=1, env=nothing)
    assert "Codex is not installed. Run npm install -g @openai/codex." in done.stdout
    assert "Not controlled by Aileron:" in done.stdout
    goose = aileron("doctor", "goose", home=home, code=1, env=nothing).stdout
    assert "Goose is not installed. Run curl -fsSL https://github.com/aaif-goose/goose/" in goose
    said = aileron_json("doctor", home=home, code=None, env=nothing)
    assert said["ok"] == all(each["level"] != "broken" for each in said["findings"])


@pytest.mark.parametrize(
    ("asked", "passes"),
    variants(
        [
            pytest.param({"OPENAI_API_KEY": "x"}, True, id="by a key"),
            pytest.param({}, False, id="without one"),
            pytest.param({"OPENAI_API_KEY": "x", "off": "1"}, False, id="--no-gateway"),
        ],
        2,
    ),
)
def test_a_dry_run_says_of_model_traffic_only_what_holds_here(
    home: Path, tmp_path: Path, asked: dict[str, str], passes: bool
) -> None:
    """Not that it passes the gateway, and in the next line that it does not."""
    program = tmp_path / "bin" / "codex"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    env = {"PATH": f"{program.parent}:/usr/bin:/bin", "HOME": str(tmp_path), "OPENAI_API_KEY": ""}
    options = ["--no-gateway"] if asked.pop("off", "") else []
    done = aileron(
        "launch", "codex", "--no-sandbox", "--dry-run", *options, home=home, env={**env, **asked}
    )
    told = [line.strip() for line in done.stdout.splitlines() if "odel traffic" in line]
    assert len(told) == 1
    if passes:
        assert told == ["✓ Its model traffic goes through Aileron's gateway: openai."]
    elif options:
        assert told == ["▲ Its model traffic: --no-gateway is set."]
    else:
        assert told[0].startswith(
            "▲ Codex's model traffic bypasses Aileron's gateway: Codex has no API key"
        )
    shown = aileron("doctor", "codex", home=home, env={**env, **asked}, code=None).stdout
    assert ("bypasses Aileron's gateway" in shown) != ("model traffic goes through" in shown)
