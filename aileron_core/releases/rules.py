"""The rules that a suite must keep to be published, for each file and between files.

Only the suite itself counts: no file of a home, no other suite.
"""

import asyncio
import re
import tempfile
from collections.abc import Container, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from aileron_core.actions.catalog import Catalog, CatalogScan, ScannedFile
from aileron_core.actions.load import read_action
from aileron_core.actions.model import Action
from aileron_core.connectors.check import check_parts, try_op
from aileron_core.connectors.manifest import Manifest
from aileron_core.connectors.store import MANIFEST_FILE, MODULE_FILE
from aileron_core.errors import FileProblems, Problem
from aileron_core.releases.suite import LIST_FILE, Release, listed_actions

_MADE_UP = "aileron_no_such_op"
_WORD = r"(?<![0-9A-Za-z_-]){}(?![0-9A-Za-z_-])"
_MOST_TRIED = 100


def suite_problems(suite: Release, *, tries_ops: bool) -> tuple[Problem, ...]:
    """Return what is wrong with *suite*, whose placeholders are bound; errors and warnings.

    Blocks while its module is compiled, in a process of its own.

    Args:
        tries_ops: run the module, in the sandbox and without a host, to learn whether the previews' ops
            exist where the manifest does not say: for its publisher, who built it.
    """
    places = suite.place(MODULE_FILE), suite.place(MANIFEST_FILE)
    checked = check_parts(suite.module, suite.manifest, *places)
    problems = [*checked.problems, *file_problems(suite, checked.manifest)]
    if tries_ops and checked.ok and checked.manifest and not checked.manifest.ops:
        actions = _actions(_scans(suite)).values()
        ops = {op for _, op in _preview_ops(actions)}
        if len(ops) > _MOST_TRIED:
            message = f"is missing; list the ops there, as more than {_MOST_TRIED} previews' ops are not tried"
            return (*problems, Problem(file=places[1], key="provides.ops", message=message))
        with _unpacked_connector(suite) as folder:
            known = _known_ops(folder, ops)
        problems += unknown_previews(actions, known)
    return tuple(problems)


@contextmanager
def _unpacked_connector(suite: Release) -> Generator[Path]:
    """Write the connector of *suite* into a temporary folder, to try it."""
    with tempfile.TemporaryDirectory(prefix="aileron-suite-") as folder:
        for name in (MODULE_FILE, MANIFEST_FILE):
            (Path(folder) / name).write_bytes(suite.files[name])
        yield Path(folder)


def file_problems(suite: Release, manifest: Manifest | None) -> Iterator[Problem]:
    """Yield what is wrong with the actions of *suite* and its list, without running anything."""
    if LIST_FILE in suite.files:  # a connector alone has none
        yield from _list_problems(suite)
    scans = _scans(suite)
    accepted = {each.file: each.sha256 for each in scans.values()}
    for entry in Catalog(CatalogScan(files=tuple(scans.values())), accepted).entries:
        yield from entry.errors
    if manifest is None:
        return
    actions = _actions(scans)
    hash_ = suite.connector_hash
    for name, action in actions.items():
        yield from _agreement(name, action, manifest, hash_)
    if manifest.ops:
        yield from unknown_previews(actions.values(), manifest.ops)


def _scans(suite: Release) -> dict[str, ScannedFile]:
    return {name: _scan(suite, name, data) for name, data in suite.actions.items()}


def _actions(scans: Mapping[str, ScannedFile]) -> dict[str, Action]:
    return {name: each.action for name, each in scans.items() if each.action}


def _scan(suite: Release, name: str, data: bytes) -> ScannedFile:
    place = suite.place(name)
    reading = read_action(data, place)
    sha256 = reading.action.sha256 if reading.action else ""
    return ScannedFile(
        file=place,
        sha256=sha256,
        action=reading.action,
        problems=reading.problems if reading.action is None else (),
        warnings=reading.key_problems,
        data=data,
    )


def _list_problems(suite: Release) -> Iterator[Problem]:
    try:
        listed = set(listed_actions(suite))
    except FileProblems as error:
        yield from error.problems
        return
    there = {Path(name).stem for name in suite.actions}
    for name in sorted(listed ^ there):
        message = f"lists {name}, which is not there" if name in listed else f"does not list {name}"
        yield Problem(file=suite.place(LIST_FILE), key="actions", message=message)
    if not there:
        yield Problem(file=suite.place("actions"), message="has no action")


def _agreement(name: str, action: Action, manifest: Manifest, hash_: str) -> Iterator[Problem]:
    """Yield which names, versions, hashes and ops of *action* differ from the suite's."""

    def problem(key: str, message: str) -> Problem:
        return Problem(file=action.file, key=key, message=message)

    stem = Path(name).stem
    if action.name != stem:
        yield problem("name", f"is {action.name}, in a file that is named {stem}")
    if action.version != manifest.version:
        yield problem("version", f"is {action.version}, and the suite's is {manifest.version}")
    repository = "/".join(manifest.name.split("/")[:4])
    source, _, version = action.source.rpartition("@")
    if version != manifest.version or not source.startswith(f"{repository}/"):
        yield problem("source", f"is not {repository}/… @{manifest.version}")
    for index, need in enumerate(action.requires):
        key = f"requires.connectors[{index}]"
        if need.fqn != manifest.name:
            yield problem(
                f"{key}.name", f"is {need.fqn}, and the suite's connector is {manifest.name}"
            )
        elif (need.version, need.hash) != (manifest.version, hash_):
            yield problem(
                f"{key}.hash",
                f"is {need.hash} of {need.version}, and the suite's connector is "
                f"{hash_} of {manifest.version}",
            )
    for step in action.steps_without_capability:
        message = f"runs {step.op}, which is not among the capabilities of its connector"
        yield problem("execute", message)
    if manifest.ops:
        for step in action.steps:
            if step.op not in manifest.ops:
                yield problem("execute", f"runs {step.op}, which is no op of the connector")


def _preview_ops(actions: Iterable[Action]) -> Iterator[tuple[Action, str]]:
    for action in actions:
        if preview := action.approval.preview:
            yield action, preview.op


def unknown_previews(actions: Iterable[Action], known: Container[str]) -> Iterator[Problem]:
    """Yield which previews of *actions* ask an op that is not among *known*."""
    for action, op in _preview_ops(actions):
        if op not in known:
            message = f"asks {op}, which is no op of the connector"
            yield Problem(file=action.file, key="approval.preview.op", message=message)


def _known_ops(folder: Path, ops: set[str]) -> frozenset[str]:
    """Return those of *ops* that the connector does not answer like an op that does not exist.

    It is compared with a made-up name, and with a name that is almost the same, since a connector may
    suggest a similar op or quote a part of the name. No host can be reached, so the answer comes before
    any request.
    """

    def answer(op: str) -> str:
        result = asyncio.run(try_op(folder, op, {}, read_only=True))
        said = f"{result.output} {result.failure.to_json() if result.failure else ''}"
        name = _WORD.format(re.escape(op))
        return f"{result.requests_sent} {re.sub(name, '', said, flags=re.IGNORECASE)}"

    unknown = answer(_MADE_UP) if ops else ""
    return frozenset(
        op for op in sorted(ops) if (said := answer(op)) != unknown and said != answer(_almost(op))
    )


def _almost(op: str) -> str:
    """Return an unlikely name of the same length and beginning as *op*."""
    return op[:-2] + ("qz" if op.endswith("zq") else "zq")
