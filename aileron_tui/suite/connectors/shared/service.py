"""A service for trying the connector: notes over HTTP, kept in memory. Only Python's standard library.

python3 service.py [PORT]
"""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote

HOST = "notes.example.com:443"
PORT = 8026


class Handler(BaseHTTPRequestHandler):
    """GET and PUT of /notes/ID; a note is {"id", "title", "text", "revision"}."""

    def do_GET(self):
        self._note(None)

    def do_PUT(self):
        self._note(json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0))))

    def _note(self, change):
        note = self.server.notes.get(unquote(self.path.rpartition("/notes/")[2]))
        if note is None:
            return self._answer(404, {"error": "there is no such note"})
        if change is not None:
            note["text"] = change["text"]
            note["revision"] += 1
        return self._answer(200, note)

    def _answer(self, status, value):
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def listen(port=0):
    """Return a server on 127.0.0.1 with two notes; port 0 is any free one."""
    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    server.notes = {
        "1": {"id": "1", "title": "Groceries", "text": "Milk\nBread\n", "revision": 2**53},
        "a/b": {"id": "a/b", "title": "Größe 😀", "text": "", "revision": 1},
    }
    return server


if __name__ == "__main__":
    running = listen(int(sys.argv[1]) if len(sys.argv) > 1 else PORT)
    print(f"Notes at 127.0.0.1:{running.server_port}", flush=True)
    try:
        running.serve_forever()
    except KeyboardInterrupt:
        running.server_close()
