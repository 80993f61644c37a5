"""What a real console writes into its own log."""

from examples.mailbox.server import Mailbox
from tests.support.server_harness import DRAFT, Console, aileron, aileron_json, eventually


def test_the_log_tells_what_happened_and_holds_nothing_of_it(
    console: Console, mailbox: Mailbox
) -> None:
    """Each record by event, number, run and action; no argument, output or preview; 0600."""
    send = ("action", "run", "send-draft", "--arg", f"draft_id={DRAFT}")
    waiting = aileron_json(*send, home=console.home, code=75)
    aileron("action", "run", "get-draft", "--arg", f"id={DRAFT}", home=console.home)
    previewed = {"preview.fetched", "run.completed"}
    eventually(
        lambda: previewed <= {record["event"] for record in console.records()}, "all is on record"
    )
    items = aileron_json("logs", "-n", "1000", home=console.home)["items"]
    recorded = {item["seq"]: item["event"] for item in items if "seq" in item}
    assert recorded == {record["seq"]: record["event"] for record in console.records()}
    (asked,) = (item for item in items if item.get("event") == "run.requested")
    assert (asked["run"], asked["action"]) == (waiting["audit_id"], "send-draft")
    (started,) = (item for item in items if "started" in item["message"])
    assert f"process {console.process.pid} at {console.url}" in started["message"]
    log = console.home / "log" / "aileron.log"
    text = log.read_text()
    for quoted in (DRAFT, "Anna", "Q3 numbers", "gmail.googleapis.com/"):
        assert quoted not in text, quoted
    assert log.stat().st_mode & 0o777 == 0o600
    assert console.end() == 0
    (last,) = aileron_json("logs", "-n", "1", home=console.home)["items"]
    assert last["message"] == "serve ended"
    assert "run.requested" in aileron("logs", home=console.home).stdout
