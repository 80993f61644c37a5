"""The files of the workers' program, for a sandbox in which Aileron is not installed."""

from collections.abc import Mapping

from aileron_core.connectors.builtin.worker import NEEDED
from aileron_core.containment.module_copies import compiled, modules_of


def worker_files() -> Mapping[str, bytes]:
    """Return the files of a folder that `python -I` runs as a worker, by their paths in it."""
    return compiled(modules_of("aileron_core.connectors.builtin.worker", needed=NEEDED))
