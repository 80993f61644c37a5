"""The picture of docs/architecture.md, from the import contracts and the packages' own docstrings."""

import ast
import tomllib
from collections.abc import Iterator
from pathlib import Path
from textwrap import wrap
from typing import Any

from commands import BEGIN, END

ROOT = Path(__file__).resolve().parents[1]
_WIDTH = 100


def with_layers(page: str) -> str:
    """Return *page* with the layers of every package between its two marks."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts: list[dict[str, Any]] = project["tool"]["importlinter"]["contracts"]
    body = "\n".join(
        line for contract in contracts if contract["type"] == "layers" for line in _drawn(contract)
    )
    return f"{before}{BEGIN}\n\n{body}\n{END}{after}"


def _drawn(contract: dict[str, Any]) -> Iterator[str]:
    """Draw one contract for each of its containers: a box for each layer, the highest first.

    The layers inside a single package of the three are a contract too, and no part of the picture.
    """
    for container in contract.get("containers", [""]):
        if "." in container:
            continue
        layers = [list(_members(layer, container)) for layer in contract["layers"]]
        layers = [layer for layer in layers if layer]
        width = max(len(name) for layer in layers for name, _ in layer)
        yield f"{container or 'The three packages'}:" if not container else f"`{container}`:"
        yield ""
        yield "```text"
        yield _rule("┌┬┐", width)
        for number, layer in enumerate(layers):
            if number:
                yield _rule("├┼┤", width)
            for name, summary in layer:
                room = _WIDTH - width - 7
                for first, line in enumerate(wrap(summary, room) or [""]):
                    yield f"│ {'' if first else name:{width}} │ {line:{room}} │"
        yield _rule("└┴┘", width)
        yield "```"
        yield ""


def _rule(ends: str, width: int) -> str:
    left, middle, right = ends
    return f"{left}{'─' * (width + 2)}{middle}{'─' * (_WIDTH - width - 5)}{right}"


def _members(layer: str, container: str) -> Iterator[tuple[str, str]]:
    for written in layer.replace("|", " ").replace(":", " ").split():
        name = written.strip("()")
        path = ROOT / Path(*filter(None, (*container.split("."), *name.split("."))))
        source = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        if source.exists():
            summary = ast.get_docstring(ast.parse(source.read_text(encoding="utf-8"))) or ""
            yield name, " ".join(summary.partition("\n\n")[0].split())
