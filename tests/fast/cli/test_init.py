"""A home to begin with: what `aileron init` makes, keeps and says."""

import json
import re
import shlex
import socket
import stat
import subprocess
import sys
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from aileron_core import settings
from aileron_core.settings import LaunchSettings, Settings, load_settings
from aileron_tui.cli.commands import aileron
from aileron_tui.cli.scaffold import EXAMPLE_DRAFT, EXAMPLE_HOST, examples, settings_text

ROOT = Path(__file__).resolve().parents[3]


def run_aileron(*words: str, code: int = 0, env: dict[str, str] | None = None) -> str:
    done = CliRunner().invoke(aileron, words, prog_name="aileron", env=env)
    assert done.exit_code == code, done.output
    return done.output


def init_json(home: Path, *words: str) -> dict[str, Any]:
    return json.loads(run_aileron("init", *words, "--json", "--home", str(home)))


def test_a_home_is_made_with_settings_and_nothing_that_counts(tmp_path: Path) -> None:
    home = tmp_path / "home"
    said = init_json(home)
    assert (said["home"], said["config"], said["example"]) == (str(home), "made", None)
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    assert stat.S_IMODE((home / "config.toml").stat().st_mode) == 0o600
    assert list((home / "actions").iterdir()) == []
    assert not (home / "aileron.db").exists()


def test_what_a_first_run_prints_fits_80_columns(tmp_path: Path) -> None:
    home = tmp_path / "home"
    said = run_aileron("init", "--example", "--home", str(home)).splitlines()
    said += run_aileron("action", "list", "--home", str(home)).splitlines()
    assert "○ send-draft                   needs approval  0.6 kB  not accepted" in said
    assert "To accept an action, select it in the console and press t." in said
    assert [line for line in said if len(line) >= 80 and str(home) not in line] == []


def test_every_setting_stands_there_with_its_default(tmp_path: Path) -> None:
    """A setting that Aileron knows and the file does not name, or with another default, is found here."""
    text = re.sub(r"^#(?=[a-z])", "", settings_text(), flags=re.MULTILINE)
    (tmp_path / "config.toml").write_text(text)
    found = load_settings(tmp_path / "config.toml")
    assert replace(found, launch={}) == Settings()
    assert all(each == LaunchSettings() for each in found.launch.values())
    named = {section: frozenset(table) for section, table in tomllib.loads(text).items()}
    assert named == dict(settings._KEYS), "name each setting in aileron_tui/suite/config.toml"


def test_a_second_call_keeps_what_is_there_and_reports_settings_of_no_use(tmp_path: Path) -> None:
    home = tmp_path / "home"
    init_json(home)
    (home / "config.toml").write_text('[log]\nlevel = "debug"\n')
    said = init_json(home, "--example")
    assert said["config"] == "kept"
    assert (home / "config.toml").read_text() == '[log]\nlevel = "debug"\n'
    assert init_json(home, "--example")["example"] == said["example"]
    assert len(list((home / "actions").iterdir())) == 3
    (home / "config.toml").write_text("[log]\nlevel = 5\n")
    assert "log.level" in run_aileron("init", "--home", str(home), code=1)


def test_the_example_is_the_repositorys_own(tmp_path: Path) -> None:
    home = tmp_path / "home"
    said = init_json(home, "--example")["example"]
    assert said["connector"] == "local://aileron/mail-drafts@0.1.0"
    assert said["actions"] == ["get-draft", "list-drafts", "send-draft"]
    listed = json.loads(run_aileron("action", "list", "--json", "--home", str(home)))
    assert {item["state"] for item in listed["items"]} == {"held_back"}
    connector = "connectors/mail-drafts"
    for part in ("actions", "mailbox", f"{connector}/connector.wasm", f"{connector}/manifest.toml"):
        assert (examples() / part).resolve() == (ROOT / "examples" / part).resolve()


@pytest.mark.parametrize("example", [(), ("--example",)])
def test_the_lines_that_it_prints_are_commands(tmp_path: Path, example: tuple[str, ...]) -> None:
    home = tmp_path / "a home; with $(odd) name"
    text = run_aileron("init", *example, "--home", str(home))
    lines = [each.strip() for each in text.splitlines() if re.match(r" +(\S*/)?aileron ", each)]
    assert lines == init_json(home, *example)["next"]
    assert len(lines) == (3 if example else 4)
    for line in lines:
        words = shlex.split(line)
        if words[1:] != ["example"]:
            assert words[words.index("--home") + 1] == str(home)
        run_aileron(*words[1:], "--help")
    own = run_aileron("init", *example, env={"HOME": str(tmp_path), "AILERON_HOME": ""})
    assert "--home" not in own


def test_the_lines_begin_with_what_runs_this_very_installation(tmp_path: Path) -> None:
    """After `make demo` no shell finds `aileron`: it is in `.venv`. Another one on PATH is not this one."""
    own = Path(sys.executable).with_name("aileron")
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / "aileron").symlink_to(own)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "aileron").write_text("#!/bin/sh\n")
    (tmp_path / "other" / "aileron").chmod(0o755)
    for folder, by_name in (("linked", True), ("other", False), ("empty", False)):
        home = str(tmp_path / "home")
        text = run_aileron("init", "--json", "--home", home, env={"PATH": str(tmp_path / folder)})
        (program,) = {shlex.split(line)[0] for line in json.loads(text)["next"]}
        assert (program == "aileron") == by_name
        assert by_name or Path(program).samefile(own)


def test_the_draft_that_it_names_is_in_the_service_and_a_port_that_is_taken_is_a_sentence(
    tmp_path: Path,
) -> None:
    with subprocess.Popen(
        [sys.executable, "-I", "-m", "aileron_tui.cli", "example", "--port", "0", "--json"],
        stdout=subprocess.PIPE, text=True, cwd=tmp_path,
    ) as service:  # fmt: skip
        assert service.stdout is not None
        said = json.loads(service.stdout.readline())
        assert said["route"] == f"{EXAMPLE_HOST}=127.0.0.1:{said['url'].rpartition(':')[2]}"
        import urllib.request

        with urllib.request.urlopen(f"{said['url']}/_state", timeout=10) as answer:
            drafts = json.load(answer)["drafts"]
        assert drafts[0]["id"] == EXAMPLE_DRAFT
        service.terminate()
        assert service.wait(10) == 0
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        text = run_aileron("example", "--port", port, code=1)
    assert f"Port {port} of 127.0.0.1 cannot be used" in text
    assert "--route" in text
