"""What `aileron init` and `aileron connector new` write: settings, examples, and templates of connectors."""

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


def connector_templates() -> Path:
    """Return the folder with a template for each language, and `shared/`, which all of them have."""
    return _suite() / "connectors"


def settings_text() -> str:
    """Return a `config.toml` with every setting as a comment."""
    return (_suite() / "config.toml").read_text(encoding="utf-8")
