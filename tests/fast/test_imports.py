"""No module needs itself: circles among imports, also where one of them waits inside a function."""

import ast
import importlib.util
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any

import pytest

SHAPE = Path(__file__).resolve().parents[2] / ".ci" / "shape.py"
BY_A_STRING = {
    "aileron_core.vault.os_keyring": "the package `keyring` is optional, and so are its modules",
    "aileron_tui.cli.options": "a command starts in a tenth of a second: what it calls is imported when it runs",
    "aileron_mcp.lazy_mount": "the package `mcp` takes half a second, and a console may never need it",
}
"""The modules that may import by a string what no reader of imports sees, and why."""


def read_shape() -> Any:
    """Return the script that reads the imports of all modules of the packages."""
    spec = importlib.util.spec_from_file_location("shape", SHAPE)
    assert spec is not None
    assert spec.loader is not None
    shape = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(shape)
    return shape


def circle(imported: Mapping[str, set[str]]) -> list[str]:
    """Return modules each of which is imported by the one before it, the first at the end again; or none."""
    try:
        TopologicalSorter(imported).prepare()
    except CycleError as error:
        return error.args[1]
    return []


def imported_by(name: str, found: Iterator[str]) -> set[str]:
    """Return what *name* imports, with the packages that this is in, but those of *name*: they are loaded before it."""
    loaded = {part for each in found for part in (each, *_packages(each))}
    return {each for each in loaded if not f"{name}.".startswith(f"{each}.")}


def _packages(name: str) -> Iterator[str]:
    while "." in name:
        name = name.rpartition(".")[0]
        yield name


def named_in_strings(tree: ast.AST) -> bool:
    """Return whether a module is imported by its name in a string, or by a name that is made up."""
    called = (node.func for node in ast.walk(tree) if isinstance(node, ast.Call))
    names = (node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "") for node in called)  # fmt: skip
    return any(name in ("import_module", "__import__") for name in names)


def test_a_circle_is_found_through_an_import_inside_a_function(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    shape = read_shape()
    texts = {
        "a": "import b",
        "b": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import c",
        "c": "def later():\n    from a import it",
        "d": "import a",
    }
    for name, text in texts.items():
        (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.setattr(shape, "MODULES", {name: tmp_path / f"{name}.py" for name in texts})
    graph = {name: imported_by(name, shape.imports(name)) for name in texts}
    assert {*circle(graph)} == {"a", "b", "c"}
    assert named_in_strings(ast.parse("def f():\n    importlib.import_module('a')"))


def test_no_module_is_in_a_circle() -> None:
    """Two modules that need each other are one that nobody can read, load or move alone."""
    shape = read_shape()
    graph = {name: imported_by(name, shape.imports(name)) for name in shape.MODULES}
    assert circle(graph) == []
    by_a_string = {
        name
        for name, path in shape.MODULES.items()
        if "import_" in (text := path.read_text()) and named_in_strings(ast.parse(text))
    }
    assert by_a_string == {*BY_A_STRING}
