"""A connector in WAT whose op `work` sends what it is given and then sleeps; `see` answers at once."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import wasmtime

from aileron_core.connectors.store import ConnectorStore
from tests.support.guests import requesting

FQN = "local://tests/sleeper"

_MANIFEST = """
[connector]
name = "local://tests/sleeper"
version = "1.0.0"
[capabilities.network]
hosts = {hosts}
"""


def install_sleeper(
    home: Path,
    *,
    seconds: int,
    requests: Sequence[dict[str, Any]] = (),
    hosts: Sequence[str] = ("sleeper.test:443",),
    more: str = "",
) -> str:
    """Install it in *home*; return its hash.

    Args:
        home: the home.
        seconds: how long `work` sleeps in all, two at a time, as connectors that poll do.
        requests: what `work` asks its host for before it sleeps, in order.
        hosts: what its manifest lists.
        more: further lines of the manifest.
    """
    module = bytes(wasmtime.wat2wasm(_wat([json.dumps(each) for each in requests], seconds)))
    manifest = _MANIFEST.format(hosts=json.dumps(list(hosts))) + more
    return ConnectorStore(home).install_bytes(module, manifest.encode()).identity.hash


def long_action(
    home: Path,
    hash_: str,
    *,
    name: str = "long-work",
    approval: str = "",
    limits: str = "",
    inputs: str = "",
    idempotent: bool = True,
) -> Path:
    folder = home / "actions"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = folder / f"{name}.md"
    path.write_text(
        f"""+++
name = "{name}"
version = "1.0.0"
source = "local://tests/sleeper/actions/{name}@1.0.0"

[[requires.connectors]]
name = "{FQN}"
version = "1.0.0"
hash = "{hash_}"
capabilities = ["work", "see"]

[match]
intent = "work for long"

{inputs}
[[execute]]
id = "work"
connector = "{FQN}"
op = "work"
idempotent = {"true" if idempotent else "false"}
{approval}
{limits}
+++

# Work for long
""",
        encoding="utf-8",
    )
    return path


def _wat(envelopes: Sequence[str], seconds: int) -> str:
    # The input begins with {"op": " and the op; only that of `work` begins with a w (119).
    first = """(local $left i32)
      (i32.store (i32.const 0) (i32.const 600)) (i32.store (i32.const 4) (i32.const 64))
      (drop (call $fd_read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 8)))
      (if (i32.eq (i32.load8_u (i32.const 608)) (i32.const 119)) (then"""
    then = f"""
        (local.set $left (i32.const {seconds // 2}))
        (loop $again
          (i32.store (i32.const 80) (i32.const 1))
          (i64.store (i32.const 88) (i64.const 2000000000))
          (drop (call $poll (i32.const 64) (i32.const 256) (i32.const 1) (i32.const 512)))
          (br_if $again (i32.gt_s (local.tee $left (i32.sub (local.get $left) (i32.const 1))) (i32.const 0))))))"""
    return requesting(*envelopes, first=first, then=then)
