"""Copies of modules for where Aileron is not installed, such as a sandbox: a folder that `python -I` runs.

A module keeps its name and its place in its package; one is what the folder itself runs (`__main__`).
"""

import importlib.util
import marshal
from collections.abc import Iterable, Iterator, Mapping
from importlib.abc import InspectLoader
from importlib.resources import files


def modules_of(package: str, *, needed: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield each module of a copy of *package*, and its path there without the ending.

    Args:
        needed: other modules that it imports, and every package above those and it.
    """
    inside = sorted(
        each.name.removesuffix(".py")
        for each in files(package).iterdir()
        if each.name.endswith(".py")
    )
    own = (f"{package}.{name}" for name in inside if not name.startswith("__"))
    for name in (*needed, *own, package):
        spec = importlib.util.find_spec(name)
        assert spec is not None
        path = name.replace(".", "/")
        yield name, f"{path}/__init__" if spec.submodule_search_locations is not None else path
    yield f"{package}.__main__", "__main__"


def source_of(module: str) -> str:
    return _loader(module).get_source(module) or ""


def compiled(modules: Iterable[tuple[str, str]]) -> Mapping[str, bytes]:
    """Return the files of a folder that this Python starts without compiling anything, by their paths."""
    head = importlib.util.MAGIC_NUMBER + bytes(12)  # no source to hold it against
    return {
        f"{path}.pyc": head + marshal.dumps(_loader(name).get_code(name)) for name, path in modules
    }


def _loader(name: str) -> InspectLoader:
    spec = importlib.util.find_spec(name)
    assert spec is not None
    assert isinstance(spec.loader, InspectLoader)
    return spec.loader
