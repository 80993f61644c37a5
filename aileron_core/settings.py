"""The user's settings: `config.toml`, in which every unknown key is an error (docs/wire.md#defaults)."""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import Any, Final, Literal, TypeGuard, cast
from urllib.parse import urlsplit

from aileron_core.agent_names import AGENT_NAMES
from aileron_core.errors import FileProblems, Problem
from aileron_core.proxy_settings import NO_TOOLS, ProxySettings, read_proxy_settings

Glyphs = Literal["auto", "unicode", "ascii"]
Osc9 = Literal["auto", "always", "never"]
Rehearse = Literal["ask", "always", "never"]
LogLevel = Literal["debug", "info", "warning", "error"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsoleSettings:
    """`[console]`: how the console looks, and when its keys count.

    The names of themes, actions and keys are the front end's: it judges them when it starts.
    """

    theme: str = "auto"
    """`auto` goes by what the terminal says of itself."""
    glyphs: Glyphs = "auto"
    """`ascii` draws every sign with ASCII; `auto` does so where the locale is not UTF-8."""
    arm_ms: int = 400
    """How long item and hand must have rested before a key decides; never under 250."""
    bell: bool = True
    lock_minutes: int = 0
    """After this long without a key the items are hidden until a key; 0: never."""
    keys: tuple[tuple[str, str], ...] = ()
    """(action, key) of `[console.keys]`, as written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSettings:
    """`[log]`: Aileron's own log in the home."""

    level: LogLevel = "info"
    """The least that is written."""
    max_mib: float = 2.0
    """Size at which the file is set aside and a new one begun."""
    keep: int = 3
    """How many files that were set aside are kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NotifySettings:
    """`[notify]`: how a new call is announced besides the bell; a notification quotes nothing from outside."""

    osc9: Osc9 = "auto"
    """The terminal's own notification; `auto` goes by what the terminal says of itself."""
    command: tuple[str, ...] = ()
    """A program and its arguments, run without a shell; `{count}`, `{action}` and `{review}` are filled in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchSettings:
    """`[launch.<agent>]`: what a launch of this agent always gets, beside what is typed."""

    args: tuple[str, ...] = ()
    """Before the arguments that are typed."""
    env: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchPaths:
    """Paths of `[launch]`, or of its options: what a sandbox has besides the project, or has not."""

    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    hide: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectFile:
    """What a project's `aileron.toml` says."""

    launch: Mapping[str, LaunchSettings]
    """By the agent's name."""
    hide: tuple[str, ...] = ()
    """Paths in the project."""
    proxy: ProxySettings = NO_TOOLS


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewaySettings:
    """`[gateway]`: where model traffic goes. Empty: the provider's own address."""

    anthropic: str = ""
    """Base URLs, http or https, a path allowed; without user, query and fragment."""
    openai: str = ""
    gemini: str = ""
    ca_file: str = ""
    """PEM file with certificates to trust besides the usual ones; an absolute path."""
    require_unlocked: bool = False
    """Forward nothing while there is a vault and it is locked."""
    inspect: bool = False
    """Read in models' answers which tools they call."""

    def custom_addresses(self) -> dict[str, str]:
        """Return scheme, host and port of each provider whose address is set."""
        urls = {"anthropic": self.anthropic, "openai": self.openai, "gemini": self.gemini}
        parts = {name: urlsplit(url) for name, url in urls.items() if url}
        return {name: f"{each.scheme}://{each.netloc}" for name, each in parts.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class VaultSettings:
    """`[vault]`: when the vault is locked by itself."""

    lock_minutes: int = 60
    """Without a key in the console, a run, or a session that uses a key from it; 0: never."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What `config.toml` may say in this version."""

    listen_host: str = "127.0.0.1"
    listen_port: int = 0
    """0: the port that was first given is taken again if it is free."""
    expires_seconds: int = 1800
    """0: approvals never expire."""
    hold_seconds: float = 25.0
    """How long the MCP server holds a gated call at most."""
    tools: tuple[str, ...] = ("*",)
    """Which actions agents get as MCP tools: names of actions or tools, with `*`, `?` and `[…]`."""
    console: ConsoleSettings = field(default_factory=ConsoleSettings)
    log: LogSettings = field(default_factory=LogSettings)
    notify: NotifySettings = field(default_factory=NotifySettings)
    launch: Mapping[str, LaunchSettings] = field(default_factory=dict[str, LaunchSettings])
    """By the agent's name."""
    paths: LaunchPaths = field(default_factory=LaunchPaths)
    """For every agent."""
    launch_hosts: tuple[str, ...] = ()
    """`host:port`, or `host` for port 443: what `--sandbox=hosts` reaches besides the agent's own hosts."""
    gateway: GatewaySettings = field(default_factory=GatewaySettings)
    vault: VaultSettings = field(default_factory=VaultSettings)
    review_origins: tuple[str, ...] = ()
    """Where a person's proxy serves the review page besides the console's own address: `https://name`, no path."""
    mirror: str = ""
    """`[store]`: the https URL that `github://` is fetched from instead of GitHub; empty: GitHub."""
    rehearse: Rehearse = "ask"
    """`[builtin.bash]`: which commands are rehearsed: those that a person is asked about, all, or none."""
    text: str = field(default="", compare=False, repr=False)
    """Of the file, as it was read; empty where there is none."""
    history_days: int = 30
    """How long the content of a call is kept after its end; 0: not at all, once its agent has the answer."""

    def is_tool(self, action: str, tool: str) -> bool:
        """Return whether agents get *action* as an MCP tool, which is named *tool* there."""
        return any(fnmatchcase(action, each) or fnmatchcase(tool, each) for each in self.tools)


_KEYS: Mapping[str, frozenset[str]] = {
    "builtin": frozenset({"bash"}),
    "server": frozenset({"listen"}),
    "approval": frozenset({"expires_seconds"}),
    "mcp": frozenset({"hold_seconds", "tools"}),
    "console": frozenset({"theme", "glyphs", "arm_ms", "bell", "lock_minutes", "keys"}),
    "history": frozenset({"days"}),
    "log": frozenset({"level", "max_mib", "keep"}),
    "notify": frozenset({"osc9", "command"}),
    "review": frozenset({"origins"}),
    "store": frozenset({"mirror"}),
    "vault": frozenset({"lock_minutes"}),
    "launch": frozenset({*AGENT_NAMES, "read", "write", "hide", "hosts"}),
    "gateway": frozenset(
        {"anthropic", "openai", "gemini", "ca_file", "require_unlocked", "inspect"}
    ),
}
_LEVELS: tuple[LogLevel, ...] = ("debug", "info", "warning", "error")
_GLYPHS: tuple[Glyphs, ...] = ("auto", "unicode", "ascii")
_OSC9: tuple[Osc9, ...] = ("auto", "always", "never")
_REHEARSE: tuple[Rehearse, ...] = ("ask", "always", "never")
MAX_HOSTS = 200
"""Entries of `launch.hosts` at most."""
MAX_COMMAND = 64
"""Words of `notify.command` at most."""
MAX_ORIGINS = 4
"""Entries of `review.origins` at most."""
ARM_MS_RANGE = (250, 10_000)
LOCK_MINUTES_RANGE = (0, 24 * 60)
MAX_HISTORY_DAYS = 3650
_HOST = re.compile(
    r"(?=[^:]*[A-Za-z])[A-Za-z0-9_](?:[A-Za-z0-9_.-]{0,251}[A-Za-z0-9_])?(?::[1-9]\d{0,4})?"
)
_ORIGIN = re.compile(r"https://[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?(?::[1-9][0-9]{0,4})?")
_LISTEN = re.compile(r"127\.0\.0\.1:(\d{1,5})")


def load_settings(path: Path) -> Settings:
    """Return what *path* says; the defaults if there is no such file.

    Raises:
        FileProblems: it cannot be read, is not TOML, or says what Aileron does not know.
    """
    try:
        text = path.read_bytes().decode("utf-8")  # as it is, line ends included
        content = tomllib.loads(text)
    except FileNotFoundError:
        return Settings()
    except (OSError, ValueError, RecursionError) as error:
        raise FileProblems(
            [_problem(path, f"cannot be read: {error}", class_="parse_error")]
        ) from error
    problems = list(_unknown(path, content))
    settings = _read(path, content, problems)
    if problems:
        raise FileProblems(problems)
    return replace(settings, text=text)


def _problem(path: Path, message: str, key: str = "", class_: str = "validation_error") -> Problem:
    return Problem(file=path.name, key=key, message=message, class_=class_)


def _unknown(path: Path, content: Mapping[str, Any]) -> list[Problem]:
    problems: list[Problem] = []
    for section, table in content.items():
        known = _KEYS.get(section)
        if known is None or not isinstance(table, Mapping):
            problems.append(
                _problem(
                    path, f"is not a section; the sections are {', '.join(sorted(_KEYS))}", section
                )
            )
            continue
        keys = cast("Mapping[str, Any]", table)
        problems += [
            _problem(
                path,
                f"is not a key here; the keys are {', '.join(sorted(known))}",
                f"{section}.{key}",
            )
            for key in keys
            if key not in known
        ]
    return problems


class _SettingsTable:
    """One section of the file; what is wrong in it goes to *problems*."""

    def __init__(
        self, path: Path, name: str, content: Mapping[str, Any], problems: list[Problem]
    ) -> None:
        table = content.get(name)
        self._path = path
        self._name = name
        self._values: Mapping[str, Any] = (
            cast("Mapping[str, Any]", table) if isinstance(table, Mapping) else dict[str, Any]()
        )
        self._problems = problems

    def refuse(self, key: str, message: str) -> None:
        self._problems.append(_problem(self._path, message, f"{self._name}.{key}"))

    def value(self, key: str, default: Any) -> Any:
        return self._values.get(key, default)

    def number(self, key: str, default: float, least: float, most: float) -> float:
        found = self.value(key, default)
        if (
            isinstance(found, bool)
            or not isinstance(found, int | float)
            or not least <= found <= most
        ):
            self.refuse(key, f"must be a number from {least} to {most}")
            return default
        return found

    def whole_number(self, key: str, default: int, least: int, most: int) -> int:
        found = self.value(key, default)
        if isinstance(found, bool) or not isinstance(found, int) or not least <= found <= most:
            self.refuse(key, f"must be a whole number from {least} to {most}")
            return default
        return found

    def flag(self, key: str, *, default: bool) -> bool:
        found = self.value(key, default)
        if not isinstance(found, bool):
            self.refuse(key, "must be true or false")
            return default
        return found


def _read(path: Path, content: Mapping[str, Any], problems: list[Problem]) -> Settings:
    server = _SettingsTable(path, "server", content, problems)
    listen = server.value("listen", "127.0.0.1:0")
    match = _LISTEN.fullmatch(listen) if isinstance(listen, str) else None
    if match is None or int(match[1]) > 65535:
        server.refuse("listen", 'must be "127.0.0.1:PORT"')
    approval = _SettingsTable(path, "approval", content, problems)
    mcp = _SettingsTable(path, "mcp", content, problems)
    history = _SettingsTable(path, "history", content, problems)
    vault = _SettingsTable(path, "vault", content, problems)
    return Settings(
        listen_port=int(match[1]) if match else 0,
        expires_seconds=int(approval.number("expires_seconds", 1800, 0, 30 * 86400)),
        hold_seconds=mcp.number("hold_seconds", 25.0, 0, 600),
        tools=_tools(mcp),
        console=_console(_SettingsTable(path, "console", content, problems)),
        log=_logging(_SettingsTable(path, "log", content, problems)),
        notify=_notify(_SettingsTable(path, "notify", content, problems)),
        launch=_launch(path, content.get("launch", {}), problems),
        paths=_paths(_SettingsTable(path, "launch", content, problems)),
        launch_hosts=_hosts(_SettingsTable(path, "launch", content, problems)),
        gateway=_gateway(_SettingsTable(path, "gateway", content, problems)),
        vault=VaultSettings(
            lock_minutes=vault.whole_number("lock_minutes", 60, *LOCK_MINUTES_RANGE)
        ),
        review_origins=_origins(_SettingsTable(path, "review", content, problems)),
        mirror=_mirror(_SettingsTable(path, "store", content, problems)),
        rehearse=_rehearse(_SettingsTable(path, "builtin", content, problems)),
        history_days=history.whole_number("days", 30, 0, MAX_HISTORY_DAYS),
    )


def _tools(table: _SettingsTable) -> tuple[str, ...]:
    found = table.value("tools", ["*"])
    if not _are_words(found):
        table.refuse("tools", 'must be a list of action names, such as ["issue-*", "send-draft"]')
        return ()
    return tuple(found)


_PATH_KEYS: Final = ("read", "write", "hide")


def parse_project_settings(path: Path, text: str) -> ProjectFile:
    """Return what a project's `aileron.toml` says.

    `[launch.<agent>]`, `[launch] hide` and `[mcp_proxy]` are all that it may hold.

    Raises:
        FileProblems: it is not TOML, or says something else.
    """
    problems: list[Problem] = []
    found = read_project_file(path, text, problems)
    if problems:
        raise FileProblems(problems)
    return found


def read_project_file(path: Path, text: str, problems: list[Problem]) -> ProjectFile:
    """Return what can be used of a project's `aileron.toml`; what is wrong with it is added to *problems*.

    Raises:
        FileProblems: it is not TOML.
    """
    try:
        content = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise FileProblems(
            [_problem(path, f"cannot be read: {error}", class_="parse_error")]
        ) from error
    only = "is not allowed in a project's aileron.toml; only [launch.<agent>], [launch] hide and [mcp_proxy] are"
    allowed = ("launch", "mcp_proxy")
    problems += [_problem(path, only, key) for key in content if key not in allowed]
    problems += _unknown(path, {key: each for key, each in content.items() if key == "launch"})
    found = _launch(path, content.get("launch", {}), problems)
    table = _SettingsTable(path, "launch", content, problems)
    for key in ("read", "write", "hosts"):
        if table.value(key, None) is not None:
            table.refuse(key, "is not allowed in a project's aileron.toml, which may only hide")
    hidden = table.value("hide", [])
    if not _are_words(hidden) or not all(map(_is_below, hidden)):
        table.refuse("hide", 'must be a list of paths in the project, such as [".env", "secrets"]')
        hidden = []
    proxy = read_proxy_settings(content, problems)
    return ProjectFile(launch=found, hide=tuple(hidden), proxy=proxy)


def _is_below(name: str) -> bool:
    path = PurePosixPath(name)
    return bool(path.parts) and not path.is_absolute() and not {"..", "~"} & {*path.parts}


def _paths(table: _SettingsTable) -> LaunchPaths:
    found: dict[str, tuple[str, ...]] = {}
    for key in _PATH_KEYS:
        words: Any = table.value(key, [])
        in_project = key == "hide"
        if not _are_words(words) or not all(
            each.startswith(("/", "~/")) or (in_project and _is_below(each)) for each in words
        ):
            what = " or are relative to the project" if in_project else ""
            table.refuse(key, f"must be a list of paths that begin with / or ~/{what}")
            words = []
        found[key] = tuple(words)
    return LaunchPaths(**found)


def _launch(path: Path, content: object, problems: list[Problem]) -> Mapping[str, LaunchSettings]:
    if not isinstance(content, Mapping):
        return {}
    found: dict[str, LaunchSettings] = {}
    for name, given in cast("Mapping[str, Any]", content).items():
        if name not in AGENT_NAMES:
            continue  # paths and hosts, or not known
        section = f"launch.{name}"
        if not isinstance(given, Mapping):
            problems.append(_problem(path, "must be a table with args and env", section))
            continue
        values = cast("Mapping[str, Any]", given)
        table = _SettingsTable(path, section, {section: values}, problems)
        args: object = values.get("args", [])
        env: object = values.get("env", {})
        if not _are_words(args):
            table.refuse("args", 'must be a list of strings, such as ["--verbose"]')
            args = []
        if not isinstance(env, Mapping) or not _are_words(
            [*cast("Mapping[str, Any]", env).values()]
        ):
            table.refuse("env", 'must be a table of strings, such as { NO_COLOR = "1" }')
            env = {}
        for key in sorted(values.keys() - {"args", "env"}):
            table.refuse(key, "is not a key here; the keys are args, env")
        variables = cast("Mapping[str, str]", env)
        found[name] = LaunchSettings(args=tuple(args), env=tuple(variables.items()))
    return found


def _hosts(table: _SettingsTable) -> tuple[str, ...]:
    found = table.value("hosts", [])
    if not _are_words(found) or not all(map(_is_host, found)) or len(found) > MAX_HOSTS:
        table.refuse(
            "hosts",
            f'must be a list of at most {MAX_HOSTS} names of hosts, such as ["github.com:443"]',
        )
        return ()
    return tuple(found)


def _origins(table: _SettingsTable) -> tuple[str, ...]:
    found = table.value("origins", [])
    valid = _are_words(found) and all(map(_ORIGIN.fullmatch, found)) and len(found) <= MAX_ORIGINS
    # A browser leaves the usual port out, so one that names it would never be met.
    if not valid or any(each.endswith(":443") for each in found):
        table.refuse(
            "origins",
            f'must be a list of at most {MAX_ORIGINS} origins, such as ["https://box.example"]: '
            "https, in lower case, without a path or the port 443",
        )
        return ()
    return tuple(found)


def _is_host(text: str) -> bool:
    return bool(_HOST.fullmatch(text)) and int(text.partition(":")[2] or 443) <= 65535


def _are_words(found: object) -> TypeGuard[list[str]]:
    return isinstance(found, list) and all(map(_is_word, cast("list[Any]", found)))


def _logging(table: _SettingsTable) -> LogSettings:
    level = table.value("level", "info")
    if level not in _LEVELS:
        table.refuse("level", f"must be one of {', '.join(_LEVELS)}")
        level = "info"
    return LogSettings(
        level=level,
        max_mib=table.number("max_mib", 2.0, 0.1, 1024),
        keep=int(table.number("keep", 3, 1, 100)),
    )


def _notify(table: _SettingsTable) -> NotifySettings:
    osc9 = table.value("osc9", "auto")
    if osc9 not in _OSC9:
        table.refuse("osc9", f"must be one of {', '.join(_OSC9)}")
        osc9 = "auto"
    found = table.value("command", [])
    words = cast("list[Any]", found) if isinstance(found, list) else None
    usable = words is not None and len(words) <= MAX_COMMAND and all(map(_is_word, words))
    if words is None or not usable or words[:1] == [""]:
        table.refuse(
            "command", 'must be a list of strings, such as ["notify-send", "{count} calls wait"]'
        )
        words = []
    return NotifySettings(osc9=osc9, command=tuple(words))


def _is_word(found: object) -> bool:
    return isinstance(found, str) and "\0" not in found


def _rehearse(table: _SettingsTable) -> Rehearse:
    bash = table.value("bash", {})
    if not isinstance(bash, Mapping):
        table.refuse("bash", "must be a table with rehearse")
        return "ask"
    values = cast("Mapping[str, Any]", bash)
    for key in sorted(values.keys() - {"rehearse"}):
        table.refuse(f"bash.{key}", "is not a key here; the key is rehearse")
    found = values.get("rehearse", "ask")
    if found not in _REHEARSE:
        table.refuse("bash.rehearse", f"must be one of {', '.join(_REHEARSE)}")
        return "ask"
    return found


def _mirror(table: _SettingsTable) -> str:
    found = table.value("mirror", "")
    if not is_base_url(found) or str(found).lower().startswith("http:"):
        table.refuse("mirror", 'must be an https URL, such as "https://files.example.com/aileron"')
        return ""
    return found


def _gateway(table: _SettingsTable) -> GatewaySettings:
    urls = {key: table.value(key, "") for key in ("anthropic", "openai", "gemini")}
    for key, url in urls.items():
        if not is_base_url(url):
            table.refuse(key, 'must be a base URL, such as "https://models.example.com"')
            urls[key] = ""
    file = table.value("ca_file", "")
    if not isinstance(file, str) or (file and not _is_own_file(file)):
        table.refuse("ca_file", "must be the absolute path of a PEM file with certificates")
        file = ""
    return GatewaySettings(
        **urls,
        ca_file=file,
        require_unlocked=table.flag("require_unlocked", default=False),
        inspect=table.flag("inspect", default=False),
    )


def _is_own_file(name: str) -> bool:
    return "\0" not in name and Path(name).is_absolute() and Path(name).is_file()


def is_base_url(found: object) -> bool:
    """Return whether *found* is a text that is empty or an http URL without user, query and fragment."""
    if not isinstance(found, str) or not re.fullmatch(r"[!-~]*", found):
        return False
    try:
        parts = urlsplit(found)
        port = parts.port
    except ValueError:
        return False
    named = parts.scheme in ("http", "https") and bool(parts.hostname) and port != 0
    return not found or (named and not {"@", "?", "#"} & set(found))


def _console(table: _SettingsTable) -> ConsoleSettings:
    theme = table.value("theme", "auto")
    if not isinstance(theme, str) or not theme:
        table.refuse("theme", 'must be "auto" or the name of a theme')
        theme = "auto"
    glyphs = table.value("glyphs", "auto")
    if glyphs not in _GLYPHS:
        table.refuse("glyphs", f"must be one of {', '.join(_GLYPHS)}")
        glyphs = "auto"
    return ConsoleSettings(
        theme=theme,
        glyphs=glyphs,
        arm_ms=int(table.number("arm_ms", 400, *ARM_MS_RANGE)),
        bell=table.flag("bell", default=True),
        lock_minutes=int(table.number("lock_minutes", 0, *LOCK_MINUTES_RANGE)),
        keys=_keys(table),
    )


def _keys(table: _SettingsTable) -> tuple[tuple[str, str], ...]:
    found = table.value("keys", {})
    if not isinstance(found, Mapping):
        table.refuse("keys", 'must be a table of keys, such as { approve = "a" }')
        return ()
    keys = cast("Mapping[str, Any]", found)
    for name, key in keys.items():
        if not isinstance(key, str) or not key:
            table.refuse(f"keys.{name}", 'must be the name of one key, such as "a"')
    return tuple((name, key) for name, key in keys.items() if isinstance(key, str) and key)
