"""Which POST of a preview leaves: what a person accepted, and only what certainly reads."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from aileron_core.connectors.http.target import parse_target
from aileron_core.connectors.posted_reads import AWS_PREFIX, OFFER_KEY, classify_read
from aileron_core.connectors.protocol import OpResult
from aileron_core.connectors.wasm.engine import WasmEngine
from aileron_core.errors import CapabilityDenied, Failure
from tests.core.connectors.guests import Guest, call, requesting

Preview = Callable[..., OpResult]

HOSTS = ("api.example:443",)
GRAPHQL = "GraphQL queries at api.example/graphql"
QUERY = "query Issue($id: ID!) { issue(id: $id) { ...Part } } fragment Part on Issue { title }"
MUTATION = "mutation Close { close { ok } }"
ATHENA = "AmazonAthena.GetQueryExecution"
AWS_JSON = {"X-Amz-Target": ATHENA, "Content-Type": "application/x-amz-json-1.1"}


def posted(body: str, *, path: str = "/graphql", method: str = "POST", **headers: str) -> str:
    """Return the envelope of a POST of JSON."""
    named = {"Content-Type": "application/json"} | {k.replace("_", "-"): v for k, v in headers.items()}  # fmt: skip
    url = f"https://api.example{path}"
    return json.dumps({"method": method, "url": url, "headers": named, "body": body})


def graphql(query: str, **members: Any) -> str:
    return json.dumps({"query": query, **members})


def failed(result: OpResult) -> Failure:
    assert result.failure is not None
    return result.failure


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
        graphql(QUERY),
        graphql(QUERY, variables={"id": "1"}, operationName="Issue"),
        graphql("{ viewer { id } }", operationName=None, variables=None, extensions={}),
        graphql("# mutation { close }\n{ a: viewer { id, b: id } }"),
        graphql('{ search(text: "} mutation { close } {") { id } }'),
    ],
)
def test_a_single_query_leaves_as_it_is(preview: Preview, service: Any, body: str) -> None:
    """Names, aliases, fragments, comments and texts are no reason to refuse; no byte is changed."""
    result = preview(posted(body), GRAPHQL)
    assert result.failure is None
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
        (posted(graphql(QUERY, operationName=["Issue"])), "operationName"),
        (posted(graphql("#\u2028mutation { close }\n{ viewer { id } }")), "something that parsers read differently"),
        (posted(graphql("#\rmutation { close }\n{ viewer { id } }")), "something that parsers read differently"),
        (posted(graphql("{ viewer { id } }\x00mutation { close }")), "something that parsers read differently"),
        # Where block strings are not known, the mutation is all that runs.
        (posted(graphql('fragment F on T { f(a: [""" " ]) } mutation { x } # """]) } query { y }')), "block string"),
        (posted(graphql("{ viewer { id }")), "not GraphQL"),
        (posted(graphql(QUERY), path="/" + "a" * 300), "too long to be shown"),
        (posted(graphql("{a" * 2000 + "}" * 2000)), "too large to check"),
        (posted(graphql("{" + " a" * 6000 + "}")), "too large to check"),
        (posted(f'{{"query": {json.dumps(MUTATION)}, "query": "{{ a }}"}}'), "appears twice"),
        (posted('{"query": "{ a }", "variables": {"x": 1, "x": 2}}'), "appears twice"),
        (posted('{"query": "{ a }", "\\u0071uery": "{ b }"}'), "appears twice"),
        (posted(f'{{"query": "{{ a }}", "Query": {json.dumps(MUTATION)}}}'), "members other than"),
        (posted(graphql("{ a }", id="abc")), "members other than"),
        (posted(graphql("{ a }", extensions={"persistedQuery": {"sha256Hash": "ab"}})), "extensions"),
        (posted('{"extensions": {"persistedQuery": {"sha256Hash": "ab"}}}'), "extensions"),
        (posted('{"variables": {}}'), "no GraphQL document"),
        (posted('{"query": {"a": 1}}'), "no GraphQL document"),
        (posted('{"query": "{ a }", "variables": NaN}'), "not JSON"),
        (posted(f"[{graphql(QUERY)}]"), "not a single JSON object"),
        (posted(graphql(QUERY) + graphql(MUTATION)), "not JSON"),
        (posted("\ufeff" + graphql(QUERY)), "not JSON"),
        (posted(""), "not JSON"),
        (posted(graphql(QUERY), X_HTTP_Method_Override="DELETE"), "override the method"),
        (posted(graphql(QUERY), X_HTTP_METHOD="PUT"), "override the method"),
        (posted(graphql(QUERY), x_method_override="PUT"), "override the method"),
        (posted(graphql(QUERY), Content_Encoding="gzip"), "compressed"),
        (posted(graphql(QUERY), content_type="application/graphql"), "twice"),
        (posted(graphql(QUERY), path=f"/graphql?query={MUTATION}"), "has a query"),
        (posted("query=mutation", **{"Content-Type": "application/x-www-form-urlencoded"}), "neither GraphQL"),
        (posted("Action=DeleteUser", path="/", **{"Content-Type": "application/x-www-form-urlencoded"}), "neither GraphQL"),
        (posted(QUERY, **{"Content-Type": "application/graphql"}), "neither GraphQL"),
        (posted(graphql(QUERY), **{"Content-Type": "application/json; charset=utf-7"}), "neither GraphQL"),
        (posted("{}", path="/", **{**AWS_JSON, "X-Amz-Target": "AmazonAthena.*"}), "Service.Operation"),
        (posted("{}", path="/", **AWS_JSON, x_amz_target="AmazonAthena.StopQueryExecution"), "twice"),
        (posted("{}", path="/other", **AWS_JSON), "and a path"),
        (posted("{}", path="/?Action=DeleteUser", **AWS_JSON), "has a query"),
        (posted('{"a": 1, "a": 2}', path="/", **AWS_JSON), "appears twice"),
    ],
    ids=lambda each: each[-40:],
)  # fmt: skip
def test_what_may_be_more_than_a_read_never_leaves(
    preview: Preview, service: Any, envelope: str, why: str
) -> None:
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
    with pytest.raises(CapabilityDenied, match="larger than 256 KiB"):
        classify_read(
            {"Content-Type": "application/json"}, body, parse_target("https://api.example/")
        )


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH"])
def test_other_methods_are_refused_whatever_they_carry(
    preview: Preview, service: Any, method: str
) -> None:
    """A query by PUT is no query."""
    assert (
        "may only read" in failed(preview(posted(graphql(QUERY), method=method), GRAPHQL)).message
    )
    assert service.seen == []


def test_a_get_that_says_it_is_something_else_is_refused(preview: Preview, service: Any) -> None:
    """Services behind old proxies take the header for the method."""
    envelope = json.dumps({"url": "https://api.example/", "headers": {"X-HTTP-Method-Override": "DELETE"}})  # fmt: skip
    assert "override the method" in failed(preview(envelope)).message
    assert service.seen == []


def test_an_operation_of_aws_leaves_only_by_its_exact_name(preview: Preview, service: Any) -> None:
    """Neither a prefix nor another spelling of what was accepted is enough."""
    envelope = posted("{}", path="/", **AWS_JSON)
    for accepted in (GRAPHQL, AWS_PREFIX, AWS_PREFIX + "AmazonAthena", AWS_PREFIX + "AmazonAthena.Get", AWS_PREFIX + ATHENA.lower()):  # fmt: skip
        assert failed(preview(envelope, accepted)).details[OFFER_KEY] == AWS_PREFIX + ATHENA
    assert service.seen == []
    assert preview(envelope, AWS_PREFIX + ATHENA).failure is None
    assert service.seen[0][2]["X-Amz-Target"] == ATHENA


def test_a_query_that_nobody_accepted_names_what_could_be(preview: Preview, service: Any) -> None:
    """The refusal carries what a person can be offered."""
    assert failed(preview(posted(graphql(QUERY)))).details[OFFER_KEY] == GRAPHQL
    other = failed(preview(posted(graphql(QUERY), path="/v1/items/5/delete"), GRAPHQL))
    assert other.details[OFFER_KEY] == "GraphQL queries at api.example/v1/items/5/delete"
    assert service.seen == []


def test_a_redirect_of_an_accepted_read_is_not_followed(preview: Preview, service: Any) -> None:
    """What was looked through was looked through for one place: another may take it for something else."""
    service.reply("/graphql", status=307, Location="https://api.example/")
    assert "redirected the request, and no redirect is followed here" in failed(preview(posted(graphql(QUERY)), GRAPHQL)).message  # fmt: skip
    assert [path for _, path, _, _ in service.seen] == ["/graphql"]


def test_outside_of_a_preview_nothing_is_looked_through(
    guest: Guest, routed: WasmEngine, service: Any
) -> None:
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
        classify_read(headers, b"{}", parse_target("https://api.example/"))
