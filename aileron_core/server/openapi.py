"""The OpenAPI document of the routes, generated from their table and the types of their bodies."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from types import NoneType
from typing import (
    Annotated,
    Any,
    ForwardRef,
    Literal,
    NotRequired,
    get_args,
    get_origin,
    is_typeddict,
)

from aileron_core.agent_names import AGENT_NAMES
from aileron_core.server.bodies import (
    WAIT_SECONDS,
    AcceptProjectBody,
    ErrorBody,
    FailureBody,
    Keywords,
)
from aileron_core.server.error_responses import STATUS
from aileron_core.server.route_spec import RouteSpec
from aileron_core.server.routes import ROUTES

_Schema = dict[str, Any]
_PLAIN: Mapping[Any, str] = {str: "string", int: "integer", float: "number", bool: "boolean"}
_ENUMS: Mapping[tuple[type, str], Sequence[str]] = {
    (FailureBody, "class"): sorted(STATUS),
    (AcceptProjectBody, "agent"): list(AGENT_NAMES),
}
"""Values that are listed in a table of the core."""


class _Schemas:
    """The schemas of bodies, by name, each generated when it is first referred to."""

    def __init__(self) -> None:
        self.named: dict[str, _Schema] = {}

    def reference(self, body: type, *, closed: bool = False) -> _Schema:
        """Return a reference to the schema of a TypedDict.

        Args:
            closed: other members are refused, as in every request body.
        """
        name = body.__name__.removesuffix("Body")
        if name not in self.named:
            self.named[name] = {}
            self.named[name] = self._object(body)
            if closed:
                self.named[name]["additionalProperties"] = False
        return {"$ref": f"#/components/schemas/{name}"}

    def _object(self, body: type) -> _Schema:
        # The raw annotations: a `ForwardRef` in them is `Json`, which is anything.
        properties = {key: self._of(hint) for key, hint in body.__annotations__.items()}
        for key, schema in properties.items():
            if values := _ENUMS.get((body, key)):
                schema["enum"] = values
        required: frozenset[str] = getattr(body, "__required_keys__", frozenset())
        schema = {
            "type": "object",
            "properties": properties,
            "required": [key for key in properties if key in required],
        }
        return schema | ({"description": body.__doc__} if body.__doc__ else {})

    def _of(self, hint: Any) -> _Schema:
        origin, arguments = get_origin(hint), get_args(hint)
        if isinstance(hint, ForwardRef):
            return {}
        if is_typeddict(hint):
            return self.reference(hint)
        if hint in _PLAIN:
            return {"type": _PLAIN[hint]}
        if origin is NotRequired:
            return self._of(arguments[0])
        if origin is Annotated:
            return self._of(arguments[0]) | _json_schema(arguments[1])
        if origin is Literal:
            return {"const": arguments[0]} if len(arguments) == 1 else {"enum": list(arguments)}
        if origin is Mapping:
            return {"type": "object"}
        if origin is Sequence:
            return {"type": "array", "items": self._of(arguments[0])}
        inner, null = arguments  # a union of anything else is written nowhere
        assert null is NoneType, hint
        schema = self._of(inner)
        if "type" in schema:
            return schema | {"type": [schema["type"], "null"]}
        return {"anyOf": [schema, {"type": "null"}]}


def _json_schema(keywords: Keywords) -> _Schema:
    """Return the keywords that are given, in JSON Schema's own spelling."""
    return {
        re.sub("_(.)", lambda match: match[1].upper(), name): value
        for name, value in asdict(keywords).items()
        if value is not None
    }


def _responses(spec: RouteSpec, schemas: _Schemas) -> _Schema:
    responses: _Schema = {}
    for status, body in spec.responses.items():
        responses[str(status)] = {"description": spec.summary}
        if body is not None:
            schema = schemas.reference(body) if is_typeddict(body) else {"type": "object"}
            responses[str(status)]["content"] = {"application/json": {"schema": schema}}
    responses["default"] = {
        "description": "The error body of every route.",
        "content": {"application/json": {"schema": schemas.reference(ErrorBody)}},
    }
    return responses


def _operation(spec: RouteSpec, schemas: _Schemas) -> _Schema:
    name = f"{spec.method.lower()}_{re.sub('[^a-z]+', '_', spec.path.strip('/'))}"
    operation: _Schema = {
        "summary": spec.summary,
        "description": f"For: {spec.access}.",
        "operationId": name.rstrip("_"),
        "responses": _responses(spec, schemas),
        "parameters": [
            {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
            for name in re.findall(r"{(\w+)}", spec.path)
        ],
        "security": [{"session": []}] if "session" in spec.access else [],
    }
    if spec.path.endswith("/result"):
        wait = {"type": "integer"} | _json_schema(WAIT_SECONDS)
        operation["parameters"].append({"name": "wait", "in": "query", "schema": wait})
    if spec.request_body is not None:
        schema = schemas.reference(spec.request_body, closed=True)
        operation["requestBody"] = {"content": {"application/json": {"schema": schema}}}
    return operation


def document() -> dict[str, Any]:
    """Return the OpenAPI 3.1 document of every route in the table."""
    schemas = _Schemas()
    paths: dict[str, _Schema] = {}
    for spec in ROUTES:
        paths.setdefault(spec.path, {})[spec.method.lower()] = _operation(spec, schemas)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Aileron",
            "version": "1",
            "description": (
                "The routes that an agent's session can use. Only a person can approve or deny a "
                "call, in the console."
            ),
        },
        "paths": paths,
        "components": {
            "schemas": schemas.named,
            "securitySchemes": {"session": {"type": "http", "scheme": "bearer"}},
        },
    }
