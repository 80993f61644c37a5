"""The `aileron` command: its exit codes, its JSON, its sentences."""

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
from tests.support.making import program
from tests.support.server_harness import (
    CLI,
    DRAFT,
    ROOT,
    Attended,
    Console,
    Serve,
    aileron,
    aileron_json,
    eventually,
    on_a_terminal,
)
from tests.support.variants import variants

EXAMPLES = ROOT / "examples"
SEND = ("action", "run", "send-draft", "--arg", f"draft_id={DRAFT}")


def empty(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.mark.parametrize(
    "arguments",
    [("status",), ("action", "run", "x"), ("open", "approval", "act-20260101T000000-0123456789abcdef")],
)  # fmt: skip
def test_without_a_console_it_is_69(home: Path, arguments: tuple[str, ...]) -> None:
    done = aileron(*arguments, home=home, code=69)
    assert "aileron console" in done.stderr
    assert done.stderr.count("\n") == 1
    body = aileron_json(*arguments, home=home, code=69)
    assert body.get("running") is False or body["error"]["class"] == "unavailable"


def test_status_says_how_it_is(console: Console) -> None:
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


def _two_hours_later(text: str) -> str:
    moment = datetime.fromisoformat(text) + timedelta(hours=2)
    return f"{moment:%Y-%m-%d %H:%M:%S}"


def test_a_person_reads_local_time_and_a_program_utc(console: Console) -> None:
    aileron("action", "run", "list-drafts", home=console.home)
    for words in (("audit", "list"), ("logs",)):
        (last,) = aileron_json(*words, "-n", "1", home=console.home)["items"]
        assert last["at"].endswith("Z")
        told = aileron(*words, "--limit", "1", home=console.home, env={"TZ": "UTC-2"}).stdout
        assert _two_hours_later(last["at"]) in told
        assert last["at"] not in told


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
    assert (
        "Did you mean" not in aileron("audit", "show", "nothing", home=console.home, code=1).stderr
    )


def test_a_wait_says_what_it_waits_for_and_where(console: Console) -> None:
    """On stderr, before it waits: whoever typed it may not know that somebody has to answer."""
    done = aileron(*SEND, "--wait", "0.2", home=console.home, code=75)
    assert "send-draft (act-" in done.stderr
    assert str(console.home) in done.stderr
    assert console.url in done.stderr
    assert "up to 0.2 s" in done.stderr
    assert done.stderr.count("\n") == 1
    assert aileron(*SEND, home=console.home, code=75).stderr == ""


def test_home_comes_from_option_or_environment(console: Console) -> None:
    """Before the command's name too; the option goes first."""
    home, nowhere = str(console.home), str(console.home.parent / "nowhere")
    for arguments, environment, code in (
        (["status"], home, 0),
        (["status"], nowhere, 69),
        (["status", "--home", home], nowhere, 0),
        (["--home", home, "status"], nowhere, 0),
        (["--home", nowhere, "status", "--home", home], nowhere, 0),
        (["--home", nowhere, "action", "--home", home, "list"], nowhere, 0),
        (["--json", "status"], home, 0),
    ):
        env = {**os.environ, "AILERON_HOME": environment}
        done = run_forked([*CLI, *arguments], env=env)
        assert done.returncode == code, arguments
        if "--json" in arguments:
            assert json.loads(done.stdout)["running"] is True


@pytest.mark.parametrize(
    "arguments",
    variants([("action", "run", "nope"), ("audit", "show", "run-nope"), ("action", "remove", "nope"),
              ("connector", "remove", "nope"), ("action", "add", "nope.md")], 2),
)  # fmt: skip
def test_what_there_is_not_is_said_to_be_not_found(
    console: Console, arguments: tuple[str, ...]
) -> None:
    """One class for it in every command: another try does not help."""
    error = aileron_json(*arguments, home=console.home, code=1)["error"]
    assert (error["class"], error["retriable"]) == ("not_found", False)
    assert "nope" in error["message"]


# Actions


def test_adding_listing_and_removing_actions(tmp_path: Path) -> None:
    """Files are copied once they are valid; they count once accepted, and the list says so."""
    home = empty(tmp_path)
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
    aileron("action", "remove", "get-draft", home=home, code=1)
    assert (home / "actions").stat().st_mode & 0o777 == 0o700
    assert (home / "actions" / "list-drafts.md").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("name", ["../secret", "/etc/passwd", "actions/../../secret.md", "."])
def test_removing_never_leaves_the_folder(home: Path, name: str) -> None:
    secret = home.parent / "secret.md"
    secret.write_text("keep")
    aileron("action", "remove", name, home=home, code=1)
    assert secret.exists()


# Running


def test_an_ungated_run_prints_its_output(console: Console) -> None:
    done = aileron("action", "run", "get-draft", "--arg", f"id={DRAFT}", home=console.home)
    assert json.loads(done.stdout)["id"] == DRAFT
    body = aileron_json("action", "run", "list-drafts", "--arg", "max_results=2", home=console.home)
    assert set(body) == {"status", "audit_id", "output"}
    assert len(body["output"]["drafts"]) == 2


@pytest.mark.parametrize("how", variants(["file", "text", "stdin"]))
def test_arguments_come_as_json_too(console: Console, tmp_path: Path, how: str) -> None:
    text = json.dumps({"id": DRAFT})
    file = tmp_path / "args.json"
    file.write_text(text)
    given = {"text": text, "file": f"@{file}", "stdin": "-"}[how]
    body = aileron_json(
        "action", "run", "get-draft", "--args", given, home=console.home, stdin=text
    )
    assert body["output"]["id"] == DRAFT


@pytest.mark.parametrize(
    "arguments",
    [("--args", "[]"), ("--args", "{"), ("--args", "@/nonexistent"), ("--arg", "id"),
     ("--args", "{}", "--arg", "id=x"), ("--args", "{}"), ("--arg", "nope=1"),
     ("--args", '{"id": 5}')],
)  # fmt: skip
def test_arguments_that_cannot_be_used_are_2(
    own_console: Console, arguments: tuple[str, ...]
) -> None:
    """Whether the command line or the gate refuses them; no session is left open."""
    done = aileron("action", "run", "get-draft", *arguments, home=own_console.home, code=2)
    assert done.stderr.startswith("aileron: ")
    assert aileron_json("status", home=own_console.home)["sessions"] == 0


def test_an_unaccepted_action_is_a_conflict(serve: Serve, mailbox: Mailbox) -> None:
    console = serve(mailbox, accept=False)
    error = aileron_json("action", "run", "list-drafts", home=console.home, code=1)["error"]
    assert (error["class"], error["details"]) == ("conflict", {"outcome": "held_back"})
    assert "accept" in aileron("action", "run", "list-drafts", home=console.home, code=1).stderr
    assert mailbox.state()["requests"] == []


def test_a_run_that_waits_is_75(console: Console) -> None:
    body = aileron_json(*SEND, home=console.home, code=75)
    assert set(body) == {
        "status", "approval_id", "review_url", "message", "audit_id", "expires_at", "waits_for",
    }  # fmt: skip
    done = aileron(*SEND, "--wait", "1", home=console.home, code=75)
    assert "is waiting for a person's approval" in done.stdout


class Run:
    """`aileron action run ... --wait` in the background."""

    def __init__(self, home: Path, *more: str) -> None:
        self.process = forked(
            [*CLI, *SEND, "--wait", "60", "--home", str(home), *more],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def end(self) -> tuple[int, str, str]:
        out, err = self.process.communicate(timeout=30)
        return self.process.returncode, out, err


def waiting_approval(attended: Attended) -> str:
    attended.until(
        lambda: any(v["state"] == "pending" and v["digest"] for v in attended.views.values())
    )
    return next(i for i, view in attended.views.items() if view["state"] == "pending")


def test_a_run_ends_with_0_76_or_1_as_person_and_service_say(
    attended: Attended, mailbox: Mailbox
) -> None:
    """With its output and the three words in JSON; with the reason, marked where it is hostile; with the answer."""
    run = Run(attended.home, "--json")
    approval = waiting_approval(attended)
    attended.approve(approval)
    code, out, err = run.end()
    assert (code, err) == (0, "")
    body = json.loads(out)
    assert body["status"] == "completed"
    assert len(body["digest_words"]) == 3
    assert len(mailbox.state()["sent"]) == 1
    assert attended.state(approval, "completed")

    run = Run(attended.home)
    approval = waiting_approval(attended)
    attended.tell(deny=approval, reason="wrong \x1b[31mperson")
    code, out, err = run.end()
    assert code == 76
    assert re.search(r"^aileron: \w+ · \w+ · \w+, as in the console$", err, re.MULTILINE)
    assert "wrong" in out
    assert "\x1b" not in out + err
    assert attended.state(approval, "denied")

    mailbox.control(fail={"op": "send", "status": 400})
    run = Run(attended.home)
    attended.approve(waiting_approval(attended))
    code, out, _ = run.end()
    assert (code, "Failed" in out) == (1, True)


def test_a_console_that_goes_away_meanwhile_is_69(attended: Attended) -> None:
    run = Run(attended.home)
    waiting_approval(attended)
    attended.end(signal.SIGKILL)
    code, out, err = run.end()
    assert (code, out) == (69, "")
    assert err.count("\n") == 2
    assert "is waiting for a person's approval" in err.partition("\n")[0]


def test_an_interrupt_is_130_and_the_approval_stays(attended: Attended) -> None:
    """Ctrl-C ends the command and its session; a person may still answer."""
    run = Run(attended.home)
    approval = waiting_approval(attended)
    eventually(
        lambda: any(r["event"] == "run.requested" for r in attended.records()), "it was asked"
    )
    run.process.send_signal(signal.SIGINT)
    code, _, err = run.end()
    assert code == 130
    assert "Traceback" not in err
    attended.until(lambda: attended.views[approval]["requester_gone"])
    assert attended.views[approval]["state"] == "pending"


# Connectors, audit, open


def test_connectors_are_installed_and_listed(tmp_path: Path) -> None:
    home = empty(tmp_path)
    installed = aileron_json(
        "connector", "install", str(EXAMPLES / "connectors" / "mail-drafts"), home=home
    )
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
        by_approval = aileron_json("audit", "show", pending["approval_id"], home=console.home)
        assert {each["run"] for each in by_approval["items"]} == {pending["audit_id"]}
        report = aileron_json("audit", "verify", home=console.home)
        assert report["ok"] is True
        assert report["problems"] == []
        assert re.fullmatch("[0-9a-f]{64}", report["head"])
        assert report["records"] >= len(items)
        if running:
            assert console.end() == 0
    aileron("audit", "show", "run-" + "0" * 26, home=console.home, code=1)
    assert "no gaps" in aileron("audit", "verify", home=console.home).stdout


@pytest.mark.parametrize(
    "arguments",
    variants(
        [("audit", "list"), ("action", "list"), ("audit", "verify"), ("audit", "show", "x")], 2
    ),
)
def test_a_broken_home_is_a_sentence(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    """A database that is none, a file where a folder should be: exit 1, never a traceback."""
    home = empty(tmp_path)
    home.mkdir()
    (home / "actions").write_text("a file")
    if arguments[0] == "audit":
        assert "aileron console" in aileron(*arguments, home=home, code=1).stderr
    (home / "aileron.db").write_bytes(b"SQLite format 3\x00" + b"\xff" * 5000)
    done = aileron(*arguments, home=home, code=1)
    assert done.stderr.startswith("aileron: ")
    assert done.stderr.count("\n") == 1
    error = aileron_json(*arguments, home=home, code=1)["error"]
    assert error["message"]


def test_a_reader_that_goes_away_is_no_fault_of_ours(console: Console) -> None:
    """`aileron audit list | head -1` says nothing of pipes."""
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [*CLI, "audit", "list", "--home", str(console.home)],
        stdout=write, stderr=subprocess.PIPE, text=True, check=False, timeout=30,
    )  # fmt: skip
    os.close(write)
    assert "Traceback" not in done.stderr
    assert "fault" not in done.stderr


@pytest.mark.parametrize(
    "bad",
    variants(["https://evil.example", "act-20260101T000000-0123456789abcdef;id", "x", "../etc",
              "act-20260101T000000-0123456789ABCDEF", "act-20260101T000000-0123456789abcdef\n"], 2),
)  # fmt: skip
def test_opening_takes_an_approvals_id_and_nothing_else(
    console: Console, tmp_path: Path, bad: str
) -> None:
    path, seen = browsers(tmp_path)
    done = aileron("open", "approval", bad, home=console.home, code=2, env=path | GRAPHICAL)
    assert "act-" in done.stderr
    assert not seen.exists()


def test_opening_hands_the_browser_the_consoles_own_page(console: Console, tmp_path: Path) -> None:
    path, seen = browsers(tmp_path)
    approval = "act-20260101T000000-0123456789abcdef"
    found: dict[str, Any] = aileron_json(
        "open", "approval", approval, home=console.home, env=path | GRAPHICAL
    )
    assert found == {"url": f"{console.url}/review/{approval}", "opened": True}
    assert seen.read_text().splitlines() == ["xdg-open", "1", found["url"]]


def test_without_a_graphical_browser_none_is_started_and_what_to_do_is_said(
    console: Console, tmp_path: Path
) -> None:
    """One in the terminal would take the agent's, or the console's, place."""
    path, seen = browsers(tmp_path)
    without = {"DISPLAY": "", "WAYLAND_DISPLAY": "", "BROWSER": str(tmp_path / "bin/www-browser")}
    approval = "act-20260101T000000-0123456789abcdef"
    done = aileron("open", "approval", approval, home=console.home, env=path | without)
    assert "There is no graphical browser here." in done.stdout
    assert "press O on the call in the console" in done.stdout
    assert not seen.exists()


def test_the_key_that_pairs_a_browser_is_named_as_the_person_set_it(
    home: Path, serve: Serve, mailbox: Mailbox, tmp_path: Path
) -> None:
    """To the agent, by `aileron open approval`, and on the page."""
    (home / "config.toml").write_text('[console.keys]\nopen_review = "f9"\n')
    assert DEFAULT_REGISTRY.key_label("open_review") == LINK_KEY
    console = serve(mailbox)
    answer = console.run("send-draft", {"draft_id": DRAFT}, console.session()["token"])
    assert "where the key f9 lets a browser decide" in answer.json["message"]
    path, _ = browsers(tmp_path)
    opened = ("open", "approval", answer.json["approval_id"])
    told = aileron(*opened, home=console.home, env=path | GRAPHICAL).stdout
    assert "press f9 on the call in the console" in told
    page = httpx.get(answer.json["review_url"]).text
    assert 'data-key="f9"' in page
    assert "LINK_KEY" not in page


GRAPHICAL = {"DISPLAY": ":0"}


def browsers(tmp_path: Path) -> tuple[dict[str, str], Path]:
    """Return a PATH of which each browser writes what it was given to the file that is returned too."""
    folder, seen = tmp_path / "bin", tmp_path / "seen"
    folder.mkdir()
    for name in ("xdg-open", "www-browser", "w3m", "lynx"):
        program(folder / name, f'#!/bin/sh\nprintf "%s\\n" {name} "$#" "$1" > {seen}\n')
    return {"PATH": f"{folder}:{os.environ['PATH']}"}, seen


def test_colour_is_only_for_a_terminal_and_can_be_switched_off(home: Path) -> None:
    (home / "actions" / "broken.md").write_text("+++\nname = \n+++\n")
    assert "\x1b" not in aileron("action", "list", home=home, code=1).stdout
    words = ("action", "list")
    assert b"\x1b[31m" in on_a_terminal(*words, home=home)
    assert b"\x1b" not in on_a_terminal(*words, "--no-color", home=home)
    assert b"\x1b" not in on_a_terminal(*words, home=home, NO_COLOR="1")


def test_nothing_in_the_environment_adds_code(home: Path, tmp_path: Path) -> None:
    """PYTHONPATH and the current folder: the command runs itself again without them."""
    (tmp_path / "click.py").write_text("import sys; sys.exit('planted')\n")
    done = subprocess.run(
        [str(Path(CLI[0]).parent / "aileron"), "action", "list", "--home", str(home)],
        env={**os.environ, "PYTHONPATH": str(tmp_path)}, cwd=tmp_path, capture_output=True,
        text=True, check=False, timeout=30,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "planted" not in done.stderr
    assert "get-draft" in done.stdout
