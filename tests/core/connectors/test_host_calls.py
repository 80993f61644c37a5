"""What a guest's requests may do, what the result says of them, and which POST of a preview leaves; each check holds alone."""

import json
import time
from collections.abc import Callable, Collection
from typing import Any

import pytest

from aileron_core.connectors.http.addresses import AddressGuard
from aileron_core.connectors.http.client import OutgoingClient
from aileron_core.connectors.http.target import RequestTarget, parse_target
from aileron_core.connectors.posted_reads import classify_read
from aileron_core.connectors.protocol import Limits, OpResult, Route
from aileron_core.connectors.read_names import AWS_PREFIX, OFFER_KEY, unchecked_op
from aileron_core.connectors.wasm import host
from aileron_core.connectors.wasm.engine import WasmEngine
from aileron_core.errors import CapabilityDenied
from tests.support.guests import HOSTS, Guest, MakeEngine, call, escaped, failed, requesting, wat

API_KEY = '[capabilities.credential]\nkind = "api_key"\n'


def envelope(path: str = "/x", **more: Any) -> str:
    return json.dumps({"url": f"https://api.example{path}"} | more)


@pytest.fixture
def call_guest(guest: Guest, routed: WasmEngine, service: Any) -> Callable[..., OpResult]:
    """Call a guest that makes requests of the routed service and then says something."""
    service.reply("/x")

    def run(*envelopes: str, more: str = "", **options: Any) -> OpResult:
        says = {"say": options.pop("say")} if "say" in options else {}
        return call(guest(requesting(*envelopes, **says), HOSTS, on=routed, more=more), **options)

    return run


Ask = Callable[..., OpResult]


def test_a_request_is_counted_announced_and_answered(call_guest: Ask, service: Any) -> None:
    """on_request comes before the request, once for each."""
    service.reply("/x", status=201)
    seen_at: list[int] = []
    ask = envelope()
    result = call_guest(ask, ask, on_request=lambda: seen_at.append(len(service.seen)))
    more: dict[str, Any] = {"hosts_asked": HOSTS, "last_status": 201, "last_status_host": HOSTS[0]}
    assert result == OpResult(output={"done": True}, requests_sent=2, **more)
    assert seen_at == [0, 1]


def test_an_unlisted_host_wins_over_whatever_was_printed(guest: Guest) -> None:
    """The guest goes on and claims success; the host remembers what it refused."""
    result = call(guest(requesting(envelope()), ("other.example:443",)))
    failure = failed(result)
    assert (failure.class_, failure.boundary) == ("capability_denied", "sandbox")
    assert failure.details["requested"] == "network:api.example:443"
    assert (result.output, result.requests_sent) == (None, 0)


def test_a_later_success_clears_what_failed_before(call_guest: Ask) -> None:
    result = call_guest(json.dumps({"url": "https://evil.example/"}), envelope())
    assert (result.failure, result.requests_sent) == (None, 1)


@pytest.mark.parametrize("method", ["POST", "put", "OPTIONS", "X"])
def test_a_preview_only_reads(call_guest: Ask, service: Any, method: str) -> None:
    result = call_guest(envelope(method=method), read_only=True)
    assert failed(result).class_ == "capability_denied"
    assert "a preview may only read" in failed(result).message
    assert (result.requests_sent, service.seen) == (0, [])


@pytest.mark.parametrize("method", ["GET", "head"])
def test_a_redirected_preview_only_reads(call_guest: Ask, service: Any, method: str) -> None:
    service.reply("/x", status=307, Location="/y")
    service.reply("/y")
    assert call_guest(envelope(method=method), read_only=True).failure is None
    assert [seen for seen, *_ in service.seen] == [method.upper()] * 2


@pytest.mark.parametrize("more", ["", API_KEY])
def test_a_credential_is_declared_and_bound(
    guest: Guest, call_guest: Ask, service: Any, more: str
) -> None:
    """A route opens no kind that the manifest does not declare: who tries a connector so finds that out."""
    failure = failed(call_guest(envelope(credential="oauth2"), more=more))
    assert (failure.class_, failure.boundary) == ("capability_denied", "connector_manifest")
    assert service.seen == []
    result = call(guest(requesting(envelope(credential="api_key")), HOSTS, more=API_KEY))
    failure = failed(result)
    assert (failure.class_, failure.boundary) == ("binding_required", "action")
    assert (failure.details["capability_kind"], result.requests_sent) == ("api_key", 0)


BAD: tuple[Any, ...] = (
    *({"url": 5}, {"headers": "x"}, {"headers": {"X": "a\r\nHost: b"}}, {"body": {}}),
    *({"method": "GET /x HTTP/1.1"}, {"method": "CONNECT"}),
    *({"url": "https://u:p@api.example/"}, {"url": "file:///etc/passwd"}),
)


@pytest.mark.parametrize("text", ["not json", *(envelope(**each) for each in BAD)])
def test_a_bad_request_is_the_connectors_fault(call_guest: Ask, service: Any, text: str) -> None:
    result = call_guest(text)
    assert failed(result).class_ == "connector_runtime_error"
    assert "cannot be sent" in failed(result).message
    assert (result.requests_sent, service.seen) == (0, [])


@pytest.mark.parametrize(("status", "retriable"), [(404, False), (429, True), (503, True)])
def test_an_external_error_carries_the_status_that_the_host_saw(
    call_guest: Ask, service: Any, status: int, retriable: bool
) -> None:
    """429 and 5xx are worth another try; the number is the host's, not the guest's word."""
    service.reply("/x", status=status)
    say = '{"error": {"class": "external_api_error", "message": "no", "status": 200}}'
    failure = failed(call_guest(envelope(), say=say))
    assert (failure.class_, failure.retriable) == ("external_api_error", retriable)
    assert failure.details == {"status": status}


def test_a_service_that_breaks_off_counts_as_reached(call_guest: Ask, service: Any) -> None:
    """Whether it did anything is not known, so the request counts."""
    service.hang_up("/x")
    result = call_guest(envelope(method="POST"))
    assert (failed(result).class_, failed(result).retriable) == ("network_error", True)
    assert (result.requests_sent, result.last_status) == (1, None)


@pytest.mark.parametrize(
    ("method", "status", "location", "counts"),
    [
        ("GET", 200, "", (1, 0, 0)),
        ("HEAD", 200, "", (1, 0, 0)),
        ("delete", 500, "", (1, 1, 0)),
        ("OPTIONS", 200, "", (1, 1, 0)),
        ("POST", 303, "/y", (2, 1, 0)),
        ("POST", 307, "/y", (2, 2, 0)),
        ("POST", 307, "https://evil.example/", (1, 1, 0)),
    ],
)
def test_requests_that_may_change_something_are_counted_apart(
    call_guest: Ask, service: Any, method: str, status: int, location: str, counts: tuple[int, ...]
) -> None:
    service.reply("/x", status=status, **({"Location": location} if location else {}))
    service.reply("/y")
    result = call_guest(envelope(method=method))
    assert (result.requests_sent, result.writes_sent, result.writes_unanswered) == counts


def test_a_crash_after_an_answered_write_is_not_the_connectors_own_word(call_guest: Ask) -> None:
    crash = call_guest(envelope(method="POST"), say="{")
    assert (failed(crash).class_, crash.reported_by_connector) == ("connector_runtime_error", False)
    assert (crash.writes_sent, crash.writes_unanswered) == (1, 0)
    answered = call_guest(envelope(method="POST"), say='{"error": {"message": "no such draft"}}')
    assert (failed(answered).message, answered.reported_by_connector) == ("no such draft", True)


def test_a_lost_write_stays_lost_after_one_that_got_through(call_guest: Ask, service: Any) -> None:
    """The later success clears the error for the guest, not what nobody knows."""
    service.hang_up("/x")
    service.reply("/y")
    result = call_guest(envelope(method="POST"), envelope("/y"))
    assert result.failure is None
    assert (result.requests_sent, result.writes_sent, result.writes_unanswered) == (2, 1, 1)


def test_the_wall_limit_includes_a_silent_service(
    guest: Guest, service: Any, leaping: Any, make_client: Any, make_engine: MakeEngine
) -> None:
    service.hold("/x")
    route = Route(host=HOSTS[0], address="127.0.0.1", port=service.port)
    engine = make_engine(make_client(routes=[route], clock=leaping))
    connector = guest(requesting(envelope()), HOSTS, on=engine)
    began = time.monotonic()
    # It has time to send its request, and 0.4 s from there on.
    result = call(connector, limits=Limits(wall_seconds=20), on_request=lambda: leaping.leap(19.6))
    assert (failed(result).details["limit"], result.requests_sent) == ("wall_time", 1)
    late = "api.example did not answer before the connector's time of 20s was over"
    assert failed(result).message == late
    assert time.monotonic() - began < 15


def test_a_request_has_a_limit_of_its_own(call_guest: Ask, service: Any) -> None:
    """Shorter than the run's, it is a network error and not wall time."""
    service.hold("/x")
    result = call_guest(envelope(), limits=Limits(wall_seconds=20, http_seconds=0.3))
    assert failed(result).class_ == "network_error"


def test_a_listener_that_fails_stops_the_request(call_guest: Ask, service: Any) -> None:
    """What cannot be announced does not leave; the failure is ours and quotes nothing."""

    def refuse() -> None:
        raise RuntimeError("s3cret detail")

    message = failed(call_guest(envelope(), on_request=refuse)).message
    assert ("bug in Aileron" in message, "s3cret" in message) == (True, False)
    assert service.seen == []


def test_a_body_is_read_whole_or_not_at_all(guest: Guest, routed: WasmEngine, service: Any) -> None:
    """The whole answer, again from its start each time; a range outside memory is -1."""
    service.reply("/x", b'{"output": "from the service"}')
    text = envelope()
    body = f"""
      (drop (call $request (i32.const 1024) (i32.const {len(text)})))
      (if (i32.ne (call $read (i32.const 65530) (i32.const 100)) (i32.const -1)) (then unreachable))
      (if (i32.ne (call $read (i32.const 4096) (i32.const 4)) (i32.const 4)) (then unreachable))
      (if (i32.ne (call $read (i32.const 4096) (i32.const -1)) (call $size)) (then unreachable))
      (call $print (i32.const 1) (i32.const 4096) (call $size))"""
    assert call(guest(wat(body, data=escaped(text)), HOSTS, on=routed)).output == "from the service"


class Unguarded(OutgoingClient):
    """The sandbox's own check off: whatever the manifest's check lets through is sent."""

    def check_host(self, target: RequestTarget, allowed: Collection[str]) -> None:
        pass


@pytest.mark.parametrize("url", ["https://api.example/x", "https://API.example.:443/x"])
def test_the_manifest_alone_refuses_a_host_that_it_does_not_list(
    guest: Guest, make_engine: MakeEngine, service: Any, url: str
) -> None:
    """No action asked for it, and the sandbox would let it pass: the request does not leave."""
    service.reply("/x")
    route = Route(host="api.example:443", address="127.0.0.1", port=service.port)
    client = Unguarded(routes=[route])
    engine = make_engine(client)
    text = requesting(json.dumps({"url": url}))
    refused = call(guest(text, ("other.example:443",), on=engine))
    assert (failed(refused).class_, failed(refused).boundary) == ("capability_denied", "sandbox")
    assert (refused.requests_sent, service.seen) == (0, [])
    assert call(guest(text, HOSTS, on=engine)).failure is None
    client.close()


@pytest.fixture
def no_manifest_check(monkeypatch: pytest.MonkeyPatch) -> None:
    """The manifest's check off: every request of a guest reaches the sandbox's client."""
    for name in ("check_target", "check_method", "check_credential"):
        monkeypatch.setattr(host, name, lambda *_args, **_options: None)


@pytest.mark.usefixtures("no_manifest_check")
def test_the_sandbox_alone_refuses_what_is_not_listed(call_guest: Ask, service: Any) -> None:
    """The client holds each hop against the list itself."""
    result = call_guest(json.dumps({"url": "https://evil.example/x"}))
    assert (failed(result).class_, service.seen) == ("capability_denied", [])
    service.reply("/x", status=307, Location="https://evil.example/")
    assert failed(call_guest(envelope())).details["requested"] == "network:evil.example:443"
    assert len(service.seen) == 1


@pytest.mark.usefixtures("no_manifest_check")
@pytest.mark.parametrize("name", ["inside.example", "2130706433", "0x7f.1", "[::ffff:127.0.0.1]"])
def test_the_sandbox_alone_refuses_an_address_inside(
    guest: Guest, make_client: Any, make_engine: MakeEngine, resolver: Any, service: Any, name: str
) -> None:
    """Listed or not, in whatever spelling: no connector reaches this machine."""
    resolver.table["inside.example"] = ["127.0.0.1"]
    engine = make_engine(make_client(resolver=resolver, guard=AddressGuard()))
    place = f"{name}:{service.port}"
    text = requesting(json.dumps({"url": f"http://{place}/x"}))
    failure = failed(call(guest(text, (place,), on=engine)))
    assert (failure.class_, service.seen) == ("capability_denied", [])
    assert "no request may go there" in failure.message


Preview = Callable[..., OpResult]
GRAPHQL = "GraphQL queries at api.example/graphql"
QUERY = "query Issue($id: ID!) { issue(id: $id) { ...Part } } fragment Part on Issue { title }"
MUTATION = "mutation Close { close { ok } }"
ATHENA = "AmazonAthena.GetQueryExecution"
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
AWS_JSON = {"X-Amz-Target": ATHENA, "Content-Type": "application/x-amz-json-1.1"}


def posted(body: str, *, path: str = "/graphql", method: str = "POST", **headers: str) -> str:
    """Return the envelope of a POST of JSON."""
    named = {"Content-Type": "application/json"} | {k.replace("_", "-"): v for k, v in headers.items()}  # fmt: skip
    return envelope(path, method=method, headers=named, body=body)


def graphql(query: str, **members: Any) -> str:
    return json.dumps({"query": query, **members})


@pytest.fixture
def preview(guest: Guest, routed: WasmEngine, service: Any) -> Preview:
    """Let a guest send one envelope in a preview, with what was accepted of it."""
    service.reply("/graphql")
    service.reply("/")

    def run(envelope: str, *accepted: str) -> OpResult:
        connector = guest(requesting(envelope), HOSTS, on=routed)
        return call(connector, read_only=True, accepted_reads=accepted)

    return run


@pytest.mark.parametrize(
    "body",
    [
        graphql(QUERY, variables={"id": "1"}, operationName="Issue"),
        graphql("{ viewer { id } }", operationName=None, variables=None, extensions={}),
        graphql("# mutation { close }\n{ a: viewer { id, b: id } }"),
        graphql('{ search(text: "} mutation { close } {") { id } }'),
    ],
)
def test_a_single_query_leaves_as_it_is(preview: Preview, service: Any, body: str) -> None:
    """Names, aliases, fragments, comments and texts are no reason to refuse; no byte is changed."""
    assert preview(posted(body), GRAPHQL).failure is None
    assert [(method, sent) for method, _, _, sent in service.seen] == [("POST", body.encode())]


@pytest.mark.parametrize(
    ("envelope", "why"),
    [
        (posted(graphql(MUTATION)), "is a mutation, not a query"),
        (posted(graphql("subscription { changed }")), "is a subscription, not a query"),
        (posted(graphql(f"{QUERY} {MUTATION}")), "not exactly one operation"),
        (posted(graphql(f"{QUERY} {MUTATION}", operationName="Issue")), "not exactly one operation"),
        (posted(graphql("fragment A on B { c }")), "not exactly one operation"),
        (posted(graphql(QUERY + " type T { a: Int }")), "not exactly one operation"),
        (posted(graphql(QUERY, operationName="Close")), "operationName"),
        (posted(graphql("#\u2028mutation { close }\n{ viewer { id } }")), "something that parsers read differently"),
        (posted(graphql("#\rmutation { close }\n{ viewer { id } }")), "something that parsers read differently"),
        (posted(graphql("{ viewer { id } }\x00mutation { close }")), "something that parsers read differently"),
        # Where block strings are not known, the mutation is all that runs.
        (posted(graphql('fragment F on T { f(a: [""" " ]) } mutation { x } # """]) } query { y }')), "block string"),
        (posted(graphql("{ viewer { id }")), "not GraphQL"),
        (posted(graphql(QUERY), path="/" + "a" * 300), "too long to be shown"),
        (posted(graphql("{a" * 2000 + "}" * 2000)), "too large to check"),
        (posted(f'{{"query": {json.dumps(MUTATION)}, "query": "{{ a }}"}}'), "appears twice"),
        (posted('{"query": "{ a }", "\\u0071uery": "{ b }"}'), "appears twice"),
        (posted(f'{{"query": "{{ a }}", "Query": {json.dumps(MUTATION)}}}'), "members other than"),
        (posted(graphql("{ a }", id="abc")), "members other than"),
        (posted(graphql("{ a }", extensions={"persistedQuery": {"sha256Hash": "ab"}})), "extensions"),
        (posted('{"variables": {}}'), "no GraphQL document"),
        (posted('{"query": "{ a }", "variables": NaN}'), "not JSON"),
        (posted(f"[{graphql(QUERY)}]"), "not a single JSON object"),
        (posted(graphql(QUERY) + graphql(MUTATION)), "not JSON"),
        (posted("\ufeff" + graphql(QUERY)), "not JSON"),
        (posted(graphql(QUERY), X_HTTP_Method_Override="DELETE"), "override the method"),
        (posted(graphql(QUERY), x_method_override="PUT"), "override the method"),
        (posted(graphql(QUERY), Content_Encoding="gzip"), "compressed"),
        (posted(graphql(QUERY), content_type="application/graphql"), "twice"),
        (posted(graphql(QUERY), path=f"/graphql?query={MUTATION}"), "has a query"),
        (posted("query=mutation", **{"Content-Type": "application/x-www-form-urlencoded"}), "not GraphQL in JSON"),
        (posted("Action=DeleteUser", path="/", **FORM), "has an Action"),
        (posted(QUERY, **{"Content-Type": "application/graphql"}), "neither JSON"),
        (posted(graphql(QUERY), **{"Content-Type": "application/json; charset=utf-7"}), "neither JSON"),
        (posted("{}", path="/", **{**AWS_JSON, "Content-Type": "application/json"}), "not AWS's JSON"),
        (posted("{}", path="/", **{**AWS_JSON, "X-Amz-Target": "AmazonAthena.*"}), "Service.Operation"),
        (posted("{}", path="/", **AWS_JSON, x_amz_target="AmazonAthena.StopQueryExecution"), "twice"),
        (posted("{}", path="/other", **AWS_JSON), "and a path"),
        (posted("{}", path="/?Action=DeleteUser", **AWS_JSON), "has a query"),
        (posted('{"a": 1, "a": 2}', path="/", **AWS_JSON), "appears twice"),
    ],
    ids=lambda each: each[-40:],
)  # fmt: skip
def test_no_possible_write_leaves(preview: Preview, service: Any, envelope: str, why: str) -> None:
    """Accepted or not: a body that two readers may take differently counts as none that was checked."""
    failure = failed(preview(envelope, GRAPHQL, AWS_PREFIX + ATHENA))
    assert failure.class_ == "capability_denied"
    no_read = "not a query" in why
    assert ("is not a read" if no_read else "could not be checked") in failure.message
    assert why in failure.message
    assert OFFER_KEY not in failure.details
    assert service.seen == []


def test_a_body_too_large_to_look_through_is_none_that_was_checked() -> None:
    """It would be read in the console's own process."""
    body = graphql(QUERY + " " * 300_000).encode()
    headers, target = {"Content-Type": "application/json"}, parse_target("https://api.example/")
    with pytest.raises(CapabilityDenied, match="larger than 256 KiB"):
        classify_read(headers, body, target, op="x")


def test_a_get_that_says_it_is_something_else_is_refused(preview: Preview, service: Any) -> None:
    """Services behind old proxies take the header for the method."""
    headers = {"X-HTTP-Method-Override": "DELETE"}
    assert "override the method" in failed(preview(envelope("/", headers=headers))).message
    assert service.seen == []


def test_an_operation_of_aws_leaves_only_by_its_exact_name(preview: Preview, service: Any) -> None:
    """Neither a prefix nor another spelling of what was accepted is enough."""
    envelope = posted("{}", path="/", **AWS_JSON)
    parts = ("", "AmazonAthena", "AmazonAthena.Get", ATHENA.lower())
    for accepted in (GRAPHQL, *(AWS_PREFIX + part for part in parts)):
        assert failed(preview(envelope, accepted)).details[OFFER_KEY] == AWS_PREFIX + ATHENA
    assert service.seen == []
    assert preview(envelope, AWS_PREFIX + ATHENA).failure is None
    assert service.seen[0][2]["X-Amz-Target"] == ATHENA


def test_a_query_that_nobody_accepted_names_what_could_be(preview: Preview, service: Any) -> None:
    assert failed(preview(posted(graphql(QUERY)))).details[OFFER_KEY] == GRAPHQL
    other = failed(preview(posted(graphql(QUERY), path="/v1/items/5/delete"), GRAPHQL))
    assert other.details[OFFER_KEY] == "GraphQL queries at api.example/v1/items/5/delete"
    assert service.seen == []


def test_outside_of_a_preview_all_is_sent(guest: Guest, routed: WasmEngine, service: Any) -> None:
    """A run that a person approved, or that needs none, sends what it sends."""
    service.reply("/graphql")
    assert call(guest(requesting(posted(graphql(MUTATION))), HOSTS, on=routed)).failure is None
    assert len(service.seen) == 1


@pytest.mark.parametrize("name", ["X_Amz_Target", "Content_Type"])
def test_a_header_that_only_looks_like_the_one_that_tells_is_refused(name: str) -> None:
    """The service reads the one with hyphens, and would take the body for something else."""
    known = name.replace("_", "-")
    headers = {name if key == known else key: value for key, value in AWS_JSON.items()}
    with pytest.raises(CapabilityDenied, match="could not be checked"):
        classify_read(headers, b"{}", parse_target("https://api.example/"), op="x")


UNCHECKED = "unchecked requests of x to api.example/read"
"""What `x`, the op that `call` calls, would be accepted to post to `/read`."""


@pytest.mark.parametrize(
    "envelope",
    [
        posted('{"id": 5}', path="/read"),
        posted('{"query": {"match": {"title": "a"}}, "size": 5}', path="/read"),
        posted('{"query": "minutes of May", "filter": {"value": "page"}}', path="/read"),
        posted('{"jsonrpc": "2.0", "id": 1, "method": "notes.get", "params": ["{"]}', path="/read"),
        posted("channel=C1&limit=5&query=a", path="/read", **FORM),
        posted("action=query&titles=Main", path="/read", **FORM),
        json.dumps({"method": "POST", "url": "https://api.example/read"}),
    ],
)
def test_a_body_that_is_neither_graphql_nor_aws_leaves_once_its_op_and_path_are_accepted(
    preview: Preview, service: Any, envelope: str
) -> None:
    """Searches of Notion and Elasticsearch, JSON-RPC, Slack's forms: not a byte before, none changed after."""
    service.reply("/read")
    assert failed(preview(envelope)).details[OFFER_KEY] == UNCHECKED
    assert service.seen == []
    assert preview(envelope, UNCHECKED).failure is None
    body = json.loads(envelope).get("body", "").encode()
    assert [(m, path, sent) for m, path, _, sent in service.seen] == [("POST", "/read", body)]


@pytest.mark.parametrize(
    "accepted",
    [
        "unchecked requests of y to api.example/read",
        "unchecked requests of x to api.example/rea",
        "unchecked requests of x to api.example/read/",
        "unchecked requests of x to api.example/Read",
        "unchecked requests of x to other.example/read",
        "unchecked requests of x to api.example:8443/read",
        "unchecked requests of ",
        "GraphQL queries at api.example/read",
    ],
)
def test_what_was_accepted_of_another_op_host_or_path_lets_nothing_leave(
    preview: Preview, service: Any, accepted: str
) -> None:
    """It is compared whole: no prefix, no case, no default."""
    failure = failed(preview(posted('{"id": 5}', path="/read"), accepted))
    assert (failure.class_, service.seen) == ("capability_denied", [])


@pytest.mark.parametrize("path", ["/v1/notes/6/read", "/read%2F", "/re%61d", "//read", "/read;v=2"])
def test_a_path_with_something_else_of_an_argument_is_an_offer_of_its_own(
    preview: Preview, service: Any, path: str
) -> None:
    """An agent's argument could lead to another operation, so no part of a path stands for others."""
    offered = failed(preview(posted("{}", path=path), UNCHECKED)).details[OFFER_KEY]
    assert offered == f"unchecked requests of x to api.example{path}"
    assert service.seen == []


@pytest.mark.parametrize(
    ("envelope", "why"),
    [
        (posted(graphql(MUTATION), path="/read"), "is a mutation"),
        (posted(json.dumps({"Query": MUTATION}), path="/read"), "members other than"),
        (posted(json.dumps({"query": "a", "operationName": "Close"}), path="/read"), "not GraphQL"),
        (posted(json.dumps({"documentId": "sha256:ab"}), path="/read"), "members other than"),
        (posted(f"[{graphql(QUERY)}]", path="/read"), "not a single JSON object"),
        (posted('{"a": 1, "a": 2}', path="/read"), "appears twice"),
        (posted(f"query={MUTATION}", path="/read", **FORM), "brace"),
        (posted("query=mutation%20%7Bclose%7D", path="/read", **FORM), "brace"),
        (posted("a=1;Action=DeleteUser", path="/read", **FORM), "has an Action"),
        (posted("_method=delete", path="/read", **FORM), "_method"),
        (posted("a=1;_METHOD=delete", path="/read", **FORM), "_method"),
        (posted('{"_method": "DELETE"}', path="/read"), "_method"),
        (posted("é", path="/read", **FORM), "not ASCII"),
        (posted("{}", path="/read", X_HTTP_Method_Override="DELETE"), "override the method"),
        (posted("{}", path="/read", X_Original_URL="/delete"), "override the path"),
        (posted("{}", path="/read", Content_Encoding="gzip"), "compressed"),
        (posted("{}", path="/read?delete"), "has a query"),
        (posted("{}", path="/x/../read"), "resolve differently"),
        (posted("{}", path="/x/%2E./read"), "resolve differently"),
        (posted("a", path="/read", **{"Content-Type": "multipart/form-data; boundary=b"}), "neither JSON"),
        (posted("{}", path="/", **AWS_JSON), "may only read"),
    ],
)  # fmt: skip
def test_graphql_aws_and_overrides_are_checked_whatever_is_accepted_unchecked(
    preview: Preview, service: Any, envelope: str, why: str
) -> None:
    """What could be read as GraphQL or AWS, or as another method or path, is no request that was accepted."""
    failure = failed(preview(envelope, UNCHECKED, "unchecked requests of x to api.example/"))
    assert why in failure.message
    assert unchecked_op(str(failure.details.get(OFFER_KEY, ""))) == ""
    assert service.seen == []


def test_where_graphql_was_accepted_nothing_else_is_sent(preview: Preview, service: Any) -> None:
    """A service of GraphQL may run a stored document by any name."""
    both = (GRAPHQL, "unchecked requests of x to api.example/graphql")
    for envelope in (posted('{"id": "stored"}'), posted("id=stored", **FORM)):
        assert OFFER_KEY not in failed(preview(envelope, *both)).details
    assert service.seen == []


@pytest.mark.parametrize(
    ("envelope", "path", "accepted"),
    [
        (posted("{}", path="/read"), "/read", (UNCHECKED, UNCHECKED[:-4])),
        (posted(graphql(QUERY)), "/graphql", (GRAPHQL,)),
    ],
)
def test_an_accepted_request_that_is_redirected_is_not_followed(
    preview: Preview, service: Any, envelope: str, path: str, accepted: tuple[str, ...]
) -> None:
    """307 would send the same body to another path, which nobody accepted."""
    service.reply(path, status=307, Location="https://api.example/")
    answer = failed(preview(envelope, *accepted))
    assert "redirected the request, and no redirect is followed here" in answer.message
    assert [seen for _, seen, _, _ in service.seen] == [path]
