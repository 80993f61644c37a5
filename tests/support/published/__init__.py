"""Published connectors, where they are beside the checkout (or where AILERON_CORPUS points).

Their manifests and suites are used as they are. Their modules are not published there; unless somebody puts
one beside a manifest, as `connector.wasm`, `guest.zig` stands in, which sends the same requests.
"""

import functools
import importlib.util
import os
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from aileron_core.canonical import sha256_hex
from aileron_core.connectors.store import MANIFEST_FILE, MODULE_FILE
from aileron_core.releases.archive import write_archive
from aileron_core.releases.signing import sign_sums
from aileron_core.releases.suite import SIGNATURE_FILE, SUMS_FILE
from examples.connectors.build import compile_module

CORPUS = Path(os.environ.get("AILERON_CORPUS", Path(__file__).parents[4] / "shared" / "corpus"))
SUITES = {"api_key": "linear-sample", "oauth2": "google", "aws_sigv4": "athena"}
"""By the kind of their credential."""


needs_corpus = [
    pytest.mark.skipif(not CORPUS.is_dir(), reason="no corpus beside the checkout"),
    pytest.mark.skipif(not importlib.util.find_spec("ziglang"), reason="needs the connector group"),
]


@functools.cache
def _guest() -> bytes:
    return compile_module(str(Path(__file__).with_name("guest.zig")))


def signed(key: Ed25519PrivateKey, module: bytes, manifest: bytes, **actions: bytes) -> bytes:
    """Return what is kept beside a connector of a release that *key* signed; *actions*: files by name."""
    files = {MODULE_FILE: module, MANIFEST_FILE: manifest}
    files |= {f"actions/{name}.md": data for name, data in actions.items()}
    sums = "".join(f"{sha256_hex(data)}  {name}\n" for name, data in files.items()).encode()
    return write_archive({SUMS_FILE: sums, SIGNATURE_FILE: sign_sums(sums, key)})


def unpack(suite: str, folder: Path) -> Path:
    """Write a connector of the corpus into *folder* as its archive unpacks, and return that."""
    published = CORPUS / suite
    folder.mkdir()
    (folder / "manifest.toml").write_bytes((published / "connector.manifest.toml").read_bytes())
    own = published / "connector.wasm"
    (folder / "connector.wasm").write_bytes(own.read_bytes() if own.exists() else _guest())
    (folder / "signature.sig").write_bytes(b"of its publisher, which nothing here verifies")
    return folder
