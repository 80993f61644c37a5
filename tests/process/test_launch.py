"""`aileron launch`: with `--augment` a program of one's own, and with a vault no settings that nobody verified.

Of a session that is said to be contained: what the console makes of who comes as it, and of the hosts
that its sandbox refused.
"""

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from aileron_core.audit.events import AuditEvent
from aileron_core.ids import is_placeholder
from aileron_core.launch.augmented import augmented_environment
from aileron_core.launch.interfaces import LaunchedSession
from tests.support.http_service import HttpRequest, http_server, reply
from tests.support.meeting import ROOT as BOX
from tests.support.server_harness import DRAFT, Attended, Console, Serve, aileron, eventually
from tests.support.variants import needs_bubblewrap
from tests.support.vaults import PHRASE, make_vault


def test_only_a_launcher_opens_a_session_in_augment_mode(shared: Console) -> None:
    """As other flags that say what somebody else vouches for. An address of its own never gets a key of the vault."""
    asked: dict[str, Any] = {"agent": "a", "cwd": "/tmp", "augment": True}
    refused = shared.post("/v1/sessions", asked, local=True)
    assert refused.status == 400
    assert "`augment` is only allowed together with `launched`" in refused.error["message"]
    asked["launched"] = True
    assert shared.post("/v1/sessions", asked, local=True).status == 201
    url = "http://127.0.0.1:1/v1"
    for more in (
        {"base_url": url, "key_providers": ["openai"]},
        {"base_url": url, "augment": False},
        {"base_url": "http://me@127.0.0.1:1"},
        {"base_url": "file:///etc/passwd"},
    ):
        refused = shared.post("/v1/sessions", {**asked, **more}, local=True)
        assert refused.status == 400
        assert "'base_url' is a base URL" in refused.error["message"]
    assert shared.post("/v1/sessions", {**asked, "base_url": url}, local=True).status == 201


def test_what_means_nothing_with_augment_is_refused(home: Path) -> None:
    done = aileron("launch", "--sandbox=offline", "--augment", "python3", home=home, code=2)
    assert "--sandbox has no effect with --augment" in done.stderr
    done = aileron("launch", "--augment", "no-such-program-here", home=home, code=None)
    assert "There is no program 'no-such-program-here'" in done.stderr
    done = aileron("launch", "no-such-agent", home=home, code=2)
    assert "is not one of" in done.stderr
    assert "`aileron launch --augment PROGRAM`" in done.stderr
    done = aileron("launch", "--augment", home=home, code=2)
    assert "Name a program after --augment." in done.stderr


def test_a_program_gets_placeholders_for_the_keys_in_the_vault_and_keeps_its_own() -> None:
    """A token beside the placeholder would go before it."""
    placeholder = "x-aileron-placeholder"
    session = LaunchedSession(
        session_id="ses-1", token="t", gateway_token="g", url="http://127.0.0.1:9", socket=None,
        placeholder=placeholder, key_providers=("anthropic",),
    )  # fmt: skip
    mine = {
        "OPENAI_API_KEY": "mine", "ANTHROPIC_API_KEY": "old", "ANTHROPIC_AUTH_TOKEN": "old",
        "HTTP_PROXY": "http://proxy", "AILERON_TOKEN": "not for it", "PATH": os.environ["PATH"],
    }  # fmt: skip
    given = augmented_environment(mine, session)
    assert is_placeholder(given["ANTHROPIC_API_KEY"])
    assert given["OPENAI_API_KEY"] == "mine"
    assert given["OPENAI_BASE_URL"] == "http://127.0.0.1:9/gw/g/v1"
    assert given["ANTHROPIC_BASE_URL"] == "http://127.0.0.1:9/gw/g"
    assert given["no_proxy"] == "127.0.0.1"
    assert not {"ANTHROPIC_AUTH_TOKEN", "AILERON_TOKEN"} & given.keys()


MINE = '[launch.codex]\nargs = ["--mine"]\n'
REFUSED = "config.toml has settings for this launch"


def launch_codex(home: Path, *options: str) -> str:
    return aileron("launch", "codex", *options, home=home, code=None).stderr


def test_a_launch_is_refused_until_its_settings_have_verified(home: Path, serve: Serve) -> None:
    config = home / "config.toml"
    config.write_text(MINE, encoding="utf-8")
    make_vault(home, PHRASE)
    console = serve(accept=False)
    assert REFUSED in launch_codex(home)
    assert console.unlock(PHRASE).status == 200
    assert REFUSED not in launch_codex(home)
    config.write_text(MINE.replace("--mine", "--its-own"), encoding="utf-8")
    assert REFUSED in launch_codex(home)
    config.write_text('[launch]\nhosts = ["github.com"]\n', encoding="utf-8")
    assert REFUSED in launch_codex(home, "--sandbox=hosts")
    assert REFUSED not in launch_codex(home)
    config.write_text("", encoding="utf-8")
    assert REFUSED not in launch_codex(home, "--sandbox=hosts")


def test_a_path_that_is_hidden_no_more_is_a_change_like_others(home: Path, serve: Serve) -> None:
    """A program that takes the line away, and its copy with it, gains nothing."""
    config = home / "config.toml"
    config.write_text('[launch]\nhide = [".env"]\n', encoding="utf-8")
    make_vault(home, PHRASE)
    console = serve(accept=False)
    assert REFUSED in launch_codex(home)
    assert console.unlock(PHRASE).status == 200
    assert REFUSED not in launch_codex(home)
    config.write_text("", encoding="utf-8")
    assert REFUSED in launch_codex(home)
    (home / "store" / "accepted-config.toml").unlink()
    assert REFUSED in launch_codex(home)


def test_nothing_is_fetched_from_a_mirror_that_is_not_verified(home: Path, serve: Serve) -> None:
    config = home / "config.toml"
    config.write_text('[store]\nmirror = "https://files.example"\n', encoding="utf-8")
    make_vault(home, PHRASE)
    asked: list[str] = []

    def answer(request: HttpRequest, _body: bytes) -> None:
        asked.append(request.path)
        reply(request, 404, b"", {})

    with http_server(answer) as server:
        place = f"127.0.0.1:{server.server_address[1]}"

        def add() -> str:
            routes = ("--route", f"files.example:443={place}", "--route", f"github.com:443={place}")
            source = "github://owner/repo"
            return aileron("action", "add", *routes, source, home=home, code=None).stderr

        assert "No console" in add()
        console = serve(accept=False)
        assert "names a mirror, and is not verified" in add()
        assert console.unlock(PHRASE).status == 200
        assert asked == []
        assert "has no release" in add()
        assert asked.pop() == "/owner/repo/latest"
        config.write_text('[store]\nmirror = "https://files.example/evil"\n', encoding="utf-8")
        assert "names a mirror, and is not verified" in add()
        assert asked == []
        config.write_text("", encoding="utf-8")
        assert "has no release" in add()
        assert asked == ["/owner/repo/releases/latest"]


ASKS = (
    "import http.client, json, socket, sys\n"
    "to = http.client.HTTPConnection('x')\n"
    "to.sock = socket.socket(socket.AF_UNIX)\n"
    "to.sock.connect(sys.argv[1])\n"
    "body = json.dumps({'args': {'draft_id': sys.argv[2]}})\n"
    "to.request('POST', '/v1/actions/send-draft/run', body, {'Content-Type': 'application/json'})\n"
    "print(to.getresponse().read().decode())\n"
)


def asks(session: Mapping[str, Any], draft: str, *, contained: bool) -> str:
    path = session["socket"]
    command = ["/usr/bin/python3", "-I", "-c", ASKS, path, draft]
    if contained:
        folder = str(Path(path).parent)
        shown = ("--ro-bind", folder, "/run/aileron")
        command = [*BOX, "--unshare-all", *shown, *command[:-2], "/run/aileron/s.sock", draft]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return str(json.loads(done.stdout)["approval_id"])


def draws_as(console: Attended, approval: str, containment: str) -> None:
    views = console.views
    assert console.until(lambda: views.get(approval, {}).get("containment") == containment), views


@needs_bubblewrap
def test_one_process_outside_is_enough_for_the_sessions_life(attended: Attended) -> None:
    session = attended.session(launched=True, contained=True)
    first = asks(session, DRAFT, contained=True)
    draws_as(attended, first, "verified")
    second = asks(session, "r-2", contained=False)
    draws_as(attended, second, "none")
    draws_as(attended, first, "none")

    def outside() -> list[str]:
        return [r["session"] for r in attended.records() if r["event"] == "session.seen_outside"]

    eventually(lambda: outside() == [session["session_id"]], "it was seen outside")
    attended.end()
    attended.start()
    third = asks(session, "r-3", contained=True)
    draws_as(attended, third, "none")
    assert len(outside()) == 1
    # A token that comes another way: over TCP nothing of the sender is seen, over the home's socket that it sees the home.
    other = attended.session(launched=True, contained=True)
    draws_as(attended, asks(other, DRAFT, contained=True), "verified")
    path, token = "/v1/actions/send-draft/run", other["token"]
    answer = attended.post(path, {"args": {"draft_id": "r-2"}}, token=token)
    draws_as(attended, answer.json["approval_id"], "claimed")
    attended.post(path, {"args": {"draft_id": "r-3"}}, token=token, local=True)
    draws_as(attended, answer.json["approval_id"], "none")


HOST, OTHER, META = "registry.example:443", "telemetry.example:443", "meta.example:443"


def report_host(console: Attended, session: str, host: str, problem: str = "", **more: Any) -> int:
    body = {"host": host, "problem": problem}
    return console.post(f"/v1/sessions/{session}/refused-hosts", body, **more).status


def host_events(console: Attended) -> list[tuple[str, str]]:
    records = [each for each in console.records() if each["event"].startswith("session.host_")]
    return [(each["event"], each["host"]) for each in records]


def refused_hosts(console: Attended, session: str, count: int) -> bool:
    return console.until(lambda: len(console.hosts.get(session, {}).get("refused", ())) == count)


def test_a_person_allows_a_refused_host_and_the_launcher_learns_it(attended: Attended) -> None:
    session = attended.session(launched=True, contained=True)
    name, token = session["session_id"], session["token"]
    with attended.hold(name) as held:
        assert report_host(attended, name, HOST, local=True) == 204
        assert report_host(attended, name, HOST, local=True) == 204
        why = "it leads to metadata"
        assert report_host(attended, name, META, why, local=True) == 204
        assert refused_hosts(attended, name, 2)
        for host in (OTHER, META):
            attended.tell(session=name, allow_host=host)
        assert attended.until(lambda: len(attended.refusals) == 2)
        attended.tell(session=name, allow_host=HOST)
        assert attended.until(lambda: attended.hosts[name]["allowed"] == [HOST])
        assert held.readline() == b"\n"
        assert held.readline() == f"data: {HOST}\n".encode()
    refused, allowed = "session.host_refused", "session.host_allowed"
    assert host_events(attended) == [(refused, HOST), (refused, META), (allowed, HOST)]
    assert AuditEvent.SESSION_HOST_ALLOWED.actor == "person"
    # The agent itself can neither report a host nor allow one.
    assert report_host(attended, name, OTHER, token=token) == 403
    assert report_host(attended, name, OTHER) == 401
    assert report_host(attended, "ses-00000000000000000000000009", OTHER, local=True) == 404
    # A console that starts again knows it, from its records, and the launcher gets it with its new hold.
    attended.end()
    attended.start()
    assert attended.until(lambda: attended.hosts.get(name, {}).get("allowed") == [HOST])
    assert attended.hosts[name]["refused"] == {META: why}
    with attended.hold(name) as held:
        assert held.readline() == b"\n"
        assert held.readline() == f"data: {HOST}\n".encode()
    assert attended.post(f"/v1/sessions/{name}/end", {}, local=True).status == 204
    attended.tell(session=name, allow_host=META)
    assert attended.until(lambda: bool(attended.refusals))
    assert len(host_events(attended)) == 3


def test_a_flood_of_names_is_bounded_and_only_plain_ones_can_be_allowed(attended: Attended) -> None:
    name = attended.session(launched=True, contained=True)["session_id"]
    hostile = "a\x1b[31m:443"
    wrong = ("E.example:443", "a b:443", "a.example", "a.example:0", "b\u0430nk.example:443")
    for host in (hostile, *wrong):
        assert report_host(attended, name, host, local=True) == 400
    assert report_host(attended, name, hostile, "it is not a host name", local=True) == 204
    for number in range(70):
        assert report_host(attended, name, f"host-{number}.example:443", local=True) == 204
    eventually(lambda: len(host_events(attended)) == 64, "64 records")
    assert refused_hosts(attended, name, 64)
