"""Draw docs/pictures/launch.svg: a real console and a real `aileron launch codex`, as tmux shows them.

python docs/launch_picture.py      # needs tmux, bubblewrap, and the agents of .ci/node.py

The model is the scripted one of tests/agents, the mail service the example one. By hand, because what
it shows holds times and ids.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from io import StringIO
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from examples.mailbox.server import Mailbox  # noqa: E402
from tests.agents.agents_bench import CLI, KEYS, NPM, sends_a_draft  # noqa: E402
from tests.agents.llm import ScriptedLlm  # noqa: E402
from tests.support.core_harness import install_examples  # noqa: E402
from tests.support.ordinary import OWNS  # noqa: E402

COLUMNS, ABOVE, BELOW = 108, 27, 17
PICTURE = ROOT / "docs" / "pictures" / "launch.svg"


class Panes:
    """A tmux of its own with two panes, one above the other."""

    def __init__(self, folder: Path, env: dict[str, str]) -> None:
        self._at = ["tmux", "-S", str(folder / "tmux"), "-f", "/dev/null"]
        self._env = env

    def run(self, *words: str) -> str:
        """Run a tmux command."""
        done = subprocess.run(
            [*self._at, *words], env=self._env, check=True, capture_output=True, text=True
        )
        return done.stdout

    def shows(self, pane: int, colour: bool = False) -> str:
        """Return what a pane shows."""
        return self.run("capture-pane", "-p", *(["-e"] if colour else []), "-t", f":.{pane}")

    def until(self, pane: int, holds: Callable[[str], bool]) -> None:
        """Wait for a screen."""
        deadline = time.monotonic() + 60
        while not holds(shown := self.shows(pane)):
            if time.monotonic() > deadline:
                raise SystemExit(f"pane {pane} shows\n{shown}")
            time.sleep(0.2)


def draw(folder: Path) -> str:
    """Return the SVG."""
    person, home = folder / "person", folder / "aileron"
    project = person / "newsletter"
    project.mkdir(parents=True)
    install_examples(home)
    with Mailbox() as mailbox, ScriptedLlm(sends_a_draft) as llm:
        (person / ".codex").mkdir()
        (person / ".codex" / "config.toml").write_text(
            'model = "test"\nmodel_provider = "local"\n[model_providers.local]\nname = "local"\n'
            f'base_url = "{llm.url}/v1"\nwire_api = "responses"\nenv_key = "OPENAI_API_KEY"\n'
            f'[projects."{project}"]\ntrust_level = "trusted"\n'
        )
        path = os.pathsep.join([str(NPM[0] / "node_modules" / ".bin"), os.environ["PATH"]])
        env = {**KEYS, "HOME": str(person), "PATH": path, "LANG": "C.UTF-8", "TERM": "xterm-256color",
               "COLORTERM": "truecolor", "AILERON_HOME": str(home), OWNS: str(folder)}  # fmt: skip
        panes = Panes(folder, env)
        route = f"gmail.googleapis.com:443=127.0.0.1:{mailbox.port}"
        try:
            panes.run("new-session", "-d", "-x", str(COLUMNS), "-y", str(ABOVE + BELOW + 1), "-c",
                      str(project), *CLI, "console", "--accept-installed", "--route", route)  # fmt: skip
            panes.until(0, lambda shown: "Nothing is waiting" in shown)
            panes.run("split-window", "-v", "-d", "-l", str(BELOW), "-c", str(project),
                      *CLI, "launch", "codex", "--", "Send the draft to the list.")  # fmt: skip
            panes.until(0, lambda shown: "Q3 numbers" in shown and "approve" in shown)
            time.sleep(2)  # the preview, and Codex's own drawing
            above, below = panes.shows(0, colour=True), panes.shows(1, colour=True)
        finally:
            panes.run("kill-server")
    return svg(above, below)


def svg(above: str, below: str) -> str:
    """Return both screens as one picture."""
    console = Console(
        record=True, width=COLUMNS, file=StringIO(), force_terminal=True, color_system="truecolor"
    )
    for line in above.rstrip("\n").split("\n"):
        console.print(Text.from_ansi(line), no_wrap=True)
    console.print(Text("─" * COLUMNS, style="dim"))
    for line in below.rstrip().split("\n"):
        console.print(Text.from_ansi(line), no_wrap=True)
    return console.export_svg(title="aileron", theme=MONOKAI, unique_id="aileron-launch")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="ail-") as place:
        picture = draw(Path(place))
        for private_path in (str(ROOT), place, str(Path.home())):
            if private_path in picture:
                sys.exit(f"the picture holds the path {private_path}")
        PICTURE.write_text(picture, encoding="utf-8")
