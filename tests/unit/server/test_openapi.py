"""The OpenAPI document against the routes, both ways."""

import re

from openapi_spec_validator import OpenAPIV31SpecValidator
from starlette.routing import Route

from aileron_core.server.asgi import create_app
from aileron_core.server.error_responses import STATUS
from aileron_core.server.openapi import document
from aileron_core.server.routes import ROUTES

AGREED = {
    ("GET", "/v1/health"),
    ("GET", "/v1/openapi.json"),
    ("GET", "/v1/status"),
    ("POST", "/v1/sessions"),
    ("GET", "/v1/sessions/{id}/hold"),
    ("POST", "/v1/sessions/{id}/end"),
    ("GET", "/v1/projects"),
    ("POST", "/v1/projects"),
    ("GET", "/v1/actions"),
    ("GET", "/v1/actions/{name}"),
    ("POST", "/v1/actions/{name}/run"),
    ("GET", "/v1/action-approvals/{id}/result"),
    ("POST", "/v1/action-approvals/{id}/withdraw"),
    ("GET", "/v1/action-approvals"),
    ("GET", "/v1/action-approvals/{id}"),
    ("POST", "/v1/action-approvals/{id}/decide"),
    ("GET", "/v1/audit"),
    ("GET", "/v1/audit/{run}"),
    ("GET", "/review/{id}"),
}
"""The routes that were agreed on. None comes or goes by accident."""


class _Plane:
    """What `create_app` looks at before the first request."""

    sessions = None
    hosts = frozenset[str]()


def described() -> set[tuple[str, str]]:
    paths = document()["paths"]
    return {(method.upper(), path) for path, operations in paths.items() for method in operations}


def test_the_document_is_valid_openapi() -> None:
    """The official validator accepts it."""
    OpenAPIV31SpecValidator(document()).validate()


def test_every_route_is_in_the_document_and_back() -> None:
    """The application answers exactly what the document describes, and that is what was agreed."""
    app = create_app(_Plane())  # type: ignore[arg-type]
    served = {
        (method, route.path)
        for route in app.routes
        if isinstance(route, Route)
        for method in route.methods or ()
        if method != "HEAD"
    }
    assert served == described() == AGREED


def test_every_operation_has_an_id_of_its_own_and_names_its_parameters() -> None:
    """What generators of clients need."""
    ids: list[str] = []
    for path, operations in document()["paths"].items():
        for operation in operations.values():
            ids.append(operation["operationId"])
            named = [each["name"] for each in operation["parameters"] if each["in"] == "path"]
            assert named == re.findall(r"{(\w+)}", path)
    assert len(ids) == len(set(ids))


def test_no_route_of_a_persons_promises_an_answer() -> None:
    """Until there are approver tokens, the one error body is all that they give."""
    paths = document()["paths"]
    for spec in ROUTES:
        if spec.who == "a person":
            assert set(paths[spec.path][spec.method.lower()]["responses"]) == {"default"}


def test_the_error_classes_have_the_agreed_statuses() -> None:
    agreed = {
        "invalid_arguments": 400, "invalid_request": 400, "unauthorized": 401, "forbidden": 403,
        "not_found": 404, "conflict": 409, "payload_too_large": 413, "rate_limited": 429,
        "outcome_unknown": 500, "internal_error": 500, "unavailable": 503,
    }  # fmt: skip
    assert {name: STATUS[name] for name in agreed} == agreed
