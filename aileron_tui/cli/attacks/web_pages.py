"""Attacks by a web page in your browser. Each brings a session's token, so that only its being a page is refused."""

from aileron_core.clock import SystemClock
from aileron_core.ids import new_approval_id
from aileron_tui.cli.attacks.arena import CALL, RUN, Arena, Attack, must


def _refused(arena: Arena, *headers: str) -> str:
    """Send what a page could send to read and to call; `PORT` in *headers* is the console's."""
    given = [each.replace("PORT", str(arena.port)) for each in headers]
    for line in ("GET /v1/actions", "GET /v1/health", f"OPTIONS {RUN[5:]}", RUN, "POST /mcp"):
        answer = arena.refused((400, 403), line, None, *given, token=arena.agent["token"])
        must("access-control-" not in answer.head, "the answer lets a page read it")
    return "refused with 403, and no answer allows a page to read it"


def _other_names(arena: Arena) -> str:
    for host in ("localhost", "127.1", "[::1]", "127.0.0.1.evil.example", "127.0.0.1@evil.example"):
        _refused(arena, f"Host: {host}:PORT")
    return _refused(arena, "Host: 127.0.0.1")


def _whole_address(arena: Arena) -> str:
    line = f"GET http://127.0.0.1:{arena.port}/v1/actions"
    arena.refused((403,), line, None, "Host: evil.example", token=arena.agent["token"])
    return "refused with 403"


def _form(arena: Arena) -> str:
    form = ("application/x-www-form-urlencoded", "multipart/form-data; boundary=x")
    for media in ("text/plain", *form, ""):
        arena.refused((400,), RUN, CALL, f"Content-Type: {media}", token=arena.other["token"])
    return "only JSON is read"


def _smuggled(arena: Arena) -> str:
    host = f"Host: 127.0.0.1:{arena.port}\r\n"
    hidden = f"GET /v1/status HTTP/1.1\r\n{host}\r\n"
    for lengths in (
        f"Content-Length: 0\r\nContent-Length: {len(hidden)}",
        f"Content-Length: {len(hidden)}\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity",
        f"Content-Length : {len(hidden)}",
        "Content-Length: +5",
    ):
        answer = arena.send(f"{RUN} HTTP/1.1\r\n{host}{lengths}\r\n\r\n0\r\n\r\n{hidden}".encode())
        must(answer.status in (0, 400), f"it was answered with {answer.status}")
        must("HTTP/1.1" not in answer.body, "one request had two answers")
    return "refused, and the connection closed"


def _page_of_a_call(arena: Arena) -> str:
    ids = (arena.approval, new_approval_id(SystemClock().now()))
    pages = {arena.ask(f"GET /review/{each}").body for each in ids}
    must(len(pages) == 1, "the page is another one for a call that exists")
    return "the page is the same for every id"


def _review_api(arena: Arena) -> str:
    own = (f"Origin: http://127.0.0.1:{arena.port}", "Sec-Fetch-Site: same-origin")
    signed = (
        f"Aileron-Device: dev-{'0' * 16}",
        "Aileron-Number: 1",
        f"Aileron-Signature: {'0' * 128}",
    )
    link = {"secret": "0" * 32, "commitment": "0" * 64}
    for route in ("wait", "events", "item", "part", "decide"):
        line = f"POST /review/api/{route}"
        arena.refused((401,), line, {"id": arena.approval}, *own, *signed)
        arena.refused((401, 403), line, {"id": arena.approval}, *own, token=arena.agent["token"])
        arena.refused((403,), line, {"id": arena.approval}, *signed)
    arena.refused((403,), "POST /review/api/link", link, *own)
    arena.refused((403,), "POST /review/api/link", link, "Origin: null", *own[1:])
    return "nothing without a link from the console, and a signature by the key that you confirmed"


ATTACKS = (
    Attack("page-of-a-site", "A web site sends requests to the console.", _refused, "Origin: https://evil.example"),
    Attack("page-of-another-port", "A page of a development server on this machine sends requests to the console.", _refused, "Origin: http://127.0.0.1:3000"),
    Attack("page-of-the-console", "A page that seems to be the console's own calls actions.", _refused, "Origin: http://127.0.0.1:PORT"),
    Attack("page-without-origin", "A page in a sandboxed frame, with the origin `null`, sends requests.", _refused, "Origin: null"),
    Attack("two-origins", "A request has two origins, one of them the console's own.", _refused, "Origin: http://127.0.0.1:PORT", "Origin: null"),
    Attack("rebound-name", "A site's name is made to lead to this machine (DNS rebinding).", _refused, "Host: evil.example:PORT"),
    Attack("two-hosts", "A request names two servers, so that two readers of it see different ones.", _refused, "Host: 127.0.0.1:PORT", "Host: evil.example"),
    Attack("other-names", "The console is reached by other names of this machine than its exact address.", _other_names),
    Attack("whole-address", "A request has the console's address in its first line, and another in its Host.", _whole_address),
    Attack("form-of-a-page", "A page posts a form, about which a browser asks nobody.", _form),
    Attack("smuggled-request", "A request hides a second one by lengths that two readers understand differently.", _smuggled),
    Attack("page-of-a-call", "A link to the page of a call shows it, or tells that it exists.", _page_of_a_call),
    Attack("review-page", "A program that you did not pair uses what the review page uses, with a token, a guessed link, a forged signature.", _review_api),
)  # fmt: skip
