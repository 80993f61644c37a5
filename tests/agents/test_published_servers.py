"""MCP servers as their authors published them: in their boxes, behind the gate, before a service that plays their API."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.agents.published_child import PAGE, PUBLISHED, SERVERS, TOKEN
from tests.support.ordinary import ordinary_folder, run_as_ordinary

CHILD = Path(__file__).parent / "published_child.py"
PLACES = {"github": "/repos/ana/work/issues/7", "notion": f"/v1/pages/{PAGE}"}
pytestmark = pytest.mark.skipif(
    shutil.which("bwrap", path="/usr/bin:/bin") is None
    or not all((SERVERS / "node_modules" / each.package).exists() for each in PUBLISHED.values()),
    reason="needs bubblewrap, and `make node` for tests/node/servers",
)


def met(name: str) -> dict[str, Any]:
    """Return what came of the server *name*, with all that was logged meanwhile."""
    with ordinary_folder() as folder:
        done = run_as_ordinary(CHILD, folder, name)
    return {**json.loads(done.stdout), "logged": done.stderr}


@pytest.fixture(scope="module", params=["github", "notion"])
def used(request: pytest.FixtureRequest) -> dict[str, Any]:
    return {**met(request.param), "name": request.param}


def test_a_call_shows_before_and_after_and_its_yes_is_one_request_with_the_vaults_token(
    used: dict[str, Any],
) -> None:
    """Its reads before that are the agent's, the preview and the look again; each host it reached is on record."""
    each = PUBLISHED[used["name"]]
    ((field, new),) = (each.changes or {}).items()
    old = {"title": "Old", "archived": "false"}[field]
    assert used["state"] == "completed"
    assert used["before"][field] == old
    assert used["after"] == {field: new if isinstance(new, str) else json.dumps(new)}
    place, bearer = PLACES[used["name"]], f"Bearer {TOKEN}"
    assert used["asked"] == [["GET", place, bearer]] * 3 + [["PATCH", place, bearer]]
    assert used["sent"] == [each.changes]
    assert used["hosts"] == [f"{each.host}:443"]
    assert used["on record"] == [[f"{each.host}:443"]] * 2


def test_an_agents_client_gets_the_content_blocks_of_the_server(used: dict[str, Any]) -> None:
    (block,) = used["blocks"]
    assert block["type"] == "text"
    told = json.loads(block["text"])
    assert told == {
        "github": {"number": 7, "title": "Old", "body": "asked with Bearer [removed]"},
        "notion": {"object": "page", "id": PAGE, "archived": False, "url": "asked with Bearer [removed]"},
    }[used["name"]]  # fmt: skip


def test_the_token_is_in_no_answer_event_record_file_or_log(used: dict[str, Any]) -> None:
    """Although the service repeats it in each answer."""
    assert used["told the token"] == 0
    assert used["kept the token"] == []
    assert TOKEN not in used["logged"]
    assert "[removed]" in used["before"]["Answer"]


def test_the_host_of_its_code_is_not_reached_where_it_is_not_listed(used: dict[str, Any]) -> None:
    assert used["elsewhere"] == {"failed": True, "reached": []}
    assert used["refused"] == [f"{PUBLISHED[used['name']].host}:443"]
    assert used["asked elsewhere"] == 0


def test_a_server_for_browsers_lists_its_tools_without_a_browser_or_a_host() -> None:
    tools = met("playwright")["tools"]
    assert {"browser_navigate", "browser_snapshot", "browser_click"} <= {*tools}
