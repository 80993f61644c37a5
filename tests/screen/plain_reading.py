"""A person who reads a console without a screen from the top, and types lines."""

import sys
from pathlib import Path

from tests.support.terminal import Pty

CHILD = Path(__file__).parent / "plain_child.py"
ASKS = "\n> "


class Reader:
    """The child on a pseudo-terminal; what was read once is not read again."""

    def __init__(self, folder: Path, *options: str) -> None:
        self._intents = folder / "intents"
        self._intents.touch()
        self.pty = Pty([sys.executable, "-I", str(CHILD), str(self._intents), *options])
        self._mark = 0

    @property
    def output(self) -> str:
        """Everything that was written so far, as lines."""
        return self.pty.raw.decode(errors="ignore").replace("\r\n", "\n")

    def read_until(self, text: str) -> str:
        """Wait for *text* behind what was read already; return what was written up to its end."""
        self.pty.until(lambda: text in self.output[self._mark :], text)
        begin, self._mark = self._mark, self.output.index(text, self._mark) + len(text)
        return self.output[begin : self._mark]

    def asked(self) -> str:
        """Wait for the next question; return what stands before it."""
        return self.read_until(ASKS)

    def answers(self, line: str) -> str:
        """Type *line* at the question; return what is written up to the next one."""
        self.pty.type(line.encode() + b"\n")
        return self.asked()

    @property
    def intents(self) -> str:
        """What was asked of the core, a line each."""
        return self._intents.read_text()

    def close(self) -> None:
        """End it."""
        self.pty.close()
