"""The `[notify]` command where there is no console, and `aileron doctor --notify`."""

import json
import re
import sys
from pathlib import Path

import pytest

from tests.support.http_service import HttpRequest, http_server, reply
from tests.support.making import program
from tests.support.processes import eventually
from tests.support.server_harness import DRAFT, ROOT, Serve, aileron_json

_WRITES = (
    "import json, os, sys; open(sys.argv[1] + '.part', 'w').write(json.dumps(sys.argv[2:]));"
    " os.rename(sys.argv[1] + '.part', sys.argv[1])"
)


def recipes() -> dict[str, list[str]]:
    page = (ROOT / "docs" / "console.md").read_text(encoding="utf-8")
    found = [json.loads(recipe) for recipe in re.findall(r"(?m)^    command = (\[.*\])", page)]
    return {words[0]: words for words in found}


def configure(home: Path, *command: str) -> None:
    (home / "config.toml").write_text(f"[notify]\ncommand = {json.dumps(command)}\n")


def test_serve_announces_a_call_with_the_address_of_the_list(home: Path, serve: Serve) -> None:
    """Neither the call's id nor anything that the agent said is in it. The doctor says which ways a notice took."""
    told = home.parent / "told"
    configure(home, sys.executable, "-c", _WRITES, str(told), "{count}", "{action}", "{review}")
    console = serve()
    said = aileron_json("doctor", "--notify", home=home)
    assert (said["ok"], said["notice"]) == (True, "Aileron: 1 call is waiting")
    assert said["ways"]["command"] == "taken"
    assert said["ways"]["bell"] == "not taken: this is no terminal"
    assert json.loads(told.read_text()) == ["1", "", f"{console.url}/review"]
    told.unlink()
    console.run("send-draft", {"draft_id": DRAFT}, console.session()["token"])
    eventually(told.exists, "the command is run")
    assert json.loads(told.read_text()) == ["1", "send-draft", f"{console.url}/review"]
    configure(home, "/no/such/program")
    said = aileron_json("doctor", "--notify", home=home, code=1)
    assert said["ways"]["command"] == "failed: /no/such/program: No such file or directory"
    (home / "config.toml").unlink()
    said = aileron_json("doctor", "--notify", home=home, code=1)
    assert said["ways"]["command"] == "not taken: [notify] command is not set"


def test_the_recipe_for_ntfy_sends_count_action_and_address(home: Path, serve: Serve) -> None:
    """To a recorder on this machine in ntfy's place."""
    heard: list[tuple[str, str, str]] = []

    def record(request: HttpRequest, body: bytes) -> None:
        heard.append((request.path, request.headers["Click"], body.decode()))
        reply(request, 200, b"", {})

    with http_server(record) as recorder:
        there = f"http://127.0.0.1:{recorder.server_port}/"
        configure(home, *(each.replace("https://ntfy.sh/", there) for each in recipes()["curl"]))
        console = serve()
        console.run("send-draft", {"draft_id": DRAFT}, console.session()["token"])
        eventually(lambda: heard, "ntfy is told")
    assert heard == [("/your-topic", f"{console.url}/review", "1 waiting: send-draft")]


@pytest.mark.parametrize("name", ["notify-send", "terminal-notifier"])
def test_the_recipes_for_desktops_pass_their_words(name: str, home: Path, tmp_path: Path) -> None:
    told = tmp_path / "told"
    script = f"#!{sys.executable}\nimport sys; sys.argv.insert(1, {str(told)!r})\n{_WRITES}\n"
    path = program(tmp_path / "bin" / name, script)
    configure(home, *recipes()[name])
    aileron_json("doctor", "--notify", home=home, env={"PATH": f"{path.parent}:/usr/bin:/bin"})
    assert any(word.startswith("1 waiting: ") for word in json.loads(told.read_text()))
