"""Build micropython.wasm, the Python of `aileron connector new --lang python`; the built file is committed.

    python examples/connectors/micropython/build.py ARCHIVE            build, then write it into the templates
    python examples/connectors/micropython/build.py ARCHIVE --check    compare; exit code 1 if it differs

ARCHIVE is MicroPython's source as Debian has it, `apt-get source --download-only micropython` of Debian 13.
Needs make, patch and the `connector` dependency group. The same archive gives the same bytes.
"""

import argparse
import hashlib
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
TEMPLATE = HERE.parents[2] / "aileron_tui" / "suite" / "connectors" / "python"
VERSION, SHA256 = "1.25.0", "7b25be99a502f070b2de81dafc08da7051d992325d6e67daa9045a918fffdbea"
"""Of micropython_1.25.0+ds.orig.tar.xz."""


def compile_interpreter(archive: Path) -> bytes:
    """Return the module that *archive* gives.

    Raises:
        SystemExit: it is another archive.
    """
    if hashlib.sha256(archive.read_bytes()).hexdigest() != SHA256:
        sys.exit(f"{archive} is not MicroPython {VERSION} as Debian has it: its SHA-256 differs.")
    with tempfile.TemporaryDirectory(prefix="aileron-micropython-") as folder:
        with tarfile.open(archive) as opened:
            opened.extractall(folder, filter="data")
        (top,) = Path(folder).iterdir()
        for change in sorted(HERE.glob("*.patch")):
            subprocess.run(["patch", "-p1", "-i", str(change)], cwd=top, check=True)
        built = Path(folder) / "build"
        settings = (f"TOP={top}", f"BUILD={built}", f"PYTHON={sys.executable}")
        environment = {**os.environ, "MICROPY_GIT_TAG": f"v{VERSION}", "SOURCE_DATE_EPOCH": "0"}
        jobs = f"-j{os.cpu_count()}"
        subprocess.run(
            ["make", "-s", jobs, *settings], cwd=HERE, env=environment, stdout=2, check=True
        )
        return (built / "python.wasm").read_bytes()


def main() -> int:
    """Build, or compare with what is committed."""
    parser = argparse.ArgumentParser(description="Build the Python of connectors.")
    parser.add_argument("archive", type=Path)
    parser.add_argument("--check", action="store_true", help="compare with what is committed")
    given = parser.parse_args()
    module, target = compile_interpreter(given.archive), TEMPLATE / "micropython.wasm"
    print(f"{len(module)} bytes, sha256:{hashlib.sha256(module).hexdigest()}")
    if given.check:
        return int(target.read_bytes() != module)
    target.write_bytes(module)
    return 0


if __name__ == "__main__":
    sys.exit(main())
