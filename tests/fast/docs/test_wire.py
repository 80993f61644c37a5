"""docs/wire.md against the code: every table there says what the code does, and leaves nothing out."""

import re
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path

import pytest

from aileron_core.actions.model import ActionLimits
from aileron_core.audit.events import AuditEvent
from aileron_core.connectors.protocol import Limits
from aileron_core.errors import AileronError, Failure
from aileron_core.runs import GateSettings, digest
from aileron_core.runs.transitions import FINAL
from aileron_core.server.error_responses import STATUS
from aileron_core.server.intent_routes import PROOFS
from aileron_core.server.openapi import document
from aileron_core.server.routes import ROUTES
from aileron_core.server.tool_results import builtin_tools
from aileron_core.settings import Settings
from aileron_core.storage.schema import SCHEMA
from aileron_mcp.translate import CLIENT_LIMITS, UNKNOWN_CLIENT_LIMIT

PAGE = (Path(__file__).parents[3] / "docs" / "wire.md").read_text(encoding="utf-8")


def section(heading: str) -> str:
    found = re.search(rf"^#+ {re.escape(heading)}\n(.*?)(?=^#|\Z)", PAGE, re.MULTILINE | re.DOTALL)
    assert found is not None, heading
    return found[1]


def table_rows(heading: str, table: int = 0) -> list[list[str]]:
    tables = re.findall(r"(?:^\|.*\n)+", section(heading), re.MULTILINE)
    lines = (line.strip("|").split("|") for line in tables[table].splitlines()[2:])
    return [[cell.strip().replace("`", "") for cell in line] for line in lines]


def names_listed(cell: str) -> list[str]:
    """Return the names that a cell lists: `x.{a,b}, c` are x.a, x.b and c; a route's `{id}` stays."""
    found: list[str] = []
    for each in cell.split(", "):
        if braces := re.search(r"\{([^{}]*,[^{}]*)\}", each):
            found += [each.replace(braces[0], word) for word in braces[1].split(",")]
        else:
            found.append(each)
    assert len(set(found)) == len(found), cell
    return found


def test_routes_are_those_that_are_served_and_described() -> None:
    table = [(each, who) for routes, who in table_rows("Routes") for each in names_listed(routes)]
    documented = {tuple(route.split()): who for route, who in table}
    assert documented == {(spec.method, spec.path): spec.access for spec in ROUTES}
    paths = document()["paths"]
    assert documented.keys() == {(m.upper(), path) for path, each in paths.items() for m in each}


def test_intents_are_those_that_are_taken_with_the_proof_that_each_needs() -> None:
    documented = {
        kind: proof for kinds, proof in table_rows("Intents") for kind in names_listed(kinds)
    }
    assert documented == {kind.__name__: proof for kind, proof in PROOFS.items()}


def test_an_agent_is_told_of_these_states_alone() -> None:
    documented = {
        state for row in table_rows("Running an action", 1) for state in row[0].split(", ")
    }
    assert documented == {"pending_approval", *FINAL}


def test_errors_have_these_members_and_classes_these_statuses_which_may_be_retried_or_not() -> None:
    table = [
        (name, *rest) for classes, *rest in table_rows("Errors") for name in names_listed(classes)
    ]
    assert {name: int(status) for name, status, _ in table} == STATUS
    documented = {name: word for name, _, word in table if word in ("yes", "no")}
    # A home that cannot be used is `unavailable` too, on the command line alone.
    again = {each.class_ for each in _below(AileronError) if each.retriable}
    assert documented == {name: "yes" if name in again else "no" for name in documented}
    assert STATUS.keys() - documented.keys() == {"external_api_error"}
    members = re.search(r'"error": {(.*?)}', section("Errors"))
    assert members is not None
    body = Failure(class_="x", message="").to_json()
    assert re.findall(r'"(\w+)"', members[1]) == list(body)


def _below(error: type[AileronError]) -> set[type[AileronError]]:
    return {error}.union(*(_below(each) for each in error.__subclasses__()))


def test_settings_of_a_person_have_these_defaults() -> None:
    default = Settings()
    known: dict[str, object] = {
        "server.listen": f"{default.listen_host}:{default.listen_port}",
        "approval.expires_seconds": default.expires_seconds,
        "mcp.hold_seconds": default.hold_seconds,
        "mcp.tools": default.tools[0],
        "history.days": default.history_days,
        "builtin.bash.rehearse": default.rehearse,
    }
    for name in ("vault", "console", "log", "notify"):
        table = getattr(default, name)
        for each in fields(table):
            if not isinstance(value := getattr(table, each.name), tuple):
                known[f"{name}.{each.name}"] = value
    assert dict(table_rows("Defaults")) == {
        name: _as_written(value) for name, value in known.items()
    }


def _as_written(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, int | float) else str(value)


def test_limits_that_nobody_sets_and_those_of_an_action_file() -> None:
    settable = {"expires_seconds", "wall_seconds", "memory_mib"}
    named = [(of, each.name) for of in (GateSettings(), Limits()) for each in fields(of)]
    known = [getattr(holder, name) for holder, name in named if name not in settable]
    assert [float(value) for _, value in table_rows("Defaults", 1)] == known
    documented = section("Defaults")
    for name in ("wall_seconds", "memory_mib"):
        value = getattr(ActionLimits(), name)
        assert f"`limits.{name}` (default {value}," in documented
        assert getattr(Limits(), name) == value


def test_how_long_each_client_is_held() -> None:
    documented = {name: float(seconds) for name, seconds in table_rows("Holding a call")}
    assert documented == {**CLIENT_LIMITS, "any other": UNKNOWN_CLIENT_LIMIT}


def test_the_tools_that_are_no_actions() -> None:
    documented = {name: re.findall(r"[a-z_]+_[a-z]+", names) for name, names in table_rows("MCP")}
    tools = builtin_tools()
    assert documented == {each["name"]: list(each["inputSchema"]["properties"]) for each in tools}


def test_the_digest_covers_these_members(monkeypatch: pytest.MonkeyPatch) -> None:
    covered: list[Mapping[str, object]] = []
    monkeypatch.setattr(digest, "canonical", lambda body: covered.append(body) or b"")
    digest.consent_digest(
        digest.Consent(
            action="", action_sha256="", connectors=(), steps=(), args={}, hosts=(), accounts=(),
            preview="none", expires_at=None, preview_reads=("x",), wall_seconds=300, nonce="",
        )
    )  # fmt: skip
    documented = re.findall(r'^    [{ ]"(\w+)":', section("Digest"), re.MULTILINE)
    assert sorted(documented) == sorted(covered[0])


def test_the_columns_of_the_audit_every_event_that_is_recorded_and_who_acts_in_it() -> None:
    columns = re.search(r"`audit\((.*?)\)`", section("Audit records"))
    assert columns is not None
    (statement,) = (each for each in SCHEMA if each.startswith("CREATE TABLE audit("))
    assert columns[1].split(", ") == re.findall(r"(\w+) (?:INTEGER|TEXT|BLOB)", statement)
    documented = {e: actor for actor, events in table_rows("Events") for e in names_listed(events)}
    known = {*AuditEvent} - {AuditEvent.AUDIT_UNREADABLE}
    assert documented == {str(each): each.actor for each in known}
