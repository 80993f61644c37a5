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
    "search": "While a search is typed",
    "link": "While a link is asked about",
    "reader": "While a document has the whole screen",
    "palette": "In the palette",
    "help": "In the help",
}
_HEAD = """\
# Keys

Made from the registry in `aileron_tui/input/commands.py` by `docs/generate.py`; footer, help and palette read the same one.
`?` in the console shows the keys of the current view, including those that you changed.

## When a key counts

A key that decides counts only if

* the item was shown whole and unchanged, with nothing over it, for `arm_ms` (400 ms; 250 at least). Another selection, a new preview, another size or theme, and a closed panel start this time again;
* no other key came during that time, and none in the 20 ms after it: keys that are held down, pasted, typed ahead or sent in a burst are ignored;
* the pane has had the focus that long, if the terminal reports that;
* the console did not stall meanwhile: a key that decides is ignored if it is read 0.2 s late;
* the database can be written, no decision on the item is in progress, and its deadline is more than a second away.

A line counts as seen once it was on the screen for 100 ms, however fast you scroll. While lines are unseen, the first press says how many, and a second one decides; the same applies where no preview could be fetched. The audit records the number.
After a decision the next item has to rest on the screen again first. `esc` leaves everything waiting. The mouse, and `enter` in a list, decide nothing.

## Other keys

In `config.toml`, by the name in the second column:

    [console.keys]
    approve = "y"

`y` was the key of `copy`. If the key that you choose belongs to a command that neither decides nor asks, the two swap keys: `copy` is then on `a`. To have it elsewhere, give it a key too.
Two keys that decide cannot be the same, `esc` decides nothing, and a key for a decision cannot use ctrl or alt. If a table breaks these rules the console does not start, and names the key and what is wrong with it.
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
