"""The tokens of colour and style as one table per theme: what a role is drawn with.

The plain look has no colour at all: attributes, words and signs carry everything. It stands in
where `NO_COLOR` is set, and for whoever prefers it.
"""

from dataclasses import dataclass

from textual.theme import Theme


@dataclass(frozen=True, slots=True)
class ConsoleTheme:
    """One look: colours by token, and text attributes by token."""

    name: str
    dark: bool
    colours: dict[str, str]
    attributes: dict[str, str]


_ATTRIBUTES: dict[str, str] = {
    "strong": "bold",
    "text": "none",
    "muted": "none",
    "faint": "none",
    "fact": "bold",
    "fact-bar": "none",
    "claim": "italic",
    "claim-bar": "none",
    "claim-heading": "bold",
    "attn": "bold",
    "danger": "bold",
    "ok": "none",
    "mark": "bold",
    "chip": "bold",
    "key": "bold",
    "key-danger": "bold",
    "badge": "bold",
    "view": "bold underline",
    "summary": "bold",
    "add": "none",
    "del": "none",
    "add-word": "bold",
    "del-word": "bold",
    "alarm": "bold",
    "link": "underline",
    "found": "bold",
    "form": "none",
    "syntax-name": "none",
    "syntax-value": "none",
    "sel": "none",
    "cursor": "none",
    "lost": "none",
}

_PLAIN_ATTRIBUTES = _ATTRIBUTES | {
    "faint": "dim",
    "danger": "bold underline",
    "mark": "bold reverse",
    "key": "bold reverse",
    "key-danger": "bold reverse",
    "badge": "bold reverse",
    "add-word": "bold underline",
    "del-word": "bold underline",
    "alarm": "bold underline",
    "found": "bold reverse",
    "syntax-name": "bold",
    "sel": "bold",
    "cursor": "reverse",
    "lost": "dim",
}
"""Without colour: weight, underline and reverse stand for it."""

_DARK = {
    "ground": "#0e1216",
    "queue": "#131920",
    "bar": "#171e26",
    "sel": "#20303a",
    "strong": "#f4f8fb",
    "text": "#d5dde6",
    "muted": "#8b97a6",
    "faint": "#5b6675",
    "fact": "#5fc9b8",
    "claim": "#b3a4e8",
    "attn": "#f0b64a",
    "danger": "#ff7a70",
    "ok": "#86c98a",
    "chip": "#2b3542",
    "ink": "#0e1216",
    "add": "#15302a",
    "del": "#3a1d20",
    "add-word": "#1f5a48",
    "del-word": "#76302f",
    "field": "#22303b",
    "link": "#7db6f2",
    "syntax-name": "#8fbcd9",
    "syntax-value": "#d9b98f",
}

_LIGHT = {
    "ground": "#fbfbf9",
    "queue": "#f1f1ee",
    "bar": "#e9e9e5",
    "sel": "#dcebe8",
    "strong": "#0c0f12",
    "text": "#2a3037",
    "muted": "#5c6672",
    "faint": "#87909b",
    "fact": "#0b6e63",
    "claim": "#5d49b0",
    "attn": "#8f5400",
    "danger": "#b3261e",
    "ok": "#27702c",
    "chip": "#d8dade",
    "ink": "#ffffff",
    "add": "#e0f3e6",
    "del": "#fbe5e2",
    "add-word": "#aadfba",
    "del-word": "#f3b5ad",
    "field": "#dfe3e6",
    "link": "#1a5fb4",
    "syntax-name": "#1f5f85",
    "syntax-value": "#84530f",
}

_PLAIN = dict.fromkeys(_DARK, "ansi_default")

DARK, LIGHT, PLAIN = "aileron-dark", "aileron-light", "aileron-plain"
CONSOLE_THEMES: tuple[ConsoleTheme, ...] = (
    ConsoleTheme(DARK, dark=True, colours=_DARK, attributes=_ATTRIBUTES),
    ConsoleTheme(LIGHT, dark=False, colours=_LIGHT, attributes=_ATTRIBUTES),
    ConsoleTheme(PLAIN, dark=True, colours=_PLAIN, attributes=_PLAIN_ATTRIBUTES),
)

_ANSI_VARIABLES = (
    "ansi-background",
    "ansi-foreground",
    "block-cursor-foreground",
    "block-cursor-background",
    "border",
    "border-blurred",
    "input-cursor-background",
    "input-cursor-foreground",
    "input-selection-background",
    "input-selection-foreground",
    "screen-selection-background",
    "screen-selection-foreground",
    "scrollbar",
    "scrollbar-hover",
    "scrollbar-active",
    "scrollbar-background",
    "scrollbar-background-hover",
    "scrollbar-background-active",
    "scrollbar-corner-color",
)
"""What Textual asks of a theme whose colours are the terminal's own, and derives for all others."""


def variables(name: str, *, dark: bool) -> dict[str, str]:
    """Return the `$a-*` variables for the theme *name*; a foreign theme gets the look of its kind."""
    fitting = [each for each in CONSOLE_THEMES if each.name == name]
    look = (fitting or [each for each in CONSOLE_THEMES if each.dark == dark])[0]
    named = {f"a-{token}": colour for token, colour in look.colours.items()}
    return named | {f"a-{token}-style": style for token, style in look.attributes.items()}


def themes() -> list[Theme]:
    return [
        Theme(
            name=look.name,
            dark=look.dark,
            primary=look.colours["fact"],
            secondary=look.colours["claim"],
            warning=look.colours["attn"],
            error=look.colours["danger"],
            success=look.colours["ok"],
            foreground=look.colours["text"],
            background=look.colours["ground"],
            surface=look.colours["ground"],
            panel=look.colours["bar"],
            ansi=look.name == PLAIN,
            variables=dict.fromkeys(_ANSI_VARIABLES, "ansi_default") if look.name == PLAIN else {},
        )
        for look in CONSOLE_THEMES
    ]
