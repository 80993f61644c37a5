"""The bodies of docs/wire.md, from the OpenAPI document that the console answers with."""

from collections.abc import Mapping
from typing import Any

from commands import BEGIN, END

from aileron_core.server.openapi import document
from aileron_core.server.routes import ROUTES


def with_bodies(page: str) -> str:
    """Return *page* with the fields of every route between its two marks."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    whole = document()
    lines = ["| route | takes | answers |", "|---|---|---|"]
    for spec in ROUTES:
        operation = whole["paths"][spec.path][spec.method.lower()]
        takes = _content(operation.get("requestBody", {}), whole)
        wait = [f"`?{each['name']}`" for each in operation["parameters"] if each["in"] == "query"]
        answers = [
            f"{status} {_content(answer, whole)}".strip()
            for status, answer in operation["responses"].items()
            if status != "default"
        ]
        inputs = ", ".join([takes, *wait] if takes else wait)
        if inputs or any(" " in answer for answer in answers):
            lines.append(f"| `{spec.method} {spec.path}` | {inputs} | {'; '.join(answers)} |")
    body = "\n".join(lines)
    return f"{before}{BEGIN}\n\n{body}\n\n{END}{after}"


def _content(part: Mapping[str, Any], whole: Mapping[str, Any]) -> str:
    content = part.get("content", {}).get("application/json")
    return _fields(content["schema"], whole) if content else ""


def _fields(schema: Mapping[str, Any], whole: Mapping[str, Any]) -> str:
    """Return the names of an object's members, those of a list's items with it."""
    schema = _resolved(schema, whole)
    required: list[str] = schema.get("required", [])
    named: list[str] = []
    for name, each in schema.get("properties", {}).items():
        mark = "" if name in required else "?"
        items = _resolved(each, whole).get("items")
        inner = _fields(items, whole) if items else ""
        named.append(f"`{name}`{mark}" + (f" of ({inner})" if inner else ""))
    return ", ".join(named)


def _resolved(schema: Mapping[str, Any], whole: Mapping[str, Any]) -> Mapping[str, Any]:
    if "$ref" not in schema:
        return schema
    found: Mapping[str, Any] = whole["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    return found
