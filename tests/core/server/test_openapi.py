"""The OpenAPI document against the routes, both ways."""

import json
import re
from types import SimpleNamespace
from typing import Any, cast

import pytest
from jsonschema import Draft202012Validator
from openapi_spec_validator import OpenAPIV31SpecValidator
from starlette.routing import Route

from aileron_core.errors import Failure
from aileron_core.runs.model import Progress, RunRecord
from aileron_core.runs.transitions import RunState
from aileron_core.server.agent_api import completed_body, pending_body, result_body
from aileron_core.server.asgi import create_app
from aileron_core.server.openapi import document
from aileron_core.server.routes import ROUTES
from tests.support.server_harness import closed


def test_every_route_is_in_the_document_and_back_with_an_id_and_its_parameters() -> None:
    """The application answers exactly what the document describes; the page of the wire is held to that too."""
    looked_at = SimpleNamespace(devices=None, sessions=None, hosts=frozenset[str]())
    app = create_app(cast("Any", looked_at))
    served = {
        (method, route.path)
        for route in app.routes
        if isinstance(route, Route)
        for method in route.methods or ()
        if method != "HEAD"
    }
    paths = document()["paths"]
    assert served == {(method.upper(), path) for path in paths for method in paths[path]}
    OpenAPIV31SpecValidator(document()).validate()
    ids: list[str] = []
    for path, operations in paths.items():
        for operation in operations.values():
            ids.append(operation["operationId"])
            named = [each["name"] for each in operation["parameters"] if each["in"] == "path"]
            assert named == re.findall(r"{(\w+)}", path)
    assert len(ids) == len(set(ids))


def hold_to_schema(name: str, body: object) -> None:
    """Fail unless the schema of this name describes *body* to the last member."""
    schemas = closed(document()["components"]["schemas"])
    reference = {"$ref": f"#/components/schemas/{name}", "components": {"schemas": schemas}}
    Draft202012Validator(reference).validate(json.loads(json.dumps(body)))


def run_record(state: RunState, **more: Any) -> RunRecord:
    return RunRecord(
        run_id="run-1", session_id="ses-1", action="a", action_sha256="", args={}, args_sha256="",
        gated=True, state=state, requested_at=0.0, approval_id="act-1", **more,
    )  # fmt: skip


@pytest.mark.parametrize("state", list(RunState))
@pytest.mark.parametrize("expires_at", [None, 1.0])
def test_every_state_of_an_approval_is_described(state: RunState, expires_at: float | None) -> None:
    more: dict[str, Any] = {
        "expires_at": expires_at,
        "progress": Progress(steps={"find": 1}, halted_before="change", elapsed=0.1),
        "output": {"output": [1], "steps": {"find": 1, "change": [1]}},
        "words": ("amber", "basil", "cedar"),
        "reason": "not today",
        "failure": Failure(class_="network_error", message="down", details={"host": "x"}),
    }
    body = result_body(run_record(state, **more))
    assert "completed_steps" in body
    hold_to_schema("Result", body)
    hold_to_schema("Result", result_body(run_record(state)))
    hold_to_schema("Pending", pending_body(run_record(state), "http://127.0.0.1:1", attached=True))
    hold_to_schema("Completed", completed_body(run_record(state, **more)))


def test_what_is_sent_or_opened_is_bounded_as_the_document_says() -> None:
    schemas, paths = document()["components"]["schemas"], document()["paths"]
    for spec in ROUTES:
        if spec.access == "a person":  # until it has tokens, they give the one error body
            assert set(paths[spec.path][spec.method.lower()]["responses"]) == {"default"}
        if spec.request_body is not None:
            schema = schemas[spec.request_body.__name__.removesuffix("Body")]
            assert schema["additionalProperties"] is False
            assert set(schema["properties"]) == set(spec.request_body.__annotations__)
    opened = {"session_id": "", "token": "", "gateway_token": "", "url": ""}
    end = {"expires_at": "2026-01-01T00:00:00.000Z", "socket": "/run/s"}  # of a contained session
    hold_to_schema("OpenedSession", {**opened, **end})
