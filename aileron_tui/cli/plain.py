"""The line-by-line console, with what its settings and its terminal ask for."""

import logging
import os
import sys
from collections.abc import Callable

from aileron_core.clock import SystemClock
from aileron_core.console_port.intents import ConsolePort
from aileron_core.settings import Settings
from aileron_tui.input.arming import AFTER_SECONDS
from aileron_tui.pages.keymap import remap_keys
from aileron_tui.plain.console import PlainConsole
from aileron_tui.styles.choosing import choose_glyphs
from aileron_tui.terminal.line_terminal import LineTerminal
from aileron_tui.terminal.notifications import Notifier

_log = logging.getLogger(__name__)


def plain_console(
    port: ConsolePort, settings: Settings, first_frame: Callable[[], object]
) -> PlainConsole:
    """Return the console for this terminal; it subscribes to *port* at once.

    Raises:
        Unavailable: the core has ended.
        FileProblems: the settings name something that there is not.
    """
    clock = SystemClock()
    glyphs = choose_glyphs(settings.console.glyphs, os.environ, sys.stdout.encoding)

    terminal = LineTerminal(
        sys.stdin.fileno(),
        sys.stdout.fileno(),
        clock,
        silence=AFTER_SECONDS,
        charset=glyphs.charset,
    )
    notifier = Notifier(
        settings.notify,
        os.environ,
        bell=settings.console.bell,
        ring=lambda: terminal.send("\a"),
        write=terminal.send,
        failed=lambda why: _log.warning("%s", why),
    )
    return PlainConsole(
        port,
        terminal,
        clock=clock,
        arm_seconds=settings.console.arm_ms / 1000,
        registry=remap_keys(settings.console.keys),
        glyphs=glyphs,
        notifier=notifier,
        first_frame=first_frame,
        lock_seconds=settings.console.lock_minutes * 60,
    )
