"""The tokens of CONSOLE 8 as one table per look: what a role is drawn with."""

from dataclasses import dataclass

from textual.theme import Theme

__all__ = ["LOOKS", "Look", "themes", "variables"]


@dataclass(frozen=True, slots=True)
class Look:
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
    "claim": "italic",
    "attn": "bold",
    "danger": "bold",
    "ok": "none",
    "mark": "bold",
    "word": "bold",
}

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
    "addword": "#1f5a48",
    "delword": "#76302f",
    "field": "#22303b",
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
    "addword": "#aadfba",
    "delword": "#f3b5ad",
    "field": "#dfe3e6",
}

LOOKS: tuple[Look, ...] = (
    Look("aileron-dark", dark=True, colours=_DARK, attributes=_ATTRIBUTES),
    Look("aileron-light", dark=False, colours=_LIGHT, attributes=_ATTRIBUTES),
)


def variables(name: str, *, dark: bool) -> dict[str, str]:
    """Return the `$a-*` variables for the theme *name*; a foreign theme gets the look of its kind."""
    fitting = [look for look in LOOKS if look.name == name] or [
        look for look in LOOKS if look.dark == dark
    ]
    look = fitting[0]
    named = {f"a-{token}": colour for token, colour in look.colours.items()}
    return named | {f"a-{token}-style": style for token, style in look.attributes.items()}


def themes() -> list[Theme]:
    """Return the console's own themes."""
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
        )
        for look in LOOKS
    ]
