"""`aileron server add`: an MCP server of a person's own, by its command or from an agent's settings."""

import os
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from string import digits
from typing import Any

import click

from aileron_core.actions.problems import KeyProblem
from aileron_core.connectors.protocol import CredentialRequirement
from aileron_core.connectors.servers.adding import drafted, proposed
from aileron_core.connectors.servers.packages import installed, package_request
from aileron_core.connectors.servers.propose import manifest_bytes, reads_for_previews
from aileron_core.connectors.servers.started import StartServer
from aileron_core.connectors.servers.table import ServerTable
from aileron_core.console_port.account_intents import BindAccount, named_values
from aileron_core.console_port.account_views import AccountChanged
from aileron_core.credentials.accounts import find_user
from aileron_core.credentials.binding import binding_name
from aileron_core.errors import AileronError, Conflict, FileProblems, InvalidRequest, NotFound
from aileron_core.home.layout import Home
from aileron_core.launch.agent_servers import SECRET_NAME, AgentServer, agent_servers
from aileron_core.text import escape
from aileron_core.vault.secret import Secret
from aileron_tui.cli.accepted import accepted_connectors, stored_bindings
from aileron_tui.cli.output import EXIT, CliError, CommandContext, did_you_mean, report_error
from aileron_tui.cli.process import Given, close_memory, given_passphrase
from aileron_tui.cli.servers import (
    HomeServer,
    MakeOutgoing,
    boxes,
    collect_packages,
    extended,
    find_server,
    home_servers,
    list_now,
    option_problems,
    put_server,
    say_server,
    say_waits,
    server_body,
)
from aileron_tui.cli.vault import PassphraseRequests, has_terminal, need_console
from aileron_tui.words.files import SHOWN_ARGUMENT

_LONGEST_NAME = 16
_IDENTITY = "default"


def add_server(
    context: CommandContext,
    words: Sequence[str],
    source: str,
    passphrase: Given,
    *,
    no_rehearse: bool,
    yes: bool,
    header: str = "",
    start: StartServer | None = None,
    make_outgoing: MakeOutgoing = None,
    **options: Sequence[str],
) -> int:
    """Add one server by its command, or with *source* those of an agent's settings; a person accepts them in the console."""
    try:
        draft, wrong = (
            extended(ServerTable(rehearse=not no_rehearse), options),
            option_problems(options),
        )
        start = start or boxes(context)
        if source:
            if wrong:
                raise InvalidRequest(wrong[0].message)
            if any(options.values()) and len(words) != 1:
                raise InvalidRequest("Name the one server that these options are for.")
            close_memory()
            requests = PassphraseRequests(context, given_passphrase(passphrase))
            importing = _Import(
                context=context,
                source=source,
                draft=draft,
                start=start,
                make_outgoing=make_outgoing,
                requests=requests,
                yes=yes,
            )
            return importing.run(words)
        if len(words) < 2:
            raise InvalidRequest("Give a NAME, then the server's URL, or -- and its command.")
        name, *run = words
        draft = replace(draft, run=tuple(run))
        is_remote = run[0].startswith(("https://", "http://"))
        if is_remote and (len(run) > 1 or any(options.values())):
            message = "takes no other word or option than --header"
            wrong.append(KeyProblem(path=("server", "url"), message=message))
        if header and not is_remote:
            message = "has no url, which --header is for: use --secret"
            wrong.append(KeyProblem(path=("server",), message=message))
        if is_remote:
            draft = ServerTable(url=run[0], credential=_key_in(header))
        added = _add(context, name, draft, start, make_outgoing, wrong=wrong)
    except FileProblems as error:
        report_error(context, error)
        return EXIT.USAGE
    context.show(server_body(added))
    _say_added(context, added, draft)
    return EXIT.DONE


def _key_in(header: str) -> CredentialRequirement | None:
    if not header:
        return None
    is_usual = header.lower() == "authorization"
    return CredentialRequirement(
        kind="api_key", header=header, format="Bearer {key}" if is_usual else "{key}"
    )


def _add(
    context: CommandContext,
    name: str,
    draft: ServerTable,
    start: StartServer,
    make_outgoing: MakeOutgoing,
    key: Secret | None = None,
    wrong: Sequence[KeyProblem] = (),
) -> HomeServer:
    """Start a server once without a secret, and install what is proposed of it; errors as of `adding`'s functions.

    Args:
        key: of a remote one, where it is known.
        wrong: what else is wrong with what the person gave.
    """
    home = Home(context.home)
    if name in home_servers(home):
        raise Conflict(
            f"There is a server {name} already. `aileron server edit {name}` changes it; or remove it first."
        )
    table = drafted(name, draft, wrong)
    home.prepare()
    try:
        table = installed(home.path, table, context.say)
        tools = list_now(context, name, table, start, make_outgoing, key)
        return put_server(home, name, tools, manifest_bytes(name, proposed(name, table, tools)))
    except BaseException:
        collect_packages(home)
        raise


def _say_added(context: CommandContext, server: HomeServer, draft: ServerTable) -> None:
    """Print what was installed of *draft*, and what of it the person did not say."""
    say_server(context, server)
    table = server.table
    for what, now, said in (
        ("read", table.files_read, draft.files_read),
        ("write", table.files_write, draft.files_write),
    ):
        if more := [each for each in now if each not in said]:
            context.say(f"It may {what} {escape(', '.join(more))}, because its command names that.")
    for folder in table.files_write:
        git = f"{folder}/.git"
        if Path(git).exists() and git not in table.files_write:
            context.say(
                f"{escape(git)} stays read-only: --write {escape(git)} lets it write there, hooks too."
            )
    for name in filter(SECRET_NAME.search, draft.env):
        context.say(
            f"{escape(name)} stays readable in the manifest. If it is a secret, use --secret instead.",
            fg="yellow",
        )
    if any("${secret." in word for word in table.program):
        context.say(SHOWN_ARGUMENT, fg="yellow")
    if "run" in table.tools.values():
        context.say(
            "run: agents need not ask; its author says that these tools only read. ask: you decide."
        )
    if reads := reads_for_previews(table, server.connector.tools):
        names = escape(", ".join(reads))
        option = f"aileron server edit {server.name} --tool {reads[0]}=run"
        context.say(
            f"If {names} ran unasked, other calls would show what is there now: `{escape(option)}`."
        )
    context.say(f"`aileron server edit {server.name}` changes any of this.")
    say_waits(context, server)


@dataclass(slots=True, kw_only=True)
class _Import:
    """Adds the servers of an agent's settings, each after a word of the person's. The settings stay as they are."""

    context: CommandContext
    source: str
    draft: ServerTable
    """What the options say of it."""
    start: StartServer
    make_outgoing: MakeOutgoing
    requests: PassphraseRequests
    yes: bool
    _items: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    def run(self, names: Sequence[str]) -> int:
        """Add those of *names*, or all; return 1 if one of them could not be taken."""
        found = agent_servers(self.source, Path.home(), Path.cwd(), os.environ)
        known = {each.name for each in found}
        if found and not self.yes and (self.context.json or not has_terminal()):
            raise CliError(EXIT.USAGE, "There is nobody to ask. Give --yes.")
        for name in names:
            if name not in known:
                raise NotFound(f"There is no server {name} there.{did_you_mean(name, known)}")
        for each in found:
            if not names or each.name in names:
                try:
                    self._take(each)
                except AileronError as error:
                    self._refuse(each, error.message)
        self.context.show({"items": self._items})
        if not found:
            self.context.say("There are no MCP servers in these settings.")
        return EXIT.FAILED if any(each["reason"] for each in self._items) else EXIT.DONE

    def _refuse(self, each: AgentServer, reason: str) -> None:
        self._note(each, None, reason)
        self.context.say(
            f"✗ {escape(each.name)} ({escape(each.file)}) was not added: {escape(reason)}",
            fg="yellow",
        )

    def _note(self, each: AgentServer, server: HomeServer | None, reason: str = "") -> None:
        body = server_body(server) if server else None
        item = {"name": each.name, "file": each.file, "reason": reason or None, "server": body}
        self._items.append(item)

    def _take(self, each: AgentServer) -> None:
        if reason := each.refusal:
            self._refuse(each, reason)
            return
        if each.command:
            package_request(each.command)  # raises for what is never started
        name = re.sub(r"[^a-z0-9]", "", each.name.lower()).lstrip(digits)[:_LONGEST_NAME]
        say = self.context.say
        say(f"{escape(each.name)}  ({escape(each.file)})")
        say(f"    {escape(each.url or shlex.join(each.command))}")
        if each.secrets:
            say(f"    not in its manifest: the values of {escape(', '.join(each.secrets))}")
        known = home_servers(Home(self.context.home)).get(name)
        there = known and (known.table.run, known.table.url)
        if known is None or there != (each.command, each.url):
            if not self._agreed(f"Add it as {name}?"):
                return
            draft = replace(
                self.draft,
                run=each.command,
                hosts=() if each.url else self._hosts(each),
                env={**each.env, **self.draft.env},
                secrets=tuple(dict.fromkeys((*each.secrets, *self.draft.secrets))),
            )
            key = None
            if each.url:
                draft = ServerTable(url=each.url, credential=each.credential)
                key = next((Secret(text) for text in each.secrets.values() if text), None)
            known = _add(self.context, name, draft, self.start, self.make_outgoing, key)
            _say_added(self.context, known, draft)
            secret = ", with its secrets" if each.secrets else ""
            say(
                f"{escape(each.file)} still has its own copy{secret}. Remove it once this one works."
            )
        self._note(each, known)
        if each.secrets:
            self._bind(known, each.secrets)

    def _hosts(self, each: AgentServer) -> tuple[str, ...]:
        """Return the hosts of a server: a secret is given to none that could send it anywhere."""
        if self.draft.hosts or not each.secrets:
            return self.draft.hosts
        if self.yes:
            raise InvalidRequest(
                "It has a secret, so list its hosts: name it, and give --host HOST:PORT."
            )
        return tuple(
            str(click.prompt("It gets a secret. Which hosts may it reach (HOST:PORT ...)?")).split()
        )

    def _agreed(self, question: str) -> bool:
        return self.yes or click.confirm(question, default=False)

    def _bind(self, server: HomeServer, secrets: Mapping[str, str | None]) -> None:
        """Put the values of *secrets* into the vault, as an account of the accepted *server*, after a word."""
        values = {name: value for name, value in secrets.items() if value is not None}
        say, home = self.context.say, Home(self.context.home)
        need = server.table.credential
        if values.keys() != ({need.header} if need else {*server.table.secrets}):
            return  # some are kept elsewhere: `say_waits` has said who asks for them
        if not server.is_accepted:
            if self.yes:
                say(
                    "Its values were not taken: accept it in the console, then run this command again."
                )
                return
            say("To take its values into the vault, accept it in the console now.")
        if not self._agreed(f"Put {', '.join(values)} into the vault, for {server.name} alone?"):
            return
        if not find_server(home, server.name).is_accepted:
            say("It is not accepted yet, so nothing was taken. Run this command again once it is.")
            return
        need_console(self.context, "server add --from")
        user = find_user(accepted_connectors(home), server.name)
        if any(each.name == binding_name(user, _IDENTITY) for each in stored_bindings(home.path)):
            say("It has an account already, which stays as it is.")
            return
        self.requests.prepare()
        typed = {name: Secret(value) for name, value in values.items()}
        secret = typed[need.header] if need else named_values(typed)
        asked = BindAccount(
            connector_hash=user.identity.hash, identity=_IDENTITY, account="", secret=secret
        )
        self.requests.ask(asked, AccountChanged)
        say(f"✓ They are in the vault, for {server.name} alone.", fg="green")
