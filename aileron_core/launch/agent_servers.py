"""The MCP servers that an agent's settings name. They are read, never obeyed or changed.

Every agent has its own names for the same few settings; what cannot be imported says why.
"""

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any, Final

from aileron_core.actions.problems import quoted
from aileron_core.connectors.protocol import CredentialRequirement
from aileron_core.errors import FileProblems, NotFound, Problem
from aileron_core.launch.agents import AGENTS
from aileron_core.launch.named_programs import HomeSettings
from aileron_core.launch.own_servers import VARIABLE, is_off, server_command, server_url
from aileron_core.launch.plan import MCP_SERVER_NAME, Agent
from aileron_core.launch.settings_files import (
    parse_table,
    read_settings,
    table_at,
    tables_in,
    words_at,
)
from aileron_core.launch.variables import fits

VS_CODE: Final = "vscode"
_VS_CODE_FILES: Final = (
    ".config/Code/User/mcp.json",
    "Library/Application Support/Code/User/mcp.json",
)
_SETTINGS: Final = (
    ".claude.json", ".mcp.json", "config.*", "gemini-extension.json", "managed*", "mcp.json", "opencode.json*", "settings.json",
)  # fmt: skip
"""Names of files that may have servers; the others that decide about models hold logins."""
_EXTENSIONS: Final = PurePosixPath(".gemini/extensions/*/gemini-extension.json")
_TABLES: Final = ("mcpServers", "mcp_servers", "mcp", "servers", "extensions")
"""The keys under which files have their servers, by name."""
_STARTS: Final = frozenset({"command", "cmd", "url", "uri", "httpUrl"})
_UNKNOWN = re.compile(r"\$\{[^}]*\}|\{file:[^}]*\}")
_ASKED = re.compile(r"\$\{input:[^}]*\}")
SECRET_NAME = re.compile(
    r"token|secret|passw|passphrase|(^|[_-])pass$|[_-]pwd$|credential|auth|cookie|header|(^|api|access|private|[_-])keys?$|(^|[_-])pat$|(?-i:^-H$)",
    re.IGNORECASE,
)
"""Found in the name of a variable, header or option whose value is a secret."""
_SECRET_URL = re.compile(
    r"://[^/\s:@]*:[^/\s@]+@|[?&][^=&\s]*(token|key|secret|passw)[^=&\s]*=", re.IGNORECASE
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentServer:
    """One MCP server as a settings file has it, its variables replaced and its secrets apart."""

    file: str
    """As a person is shown it."""
    name: str
    command: tuple[str, ...] = ()
    """`${secret.NAME}` stands in a word for a secret."""
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    secrets: Mapping[str, str | None] = field(default_factory=dict[str, str | None], repr=False)
    """Values by name; None for one that is kept elsewhere."""
    url: str = ""
    credential: CredentialRequirement | None = None
    """Of one with a URL: the header whose value is the secret."""
    refusal: str = ""
    """Why it cannot be taken over, the end of a sentence about it."""


def agent_servers(
    source: str, home: Path, project: Path, env: Mapping[str, str]
) -> tuple[AgentServer, ...]:
    """Return the servers in the settings of *source*, by name; the project's come last.

    Args:
        source: the name of an agent, `vscode`, or the path of a file.
        home: the person's.
        env: the person's environment, which has the values of variables.

    Raises:
        NotFound: there is no such file.
        FileProblems: a file cannot be read.
    """
    settings = HomeSettings(home)
    found: list[AgentServer] = []
    for path in _files(source, settings, project, env):
        shown = settings.shown(PurePosixPath(path))
        reader = _Reader(source, shown, project, env)
        found += [reader.server(name, entry) for name, entry in _entries(path, shown, project)]
    return tuple(found)


def _files(
    source: str, settings: HomeSettings, project: Path, env: Mapping[str, str]
) -> Iterator[Path]:
    agent: Agent | None = AGENTS.get(source)
    if agent is None and source != VS_CODE:
        if not Path(source).is_file():
            known = ", ".join([*AGENTS, VS_CODE])
            raise NotFound(f"There is no file {source}. Give a file, or one of {known}.")
        yield Path(source).absolute()
        return
    if agent is None:
        patterns = [PurePosixPath(each) for each in _VS_CODE_FILES]
        names: Iterable[str] = (".vscode/mcp.json",)
    else:
        patterns = [*agent.settings_paths(env, ())]
        patterns += [_EXTENSIONS] if source == "gemini" else []
        names = agent.project_files
    own = (settings.absolute(each) for pattern in patterns for each in settings.matching(pattern))
    there = [*own, *(project / name for name in names if (project / name).is_file())]
    yield from dict.fromkeys(each for each in there if fits(each.name, _SETTINGS))


def _entries(path: Path, shown: str, project: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    try:
        table = parse_table(str(path), read_settings(path) or "")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise FileProblems([Problem(file=shown, message=f"cannot be read: {why}")]) from None
    if table is None:
        raise FileProblems([Problem(file=shown, message="cannot be parsed", class_="parse_error")])
    places = [table.get(key) for key in _TABLES]
    places.append(table_at(table, "projects", str(project)).get("mcpServers"))
    for place in places:
        for name, entry in tables_in(place):
            if name != MCP_SERVER_NAME and entry.keys() & _STARTS:
                yield name, entry


class _Refused(Exception):
    """The message is the end of a sentence about the server."""


class _Reader:
    """Reads the entries of one file, as the agent *source* means them."""

    def __init__(self, source: str, file: str, project: Path, env: Mapping[str, str]) -> None:
        self._is_gemini = source == "gemini"
        self._file = file
        self._known = {**env, "workspaceFolder": str(project), "userHome": env.get("HOME", "")}

    def server(self, name: str, entry: Mapping[str, Any]) -> AgentServer:
        url, words = server_url(entry), server_command(entry)
        bare = AgentServer(file=self._file, name=name, url=url)
        try:
            if not (url or words):
                raise _Refused("it has neither a command nor a URL")
            if refusal := self._refusal(entry):
                raise _Refused(refusal)
            server = replace(bare, url=self._filled(url))
            if _SECRET_URL.search(server.url):
                raise _Refused("its URL has a secret in it, which would stay readable")
            return self._remote(server, entry) if url else self._started(server, words, entry)
        except _Refused as error:
            return replace(bare, command=words, refusal=str(error))

    def _refusal(self, entry: Mapping[str, Any]) -> str:
        type_ = entry.get("type")
        if is_off(entry):
            return "it is switched off there"
        if "headersHelper" in entry:
            return "its headers come from a program (headersHelper), which Aileron does not run"
        if type_ == "sse" or (self._is_gemini and entry.get("url") and type_ != "http"):
            return "it is reached by SSE, which MCP has given up"
        if entry.get("envFile"):
            return "its variables are in another file (envFile)"
        if entry.get("cwd"):
            return "it is started in a folder of its own (cwd), which it would not have"
        return ""

    def _remote(self, server: AgentServer, entry: Mapping[str, Any]) -> AgentServer:
        given = {**_table(entry, "headers"), **_table(entry, "http_headers")}
        given |= {name: f"${{{each}}}" for name, each in _table(entry, "env_http_headers").items()}
        if variable := entry.get("bearer_token_env_var"):
            given["Authorization"] = f"Bearer ${{{variable}}}"
        if len(given) > 1:
            raise _Refused(
                "it is sent several headers: add it by its URL, with --header for its key's"
            )
        for header, text in given.items():
            scheme, _, raw = text.rpartition(" ")
            form = f"{scheme} {{key}}" if scheme else "{key}"
            key = None if _ASKED.fullmatch(raw) else self._filled(raw)
            need = CredentialRequirement(kind="api_key", header=header, format=form)
            server = replace(server, credential=need, secrets={header: key})
        return server

    def _started(
        self, server: AgentServer, words: tuple[str, ...], entry: Mapping[str, Any]
    ) -> AgentServer:
        given = {**_table(entry, "env"), **_table(entry, "environment"), **_table(entry, "envs")}
        given |= {name: f"${{{name}}}" for name in words_at(entry, "env_vars")}
        env: dict[str, str] = {}
        secrets: dict[str, str | None] = dict.fromkeys(words_at(entry, "env_keys"))
        for name, text in given.items():
            value = None if _ASKED.fullmatch(text) else self._filled(text)
            if (
                self._secret_variable(text)
                or value is None
                or SECRET_NAME.search(name)
                or _SECRET_URL.search(value)
            ):
                secrets[name] = value
            else:
                env[name] = value
        command: list[str] = []
        for raw in words:
            filled = self._filled(raw)
            word = self._without_secret(filled, command, secrets)
            if word == filled and (name := self._secret_variable(raw)):
                word = _kept_apart(filled, name, secrets)
            command.append(word)
        return replace(server, command=tuple(command), env=env, secrets=secrets)

    def _secret_variable(self, text: str) -> str:
        """Return a variable in *text* whose name says that it is secret, whatever it is put into; empty without one."""
        names = (next(filter(None, each.group(1, 3, 4)), "") for each in VARIABLE.finditer(text))
        return next(filter(SECRET_NAME.search, names), "")

    def _without_secret(self, word: str, before: list[str], secrets: dict[str, str | None]) -> str:
        """Return *word* of a command line, what is secret in it put into *secrets*."""
        last = before[-1] if before and "=" not in before[-1] else ""
        option, is_set, value = word.partition("=")
        is_name = option.isidentifier() and not SECRET_NAME.search(last)  # base64 may end in `=`
        is_assigned = is_set and (option.startswith("-") or is_name)
        if not is_assigned:
            option, value = last, word
        is_value = is_assigned or (last.startswith("-") and not word.startswith("-"))
        if not (is_value and SECRET_NAME.search(option)) and not _SECRET_URL.search(value):
            return word
        named = re.sub(r"\W+", "_", option.strip("-")) if is_value else ""
        name = named.upper() or f"ARGUMENT_{len(before)}"
        return word.removesuffix(value) + _kept_apart(value, name, secrets)

    def _filled(self, text: str) -> str:
        """Return *text* with its variables replaced.

        Raises:
            _Refused: one of them is not set, or stands for what only the agent has.
        """

        def value(match: re.Match[str]) -> str:
            if match[4] and not self._is_gemini:
                return match[0]  # the others take it as it is
            name = next(filter(None, match.group(1, 3, 4)))
            found = self._known.get(name) or match[2]
            if found is None:
                raise _Refused(f"its variable {name} is not set here")
            return found

        if unknown := _UNKNOWN.search(filled := VARIABLE.sub(value, text)):
            raise _Refused(f"nobody but the agent knows {quoted(unknown[0])}")
        return filled


def _kept_apart(value: str, name: str, secrets: dict[str, str | None]) -> str:
    """Put *value* into *secrets*, as *name* where no other value is called so, and return what stands for it."""
    free = (name if not number else f"{name}_{number + 1}" for number in itertools.count())
    name = next(each for each in free if secrets.get(each, value) == value)
    secrets[name] = value
    return f"${{secret.{name}}}"


def _table(entry: Mapping[str, Any], key: str) -> dict[str, str]:
    return {name: str(value) for name, value in table_at(entry, key).items()}
