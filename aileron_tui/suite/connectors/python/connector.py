"""A connector in Python: get_note reads a note, edit_note replaces its text. It runs anew for each op.

The Python is MicroPython, inside connector.wasm: the language, and the modules that need no files
(json, re, time, binascii, hashlib, math, random, struct, collections). What this file prints goes to
standard error, which Aileron shows if the op fails.
"""

import json

import aileron_host

NOTES = "https://notes.example.com/notes/"


class Failure(Exception):
    """What an op ends with in place of an output: a class that docs/connectors.md lists, and a message."""


def get_note(args):
    return ask("GET", NOTES + escape(text(args, "id")))


def edit_note(args):
    return ask("PUT", NOTES + escape(text(args, "id")), {"text": text(args, "text")})


OPS = {"get_note": get_note, "edit_note": edit_note}


def text(args, name):
    value = args.get(name)
    if value is None:
        raise Failure("connector_runtime_error", f"argument {name} is missing")
    if not isinstance(value, str):
        raise Failure("connector_runtime_error", f"argument {name} must be a string")
    return value


def escape(segment):
    """Percent-encode one segment of a path."""
    kept = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"
    return "".join(chr(byte) if byte in kept else f"%{byte:02X}" for byte in segment.encode())


def ask(method, url, body=None):
    """Send a request and return the JSON object that answers it."""
    request = {"method": method, "url": url, "headers": {"Accept": "application/json"}}
    if body is not None:
        request["headers"]["Content-Type"] = "application/json"
        request["body"] = json.dumps(body)
    response = aileron_host.http_request(json.dumps(request))
    if response is None:
        raise Failure("network_error", "the request was refused or failed")  # Aileron knows why
    status, answer = response
    try:
        value = json.loads(answer)
    except ValueError:
        value = None
    if not 200 <= status < 300:
        reason = value.get("error") if isinstance(value, dict) else None
        raise Failure("external_api_error", f"the service answered {status}: {reason}")
    if not isinstance(value, dict):
        raise Failure(
            "external_api_error", "the service answered with something that is no JSON object"
        )
    return value


def main():
    call = json.loads(aileron_host.read())
    try:
        if call["op"] not in OPS:
            raise Failure("connector_runtime_error", f"there is no op {call['op']}")
        printed = {"output": OPS[call["op"]](call.get("args") or {})}
    except Failure as failure:
        printed = {"error": {"class": failure.args[0], "message": failure.args[1]}}
    aileron_host.write(json.dumps(printed))


main()
