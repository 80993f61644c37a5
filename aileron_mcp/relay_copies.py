"""Copies of the relay for where Aileron is not installed: a container, the sandbox of a launch.

Both run by `python -I COPY` and hold the same modules under the same names. The file runs on any
Python from 3.11 on; the folder's byte code on this very Python, whose start it makes quick.
"""

import tempfile
import zipapp
from collections.abc import Iterator, Mapping
from importlib import metadata
from pathlib import Path

from aileron_core.containment.module_copies import compiled, modules_of, source_of

_DEPENDENCIES = ("aileron_core", "aileron_core.home", "aileron_core.home.owner", "aileron_mcp")
"""What the relay imports of Aileron, and the packages around it."""


def _modules() -> Iterator[tuple[str, str]]:
    return modules_of("aileron_mcp.relay", needed=_DEPENDENCIES)


def compiled_folder() -> Mapping[str, bytes]:
    """Return the files of a folder that this Python starts without compiling anything, by their paths."""
    return compiled(_modules())


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
            file.write_text(source_of(name), encoding="utf-8")
        # `--version` asks for the metadata of an installed package, and finds this.
        metadata_file = Path(folder, f"aileron-{version}.dist-info", "METADATA")
        metadata_file.parent.mkdir()
        metadata_file.write_text(f"Metadata-Version: 2.1\nName: aileron\nVersion: {version}\n")
        zipapp.create_archive(folder, target)
