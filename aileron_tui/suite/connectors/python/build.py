"""Builds connector.wasm: MicroPython, with connector.py written into it. Nothing else is needed."""

import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
MARK = b"aileron-connector-script:"
ROOM = 128 * 1024
"""Bytes that micropython.wasm reserves for the script, the zero that ends it included."""


def main():
    script = (FOLDER / "connector.py").read_bytes()
    compile(script, "connector.py", "exec")
    if len(script) >= ROOM or b"\0" in script:
        sys.exit(
            f"connector.py has {len(script)} bytes; fewer than {ROOM} fit, and none may be zero."
        )
    module = (FOLDER / "micropython.wasm").read_bytes()
    start = module.index(MARK) + len(MARK)
    built = module[:start] + script.ljust(ROOM, b"\0") + module[start + ROOM :]
    (FOLDER / "connector.wasm").write_bytes(built)


main()
