"""Copies of the relay for where Aileron is not installed: a container, the sandbox of a launch.

Both run by `python -I COPY` and hold the same modules under the same names. The file runs on any
Python from 3.11 on; the folder's byte code on this very Python, whose start it makes quick.
"""

import importlib.util
import marshal
import tempfile
import zipapp
from collections.abc import Iterator, Mapping
from importlib import metadata
from importlib.abc import InspectLoader
from importlib.resources import files
from pathlib import Path

_RELAY = "aileron_mcp.relay"
_DEPENDENCIES = ("aileron_core", "aileron_core.home", "aileron_core.home.owner", "aileron_mcp")
"""What the relay imports of Aileron, and the packages around it."""


def _modules() -> Iterator[tuple[str, str]]:
    """Yield each module of the copy, and its path there without the ending."""
    inside = sorted(
        each.name.removesuffix(".py") for each in files(_RELAY).iterdir() if each.name[-3:] == ".py"
    )
    names = (*_DEPENDENCIES, *(f"{_RELAY}.{name}" for name in inside if name[:2] != "__"), _RELAY)
    for name in names:
        spec = importlib.util.find_spec(name)
        assert spec is not None
        path = name.replace(".", "/")
        yield name, f"{path}/__init__" if spec.submodule_search_locations is not None else path
    yield f"{_RELAY}.__main__", "__main__"


def _loader(name: str) -> InspectLoader:
    spec = importlib.util.find_spec(name)
    assert spec is not None
    assert isinstance(spec.loader, InspectLoader)
    return spec.loader


def compiled_folder() -> Mapping[str, bytes]:
    """Return the files of a folder that this Python starts without compiling anything, by their paths."""
    head = importlib.util.MAGIC_NUMBER + bytes(12)  # no source to hold it against
    return {
        f"{path}.pyc": head + marshal.dumps(_loader(name).get_code(name))
        for name, path in _modules()
    }


def write_zipapp(target: Path) -> None:
    """Write the relay as one file.

    Raises:
        OSError: it cannot be written.
    """
    version = metadata.version("aileron")
    with tempfile.TemporaryDirectory() as folder:
        for name, path in _modules():
            file = Path(folder, f"{path}.py")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(_loader(name).get_source(name) or "", encoding="utf-8")
        # `--version` asks for the metadata of an installed package, and finds this.
        metadata_file = Path(folder, f"aileron-{version}.dist-info", "METADATA")
        metadata_file.parent.mkdir()
        metadata_file.write_text(f"Metadata-Version: 2.1\nName: aileron\nVersion: {version}\n")
        zipapp.create_archive(folder, target)
