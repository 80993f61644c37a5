"""The OpenAPI document of the routes, made from their table and the schemas here."""

import re
from typing import Any

from aileron_core.runs.transitions import FINAL
from aileron_core.server.error_responses import STATUS
from aileron_core.server.routes import ROUTES, RouteSpec
from aileron_core.settings import AGENT_NAMES

__all__ = ["document"]

_STRING: dict[str, Any] = {"type": "string"}
_TIME: dict[str, Any] = {"type": "string", "format": "date-time"}
_TIME_OR_NULL: dict[str, Any] = {"type": ["string", "null"], "format": "date-time"}
_ANY: dict[str, Any] = {}
_STEPS: dict[str, Any] = {
    "type": "object",
    "description": "The output of each step by its id; only where the action has two or more.",
    "minProperties": 2,
}


def _object(
    properties: dict[str, Any], required: tuple[str, ...] | None = None, **more: Any
) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties if required is None else required),
        **more,
    }


def _ref(name: str) -> dict[str, Any]:
    return {"$ref": f"#/components/schemas/{name}"}


SCHEMAS: dict[str, Any] = {
    "Failure": _object(
        {
            "class": {"type": "string", "enum": sorted(STATUS)},
            "message": _STRING,
            "retriable": {"type": "boolean"},
            "boundary": _STRING,
            "audit_id": {"type": ["string", "null"]},
            "details": {"type": "object"},
        }
    ),
    "Error": _object({"error": _ref("Failure")}),
    "Health": _object({"status": {"const": "ok"}, "proof": _STRING}, ("status",)),
    "Status": _object(
        {
            "running": {"const": True},
            "url": _STRING,
            "pid": {"type": "integer"},
            "version": _STRING,
            "pending": {"type": "integer"},
            "sessions": {"type": "integer"},
        }
    ),
    "OpenSession": _object(
        {
            "agent": {"type": "string", "minLength": 1, "maxLength": 64},
            "label": {"type": "string", "maxLength": 128},
            "cwd": {"type": "string", "maxLength": 4096},
            "pid": {"type": "integer", "minimum": 1},
            "ttl_seconds": {"type": "number", "minimum": 1, "maximum": 2592000, "default": 86400},
            "launched": {"type": "boolean", "default": False},
            "contained": {"type": "boolean", "default": False},
        },
        ("agent", "cwd"),
        additionalProperties=False,
    ),
    "OpenedSession": _object(
        {
            "session_id": _STRING,
            "token": _STRING,
            "gateway_token": _STRING,
            "url": _STRING,
            "expires_at": _TIME,
        }
    ),
    "TakeInProject": _object(
        {
            "agent": {"type": "string", "enum": list(AGENT_NAMES)},
            "path": {"type": "string", "minLength": 1, "maxLength": 4096, "pattern": "^/"},
            "digest": {"type": "string", "pattern": "^[0-9a-f]{64}$"},
        },
        additionalProperties=False,
    ),
    "Project": _object({"agent": _STRING, "path": _STRING, "digest": _STRING, "taken_at": _TIME}),
    "Projects": _object({"items": {"type": "array", "items": _ref("Project")}}),
    "Action": _object(
        {
            "name": _STRING,
            "tool": _STRING,
            "version": _STRING,
            "description": _STRING,
            "gated": {"type": "boolean"},
            "input_schema": {"type": "object"},
        }
    ),
    "LoadError": _object(
        {
            "file": _STRING,
            "line": {"type": "integer"},
            "key": _STRING,
            "class": _STRING,
            "message": _STRING,
        }
    ),
    "Actions": _object(
        {
            "items": {"type": "array", "items": _ref("Action")},
            "load_errors": {"type": "array", "items": _ref("LoadError")},
        }
    ),
    "Run": _object(
        {
            "args": {"type": "object"},
            "idempotency_key": {"type": "string", "minLength": 1, "maxLength": 128},
        },
        ("args",),
        additionalProperties=False,
    ),
    "Completed": _object(
        {
            "status": {"const": "completed"},
            "audit_id": _STRING,
            "output": _ANY,
            "steps": _STEPS,
        },
        ("status", "audit_id", "output"),
    ),
    "Pending": _object(
        {
            "status": {"const": "pending_approval"},
            "approval_id": _STRING,
            "review_url": _STRING,
            "message": _STRING,
            "audit_id": _STRING,
            "expires_at": _TIME_OR_NULL,
        }
    ),
    "Result": _object(
        {
            "status": {"enum": ["pending_approval", *sorted(map(str, FINAL))]},
            "approval_id": _STRING,
            "action": _STRING,
            "audit_id": _STRING,
            "requested_at": _TIME,
            "expires_at": _TIME_OR_NULL,
            "output": _ANY,
            "steps": _STEPS,
            "digest_words": {"type": "array", "items": _STRING, "minItems": 3, "maxItems": 3},
            "reason": {"type": ["string", "null"]},
            "failure": _ref("Failure"),
        },
        ("status", "approval_id", "action", "audit_id", "requested_at", "expires_at"),
    ),
    "Withdraw": _object(
        {"reason": {"type": "string", "maxLength": 2000}}, (), additionalProperties=False
    ),
}

_BODIES: dict[tuple[str, str], str] = {
    ("POST", "/v1/sessions"): "OpenSession",
    ("POST", "/v1/projects"): "TakeInProject",
    ("POST", "/v1/actions/{name}/run"): "Run",
    ("POST", "/v1/action-approvals/{id}/withdraw"): "Withdraw",
}

_ANSWERS: dict[tuple[str, str], dict[int, str | None]] = {
    ("GET", "/v1/health"): {200: "Health"},
    ("GET", "/v1/openapi.json"): {200: ""},
    ("GET", "/v1/status"): {200: "Status"},
    ("POST", "/v1/sessions"): {201: "OpenedSession"},
    ("GET", "/v1/sessions/{id}/hold"): {200: None},
    ("POST", "/v1/sessions/{id}/end"): {204: None},
    ("GET", "/v1/projects"): {200: "Projects"},
    ("POST", "/v1/projects"): {201: "Project"},
    ("GET", "/v1/actions"): {200: "Actions"},
    ("GET", "/v1/actions/{name}"): {200: "Action"},
    ("POST", "/v1/actions/{name}/run"): {200: "Completed", 202: "Pending"},
    ("GET", "/v1/action-approvals/{id}/result"): {200: "Result"},
    ("POST", "/v1/action-approvals/{id}/withdraw"): {200: "Result"},
    ("GET", "/review/{id}"): {200: None},
}


def _answers(spec: RouteSpec) -> dict[str, Any]:
    answers: dict[str, Any] = {}
    for status, name in _ANSWERS.get((spec.method, spec.path), {}).items():
        answers[str(status)] = {"description": spec.summary}
        if name is not None:
            schema = _ref(name) if name else {"type": "object"}
            answers[str(status)]["content"] = {"application/json": {"schema": schema}}
    answers["default"] = {
        "description": "The one error body.",
        "content": {"application/json": {"schema": _ref("Error")}},
    }
    return answers


def _operation(spec: RouteSpec) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "summary": spec.summary,
        "description": f"For: {spec.who}.",
        "operationId": f"{spec.method.lower()}_{re.sub('[^a-z]+', '_', spec.path.strip('/'))}".rstrip(
            "_"
        ),
        "responses": _answers(spec),
        "parameters": [
            {"name": name, "in": "path", "required": True, "schema": _STRING}
            for name in re.findall(r"{(\w+)}", spec.path)
        ],
        "security": [{"session": []}] if "session" in spec.who else [],
    }
    if spec.path.endswith("/result"):
        wait = {"type": "integer", "minimum": 0, "maximum": 60, "default": 0}
        operation["parameters"].append({"name": "wait", "in": "query", "schema": wait})
    if body := _BODIES.get((spec.method, spec.path)):
        operation["requestBody"] = {"content": {"application/json": {"schema": _ref(body)}}}
    return operation


def document() -> dict[str, Any]:
    """Return the OpenAPI 3.1 document of every route in the table."""
    paths: dict[str, dict[str, Any]] = {}
    for spec in ROUTES:
        paths.setdefault(spec.path, {})[spec.method.lower()] = _operation(spec)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Aileron",
            "version": "1",
            "description": "What an agent's session may do. Only a person decides, in the console.",
        },
        "paths": paths,
        "components": {
            "schemas": SCHEMAS,
            "securitySchemes": {"session": {"type": "http", "scheme": "bearer"}},
        },
    }
