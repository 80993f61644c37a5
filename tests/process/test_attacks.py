"""`aileron doctor --attack`: no attack breaks through; without its wall, each does, and says so."""

import dataclasses
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse

from aileron_core.console.address import ConsoleAddress
from aileron_core.console.device_service import DeviceService
from aileron_core.console_port.intents import Approve
from aileron_core.devices import pairing, signed
from aileron_core.devices.pairing import Pairings
from aileron_core.home import owner
from aileron_core.runs import GateSettings, approved, run_table
from aileron_core.runs.decisions import ApprovalService
from aileron_core.server import asgi, auth, intent_routes, request_parsing, route_spec
from aileron_core.sessions.registry import SessionRegistry
from aileron_core.storage.database import Database
from aileron_core.vault import opening
from aileron_tui.cli.attacks import ATTACKS, contained, keyboard, try_attacks
from tests.support.ordinary import AS_ORDINARY, OWNS, ordinary_folder
from tests.support.server_harness import CLI, aileron

Patch = pytest.MonkeyPatch
_UNARMED = """
import sys
from aileron_tui.input.arming import Arming
Arming.obstacle = lambda *_: None
Arming.in_burst = lambda *_: False
from aileron_tui.cli.commands import aileron
aileron()
"""


class _Anything(frozenset[str]):
    def __contains__(self, _: object) -> bool:
        return True


_check_address, _reveal, _confirm = auth.check_address, Pairings.reveal, Pairings.confirm
_authenticate = Pairings.authenticate


def _answer_any_origin(scope: Any, hosts: Any) -> None:
    kept = [each for each in scope["headers"] if each[0] != b"origin"]
    _check_address({**scope, "headers": kept}, hosts)


def _answer_the_route_that_decides(patch: Patch) -> None:
    async def decided(_: Request) -> JSONResponse:
        return JSONResponse({"status": "approved"})

    (decides,) = (each for each in asgi.ROUTES if each.path.endswith("/{id}/decide"))
    others = [each for each in asgi.ROUTES if each != decides]
    patch.setattr(asgi, "ROUTES", (*others, dataclasses.replace(decides, endpoint=decided)))


def _take_an_intent_that_decides(patch: Patch) -> None:
    patch.setitem(intent_routes._KINDS, "Approve", Approve)  # type: ignore[arg-type]
    patch.setitem(intent_routes.PROOFS, Approve, "none")  # type: ignore[arg-type]


async def _read_any_media_type(request: Request, _: object = None) -> dict[str, Any]:
    return json.loads(await request.body() or b"{}")


async def _answer_any_session(self: ApprovalService, _: str, approval: str, __: float) -> Any:
    run = self.registry.by_approval(approval)
    assert run is not None
    return run.row


async def _look_only_once(_: object, run: Any) -> Any:
    return approved._Recheck(verdict="holds", preview=run.preview)


def _let_in_whoever_attaches(self: Pairings, *shown: Any) -> Any:
    device = _reveal(self, *shown)
    self.confirm(device)
    return device


def _take_any_signature(patch: Patch) -> None:
    for module in (pairing, signed):
        patch.setattr(module, "is_signed", lambda *_: True)


def _take_a_number_again(self: Pairings, device_id: str, *shown: Any, **peer: Any) -> Any:
    self.find(device_id).number = -1
    return _authenticate(self, device_id, *shown, **peer)


def _take_each_console_for_the_owners(self: Pairings, device: pairing.Device, **_: Any) -> None:
    _confirm(self, device, as_owners=True)


def _count_every_key(patch: Patch) -> None:
    root = str(Path(__file__).parents[2])
    program = f"import sys; sys.path.insert(0, {root!r}){_UNARMED}"
    patch.setattr(keyboard, "CONSOLE", (sys.executable, "-I", "-c", program))


def _set(*change: Any) -> Callable[[Patch], object]:
    return lambda patch: patch.setattr(*change)


WALLS: dict[str, Callable[[Patch], object]] = {
    "page-of-a-site": _set(auth, "check_address", _answer_any_origin),
    "rebound-name": _set(ConsoleAddress, "hosts", _Anything()),
    "approve-as-agent": _answer_the_route_that_decides,
    "intents-that-decide": _take_an_intent_that_decides,
    "your-commands": _set(route_spec, "require_peer", lambda _: None),
    "form-of-a-page": _set(request_parsing, "json_object", _read_any_media_type),
    "another-session": _set(ApprovalService, "wait_for_result", _answer_any_session),
    "wrong-tokens": _set(SessionRegistry, "authenticate", lambda self, _: self.all()[0]),
    "change-after-the-look": _set(approved.ApprovedRunner, "_recheck", _look_only_once),
    "other-arguments": _set(run_table, "tampered_columns", lambda *_: ()),
    "trigger": _set(Database, "_schema_cookie", lambda _: 0),
    "replaced-socket": _set(owner, "peer_of", lambda _: owner.Peer(os.getpid(), os.getuid())),
    "flood-the-queue": lambda patch: patch.setitem(
        GateSettings.__init__.__kwdefaults__, "pending_per_session", 1000
    ),
    "guess-the-passphrase": _set(opening, "wait_after", lambda _: 0.0),
    "attach-unconfirmed": _set(Pairings, "reveal", _let_in_whoever_attaches),
    "attach-as-agent": _set(DeviceService, "_is_of_a_session", lambda *_: False),
    "attach-foreign-key": _take_any_signature,
    "attach-altered": _take_any_signature,
    "attach-raised-verdict": _set(signed.SignedDecision, "holds", True),
    "attach-replayed": _set(Pairings, "authenticate", _take_a_number_again),
    "attach-owners": _set(Pairings, "confirm", _take_each_console_for_the_owners),
    "attach-after-its-end": _set(Pairings, "end", lambda self, device_id: self.find(device_id)),
    "key-held-down": _count_every_key,
}
"""What is switched off, by the attack that it stops."""


@pytest.mark.parametrize("attack", WALLS)
def test_without_its_wall_an_attack_breaks_through(attack: str, monkeypatch: Patch) -> None:
    """An attack that cannot succeed proves nothing."""
    WALLS[attack](monkeypatch)
    (outcome,) = try_attacks([attack])
    print(outcome)
    assert outcome.outcome == "broke", outcome
    assert "could not be tried" not in outcome.detail


@pytest.mark.real
@pytest.mark.timeout(300)
def test_no_attack_breaks_through() -> None:
    """All of them, as an ordinary user runs them; where there is no sandbox, its own are named as skipped."""
    with ordinary_folder() as folder:
        env = {**os.environ, OWNS: str(folder), "HOME": str(folder), "TMPDIR": str(folder)}
        command = [*AS_ORDINARY, *CLI, "doctor", "--attack", "--json"]
        done = subprocess.run(
            command, env=env, cwd=folder, capture_output=True, text=True, check=False
        )
        left = [path.name for path in folder.iterdir()]
    assert done.stderr == ""
    said = json.loads(done.stdout)
    assert [each for each in said["attacks"] if each["outcome"] == "broke"] == []
    assert (done.returncode, said["ok"], left) == (0, True, [])
    assert said["held"] >= 40
    assert said["held"] + said["skipped"] == len(ATTACKS)
    skipped = {each["name"] for each in said["attacks"] if each["outcome"] == "skipped"}
    boxed = {each.name for each in contained.ATTACKS}
    assert skipped <= {"memory", "command-lines", "key-held-down", *boxed}


def test_a_line_for_each_attack_that_was_named(home: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in (home, *home.rglob("*"))}
    done = aileron("doctor", "--attack", "two-hosts", "approve-as-agent", home=home)
    lines = done.stdout.splitlines()
    assert lines[0].startswith("✓ held    two-hosts: A request names two servers, ")
    assert lines[1].startswith("✓ held    approve-as-agent: An agent approves its own call ")
    assert lines[2:] == ["2 attacks: 2 held, 0 broke, 0 skipped."]
    assert before == {path: path.stat().st_mtime_ns for path in (home, *home.rglob("*"))}
    wrong = aileron("doctor", "--attack", "two-host", home=home, code=1)
    assert wrong.stderr == "aileron: There is no attack 'two-host'. Did you mean two-hosts?\n"
