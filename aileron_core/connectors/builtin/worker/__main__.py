"""`python -I -m aileron_core.connectors.builtin.worker files|commands|recover PROJECT ...`, and what a copy of it in a folder runs."""

import json
import sys
from pathlib import Path


def main() -> None:
    """Serve one worker until the end of standard input."""
    kind, project, *more = sys.argv[1:]
    if kind == "files":
        from aileron_core.connectors.builtin.worker.file_worker import serve as serve_files

        serve_files(Path(project))
    elif kind == "recover":
        from aileron_core.connectors.builtin.worker.journal import recover

        print(json.dumps(recover(sys.stdin.read())))  # noqa: T201
    else:
        from aileron_core.connectors.builtin.worker.command_worker import serve

        serve(Path(project), more)


if __name__ == "__main__":
    main()
