"""Where tokens do not lie, and what another program of the same user cannot read."""

from aileron_core.ids import token_hash
from examples.mailbox.server import Mailbox
from tests.support.processes import command_lines
from tests.support.server_harness import DRAFT, Console, Serve, aileron, query


def test_a_token_is_returned_once_and_kept_nowhere(serve: Serve, mailbox: Mailbox) -> None:
    """Neither in the home (database, log, address file), nor in a command line: hashes alone."""
    console = serve(mailbox, close_fds=True)  # started, not forked: its command line is its own
    opened = console.session()
    token, gateway = opened["token"], opened["gateway_token"]
    console.run("list-drafts", {}, token)
    console.run("send-draft", {"draft_id": DRAFT}, token)
    console.get(f"/v1/actions?{token}", token=token)
    console.get("/v1/actions", headers={"Authorization": f"Basic {token}"})
    console.request("POST", "/v1/actions/x/run", raw=token.encode(), token=token)
    console.get("/v1/actions", token=token, headers={"Origin": f"https://{token}.example"})
    with console.hold(opened["session_id"], token=token):
        lines = "\n".join(command_lines().values())
        assert "aileron_tui.cli" in lines
        held = [path for path in console.home.rglob("*") if path.is_file()]
        assert {"aileron.db", "aileron.db-wal", "daemon.json", "aileron.log"} <= {
            path.name for path in held
        }
        for secret in (token, gateway):
            assert secret not in lines
            for path in held:
                assert secret.encode() not in path.read_bytes(), path
    kept = query(console.home, "SELECT token_hash, gateway_hash FROM sessions")
    assert (token_hash(token), token_hash(gateway)) in kept


def test_arguments_and_previews_are_not_in_the_log(console: Console) -> None:
    token = console.session()["token"]
    marker = "zebra-crossing-41"
    console.run("list-drafts", {"query": marker}, token)
    console.run("get-draft", {"id": marker}, token)
    console.run("send-draft", {"draft_id": marker}, token)
    console.run("send-draft", {marker: marker}, token)
    console.end()
    assert marker not in (console.home / "log" / "aileron.log").read_text()


def test_the_command_line_hands_no_token_to_any_process(console: Console) -> None:
    """`aileron action run` opens its own session; nothing of it is in a file afterwards."""
    aileron("action", "run", "list-drafts", home=console.home)
    sessions = [each for each in console.records() if each["event"] == "session.opened"]
    assert len(sessions) == 1
    ended = [each for each in console.records() if each["event"] == "session.ended"]
    assert len(ended) == 1, "and it is ended with the command"
