"""Which look and which signs a console starts with: what the person set, else what the terminal says."""

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache

from rich.segment import Segment
from rich.style import Style
from textual.color import Color
from textual.filter import LineFilter
from textual.theme import BUILTIN_THEMES

from aileron_core.errors import FileProblems, Problem
from aileron_core.settings import Glyphs as GlyphSetting
from aileron_tui.draw.glyphs import Glyphs
from aileron_tui.styles.tokens import DARK, LIGHT, PLAIN

THEME_NAMES: dict[str, str] = {"dark": DARK, "light": LIGHT, "plain": PLAIN}
"""What `[console] theme` may say besides `auto` and the name of a theme of Textual's."""

_LIGHT_GROUNDS = frozenset({7, *range(9, 16)})
"""Numbers of the 16 colours that are bright; 8 is a dark grey."""


def colourless(environment: Mapping[str, str]) -> bool:
    """Return whether *environment* asks for no colour: `NO_COLOR`, not empty (no-color.org)."""
    return bool(environment.get("NO_COLOR"))


def true_colour(environment: Mapping[str, str]) -> bool:
    """Return whether the terminal says that it has more than 256 colours, as Rich reads it before it draws."""
    return environment.get("COLORTERM", "").strip().lower() in ("truecolor", "24bit")


def choose_theme(
    setting: str,
    environment: Mapping[str, str],
    light: Callable[[], bool | None] = lambda: None,
) -> str:
    """Return the theme to start in.

    `NO_COLOR` wins over the setting, the setting over `COLORFGBG` (the numbers of the terminal's
    colours, the background last), and that over the terminal's own answer. Without any of them: dark.

    Args:
        setting: `[console] theme`.
        light: asks the terminal whether its background is light; None if it does not answer.

    Raises:
        FileProblems: there is no theme of that name.
    """
    if setting not in ("auto", *THEME_NAMES, *BUILTIN_THEMES):
        known = f"is not a theme; the themes are auto, {', '.join(THEME_NAMES)}, {', '.join(BUILTIN_THEMES)}"
        raise FileProblems([Problem(file="config.toml", key="console.theme", message=known)])
    if colourless(environment):
        return PLAIN
    if setting != "auto":
        return THEME_NAMES.get(setting, setting)
    ground = environment.get("COLORFGBG", "").rpartition(";")[2]
    if ground.isdecimal():
        return LIGHT if int(ground) in _LIGHT_GROUNDS else DARK
    return LIGHT if not ground and light() else DARK


def terminal_charset(environment: Mapping[str, str], stream: str) -> str:
    """Return the encoding that the terminal's text must fit in; empty for UTF-8, which has any letter.

    Args:
        environment: of the terminal; the locale is the first of `LC_ALL`, `LC_CTYPE`, `LANG`.
        stream: the encoding that Python writes to the terminal in.
    """
    if not _is_utf8(stream):
        return stream
    # Python writes UTF-8 in the C locale as well, though the terminal is not set to it.
    locale = next((name for name in _locales(environment) if name), "")
    return "ascii" if locale and not _is_utf8(locale) else ""


def _locales(environment: Mapping[str, str]) -> Iterator[str]:
    yield environment.get("LC_ALL", "")
    ctype, lang = environment.get("LC_CTYPE", ""), environment.get("LANG", "")
    # Python itself sets these in a locale that it does not know (PEP 538); LANG tells then.
    yield lang if ctype in ("C.UTF-8", "C.utf8", "UTF-8") else ctype
    yield ctype or lang


def _is_utf8(name: str) -> bool:
    return "utf8" in name.casefold().replace("-", "")


def choose_glyphs(setting: GlyphSetting, environment: Mapping[str, str], stream: str) -> Glyphs:
    """Return the signs to draw with; arguments as in `terminal_charset`."""
    charset = terminal_charset(environment, stream)
    if setting == "unicode":
        return Glyphs()
    return Glyphs(ascii=setting == "ascii" or bool(charset), charset=charset)


@lru_cache(1024)
def _without(style: Style) -> Style:
    return style.without_color


class Colourless(LineFilter):
    """Leaves attributes alone. Textual's own filter for `NO_COLOR` writes `39;49` with each word."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """Return *segments* without their colours; *background* is the base class's."""
        return [
            Segment(text, style if style is None else _without(style), control)
            for text, style, control in segments
        ]
