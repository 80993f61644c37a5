"""The example connectors against services that speak GitHub's and Gmail's API; and those in Python and C, as the pages say."""

import importlib.util
import json
import random
import re
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from aileron_core.actions.load import load_action
from aileron_core.clock import SystemClock
from aileron_core.connectors.http.client import OutgoingClient
from aileron_core.connectors.manifest import parse_manifest
from aileron_core.connectors.protocol import Limits, OpResult, Route
from aileron_core.connectors.store import ConnectorStore
from aileron_core.connectors.wasm.connector import WasmConnector
from aileron_core.connectors.wasm.engine import WasmEngine
from aileron_core.credentials.kinds import ApiKey, CheckedCredential
from aileron_core.vault.secret import Secret
from aileron_tui.cli.scaffold import connector_templates
from tests.support.github_service import HEAD, REPO, TOKEN, GitHub, github_service
from tests.support.guests import MakeEngine, call, failed, install_guest, output, running_guest
from tests.support.variants import ALL

EXAMPLES = Path(__file__).parents[3] / "examples"


@dataclass
class Caller:
    """The connector, and the service that it talks to."""

    connector: WasmConnector
    hub: GitHub
    token: str = TOKEN

    def call(self, op: str, *, read_only: bool = False, **args: Any) -> OpResult:
        account = ApiKey(secret=Secret(self.token), hosts=frozenset({"api.github.com:443"}))
        key = CheckedCredential(account, check=lambda: None)
        args = {"repo": REPO, **args}
        return call(self.connector, op, args=args, credential=key, read_only=read_only)

    def read(self, op: str, **args: Any) -> dict[str, Any]:
        """Return what a preview would get."""
        return output(self.call(op, read_only=True, **args))

    def do(self, op: str, **args: Any) -> dict[str, Any]:
        return output(self.call(op, **args))


@pytest.fixture
def github(tmp_path: Path, store: ConnectorStore, make_engine: MakeEngine) -> Iterator[Caller]:
    with github_service(tmp_path) as served:
        client = served.service.client((), SystemClock())
        installed = store.install(EXAMPLES / "connectors" / "github")
        yield Caller(running_guest(installed, store, make_engine(client)), served)
        client.close()


def test_an_issue_comes_with_its_last_comments(github: Caller) -> None:
    """No line of a comment can pass for the line that says who wrote one; what is left out is counted."""
    issue = github.read("get_issue", number=1)
    assert (issue["repository"], issue["kind"]) == ("octo/app (private)", "issue")
    assert (issue["title"], issue["state"], issue["labels"]) == ("It counts wrong", "open", "bug")
    lines = issue["last_comments"].split("\n")
    assert lines[0] == "2 earlier comments are not shown."
    assert lines[1:3] == ["ben, 2026-11-20T10:02:00Z:", "    Thought 2"]
    assert lines[3:5] == ["    ana, 2026-11-20T10:00:00Z:", "    second line"]
    assert sum(not line.startswith(" ") for line in lines[1:]) == 10
    assert "Thought 11" in lines[-3]


def test_a_comment_is_read_back_without_itself_among_the_others(github: Caller) -> None:
    """What was there before is the same afterwards; a comment of another issue is refused."""
    before = github.read("get_issue", number=1)
    made = github.do("add_comment", number=1, body="Fixed – „bald“")
    assert github.hub.writes == ["POST /issues/1/comments"]
    after = github.read("get_issue", number=1, comment_id=made["id"])
    assert after.pop("comment")["body"] == "Fixed – „bald“"
    assert after == before
    refused = github.call("get_issue", number=2, comment_id=made["id"])
    assert failed(refused).message == "argument comment_id is of another issue"


@pytest.mark.parametrize("count", [0, 10, 11, 41])
def test_the_last_ten_comments_are_the_last_ten(github: Caller, count: int) -> None:
    """Over the borders of GitHub's pages, and with one more at the end."""
    issue = github.hub.open_issue("Many", "")["number"]
    for number in range(count):
        github.hub.comment(issue, f"Thought {number}.")
    text = github.read("get_issue", number=issue)["last_comments"]
    shown = [line.strip() for line in text.split("\n") if line.startswith("    ")]
    assert shown == [f"Thought {number}." for number in range(max(0, count - 10), count)]
    made = github.hub.comment(issue, "own")
    assert github.read("get_issue", number=issue, comment_id=made["id"])["last_comments"] == text


def test_issues_are_listed_page_by_page(github: Caller) -> None:
    for number in range(5):
        github.hub.open_issue(f"More {number}", None)
    first = github.read("list_issues", per_page=3)
    assert [each["number"] for each in first["issues"]] == [7, 6, 5]
    last = github.read("list_issues", per_page=3, page=3)
    assert [each["is_pull_request"] for each in last["issues"]] == [False]
    assert (first["next_page"], "next_page" in last) == (2, False)


def test_a_pull_request_comes_with_commits_files_and_checks(github: Caller) -> None:
    pull = github.read("get_pull", number=7)
    assert (pull["state"], pull["conflicts"], pull["head_sha"]) == ("open", "none", HEAD)
    assert pull["summary"] == "2 commits, 2 files, +3 -1"
    assert pull["commits"] == (
        "aaaaaaaaaa ana\n    Count what is left\n"
        "bbbbbbbbbb ben\n    Name it\n    \n    Since nobody knew."
    )
    assert pull["files"] == "modified src/count.py, +3 -1\nadded logo.png, +0 -0"
    assert pull["diff"].startswith("--- a/src/count.py\n+++ b/src/count.py\n@@ -1,2 +1,4 @@\n-left")
    assert pull["diff"].endswith("+++ b/logo.png\n(no lines: binary, too large, or only renamed)")
    assert pull["checks"] == "failure: tests (GitHub Actions)\nin_progress: docs\nsuccess: ci/lint"


def test_every_page_of_a_large_pull_request_is_read(github: Caller) -> None:
    """250 files are three pages; a name with a line break stays one line; a huge difference is cut with a word."""
    one = {"status": "added", "additions": 1, "deletions": 0, "patch": "@@ @@\n+" + "x" * 9000}
    github.hub.files = [{"filename": f"a\nb{at}", **one} for at in range(250)]
    pull = github.read("get_pull", number=7)
    assert pull["files"].count("\n") == 249
    assert "added a\\nb249, +1 -0" in pull["files"]
    assert pull["diff"].endswith("more files are not shown here: too large. Read it at GitHub.")
    assert 500_000 < len(pull["diff"]) < 700_000


def test_checks_that_the_token_may_not_read_are_named(github: Caller) -> None:
    """A fine-grained token cannot read check runs, but workflow runs."""
    github.hub.check_runs = None
    github.hub.workflow_runs = [{"name": "CI", "status": "completed", "conclusion": "success"}]
    assert github.read("get_pull", number=7)["checks"] == (
        "success: CI\nChecks other than GitHub Actions cannot be read with this account.\n"
        "success: ci/lint"
    )


def test_a_conflict_that_github_is_still_working_out_is_waited_for(github: Caller) -> None:
    github.hub.mergeable = [None, False]
    assert github.read("get_pull", number=7)["conflicts"] == "conflicts with the base branch"
    github.hub.mergeable = [None]
    assert github.read("get_pull", number=7)["conflicts"] == "GitHub has not worked it out yet"


def test_exactly_the_commit_that_was_named_is_merged(github: Caller) -> None:
    """If the branch has moved on, GitHub refuses, and nothing is merged."""
    github.hub.pull["head"]["sha"] = "d" * 40
    refused = github.call("merge_pull", number=7, sha=HEAD)
    assert "409: Head branch was modified" in failed(refused).message
    assert not github.hub.pull["merged"]
    github.hub.pull["head"]["sha"] = HEAD
    assert github.do("merge_pull", number=7, sha=HEAD, merge_method="squash")["merged"] is True
    assert github.read("get_pull", number=7)["state"] == "merged"


def test_a_repository_that_has_another_name_now_is_followed(github: Caller) -> None:
    """To the same host, with the token; a redirect that would make a reading of it makes nothing in silence."""
    github.hub.moved = {"GET": 301, "POST": 307}
    made = github.do("add_comment", number=1, body="Fixed.")
    assert github.hub.comments[-1]["id"] == made["id"]
    assert github.read("get_issue", number=1)["title"] == "It counts wrong"
    github.hub.moved = {"POST": 301}
    assert failed(github.call("create_issue", title="Lost")).class_ == "external_api_error"
    assert len(github.hub.issues) == 2


@pytest.mark.parametrize(
    ("op", "args", "words"),
    [
        ("get_issue", {"repo": "../app", "number": 1}, "repo must be owner/name"),
        ("get_issue", {"repo": "octo/app?x", "number": 1}, "repo must be owner/name"),
        ("get_issue", {}, "number is missing"),
        ("get_issue", {"number": "1/comments"}, "number must be an integer"),
        ("add_comment", {"number": 1, "body": ""}, "body is empty"),
        ("update_issue", {"number": 1}, "nothing to change"),
        ("update_issue", {"number": 1, "state": "merged"}, "state must be one of open, closed"),
        ("merge_pull", {"number": 7, "sha": "main"}, "sha must be the 40 digits"),
        ("get_release", {"tag": ".."}, "tag is no name"),
    ],
)
def test_wrong_arguments_are_errors_before_any_request(
    github: Caller, op: str, args: dict[str, Any], words: str
) -> None:
    result = github.call(op, **args)
    assert failed(result).class_ == "connector_runtime_error"
    assert words in failed(result).message
    assert github.hub.requests == []


def test_what_is_wrong_with_the_account_is_said(github: Caller) -> None:
    said = "GitHub answered 404: Not Found (it does not exist, or the account may not see it)"
    assert failed(github.call("get_issue", number=99)).message == said
    github.token = "github_pat_of_another"
    expired = github.call("get_issue", number=1)
    assert failed(expired).class_ == "binding_failed"
    assert "401: Bad credentials" in failed(expired).message


NUMBERS, GERMAN, CONTRACT, BOARD = "r-8842190447", "r-8842190312", "r-8842189950", "r-8842188204"


def test_a_draft_is_read_whole(drafts: WasmConnector, mailbox: Any) -> None:
    """Gmail's JSON, and the text in full where the snippet stops at 200 characters."""
    draft = output(call(drafts, "get_draft", args={"id": CONTRACT}, read_only=True))
    (held,) = [d for d in mailbox.state()["drafts"] if d["id"] == CONTRACT]
    assert draft["text"] == held["body"]
    assert len(draft["text"]) > 3000
    assert len(draft["message"]["snippet"]) <= 200
    headers = {h["name"]: h["value"] for h in draft["message"]["payload"]["headers"]}
    assert headers["Bcc"] == "archive@nordlicht.example"


def test_nothing_of_a_message_is_hidden(drafts: WasmConnector) -> None:
    """The HTML part and the attachment's name stand in the text that a person decides by."""
    first, second = (output(call(drafts, "get_draft", args={"id": BOARD})) for _ in range(2))
    text = first["text"]
    assert text.startswith("Dear board,")
    assert "<b>October</b>" in text
    assert "pack.pdf (application/pdf)" in text
    # Gmail gives an attachment another id in every answer: nothing has changed, and the draft is sent.
    assert first == second
    assert "attachmentId" not in repr(first)


def test_a_text_that_gmail_sends_apart_is_no_preview(drafts: WasmConnector, mailbox: Any) -> None:
    """Better none than one without the text; an edit must not lose it either."""
    mailbox.control(change={"id": NUMBERS, "body": "x" * (4 * 1024 * 1024 + 1)})
    shown = call(drafts, "get_draft", args={"id": NUMBERS}, read_only=True)
    assert "too large" in failed(shown).message
    assert failed(call(drafts, "update_draft", args={"id": NUMBERS, "subject": "Q4"}))
    assert [each["method"] for each in mailbox.state()["requests"]] == ["GET", "GET"]


def test_sending_sends_once(drafts: WasmConnector, mailbox: Any) -> None:
    """The draft is gone, the mail is out, and a second time there is no such draft."""
    sent = call(drafts, "send_draft", args={"draft_id": NUMBERS})
    assert (sent.requests_sent, sent.last_status) == (1, 200)
    (mail,) = mailbox.state()["sent"]
    assert mail["to"] == "Anna Brandt <anna.brandt@nordlicht.example>"
    assert mail["subject"] == "Q3 numbers"
    again = failed(call(drafts, "send_draft", args={"draft_id": NUMBERS}))
    assert (again.class_, again.details) == ("external_api_error", {"status": 404})
    assert again.message == "Gmail answered 404: Requested entity was not found."
    assert len(mailbox.state()["sent"]) == 1


def test_lists_go_page_by_page(drafts: WasmConnector) -> None:
    seen: list[str] = []
    args: dict[str, Any] = {"max_results": 2}
    while True:
        page = output(call(drafts, "list_drafts", args=args))
        seen += [draft["id"] for draft in page["drafts"]]
        if "nextPageToken" not in page:
            break
        args["page_token"] = page["nextPageToken"]
    assert len(seen) == len(set(seen)) == 5
    found = output(call(drafts, "list_drafts", args={"query": "subject:q3 to:anna"}))
    assert [draft["id"] for draft in found["drafts"]] == [NUMBERS]
    assert "drafts" not in output(call(drafts, "list_drafts", args={"query": "&q=q3"}))


def test_an_update_keeps_what_it_is_not_told_to_change(drafts: WasmConnector, mailbox: Any) -> None:
    """Subject and Bcc change, with letters beyond ASCII; text and recipients stay."""
    (before,) = [d for d in mailbox.state()["drafts"] if d["id"] == GERMAN]
    subject = "Rückfrage – „Angebot“ vom zweiten Oktober, Übergabe und Prüfung 日本語" * 3
    change = {"subject": subject, "bcc": "audit@nordlicht.example"}
    assert call(drafts, "update_draft", args={"id": GERMAN, **change}).requests_sent == 2
    (after,) = [d for d in mailbox.state()["drafts"] if d["id"] == GERMAN]
    assert after == before | change


@pytest.mark.parametrize(
    ("op", "args", "words"),
    [
        ("get_draft", {}, "argument id is missing"),
        ("get_draft", {"id": 5}, "argument id must be a string"),
        ("get_draft", {"id": ".."}, "argument id is no id"),
        ("list_drafts", {"max_results": 0}, "from 1 to 500"),
        ("list_drafts", {"max_results": 1.5}, "must be an integer"),
        ("send_draft", {"id": NUMBERS}, "argument draft_id is missing"),
        ("update_draft", {"id": NUMBERS, "subject": "a\r\nBcc: evil@x.example"}, "line break"),
        ("update_draft", {"id": BOARD, "subject": "x"}, "more than plain text"),
        ("delete_draft", {"id": NUMBERS}, "there is no op delete_draft"),
    ],
)
def test_wrong_arguments_are_errors_and_change_nothing(
    drafts: WasmConnector, mailbox: Any, op: str, args: dict[str, Any], words: str
) -> None:
    before = mailbox.state()["drafts"]
    result = call(drafts, op, args=args)
    assert failed(result).class_ == "connector_runtime_error"
    assert words in failed(result).message
    assert mailbox.state()["drafts"] == before


def test_an_id_stays_one_path_segment(drafts: WasmConnector, mailbox: Any) -> None:
    result = call(drafts, "get_draft", args={"id": "r-1/../send?x=#ü"})
    assert result.last_status == 404
    path = "/gmail/v1/users/me/drafts/r-1%2F..%2Fsend%3Fx%3D%23%C3%BC"
    assert mailbox.state()["requests"] == [{"method": "GET", "path": path}]


def test_the_mailbox_runs_as_a_program_of_its_own() -> None:
    """Its first line says where it is; SIGTERM ends it cleanly."""
    words = [sys.executable, "-m", "examples.mailbox", "--port", "0"]
    with subprocess.Popen(words, cwd=EXAMPLES.parent, stdout=subprocess.PIPE, text=True) as program:
        place = json.loads(program.stdout.readline())
        assert place["url"] == f"http://127.0.0.1:{place['port']}"
        with urllib.request.urlopen(f"{place['url']}/_state", timeout=10) as answer:
            assert len(json.load(answer)["drafts"]) == 5
        program.terminate()
        assert program.wait(60) == 0


@pytest.mark.skipif(not ALL, reason="compiles for half a minute: make test-all")
def test_the_committed_modules_are_what_the_sources_give() -> None:
    command = [sys.executable, str(EXAMPLES / "connectors" / "build.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


MANIFEST = b"""
[connector]
name = "local://tests/python"
version = "1.0.0"
[capabilities.network]
hosts = ["api.example:443"]
[capabilities.runtime]
imports = ["http_request", "http_response_size", "http_response_status", "http_response_read"]
"""
TEMPLATE = connector_templates() / "python"
Script = Callable[[str], WasmConnector]


@pytest.fixture
def script(tmp_path: Path, store: ConnectorStore, routed: WasmEngine) -> Script:
    """Build a script as the template's own build.py does; `args`, `say` and `ask` are there for it."""
    prelude = (
        "import json, aileron_host\n"
        "args = json.loads(aileron_host.read())['args']\n"
        "say = lambda value: aileron_host.write(json.dumps({'output': value}))\n"
        "ask = lambda **request: aileron_host.http_request(json.dumps(request))\n"
    )

    def build(text: str) -> WasmConnector:
        for name in ("build.py", "micropython.wasm"):
            (tmp_path / name).write_bytes((TEMPLATE / name).read_bytes())
        (tmp_path / "connector.py").write_text(prelude + text, encoding="utf-8")
        subprocess.run([sys.executable, tmp_path / "build.py"], check=True, timeout=60)
        return install_guest(store, routed, (tmp_path / "connector.wasm").read_bytes(), MANIFEST)

    return build


@pytest.mark.parametrize(
    "args",
    [
        {},
        {"n": [2**53 + 1, -(2**63), 12345678901234567890], "text": "Grüße, 世界 😀", "f": 0.1},
        {"deep": {"er": [[], {}, None, True]}, "long": "x" * 100_000, '\n"\\': "\x01\t"},
    ],
)
def test_arguments_come_through_as_they_were_given(script: Script, args: dict[str, Any]) -> None:
    """Every digit of a number, every character of a text."""
    assert output(call(script("say(args)"), args=args)) == args


def test_a_number_with_a_point_stays_the_same_number(script: Script) -> None:
    """Amounts, any other, the largest and the least; as text they look as they do in Python."""
    chance = random.Random(1)
    amounts = [round(chance.uniform(0, 10**6), 2) for _ in range(500)]
    floats = [0.92, 0.1 + 0.2, 1e22, 5e-324, 1.7976931348623157e308, -0.0, 123456789.123456789]
    floats += [chance.random() * 10 ** chance.randint(-300, 300) for _ in range(500)]
    text = """
values = [1234.567, -0.5, 1e300, 0.92, 1e16]
texts = [f"{v:.2f}" for v in values[:2]] + [f"{v:.3e}" for v in values] + [f"{1.5:+g}", "%5.1f" % 2.25]
texts += [str(v) for v in values] + [str(float("1_000.5")), str(float("1e400")), str(float("-.5e1"))]
say([args["n"], texts])"""
    numbers, texts = output(call(script(text), args={"n": amounts + floats}))
    assert [repr(each) for each in numbers] == [repr(each) for each in amounts + floats]
    assert texts == [
        *("1234.57", "-0.50", "1.235e+03", "-5.000e-01", "1.000e+300", "9.200e-01", "1.000e+16"),
        *("+1.5", "  2.2", "1234.567", "-0.5", "1e+300", "0.92", "1e+16"),
        *("1000.5", "inf", "-5.0"),
    ]


def test_it_has_no_files_no_environment_and_no_devices(script: Script) -> None:
    """What it cannot import cannot be used by mistake; a file is never there."""
    text = """
missing = []
for name in ("os", "socket", "machine", "select", "ssl", "vfs", "network", "asyncio", "nothing"):
    try:
        __import__(name)
    except ImportError:
        missing.append(name)
try:
    open("/etc/passwd")
except OSError:
    missing.append("files")
say(missing)"""
    missing = ["os", "socket", "machine", "select", "ssl", "vfs", "network", "asyncio", "nothing"]
    assert output(call(script(text))) == [*missing, "files"]


def test_an_exception_is_reported_with_its_line_and_what_was_printed(script: Script) -> None:
    failure = failed(call(script("print('so far')\n{}['key']")))
    assert failure.class_ == "connector_runtime_error"
    message = failure.message
    assert "so far" in message
    assert 'File "connector.py", line 6' in message
    assert "KeyError: key" in message
    assert "SyntaxError" not in message
    ended = failed(call(script("raise SystemExit(3)")))
    assert ended.message.startswith("the connector exited with 3")


def test_deep_calls_end_in_an_exception(script: Script) -> None:
    """Before the call stack of the sandbox ends, which a script could not catch."""
    text = """
def down(n):
    return [n, down(n + 1)]
for what in (lambda: down(0), lambda: json.loads("[" * 100000), lambda: eval("(" * 5000 + ")" * 5000),
             lambda: sorted([1, 2], key=lambda n: down(0)), lambda: json.dumps(nested)):
    nested = []
    for _ in range(100000):
        nested = [nested]
    try:
        what()
    except (RuntimeError, SyntaxError, MemoryError, ValueError) as error:
        pass
say("caught")"""
    assert output(call(script(text), limits=Limits(wall_seconds=60))) == "caught"


def test_a_script_that_does_not_fit_is_refused(script: Script, tmp_path: Path) -> None:
    """Never cut off; nor is what a service could not have read."""
    script("say(1)" + " " * 100_000)
    (tmp_path / "connector.wasm").unlink()
    with pytest.raises(subprocess.CalledProcessError):
        script("say(1)" + " " * 131_072)
    assert not (tmp_path / "connector.wasm").exists()
    with pytest.raises(subprocess.CalledProcessError):
        script("say(")


def build(target: Path, source: Path) -> bytes:
    command = [sys.executable, "-m", "ziglang", "cc", "-target", "wasm32-wasi", "-O2", "-s"]
    subprocess.run([*command, "-o", str(target), str(source)], check=True, timeout=500)
    return target.read_bytes()


def blocks(page: str) -> list[str]:
    """The code blocks of a page of ours, in order."""
    return re.findall(r"^```\w*\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)


@pytest.mark.timeout(600)  # the first build on a machine builds the C library too
@pytest.mark.skipif(not importlib.util.find_spec("ziglang"), reason="needs the connector group")
def test_the_connector_of_the_developers_page_works_as_the_page_says(tmp_path: Path, store: ConnectorStore, service: Any, make_client: Callable[..., OutgoingClient], make_engine: MakeEngine) -> None:  # fmt: skip
    """Its C compiles, its manifest is taken, its action file names nothing that is not there."""
    page = (Path(__file__).parents[3] / "docs" / "connectors.md").read_text(encoding="utf-8")
    page = page[page.index("## In C\n") :]
    source, manifest, action = blocks(page)[:3]
    (tmp_path / "connector.c").write_text(source, encoding="utf-8")
    built = build(tmp_path / "connector.wasm", tmp_path / "connector.c")
    host = parse_manifest(manifest.encode(), "manifest.toml").hosts[0]
    route = Route(host=host, address="127.0.0.1", port=service.port)
    engine = make_engine(make_client(routes=[route]))
    connector = install_guest(store, engine, built, manifest.encode())
    service.reply("/notes.json", b'[{"id": 9007199254740993, "text": "milk"}]')
    assert output(call(connector, "list_notes")) == [{"id": 2**53 + 1, "text": "milk"}]
    service.reply("/notes.json", b"", status=503)
    assert failed(call(connector, "list_notes")).class_ == "external_api_error"
    assert failed(call(connector, "nope")).message == "unknown op"
    (needed,) = load_action(action.encode(), "list-notes.md").requires
    identity = connector.identity
    assert (needed.fqn, needed.version) == (identity.fqn, identity.version)
