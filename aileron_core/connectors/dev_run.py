"""`connector run`: one op of a connector that is not installed, for its developer: no action, no gate, no record.

Only routed hosts can be reached, and they get no credential, so a trial is no way around the gate.
`aileron_tui.cli.connectors` prints how it ended.
"""

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from aileron_core.canonical import JsonObject
from aileron_core.connectors.http.client import OutgoingClient
from aileron_core.connectors.protocol import Limits, OpResult, Route
from aileron_core.connectors.store import ConnectorStore
from aileron_core.connectors.wasm.connector import WasmConnector
from aileron_core.connectors.wasm.engine import WasmEngine


async def try_op(
    path: Path,
    op: str,
    args: JsonObject,
    *,
    routes: Sequence[Route] = (),
    read_only: bool = False,
) -> OpResult:
    """Run *op* of the connector in the folder *path* once and return how it ended.

    Args:
        path: a folder with `connector.wasm` and `manifest.toml`.
        routes: the hosts that it can reach, and the addresses that they lead to.
        read_only: allow only GET and HEAD, as in a preview.

    Raises:
        NotFound: a file is missing.
        FileProblems: manifest or module are invalid.
    """
    with tempfile.TemporaryDirectory(prefix="aileron-trial-") as folder:
        store = ConnectorStore(Path(folder))
        installed = store.install(path)
        outgoing = OutgoingClient(routes=routes)
        engine = WasmEngine(outgoing, optimize=False)
        hosts = installed.manifest.hosts
        reachable = tuple(host for host in hosts if outgoing.is_routed(host))
        connector = WasmConnector(
            identity=installed.identity,
            manifest=replace(installed.manifest, hosts=reachable),
            store=store,
            engine=engine,
        )
        try:
            result = await connector.call(op, args, limits=Limits(), read_only=read_only)
        finally:
            engine.close()
            outgoing.close()
    return _name_missing_route(result, frozenset(hosts) - frozenset(reachable))


def _name_missing_route(result: OpResult, unrouted: frozenset[str]) -> OpResult:
    """Explain a refusal if the host is in the manifest but has no route."""
    failure = result.failure
    requested = "" if failure is None else str(failure.details.get("requested", ""))
    place = requested.removeprefix("network:")
    if failure is None or failure.class_ != "capability_denied" or place not in unrouted:
        return result
    message = (
        f"{place} is in the manifest but has no route. `connector run` reaches only routed hosts: "
        f"add --route {place}=127.0.0.1:PORT for a service of yours, or call an action."
    )
    return replace(result, failure=replace(failure, message=message))
