"""The program `aileron-mcp`: its arguments and its exit code."""

import os
import sys
from typing import NoReturn

import aileron_mcp.relay
from aileron_mcp.relay.relay import Relay, describe_bug


def _usage(arguments: list[str]) -> NoReturn:
    if arguments == ["--version"]:
        from importlib.metadata import version

        text, code = f"aileron-mcp {version('aileron')}", 0
    elif arguments in (["--help"], ["-h"]):
        text, code = aileron_mcp.relay.__doc__ or "", 0
    else:
        text, code = (
            "Usage: aileron-mcp [--home DIR | --help | --version]. DIR is Aileron's home.",
            2,
        )
    os.write(2 if code else 1, f"{text.strip()}\n".encode())
    sys.exit(code)


def main() -> int:
    environ = dict(os.environ)
    match sys.argv[1:]:
        case []:
            pass
        case ["--home", home] if home:
            environ["AILERON_HOME"] = home
        case arguments:
            _usage(arguments)
    try:
        return Relay(environ).run()
    except Exception as error:  # noqa: BLE001 - the top of the program: no traceback on an agent's screen
        os.write(2, f"aileron-mcp: {describe_bug(error)}\n".encode())
        return 70
