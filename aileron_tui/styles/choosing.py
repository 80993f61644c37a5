"""Which look a console starts in: what the person set, else what the terminal says of itself."""

from collections.abc import Mapping

from textual.theme import BUILTIN_THEMES

from aileron_tui.styles.tokens import DARK, LIGHT, LOOKS, PLAIN

__all__ = ["NAMES", "choose_theme", "colourless", "is_theme"]

NAMES: dict[str, str] = {"dark": DARK, "light": LIGHT, "plain": PLAIN}
"""What `[console] theme` may say besides `auto` and the name of a theme of Textual's."""

_LIGHT_GROUNDS = frozenset({7, *range(9, 16)})
"""Numbers of the 16 colours that are bright; 8 is a dark grey."""


def colourless(environment: Mapping[str, str]) -> bool:
    """Return whether *environment* asks for no colour: `NO_COLOR`, not empty (no-color.org)."""
    return bool(environment.get("NO_COLOR"))


def is_theme(name: str) -> bool:
    """Return whether `[console] theme` may say *name*."""
    known = {"auto", *NAMES, *BUILTIN_THEMES, *(look.name for look in LOOKS)}
    return name in known


def choose_theme(setting: str, environment: Mapping[str, str]) -> str:
    """Return the theme to start in.

    `NO_COLOR` wins over the setting; the setting over `COLORFGBG`, which terminals set to the
    numbers of their colours, the ground last. Nobody says: dark.
    """
    if colourless(environment):
        return PLAIN
    if setting != "auto":
        return NAMES.get(setting, setting)
    ground = environment.get("COLORFGBG", "").rpartition(";")[2]
    return LIGHT if ground.isdecimal() and int(ground) in _LIGHT_GROUNDS else DARK
