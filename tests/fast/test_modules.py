"""Modules and values: none needs itself, also where an import waits inside a function; no two have the same fields."""

import ast
import importlib.util
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
BY_A_STRING = {
    "aileron_core.vault.os_keyring": "the package `keyring` is optional, and so are its modules",
    "aileron_tui.cli.options": "a command starts in a tenth of a second: what it calls is imported when it runs",
    "aileron_mcp.lazy_mount": "the package `mcp` takes half a second, and a console may never need it",
}
"""The modules that may import by a string what no reader of imports sees, and why."""
MAKERS = ("dataclass(", "define(", "frozen(", "attrs.")
MANY = 5
"""Classes of so many fields have two at least that differ in name or type."""
ALLOWED = {("Look", "LookView"): "what the service answered stays in the core; this is shown of it"}
"""Values that may have the same fields, by name, and why."""


def read_shape() -> Any:
    spec = importlib.util.spec_from_file_location("shape", ROOT / ".ci" / "shape.py")
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
    texts = {name: path.read_text() for name, path in shape.MODULES.items()}
    some = {name: ast.parse(text) for name, text in texts.items() if "import_" in text}
    assert {name for name, tree in some.items() if named_in_strings(tree)} == {*BY_A_STRING}


def fields_of(node: ast.ClassDef) -> dict[str, str]:
    annotated = (each for each in node.body if isinstance(each, ast.AnnAssign))
    return {ast.unparse(each.target): ast.unparse(each.annotation) for each in annotated}


def is_value(node: ast.ClassDef) -> bool:
    made = any(f"{ast.unparse(each)}(".startswith(MAKERS) for each in node.decorator_list)
    return made or any(ast.unparse(each).endswith("NamedTuple") for each in node.bases)


def value_classes() -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the values of the packages: name and fields, where there are two or more that no base has."""
    packages = ("aileron_core", "aileron_mcp", "aileron_tui")
    paths = (path for each in packages for path in sorted((ROOT / each).rglob("*.py")))
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in paths]
    classes = [node for tree in trees for node in tree.body if isinstance(node, ast.ClassDef)]
    known = {node.name: fields_of(node) for node in classes}
    for node in filter(is_value, classes):
        inherited = {name for base in node.bases for name in known.get(ast.unparse(base), ())}
        fields = fields_of(node)
        if len(fields.keys() - inherited) > 1:
            yield node.name, fields


def are_alike(one: dict[str, str], other: dict[str, str]) -> bool:
    if abs(len(one) - len(other)) > 1:
        return False  # as soon as that: there are a quarter of a million pairs
    same, most = one.items() & other.items(), max(len(one), len(other))
    return one.keys() == other.keys() or (most >= MANY and len(same) >= most - 1)


def test_no_two_values_have_the_same_fields() -> None:
    pairs = combinations(value_classes(), 2)
    alike = {tuple(sorted((a, b))) for (a, one), (b, other) in pairs if are_alike(one, other)}
    assert sorted(alike) == sorted(ALLOWED)
