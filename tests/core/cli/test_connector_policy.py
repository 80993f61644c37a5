"""`aileron connector` and `aileron policy`: what one is told of one's files."""

import asyncio
import json
import subprocess
from functools import partial
from pathlib import Path
from typing import Any

import wasmtime

from tests.core.runs.test_standing import ALLOWED, ANNA, end, opened
from tests.support.core_harness import DRAFT, Mailbox
from tests.support.granting import grant
from tests.support.review_harness import serving
from tests.support.server_harness import aileron, completed

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "examples" / "connectors" / "mail-drafts"
HOST = "gmail.googleapis.com:443"
connector = partial(completed, "connector")


def report(done: subprocess.CompletedProcess[str]) -> Any:
    return json.loads(done.stdout)


def test_the_example_passes_and_its_identity_is_shown(tmp_path: Path) -> None:
    """What `check` calls it is what `install` will call it; its manifest can be checked alone, and nothing cannot."""
    done = connector("check", str(EXAMPLE), "--json")
    found = report(done)
    assert (done.returncode, found["ok"], found["problems"]) == (0, True, [])
    assert found["hosts"] == [HOST]
    pinned = (ROOT / "examples" / "actions" / "send-draft.md").read_text(encoding="utf-8")
    assert found["hash"] in pinned
    assert connector("check", str(EXAMPLE / "manifest.toml")).returncode == 0
    nothing = connector("check", str(tmp_path / "none"))
    assert nothing.returncode == 1
    assert "connector.wasm and manifest.toml" in nothing.stderr
    assert len(report(connector("check", str(tmp_path), "--json"))["problems"]) == 2


def test_everything_wrong_with_a_connector_is_reported_at_once(tmp_path: Path) -> None:
    text = '[connector]\nname = "nowhere"\nversion = "v1"\ncolour = "red"\n'
    (tmp_path / "manifest.toml").write_text(text, encoding="utf-8")
    module = wasmtime.wat2wasm('(module (import "env" "system" (func)))')
    (tmp_path / "connector.wasm").write_bytes(bytes(module))
    done = connector("check", str(tmp_path), "--json")
    found = report(done)
    assert (done.returncode, found["ok"]) == (1, False)
    in_manifest = {(p["key"], p["line"]) for p in found["problems"] if "manifest" in p["file"]}
    lines = {"connector.name": 2, "connector.version": 3, "connector.colour": 4}
    assert in_manifest == {*lines.items()}
    module = [p["message"] for p in found["problems"] if "wasm" in p["file"]]
    assert len(module) == 3
    assert any("'system' from 'env'" in message for message in module)


def test_what_manifest_and_module_say_differently_is_a_warning(tmp_path: Path) -> None:
    """It still passes; a person who takes it in should know."""
    text = (EXAMPLE / "manifest.toml").read_text(encoding="utf-8")
    other = text.replace('"http_request", ', '"log", ').replace(f'"{HOST}"', "")
    (tmp_path / "manifest.toml").write_text(other, encoding="utf-8")
    (tmp_path / "connector.wasm").write_bytes((EXAMPLE / "connector.wasm").read_bytes())
    done = connector("check", str(tmp_path), "--json")
    assert done.returncode == 0
    assert {p["message"] for p in report(done)["problems"] if p["severity"] == "warning"} == {
        "does not list http_request, which the module imports",
        "lists log, which the module does not import",
        "lists no host, so every request will be refused",
    }


def test_an_op_is_run_against_a_route_alone_and_writes_nothing_read_only(mailbox: Any) -> None:
    route = ("--route", f"{HOST}=127.0.0.1:{mailbox.port}")
    done = connector("run", str(EXAMPLE), "list_drafts", *route, "--json")
    found = report(done)
    assert (done.returncode, found["status"], found["last_status"]) == (0, "completed", 200)
    assert (found["requests_sent"], found["writes_sent"]) == (1, 0)
    first = found["output"]["drafts"][0]["id"]
    words = ("run", str(EXAMPLE), "get_draft", "--args", "-", *route)
    plain = connector(*words, stdin=json.dumps({"id": first}))
    assert json.loads(plain.stdout)["id"] == first
    assert "Requests sent: 1 (writes: 0)" in plain.stderr
    before, args = mailbox.state()["drafts"], json.dumps({"draft_id": first})
    words = ("run", str(EXAMPLE), "send_draft", "--args", args, *route, "--read-only")
    done = connector(*words, "--json")
    assert (done.returncode, report(done)["failure"]["class"]) == (1, "capability_denied")
    assert mailbox.state()["drafts"] == before
    # A trial is no way around the gate: a listed host without a route is refused before it is dialled.
    done = connector("run", str(EXAMPLE), "list_drafts", "--json")
    failure = report(done)["failure"]
    assert (done.returncode, failure["class"]) == (1, "capability_denied")
    assert f"--route {HOST}=127.0.0.1:PORT" in failure["message"]


async def policy_output(*words: str, home: Path, code: int = 0) -> str:
    return (await asyncio.to_thread(aileron, "policy", *words, home=home, code=code)).stdout


async def printed_json(*words: str, home: Path, code: int = 0) -> dict[str, Any]:
    return json.loads(await policy_output(*words, "--json", home=home, code=code))


async def test_check_names_each_problem_and_unknown_field(tmp_path: Path, mailbox: Mailbox) -> None:
    async with opened(tmp_path, mailbox):
        pass
    file = tmp_path / "policy.toml"
    rule = '[[rule]]\nactions = ["readdress"]\ndecision = "allow"\nwhere = {{ "{}" = "any" }}\n'
    file.write_text(rule.format("fetched.Tu") + "bogus = 1\n")
    printed_text = await policy_output("check", home=tmp_path, code=2)
    assert f"{file}:5:1: rule[0].bogus: is not a key here" in printed_text
    file.write_text(rule.format("fetched.Tu"))
    (problem,) = (await printed_json("check", str(file), home=tmp_path, code=2))["problems"]
    assert (problem["line"], problem["key"]) == (4, 'rule[0].where."fetched.Tu"')
    assert "there is args.bcc" in problem["message"]
    assert "fetched.To" in problem["message"]
    file.write_text(rule.format("fetched.To"))
    assert "0 errors" in await policy_output("check", home=tmp_path)


async def test_explain_says_what_answered_a_call_or_why(tmp_path: Path, mailbox: Mailbox) -> None:
    denied = '\n[[rule]]\nactions = ["readdress"]\ndecision = "deny"\nwhere = { "args.to" = { within = "evil.example" } }\n'
    async with opened(tmp_path, mailbox, ALLOWED + denied) as core:
        row = await end(core, await core.call("readdress", {"id": DRAFT, "to": ANNA}))
        found = await printed_json("explain", row.run_id, home=tmp_path)
        assert found.pop("reason").startswith("allowed by policy.toml:2")
        assert found == {
            "run": row.run_id, "action": "readdress", "decision": "allow", "by": "policy.toml:2",
            "looked_at": ["args.id", "args.to", "fetched.To", "fetched.Subject"],
        }  # fmt: skip
        assert "Anna" not in await policy_output("explain", row.run_id, home=tmp_path)
        bad = (await core.call("readdress", {"id": DRAFT, "to": "x@evil.example"})).row
        found = await printed_json("explain", bad.run_id, home=tmp_path)
        expected = {"decision": "deny", "by": "policy.toml:7", "looked_at": ["args.to"]}
        assert {name: found[name] for name in expected} == expected
        call = await core.call("readdress", {"id": DRAFT, "to": ANNA, "bcc": ANNA})
        asked = await end(core, call)
        await core.app.approvals.deny(asked.approval_id or "", "")
        text = await policy_output("explain", asked.approval_id or "", home=tmp_path)
        assert "left to you" in text
        assert "policy.toml:2 does not allow it, because of args.bcc" in text
    await policy_output("explain", "run-1", home=tmp_path, code=1)


async def test_grants_are_listed_by_their_console(tmp_path: Path, mailbox: Mailbox) -> None:
    """Without what was fetched: any program of the account can ask for the list."""
    async with opened(tmp_path, mailbox) as core, serving(core):
        await grant(core, await core.ask_for("readdress", {"id": DRAFT, "to": ANNA}), 3)
        (found,) = (await printed_json("grants", home=tmp_path))["items"]
        expected = {"id": "g1", "action": "readdress", "uses": 5, "used": 0}
        assert {name: found[name] for name in expected} == expected
        assert found["tests"]["fetched.To"] == "is"
        text = await policy_output("grants", home=tmp_path)
        assert "fetched.To: is" in text
        assert "Anna" not in text
    await policy_output("grants", home=tmp_path, code=69)
