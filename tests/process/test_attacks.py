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


def _answer_any_origin(patch: Patch) -> None:
    check = auth.check_address

    def unseeing(scope: Any, hosts: Any) -> None:
        kept = [each for each in scope["headers"] if each[0] != b"origin"]
        check({**scope, "headers": kept}, hosts)

    patch.setattr(auth, "check_address", unseeing)


def _answer_the_route_that_decides(patch: Patch) -> None:
    async def decided(_: Request) -> JSONResponse:
        return JSONResponse({"status": "approved"})

    (decides,) = (each for each in asgi.ROUTES if each.path.endswith("/{id}/decide"))
    others = [each for each in asgi.ROUTES if each != decides]
    patch.setattr(asgi, "ROUTES", (*others, dataclasses.replace(decides, endpoint=decided)))


def _take_an_intent_that_decides(patch: Patch) -> None:
    patch.setitem(intent_routes._KINDS, "Approve", Approve)  # type: ignore[arg-type]
    patch.setitem(intent_routes.PROOFS, Approve, "none")  # type: ignore[arg-type]


def _read_any_media_type(patch: Patch) -> None:
    async def lenient(request: Request, _: object = None) -> dict[str, Any]:
        return json.loads(await request.body() or b"{}")

    patch.setattr(request_parsing, "json_object", lenient)


def _answer_any_session(patch: Patch) -> None:
    async def of_anybody(self: ApprovalService, _: str, approval: str, __: float) -> Any:
        run = self.registry.by_approval(approval)
        assert run is not None
        return run.row

    patch.setattr(ApprovalService, "wait_for_result", of_anybody)


def _look_only_once(patch: Patch) -> None:
    async def holds(_: object, run: Any) -> Any:
        return approved._Recheck(verdict="holds", preview=run.preview)

    patch.setattr(approved.ApprovedRunner, "_recheck", holds)


def _let_in_whoever_attaches(patch: Patch) -> None:
    reveal = Pairings.reveal

    def let_in(self: Pairings, *shown: Any) -> Any:
        device = reveal(self, *shown)
        self.confirm(device)
        return device

    patch.setattr(Pairings, "reveal", let_in)


def _take_any_signature(patch: Patch) -> None:
    for module in (pairing, signed):
        patch.setattr(module, "is_signed", lambda *_: True)


def _take_a_number_again(patch: Patch) -> None:
    authenticate = Pairings.authenticate

    def forgetful(self: Pairings, device_id: str, *shown: Any, **peer: Any) -> Any:
        self.find(device_id).number = -1
        return authenticate(self, device_id, *shown, **peer)

    patch.setattr(Pairings, "authenticate", forgetful)


def _take_each_console_for_the_owners(patch: Patch) -> None:
    confirm = Pairings.confirm

    def as_owners(self: Pairings, device: pairing.Device, **_: Any) -> None:
        confirm(self, device, as_owners=True)

    patch.setattr(Pairings, "confirm", as_owners)


def _count_every_key(patch: Patch) -> None:
    root = str(Path(__file__).parents[2])
    program = f"import sys; sys.path.insert(0, {root!r}){_UNARMED}"
    patch.setattr(keyboard, "CONSOLE", (sys.executable, "-I", "-c", program))


WALLS: dict[str, Callable[[Patch], object]] = {
    "page-of-a-site": _answer_any_origin,
    "rebound-name": lambda patch: patch.setattr(ConsoleAddress, "hosts", _Anything()),
    "approve-as-agent": _answer_the_route_that_decides,
    "intents-that-decide": _take_an_intent_that_decides,
    "your-commands": lambda patch: patch.setattr(route_spec, "require_peer", lambda _: None),
    "form-of-a-page": _read_any_media_type,
    "another-session": _answer_any_session,
    "wrong-tokens": lambda patch: patch.setattr(
        SessionRegistry, "authenticate", lambda self, _: self.all()[0]
    ),
    "change-after-the-look": _look_only_once,
    "other-arguments": lambda patch: patch.setattr(run_table, "tampered_columns", lambda *_: ()),
    "trigger": lambda patch: patch.setattr(Database, "_schema_cookie", lambda _: 0),
    "replaced-socket": lambda patch: patch.setattr(
        owner, "peer_of", lambda _: owner.Peer(os.getpid(), os.getuid())
    ),
    "flood-the-queue": lambda patch: patch.setitem(
        GateSettings.__init__.__kwdefaults__, "pending_per_session", 1000
    ),
    "guess-the-passphrase": lambda patch: patch.setattr(opening, "wait_after", lambda _: 0.0),
    "attach-unconfirmed": _let_in_whoever_attaches,
    "attach-as-agent": lambda patch: patch.setattr(
        DeviceService, "_is_of_a_session", lambda *_: False
    ),
    "attach-foreign-key": _take_any_signature,
    "attach-altered": _take_any_signature,
    "attach-raised-verdict": lambda patch: patch.setattr(signed.SignedDecision, "holds", True),
    "attach-replayed": _take_a_number_again,
    "attach-owners": _take_each_console_for_the_owners,
    "attach-after-its-end": lambda patch: patch.setattr(
        Pairings, "end", lambda self, device_id: self.find(device_id)
    ),
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
