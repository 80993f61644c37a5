"""Real modules that say what they were given, or what a test wants, and actions over them.

The op of `ECHO` returns its whole input, `{"op": ..., "args": ...}`, byte for byte: what a step got is
read from the run's end. The op of `SAYS` returns fixed bytes, hostile ones too.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import wasmtime

from aileron_core.connectors.store import ConnectorStore
from tests.support.guests import ECHO as _ECHO
from tests.support.guests import escaped, printing, wat

ECHO = "local://tests/echo"
SAYS = "local://tests/says"


@dataclass(frozen=True, slots=True, kw_only=True)
class InstalledConnectors:
    """The two modules in a home's store: FQN to hash."""

    hashes: dict[str, str]


def install_connectors(home: Path, *, says: bytes = b"{}") -> InstalledConnectors:
    """Install `ECHO`, and `SAYS` with the output *says*, in *home*."""
    store = ConnectorStore(home)
    hashes: dict[str, str] = {}
    echo = wat(_ECHO, data=escaped('{"output":}'), pages=500)
    for name, text in ((ECHO, echo), (SAYS, printing(b'{"output":' + says + b"}"))):
        manifest = f'[connector]\nname = "{name}"\nversion = "1.0.0"\n'
        manifest += "[capabilities.network]\nhosts = []\n"
        entry = store.install_bytes(bytes(wasmtime.wat2wasm(text)), manifest.encode())
        hashes[name] = entry.identity.hash
    return InstalledConnectors(hashes=hashes)


def chained(
    installed: InstalledConnectors,
    *steps: tuple[str, str, bool, str | None],
    inputs: Sequence[tuple[str, str, bool]] = (),
    name: str = "chain",
    gated: bool = True,
    more: str = "",
) -> str:
    """Return an action file of *steps* (id, connector, idempotent, its inputs in TOML or None).

    *inputs* are the action's (name, type, required); *more* is TOML before `[approval]`.
    """
    requires = declared = body = ""
    for fqn, hash_ in installed.hashes.items():
        requires += f'[[requires.connectors]]\nname = "{fqn}"\nversion = "1.0.0"\n'
        requires += f'hash = "{hash_}"\ncapabilities = ["do"]\n\n'
    for each, type_, required in inputs:
        declared += f'[[inputs]]\nname = "{each}"\ntype = "{type_}"\n'
        declared += f'required = {str(required).lower()}\ndescription = "{each}"\n\n'
    for each, fqn, idempotent, given in steps:
        body += f'[[execute]]\nid = "{each}"\nconnector = "{fqn}"\nop = "do"\n'
        body += f"idempotent = {str(idempotent).lower()}\n"
        body += "\n" if given is None else f"[execute.inputs]\n{given}\n\n"
    return (
        f'+++\nname = "{name}"\nversion = "0.1.0"\nsource = "local://tests/{name}@0.1.0"\n\n'
        f'{requires}[match]\nintent = "try later steps"\n\n{declared}{body}{more}\n'
        f"[approval]\nrequired = {str(gated).lower()}\n+++\n\n# Chain\n"
    )
