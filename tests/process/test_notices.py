"""The `[notify]` command where there is no console, and `aileron doctor --notify`."""

import json
import re
import sys
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from tests.support.making import program
from tests.support.processes import eventually
from tests.support.server_harness import DRAFT, ROOT, Console, aileron_json

_WRITES = (
    "import json, os, sys; open(sys.argv[1] + '.part', 'w').write(json.dumps(sys.argv[2:]));"
    " os.rename(sys.argv[1] + '.part', sys.argv[1])"
)
_RECIPE = re.compile(r"^    command = (\[.*\])", re.MULTILINE)


def recipes() -> dict[str, list[str]]:
    """Return the commands that docs/console.md gives, by their programs."""
    page = (ROOT / "docs" / "console.md").read_text(encoding="utf-8")
    found = [json.loads(recipe) for recipe in _RECIPE.findall(page)]
    return {words[0]: words for words in found}


def configure(home: Path, *command: str) -> None:
    home.mkdir(mode=0o700, exist_ok=True)
    (home / "config.toml").write_text(f"[notify]\ncommand = {json.dumps(command)}\n")


def test_serve_announces_a_call_with_the_address_of_the_list(
    home: Path, tmp_path: Path, serve: Callable[..., Console]
) -> None:
    """Neither the call's id nor anything that the agent said is in it."""
    told = tmp_path / "told"
    configure(home, sys.executable, "-c", _WRITES, str(told), "{count}", "{action}", "{review}")
    console = serve()
    console.run("send-draft", {"draft_id": DRAFT}, console.session()["token"])
    eventually(told.exists, "the command is run")
    assert json.loads(told.read_text()) == ["1", "send-draft", f"{console.url}/review"]


def test_the_doctor_says_which_ways_a_notice_took(
    home: Path, tmp_path: Path, serve: Callable[..., Console]
) -> None:
    """Here there is no terminal; a command that fails makes the doctor fail."""
    told = tmp_path / "told"
    configure(home, sys.executable, "-c", _WRITES, str(told), "{count}", "{action}", "{review}")
    console = serve()
    said = aileron_json("doctor", "--notify", home=home)
    assert (said["ok"], said["notice"]) == (True, "Aileron: 1 call is waiting")
    assert said["ways"]["command"] == "taken"
    assert said["ways"]["bell"] == "not taken: this is no terminal"
    assert json.loads(told.read_text()) == ["1", "", f"{console.url}/review"]
    configure(home, "/no/such/program")
    said = aileron_json("doctor", "--notify", home=home, code=1)
    assert said["ways"]["command"] == "failed: /no/such/program: No such file or directory"
    (home / "config.toml").unlink()
    said = aileron_json("doctor", "--notify", home=home, code=1)
    assert said["ways"]["command"] == "not taken: [notify] command is not set"


def test_the_recipe_for_ntfy_sends_a_count_an_action_and_the_address(
    home: Path, serve: Callable[..., Console]
) -> None:
    """To a recorder on this machine in ntfy's place."""
    heard: list[tuple[str, str, str]] = []

    class Recorder(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            heard.append((self.path, self.headers["Click"], body))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Recorder) as recorder:
        threading.Thread(target=recorder.serve_forever, args=(0.02,), daemon=True).start()
        there = f"http://127.0.0.1:{recorder.server_port}/"
        configure(home, *(each.replace("https://ntfy.sh/", there) for each in recipes()["curl"]))
        console = serve()
        console.run("send-draft", {"draft_id": DRAFT}, console.session()["token"])
        eventually(lambda: heard, "ntfy is told")
        recorder.shutdown()
    assert heard == [("/your-topic", f"{console.url}/review", "1 waiting: send-draft")]


@pytest.mark.parametrize("name", ["notify-send", "terminal-notifier"])
def test_the_recipes_for_desktops_pass_their_words(name: str, home: Path, tmp_path: Path) -> None:
    told = tmp_path / "told"
    script = f"#!{sys.executable}\nimport sys; sys.argv.insert(1, {str(told)!r})\n{_WRITES}\n"
    path = program(tmp_path / "bin" / name, script)
    configure(home, *recipes()[name])
    aileron_json("doctor", "--notify", home=home, env={"PATH": f"{path.parent}:/usr/bin:/bin"})
    assert any(word.startswith("1 waiting: ") for word in json.loads(told.read_text()))
