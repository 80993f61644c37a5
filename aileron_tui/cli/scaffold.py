"""What `aileron init` writes: the settings (`suite/config.toml`), and an example of everything else."""

from pathlib import Path
from typing import Final

EXAMPLE_HOST: Final = "gmail.googleapis.com:443"
"""The one host of the example connector; `--route` leads it to the example service."""
EXAMPLE_PORT: Final = 8025
EXAMPLE_DRAFT: Final = "r-8842190447"
"""The first draft of a fresh example service."""


def _suite() -> Path:
    from importlib.resources import files

    return Path(str(files("aileron_tui"))) / "suite"


def examples() -> Path:
    """Return the folder with `actions/`, `connector/` and the Python package `mailbox`."""
    return _suite() / "examples"


def settings_text() -> str:
    """Return a `config.toml` with every setting as a comment."""
    return (_suite() / "config.toml").read_text(encoding="utf-8")
