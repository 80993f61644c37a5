"""Which POST of a preview leaves: what a person accepted, and only what certainly reads."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from aileron_core.connectors.http.target import parse_target
from aileron_core.connectors.posted_reads import classify_read
from aileron_core.connectors.protocol import OpResult
from aileron_core.connectors.read_names import AWS_PREFIX, OFFER_KEY, unchecked_op
from aileron_core.connectors.wasm.engine import WasmEngine
from aileron_core.errors import CapabilityDenied
from tests.support.guests import HOSTS, Guest, call, failed, requesting

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
    url = f"https://api.example{path}"
    return json.dumps({"method": method, "url": url, "headers": named, "body": body})


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
    envelope = json.dumps({"url": "https://api.example/", "headers": headers})
    assert "override the method" in failed(preview(envelope)).message
    assert service.seen == []


def test_an_operation_of_aws_leaves_only_by_its_exact_name(preview: Preview, service: Any) -> None:
    """Neither a prefix nor another spelling of what was accepted is enough."""
    envelope = posted("{}", path="/", **AWS_JSON)
    for part in ("", "AmazonAthena", "AmazonAthena.Get", ATHENA.lower()):
        assert (
            failed(preview(envelope, AWS_PREFIX + part)).details[OFFER_KEY] == AWS_PREFIX + ATHENA
        )
    assert failed(preview(envelope, GRAPHQL)).details[OFFER_KEY] == AWS_PREFIX + ATHENA
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
    connector = guest(requesting(posted(graphql(MUTATION))), HOSTS, on=routed)
    assert call(connector).failure is None
    assert len(service.seen) == 1


@pytest.mark.parametrize("name", ["X_Amz_Target", "Content_Type"])
def test_a_header_that_only_looks_like_the_one_that_tells_is_refused(name: str) -> None:
    """The service reads the one with hyphens, and would take the body for something else."""
    headers = {key: value for key, value in AWS_JSON.items() if key != name.replace("_", "-")}
    headers[name] = AWS_JSON[name.replace("_", "-")]
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
