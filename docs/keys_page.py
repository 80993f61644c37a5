"""docs/keys.md, made from the console's one registry of keys."""

from aileron_tui.input.commands import COMMANDS, VIEW_CONTEXTS, Command, KeyContext, face_of

__all__ = ["keys_page"]

_PLACES: dict[KeyContext, str] = {
    "waiting": "Waiting",
    "activity": "Activity",
    "audit": "Audit",
    "library": "Actions and connectors",
    "sessions": "Sessions",
    "deny": "While a reason is asked",
    "filter": "While a filter is typed",
    "stop": "While stopping everything is asked",
    "end": "While ending a session is asked",
    "palette": "In the palette",
    "help": "In the help",
}
_HEAD = """\
# Keys

Made from the registry in `aileron_tui/input/commands.py` by `docs/generate.py`; footer, help and palette read the same one.
`?` in the console shows the keys of the view that you are in, with the ones you gave yourself.

## When a key counts

A key that decides counts only when the item stood on the screen whole for 400 ms, your hand rested for 400 ms before and 20 ms after it, the pane has the focus, and every line was seen.
Lines that were not seen are named, and the key has to come twice. So it has where no preview could be fetched.
What is pasted, typed ahead, held down or sent in a burst decides nothing, nor does a key that a console which stood still reads 0.2 s late. After a decision the next item starts unarmed. `esc` leaves everything waiting.

## Other keys

In `config.toml`, by the name in the second column:

    [console.keys]
    approve = "y"

Two keys that decide cannot be the same, `esc` decides nothing, and a key that you give to a decision takes neither ctrl nor alt. A table that breaks this is refused at the start, naming the key and what is wrong with it.
"""


def keys_page() -> str:
    """Return the page."""
    parts = [_HEAD]
    everywhere = [each for each in COMMANDS if set(VIEW_CONTEXTS) <= set(each.contexts)]
    parts.append(_table("In every view", everywhere))
    for context, title in _PLACES.items():
        here = [each for each in COMMANDS if context in each.contexts and each not in everywhere]
        if here:
            parts.append(_table(title, here))
    return "\n".join(parts)


def _table(title: str, actions: list[Command]) -> str:
    rows = [
        f"| {' '.join(f'`{face_of(key)}`' for key in each.keys)} | {each.id} | {_what(each)} |"
        for each in actions
    ]
    return "\n".join([f"## {title}", "", "| key | name | what |", "|---|---|---|", *rows, ""])


def _what(action: Command) -> str:
    text = action.help or action.label
    notes = [
        word for word, holds in (("decides", action.decides), ("asks first", action.asks)) if holds
    ]
    return f"{text} ({', '.join(notes)})" if notes else text
