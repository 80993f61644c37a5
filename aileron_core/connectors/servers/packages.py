"""Installing an MCP server that a person starts with `npx` or `uvx`: one exact version, fetched once, in a box.

The box reaches the registries of the person's own settings and nothing else, and has none of their
credentials. No script of a package runs in it. What was installed is started by its interpreter, never
through `npx` or `uvx` again.
"""

import configparser
import importlib.metadata
import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from ipaddress import ip_network
from pathlib import Path, PurePath
from typing import Any, Final, Literal, TypeVar
from urllib.parse import urlsplit

from aileron_core.actions.catalog import read_plain
from aileron_core.connectors.http.addresses import AddressGuard, Resolver
from aileron_core.connectors.network.host_resolver import HTTPS_PORT
from aileron_core.connectors.servers.box import BoxedServers
from aileron_core.connectors.servers.started import Mode
from aileron_core.connectors.servers.table import TREE, ServerTable
from aileron_core.connectors.servers.trees import BadTree, keep_tree, packages_root
from aileron_core.connectors.store import staging
from aileron_core.containment.mounts import Mount
from aileron_core.containment.programs import own_interpreter
from aileron_core.errors import Forbidden, InvalidRequest, NotFound, Unavailable
from aileron_core.text import escape

_T = TypeVar("_T")
_CONTAINERS: Final = ("docker", "podman", "nerdctl")
_NPM_SPEC = re.compile(
    r"((?:@[a-z0-9~][\w.~-]*/)?[a-z0-9][\w.~-]*)(?:@([\w.+~^<>=*-]+))?", re.ASCII | re.IGNORECASE
)
_PYPI_SPEC = re.compile(
    r"([a-z0-9](?:[\w.-]*[a-z0-9])?)(\[[\w.,-]+\])?(?:@([\w.+!-]+)|([=~<>!]=?[\w.+!*,<>=~-]+))?",
    re.ASCII | re.IGNORECASE,
)
_REFUSED_LOGIN = re.compile(r"\bE?40[13]\b")
_PLACE: Final = "/package"
"""Where the package lies in the box: always the same, as installers write it into files."""
_SECONDS: Final = 600
_TAIL: Final = 2000
"""Characters of what an installer printed last that a person sees."""
_RELEASE_AGE: Final = "min-release-age"
_MAX_STATED: Final = 1024 * 1024
_NPM: Final = (
    f"install --prefix {_PLACE} --ignore-scripts --no-audit --no-fund --no-update-notifier "
    "--omit-lockfile-registry-resolved --loglevel=error --cache=/tmp/cache "
    "--fetch-retry-mintimeout=500 --fetch-retry-maxtimeout=2000"
).split()
_PIP: Final = (
    f"install --target {_PLACE} --only-binary :all: --quiet --no-compile --no-cache-dir --no-input "
    "--disable-pip-version-check"
).split()
_RUN_PIP: Final = (
    "import subprocess, sys, venv; venv.create('/tmp/pip', symlinks=True, with_pip=True); "
    "sys.exit(subprocess.call(['/tmp/pip/bin/python', '-m', 'pip', *sys.argv[1:]]))"
)
"""pip, whether or not the interpreter has it."""
_COMPILE: Final = (
    "import compileall, py_compile; mode = py_compile.PycInvalidationMode.UNCHECKED_HASH; "
    f"compileall.compile_dir({_PLACE!r}, quiet=2, invalidation_mode=mode)"
)
"""Bytecode that is the same each time: nothing can be compiled where the server runs."""
_ENTRY: Final = "aileron-entry.py"
"""Starts a Python package's program. It lies among the modules, and is none that can be imported."""
_START: Final = """\
import site
import sys

site.setquit()
site.addsitedir(sys.path[0])
from {module} import {name}

if __name__ == "__main__":
    sys.argv[0] = {command!r}
    sys.exit({called}())
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class PackageRequest:
    """The package whose program a command runs through `npx` or `uvx`."""

    registry: Literal["npm", "pypi"]
    name: str
    extras: str = ""
    """Of a Python package, with their brackets."""
    version: str = ""
    """As the command has it: of npm a version, range or tag, of PyPI a specifier; empty for the newest."""
    command: str = ""
    """Which program of the package; empty for the one that has the package's name."""
    args: tuple[str, ...] = ()


def package_request(run: Sequence[str]) -> PackageRequest | None:
    """Return the package that the command *run* would fetch and start; None of another command, or of none.

    Raises:
        InvalidRequest: it starts a container, or has an option or a package that is not understood.
    """
    if not run:
        return None
    runner, words = Path(run[0]).name, list(run[1:])
    if runner in _CONTAINERS:
        raise InvalidRequest(
            f"{runner} has another program start a container, outside Aileron's box: its files and "
            "hosts would not be held to what you list. Name the server's own package or program."
        )
    if runner == "uv" and words[:2] == ["tool", "run"]:
        runner, words = "uvx", words[2:]
    if runner not in ("npx", "uvx"):
        return None
    names, ignored = (
        (("-p", "--package"), ("-y", "--yes")) if runner == "npx" else (("--from",), ())
    )
    spec = command = ""
    while words and words[0].startswith("-"):
        option, _, value = words.pop(0).partition("=")
        if option in ignored and not value:
            continue
        if option not in names or spec:
            raise InvalidRequest(
                f"{runner} {option}: Aileron does not know what that would run. It understands "
                f"{' and '.join((*ignored, names[-1]))}, then a package and its arguments."
            )
        spec = value or (words.pop(0) if words else "")
    if spec and words:
        command = words.pop(0)
    spec = spec or (words.pop(0) if words else "")
    return _request(runner, spec, command, tuple(words))


def _request(runner: str, spec: str, command: str, args: tuple[str, ...]) -> PackageRequest:
    if runner == "npx" and (found := _NPM_SPEC.fullmatch(spec)):
        name, version = found[1], "" if found[2] in (None, "latest") else found[2]
        return PackageRequest(
            registry="npm", name=name, version=version, command=command, args=args
        )
    if runner == "uvx" and (found := _PYPI_SPEC.fullmatch(spec)):
        version = found[4] or ("" if found[3] in (None, "latest") else f"=={found[3]}")
        return PackageRequest(
            registry="pypi", name=re.sub(r"[-_.]+", "-", found[1]).lower(), extras=found[2] or "",
            version=version, command=command or found[1], args=args,
        )  # fmt: skip
    raise InvalidRequest(
        f"{runner} {spec}".rstrip()
        + ": write a package of the registry, as NAME or NAME@VERSION. Aileron "
        "installs nothing from a folder, an address or a repository."
    )


def installed(
    home: Path,
    table: ServerTable,
    say: Callable[[str], None],
    *,
    env: Mapping[str, str] = os.environ,
    resolver: Resolver | None = None,
) -> ServerTable:
    """Return *table* with the newest version of its package, where it has one; blocks while that is fetched.

    It is fetched into the store with all that it needs, if it is not there.

    Args:
        home: Aileron's.
        say: is told what is fetched, and from where.
        env: the person's environment.
        resolver: another one is for tests, in process only.

    Raises:
        NotFound: npm or Node is not installed, or the package has no such program.
        Forbidden: its registry takes a login, or is not reached over TLS.
        Unavailable: it could not be fetched, or this machine makes no box; says why.
        HomeError: the store cannot be written.
    """
    request = package_request(table.run)
    if request is None:
        return table
    with staging(packages_root(home)) as folder:
        box = _Installer(home, folder, say, env, resolver)
        install = box.install_npm if request.registry == "npm" else box.install_pypi
        try:
            version, program = install(request)
            tree = keep_tree(home, folder)
        except BadTree as error:
            raise Unavailable(
                f"The package {request.name} {error}. Nothing was installed."
            ) from None
    return replace(
        table,
        package=f"{request.registry}:{request.name}@{version}",
        tree=tree,
        program=(*program, *request.args),
    )


class _Installer(BoxedServers):
    """Runs installers in a box with the folder of the package, the programs that it needs, and registries.

    A registry's name may lead to any address: it is the person's own, and nothing that is fetched runs here.
    """

    def __init__(
        self,
        home: Path,
        folder: Path,
        say: Callable[[str], None],
        env: Mapping[str, str],
        resolver: Resolver | None,
    ) -> None:
        super().__init__(
            home, Path(env.get("HOME") or Path.home()), env, tree=Path, refused=self._note,
            resolver=resolver, guard=AddressGuard([ip_network("0.0.0.0/0"), ip_network("::/0")]),
        )  # fmt: skip
        self._folder = folder
        self._say = say
        self._shown: list[Mount] = []
        self._hosts: dict[str, None] = {}
        self._problems: dict[str, str] = {}

    def _note(self, name: str, host: str, problem: str) -> None:
        self._problems[host] = problem or "is no registry of your settings"

    def _files(self, table: ServerTable, mode: Mode) -> Iterator[Mount]:
        yield Mount(path=Path(_PLACE), how="writable", why="the package", source=self._folder)
        yield from self._shown

    def install_npm(self, request: PackageRequest) -> tuple[str, list[str]]:
        """Install a package of npm's; return its version, and what starts its program."""
        node, npm = self._find("node"), self._find("npm")
        if node is None or npm is None:
            raise NotFound(
                f"{request.name} needs Node and npm, which are not on PATH. Install them."
            )
        options = self._configured(self._npm_settings([str(node), str(npm)]))
        self._shown.append(Mount(path=npm.parents[1], how="read-only", why="npm"))
        spec = f"{request.name}@{request.version or 'latest'}"
        self._run([str(node), str(npm), *_NPM, *options, spec], spec, hosts=self._hosts)
        place = Path("node_modules", request.name)
        try:
            stated: Any = json.loads(read_plain(self._folder / place / "package.json", _MAX_STATED))
            entry = os.path.normpath(place / _bin(request, stated.get("bin")))
            file = (self._folder / entry).resolve()
            if not file.is_relative_to(self._folder.resolve()) or not file.is_file():
                raise BadTree("names a file that it does not have as its program")
            with file.open("rb") as opened:
                first = opened.readline(_MAX_STATED).decode("utf-8", "replace").split()
            version = str(stated["version"])
        except BadTree:
            raise
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise BadTree("does not say which file its program is") from None
        flags: list[str] = []
        if first and first[0].startswith("#!"):
            names = [PurePath(word.removeprefix("#!")).name for word in first]
            if "node" not in names:
                raise BadTree("has a program that Node does not run")
            flags = first[names.index("node") + 1 :]
        return version, [str(node), *flags, f"{TREE}/{entry}"]

    def install_pypi(self, request: PackageRequest) -> tuple[str, list[str]]:
        """Install a package of PyPI's with pip; return its version, and what starts its program."""
        python = str(own_interpreter())
        spec = f"{request.name}{request.extras}{request.version}"
        options = self._configured(_pip_settings(self._env, self._person))
        words = [python, "-I", "-c", _RUN_PIP, *_PIP, *options, spec]
        env = {"PIP_CONFIG_FILE": os.devnull}
        self._run(words, f"{spec} (wheels alone)", hosts=self._hosts, env=env)
        self._run([python, "-S", "-c", _COMPILE], spec, env={"PYTHONHASHSEED": "0"})
        try:
            (found,) = importlib.metadata.distributions(name=request.name, path=[str(self._folder)])
            entries = found.entry_points.select(group="console_scripts")
            called = _chosen({each.name: each for each in entries}, request, request.command)
            name = called.attr.partition(".")[0]
            start = _START.format(
                module=called.module, name=name, called=called.attr, command=called.name
            )
            with (self._folder / _ENTRY).open("x", encoding="utf-8") as file:
                file.write(start)
            return found.version, [python, "-S", f"{TREE}/{_ENTRY}"]
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            raise BadTree("does not say what its program is") from None

    def _find(self, name: str) -> Path | None:
        """Return the person's program *name*, without the links on the way; None where it is not on PATH."""
        folders = [
            each for each in self._env.get("PATH", "").split(os.pathsep) if Path(each).is_absolute()
        ]
        found = shutil.which(name, path=os.pathsep.join(folders)) if folders else None
        return Path(found).resolve() if found else None

    def _configured(self, settings: Iterable[tuple[str, str]]) -> list[str]:
        """Return the person's *settings* as an installer's options, and have in the box what they name."""
        options: list[str] = []
        for name, value in settings:
            options.append(f"--{name}={value}")
            if name != _RELEASE_AGE:  # the others are places
                self._reach(value)
        return options

    def _reach(self, place: str) -> None:
        """Have *place* in the box, a URL or a path that the person's settings name.

        Raises:
            Forbidden: it is reached with a login, or without TLS.
        """
        url = urlsplit(place)
        if url.username is not None:
            raise _login(f"Your settings name {url.hostname} with a login")
        if url.scheme == "https" and url.hostname:
            self._hosts[f"{url.hostname}:{url.port or HTTPS_PORT}"] = None
            if url.hostname == "pypi.org":
                self._hosts[f"files.pythonhosted.org:{HTTPS_PORT}"] = None
        elif url.scheme in ("", "file") and Path(url.path).is_absolute():
            path = Path(url.path)
            if path.exists():
                why = "your settings name it"
                self._shown.append(
                    Mount(path=path, how="read-only", why=why, source=path.resolve())
                )
        else:
            raise Forbidden(
                f"Your settings name the registry {place}. Aileron installs over https alone."
            )

    def _run(
        self,
        program: Sequence[str],
        what: str,
        *,
        hosts: Iterable[str] = (),
        env: Mapping[str, str] | None = None,
    ) -> None:
        """Run an installer of *what* to its end, which reaches *hosts*.

        Raises:
            Unavailable: it failed; the message has what it printed last.
            Forbidden: the registry wants a login.
        """
        if hosts:
            self._say(f"Fetching {what} from {', '.join(hosts)}.")
        table = ServerTable(program=tuple(program), env=env or {}, hosts=tuple(hosts))
        started = self.start("", table, "write", {})
        try:
            output, errors = started.process.communicate(timeout=_SECONDS)
        except subprocess.TimeoutExpired:
            raise Unavailable(f"{what} was not installed within {_SECONDS} s. Try again.") from None
        finally:
            started.stop()
        if started.process.returncode == 0:
            return
        said = (errors or output).decode("utf-8", "replace")
        if _REFUSED_LOGIN.search(said):
            raise _login(f"The registry asks for a login for {what}")
        lines = [escape(line) for line in said[-_TAIL:].splitlines()]
        lines += [f"{escape(host)} {problem}" for host, problem in self._problems.items()]
        raise Unavailable("\n".join((f"{what} could not be installed:", *lines)))

    def _npm_settings(self, npm: list[str]) -> Iterator[tuple[str, str]]:
        """Yield what the person's settings of npm say of packages, and none of a project's; a secret is masked.

        The list is the one for people: that in JSON leaves out a registry with a login, as if there was none.
        """
        try:
            said = subprocess.run(
                [*npm, "config", "list"], env=self._env, cwd="/", timeout=60, check=True, text=True,
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            ).stdout  # fmt: skip
        except (OSError, ValueError, subprocess.SubprocessError):
            raise Unavailable("`npm config list` fails. Correct the settings of npm.") from None
        lines = (line.partition(" = ") for line in said.splitlines() if not line.startswith(";"))
        stated = {key: value.strip('"') for key, _, value in lines}
        for key, value in {"registry": "https://registry.npmjs.org/", **stated}.items():
            if key in (_RELEASE_AGE, "cafile") or key.endswith("registry"):
                yield key, value


def _login(why: str) -> Forbidden:
    return Forbidden(
        f"{why}, and Aileron takes none into the box in which it installs a server. Install the server "
        "yourself, and add its program by its absolute path."
    )


def _bin(request: PackageRequest, stated: Any) -> str:
    """Return the file of the program that is asked for, as `npx` finds it.

    Raises:
        NotFound: there is none of that name.
    """
    own = request.name.rpartition("/")[2]
    programs: dict[str, str] = {own: stated} if isinstance(stated, str) else dict(stated or {})
    if not request.command and len({*programs.values()}) == 1:
        return next(iter(programs.values()))
    return _chosen(programs, request, request.command or own)


def _chosen(programs: Mapping[str, _T], request: PackageRequest, name: str) -> _T:
    if name in programs:
        return programs[name]
    others = ", ".join(escape(each) for each in sorted(programs)) or "none"
    option = "--package" if request.registry == "npm" else "--from"
    raise NotFound(
        f"The package {request.name} has no program {name}. Its programs: {others}. Name one of them "
        f"with {option} {request.name} PROGRAM."
    )


def _pip_settings(env: Mapping[str, str], person: Path) -> Iterator[tuple[str, str]]:
    """Yield where pip finds packages: an option and its value.

    Raises:
        Unavailable: its settings cannot be read.
    """
    parser = configparser.RawConfigParser(strict=False, allow_no_value=True)
    files = (
        "/etc/xdg/pip/pip.conf",
        "/etc/pip.conf",
        *(person / each / "pip.conf" for each in (".pip", ".config/pip")),
    )
    try:
        parser.read([*files, env.get("PIP_CONFIG_FILE") or os.devnull], "utf-8")
    except (OSError, ValueError, configparser.Error):
        raise Unavailable("The settings of pip cannot be read. Correct them.") from None
    stated = {"index-url": "https://pypi.org/simple"} | {
        key.replace("_", "-"): value
        for section in ("global", "install")
        if parser.has_section(section)
        for key, value in parser.items(section)
    }
    for option in ("index-url", "extra-index-url", "find-links", "constraint", "cert"):
        value = env.get(f"PIP_{option.replace('-', '_').upper()}") or stated.get(option) or ""
        for place in value.split():
            yield option, place
