"""What other sessions notice while a guest hands over as much as it may: their calls alone, and beside it.

Each guest does one thing over and over, called again as soon as it has ended.
"""

import http.client
import threading
import time
from pathlib import Path

import wasmtime

from aileron_core.connectors.store import ConnectorStore
from aileron_core.home.client import HomeClient
from bench.support import MANIFEST, Aims, amount, home, milliseconds, p99, serving

SECONDS = amount(8.0, check=0.1)
MIB = 1024 * 1024
_HEAD = '{"url": "https://api.example.com/x", "method": "POST", "body": "'
_PRINT = '{"output": "'
_ACTION = """\
+++
name = "{name}"
version = "1.0.0"
source = "local://bench/{name}@1.0.0"

[[requires.connectors]]
name = "local://bench/{name}"
version = "1.0.0"
hash = "{hash}"
capabilities = ["hold"]

[match]
intent = "hold"

[[execute]]
id = "hold"
connector = "local://bench/{name}"
op = "hold"
idempotent = true
+++

# Hold
"""


def _guest(begin: str, unit: str, end: str, size: int, act: str) -> bytes:
    """Return a guest that writes *begin*, *unit* over *size* bytes, *end*, and does *act* with it."""

    def data(text: str) -> str:
        return "".join(f"\\{byte:02x}" for byte in text.encode())

    at, count = 4096, size // len(unit.encode())
    first = at + len(begin.encode())
    last = first + count * len(unit.encode())
    total = last + len(end.encode()) - at
    return bytes(
        wasmtime.wat2wasm(f"""(module
      (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
      (import "aileron_host" "http_request" (func $request (param i32 i32) (result i32)))
      (memory (export "memory") {2 + (at + total) // 65536})
      (data (i32.const 64) "{data(unit)}")
      (data (i32.const {at}) "{data(begin)}")
      (data (i32.const {last}) "{data(end)}")
      (func (export "_start") (local $at i32) (local $n i32)
        (local.set $at (i32.const {first}))
        (loop $fill
          (memory.copy (local.get $at) (i32.const 64) (i32.const {len(unit.encode())}))
          (local.set $at (i32.add (local.get $at) (i32.const {len(unit.encode())})))
          (br_if $fill (i32.lt_u (local.get $at) (i32.const {last}))))
        {act.format(at=at, total=total)}))""")
    )


_REQUEST = """(loop $again
          (drop (call $request (i32.const {at}) (i32.const {total})))
          (local.set $n (i32.add (local.get $n) (i32.const 1)))
          (br_if $again (i32.lt_u (local.get $n) (i32.const 5))))"""
_WRITE = """(i32.store (i32.const 0) (i32.const {at})) (i32.store (i32.const 4) (i32.const {total}))
        (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))"""
GUESTS = {
    "asks with 16 MiB of escaped pairs": (_HEAD, "\\ud83d\\ude00", '"}', 16 * MIB - 4096, _REQUEST),
    "asks with 16 MiB of half pairs": (_HEAD, "\\ud800", '"}', 16 * MIB - 4096, _REQUEST),
    "asks with 16 MiB of small values": (_HEAD + '", "x": [', "{},", "1]}", 16 * MIB, _REQUEST),
    "prints 8 MiB of escapes": (_PRINT, "\\n", '"}', 8 * MIB - 4096, _WRITE),
    "prints 8 MiB of plain text": (_PRINT, "lorem ip", '"}', 8 * MIB - 4096, _WRITE),
    "prints 8 MiB of small values": ('{"output": [', "{},", "1]}", 8 * MIB - 4096, _WRITE),
    "prints 250 KiB of small values": ('{"output": [', "{},", "1]}", 250 * 1024, _WRITE),
}


class _Session:
    """A session of its own, over HTTP."""

    def __init__(self, path: Path, url: str) -> None:
        opened = HomeClient(path).request("POST", "/v1/sessions", {"agent": "bench", "cwd": "/"})[1]
        self._headers = {
            "Authorization": f"Bearer {opened['token']}",
            "Content-Type": "application/json",
        }
        self._connection = http.client.HTTPConnection(url.removeprefix("http://"))

    def call(self, action: str) -> float:
        began = time.perf_counter()
        self._connection.request("POST", f"/v1/actions/{action}/run", b'{"args":{}}', self._headers)
        response = self._connection.getresponse()
        while response.read(MIB):
            pass
        return time.perf_counter() - began


def _calls(session: _Session, seconds: float) -> list[float]:
    took: list[float] = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        took.append(session.call("nothing"))
        time.sleep(0.002)
    return took


def _beside(path: Path, url: str, action: str, quiet: _Session) -> tuple[list[float], int]:
    over = threading.Event()
    done = 0

    def hold() -> None:
        nonlocal done
        session = _Session(path, url)
        while not over.is_set():
            session.call(action)
            done += 1

    thread = threading.Thread(target=hold)
    thread.start()
    try:
        return _calls(quiet, SECONDS), done
    finally:
        over.set()
        thread.join()


def _install(path: Path) -> dict[str, str]:
    names: dict[str, str] = {}
    for number, (label, given) in enumerate(GUESTS.items()):
        name = f"hold-{number}"
        manifest = MANIFEST.replace("nothing", name).replace(
            "hosts = []", 'hosts = ["api.example.com:443"]'
        )
        installed = ConnectorStore(path).install_bytes(_guest(*given), manifest.encode())
        text = _ACTION.format(name=name, hash=installed.identity.hash)
        (path / "actions" / f"{name}.md").write_text(text, encoding="utf-8")
        names[label] = name
    return names


def main() -> None:
    """Print the calls of a session alone, then beside each guest."""
    print("holding: a session's calls that do nothing, beside a guest that hands over all it may")
    aims = Aims()
    with home() as path:
        names = _install(path)
        with serving(path, routes=("api.example.com:443=127.0.0.1:9",)) as server:
            quiet = _Session(path, server["url"])
            for action in ("nothing", *names.values()):
                quiet.call(action)
            alone = _calls(quiet, SECONDS)
            floor = p99(alone)
            print(f"  alone                             {milliseconds(alone)}")
            for label, action in names.items():
                took, done = _beside(path, server["url"], action, quiet)
                worst = p99(took)
                print(
                    f"  {label:<33} {milliseconds(took)}  ({done} calls of it) "
                    f"p99 {worst / floor:.2f} times alone"
                )
                aims.at_most(f"beside a guest that {label}, p99 ms", worst * 1e3, 20)
    aims.report()


if __name__ == "__main__":
    main()
