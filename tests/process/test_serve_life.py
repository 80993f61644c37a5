"""How a console begins, is found again, and ends; and, where there is no screen, how it announces a call: `[notify]`.

`aileron doctor --notify` tries that command.
"""

import json
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from examples.mailbox.server import Mailbox
from tests.support import server_harness
from tests.support.core_harness import writes
from tests.support.forked import forked
from tests.support.http_service import HttpRequest, http_server, reply
from tests.support.installing import ROOT
from tests.support.making import program
from tests.support.mcp_harness import RawRelay
from tests.support.processes import eventually
from tests.support.server_harness import CLI, DRAFT, Attended, Console, Serve, aileron, aileron_json
from tests.support.variants import variants


def test_daemon_json_says_where_it_is_and_no_secret(console: Console) -> None:
    file = console.home / "daemon.json"
    content = json.loads(file.read_text())
    assert set(content) == {"version", "url", "socket", "pid", "started_at"}
    assert content["version"] == 1
    assert content["url"] == console.url == f"http://127.0.0.1:{console.port}"
    assert content["socket"] == str(console.home / "run" / "console.sock")
    assert content["pid"] == console.process.pid
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", content["started_at"])
    for path in (file, console.home / "aileron.db", console.home / "audit.head"):
        assert path.stat().st_mode & 0o777 == 0o600
    for folder in (console.home, *(f for f in console.home.iterdir() if f.is_dir())):
        assert folder.stat().st_mode & 0o777 == 0o700, folder


@pytest.mark.parametrize("number", variants([signal.SIGTERM, signal.SIGINT, signal.SIGHUP]))
def test_a_signal_stops_it_in_order(serve: Serve, number: int) -> None:
    console = serve(accept=False)
    begun = time.monotonic()
    assert console.end(number) == 0
    assert time.monotonic() - begun < 30
    assert not (console.home / "run" / "console.sock").exists()
    assert not (console.home / "daemon.json").exists()
    assert console.records()[-1]["event"] == "console.stopped"


def test_what_is_held_open_does_not_keep_it(console: Console) -> None:
    opened = console.session()
    token = opened["token"]
    approval = console.run("send-draft", {"draft_id": DRAFT}, token).json["approval_id"]
    path = f"/v1/action-approvals/{approval}/result?wait=60"
    poll = console.connection()
    with console.hold(opened["session_id"]) as stream, console.hold(opened["session_id"]):
        poll.request("GET", path, headers={"Authorization": f"Bearer {token}"})
        assert poll.sock is not None
        mine = poll.sock.getsockname()[1]
        eventually(lambda: _has_read(console, mine), "the poll is there")
        begun = time.monotonic()
        assert console.end() == 0
        assert time.monotonic() - begun < 30
        assert stream.read() == b"\n", "the event before is whole, and nothing comes after"
    answer = poll.getresponse()
    assert (answer.status, json.loads(answer.read())["status"]) == (200, "pending_approval")
    poll.close()
    console.start()
    assert console.get("/v1/actions", token=token).status == 200, "draining ends no session"


def _has_read(console: Console, client: int) -> bool:
    """Say whether the console took the connection from port *client* and all that came over it."""
    for line in Path(f"/proc/{console.process.pid}/net/tcp").read_text().splitlines()[1:]:
        _, ours, theirs, _, queues, *_, inode = line.split()[:10]
        if ours.endswith(f":{console.port:04X}") and theirs.endswith(f":{client:04X}"):
            return inode != "0" and queues.endswith(":00000000")  # it has an inode once it is taken
    return False


def test_an_effect_in_flight_does_not_keep_it_long(attended: Attended, mailbox: Mailbox) -> None:
    token = attended.session()["token"]
    mailbox.control(hang="send")
    approval = attended.run("send-draft", {"draft_id": DRAFT}, token).json["approval_id"]
    attended.approve(approval)
    attended.state(approval, "executing")
    eventually(lambda: "POST send" in writes(mailbox), "it is out")
    assert attended.process.stdin is not None
    begun = time.monotonic()
    attended.process.stdin.close()
    assert attended.process.wait(60) == 0
    assert time.monotonic() - begun < 30
    attended.end()
    attended.start()
    attended.state(approval, "unknown")
    path = f"/v1/action-approvals/{approval}/result"
    assert attended.get(path, token=token).json["status"] == "unknown"


@pytest.mark.real
def test_the_first_port_is_taken_again(home: Path, serve: Serve) -> None:
    first = server_harness.quiet_port()
    (home / "config.toml").write_text(f'[server]\nlisten = "127.0.0.1:{first}"\n')
    console = serve(accept=False)
    assert console.port == first
    (home / "config.toml").unlink()
    for number in (signal.SIGTERM, signal.SIGKILL):
        console.end(number)
        console.start()
        assert console.port == first
    console.end()
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind(("127.0.0.1", first))
        other.listen()
        console.start()
        assert console.port != first
        assert json.loads((console.home / "daemon.json").read_text())["url"] == console.url
        assert console.get("/v1/health").status == 200
        console.end()
    console.start()
    assert console.port == first


def test_a_route_to_anywhere_else_is_a_usage_error(home: Path) -> None:
    wrong = ("x", "a:1=0.0.0.0:1", "a:1=127.0.0.1", "a:1=evil.example:1", "a:1=127.0.0.1:99999")
    for route in wrong:
        assert "--route" in aileron("serve", "--route", route, home=home, code=2).stderr


def test_it_says_at_start_what_it_accepted_and_where_it_leads(console: Console) -> None:
    started = console.records()[0]
    assert started["event"] == "console.started"
    assert started["accept_installed"] is True
    assert any("gmail.googleapis.com:443" in route for route in started["routes"])
    taken = [each["by"] for each in console.records() if each["event"] == "library.accepted"]
    assert taken == ["--accept-installed"] * 4
    console.end()
    command = [*CLI, "serve", "--home", str(console.home), "--accept-installed"]
    command += ["--route", "gmail.googleapis.com:443=127.0.0.1:9"]
    with forked(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(3)]
        process.terminate()
        assert process.wait(60) == 0
    assert "Nobody can approve" in lines[0]
    assert "gmail.googleapis.com:443 is answered by 127.0.0.1:9, without a credential" in lines[1]
    assert "were accepted without review (--accept-installed)" in lines[2]


def test_a_removed_file_counts_no_more_within_a_second(console: Console) -> None:
    token = console.session()["token"]
    file = console.home / "actions" / "list-drafts.md"
    relay = RawRelay(console.home, AILERON_TOKEN=token)
    relay.handshake()

    def tools(number: int) -> set[str]:
        relay.send("tools/list", number)
        return {tool["name"] for tool in relay.answer(number)["result"]["tools"]}

    assert "list_drafts" in tools(1)
    file.unlink()
    changed = time.monotonic()
    eventually(lambda: console.get("/v1/actions/list-drafts", token=token).status == 404, "gone")
    # The promise is one second; a busy machine takes longer, and one that never looks fails.
    assert time.monotonic() - changed < 30
    while (news := relay.read()).get("method") != "notifications/tools/list_changed":
        pass
    assert "id" not in news
    assert time.monotonic() - changed < 30
    assert "list_drafts" not in tools(2)
    assert relay.end() == (0, "")
    answer = console.run("list-drafts", {}, token)
    assert (answer.status, answer.error["class"]) == (404, "not_found")


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
