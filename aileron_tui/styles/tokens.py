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
    colours_256: dict[str, str]
    """What replaces colours that a terminal of 256 would draw alike."""


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
    "add-name": "none",
    "add-value": "none",
    "del-name": "none",
    "del-value": "none",
    "alarm": "bold",
    "link": "underline",
    "found": "bold",
    "form": "none",
    "syntax-name": "none",
    "syntax-value": "none",
    "qr": "none",
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
    "qr": "reverse",
    "syntax-name": "bold",
    "add-name": "bold",
    "del-name": "bold",
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
    "syntax-name": "#b8dcf8",
    "syntax-value": "#f0dcb4",
    "qr": "#000000",
    "qr-paper": "#ffffff",
}

_DARK_256 = {
    "ground": "#121212",
    "queue": "#1c1c1c",
    "bar": "#262626",
    "sel": "#303030",
    "muted": "#a8a8a8",
    "faint": "#767676",
    "chip": "#4e4e4e",
    "ink": "#121212",
    "add": "#005f00",
    "del": "#5f0000",
    "add-word": "#00875f",
    "del-word": "#af0000",
    "field": "#303030",
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
    "syntax-value": "#6b4000",
    "qr": "#000000",
    "qr-paper": "#ffffff",
}

_LIGHT_256 = {
    "ground": "#ffffff",
    "queue": "#f4f4f4",
    "bar": "#e8e8e8",
    "sel": "#d7ffff",
    "muted": "#4e4e4e",
    "faint": "#767676",
    "claim": "#5f00af",
    "chip": "#bcbcbc",
    "add": "#d7ffd7",
    "del": "#ffd7d7",
    "add-word": "#87d7af",
    "del-word": "#ffafaf",
    "field": "#dadada",
}

_PLAIN = dict.fromkeys(_DARK, "ansi_default")

DARK, LIGHT, PLAIN = "aileron-dark", "aileron-light", "aileron-plain"
CONSOLE_THEMES: tuple[ConsoleTheme, ...] = (
    ConsoleTheme(DARK, dark=True, colours=_DARK, attributes=_ATTRIBUTES, colours_256=_DARK_256),
    ConsoleTheme(LIGHT, dark=False, colours=_LIGHT, attributes=_ATTRIBUTES, colours_256=_LIGHT_256),
    ConsoleTheme(PLAIN, dark=True, colours=_PLAIN, attributes=_PLAIN_ATTRIBUTES, colours_256={}),
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


def variables(name: str, *, dark: bool, true_colour: bool = True) -> dict[str, str]:
    """Return the `$a-*` variables for the theme *name*; a foreign theme gets the look of its kind.

    Without *true_colour* they stay apart once the terminal draws the nearest of its 256 colours.
    """
    fitting = [each for each in CONSOLE_THEMES if each.name == name]
    look = (fitting or [each for each in CONSOLE_THEMES if each.dark == dark])[0]
    colours = look.colours if true_colour else look.colours | look.colours_256
    named = {f"a-{token}": colour for token, colour in colours.items()}
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
