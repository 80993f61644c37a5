"""`aileron connector list|new|install|remove|check|run`: the home's connectors, and trying one of your own."""

import contextlib
import logging
import re
import shutil
from collections.abc import Generator, Mapping, Sequence
from pathlib import Path
from typing import Final

import click

from aileron_core.actions.catalog import scan
from aileron_core.actions.suites import write_suite
from aileron_core.clock import SystemClock
from aileron_core.connectors.check import check_connector, install_checked
from aileron_core.connectors.store import ConnectorStore
from aileron_core.errors import Conflict, InvalidArguments, NotFound
from aileron_core.home.layout import Home
from aileron_core.text import escape
from aileron_tui.cli.accepted import load_acceptances, remove_file
from aileron_tui.cli.arguments import json_argument, route_argument
from aileron_tui.cli.output import EXIT, CommandContext, did_you_mean, safe_json, say_connector
from aileron_tui.cli.published import is_published, read_published
from aileron_tui.cli.scaffold import connector_templates

LANGUAGES: Final = {
    "python": ("build.py", "connector.py", "nothing but Python is needed"),
    "zig": ("build.sh", "main.zig", "with Zig 0.16"),
    "go": ("build.sh", "main.go", "with Go 1.21 or newer"),
    "rust": ("build.sh", "src/main.rs", "with Rust and its target wasm32-wasip1"),
}
"""What `--lang` may be: the file that builds, the one to read first, and what building takes."""
_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_MAX_NAME: Final = 40


def list_connectors(context: CommandContext) -> int:
    """Print the installed connectors, and the broken ones; return 1 if any is broken."""
    home = Home(context.home)
    installed, problems = ConnectorStore(home.path).scan()
    usable = {each.digest for each in load_acceptances(home) if each.kind == "connector"}
    items = [
        {
            "name": each.identity.fqn,
            "version": each.identity.version,
            "hash": each.identity.hash,
            "hosts": list(each.manifest.hosts),
            "state": "ready" if each.identity.hash in usable else "held_back",
        }
        for each in installed
    ]
    context.show({"items": items, "problems": [problem.to_json() for problem in problems]})
    for each in installed:
        state = "" if each.identity.hash in usable else "  not accepted"
        context.say(f"{escape(each.identity.fqn)}@{each.identity.version}{state}")
        context.say(f"    {each.identity.hash}")
        context.say(f"    reaches {escape(', '.join(each.manifest.hosts) or 'no host')}")
    for problem in problems:
        context.say(f"✗ {escape(str(problem))}", fg="red")
    if not installed and not problems:
        context.say(
            "No connectors are installed. Install one with `aileron connector install FOLDER`."
        )
    return EXIT.FAILED if problems else EXIT.DONE


def install_connector(
    context: CommandContext, path: str, routes: Sequence[str], *, unsigned: bool
) -> int:
    """Install the connector of a folder, an archive or a repository; it can be used once a person accepted it."""
    home = Home(context.home)
    home.prepare()
    store = ConnectorStore(home.path)
    if is_published(path):
        published = read_published(context, path, routes, unsigned=unsigned)
        installed, printed = published.install(store), published.connector
        added = {installed.folder: installed.identity.hash.removeprefix("sha256:")}
        write_suite(home.suites, published.source, added, now=SystemClock().now())
        published.say(context)
    else:
        installed = install_checked(store, Path(path))
        printed = {
            "name": installed.identity.fqn,
            "version": installed.identity.version,
            "hash": installed.identity.hash,
            "hosts": list(installed.manifest.hosts),
        }
        say_connector(context, "installed", printed)
    context.show(printed)
    context.say(
        "It waits in the console until you accept it; a version that you accepted before counts."
    )
    if installed.credential_requirement is not None:
        name = escape(installed.identity.fqn.rpartition("/")[2])
        context.say(f"It asks for an account: `aileron binding setup {name}` binds one.")
    return EXIT.DONE


def remove_connector(context: CommandContext, name: str) -> int:
    """Remove the one connector that *name* fits; say which actions had named it."""
    home = Home(context.home)
    store = ConnectorStore(home.path)
    fitting = [each.identity for each in store.list() if name in each.identity.names]
    if len(fitting) > 1:
        listed = "\n".join(f"    {each.fqn}@{each.version}  {each.hash}" for each in fitting)
        raise Conflict(
            f"{len(fitting)} connectors are named {name}. Give the hash of one:\n{listed}"
        )
    # A broken connector is not listed, but can be removed by its hash.
    hash_ = fitting[0].hash if fitting else name
    if not hash_.startswith("sha256:"):
        known = {each for found in store.list() for each in found.identity.names}
        meant = did_you_mean(name, known)
        raise NotFound(f"No connector {name} is installed in {home.path}.{meant}")
    remove_file(home, "connector", hash_)
    orphans = [
        each.action.name
        for each in scan(home.actions).files
        if each.action and any(need.hash == hash_ for need in each.action.requires)
    ]
    context.show({"removed": hash_, "actions_without_it": orphans})
    context.say(f"removed {hash_}")
    if orphans:
        context.say(f"These actions cannot run without it: {escape(', '.join(orphans))}.")
    return EXIT.DONE


def check(context: CommandContext, path: str) -> int:
    """Print everything that is wrong with the connector in *path*, and what it asks for."""
    result = check_connector(Path(path))
    manifest = result.manifest
    kind = manifest.credential_kind if manifest else None
    context.show(
        {
            "ok": result.ok,
            "problems": [problem.to_json() for problem in result.problems],
            "name": manifest.name if manifest else None,
            "version": manifest.version if manifest else None,
            "hash": result.hash or None,
            "hosts": list(manifest.hosts) if manifest else [],
            "imports": list(result.imports),
            "credential": kind,
        }
    )
    for problem in result.problems:
        error = problem.severity == "error"
        context.say(
            f"{'✗' if error else '!'} {escape(str(problem))}", fg="red" if error else "yellow"
        )
    if manifest is not None:
        mark = "✓" if result.ok else "✗"
        context.say(f"{mark} {escape(manifest.name)}@{manifest.version}")
        if result.hash:
            context.say(f"    {result.hash}")
        context.say(f"    reaches {escape(', '.join(manifest.hosts) or 'no host')}")
        context.say(f"    asks for {kind or 'no'} credential")
    return EXIT.DONE if result.ok else EXIT.FAILED


def run_op(
    context: CommandContext,
    path: str,
    op: str,
    text: str,
    routes: Sequence[str],
    *,
    read_only: bool,
) -> int:
    """Run one op of the connector in *path* against routed hosts, and print how it ended."""
    import asyncio

    from aileron_core.connectors.check import try_op

    args = json_argument(text)
    places = [route_argument(route) for route in routes]
    lines = _LogLines()
    with lines.listening():
        result = asyncio.run(try_op(Path(path), op, args, routes=places, read_only=read_only))
    failure = result.failure
    if context.json:
        context.show(
            {
                "status": "completed" if failure is None else "failed",
                "output": result.output,
                "failure": None if failure is None else failure.to_json(),
                "requests_sent": result.requests_sent,
                "writes_sent": result.writes_sent,
                "last_status": result.last_status,
                "log": lines.messages,
            }
        )
        return EXIT.DONE if failure is None else EXIT.FAILED
    for line in lines.messages:
        click.echo(f"log: {escape(line)}", err=True)
    status = "" if result.last_status is None else f", last HTTP status: {result.last_status}"
    click.echo(f"Requests sent: {result.requests_sent} (writes: {result.writes_sent}){status}", err=True)  # fmt: skip
    if failure is not None:
        click.echo(f"aileron: {failure.class_}: {escape(failure.message)}", err=True)
        for key, value in failure.details.items():
            click.echo(f"    {escape(key)}: {safe_json(value)}", err=True)
        return EXIT.FAILED
    context.say(safe_json(result.output, indent=2))
    return EXIT.DONE


class _LogLines(logging.Handler):
    """Collects what a connector logs during a trial run."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(record.getMessage())

    @contextlib.contextmanager
    def listening(self) -> Generator[None]:
        logger = logging.getLogger("aileron.connector")
        level = logger.level
        logger.setLevel(logging.DEBUG)
        logger.addHandler(self)
        try:
            yield
        finally:
            logger.removeHandler(self)
            logger.setLevel(level)


def new_connector(context: CommandContext, name: str, language: str) -> int:
    """Write a new connector into the folder *name*, which must not exist.

    Raises:
        InvalidArguments: the name cannot be one.
        Conflict: there is such a folder or file.
    """
    if len(name) > _MAX_NAME or not _NAME.fullmatch(name):
        raise InvalidArguments(
            f"A connector's name has lowercase letters, digits and single hyphens, begins with a "
            f"letter and has at most {_MAX_NAME} characters; {name!r} does not."
        )
    folder = Path(name)
    try:
        folder.mkdir()
    except FileExistsError:
        raise Conflict(
            f"{name} is already there, and nothing in it was changed. Choose another name, or remove it."
        ) from None
    build, source, needs = LANGUAGES[language]
    runner = "python3" if build.endswith(".py") else "sh"
    words = {
        "@NAME@": name,
        "@SOURCES@": f"`{source}`",
        "@NEEDS@": needs,
        "@BUILD@": f"{runner} {build}",
    }
    try:
        for template in (connector_templates() / "shared", connector_templates() / language):
            _copy(template, folder, words)
    except BaseException:
        shutil.rmtree(folder)
        raise
    following = [
        f"{runner} {name}/{build}",
        f"python3 {name}/test.py",
        f"aileron connector install {name}",
    ]
    context.show({"folder": str(folder.resolve()), "language": language, "next": following})
    context.say(
        f"Created {name}, a connector in {language.capitalize()}. {name}/README.md says how to begin."
    )
    context.say("Build, test and install it:")
    for line in following:
        context.say(f"    {line}")
    return EXIT.DONE


def _copy(template: Path, folder: Path, words: Mapping[str, str]) -> None:
    """Copy the files of *template* into *folder*, with *words* in place of their marks."""
    for file in template.rglob("*"):
        # An installer compiles the templates that are Python, as it does with all modules.
        if "__pycache__" in file.parts or not file.is_file():
            continue
        data = file.read_bytes()
        for mark, word in words.items():
            data = data.replace(mark.encode(), word.encode())
        target = folder / file.relative_to(template)
        target.parent.mkdir(exist_ok=True)
        target.write_bytes(data)
