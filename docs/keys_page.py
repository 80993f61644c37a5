"""docs/keys.md, made from the console's one registry of keys."""

from aileron_tui.input.commands import COMMANDS, VIEW_CONTEXTS, Command, KeyContext, key_label

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

A key that decides counts only if

* the item was drawn whole and unchanged, with nothing over it, for `arm_ms` (400 ms; 250 at least). Another selection, a new preview, another size or theme, a closed panel begin that anew;
* no other key came in that time before it, and none in the 20 ms after it: this drops keys that are held, pasted, typed ahead or sent in a burst;
* the pane has the focus, where the terminal tells, and had it that long;
* the console did not stand still meanwhile: a key that it reads 0.2 s late counts for nothing;
* the database can be written, no decision on the item is under way, and its deadline is more than a second away.

A line counts as seen once it stood on the screen for 100 ms, however fast one scrolls. While lines are unseen the first press names how many, and a second one decides; so it is where no preview could be fetched. The number goes to the audit.
After a decision the next item starts unarmed. `esc` leaves everything waiting. The mouse, and `enter` in a list, decide nothing.

## Other keys

In `config.toml`, by the name in the second column:

    [console.keys]
    approve = "y"

`y` was the key of `copy`. An action that neither decides nor asks makes way and gets the key that became free: `copy` is then on `a`. Give it a key yourself to have it elsewhere.
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
        f"| {' '.join(f'`{key_label(key)}`' for key in each.keys)} | {each.id} | {_what(each)} |"
        for each in actions
    ]
    return "\n".join([f"## {title}", "", "| key | name | what |", "|---|---|---|", *rows, ""])


def _what(action: Command) -> str:
    text = action.help or action.label
    notes = [
        word for word, holds in (("decides", action.decides), ("asks first", action.asks)) if holds
    ]
    return f"{text} ({', '.join(notes)})" if notes else text
