"""`aileron action add`: copies valid action files, folders of them, or a published suite into the home, all in one pass."""

import os
import shutil
import tempfile
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import Any

import click
import tomlkit
from tomlkit.exceptions import TOMLKitError

from aileron_core.actions.catalog import preview_problems, read_plain, scan
from aileron_core.actions.load import load_action, locate_problems
from aileron_core.actions.model import UNBOUND_HASH, Action, ConnectorRequirement
from aileron_core.actions.suites import WRITTEN, finish_adding, write_suite
from aileron_core.canonical import sha256_hex
from aileron_core.clock import SystemClock
from aileron_core.connectors.store import ConnectorStore, InstalledConnector
from aileron_core.errors import FileProblems, NotFound, Problem
from aileron_core.home.layout import Home
from aileron_core.releases.rules import unknown_previews
from aileron_core.releases.suite import action_files
from aileron_core.text import escape
from aileron_tui.cli.output import EXIT, CommandContext
from aileron_tui.cli.published import (
    PROGRESS_SECONDS,
    Published,
    is_published,
    read_published,
)

_WRITING = ".add-"
"""Begins the name of the folder in which the files are written, among the action files."""
_LONGEST = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _ValidFile:
    """A file that can be used, with the bytes that the home gets."""

    action: Action
    source: str
    data: bytes
    bound: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def name(self) -> str:
        return self.action.name

    @property
    def file(self) -> str:
        return f"{self.name}.md"

    def to_json(self) -> dict[str, Any]:
        """Return what is printed of it besides what was done with it."""
        preview = self.action.approval.preview
        return {
            "name": self.name,
            "file": self.file,
            "bound": self.bound,
            "gated": self.action.gated,
            "preview": preview.op if preview else None,
            "preview_fields": [label for label, _ in preview.render] if preview else [],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Added:
    """What was put into the home, and what could not be."""

    suites: Sequence[Published] = ()
    items: Sequence[Mapping[str, Any]] = ()
    """What is printed of each action."""
    problems: Sequence[Problem] = ()

    def with_more(self, more: "Added") -> "Added":
        return Added(
            suites=(*self.suites, *more.suites),
            items=(*self.items, *more.items),
            problems=(*self.problems, *more.problems),
        )


def add_actions(
    context: CommandContext, files: Sequence[str], routes: Sequence[str], *, unsigned: bool
) -> int:
    """Copy valid action files into the home; a file with a problem is reported, and the others are copied.

    Those of a folder are checked with each other, and with those of the home. Of a published suite, the
    connector is installed too; one that cannot be used keeps all back.
    """
    added = add(context, files, routes, unsigned=unsigned)
    report(context, added)
    return EXIT.FAILED if added.problems else EXIT.DONE


def add(
    context: CommandContext, files: Sequence[str], routes: Sequence[str], *, unsigned: bool
) -> Added:
    """Do what `add_actions` does, and print nothing of it.

    Raises:
        FileProblems: a published suite cannot be used; nothing was added.
    """
    home = Home(context.home)
    home.prepare()
    store = ConnectorStore(home.path)
    published = {
        path: read_published(context, path, routes, unsigned=unsigned)
        for path in files
        if is_published(path)
    }
    suites = tuple(published.values())
    sources = [file for path in files if path not in published for file in _files(Path(path))]
    problems = [each for suite in suites for each in suite.problems]
    found = [
        _ValidFile(action=load_action(data, place), source=place, data=data)
        for suite in suites
        for name, data in suite.actions.items()
        for place in (suite.suite.place(f"actions/{name}.md"),)
    ]
    installed = cache(store.list)
    for source in sources if context.json else _with_progress(sources):
        try:
            found.append(_read(source, installed))
        except (FileProblems, OSError) as error:
            problems += _problems(source, error)
    folders = {str(file) for path in files if Path(path).is_dir() for file in _files(Path(path))}
    broken = _preview_problems(home, [each for each in found if each.source in folders], installed)
    problems += broken
    refused = {each.file for each in broken}
    found = [each for each in found if each.source not in refused]
    valid: dict[str, _ValidFile] = {}
    for each in found:
        first = valid.setdefault(each.name, each)
        if first.data != each.data:
            message = f"contains the action {each.name}, which is also in {first.source}"
            problems.append(Problem(file=each.source, message=f"{message}; add only one of them"))
    for each in found if suites else ():
        if there := _anothers(home.actions / each.file, each):
            valid.pop(each.name, None)
            problems.append(there)
    came = [each.install(store) for each in suites]
    connectors = {each.folder: each.identity.hash.removeprefix("sha256:") for each in came}
    named = ", ".join(
        published[path].source if path in published else str(Path(path).resolve()) for path in files
    )
    gone = [each for suite in suites for each in suite.gone]
    items, failed = _place(home, list(valid.values()), named, connectors, problems, gone)
    return Added(suites=suites, items=items, problems=[*problems, *failed])


def _preview_problems(
    home: Home,
    given: Sequence[_ValidFile],
    installed: Callable[[], tuple[InstalledConnector, ...]],
) -> list[Problem]:
    """Return why a preview of *given*, the files of folders, can never be asked, with those of the home beside them."""
    asking = [each for each in given if each.action.approval.preview]
    if not asking:
        return []
    manifests = {each.identity.hash: each.manifest for each in installed()}
    found: list[Problem] = []
    for each in asking:
        hashes = {need.fqn: each.bound.get(need.fqn, need.hash) for need in each.action.requires}
        manifest = manifests.get(hashes.get(each.action.steps[0].connector, ""))
        if manifest is not None and manifest.ops:
            found += unknown_previews([each.action], manifest.ops)
    replaced = {each.file for each in given}
    there = {each.file: each.data for each in scan(home.actions).files if each.file not in replaced}
    between = preview_problems(there | {each.source: each.data for each in given})
    found += [replace(each, severity="error") for each in between if each.file not in there]
    return found


def _anothers(target: Path, given: _ValidFile) -> Problem | None:
    """Return why *given* does not take the place of *target*: that came from another repository."""
    try:
        there = load_action(read_plain(target), str(target)).source
    except (FileProblems, OSError):  # there is none, or none that works
        return None
    source = given.action.source
    if there.split("/")[:4] == source.split("/")[:4]:
        return None
    message = (
        f"would replace {given.name} of {there.rpartition('@')[0]}; run `aileron action remove "
        f"{given.name}` first if you want that"
    )
    return Problem(file=given.source, message=message)


def _with_progress(sources: Sequence[Path]) -> Iterator[Path]:
    """Yield *sources*, printing to stderr each second how many were read."""
    clock = SystemClock()
    printed_at = clock.monotonic()
    for number, source in enumerate(sources):
        if clock.monotonic() - printed_at >= PROGRESS_SECONDS:
            printed_at = clock.monotonic()
            click.echo(f"{number} of {len(sources)} files read …", err=True)
        yield source


def report(
    context: CommandContext, added: Added, looked: Sequence[Mapping[str, Any]] | None = None
) -> None:
    """Print what was *added*; *looked*: what an update looked at, for `--json`."""
    context.show(
        {
            **({"looked": list(looked)} if looked is not None else {}),
            "items": list(added.items),
            "connectors": [each.connector for each in added.suites],
            "problems": [problem.to_json() for problem in added.problems],
        }
    )
    for each in added.suites:
        each.say(context)
    printed: set[tuple[str, str]] = set()
    for each in added.items:
        context.say(f"{each['did']} {escape(each['name'])}: {_consent(each)}")
        for fqn, digest in each["bound"].items():
            if (fqn, digest) not in printed:  # one note for all files of the same connector
                context.say(f"    uses the installed {escape(fqn)}, {digest}")
            printed.add((fqn, digest))
    for problem in added.problems:
        context.say(f"✗ {escape(str(problem))}", fg="red")
    if any(each["did"] != "unchanged" for each in added.items):
        context.say(
            "They wait in the console until you accept them; what you accepted before counts until then."
        )


def _consent(item: Mapping[str, Any]) -> str:
    """Return whether a person is asked about calls of *item*, and what they are shown then."""
    if not item["gated"]:
        return "runs at once"
    if item["preview"] is None:
        return "needs approval, without a preview"
    fields = ", ".join(item["preview_fields"])
    return f"needs approval, shows {escape(fields)} (by {escape(item['preview'])})"


def _files(path: Path) -> list[Path]:
    """Return the action files of a path: itself, a folder's `*.md`, or a suite's `actions/`."""
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise NotFound(f"There is no file or folder {path}.")
    root = path / "actions" if (path / "actions").is_dir() else path
    files = [file for _, file in action_files(root)]
    if not files:
        raise NotFound(f"{path} contains no action files (*.md or NAME/action.md).")
    return files


def add_files(home: Home, sources: Iterable[Path], named: str) -> list[str]:
    """Copy valid action files into *home*, together, as a suite from *named*; return their names.

    Raises:
        FileProblems: one cannot be used as it is, or cannot be written.
        OSError: one cannot be read.
    """
    installed = ConnectorStore(home.path).list
    added, problems = _place(home, [_read(each, installed) for each in sorted(sources)], named)
    if problems:
        raise FileProblems(problems)
    return [each["name"] for each in added]


def add_again(home: Home, files: Mapping[str, bytes], named: str) -> Added:
    """Put action files that were accepted once into *home*, by name, as a suite from *named*."""
    valid = [
        _ValidFile(action=load_action(data, file), source=file, data=data)
        for file, data in files.items()
    ]
    items, problems = _place(home, valid, named)
    return Added(items=items, problems=problems)


def _read(source: Path, installed: Callable[[], tuple[InstalledConnector, ...]]) -> _ValidFile:
    """Return the file with its placeholders bound to the connectors that *installed* returns; it is called only if there are any."""
    data = read_plain(source)
    action = load_action(data, str(source))
    bound: dict[str, str] = {}
    if any(requirement.hash == UNBOUND_HASH for requirement in action.requires):
        data, bound = bind_placeholders(data, action, installed())
    return _ValidFile(action=action, source=str(source), data=data, bound=bound)


def _place(
    home: Home,
    valid: Sequence[_ValidFile],
    named: str,
    connectors: Mapping[str, str] = MappingProxyType({}),
    refused: Sequence[Problem] = (),
    gone: Sequence[str] = (),
) -> tuple[list[dict[str, Any]], list[Problem]]:
    """Put *valid* into the home, and record that they, and *connectors*, came together, under the name *named*.

    All are written first and then moved, by a console that looks meanwhile too, so that it sees all of them.
    """
    added: list[dict[str, Any]] = []
    problems: list[Problem] = []
    finish_adding(home.actions)
    _remove_left(home)
    with tempfile.TemporaryDirectory(dir=home.actions, prefix=_WRITING) as staging:
        staged = {each.file: Path(staging) / each.file for each in valid}
        for each in valid:
            try:
                did = _write(home.actions / each.file, staged[each.file], each.data)
            except OSError as error:
                problems += _problems(each.source, error)
                continue
            added.append({**each.to_json(), "did": did})
        digests = {each.file: sha256_hex(each.data) for each in valid}
        files = {each["file"]: digests[each["file"]] for each in added}
        if connectors or len(files) > 1:
            # First, so that a console knows it when it sees the files.
            together = {**connectors, **files}
            why = [str(each) for each in refused if each.severity == "error"]
            now = SystemClock().now()
            write_suite(home.suites, named, together, now=now, refused=why, gone=gone)
        written = Path(staging).with_name(Path(staging).name.replace(_WRITING, WRITTEN))
        Path(staging).rename(written)
    finish_adding(home.actions)
    return added, problems


def _remove_left(home: Home) -> None:
    """Remove what a killed command left behind an hour ago or earlier; none takes as long."""
    until = SystemClock().now() - _LONGEST
    left = (
        home.actions.glob(f"{_WRITING}*"),
        home.suites.glob(".*"),
        (home.path / "store" / "connectors" / "tmp").glob("*"),
    )
    for each in chain.from_iterable(left):
        with suppress(OSError):
            if each.lstat().st_mtime < until:
                shutil.rmtree(each) if each.is_dir() else each.unlink()


def _write(target: Path, staged: Path, data: bytes) -> str:
    """Write *data* to *staged* unless *target* has it; return `added`, `replaced` or `unchanged`."""
    did = "added"
    if target.exists():
        did = "unchanged" if target.read_bytes() == data else "replaced"
    if did != "unchanged":
        descriptor = os.open(staged, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as opened:
            opened.write(data)
    if did == "replaced":  # newer than what it replaces, whatever the clock said then
        newest = max(target.stat().st_mtime_ns, staged.stat().st_mtime_ns)
        os.utime(staged, ns=(newest, newest))
    return did


def _problems(source: Path | str, error: FileProblems | OSError) -> Sequence[Problem]:
    if isinstance(error, FileProblems):
        return error.problems
    return [Problem(file=str(source), message=f"cannot be copied: {error.strerror}")]


def bind_placeholders(
    data: bytes, action: Action, installed: tuple[InstalledConnector, ...]
) -> tuple[bytes, dict[str, str]]:
    """Return the file with each placeholder bound, and what was bound (connector -> hash).

    Comments and layout of the front matter stay as they are.

    Raises:
        FileProblems: none or several installed connectors fit a placeholder.
    """
    bound: dict[str, str] = {}
    problems: list[Problem] = []
    for index, requirement in enumerate(action.requires):
        if requirement.hash != UNBOUND_HASH:
            continue
        named = [each.identity for each in installed if each.identity.fqn == requirement.fqn]
        fitting = [each.hash for each in named if each.version == requirement.version]
        if len(fitting) == 1:
            bound[requirement.fqn] = fitting[0]
            continue
        key = f"requires.connectors[{index}].hash"
        message = _refusal(requirement, fitting, sorted({each.version for each in named}))
        problems.append(Problem(file=action.file, key=key, message=message))
    if problems:
        raise FileProblems(locate_problems(problems, data))
    return (_rewritten(data, bound, action) if bound else data), bound


def _refusal(
    requirement: ConnectorRequirement, fitting: Sequence[str], versions: Sequence[str]
) -> str:
    ref = f"{requirement.fqn}@{requirement.version}"
    if fitting:
        return (
            f"{UNBOUND_HASH} needs exactly one installed {ref}, but several are installed: "
            f"{', '.join(fitting)}. Write the hash of one into the file, or remove the others with "
            "`aileron connector remove HASH`"
        )
    others = f", only version {', '.join(versions)}" if versions else ""
    return (
        f"{UNBOUND_HASH} needs an installed {ref}, and there is none{others}. Run `aileron connector "
        "install FOLDER`, then add the file again"
    )


def _rewritten(data: bytes, bound: dict[str, str], action: Action) -> bytes:
    lines = data.decode("utf-8-sig").split("\n")
    fences = [number for number, line in enumerate(lines) if line.strip() == "+++"][:2]
    head = "\n".join(lines[fences[0] + 1 : fences[1]]) + "\n"
    tail = "\n".join(lines[fences[1] :])
    front = _replaced(head, bound, action) or _edited(head, bound, action)
    return ("\n".join(lines[: fences[0] + 1]) + "\n" + front + tail).encode()


def _replaced(head: str, bound: dict[str, str], action: Action) -> str | None:
    """Return *head* with the placeholder's text replaced; None if that would change anything else.

    It takes a third of the time of an edit, and published suites have hundreds of files.
    """
    intended = [
        bound[each.fqn] if each.hash == UNBOUND_HASH else each.hash for each in action.requires
    ]
    hashes = set(bound.values())
    unbound = sum(each.hash == UNBOUND_HASH for each in action.requires)
    if len(hashes) > 1 or head.count(UNBOUND_HASH) != unbound:
        return None
    front = head.replace(UNBOUND_HASH, hashes.pop())
    try:
        written = [each["hash"] for each in tomllib.loads(front)["requires"]["connectors"]]
    except (ValueError, KeyError, TypeError):
        return None
    return front if written == intended else None


def _edited(head: str, bound: dict[str, str], action: Action) -> str:
    """Return *head* with each placeholder replaced, whatever else the front matter holds."""
    try:
        document = tomlkit.parse(head)
    except TOMLKitError as error:  # tomllib read it, so this is a difference between two parsers
        message = f"the front matter cannot be rewritten: {error}; write the hash into the file"
        raise FileProblems([Problem(file=action.file, message=message)]) from error
    for requirement in document["requires"]["connectors"]:
        if requirement["hash"] == UNBOUND_HASH:
            requirement["hash"] = bound[str(requirement["name"])]
    return tomlkit.dumps(document)
