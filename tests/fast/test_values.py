"""A value has one class, whoever keeps it and whoever shows it: no two have the same fields."""

import ast
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MAKERS = ("dataclass(", "define(", "frozen(", "attrs.")
MANY = 5
"""Classes of so many fields have two at least that differ in name or type."""
ALLOWED = {("Look", "LookView"): "what the service answered stays in the core; this is shown of it"}
"""Values that may have the same fields, by name, and why."""


def fields_of(node: ast.ClassDef) -> dict[str, str]:
    """Return the fields that *node* itself has, by name, with their types."""
    annotated = (each for each in node.body if isinstance(each, ast.AnnAssign))
    return {ast.unparse(each.target): ast.unparse(each.annotation) for each in annotated}


def is_value(node: ast.ClassDef) -> bool:
    """Return whether *node* is a dataclass, a class of attrs or a named tuple."""
    made = any(f"{ast.unparse(each)}(".startswith(MAKERS) for each in node.decorator_list)
    return made or any(ast.unparse(each).endswith("NamedTuple") for each in node.bases)


def values() -> Iterator[tuple[str, dict[str, str]]]:
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
    """Return whether their fields have the same names, or of many all but one are the same."""
    if abs(len(one) - len(other)) > 1:
        return False  # as soon as that: there are a quarter of a million pairs
    same, most = one.items() & other.items(), max(len(one), len(other))
    return one.keys() == other.keys() or (most >= MANY and len(same) >= most - 1)


def test_no_two_values_have_the_same_fields() -> None:
    alike = {
        tuple(sorted((name, other_name)))
        for (name, fields), (other_name, others) in combinations(values(), 2)
        if are_alike(fields, others)
    }
    assert sorted(alike) == sorted(ALLOWED)
