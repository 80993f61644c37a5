"""The official MCP conformance suite at `/mcp` of a real console, in both protocol eras.

Which of its scenarios apply, and why the others do not, stands in tests/node/conformance.toml.
"""

import hashlib
import subprocess
import tomllib
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from examples.mailbox.server import Mailbox
from tests.node.forwarder import Forwarder
from tests.node.packages import HERE, Suite, checks, node
from tests.support.server_harness import Serve, aileron
from tests.support.variants import ALL

TABLE: dict[str, Any] = tomllib.loads((HERE / "conformance.toml").read_text())
PASSES: set[str] = {*TABLE["passes"], *(row["scenario"] for row in TABLE["passes_but"])}
NOT_OURS: set[str] = {name for group in TABLE["not_ours"] for name in group["scenarios"]}
STABLE = Suite("conformance", "--suite", "all")
OLD = Suite("conformance-next", "--requirements", "2025-11-25")
NEW = Suite("conformance-next", "--requirements", "2026-07-28")
MAY_WARN: set[str] = {check for row in TABLE["may_warn"] for check in row["checks"]}
Checks = dict[str, dict[str, str]]
GOOD = {"SUCCESS", "INFO", "SKIPPED"}


@pytest.fixture
def home(home: Path) -> Path:
    """A home with the actions that the scenarios call, and a hold that they can wait for."""
    for path in (home / "actions").iterdir():
        aileron("action", "remove", path.stem, home=home)
    aileron("action", "add", str(HERE / "actions"), home=home)
    # Progress at 0, 5 and 7.5 s: the suite wants three, and gives up after ten. Two seconds in which
    # the machine stands still neither join the last two nor take the call over the ten.
    (home / "config.toml").write_text("[mcp]\nhold_seconds = 7.5\n")
    return home


def wrong_scenarios(found: Checks) -> list[str]:
    but = {row["scenario"]: set(row["checks"]) for row in TABLE["passes_but"]}
    wrong: list[str] = []
    for scenario, statuses in found.items():
        good = {check: GOOD | ({"WARNING"} if check in MAY_WARN else set()) for check in statuses}
        bad = {check for check, status in statuses.items() if status not in good[check]}
        if scenario in NOT_OURS:
            if not bad and "SUCCESS" in statuses.values():
                wrong.append(f"{scenario} passes by now: list it so")
            continue
        if "SUCCESS" not in statuses.values():
            wrong.append(f"{scenario} checked nothing")
        excused = but.get(scenario, set())
        wrong += [f"{scenario}: {check} is {statuses[check]}" for check in sorted(bad - excused)]
        stale = excused & set(statuses) - bad
        wrong += [f"{scenario}: {check} is good by now: list it so" for check in sorted(stale)]
    return wrong


def run_suites(suites: list[Suite], mailbox: Mailbox, serve: Serve, out: Path) -> list[Checks]:
    console = serve(mailbox)
    changing = console.home / "actions" / "test-that-comes-and-goes.md"
    accepted = changing.read_bytes()

    def on_request(head: bytes) -> None:
        if b"\nmcp-name: test_trigger_tool_change" in head:
            there = changing.read_bytes() == accepted
            changing.write_bytes(accepted + b"\nchanged\n" if there else accepted)

    results = [out / str(number) for number in range(len(suites))]
    with ExitStack() as stack:
        processes: list[subprocess.Popen[str]] = []
        for suite, folder in zip(suites, results, strict=True):
            forwarder = Forwarder(console.port, console.session()["token"], on_request)
            processes.append(suite.start(stack.enter_context(forwarder).url, folder))
        said = [process.communicate(timeout=100)[0] for process in processes]
    for folder, words in zip(results, said, strict=True):
        assert folder.is_dir(), words
    return [checks(folder) for folder in results]


@pytest.mark.skipif(not ALL, reason="the lock file pins the suite's scenarios: make test-all")
def test_the_table_names_every_scenario_of_the_suite() -> None:
    """A scenario that is new to the suite has to be judged before this is green again."""
    assert not PASSES & NOT_OURS
    assert STABLE.scenarios() | NEW.scenarios() == PASSES | NOT_OURS
    # And none counts as passed because nobody ran it.
    run = OLD.scenarios(scheduled=True) | NEW.scenarios(scheduled=True)
    assert STABLE.scenarios() | run >= PASSES


def test_the_handshake_eras_conform(mailbox: Mailbox, serve: Serve, tmp_path: Path) -> None:
    stable, old = run_suites([STABLE, OLD], mailbox, serve, tmp_path)
    assert {"tools-list", "tools-call-with-progress", "server-initialize"} <= set(stable) & set(old)
    assert "server-session-lifecycle" in old
    assert wrong_scenarios(stable) + wrong_scenarios(old) == []


@pytest.mark.skipif(not ALL, reason="the second of two eras: make test-all")
def test_the_stateless_era_conforms(mailbox: Mailbox, serve: Serve, tmp_path: Path) -> None:
    (new,) = run_suites([NEW], mailbox, serve, tmp_path)
    assert {"tools-list", "tools-call-with-progress", "server-stateless"} <= set(new)
    assert "http-header-validation" in new
    assert wrong_scenarios(new) == []


def test_the_packages_are_those_of_the_lock_file() -> None:
    assert Path(node()).exists()
    lock = HERE / "package-lock.json"
    installed = (HERE / "node_modules" / ".installed").read_text()
    assert installed == hashlib.sha256(lock.read_bytes()).hexdigest(), "run `make node`"
    for each in (lock, HERE / "runtime" / "package-lock.json"):
        assert '"resolved"' not in each.read_text()
