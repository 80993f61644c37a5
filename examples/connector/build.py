"""Build the example connector and write its identity into the example actions.

Needs the `connector` dependency group (the pinned `ziglang` wheel). The same sources give the same
bytes on every machine: no path, time or symbol goes into the module.

    python examples/connector/build.py            build, then write the new hash into examples/actions
    python examples/connector/build.py --check    build in a temporary folder and compare; exit code 1 if they differ
"""

import argparse
import hashlib
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ACTIONS = HERE.parent / "actions"
STACK_BYTES = 256 * 1024
_HASH = re.compile(r'^hash = "sha256:[^"]*"$', re.MULTILINE)


def compile_module() -> bytes:
    """Return the module that the sources in `src` give."""
    with tempfile.TemporaryDirectory(prefix="aileron-zig-") as folder:
        module = Path(folder) / "connector.wasm"
        command = [
            *(sys.executable, "-m", "ziglang", "build-exe", "src/main.zig"),
            *(
                "-target",
                "wasm32-freestanding",
                "-mcpu",
                "generic",
                "-O",
                "ReleaseSmall",
                "-fstrip",
            ),
            *("-fno-entry", "-rdynamic", "--stack", str(STACK_BYTES), "--name", "connector"),
            *("--cache-dir", folder, "--global-cache-dir", folder, f"-femit-bin={module}"),
        ]
        subprocess.run(command, cwd=HERE, check=True)
        return module.read_bytes()


def identity(module: bytes) -> str:
    """Return the identity of *module* with the manifest beside this file."""
    return "sha256:" + hashlib.sha256(module + (HERE / "manifest.toml").read_bytes()).hexdigest()


def main() -> int:
    """Build, or compare with what is committed."""
    parser = argparse.ArgumentParser(description="Build the example connector.")
    parser.add_argument("--check", action="store_true", help="compare with what is committed")
    check = parser.parse_args().check
    module = compile_module()
    line = f'hash = "{identity(module)}"'
    stale: list[str] = []
    if (HERE / "connector.wasm").read_bytes() != module if check else True:
        stale.append("connector.wasm")
        if not check:
            (HERE / "connector.wasm").write_bytes(module)
    for action in sorted(ACTIONS.glob("*.md")):
        text = action.read_text(encoding="utf-8")
        pinned = _HASH.sub(line, text)
        if pinned != text:
            stale.append(action.name)
            if not check:
                action.write_text(pinned, encoding="utf-8")
    print(f"{len(module)} bytes, {line}")
    if check and stale:
        print("stale: " + ", ".join(stale), file=sys.stderr)
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
