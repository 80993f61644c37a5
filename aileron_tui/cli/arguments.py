"""Arguments that more than one command takes: `--args`, `--route`."""

import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from aileron_core.canonical import Json
from aileron_core.connectors.protocol import Route
from aileron_core.errors import InvalidRequest
from aileron_tui.cli.output import EXIT, CliError

_ROUTE = re.compile(r"([A-Za-z0-9.-]+:\d{1,5})=(127\.0\.0\.1|\[::1\]):(\d{1,5})")


def json_argument(text: str) -> Mapping[str, Json]:
    """Return the object of `--args JSON|@FILE|-`.

    Raises:
        CliError: it is none; a usage error.
    """
    try:
        if text == "-":
            text = sys.stdin.read()
        elif text.startswith("@"):
            text = Path(text[1:]).read_text(encoding="utf-8")
        content: Any = json.loads(text)
    except (OSError, ValueError, RecursionError) as error:
        raise CliError(EXIT.USAGE, f"--args is not JSON, or cannot be read: {error}.") from error
    if not isinstance(content, dict):
        raise CliError(EXIT.USAGE, "--args must be a JSON object.")
    return cast("Mapping[str, Json]", content)


def route_argument(text: str) -> Route:
    """Return the route of `--route HOST:PORT=127.0.0.1:PORT`.

    Raises:
        InvalidRequest: it is not of that form.
    """
    try:
        host, address, port = _parse_route(text)
    except ValueError as error:
        raise InvalidRequest(f"--route {error}.") from error
    return Route(host=host, address=address, port=port)


def _parse_route(text: str) -> tuple[str, str, int]:
    """Return `(host:port, address, port)` of a `--route HOST:PORT=127.0.0.1:PORT`.

    Raises:
        ValueError: it is not of that form.
    """
    match = _ROUTE.fullmatch(text)
    if match is None or int(match[3]) > 65535:
        raise ValueError(f"{text!r} is not HOST:PORT=127.0.0.1:PORT")
    return match[1].lower(), match[2].strip("[]"), int(match[3])
