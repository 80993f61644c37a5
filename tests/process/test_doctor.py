"""`aileron doctor` beside a real console."""

import os
from pathlib import Path

from tests.support.server_harness import Serve, aileron, aileron_json


def test_the_doctor_names_what_is_not_contained(home: Path, serve: Serve) -> None:
    """Agents, machine, code and home; a session that opened itself is an uncontained neighbour."""
    session = serve(accept=False).session()["session_id"]
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


def test_a_missing_agent_fails_only_if_it_was_asked_for(home: Path, tmp_path: Path) -> None:
    nothing = {"PATH": f"/usr/bin{os.pathsep}/bin", "HOME": str(tmp_path)}
    done = aileron("doctor", "codex", home=home, code=1, env=nothing)
    assert "Codex is not installed. Run npm install -g @openai/codex." in done.stdout
    assert "Not controlled by Aileron:" in done.stdout
    goose = aileron("doctor", "goose", home=home, code=1, env=nothing).stdout
    assert "Goose is not installed. Run curl -fsSL https://github.com/aaif-goose/goose/" in goose
    said = aileron_json("doctor", home=home, code=None, env=nothing)
    assert said["ok"] == all(each["level"] != "broken" for each in said["findings"])
