"""Translates the answers of `AgentApi` to results of tools, as MCP has them and a model reads them. Pure.

An agent's program may hand the model either the text or the structured half of a result, so each
half carries every fact. All results here are plain dicts in the shape of `CallToolResult`; the
MCP server turns them into the protocol's own types.
"""

import json
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from json.encoder import encode_basestring
from typing import Any, TypeAlias, cast

from aileron_core.actions.model import is_builtin
from aileron_core.canonical import SLICE, JsonObject, json_encoder, slices_in_turns
from aileron_core.errors import SERVER_RESULT, Failure, InvalidArguments
from aileron_core.ids import APPROVAL_ID
from aileron_core.server.bodies import CompletedBody, PendingBody, ResultBody
from aileron_core.text import escape

ToolResult: TypeAlias = dict[str, Any]

CHECK_ACTION_STATUS = "check_action_status"
WITHDRAW_ACTION = "withdraw_action"

_MAX_WAIT = 60

_NEXT_STEP: Mapping[str, str] = {
    "approval_denied": "Do not repeat the same call. Follow the reason, or ask the user.",
    "approval_expired": "Ask the user whether it is still wanted. Calling again asks for a new approval.",
    "approval_withdrawn": "Calling again asks for a new approval.",
    "binding_failed": "Ask the user to check the credential in the Aileron console, then call again.",
    "binding_required": "Ask the user to bind the credential in the Aileron console, then call again.",
    "capability_denied": "Calling again will not help. Tell the user what was refused.",
    "conflict": "Tell the user.",
    "external_api_error": "Read the service's answer. Correct the arguments, or tell the user.",
    "forbidden": "This session is not allowed to do that. Tell the user.",
    "hash_mismatch": (
        "A file has changed since it was accepted. Ask the user to review it in the Aileron "
        "console."
    ),
    "internal_error": "This is an internal error of Aileron. Tell the user the audit id.",
    "invalid_arguments": "",
    "invalid_request": "Correct the call and try again.",
    "network_error": "The service could not be reached. Call again later.",
    "not_found": "Check the name or the id. Ids of other sessions are not found either.",
    "outcome_unknown": (
        "It may have happened, so do not repeat it. Ask the user to check the service and "
        "the Aileron console."
    ),
    "payload_too_large": "Send less in one call.",
    "rate_limited": "Wait a minute, or until pending approvals are decided, before the next call.",
    "resource_limit_exceeded": "Ask for less in one call, or tell the user which limit was reached.",
    "signature_failure": "A signature is not valid. Ask the user to check the Aileron console.",
    "unauthorized": "This session has ended. Ask the user to start the agent again.",
    "unavailable": "Nothing ran. Call again in a minute.",
}
_COMPLETED = ("output", "steps", "audit_id", "digest_words", "edited_by_person")
_OF_CALL = ("audit_id", "digest_words")
_PENDING = ("approval_id", "review_url", "message", "audit_id", "expires_at", "waits_for")
_STOPS = (".", "!", "?", "…", "。", "！", "？")
_OTHER_NEXT_STEP = "Tell the user. They can find the call by its audit id in the Aileron console."
_INVALID = frozenset({"invalid_arguments", "invalid_request", "not_found", "payload_too_large"})
_STATUS_BY_CLASS = {
    "approval_denied": "denied",
    "approval_expired": "expired",
    "approval_withdrawn": "withdrawn",
    "outcome_unknown": "unknown",
}


def builtin_tools() -> list[dict[str, Any]]:
    """Return the two tools that are no actions: to ask after an approval, and to withdraw it."""
    approval = {
        "type": "string",
        "description": "The approval_id from a result with status pending_approval.",
    }
    wait: dict[str, Any] = {
        "type": "integer",
        "minimum": 0,
        "maximum": _MAX_WAIT,
        "description": "Seconds to wait for an answer, 0 (the default) to 60.",
    }
    check = _object_schema({"approval_id": approval, "wait_seconds": wait})
    return [
        {
            "name": CHECK_ACTION_STATUS,
            "description": (
                "Check an action that waits for a person's approval. Returns its result once it has "
                "run, the reason if it was denied, or status pending_approval."
            ),
            "inputSchema": check,
            "annotations": {"readOnlyHint": True, "openWorldHint": False},
        },
        {
            "name": WITHDRAW_ACTION,
            "description": (
                "Withdraw a request that still waits for a person's approval and is no longer "
                "needed. Fails once the action has started or ended."
            ),
            "inputSchema": _object_schema({"approval_id": approval}),
            "annotations": {
                "readOnlyHint": False,
                "destructiveHint": False,
                "openWorldHint": False,
            },
        },
    ]


def _object_schema(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": ["approval_id"],
        "additionalProperties": False,
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusQuery:
    """The arguments of the two own tools; `wait_seconds` is 0 to 60."""

    approval_id: str
    wait_seconds: int = 0


def parse_status_query(arguments: JsonObject, *, may_wait: bool) -> StatusQuery:
    """Read the arguments of `check_action_status` (*may_wait*) or `withdraw_action`.

    Raises:
        InvalidArguments: one is missing, of the wrong kind or not an argument of that tool.
    """
    known = {"approval_id", "wait_seconds"} if may_wait else {"approval_id"}
    problems = [
        {"argument": name, "problem": "is not an argument of this tool"}
        for name in arguments
        if name not in known
    ]
    approval_id = arguments.get("approval_id")
    if not isinstance(approval_id, str) or APPROVAL_ID.fullmatch(approval_id) is None:
        problems.append(
            {"argument": "approval_id", "problem": "must be an id like act-<time>-<hex>"}
        )
    wait = arguments.get("wait_seconds") if may_wait else None
    # 5.0 is an integer to JSON and true is not; null counts as absent.
    whole = isinstance(wait, int | float) and not isinstance(wait, bool) and wait == wait // 1
    if wait is not None and not (whole and 0 <= cast("float", wait) <= _MAX_WAIT):
        problems.append(
            {"argument": "wait_seconds", "problem": "must be a whole number from 0 to 60"}
        )
    if problems:
        raise InvalidArguments(
            "The arguments do not match this tool's schema.", details={"problems": problems}
        )
    return StatusQuery(
        approval_id=cast("str", approval_id), wait_seconds=int(cast("float", wait or 0))
    )


def run_result(answer: CompletedBody | PendingBody | Failure) -> ToolResult:
    if isinstance(answer, Failure):
        return error_result(answer)
    if answer["status"] == "completed":
        return _completed(answer, _COMPLETED)
    return _pending(answer)


def approval_result(body: ResultBody, pending: PendingBody | None = None) -> ToolResult:
    """Return the result for how an approval stands.

    Args:
        pending: what began this call; it has members that *body* leaves out.
    """
    state = body["status"]
    if state == "pending_approval":
        known: dict[str, Any] = {**(pending or {})}
        if known.get("waits_for") != body.get("waits_for"):
            known.pop("message", None)  # it said what the call waited for at first
        return _pending({**known, **body})
    if state == "completed":
        return _completed(body, _COMPLETED)
    if state == "denied":
        reason = body.get("reason")
        because = f"Their reason: {_quoted(reason)}" if reason else "They gave no reason."
        return _ended(body, "approval_denied", f"A person denied this. {because}")
    if state == "expired":
        return _ended(body, "approval_expired", "Nobody decided before the approval expired.")
    if state == "withdrawn":
        return _ended(body, "approval_withdrawn", "The request was withdrawn.")
    failure = body.get("failure")
    if failure is None:  # deleted long after the end, or a row that Aileron never wrote
        class_ = "outcome_unknown" if state == "unknown" else "internal_error"
        message = f"This run ended as {state}. Its other details have been deleted."
        gone = Failure(class_=class_, message=message, audit_id=body["audit_id"])
        return _failed(status_of(class_), gone.to_json(), body)
    details = {**failure["details"], "approval_id": body["approval_id"]}
    audit_id = failure["audit_id"] or body["audit_id"]
    return _failed(state, {**failure, "audit_id": audit_id, "details": details}, body)


def withdrawal_result(body: ResultBody) -> ToolResult:
    """Return the result of a withdrawal; `withdrawn` is no error here."""
    if body["status"] != "withdrawn":
        return approval_result(body)
    names = ("approval_id", "action", "audit_id", "digest_words")
    return _completed(body, names, note=f"Withdrawn. {_what_ran(body)}")


def error_result(failure: Failure) -> ToolResult:
    return _failed(status_of(failure.class_), failure.to_json())


def _completed(
    fields: Mapping[str, Any],
    names: Iterable[str],
    note: str | None = None,
) -> ToolResult:
    if is_builtin(fields.get("action", "")) and note is None:
        # The text alone, as an agent's own tool returns it: an edit has to quote it exactly.
        return {"content": [{"type": "text", "text": str(fields.get("output"))}], "isError": False}
    if (own := _of_server(fields)) is not None and note is None:
        return own
    content = {"status": fields["status"], **_present(fields, names)}
    text = _visible_json(content)
    return _result(content, text if note is None else f"{note}\n{text}", is_error=False)


def _of_server(fields: Mapping[str, Any]) -> ToolResult | None:
    """Return what an MCP server's tool returned, as it did, what Aileron knows beside it; None for another output."""
    output: Any = fields.get("output")
    if not fields.get("of_server") or not isinstance(output, Mapping):
        return None  # another connector may print the same, and is passed on as JSON
    return _as_returned(cast("JsonObject", output), fields)


def _as_returned(returned: JsonObject, fields: Mapping[str, Any]) -> ToolResult | None:
    content, structured = returned.get("content"), returned.get("structuredContent")
    if not isinstance(content, list):
        return None
    blocks: list[Any] = [*content]
    own: dict[str, Any] = {}
    if isinstance(structured, Mapping):
        own["structuredContent"] = structured
    elif structured is not None and not blocks:  # agents of the old era can be given no other value
        blocks.append({"type": "text", "text": _visible_json(structured)})
    if edited := fields.get("edited_by_person"):
        said = f"A person changed the arguments of this call: {_visible_json(edited)}"
        blocks.append({"type": "text", "text": said})
    ours = {f"aileron/{name}": fields[name] for name in _OF_CALL if name in fields}
    return {"content": blocks, **own, "_meta": ours, "isError": returned.get("isError") is True}


def own_part(result: ToolResult) -> Mapping[str, Any]:
    """Return the structured half of *result* where Aileron wrote it; empty where an MCP server did."""
    return {} if "_meta" in result else result.get("structuredContent", {})


def plain_text(result: ToolResult) -> str:
    """Return the content of *result* for who can be given nothing but text."""
    return "\n".join(
        str(part["text"]) if part.get("type") == "text" else f"[{part.get('type')}: not shown here]"
        for part in result["content"]
    )


def _pending(fields: Mapping[str, Any]) -> ToolResult:
    """Keep the console's own message and add what it leaves out."""
    content = {"status": "pending_approval", **_present(fields, _PENDING)}
    approval_id = str(content.get("approval_id", ""))
    what = fields.get("waits_for", "a person's approval")
    lines = [str(content.get("message") or f"This waits for {what}, in the Aileron console.")]
    message = lines[0]
    if (url := content.get("review_url")) and str(url) not in message:
        lines.append(f"They can find it at {url}.")
    if f"aileron open approval {approval_id}" not in message:
        lines.append(f"They can also run: aileron open approval {approval_id}")
    if CHECK_ACTION_STATUS not in message:
        lines.append(
            f"Then call {CHECK_ACTION_STATUS} with approval_id {approval_id}; do not repeat this call."
        )
    content["message"] = "\n".join(lines)
    rest = _present(content, ("status", "audit_id", "expires_at"))
    return _result(content, "\n".join([*lines, *_lines(rest)]), is_error=False)


def status_of(class_: str) -> str:
    return _STATUS_BY_CLASS.get(class_, "invalid" if class_ in _INVALID else "failed")


def _ended(body: ResultBody, class_: str, message: str) -> ToolResult:
    failure = Failure(
        class_=class_,
        message=f"{message} {_what_ran(body)}",
        audit_id=body["audit_id"],
        details=_present(body, ("reason", "approval_id", "completed_steps")),
    )
    return _failed(body["status"], failure.to_json(), body)


def _quoted(words: str) -> str:
    """Return a person's *words* as they wrote them, so that ours after them are no part of them."""
    quoted = f'"{words.strip()}"'
    return quoted if words.strip().endswith(_STOPS) else f"{quoted}."


def _with_stop(text: str) -> str:
    """Return *text* with a stop at its end: what follows it is another sentence."""
    return (
        text
        if not text or text.endswith((*_STOPS, *(f'{stop}"' for stop in _STOPS)))
        else f"{text}."
    )


def _what_ran(body: ResultBody) -> str:
    steps = body.get("completed_steps")
    if steps is None:
        return "Nothing ran."
    if not steps:  # it had begun: a step was tried and failed
        return "No step finished."
    return f"Steps finished before that: {', '.join(steps)}. No other step finished."


def _failed(status: str, error: Mapping[str, Any], ended: ResultBody | None = None) -> ToolResult:
    """Return the result of what went wrong; *ended*: the approval that it was the end of."""
    details: Mapping[str, Any] = error.get("details") or {}
    if isinstance(returned := details.get(SERVER_RESULT), Mapping):
        fields = {"audit_id": error.get("audit_id"), **(ended or {})}
        if (own := _as_returned(cast("JsonObject", returned), fields)) is not None:
            no_block = [{"type": "text", "text": escape(str(error.get("message")))}]
            return {**own, "content": own["content"] or no_block}
    class_ = str(error.get("class"))
    said = _present(ended or {}, ("digest_words", "edited_by_person"))
    content: dict[str, Any] = {"status": status, "error": dict(error), **said}
    step = _NEXT_STEP.get(class_, _OTHER_NEXT_STEP)
    # A message may be a service's or a connector's: a line of it must not look like one of ours.
    message = _with_stop(escape(str(error.get("message"))))
    lines = [f"{message} {step}".rstrip(), f"status: {status}"]
    lines += _lines({**{name: each for name, each in error.items() if name != "message"}, **said})
    return _result(content, "\n".join(lines), is_error=True)


def _result(content: dict[str, Any], text: str, *, is_error: bool) -> ToolResult:
    try:
        text.encode()
    except UnicodeEncodeError:
        # A connector's output may hold a lone surrogate, which no JSON writer can send.
        text = _without_surrogates(text)
        content = json.loads(_without_surrogates(json.dumps(content, ensure_ascii=False)))
    return {
        "content": [{"type": "text", "text": text}],
        "structuredContent": content,
        "isError": is_error,
    }


def _visible_json(value: Any) -> str:
    """Return JSON with the letters of every script as they are, and invisible characters escaped.

    An agent's program may print it on a terminal, which would obey some of it.
    """
    return "".join(_encode(value, 0))


def _encoded(text: str) -> str:
    if len(text) <= SLICE:
        return encode_basestring(text).translate(_visible)
    parts = (encode_basestring(each)[1:-1].translate(_visible) for each in slices_in_turns(text))
    return f'"{"".join(parts)}"'


_encode: Callable[[object, int], Iterable[str]] = json_encoder(_encoded, ": ", ", ")


class _Visible(dict[int, str]):
    """What each character is written as, cached: an output may have millions of them."""

    def __missing__(self, code: int) -> str:
        char = shown = chr(code)
        if unicodedata.category(char) in ("Cc", "Cf", "Cn", "Co", "Zl", "Zp"):
            shown = json.dumps(char)[1:-1] if code != _DELETE else "\\u007f"
        if len(self) < _CACHE_SIZE:
            self[code] = shown
        return shown


_DELETE = 0x7F
"""Hidden, and ASCII: `json.dumps` writes it as it is."""
_CACHE_SIZE = 65_536
_visible = _Visible()


def _without_surrogates(text: str) -> str:
    return text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")


def _lines(fields: Mapping[str, Any]) -> list[str]:
    """Return `name: value` lines, JSON where a value is not a string; empty values are left out."""
    return [
        f"{name}: {escape(value) if isinstance(value, str) else _visible_json(value)}"
        for name, value in fields.items()
        if value is not None and value != {}
    ]


def _present(fields: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    return {name: fields[name] for name in names if name in fields}
