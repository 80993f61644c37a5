"""Opening an address of our own in the person's browser, beside the console and never in its terminal."""

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path

from aileron_core.vault.atomic_file import replace_file

EXIT_WAIT_SECONDS = 10.0


def browser_command(environment: Mapping[str, str], platform: str = sys.platform) -> str | None:
    """Return the program that opens an address; None where only a browser in this terminal would do."""
    if platform == "darwin":
        return "open"
    if environment.get("DISPLAY") or environment.get("WAYLAND_DISPLAY"):
        return "xdg-open"
    return None


def write_link_file(path: Path, url: str) -> None:
    """Write a page to *path*, for this user alone, that leads a browser to *url*.

    A browser is opened with the page: the secret in the address stands in no program's arguments then.

    Raises:
        OSError: it could not be written.
    """
    target = json.dumps(url).replace("<", "\\u003c")
    page = (
        '<!doctype html><meta charset="utf-8"><meta name="referrer" content="no-referrer">'
        f"<title>Aileron</title><script>location.replace({target})</script>\n"
    )
    replace_file(path, page.encode())


def open_in_browser(program: str, url: str, done: Callable[[bool], object]) -> None:
    """Run *program* on *url*, in a session of its own; *done* is called on a thread with whether it worked."""
    threading.Thread(target=lambda: done(run_browser(program, url)), daemon=True).start()


def run_browser(program: str, url: str) -> bool:
    """Run *program* on *url*, in a session of its own and so without this terminal; return whether it worked."""
    try:
        started = subprocess.Popen(
            [program, url],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        return started.wait(EXIT_WAIT_SECONDS) == 0
    except subprocess.TimeoutExpired:
        return True  # it is the browser itself, and stays
    except OSError:
        return False
