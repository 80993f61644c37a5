"""The `aileron` command, in whose console connectors reach a small Todoist of this process, behind TLS.

python -I todoist_console.py FOLDER [ARGUMENTS OF aileron]

FOLDER has `key`, the one API token that the service knows; each request is noted in `seen` there.
"""

import functools
import json
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from aileron_tui.cli import runtime
from aileron_tui.cli.commands import aileron
from tests.support.tls_service import Request, tls_service

TASK = "6X7rM8997g3RQmvh"


class Todoist:
    """One open task; requests without the key are refused, as the real service does."""

    def __init__(self, folder: Path) -> None:
        self._key = (folder / "key").read_text()
        self._seen = folder / "seen"
        self._open = True

    def status(self, request: Request) -> int:
        if request.headers.get("authorization") != f"Bearer {self._key}":
            return 401
        return 204 if request.path.endswith("/close") else 200

    def answer(self, request: Request) -> object:
        knows = self.status(request) != 401
        with self._seen.open("a") as seen:
            seen.write(json.dumps([request.method, request.path, knows]) + "\n")
        if not knows:
            return {"error": "Unauthorized"}
        if request.path == f"/api/v1/tasks/{TASK}/close":
            self._open = False
            return None
        task = {"id": TASK, "content": "Water the plants", "checked": not self._open, "due": None}
        if request.path == f"/api/v1/tasks/{TASK}":
            return {**task, "description": "The one in the hall too."}
        return {"results": [task] if self._open else [], "next_cursor": None}


def main() -> None:
    folder = Path(sys.argv.pop(1))
    service = Todoist(folder)
    # Several of these run at the same time, each with a certificate of its own.
    own = Path(tempfile.mkdtemp(dir=folder))
    with tls_service(own, "api.todoist.com") as listening:
        listening.answer, listening.status = service.answer, service.status
        runtime.core_thread = functools.partial(runtime.core_thread, make_outgoing=listening.client)
        aileron(prog_name="aileron")


if __name__ == "__main__":
    main()
