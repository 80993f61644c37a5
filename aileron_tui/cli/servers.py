"""`aileron server list|show|check|edit|update|logs|remove`: a person's own MCP servers, in the home's store."""

import os
import shlex
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import click

from aileron_core.actions.catalog import read_plain
from aileron_core.actions.problems import KeyProblem
from aileron_core.connectors.manifest import parse_manifest
from aileron_core.connectors.servers.adding import project_problems, relative_paths
from aileron_core.connectors.servers.box import BoxedServers
from aileron_core.connectors.servers.definitions import (
    ToolDefinition,
    definitions_bytes,
    parse_definitions,
)
from aileron_core.connectors.servers.packages import installed
from aileron_core.connectors.servers.process import LOGS, list_tools
from aileron_core.connectors.servers.propose import manifest_bytes, propose_previews, relisted
from aileron_core.connectors.servers.started import StartServer
from aileron_core.connectors.servers.table import (
    PREFIX,
    ServerTable,
    Word,
    preview_problems,
    server_name,
    to_table,
    tool_problems,
)
from aileron_core.connectors.servers.trees import collect, verify_tree
from aileron_core.connectors.store import (
    DEFINITIONS_FILE,
    MAX_MANIFEST,
    MAX_MODULE,
    ConnectorStore,
    InstalledConnector,
)
from aileron_core.console_port.codec import to_json
from aileron_core.credentials.kinds import ApiKey, CheckedCredential
from aileron_core.errors import FileProblems, NotFound, Problem
from aileron_core.home.layout import Home
from aileron_core.library.comparison import compare_connectors
from aileron_core.library.plugin_tools import server_actions
from aileron_core.server.bodies import action_body
from aileron_core.text import escape
from aileron_core.vault.secret import Secret
from aileron_mcp.translate import action_tool, listed_bytes
from aileron_tui.cli.accepted import load_acceptances, remove_file
from aileron_tui.cli.output import (
    EXIT,
    CliError,
    CommandContext,
    did_you_mean,
    kilobytes,
    report_error,
)
from aileron_tui.cli.vault import ask_unseen, has_terminal
from aileron_tui.draw.acceptance import change_line
from aileron_tui.draw.text import plain_text

if TYPE_CHECKING:
    from aileron_core.connectors.http.client import OutgoingClient

MakeOutgoing: TypeAlias = "Callable[[], OutgoingClient] | None"


@dataclass(frozen=True, slots=True, kw_only=True)
class HomeServer:
    """What was installed last of a server, whether or not a person accepted it."""

    connector: InstalledConnector
    is_accepted: bool
    is_update: bool
    """It waits beside what was accepted, which counts until this is."""

    @property
    def name(self) -> str:
        return self.connector.identity.fqn.removeprefix(PREFIX)

    @property
    def table(self) -> ServerTable:
        """Its table `[server]`."""
        table = self.connector.manifest.server
        assert table is not None
        return table


def _all_of(home: Home) -> dict[str, list[InstalledConnector]]:
    """Return every version in the store by the server's name, the one that was installed last at the end."""
    found: dict[str, list[InstalledConnector]] = {}
    for each in ConnectorStore(home.path).list():
        if each.manifest.server is not None:
            found.setdefault(each.identity.fqn.removeprefix(PREFIX), []).append(each)
    for versions in found.values():
        versions.sort(key=lambda each: (home.path / each.folder).stat().st_mtime)
    return found


def home_servers(home: Home) -> dict[str, HomeServer]:
    """Return the servers of *home*, by name; errors as of `load_acceptances`."""
    usable = {each.digest for each in load_acceptances(home) if each.kind == "connector"}
    found: dict[str, HomeServer] = {}
    for name, versions in sorted(_all_of(home).items()):
        *before, last = versions
        is_accepted = last.identity.hash in usable
        is_update = not is_accepted and any(each.identity.hash in usable for each in before)
        found[name] = HomeServer(connector=last, is_accepted=is_accepted, is_update=is_update)
    return found


def find_server(home: Home, name: str) -> HomeServer:
    """Return the server *name*.

    Raises:
        NotFound: there is none.
    """
    known = home_servers(home)
    if name not in known:
        raise NotFound(f"There is no server {name}.{did_you_mean(name, known)}")
    return known[name]


def put_server(
    home: Home,
    name: str,
    tools: Sequence[ToolDefinition],
    manifest: bytes,
    wrong: Iterable[KeyProblem] = (),
) -> HomeServer:
    """Install what is to become of the server *name*, in place of what nobody accepted of it.

    Args:
        wrong: what else is wrong with what a person gave for it.

    Raises:
        FileProblems: the manifest is invalid, another server's, or starts a project's program; nothing was installed.
    """

    def more(document: Mapping[str, Any]) -> Iterator[KeyProblem]:
        yield from wrong
        if document["connector"]["name"] != PREFIX + name:
            message = f"must stay {PREFIX}{name}: add a server of another name"
            yield KeyProblem(path=("connector", "name"), message=message)
        yield from _known_problems(document, tools)

    parse_manifest(manifest, name, more)
    store = ConnectorStore(home.path)
    store.install_server(definitions_bytes(tools), manifest, origin=name)
    usable = {each.digest for each in load_acceptances(home) if each.kind == "connector"}
    for each in store.superseded(store.list(), usable):
        remove_file(home, "connector", each)
    collect_packages(home)
    return home_servers(home)[name]


def _known_problems(
    document: Mapping[str, Any], tools: Sequence[ToolDefinition] | None
) -> Iterator[KeyProblem]:
    """Yield what is wrong with the manifest *document* in itself, in a project, and for these *tools* where they are known."""
    server = document["server"]

    def table(*keys: str) -> ServerTable:
        return to_table({key: server[key] for key in keys if key in server}, None)

    def of_tools() -> Iterator[KeyProblem]:
        found, name = table("tools", "actions"), server_name(document["connector"]["name"])
        problems = preview_problems(found) if tools is None else tool_problems(name, found, tools)
        yield from (KeyProblem(path=path, message=message) for path, message in problems)

    def relative() -> Iterator[KeyProblem]:
        words = [each if isinstance(each, str) else "" for each in server.get("program", ())]
        env = {name: each for name, each in server.get("env", {}).items() if isinstance(each, str)}
        return relative_paths(enumerate(words), env, "program")

    for check in (of_tools, relative, lambda: project_problems(table("program", "package", "env"))):
        with suppress(AttributeError, KeyError, TypeError, ValueError):  # of another type: is said
            yield from [*check()]


def collect_packages(home: Home) -> None:
    """Remove the packages that no installed server names; errors as of `collect`."""
    stored = (each.manifest.server for each in ConnectorStore(home.path).list())
    collect(home.path, {each.tree for each in stored if each is not None})


_MOST_TOLD = 20
"""Refused hosts that a person is told of."""


def boxes(context: CommandContext) -> StartServer:
    """Return what starts servers in boxes, outside a console."""
    told = set[tuple[str, str]]()

    def refused(name: str, host: str, problem: str) -> None:
        if (name, host) not in told and len(told) < _MOST_TOLD:
            told.add((name, host))
            why = problem or "it is not among its hosts, which --host lists"
            context.say(f"{name} could not reach {escape(host)}: {escape(why)}.", fg="yellow")

    return BoxedServers(
        context.home,
        Path.home(),
        os.environ,
        tree=partial(verify_tree, context.home),
        refused=refused,
    )


def list_now(
    context: CommandContext,
    name: str,
    table: ServerTable,
    start: StartServer,
    make_outgoing: MakeOutgoing,
    secret: Secret | None = None,
) -> tuple[ToolDefinition, ...]:
    """Return what a server lists; a person is asked for the key of a remote one, which is not kept.

    Args:
        secret: that key, where it is known.

    Raises:
        CliError: there is nobody to ask.
        Unavailable: as of `list_tools` and `list_remote`.
    """
    if not table.url:
        context.say(f"Starting {name} once, without a secret, to list its tools.")
        return list_tools(start, name, table)
    from aileron_core.connectors.http.client import OutgoingClient
    from aileron_core.connectors.servers.remote import list_remote

    key = None
    if (need := table.credential) is not None:
        if secret is None:
            if context.json or not has_terminal():
                raise CliError(EXIT.USAGE, "There is no terminal to ask for the server's key at.")
            secret = ask_unseen("Its key, to list its tools once (not shown, not kept): ", "key")
        sent = ApiKey(
            secret=secret, hosts=frozenset(table.hosts), header=need.header, format=need.format
        )
        key = CheckedCredential(credential=sent, check=lambda: None)
    outgoing = (make_outgoing or OutgoingClient)()
    try:
        return list_remote(outgoing, name, table.url, key)
    finally:
        outgoing.close()


def server_body(server: HomeServer) -> dict[str, Any]:
    """Return *server* as `--json` prints it."""
    table, sizes = server.table, _tool_sizes(server.connector)
    return {
        "name": server.name,
        "hash": server.connector.identity.hash,
        "state": "ready" if server.is_accepted else "held_back",
        "is_update": server.is_update,
        "run": list(table.run),
        "program": list(table.program),
        "package": table.package or None,
        "url": table.url or None,
        "header": table.credential.header if table.credential else None,
        "files": {"read": list(table.files_read), "write": list(table.files_write)},
        "hosts": list(server.connector.hosts),
        "env": dict(table.env),
        "secrets": list(table.secrets),
        "rehearse": table.rehearse,
        "tools": [
            {
                "name": each.name,
                "word": table.word(each.name),
                "tool": sizes[each.name][0] if each.name in sizes else None,
                "bytes": sizes[each.name][1] if each.name in sizes else 0,
                "claims_to_read": each.claims_to_read,
                "preview": table.previews[each.name].op if each.name in table.previews else None,
            }
            for each in server.connector.tools
        ],
        "tool_bytes": sum(size for _, size in sizes.values()),
    }


def _tool_sizes(connector: InstalledConnector) -> dict[str, tuple[str, int]]:
    """Return what agents call each tool that they get, and the bytes of it in their context."""
    actions = {each.steps[0].op: each for each in server_actions(connector)}
    return {
        name: (action.tool_name, listed_bytes(action_tool(action_body(action))))
        for name, action in actions.items()
    }


def say_server(context: CommandContext, server: HomeServer) -> None:
    """Print what *server* is, what it may touch, and a line for each of its tools."""
    body, table = server_body(server), server.table
    _say_title(context, server)
    context.say(f"    {body['hash']}")
    rows = (
        ("command", shlex.join(table.run)),
        ("package", table.package),
        ("program", shlex.join(table.program)),
        ("url", table.url),
        ("key in", table.credential.header if table.credential else ""),
        ("variables", shlex.join(f"{name}={value}" for name, value in table.env.items())),
        ("secrets", ", ".join(table.secrets)),
        ("reads", ", ".join(table.files_read)),
        ("writes", ", ".join(table.files_write)),
        ("rehearsed", "each call that asks, on copies of what it writes" if table.rehearse else ""),
        ("reaches", ", ".join(body["hosts"]) or "no host"),
    )
    for label, text in rows:
        if text:
            context.say(f"    {label:<10}{escape(text)}")
    width = max((len(each["tool"] or each["name"]) for each in body["tools"]), default=0)
    for each in body["tools"]:
        size = kilobytes(each["bytes"]) if each["tool"] else ""
        preview = f"  previewed by {escape(each['preview'])}" if each["preview"] else ""
        line = f"    {each['word']:<5}{escape(each['tool'] or each['name']):<{width}}{size:>9}{preview}"
        context.say(line.rstrip())
    context.say(_cost(body))


def _say_title(context: CommandContext, server: HomeServer) -> None:
    state = "" if server.is_accepted else "not accepted"
    state = "update, not accepted" if server.is_update else state
    context.say(f"{'✓' if server.is_accepted else '○'} {server.name:<16}  {state}".rstrip())


def _cost(body: Mapping[str, Any]) -> str:
    count = sum(each["tool"] is not None for each in body["tools"])
    noun = "tool" if count == 1 else "tools"
    return f"    Agents get {count} {noun} of it ({kilobytes(body['tool_bytes'])})."


def list_servers(context: CommandContext) -> int:
    """Print the servers, and those in the store that are broken; return 1 if any is."""
    home = Home(context.home)
    servers = [*home_servers(home).values()]
    problems = [
        each
        for each in ConnectorStore(home.path).scan()[1]
        if any(
            (place / DEFINITIONS_FILE).exists()
            for place in (Path(each.file), Path(each.file).parent)
        )
    ]
    items = [server_body(each) for each in servers]
    context.show({"items": items, "problems": [each.to_json() for each in problems]})
    for server, body in zip(servers, items, strict=True):
        _say_title(context, server)
        context.say(f"    {escape(shlex.join(server.table.run) or server.table.url)}")
        context.say(f"    reaches {escape(', '.join(body['hosts']) or 'no host')}")
        context.say(_cost(body))
    for problem in problems:
        context.say(f"✗ {escape(str(problem))}", fg="red")
    if not servers and not problems:
        context.say("No MCP servers are here. Add one with `aileron server add NAME -- COMMAND`.")
    return EXIT.FAILED if problems else EXIT.DONE


def show_server(context: CommandContext, name: str) -> int:
    """Print a server in full, with what each of its tools takes of an agent's context."""
    server = find_server(Home(context.home), name)
    context.show({**server_body(server), "manifest": server.connector.manifest_text})
    say_server(context, server)
    return EXIT.DONE


def check_server(context: CommandContext, name: str, start: StartServer | None = None) -> int:
    """Print what is wrong with a manifest, or with a server here; return 2 or 1 if anything is."""
    if "/" not in name and not name.endswith(".toml"):
        return _check_here(context, name, start)
    file = Path(name)
    beside = file.with_name(DEFINITIONS_FILE)
    try:
        data = _read(file, MAX_MANIFEST)
        # Without the file beside it, nothing is known of its tools.
        known = (
            parse_definitions(_read(beside, MAX_MODULE), str(beside)) if beside.exists() else None
        )
        manifest = parse_manifest(data, name, partial(_known_problems, tools=known))
        if manifest.server is None:
            raise FileProblems([Problem(file=name, message="has no table [server]")])
    except FileProblems as error:
        report_error(context, error)
        return EXIT.USAGE
    return _say_checked(context, manifest.name, "")


def _check_here(context: CommandContext, name: str, start: StartServer | None) -> int:
    server = find_server(Home(context.home), name)
    problem = "" if server.table.url else (start or boxes(context)).why_not(server.table)
    if server.table.tree:
        verify_tree(context.home, server.table.tree)
    return _say_checked(context, name, problem)


def _say_checked(context: CommandContext, name: str, problem: str) -> int:
    context.show({"name": name, "ok": not problem, "problem": problem or None})
    context.say(f"✗ {escape(name)}: {escape(problem)}" if problem else f"✓ {escape(name)}")
    return EXIT.FAILED if problem else EXIT.DONE


def _read(file: Path, limit: int) -> bytes:
    try:
        return read_plain(file, limit)
    except OSError as error:
        message = f"cannot be read: {error.strerror or error}"
        raise FileProblems([Problem(file=str(file), message=message)]) from error


def edit_server(
    context: CommandContext,
    name: str,
    tools: Sequence[str],
    *,
    rehearse: bool | None,
    **more: Sequence[str],
) -> int:
    """Change the manifest of a server, by options or else in the person's editor, and offer the result for acceptance."""
    home = Home(context.home)
    server = find_server(home, name)
    text = server.connector.manifest_text
    try:
        if tools or rehearse is not None or any(more.values()):
            table = _with_options(server, tools, rehearse, more)
            changed = put_server(
                home, name, server.connector.tools, manifest_bytes(name, table),
                option_problems(more, tools),
            )  # fmt: skip
        else:
            changed = _edited(context, home, server)
    except FileProblems as error:
        report_error(context, error)
        return EXIT.USAGE
    if changed.connector.manifest_text == text:
        context.show(server_body(server))
        context.say("Nothing was changed.")
        return EXIT.DONE
    context.show(server_body(changed))
    say_server(context, changed)
    for tool, preview in server.table.previews.items():
        if tool not in changed.table.previews and changed.table.word(tool) == "ask":
            op = escape(preview.op)
            context.say(f"{escape(tool)} has no preview now: {op} would have to be run or look.")
    say_waits(context, changed)
    return EXIT.DONE


def say_waits(context: CommandContext, server: HomeServer) -> None:
    """Print where a person accepts *server*, and what it still asks for."""
    if server.is_update:
        context.say(
            "It waits in the console until you accept it; what you accepted before counts until then."
        )
    elif not server.is_accepted:
        context.say("Agents get nothing of it until you accept it in the console.")
    if server.table.secrets or server.table.credential:
        what, them = ("secrets", "them") if server.table.secrets else ("a key", "it")
        context.say(
            f"It asks for {what}: once it is accepted, `aileron binding setup {server.name}` takes {them}."
        )


def _with_options(
    server: HomeServer,
    tools: Sequence[str],
    rehearse: bool | None,
    more: Mapping[str, Sequence[str]],
) -> ServerTable:
    """Return the table of *server* as the options change it; with a tool's word its preview is proposed anew."""
    table, given = server.table, [each.rpartition("=") for each in tools]
    words = {tool: word for tool, is_pair, word in given if is_pair}
    every = cast("Mapping[str, Word]", {**table.tools, **words})  # the manifest's rules judge them
    new = propose_previews(server.connector.tools, every).items()
    return replace(
        extended(table, more),
        tools=every,
        previews={
            **{tool: each for tool, each in new if words.keys() & {tool, each.op}},
            **{
                tool: each
                for tool, each in table.previews.items()
                if every[tool] == "ask" and every.get(each.op) in ("run", "look")
            },
        },
        rehearse=table.rehearse if rehearse is None else rehearse,
    )


def extended(table: ServerTable, options: Mapping[str, Sequence[str]]) -> ServerTable:
    """Return *table* with what `--read`, `--write`, `--host`, `--env` and `--secret` add to it, as far as they are right."""
    given = [each.partition("=") for each in options["env"]]
    env = {name: value for name, is_pair, value in given if is_pair}
    return replace(
        table,
        files_read=_and(table.files_read, options["read"]),
        files_write=_and(table.files_write, options["write"]),
        hosts=_and(table.hosts, options["hosts"]),
        env={**table.env, **env},
        secrets=_and(table.secrets, options["secrets"]),
    )


def option_problems(
    options: Mapping[str, Sequence[str]], tools: Sequence[str] = ()
) -> list[KeyProblem]:
    """Return which `--env` and `--tool` are no pair, by the key that they would be in."""
    pairs = (("env", "NAME=VALUE", options["env"]), ("tool", "TOOL=WORD", tools))
    return [
        KeyProblem(path=("server", key), message=f"--{option} needs {form}, and got {each}")
        for (option, form, given), key in zip(pairs, ("env", "tools"), strict=True)
        for each in given
        if "=" not in each
    ]


def _and(old: Sequence[str], new: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*old, *new)))


def _edited(context: CommandContext, home: Home, server: HomeServer) -> HomeServer:
    """Have a person edit the manifest until it is valid or they give up."""
    if context.json or not has_terminal():
        raise CliError(
            EXIT.USAGE, "There is no terminal for an editor. Change it with options; see --help."
        )
    text = server.connector.manifest_text
    while True:
        text = click.edit(text, extension=".toml") or text
        try:
            return put_server(home, server.name, server.connector.tools, text.encode())
        except FileProblems as error:
            report_error(context, error)
            if not click.confirm("Edit it again?", default=True):
                raise CliError(EXIT.USAGE, "Nothing was changed.") from None


def update_server(
    context: CommandContext,
    name: str,
    start: StartServer | None = None,
    make_outgoing: MakeOutgoing = None,
) -> int:
    """List a server again, in the newest version of its package, and offer what differs for acceptance."""
    home = Home(context.home)
    server = find_server(home, name)
    table = installed(context.home, server.table, context.say)
    tools = list_now(context, name, table, start or boxes(context), make_outgoing)
    whole = relisted(name, table, tools)
    body = {"name": name, "before": server.table.package or None, "package": table.package or None}
    if (whole, tools) == (server.table, server.connector.tools):
        context.show({**body, "differences": []})
        context.say(f"{name} is as it was installed: the same version, the same tools.")
        return EXIT.DONE
    changed = put_server(home, name, tools, manifest_bytes(name, whole))
    changes = compare_connectors(server.connector, changed.connector)
    context.show({**body, "differences": [to_json(each) for each in changes]})
    for each in changes:
        context.say(plain_text(change_line(each, "text")))
    say_waits(context, changed)
    return EXIT.DONE


def show_server_log(context: CommandContext, name: str, limit: int) -> int:
    """Print the newest lines of what a server wrote to its standard error."""
    find_server(Home(context.home), name)
    try:
        with (context.home / LOGS / f"{name}.log").open(encoding="utf-8", errors="replace") as file:
            lines = [line.rstrip("\n") for line in deque(file, maxlen=limit)]
    except FileNotFoundError:
        lines = []
    context.show({"items": lines})
    for line in lines:
        context.say(line if line.isprintable() else escape(line))
    if not lines:
        context.say(f"{name} has written nothing to its log.")
    return EXIT.DONE


def remove_server(context: CommandContext, name: str) -> int:
    """Remove every version of a server from the store; its log and its account stay."""
    home = Home(context.home)
    server = find_server(home, name)
    hashes = [each.identity.hash for each in _all_of(home)[name]]
    for each in hashes:
        remove_file(home, "connector", each)
    collect_packages(home)
    context.show({"removed": name, "hashes": hashes})
    context.say(f"removed {name}")
    if server.table.secrets or server.table.credential:
        context.say("Its account stays in the vault: `aileron binding list` shows it.")
    return EXIT.DONE
