"""`connector check` and `connector run`: what a developer is told, and where a trial may go."""

import json
import subprocess
from functools import partial
from pathlib import Path
from typing import Any

import wasmtime

from tests.support.server_harness import completed

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
    empty = connector("check", str(tmp_path), "--json")
    assert len(report(empty)["problems"]) == 2


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
    messages = {p["message"] for p in report(done)["problems"] if p["severity"] == "warning"}
    assert done.returncode == 0
    assert messages == {
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
    assert done.returncode == 1
    assert report(done)["failure"]["class"] == "capability_denied"
    assert mailbox.state()["drafts"] == before
    # A trial is no way around the gate: a listed host without a route is refused before it is dialled.
    done = connector("run", str(EXAMPLE), "list_drafts", "--json")
    failure = report(done)["failure"]
    assert (done.returncode, failure["class"]) == (1, "capability_denied")
    assert f"--route {HOST}=127.0.0.1:PORT" in failure["message"]
