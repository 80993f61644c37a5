"""A project's settings count once a person took them in: the route, its record, and what is no authority."""

from pathlib import Path

from tests.support.core_harness import change_rows
from tests.support.server_harness import Console, Serve, aileron_json

DIGEST = "ab" * 32
ASKED = {"agent": "codex", "path": "/srv/a project", "digest": DIGEST}


def items(console: Console) -> list[dict[str, str]]:
    return console.get("/v1/projects", local=True).json["items"]


def test_what_was_accepted_is_on_record_and_outlives_a_restart(home: Path, serve: Serve) -> None:
    """One pin per agent and folder, in the newest bytes; the record is what makes it count."""
    console = serve()
    assert console.post("/v1/projects", ASKED, local=True).status == 201
    later = {**ASKED, "digest": "cd" * 32}
    assert console.post("/v1/projects", later, local=True).status == 201
    assert console.post("/v1/projects", {**ASKED, "agent": "pi"}, local=True).status == 201
    console.end()
    console.start()
    found = [(each["agent"], each["path"], each["digest"]) for each in items(console)]
    assert found == [("codex", "/srv/a project", "cd" * 32), ("pi", "/srv/a project", DIGEST)]
    said = [each for each in console.records() if each.get("kind") == "project"]
    assert [each["digest"] for each in said] == [DIGEST, "cd" * 32, DIGEST]
    assert {each["event"] for each in said} == {"library.accepted"}
    assert aileron_json("audit", "verify", home=home)["ok"]


def test_a_row_alone_takes_no_project_in(home: Path, serve: Serve) -> None:
    """A row that another program wrote is no authority."""
    console = serve()
    console.post("/v1/projects", ASKED, local=True)
    console.end()
    change_rows(
        home,
        f"UPDATE pins SET digest = '{'ee' * 32}' WHERE kind = 'project'",
        f"INSERT INTO pins VALUES('project', 'pi /srv/b', '{DIGEST}', 1.0, 'person', 1)",
    )
    console.start()
    assert items(console) == []
