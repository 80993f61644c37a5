"""Which of the person's paths a sandbox may have, and why not: of `[launch]`, its options, and MCP servers.

A path counts as it is written, never as a link leads: an agent could have made the link.
"""

import os
import re
import stat
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from aileron_core.containment.git.repository import scan_project
from aileron_core.containment.mounts import Mount
from aileron_core.containment.programs import SYSTEM_FOLDERS, own_code_folders
from aileron_core.containment.safe_paths import PROTECTED_NAMES
from aileron_core.errors import Forbidden, NotFound
from aileron_core.settings import LaunchPaths

CREDENTIALS = (
    ".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".netrc", ".git-credentials", ".npmrc",
    ".pypirc", ".pgpass", ".my.cnf", ".vault-token", ".password-store", ".mozilla", ".thunderbird",
    ".cargo/credentials.toml", ".terraform.d", ".config/gcloud", ".config/gh", ".config/hub",
    ".config/glab-cli", ".config/op", ".config/rclone", ".config/sops", ".config/git/credentials",
    ".config/google-chrome", ".config/chromium", ".config/BraveSoftware", ".config/containers",
    ".local/share/keyrings", ".local/share/kwalletd", ".local/share/password-store", "snap",
    ".claude", ".claude.json", ".codex", ".gemini", ".pi", ".local/share/opencode", ".config/goose",
)  # fmt: skip
"""Where programs keep credentials in the home; docs/launch.md#more-paths lists what they are for."""
_PROFILES = (
    ".profile", ".bash_profile", ".bash_login", ".bashrc", ".bash_logout", ".bash_aliases",
    ".zshenv", ".zprofile", ".zshrc", ".zlogin", ".zlogout", ".config/fish/config.fish", ".inputrc",
    ".xprofile", ".xsessionrc", ".xinitrc", ".gitconfig", ".config/git/config", ".vimrc", ".tmux.conf",
)  # fmt: skip
"""What a login or a tool reads in the home; a person may keep these elsewhere, behind links."""
_SOURCED = re.compile(r"(?:^|[;&|]|\bthen\b|\bdo\b)\s*(?:source|\.)\s+[\"']?([^\s\"';&|]+)")
_CACHES = ("UV_CACHE_DIR", "PIP_CACHE_DIR", "npm_config_cache", "NPM_CONFIG_CACHE", "CARGO_HOME", "GOPATH",
           "GOMODCACHE", "GOCACHE", "PNPM_HOME", "YARN_CACHE_FOLDER", "XDG_CACHE_HOME", "XDG_CONFIG_HOME",
           "XDG_DATA_HOME")  # fmt: skip
"""Variables that name a folder whose content runs, or is obeyed, outside."""
_SPECIAL = tuple(Path("/", name) for name in ("proc", "sys", "dev", "run", "var/run", "boot"))
_SHARED = tuple(Path("/", name) for name in ("tmp", "var/tmp", "dev/shm"))
_SOCKET_SECONDS = 3.0
"""For looking through one folder for sockets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedPaths:
    """What a sandbox has of the paths that a person named."""

    mounts: tuple[Mount, ...] = ()
    """Those that are read, and those that are hidden."""
    writable: tuple[Path, ...] = ()
    notices: tuple[str, ...] = ()
    """A sentence each, not yet escaped."""

    def refuse_writing(self, programs: Iterable[Mount]) -> None:
        """Refuse that an agent may write what its own settings outside run: hooks, for one.

        Raises:
            Forbidden: names the path and the program.
        """
        for folder in self.writable:
            for mount in programs:
                for path in (mount.path, (mount.source or mount.path).resolve()):
                    if path.is_relative_to(folder.resolve()):
                        raise Forbidden(
                            f"An agent may not write {folder}: {path} is {mount.why}, and runs "
                            "outside too. Nothing was started."
                        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PathChecker:
    """Checks the paths of one launch, or of one server."""

    home: Path
    project: Path | None
    """None for a server, which has none; what is protected in its folders it has only where a person lists that."""
    aileron_home: Path
    env: Mapping[str, str]
    tools: tuple[Mount, ...]
    """The mounts of the person's tools: what is on PATH."""

    def check(
        self, settings: LaunchPaths, options: LaunchPaths, of_project: Iterable[str]
    ) -> CheckedPaths:
        """Check a launch's paths: of `config.toml`, those that were typed, and those that the project hides.

        Raises:
            Forbidden: a path may not be mounted or hidden.
            NotFound: a path that was typed does not exist.
        """
        mounts: dict[Path, Mount] = {}
        writable: dict[Path, None] = {}
        notices: list[str] = []
        for how in ("read", "write"):
            for text, is_typed in _both(getattr(settings, how), getattr(options, how)):
                path = self._expand(text)
                if not os.path.lexists(path):
                    if is_typed:
                        raise NotFound(f"{path} does not exist. Check --{how}.")
                    notices.append(
                        f"{path} does not exist, so it is not in the sandbox (`{how}` in config.toml)."
                    )
                    continue
                real = self.real(path)
                if self._is_there(real, how):
                    continue
                self.refuse(path, real, how, is_typed=is_typed)
                if how == "write":
                    writable[path] = None
                    continue
                if is_typed and any(real.is_relative_to(each) for each in self._credentials()):
                    notices.append(f"The agent can read {path}, where credentials are kept.")
                why = (
                    "you let every agent read it" if not is_typed else "you let this agent read it"
                )
                source = None if real == path else real
                mounts[path] = Mount(path=path, how="read-only", why=why, source=source)
        hidden = [
            (self._expand(text), why)
            for texts, why in (
                (settings.hide, "your config.toml hides it"),
                (options.hide, "--hide"),
                (of_project, "the project's aileron.toml hides it"),
            )
            for text in texts
        ]
        covers = [each for path, why in hidden if (each := self._hidden(path, why)) is not None]
        for cover in covers:
            if not any(each.path in cover.path.parents for each in covers):
                mounts[cover.path] = cover
        return CheckedPaths(
            mounts=tuple(mounts.values()), writable=tuple(writable), notices=tuple(notices)
        )

    def _expand(self, text: str) -> Path:
        assert self.project is not None
        path = self.home / text[2:] if text.startswith("~/") else self.project / text
        return Path(os.path.normpath(self.home if text == "~" else path))

    def real(self, path: Path) -> Path:
        """Return *path* with the home's own links resolved.

        Raises:
            Forbidden: another link is on the way.
        """
        real = Path(os.path.realpath(path))  # it may be a loop of links
        plain = path
        if path.is_relative_to(self.home):
            plain = self.home.resolve() / path.relative_to(self.home)
        if real != plain:
            raise Forbidden(
                f"{path} is behind a link, which an agent could change. Name {real} itself."
            )
        return real

    def _is_there(self, real: Path, how: str) -> bool:
        """Return whether the sandbox has *real* anyway."""
        if how == "read" and any(real.is_relative_to(each) for each in SYSTEM_FOLDERS):
            return True
        return self.project is not None and real.is_relative_to(self.project)

    def _credentials(self) -> list[Path]:
        home = self.home.resolve()
        return [(home / name).resolve() for name in CREDENTIALS]

    def refuse(
        self, path: Path, real: Path, how: Literal["read", "write"], *, is_typed: bool = False
    ) -> None:
        """Raise if *path*, which is *real*, may not be in the sandbox.

        Raises:
            Forbidden: says why.
        """
        home, aileron = self.home.resolve(), self.aileron_home.resolve()
        reason = ""
        if home.is_relative_to(real):
            reason = "it contains your home folder"
        elif aileron.is_relative_to(real) or real.is_relative_to(aileron):
            reason = "it contains Aileron's home, or is in it"
        elif any(each.is_relative_to(real) for each in (*_SPECIAL, *_SHARED)) or any(
            real.is_relative_to(each) for each in _SPECIAL
        ):
            reason = "the system keeps sockets and devices there"
        elif not (real.is_dir() or real.is_file()):
            reason = "it is neither a file nor a folder"
        elif inner := [
            each
            for each in self._credentials()
            if each.is_relative_to(real) and each != real and each.exists()
        ]:
            reason = f"it contains {inner[0]}, where credentials are kept; name what you need of it"
        elif (how == "write" or not is_typed) and any(
            real.is_relative_to(each) for each in self._credentials()
        ):
            reason = "credentials are kept there"
            if self.project is not None:
                reason += "; --read on the command line allows it for one launch"
        if not reason and how == "write":
            reason = self._why_not_written(real)
        if not reason and (socket := _socket_in(real)) is not None:
            reason = f"{socket} is a socket, which leads to the program behind it"
        if reason:
            who = "A server" if self.project is None else "An agent"
            raise Forbidden(f"{who} may not {how} {path}: {reason}. Nothing was started.")

    def _why_not_written(self, real: Path) -> str:
        """Return why an agent may not write *real*: something outside would run or obey it."""
        home = self.home.resolve()
        if any(real.is_relative_to(each) for each in SYSTEM_FOLDERS):
            return "it belongs to the system"
        if real.is_relative_to(home) and real.relative_to(home).parts[0].startswith("."):
            return "your programs keep settings, caches and tools in such hidden folders, and use them outside"
        if self.project is not None and self.project.is_relative_to(real):
            return "it contains the project"
        for outside, why in self._used_outside():
            if outside.is_relative_to(real) or real.is_relative_to(outside):
                return f"{outside} {why}"
        if not real.is_dir() and real.stat().st_nlink > 1:
            return "it has other names, which share its content"
        if self.project is None:
            return ""
        if set(PROTECTED_NAMES) & {*real.parts} or ".git" in real.parts:
            return "your own tools act on it"
        if not real.is_dir():
            return ""
        if (scan := scan_project(real)).git_entries + scan.repository_shaped:
            return "it contains git repositories; launch the agent in them instead"
        return ""

    def _used_outside(self) -> Iterator[tuple[Path, str]]:
        """Yield what runs or is obeyed outside, and why."""
        home = self.home.resolve()
        for folder in self.env.get("PATH", os.defpath).split(os.pathsep):
            if Path(folder).is_absolute():
                yield Path(folder), "is on PATH"
                yield Path(os.path.realpath(folder)), "is on PATH"  # it may be a loop of links
        for mount in self.tools:
            yield mount.source or mount.path, "is a program that you use"
            yield mount.path, "is a program that you use"
        for folder in own_code_folders():
            yield folder, "is Aileron's own code"
        for name in _PROFILES:
            file = home / name
            if not file.exists():
                continue
            yield file.resolve(), "is read when you log in or start a program"
            for sourced in _sourced(file, home):
                yield sourced, f"is read by {file}"
        for name in _CACHES:
            if Path(self.env.get(name, "")).is_absolute():
                yield Path(os.path.realpath(self.env[name])), f"is used outside ({name})"
        for name in ("go", "snap", "Library"):
            yield home / name, "is used by your own programs"

    def _hidden(self, path: Path, why: str) -> Mount | None:
        """Return what covers *path*; None if there is nothing.

        Raises:
            Forbidden: it is, or contains, what a session cannot do without.
        """
        try:
            real = path.resolve(strict=True)
        except (OSError, RuntimeError):  # RuntimeError: a loop of links
            return None
        assert self.project is not None
        needed = (self.project, self.project / ".git", self.home.resolve(), *own_code_folders())
        if any(each.is_relative_to(real) for each in needed) or (
            ".git" in real.parts or any(each.is_relative_to(real) for each in SYSTEM_FOLDERS)
        ):
            raise Forbidden(f"{path} cannot be hidden: a session needs it. Nothing was started.")
        return Mount(path=real, how="hidden", why=why)


def _both(settings: tuple[str, ...], options: tuple[str, ...]) -> Iterator[tuple[str, bool]]:
    """Yield each path and whether it was typed."""
    yield from ((each, False) for each in settings)
    yield from ((each, True) for each in options)


def _sourced(file: Path, home: Path) -> Iterator[Path]:
    """Yield the files that a shell's profile names behind `source` or `.`."""
    try:
        if not stat.S_ISREG(file.stat().st_mode):
            return
        text = file.read_text("utf-8", "replace")[:1_000_000]
    except OSError:
        return
    for match in _SOURCED.finditer(text.replace("\n", ";")):
        name = re.sub(r"^(~|\$HOME|\$\{HOME\})(?=/)", lambda _: str(home), match[1])
        if name.startswith("/") and "$" not in name:
            yield Path(os.path.realpath(name))


def _socket_in(path: Path) -> Path | None:
    """Return a socket in the folder *path*, None if none was found in time."""
    deadline = time.monotonic() + _SOCKET_SECONDS
    for folder, _, files in os.walk(path):
        for name in files:
            try:
                if stat.S_ISSOCK(os.lstat(f"{folder}/{name}").st_mode):
                    return Path(folder, name)
            except OSError:  # gone meanwhile
                continue
        if time.monotonic() > deadline:
            return None
    return None
