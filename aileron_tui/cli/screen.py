"""The console's App, with the theme, glyphs and keys that its settings and its terminal ask for."""

import asyncio
import io
import os
import signal
import sys
from collections.abc import Callable

from aileron_core.console_port.intents import ConsolePort
from aileron_core.errors import FileProblems
from aileron_core.settings import Settings
from aileron_tui.app import AileronApp
from aileron_tui.cli.output import EXIT
from aileron_tui.draw.glyphs import Glyphs
from aileron_tui.draw.guide import Guide
from aileron_tui.input.commands import CommandRegistry
from aileron_tui.pages.commands.everywhere import NEXT_SCENE
from aileron_tui.pages.keymap import remap_keys
from aileron_tui.styles.choosing import choose_glyphs, choose_theme, true_colour
from aileron_tui.terminal.background_color import background_is_light
from aileron_tui.terminal.driver import screen_file


def console_app(
    port: ConsolePort,
    settings: Settings,
    first_frame: Callable[[], object],
    guide: Guide | None = None,
) -> AileronApp:
    """Return the App for this terminal; it subscribes to *port* once it runs.

    *guide*: a demo that leads through it; its console has a key more.

    Raises:
        FileProblems: the settings name something that there is not.
    """
    theme, keys = _theme_and_keys(settings)
    if guide is not None:
        keys = CommandRegistry((*keys.commands, NEXT_SCENE))
    return AileronApp(
        port,
        start_theme=theme,
        glyphs=_glyphs(settings),
        bell=settings.console.bell,
        arm_seconds=settings.console.arm_ms / 1000,
        true_colour=true_colour(os.environ),
        lock_seconds=settings.console.lock_minutes * 60,
        registry=keys,
        notify=settings.notify,
        first_frame=first_frame,
        guide=guide,
    )


def _theme_and_keys(settings: Settings) -> tuple[str, CommandRegistry]:
    """Return the theme and the keys; problems of both are raised together."""
    try:
        theme = choose_theme(settings.console.theme, os.environ, _is_light)
    except FileProblems as of_theme:
        problems = list(of_theme.problems)
        try:
            remap_keys(settings.console.keys)
        except FileProblems as of_keys:
            problems += of_keys.problems
        raise FileProblems(problems) from of_theme
    return theme, remap_keys(settings.console.keys)


def _is_light() -> bool | None:
    """Return what the terminal says of its background; None where it is one that does not know the question."""
    screen = screen_file()
    if os.environ.get("TERM", "dumb") in ("dumb", "linux") or not sys.__stdin__ or screen is None:
        return None
    return background_is_light(sys.__stdin__.fileno(), screen.fileno())


def _glyphs(settings: Settings) -> Glyphs:
    stream = screen_file()
    encoding = stream.encoding if stream is not None else "utf-8"
    glyphs = choose_glyphs(settings.console.glyphs, os.environ, encoding)
    if not glyphs.charset and isinstance(stream, io.TextIOWrapper):
        # A person who asks for all signs has a terminal that draws them, whatever the locale says.
        stream.reconfigure(encoding="utf-8")
    return glyphs


async def show(app: AileronApp) -> int:
    """Run *app* to its end, on the main thread; return the exit code. SIGTERM and SIGHUP end it as `q` does."""
    loop = asyncio.get_running_loop()

    def end(_number: int, _frame: object) -> None:
        loop.call_soon_threadsafe(app.exit)  # leaves the alternate screen on its way out

    for number in (signal.SIGTERM, signal.SIGHUP):
        # The loop's own way wakes it; it loses the signal where the pipe that wakes it is full.
        loop.add_signal_handler(number, app.exit)
        signal.signal(number, end)
    await app.run_async()
    return app.return_code or EXIT.DONE
