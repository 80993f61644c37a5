"""Which POST requests a preview may send: accepted GraphQL queries, AWS operations by name, one op to one path.

A body that cannot be parsed unambiguously is refused: the service may interpret it differently. Of the
requests of one op to one path only that they are neither GraphQL nor AWS is checked: whether they only read
is for the person to know.
"""

import json
import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any, NoReturn, cast
from urllib.parse import unquote_plus

from aileron_core.connectors.http.host_names import short_host
from aileron_core.connectors.http.target import RequestTarget
from aileron_core.connectors.read_names import AWS_PREFIX, GRAPHQL_PREFIX, UNCHECKED_PREFIX
from aileron_core.errors import CapabilityDenied

_MAX_BODY = 256 * 1024
_MAX_TOKENS = 5_000
_TARGET = re.compile(r"[A-Za-z][A-Za-z0-9_]*(\.[A-Za-z0-9_]+)+")
_MAX_NAME = 200
"""Characters of what a person has to read in order to accept it."""
_UTF_8 = r'(;\s*charset="?utf-8"?)?'
_JSON = re.compile(rf"application/json{_UTF_8}", re.IGNORECASE)
_FORM = re.compile(rf"application/x-www-form-urlencoded{_UTF_8}", re.IGNORECASE)
_OP = re.compile(r"[A-Za-z0-9_.-]+")
_AWS_JSON = re.compile(r"application/x-amz-json-1\.[01]", re.IGNORECASE)
_DECISIVE = frozenset({"content-type", "x-amz-target"})
"""Headers that decide how a body is read."""
_MEMBERS = frozenset({"query", "operationName", "variables", "extensions"})
_OF_GRAPHQL_ALONE = frozenset({"operationname", "variables", "extensions", "documentid"})
_OTHER_PATH = re.compile(r"(^|/)(\.|%2e){1,2}(/|$)", re.IGNORECASE)
_PATH_OVERRIDE = re.compile(r"(original|rewrite|forwarded)-(ur[il]|path|prefix)")
_AMBIGUOUS = re.compile(
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ufeff\ud800-\udfff]|\r(?!\n)"
    r'|"""'
)
"""What two parsers may take for different things: ends of lines and of texts, block strings."""


class _NoRead(ValueError):
    """The request was understood, and is not a read."""


def classify_read(
    headers: Mapping[str, str],
    body: bytes,
    target: RequestTarget,
    *,
    op: str,
    accepted: Collection[str] = (),
) -> str:
    """Return the kind of read that this POST of a preview is, in the words that a person accepts.

    Args:
        headers: those that the connector set.
        body: of the request.
        target: where it is sent.
        op: the op that sends it.
        accepted: the reads that a person accepted. To a place of GraphQL nothing else is sent.

    Raises:
        CapabilityDenied: it is not a read, or that could not be determined.
    """
    try:
        read = _read(_headers(headers), body, target, op, accepted)
        if len(read) > _MAX_NAME:
            raise ValueError("its path or X-Amz-Target is too long to be shown")
    except ValueError as error:
        verdict = "is not a read" if isinstance(error, _NoRead) else "could not be checked"
        raise CapabilityDenied(
            f"a preview may only read, and the POST that the connector tried on {target.host_port} "
            f"{verdict}: {error}",
            details={"requested": f"network:{target.host_port}", "method": "POST"},
        ) from error
    return read


def _read(
    headers: Mapping[str, str],
    body: bytes,
    target: RequestTarget,
    op: str,
    accepted: Collection[str],
) -> str:
    if "?" in target.path:
        raise ValueError("its URL has a query, which may contradict its body")
    if _OTHER_PATH.search(target.path):
        raise ValueError("its path has . or .., which servers resolve differently")
    if len(body) > _MAX_BODY:
        raise ValueError(f"its body is larger than {_MAX_BODY // 1024} KiB")
    kind = headers.get("content-type", "")
    if "x-amz-target" in headers:
        if not _AWS_JSON.fullmatch(kind):
            raise ValueError("it has an X-Amz-Target, and its Content-Type is not AWS's JSON")
        _content(body)
        return AWS_PREFIX + _target(headers["x-amz-target"], target)
    place = short_host(target.host_port) + target.path
    as_graphql = GRAPHQL_PREFIX + place
    if _FORM.fullmatch(kind) or not (body or kind):
        _check_form(body)
    elif not _JSON.fullmatch(kind):
        raise ValueError("its Content-Type is neither JSON (also AWS's, with a target) nor a form")
    else:
        content = _content(body)
        if as_graphql in accepted or _may_be_graphql(content):
            _check_graphql(content)
            return as_graphql
    if as_graphql in accepted:
        raise ValueError("its body is not GraphQL in JSON, which is all that you accepted there")
    if not _OP.fullmatch(op):
        raise ValueError("its op has a name that cannot be shown in one word")
    return f"{UNCHECKED_PREFIX}{op} to {place}"


def _headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers by lower-case name; refuses any that could change the request's meaning."""
    by_name: dict[str, str] = {}
    for name, value in headers.items():
        lower = name.lower().replace("_", "-")
        if lower in by_name:
            raise ValueError(f"it has the header {lower} twice")
        if lower in _DECISIVE and name.lower() != lower:
            raise ValueError(f"its header {name} is not {lower}, but some servers treat it as such")
        if is_method_override(lower):
            raise ValueError(f"its header {lower} may override the method")
        if _PATH_OVERRIDE.search(lower):
            raise ValueError(f"its header {lower} may override the path")
        if lower == "content-encoding" and value.strip(" \t").lower() != "identity":
            raise ValueError("its body is compressed")
        by_name[lower] = value.strip(" \t")
    return by_name


def is_method_override(name: str) -> bool:
    """Return whether services may take a header of this *name* for the actual method."""
    lower = name.lower()
    return "method" in lower or "override" in lower


def _content(body: bytes) -> dict[str, Any]:
    """Parse the body as a single JSON object."""
    try:
        content: object = json.loads(
            body.decode(), object_pairs_hook=_unique_members, parse_constant=_not_json
        )
    except UnicodeDecodeError as error:
        raise ValueError("its body is not UTF-8") from error
    except json.JSONDecodeError as error:
        raise ValueError("its body is not JSON") from error
    except RecursionError as error:
        raise ValueError("its body is nested too deeply") from error
    if not isinstance(content, dict):
        raise ValueError("its body is not a single JSON object; a list of requests is not allowed")
    return cast("dict[str, Any]", content)


def _unique_members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError("a key appears twice in its body")
    return members


def _not_json(_name: str) -> NoReturn:
    raise ValueError("its body is not JSON")


def _target(name: str, target: RequestTarget) -> str:
    if not _TARGET.fullmatch(name):
        raise ValueError("its X-Amz-Target is not of the form Service.Operation")
    if target.path != "/":
        raise ValueError("it has an X-Amz-Target and a path, which may contradict it")
    return name


def _may_be_graphql(content: Mapping[str, Any]) -> bool:
    """Return whether a service could take *content* for GraphQL, whose every document has a brace.

    Others call a search `query` (as a text, or as an object).
    """
    members = [(name.lower(), value) for name, value in content.items()]
    _check_names(name for name, _ in members)
    return any(
        name in _OF_GRAPHQL_ALONE or (name == "query" and isinstance(value, str) and "{" in value)
        for name, value in members
    )


def _check_form(body: bytes) -> None:
    """Check that a form (or an empty body) is neither GraphQL, nor AWS's Query protocol, nor another method.

    Raises:
        ValueError: it may be.
    """
    try:
        text = body.decode("ascii")
    except UnicodeDecodeError as error:
        raise ValueError("its form is not ASCII") from error
    names = {unquote_plus(each.partition("=")[0]) for each in re.split("[&;]", text)}
    _check_names(name.lower() for name in names)
    if "Action" in names:
        raise ValueError("its form has an Action, as AWS's Query protocol, which names no target")
    if "{" in unquote_plus(text):  # some services read JSON whatever the Content-Type says
        raise ValueError("its form has a brace and may be GraphQL")


def _check_names(names: Iterable[str]) -> None:
    if "_method" in names:
        raise ValueError("its body has a _method, which may override the method")


def _check_graphql(content: Mapping[str, Any]) -> None:
    """Check that *content* contains exactly one complete query.

    Raises:
        ValueError: it does not, or another parser may read it differently.
    """
    if not set(content) <= _MEMBERS:
        raise ValueError("it has members other than query, operationName and variables")
    if content.get("extensions"):
        raise ValueError("it has GraphQL extensions, which can refer to another document")
    document, named = content.get("query"), content.get("operationName")
    if not isinstance(document, str):
        raise ValueError("it contains no GraphQL document")
    if not isinstance(content.get("variables"), dict | None):
        raise ValueError("its variables are not a JSON object")
    if _AMBIGUOUS.search(document):
        raise ValueError(
            "its document contains something that parsers read differently, such as a block string"
        )
    if named not in (None, (name := _name_of_query(document))):
        raise ValueError(
            f"its operationName does not match its only query, {name or 'which has no name'}"
        )


def _name_of_query(document: str) -> str | None:
    """Return the name of the only operation in *document*, which has to be a query."""
    # 100 ms to import, and most consoles never look through GraphQL.
    from graphql import GraphQLSyntaxError, OperationType, parse
    from graphql.language import FragmentDefinitionNode, OperationDefinitionNode

    try:
        definitions = parse(document, no_location=True, max_tokens=_MAX_TOKENS).definitions
    except (GraphQLSyntaxError, RecursionError) as error:
        raise ValueError("its document is not GraphQL, or too large to check") from error
    operations = [each for each in definitions if isinstance(each, OperationDefinitionNode)]
    others = [
        each
        for each in definitions
        if not isinstance(each, OperationDefinitionNode | FragmentDefinitionNode)
    ]
    if others or len(operations) != 1:
        raise ValueError("its document is not exactly one operation with its fragments")
    if operations[0].operation is not OperationType.QUERY:
        raise _NoRead(f"its document is a {operations[0].operation.value}, not a query")
    name = operations[0].name
    return None if name is None else name.value
