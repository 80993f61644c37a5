"""The `aileron` command: its exit codes, its JSON, its sentences; and what a console logs."""

import json
import os
import re
import signal
import subprocess
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from aileron_core.console.device_service import LINK_KEY
from aileron_tui.pages.keymap import DEFAULT_REGISTRY
from examples.mailbox.server import Mailbox
from tests.support.forked import forked, run_forked
from tests.support.installing import ROOT
from tests.support.making import program
from tests.support.processes import eventually
from tests.support.server_harness import CLI, DRAFT, Attended, Console, Serve, aileron, aileron_json

EXAMPLES = ROOT / "examples"
SEND = ("action", "run", "send-draft", "--arg", f"draft_id={DRAFT}")
APPROVAL = "act-20260101T000000-0123456789abcdef"


def test_without_a_console_it_is_69(home: Path) -> None:
    for words in (("status",), ("action", "run", "x"), ("open", "approval", APPROVAL)):
        done = aileron(*words, home=home, code=69)
        assert "aileron console" in done.stderr
        assert done.stderr.count("\n") == 1
        body = aileron_json(*words, home=home, code=69)
        assert body.get("running") is False or body["error"]["class"] == "unavailable"


def test_status_says_how_it_is_and_a_person_reads_local_time(console: Console) -> None:
    token = console.session()["token"]
    console.run("send-draft", {"draft_id": DRAFT}, token)
    found = aileron_json("status", home=console.home)
    (waiting,) = found.pop("waiting")
    assert (waiting["action"], waiting["agent"]) == ("send-draft", "test")
    assert waiting["requested_at"].endswith("Z")
    assert found.pop("unknown") == []
    assert found.pop("account_needs") == []
    assert (found.pop("vault"), found.pop("unattended")) == ("absent", False)
    assert found == {
        "running": True, "url": console.url, "pid": console.process.pid,
        "version": aileron_json("version", home=console.home)["version"], "pending": 1,
        "sessions": 1, "devices": [], "link_key": "O",
    }  # fmt: skip
    absent = aileron_json("status", home=console.home.parent / "none", code=69)
    assert set(absent) == {*found, "waiting", "unknown", "account_needs", "vault", "unattended"}
    told = aileron("status", home=console.home, env={"TZ": "UTC-2"}).stdout
    assert "1 call is waiting" in told
    assert f"{waiting['approval_id']}  send-draft, requested by test at " in told
    assert _two_hours_later(waiting["expires_at"]) in told
    aileron("action", "run", "list-drafts", home=console.home)
    for words in (("audit", "list"), ("logs",)):
        (last,) = aileron_json(*words, "-n", "1", home=console.home)["items"]
        assert last["at"].endswith("Z")
        told = aileron(*words, "--limit", "1", home=console.home, env={"TZ": "UTC-2"}).stdout
        assert _two_hours_later(last["at"]) in told
        assert last["at"] not in told


def _two_hours_later(text: str) -> str:
    moment = datetime.fromisoformat(text) + timedelta(hours=2)
    return f"{moment:%Y-%m-%d %H:%M:%S}"


def test_a_name_or_id_that_is_almost_right_is_told_the_nearest(console: Console) -> None:
    pending = aileron_json(*SEND, home=console.home, code=75)
    run, approval = pending["audit_id"], pending["approval_id"]
    for words, meant in (
        (("action", "run", "list-draft"), "list-drafts"),
        (("action", "remove", "sned-draft"), "send-draft"),
        (("connector", "remove", "mial-drafts"), "mail-drafts"),
        (("audit", "show", run[:-1]), run),
        (("audit", "show", approval[:-1]), approval),
        (("open", "approval", approval[:-1]), approval),
    ):
        for told in (
            aileron(*words, home=console.home, code=None).stderr,
            aileron_json(*words, home=console.home, code=None)["error"]["message"],
        ):
            assert f"Did you mean {meant}?" in told
    told = aileron("audit", "show", "nothing", home=console.home, code=1).stderr
    assert "Did you mean" not in told


def test_a_run_that_waits_is_75(console: Console) -> None:
    """On stderr, before it waits: for what, and where. Whoever typed it may not know that somebody has to answer."""
    body = aileron_json(*SEND, home=console.home, code=75)
    assert set(body) == {
        "status", "approval_id", "review_url", "message", "audit_id", "expires_at", "waits_for",
    }  # fmt: skip
    assert aileron(*SEND, home=console.home, code=75).stderr == ""
    done = aileron(*SEND, "--wait", "0.2", home=console.home, code=75)
    assert "is waiting for a person's approval" in done.stdout
    for said in ("send-draft (act-", str(console.home), console.url, "up to 0.2 s"):
        assert said in done.stderr
    assert done.stderr.count("\n") == 1


def test_home_comes_from_option_or_environment(shared: Console) -> None:
    """Before the command's name too; the option goes first."""
    home, nowhere = str(shared.home), str(shared.home.parent / "nowhere")
    for arguments, environment, code in (
        (["status"], home, 0),
        (["status"], nowhere, 69),
        (["status", "--home", home], nowhere, 0),
        (["--home", home, "status"], nowhere, 0),
        (["--home", nowhere, "status", "--home", home], nowhere, 0),
        (["--home", nowhere, "action", "--home", home, "list"], nowhere, 0),
    ):
        env = {**os.environ, "AILERON_HOME": environment}
        assert run_forked([*CLI, *arguments], env=env).returncode == code, arguments
    done = run_forked([*CLI, "--json", "status"], env={**os.environ, "AILERON_HOME": home})
    assert json.loads(done.stdout)["running"] is True


def test_what_there_is_not_is_said_to_be_not_found(shared: Console) -> None:
    """One class for it in every command: another try does not help."""
    for kind in ("action run", "audit show", "action remove", "connector remove", "action add"):
        error = aileron_json(*kind.split(), "nope", home=shared.home, code=1)["error"]
        assert (error["class"], error["retriable"]) == ("not_found", False)
        assert "nope" in error["message"]


def test_adding_listing_and_removing_actions(tmp_path: Path) -> None:
    home = tmp_path / "home"
    added = aileron_json("action", "add", str(EXAMPLES / "actions"), home=home)
    assert [item["did"] for item in added["items"]] == ["added"] * 3
    again = aileron_json("action", "add", str(EXAMPLES / "actions" / "get-draft.md"), home=home)
    assert [item["did"] for item in again["items"]] == ["unchanged"]
    items = aileron_json("action", "list", home=home)["items"]
    assert [item["name"] for item in items] == ["get-draft", "list-drafts", "send-draft"]
    for item in items:
        assert set(item) == {
            "name", "tool", "version", "gated", "preview", "connector", "state", "problems",
            "offered", "tool_bytes", "cannot_run", "needs_account", "is_update",
        }  # fmt: skip
        assert item["state"] == "held_back"
    assert [(item["gated"], item["preview"]) for item in items] == [(False, False)] * 2 + [(True, True)]  # fmt: skip
    removed = aileron_json("action", "remove", "get-draft", home=home)
    assert removed == {"removed": "get-draft.md"}
    assert not (home / "actions" / "get-draft.md").exists()
    secret = tmp_path / "secret.md"
    secret.write_text("keep")
    for name in ("get-draft", "../secret", "/etc/passwd", "actions/../../secret.md", "."):
        aileron("action", "remove", name, home=home, code=1)
    assert secret.exists()
    assert (home / "actions").stat().st_mode & 0o777 == 0o700
    assert (home / "actions" / "list-drafts.md").stat().st_mode & 0o777 == 0o600


def test_an_ungated_run_takes_words_or_json(console: Console, tmp_path: Path) -> None:
    """Whether the command line or the gate refuses them; no session is left open, nor its token in a file."""
    run = ("action", "run", "get-draft")
    done = aileron(*run, "--arg", f"id={DRAFT}", home=console.home)
    assert json.loads(done.stdout)["id"] == DRAFT
    body = aileron_json("action", "run", "list-drafts", "--arg", "max_results=2", home=console.home)
    assert set(body) == {"status", "audit_id", "output"}
    assert len(body["output"]["drafts"]) == 2
    file, text = tmp_path / "args.json", json.dumps({"id": DRAFT})
    file.write_text(text)
    for given in (text, f"@{file}", "-"):
        body = aileron_json(*run, "--args", given, home=console.home, stdin=text)
        assert body["output"]["id"] == DRAFT
    for wrong in (
        ("--args", "[]"), ("--args", "{"), ("--args", "@/nonexistent"), ("--arg", "id"),
        ("--args", "{}", "--arg", "id=x"), ("--args", "{}"), ("--arg", "nope=1"),
        ("--args", '{"id": 5}'),
    ):  # fmt: skip
        done = aileron(*run, *wrong, home=console.home, code=2)
        assert done.stderr.startswith("aileron: ")
    assert aileron_json("status", home=console.home)["sessions"] == 0
    events = [each["event"] for each in console.records()]
    assert events.count("session.opened") == events.count("session.ended") >= 5


def test_an_unaccepted_action_is_a_conflict(serve: Serve, mailbox: Mailbox) -> None:
    console = serve(mailbox, accept=False)
    error = aileron_json("action", "run", "list-drafts", home=console.home, code=1)["error"]
    assert (error["class"], error["details"]) == ("conflict", {"outcome": "held_back"})
    assert "accept" in aileron("action", "run", "list-drafts", home=console.home, code=1).stderr
    assert mailbox.state()["requests"] == []


def run_waiting(home: Path, *more: str) -> "subprocess.Popen[str]":
    command = [*CLI, *SEND, "--wait", "60", "--home", str(home), *more]
    return forked(command, stdout=-1, stderr=-1, text=True)


def ended_as(run: "subprocess.Popen[str]") -> tuple[int, str, str]:
    out, err = run.communicate(timeout=30)
    return run.returncode, out, err


def waiting_approval(attended: Attended) -> str:
    views = attended.views
    attended.until(lambda: any(v["state"] == "pending" and v["digest"] for v in views.values()))
    return next(i for i, view in views.items() if view["state"] == "pending")


def test_a_run_ends_with_0_76_1_130_or_69(attended: Attended, mailbox: Mailbox) -> None:
    run = run_waiting(attended.home, "--json")
    approval = waiting_approval(attended)
    attended.approve(approval)
    code, out, err = ended_as(run)
    assert (code, err) == (0, "")
    body = json.loads(out)
    assert body["status"] == "completed"
    assert len(body["digest_words"]) == 3
    assert len(mailbox.state()["sent"]) == 1
    assert attended.state(approval, "completed")

    run = run_waiting(attended.home)
    approval = waiting_approval(attended)
    attended.tell(deny=approval, reason="wrong \x1b[31mperson")
    code, out, err = ended_as(run)
    assert code == 76
    assert re.search(r"^aileron: \w+ · \w+ · \w+, as in the console$", err, re.MULTILINE)
    assert "wrong" in out
    assert "\x1b" not in out + err
    assert attended.state(approval, "denied")

    mailbox.control(fail={"op": "send", "status": 400})
    run = run_waiting(attended.home)
    approval = waiting_approval(attended)
    attended.approve(approval)
    code, out, _ = ended_as(run)
    assert (code, "Failed" in out) == (1, True)
    assert attended.state(approval, "failed")

    # Ctrl-C ends the command and its session; a person may still answer.
    run = run_waiting(attended.home)
    approval = waiting_approval(attended)
    asked = [each["event"] for each in attended.records()].count("run.requested")
    assert asked == 4
    run.send_signal(signal.SIGINT)
    code, _, err = ended_as(run)
    assert code == 130
    assert "Traceback" not in err
    attended.until(lambda: attended.views[approval]["requester_gone"])
    assert attended.views[approval]["state"] == "pending"
    attended.tell(deny=approval, reason="")
    assert attended.state(approval, "denied")

    run = run_waiting(attended.home)
    waiting_approval(attended)
    attended.end(signal.SIGKILL)
    code, out, err = ended_as(run)
    assert (code, out) == (69, "")
    assert err.count("\n") == 2
    assert "is waiting for a person's approval" in err.partition("\n")[0]


def test_connectors_are_installed_and_listed(tmp_path: Path) -> None:
    home, source = tmp_path / "home", EXAMPLES / "connectors" / "mail-drafts"
    installed = aileron_json("connector", "install", str(source), home=home)
    assert installed["name"] == "local://aileron/mail-drafts"
    (item,) = aileron_json("connector", "list", home=home)["items"]
    assert item == {**installed, "state": "held_back"}
    assert re.fullmatch(r"sha256:[0-9a-f]{64}", item["hash"])
    for bad in (tmp_path / "none", EXAMPLES / "actions"):
        done = aileron("connector", "install", str(bad), home=home, code=1)
        assert done.stderr.startswith("aileron: ")


def test_the_audit_is_read_with_and_without_a_console(console: Console) -> None:
    ran = aileron_json("action", "run", "list-drafts", home=console.home)["audit_id"]
    pending = aileron_json(*SEND, home=console.home, code=75)
    eventually(lambda: "preview.fetched" in [each["event"] for each in console.records()])
    for running in (True, False):
        items = aileron_json("audit", "list", home=console.home)["items"]
        assert [item["seq"] for item in items] == list(range(1, len(items) + 1))
        for item in items:
            assert set(item) == {
                "seq", "at", "event", "run", "session", "action", "actor", "summary",
            }  # fmt: skip
        limited = aileron_json("audit", "list", "--limit", "2", home=console.home)["items"]
        assert limited == items[-2:]
        shown = aileron_json("audit", "show", ran, home=console.home)["items"]
        assert [each["event"] for each in shown] == ["run.started", "run.completed"]
        shown = aileron_json("audit", "show", pending["approval_id"], home=console.home)["items"]
        assert {each["run"] for each in shown} == {pending["audit_id"]}
        report = aileron_json("audit", "verify", home=console.home)
        assert (report["ok"], report["problems"]) == (True, [])
        assert re.fullmatch("[0-9a-f]{64}", report["head"])
        assert report["records"] >= len(items)
        if running:
            assert console.end() == 0
    aileron("audit", "show", "run-" + "0" * 26, home=console.home, code=1)
    assert "no gaps" in aileron("audit", "verify", home=console.home).stdout


def test_a_broken_home_is_a_sentence(tmp_path: Path) -> None:
    """A database that is none, a file where a folder should be: exit 1, never a traceback."""
    home = tmp_path / "home"
    home.mkdir()
    (home / "actions").write_text("a file")
    assert "aileron console" in aileron("audit", "list", home=home, code=1).stderr
    (home / "aileron.db").write_bytes(b"SQLite format 3\x00" + b"\xff" * 5000)
    for words in ("audit list", "action list", "audit verify", "audit show x"):
        done = aileron(*words.split(), home=home, code=1)
        assert done.stderr.startswith("aileron: ")
        assert done.stderr.count("\n") == 1
        assert aileron_json(*words.split(), home=home, code=1)["error"]["message"]


def test_a_reader_that_goes_away_is_no_fault_of_ours(console: Console) -> None:
    """`aileron audit list | head -1` says nothing of pipes."""
    read, write = os.pipe()
    os.close(read)
    command = [*CLI, "audit", "list", "--home", str(console.home)]
    done = subprocess.run(command, stdout=write, stderr=-1, text=True, check=False, timeout=30)
    os.close(write)
    assert "Traceback" not in done.stderr
    assert "fault" not in done.stderr


def test_a_browser_is_handed_the_consoles_page(home: Path, serve: Serve, mailbox: Mailbox) -> None:
    """The key that pairs a browser is named as the person set it: to the agent, here, and on the page."""
    (home / "config.toml").write_text('[console.keys]\nopen_review = "f9"\n')
    assert DEFAULT_REGISTRY.key_label("open_review") == LINK_KEY
    console, folder, seen = serve(mailbox), home.parent / "bin", home.parent / "seen"
    for name in ("xdg-open", "www-browser", "w3m", "lynx"):
        program(folder / name, f'#!/bin/sh\nprintf "%s\\n" {name} "$#" "$1" > {seen}\n')
    path = {"PATH": f"{folder}:{os.environ['PATH']}"}
    graphical = path | {"DISPLAY": ":0"}
    upper = APPROVAL.replace("abcdef", "ABCDEF")
    for bad in ("https://evil.example", f"{APPROVAL};id", "x", "../etc", upper):
        done = aileron("open", "approval", bad, home=home, code=2, env=graphical)
        assert "act-" in done.stderr
    # A browser in the terminal would take the agent's, or the console's, place.
    without = path | {"DISPLAY": "", "WAYLAND_DISPLAY": "", "BROWSER": str(folder / "www-browser")}
    done = aileron("open", "approval", APPROVAL, home=home, env=without)
    assert "There is no graphical browser here." in done.stdout
    assert "press f9 on the call in the console" in done.stdout
    assert not seen.exists()

    answer = console.run("send-draft", {"draft_id": DRAFT}, console.session()["token"]).json
    assert "where the key f9 lets a browser decide" in answer["message"]
    opened = ("open", "approval", answer["approval_id"])
    url = f"{console.url}/review/{answer['approval_id']}"
    assert aileron_json(*opened, home=home, env=graphical) == {"url": url, "opened": True}
    assert seen.read_text().splitlines() == ["xdg-open", "1", url]
    told = aileron(*opened, home=home, env=graphical).stdout
    assert "press f9 on the call in the console" in told
    page = httpx.get(answer["review_url"])
    assert 'data-key="f9"' in page.text
    assert "LINK_KEY" not in page.text
    assert "<form" not in page.text
    assert page.headers["referrer-policy"] == "no-referrer"


def test_the_doctor_names_what_is_not_contained(home: Path, serve: Serve) -> None:
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
    # A missing agent fails only if it was asked for.
    nothing = {"PATH": f"/usr/bin{os.pathsep}/bin", "HOME": str(home.parent)}
    done = aileron("doctor", "codex", home=home, code=1, env=nothing)
    assert "Codex is not installed. Run npm install -g @openai/codex." in done.stdout
    assert "Not controlled by Aileron:" in done.stdout
    goose = aileron("doctor", "goose", home=home, code=1, env=nothing).stdout
    assert "Goose is not installed. Run curl -fsSL https://github.com/aaif-goose/goose/" in goose
    said = aileron_json("doctor", home=home, code=None, env=nothing)
    assert said["ok"] == all(each["level"] != "broken" for each in said["findings"])


ACTIONS = EXAMPLES / "actions"


@pytest.fixture
def checked_folder(tmp_path: Path) -> Path:
    path, strict = tmp_path / "files", (ACTIONS / "get-draft.md").read_bytes()
    path.mkdir()
    for name, data in {
        "good": strict,
        "lenient": strict.replace(b'type = "string"', b'type = "String"'),
        "broken": b"+++\nname = \n+++\n",
        "no-action": b"+++\n+++\n",
        "binary": b"\xff\xfe\x00",
    }.items():
        (path / f"{name}.md").write_bytes(data)
    (path / "folder.md").mkdir()
    (path / "dangling.md").symlink_to(path / "nowhere.md")
    os.mkfifo(path / "pipe.md")
    (path / "README.md").write_text("not an action")
    (path / "NAME").mkdir()
    (path / "NAME" / "action.md").write_bytes(strict)
    return path


def check(path: Path | str, *options: str, home: Path, code: int = 0) -> dict[str, Any]:
    return aileron_json("action", "check", str(path), *options, home=home, code=code)


def said_of(path: Path, home: Path, code: int = 0) -> str:
    return aileron("action", "check", str(path), home=home, code=code).stdout


def test_good_files_are_0_and_a_path_that_leads_nowhere_is_2(tmp_path: Path) -> None:
    absent = tmp_path / "home"
    assert check(ACTIONS, home=absent) == {"files": 3, "ok": True, "problems": []}
    assert said_of(ACTIONS, absent).endswith("3 files checked: 0 errors, 0 warnings.\n")
    (tmp_path / "void").mkdir()
    for bad in ("nowhere.md", "void"):
        done = aileron("action", "check", str(tmp_path / bad), home=absent, code=2)
        assert done.stderr.startswith("aileron: ")
        assert done.stderr.count("\n") == 1
    aileron("action", "check", home=absent, code=2)
    assert not absent.exists()


def test_a_folder_whose_previews_break_a_rule_is_warned_of(tmp_path: Path, home: Path) -> None:
    """Which rules there are, tests/core/releases/test_rules.py proves; of one file alone nobody knows."""
    send = tmp_path / "send-draft.md"
    data = (ACTIONS / send.name).read_bytes()
    send.write_bytes(re.sub(rb"sha256:[0-9a-f]{64}", b"sha256:bound-at-release", data))
    said = said_of(tmp_path, home)
    assert "send-draft.md:" in said
    assert "must be declared idempotent = true" in said
    assert said.endswith("1 file checked: 0 errors, 1 warning.\n")
    assert check(send, home=home)["problems"] == []


def test_one_bad_file_never_hides_the_others(checked_folder: Path, home: Path) -> None:
    """Warnings alone are 0: what runs here is no failure, unless the question was whether it runs elsewhere."""
    body = check(checked_folder, home=home, code=1)
    assert (body["files"], body["ok"]) == (9, False)
    found: dict[str, list[dict[str, Any]]] = {}
    for problem in body["problems"]:
        assert set(problem) == {
            "file", "line", "column", "key", "severity", "class", "message",
        }  # fmt: skip
        found.setdefault(Path(problem["file"]).stem, []).append(problem)
    bad = {"broken", "no-action", "binary", "folder", "dangling", "pipe"}
    assert set(found) == {"lenient", *bad}
    assert [problem["severity"] for problem in found["lenient"]] == ["warning"]
    assert len(found["no-action"]) == 6
    (broken,) = found["broken"]
    assert (broken["line"], broken["class"]) == (2, "parse_error")
    text = said_of(checked_folder, home, 1)
    assert f"✗ {checked_folder}/broken.md:2:" in text
    assert f"! {checked_folder}/lenient.md:" in text
    assert text.endswith(", 1 warning.\n")

    lenient = checked_folder / "lenient.md"
    assert check(lenient, home=home)["ok"] is True
    error, warning = check(lenient, "--portable", home=home, code=1)["problems"]
    assert (error["class"], error["severity"]) == ("portability", "error")
    assert (warning["class"], warning["severity"]) == ("leniency", "warning")
    assert error["key"] == "inputs[0].type"
    assert check(checked_folder / "good.md", "--portable", home=home)["problems"] == []


def test_arguments_and_previews_are_not_in_the_log(console: Console) -> None:
    waiting = aileron_json(*SEND, home=console.home, code=75)
    aileron("action", "run", "get-draft", "--arg", f"id={DRAFT}", home=console.home)
    previewed = {"preview.fetched", "run.completed"}
    eventually(lambda: previewed <= {record["event"] for record in console.records()})
    items = aileron_json("logs", "-n", "1000", home=console.home)["items"]
    recorded = {item["seq"]: item["event"] for item in items if "seq" in item}
    assert recorded == {record["seq"]: record["event"] for record in console.records()}
    asked = next(item for item in items if item.get("event") == "run.requested")
    assert (asked["run"], asked["action"]) == (waiting["audit_id"], "send-draft")
    (started,) = (item for item in items if "started" in item["message"])
    assert f"process {console.process.pid} at {console.url}" in started["message"]
    token, marker = console.session()["token"], "zebra-crossing-41"
    console.run("list-drafts", {"query": marker}, token)
    console.run("get-draft", {"id": marker}, token)
    for args in ({"draft_id": marker}, {marker: marker}):
        console.run("send-draft", args, token)
    assert console.end() == 0
    log = console.home / "log" / "aileron.log"
    text = log.read_text()
    for quoted in (DRAFT, marker, "Anna", "Q3 numbers", "gmail.googleapis.com/"):
        assert quoted not in text, quoted
    assert log.stat().st_mode & 0o777 == 0o600
    (last,) = aileron_json("logs", "-n", "1", home=console.home)["items"]
    assert last["message"] == "serve ended"
    assert "run.requested" in aileron("logs", home=console.home).stdout
