"""What all of these programs do: take questions from stdin, one a line, and say what came of each.

None of them knows anything of Aileron; each is run by `aileron launch --augment`. Their one tool of
their own is `own_note`.
"""

import asyncio
import inspect
import json
import sys
from collections.abc import Awaitable, Callable

TEXT = {"text": {"type": "string"}}
SCHEMA = {"type": "object", "properties": TEXT, "required": ["text"], "additionalProperties": False}
ABOUT = "Write a note down."
notes: list[str] = []


def own_note(text: str) -> str:
    notes.append(text)
    return f"noted: {text}"


def run_own(name: str, arguments: str) -> str:
    """Make a call of the model's, as a program does that knows one tool."""
    if name != "own_note":
        raise SystemExit(f"The model called {name!r}, which is no tool of mine.")
    return own_note(**json.loads(arguments))


def talk(ask: Callable[[str], str] | Callable[[str], Awaitable[str]]) -> None:
    """Answer each line of stdin with one of JSON, on one event loop."""
    with asyncio.Runner() as runner:
        for line in sys.stdin:
            answer = ask(line.strip())
            if inspect.iscoroutine(answer):
                answer = runner.run(answer)
            print(json.dumps({"text": answer, "notes": notes}), flush=True)
