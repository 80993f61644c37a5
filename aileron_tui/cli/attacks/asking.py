"""Attacks in which an agent gives itself the answer that only a person may give."""

from collections.abc import Mapping
from typing import Any, Final

from aileron_core.clock import SystemClock
from aileron_core.console_port.events import SessionsUpdated
from aileron_core.ids import new_approval_id, new_token
from aileron_tui.cli.attacks.arena import (
    APPROVALS,
    CALL,
    HELLO,
    LOCK,
    RUN,
    Arena,
    Attack,
    Way,
    eventually,
    must,
)

_YES: Final = {"approved": True, "decision": "approve"}
_NEEDS_A_SESSION: Final = ("GET /v1/actions", RUN, "POST /mcp")
_CONNECTS: Final = (
    "import socket, sys; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1])\n"
    "s.sendall(b'GET /v1/actions HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n'); s.recv(12)"
)


def _decide(arena: Arena, token: str, way: Way, status: int) -> str:
    """Try each verb that could decide, with the token under this key of the agent's session."""
    for verb in ("decide", "approve", "deny", "accept"):
        by = (status,) if verb == "decide" else (401, 403, 404)
        line = f"POST {APPROVALS}/{arena.approval}/{verb}"
        arena.refused(by, line, _YES, token=arena.agent.get(token, ""), way=way)
    return f"refused with {status}"


def _through_the_gateway(arena: Arena) -> str:
    token = arena.agent["gateway_token"]
    for line in _NEEDS_A_SESSION:
        arena.refused((401,), line, token=token)
    return _decide(arena, "gateway_token", "port", 401)


def _over_mcp(arena: Arena) -> str:
    names = [each["name"] for each in mcp(arena, "tools/list")["result"]["tools"]]
    must(len(names) > 2, "the tools could not be listed")
    for name in ("approve", "approve_action", "decide", "decide_action", "accept_file"):
        must(name not in names, f"there is a tool {name}")
        told = mcp(arena, "tools/call", name=name, arguments={"approval_id": arena.approval})
        must("error" in told or told["result"].get("isError"), f"the tool {name} was called")
    return f"none of {len(names)} tools decides"


def mcp(arena: Arena, method: str, **params: Any) -> Any:
    """Return the answer to one MCP request of a client that the server has greeted."""
    token, accept = arena.agent["token"], "Accept: application/json, text/event-stream"
    opened = arena.ask("POST /mcp", HELLO, accept, token=token)
    session = [each for each in opened.head.split("\r\n") if each.startswith("mcp-session-id:")]
    must(session, f"MCP did not open ({opened.status})")
    message = {**HELLO, "method": method, "params": params}
    return arena.ask("POST /mcp", message, accept, *session, token=token).json


def _intents_that_decide(arena: Arena) -> str:
    view = arena.shown()
    call = {"approval_id": view.approval_id}
    frames: dict[str, Mapping[str, object]] = {
        "Approve": {**call, "digest": view.digest}, "Deny": call, "UndoRun": {"run_id": view.run_id},
        "Accept": {"kind": "action", "name": "evil.md", "digest": "0" * 64}, "SetPause": {"paused": False},
        "AllowHost": {"session_id": view.session_id, "host": "evil.example:443"}, "StopEverything": {},
        "ChooseAccount": {**call, "connector": "x", "binding": "y"}, "UnlockVaultWithKeyring": {},
    }  # fmt: skip
    for name, fields in frames.items():
        arena.refused((400,), "POST /v1/intents", {name: fields}, way="home")
    return f"none of {len(frames)} is taken there"


def _commands_of_yours(arena: Arena) -> str:
    asked: tuple[tuple[str, object], ...] = (
        LOCK,
        ("POST /v1/intents", {"RemoveFile": {"kind": "action", "file": "send-draft.md"}}),
        ("POST /v1/sessions", {"agent": "launcher", "cwd": "/", "contained": True}),
        ("GET /v1/status", None),
    )
    agent = arena.agent["token"]
    ways: tuple[tuple[str, Way], ...] = (
        (agent, "port"),
        (agent, "home"),
        ("", "port"),
        ("", "own"),
    )
    for token, way in ways:
        for line, body in asked:
            arena.refused((401, 403), line, body, token=token, way=way)
    must(arena.app.vault.state == "unlocked", "the vault was locked")
    return "refused with 401 and 403"


def _guess_ids(arena: Arena) -> str:
    told, now = set[tuple[int, str]](), SystemClock().now()
    for approval in (arena.approval, *(new_approval_id(now) for _ in range(100))):
        for line, by in (
            (f"POST {APPROVALS}/{approval}/decide", 403),
            (f"GET {APPROVALS}/{approval}/result", 404),
        ):
            answer = arena.refused((by,), line, token=arena.other["token"])
            told.add((answer.status, answer.body.replace(approval, "ID")))
    must(len(told) == 2, "known and unknown ids are answered differently")
    return "known and unknown ids are answered alike"


def _another_session(arena: Arena) -> str:
    call, session = f"{APPROVALS}/{arena.approval}", f"/v1/sessions/{arena.agent['session_id']}"
    for line in (
        f"GET {call}/result",
        f"POST {call}/withdraw",
        f"POST {session}/end",
        f"GET {session}/hold",
    ):
        arena.refused((403, 404), line, token=arena.other["token"])
    must(arena.views[arena.approval].state == "pending", "the other agent's call is gone")
    return "refused with 404"


def _consent_in_the_call(arena: Arena) -> str:
    token, draft = arena.other["token"], CALL["args"]
    for more in ({"approved": True}, {"digest": arena.shown().digest}, {"_meta": _YES}):
        arena.refused((400,), RUN, {**CALL, **more}, token=token)
        arena.refused((400,), RUN, {"args": {**draft, **more}}, token=token)
    for header in ("X-Approved: true", "X-Aileron-Actor: person", "Aileron-Device: x"):
        answer = arena.ask(f"{RUN}?approved=true", CALL, header, token=token)
        must(answer.status >= 400 or answer.json["status"] == "pending_approval", "the call ran")
    return "unknown keys are refused, and the rest waits like any call"


def _methods_and_paths(arena: Arena) -> str:
    path = f"{APPROVALS}/{arena.approval}/decide"
    lines = [
        f"{each} {path}" for each in ("GET", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "POST")
    ]
    spelled = (path + "/", "/" + path, path.replace("decide", "%64ecide"), "/v1/x/.." + path[3:])
    for line in (*lines, *(f"POST {each}" for each in spelled)):
        for header in ("X-HTTP-Method-Override: PUT", "X-Original-URL: /v1/intents"):
            arena.refused(range(400, 500), line, _YES, header, token=arena.agent["token"])
    return "all refused"


def _wrong_tokens(arena: Arena) -> str:
    ended, real = arena.session(), arena.agent["token"]
    arena.ask(f"POST /v1/sessions/{ended['session_id']}/end", way="home")
    guesses = (*(new_token() for _ in range(50)), real[:-1], real + "A", real.lower(), "'or 1=1")
    for token in (ended["token"], *guesses):
        for line in _NEEDS_A_SESSION:
            arena.refused((401,), line, token=token)
    return "none opens anything"


def _claims_containment(arena: Arena) -> str:
    session = arena.session(agent="codex", launched=True, contained=True)
    arena.program(_CONNECTS, session["socket"])

    def seen() -> bool:
        told = [each for each in tuple(arena.events) if isinstance(each, SessionsUpdated)]
        shown = {each.session_id: each.containment for each in told[-1].sessions}
        return shown[session["session_id"]] == "none"

    must(eventually(seen), "it is shown as contained")
    return "the console looked at the process, and shows it as not contained"


def _repeats(arena: Arena) -> str:
    keyed, token = {**CALL, "idempotency_key": "attack"}, arena.other["token"]
    calls = {arena.ask(RUN, keyed, token=token).json["approval_id"] for _ in range(20)}
    must(len(calls) == 1, "one key became several calls")
    arena.refused((409,), RUN, {**keyed, "args": {"draft_id": "r-1"}}, token=token)
    return "20 repetitions are one call, and other arguments a conflict"


def _flood(arena: Arena) -> str:
    token, arena.spoiled = arena.session()["token"], True
    bodies = ({"args": {"draft_id": f"r-{number}"}} for number in range(40))
    told = [arena.ask(RUN, body, token=token).status for body in bodies]
    must(set(told) == {202, 429} and told.count(202) <= 20, f"{told.count(202)} calls wait at once")
    return f"{told.count(202)} wait, and the others are refused until those are answered"


def _change_after_the_look(arena: Arena) -> str:
    arena.spoiled = True
    view = arena.shown()
    arena.mailbox.control(change={"id": CALL["args"]["draft_id"], "bcc": "x@evil.example"})
    now = arena.approve(view)
    must(now.state == "pending" and now.drift, f"the call is {now.state}")
    return "nothing was sent, and the call waits again with the difference"


ATTACKS = (
    Attack("approve-as-agent", "An agent approves its own call with its session's token.", _decide, "token", "port", 403),
    Attack("approve-as-anybody", "A program on this machine approves a call without a token.", _decide, "", "port", 401),
    Attack("approve-by-gateway", "An agent approves and calls with the token of its model traffic.", _through_the_gateway),
    Attack("approve-by-home-socket", "A program of your account approves a call over the home's socket.", _decide, "", "home", 401),
    Attack("approve-as-command-line", "An agent brings its token to the home's socket, to be taken for you.", _decide, "token", "home", 403),
    Attack("approve-by-session-socket", "A sandboxed agent approves a call over its session's socket.", _decide, "", "own", 403),
    Attack("approve-by-mcp", "An agent looks for an MCP tool that approves, and calls names it could have.", _over_mcp),
    Attack("intents-that-decide", "A program of your account sends the console's own commands to the home's socket.", _intents_that_decide),
    Attack("your-commands", "An agent locks the vault, removes files and opens sessions, as your command line can.", _commands_of_yours),
    Attack("guess-ids", "An agent tells from the answers which calls of others exist.", _guess_ids),
    Attack("another-session", "An agent reads, withdraws and ends what is another agent's.", _another_session),
    Attack("consent-in-the-call", "An agent says in its call that you approved it: in body, arguments, headers, query.", _consent_in_the_call),
    Attack("other-methods", "An agent reaches the route that decides by other methods, paths and headers.", _methods_and_paths),
    Attack("wrong-tokens", "A program tries the token of an ended session, guesses, and parts of a real one.", _wrong_tokens),
    Attack("claim-containment", "A program says that it is a sandboxed agent, to look harmless on the screen.", _claims_containment),
    Attack("repeat-a-call", "An agent repeats a call under one key, also with other arguments.", _repeats),
    Attack("flood-the-queue", "An agent asks so often that you press a key without looking.", _flood),
    Attack("change-after-the-look", "The draft gets another recipient after you looked and before you approve.", _change_after_the_look),
)  # fmt: skip
