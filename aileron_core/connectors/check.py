"""A connector before its installation: `connector check`, every problem of manifest and module at once; `connector run`, one op.

Of a run there is no action, no gate and no record. Only routed hosts can be reached, and they get no credential,
so a trial is no way around the gate. `aileron_tui.cli.connectors` prints how it ended.
"""

import tempfile
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from aileron_core.canonical import JsonObject
from aileron_core.connectors.http.client import OutgoingClient
from aileron_core.connectors.manifest import Manifest, parse_manifest
from aileron_core.connectors.protocol import Limits, OpResult, Route
from aileron_core.connectors.store import (
    MANIFEST_FILE,
    MAX_MANIFEST,
    MAX_MODULE,
    MODULE_FILE,
    ConnectorStore,
    InstalledConnector,
    check_magic,
    identity_hash,
    read_source,
)
from aileron_core.connectors.wasm.compiler import Compiler, ModuleCheck
from aileron_core.connectors.wasm.connector import WasmConnector
from aileron_core.connectors.wasm.engine import WasmEngine
from aileron_core.errors import FileProblems, NotFound, Problem

_RUNTIME = "capabilities.runtime.imports"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorCheck:
    """The result of a check: errors and warnings, and whatever of the connector could be read."""

    problems: tuple[Problem, ...]
    manifest: Manifest | None = None
    imports: tuple[str, ...] = ()
    """As `ModuleCheck.imports`."""
    hash: str = ""
    """Its identity hash; empty without a module and a manifest."""

    @property
    def ok(self) -> bool:
        """Whether it could be installed; warnings do not prevent that."""
        return not any(problem.severity == "error" for problem in self.problems)


def check_connector(path: Path) -> ConnectorCheck:
    """Check the connector in *path*; blocks while its module is compiled.

    Args:
        path: a folder with `connector.wasm` and `manifest.toml`, or a manifest alone (`*.toml`).

    Raises:
        NotFound: there is no such folder or file.
    """
    alone = path.suffix == ".toml"
    manifest_file = path if alone else path / MANIFEST_FILE
    if not path.exists():
        raise NotFound(
            f"There is no file or folder {path}. Give a folder with {MODULE_FILE} and {MANIFEST_FILE}."
        )
    unread: list[Problem] = []
    manifest = _read(manifest_file, MAX_MANIFEST, unread)
    module_file = path / MODULE_FILE
    module = None if alone else _read(module_file, MAX_MODULE, unread)
    found = check_parts(module, manifest, str(module_file), str(manifest_file))
    return replace(found, problems=(*unread, *found.problems))


def check_parts(
    module: bytes | None, manifest_bytes: bytes | None, module_file: str, manifest_file: str
) -> ConnectorCheck:
    """Check a connector's module and manifest, None for what is not there; blocks as `check_connector`.

    Args:
        module_file, manifest_file: what problems call them.
    """
    problems: list[Problem] = []
    manifest, checked, hash_ = None, ModuleCheck(), ""
    if manifest_bytes is not None:
        with _collecting(problems):
            manifest = parse_manifest(manifest_bytes, manifest_file)
    if module is not None:
        with _collecting(problems):
            check_magic(module, module_file)
            checked = Compiler().check(module)
    problems += [Problem(file=module_file, message=each) for each in checked.problems]
    if manifest is not None and checked.imports is not None:
        problems += _mismatches(manifest, checked.imports, manifest_file)
    if module is not None and manifest_bytes is not None:
        hash_ = identity_hash(module, manifest_bytes)
    return ConnectorCheck(
        problems=tuple(problems),
        manifest=manifest,
        imports=checked.imports or (),
        hash=hash_,
    )


def install_checked(store: ConnectorStore, source: Path) -> InstalledConnector:
    """Check the connector in the folder *source*, and install it if there are no errors; blocks.

    Raises:
        NotFound, HomeError: as `ConnectorStore.install`.
        FileProblems: every error of the check.
    """
    errors = [each for each in check_connector(source).problems if each.severity == "error"]
    if errors:
        raise FileProblems(errors)
    return store.install(source)


def _read(path: Path, limit: int, problems: list[Problem]) -> bytes | None:
    try:
        return read_source(path, limit)
    except NotFound as error:
        problems.append(Problem(file=str(path), message=error.message.removeprefix(f"{path}: ")))
        return None


@contextmanager
def _collecting(problems: list[Problem]) -> Generator[None]:
    try:
        yield
    except FileProblems as error:
        problems += error.problems


def _mismatches(manifest: Manifest, imports: tuple[str, ...], file: str) -> list[Problem]:
    """Return contradictions between manifest and module, and requests that are not supported yet."""
    problems: list[Problem] = []

    def warn(key: str, message: str) -> None:
        problems.append(Problem(file=file, message=message, severity="warning", key=key))

    if manifest.wants_spawn:
        message = "asks to start local programs, which is not supported"
        problems.append(Problem(file=file, message=message, key="capabilities.spawn"))
    imported = set(imports)
    for name in sorted(imported - set(manifest.imports)):
        warn(_RUNTIME, f"does not list {name}, which the module imports")
    for name in sorted(set(manifest.imports) - imported):
        warn(_RUNTIME, f"lists {name}, which the module does not import")
    if "http_request" in imported and not manifest.hosts:
        warn("capabilities.network.hosts", "lists no host, so every request will be refused")
    if manifest.credential is not None:
        warn(
            "capabilities.credential",
            f"declares a credential ({manifest.credential.kind}): calls wait until an account is bound. "
            "A request to a routed host is sent without one",
        )
    return problems


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
