"""The copy of the workers' program that a sandbox gets."""

import ast
import sys
from importlib.util import find_spec
from pathlib import Path

from aileron_core.connectors.builtin.connector import worker_files


def test_it_has_all_that_it_imports() -> None:
    """Of what its modules import anywhere: the standard library is there, and nothing else is."""
    names = [each.removesuffix(".pyc").removesuffix("/__init__") for each in worker_files()]
    copied = {each.replace("/", ".") for each in names}
    missing: set[str] = set()
    for name in copied - {"__main__"}:
        spec = find_spec(name)
        assert spec is not None
        assert spec.origin is not None
        for node in ast.walk(ast.parse(Path(spec.origin).read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module is not None:
                inner = {f"{node.module}.{each.name}" for each in node.names}
                modules = {each for each in inner if each in copied} or {node.module}
            elif isinstance(node, ast.Import):
                modules = {each.name for each in node.names}
            else:
                continue
            missing |= {
                each for each in modules if each.partition(".")[0] not in sys.stdlib_module_names
            } - copied
    assert missing == set()
