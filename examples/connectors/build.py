"""Build the example connectors, and write the identity of mail-drafts into the actions that pin it.

Needs the `connector` dependency group (the pinned `ziglang` wheel). The same sources give the same
bytes on every machine: no path, time or symbol goes into a module.

    python examples/connectors/build.py            build, then write the new hash into examples/actions
    python examples/connectors/build.py --check    build in a temporary folder and compare; exit code 1 if they differ
"""

import argparse
import hashlib
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
SOURCES = {
    "mail-drafts": "mail-drafts/src/main.zig",
    "gmail": "mail-drafts/src/oauth2.zig",
    "todoist": "todoist/src/main.zig",
    "github": "github/src/main.zig",
}
"""A connector's folder, and the file that its module is made of."""
PINNED = "mail-drafts"
"""The connector of `examples/actions`; the other suites are bound when they are added."""
ACTIONS = HERE.parent / "actions"
STACK_BYTES = 256 * 1024
_HASH = re.compile(r'^hash = "sha256:[^"]*"$', re.MULTILINE)


def compile_module(source: str) -> bytes:
    """Return the module that the file *source* gives."""
    with tempfile.TemporaryDirectory(prefix="aileron-zig-") as folder:
        module = Path(folder) / "connector.wasm"
        command = [
            *(sys.executable, "-m", "ziglang", "build-exe"),
            *("-target", "wasm32-freestanding", "-mcpu", "generic", "-O", "ReleaseSmall"),
            *("-fstrip", "-fno-entry", "-rdynamic", "--stack", str(STACK_BYTES)),
            *("--name", "connector", f"-femit-bin={module}"),
            *("--cache-dir", folder, "--global-cache-dir", folder),
            *("--dep", "connector", f"-Mroot={source}"),
            "-Mconnector=shared/connector.zig",
        ]
        subprocess.run(command, cwd=HERE, check=True)
        return module.read_bytes()


def identity(module: bytes, folder: Path) -> str:
    """Return the identity of *module* with the manifest in *folder*."""
    return "sha256:" + hashlib.sha256(module + (folder / "manifest.toml").read_bytes()).hexdigest()


def build(name: str, *, check: bool) -> list[str]:
    """Build one connector, or compare it; return the files that were not as the sources give them."""
    folder, stale = HERE / name, list[str]()
    module = compile_module(SOURCES[name])
    line = f'hash = "{identity(module, folder)}"'
    wasm = folder / "connector.wasm"
    if not wasm.exists() or wasm.read_bytes() != module:
        stale.append(f"{name}/connector.wasm")
        if not check:
            wasm.write_bytes(module)
    for action in sorted(ACTIONS.glob("*.md")) if name == PINNED else ():
        text = action.read_text(encoding="utf-8")
        pinned = _HASH.sub(line, text)
        if pinned != text:
            stale.append(action.name)
            if not check:
                action.write_text(pinned, encoding="utf-8")
    print(f"{name}: {len(module)} bytes, {line}")
    return stale


def main() -> int:
    """Build, or compare with what is committed."""
    parser = argparse.ArgumentParser(description="Build the example connectors.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(SOURCES)}")
    parser.add_argument("--check", action="store_true", help="compare with what is committed")
    given = parser.parse_args()
    stale = [
        each
        for name in SOURCES
        if not given.names or name in given.names
        for each in build(name, check=given.check)
    ]
    if given.check and stale:
        print("stale: " + ", ".join(stale), file=sys.stderr)
    return 1 if given.check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
