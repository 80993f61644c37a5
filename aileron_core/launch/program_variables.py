"""Which variables an agent's program names, of those that a launch would leave out.

An agent's table of routes says what is known to choose its model, address or key. Programs change
every week: what no table knows yet would be lost without a word, so the program itself is searched.
"""

import mmap
import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path

from aileron_core.containment.programs import script_interpreter
from aileron_core.launch.agents.settings_files import json_table, table_at
from aileron_core.launch.plan import Agent

_MODULES = "node_modules"
_CODE = frozenset(("", ".exe", ".js", ".cjs", ".mjs"))
"""Suffixes of files with code; a binary often has none."""

_CHOOSE_NOTHING = (
    # the shell and its session
    "_", "HOME", "PATH", "PWD", "OLDPWD", "SHLVL", "HOSTNAME", "HOSTTYPE", "MACHTYPE", "OSTYPE", "HOST", "NAME",
    "MAIL", "HIST*", "PS[0-4]", "PROMPT*", "RPROMPT", "BASH*", "ZSH*", "ZDOTDIR", "FISH*", "ENV", "FPATH", "IFS",
    "LS_COLORS", "LSCOLORS", "CLICOLOR*", "FORCE_COLOR", "EDITOR", "VISUAL", "PAGER", "MANPAGER", "MANPATH",
    "INFOPATH", "LESS*", "BROWSER", "TMPDIR", "TMP", "TEMP", "UID", "EUID", "GROUPS", "PPID", "CI",
    "SUDO_*", "SSH_*", "GPG_*", "PINENTRY_*", "PAM_*", "KRB5CCNAME",
    # terminals
    "TERM_*", "TERMCAP", "TERMINFO*", "TERMINAL*", "COLORFGBG", "VTE_VERSION", "TMUX*", "STY", "WINDOW", "WINDOWID",
    "ZELLIJ*", "KITTY_*", "WEZTERM_*", "ALACRITTY_*", "GHOSTTY_*", "ITERM_*", "LC_*", "KONSOLE_*", "GNOME_*",
    "TILIX_ID", "WT_*", "WSL*", "VSCODE_*", "INSIDE_EMACS", "NVIM*", "VIM*", "CLAUDECODE",
    # desktops and services
    "DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "DESKTOP_*", "SESSION_MANAGER", "DBUS_*", "XDG_SE*",
    "XDG_RUNTIME_DIR", "XDG_VTNR", "XDG_MENU_PREFIX", "XDG_*_DIRS", "XDG_CACHE_HOME", "XDG_CURRENT_DESKTOP", "KDE_*", "GTK_*", "GDK_*", "QT_*", "XCURSOR_*",
    "XMODIFIERS", "*_IM_MODULE", "INVOCATION_ID", "JOURNAL_STREAM", "MANAGERPID*", "SYSTEMD_*", "MEMORY_PRESSURE_*",
    # compilers, languages and their tools
    "NVM_*", "FNM_*", "VOLTA_*", "PYENV*", "RBENV*", "ASDF_*", "MISE_*", "__MISE_*", "SDKMAN_*", "CARGO*", "RUST*",
    "GO", "GOPATH", "GOROOT", "GOBIN", "GOPROXY", "GOFLAGS", "JAVA_HOME", "JDK_HOME", "M2_HOME", "MAVEN_*", "GRADLE_*",
    "ANDROID_*", "DOTNET_*", "PNPM_*", "BUN_INSTALL*", "DENO_DIR", "DENO_INSTALL*", "HOMEBREW_*", "npm_*", "NPM_*",
    "PYTHON*", "PYTEST_*", "VIRTUAL_ENV*", "CONDA_*", "POETRY_*", "PIP_*", "UV_*", "CC", "CXX", "CFLAGS", "LDFLAGS",
    "MAKE*", "MFLAGS", "LD_LIBRARY_PATH", "PKG_CONFIG_PATH", "EMSDK*", "DIRENV_*", "STARSHIP_*", "FZF_*", "ZOXIDE*",
    "_ZO_*", "BAT_*", "RIPGREP_*", "DEBIAN_FRONTEND",
    "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "FTP_PROXY", "http_proxy", "https_proxy", "all_proxy", "ftp_proxy",
)  # fmt: skip
"""Variables of many people that have nothing to do with an agent's models; proxies: said elsewhere."""


def left_out_variables(
    agent: Agent,
    program: Path,
    texts: Iterable[str],
    env: Mapping[str, str],
    given: Collection[str],
) -> tuple[str, ...]:
    """Return a sentence about the variables of *env* that *program* names and its sandbox has not.

    Args:
        texts: its settings, which may name others.
        env: the person's environment.
        given: the names of the variables that the agent gets.
    """
    names = sorted(
        name
        for name, value in env.items()
        if value and name not in given and not name.startswith("AILERON_")
        if not any(fnmatchcase(name, pattern) for pattern in _CHOOSE_NOTHING)
        if not any(fnmatchcase(name, route.name) for route in agent.routes)
    )
    if not names:
        return ()
    advice = (
        f"If one of them chooses its model, address or key, set it under `env` of "
        f"`[launch.{agent.name}]` in config.toml."
    )
    try:
        of_program = named_in(program, names)
    except (OSError, ValueError):
        reason = f"{program} cannot be searched, so {agent.title} may ask for them."
        return (f"Not in the sandbox: {', '.join(names)}. {reason} {advice}",)
    found = [name for name in names if name in of_program or any(name in each for each in texts)]
    if not found:
        return ()
    it = "it" if len(found) == 1 else "them"
    named = f"{agent.title}'s program, or its settings, names {it}."
    return (f"Not in the sandbox: {', '.join(found)}. {named} {advice}",)


def named_in(program: Path, names: Iterable[str]) -> set[str]:
    """Return which of *names* are in the code of *program*: its own, or its package's and what that depends on.

    Raises:
        OSError: something of it cannot be read.
        ValueError: it is a script that no package brought.
    """
    left, found = {name: name.encode() for name in names}, set[str]()
    for path in _code_of(program.resolve()):
        with path.open("rb") as file:
            if os.fstat(file.fileno()).st_size == 0:
                continue
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
                here = {name for name, data in left.items() if content.find(data) >= 0}
        found |= here
        left = {name: data for name, data in left.items() if name not in here}
    return found


def _code_of(program: Path) -> Iterator[Path]:
    if not script_interpreter(program):
        yield program
        return
    package = next((each for each in program.parents if (each / "package.json").is_file()), None)
    if package is None:
        raise ValueError(f"{program} is a script of no package")
    for folder in _packages(package):
        for place, folders, files in os.walk(folder, onerror=_fail):
            folders[:] = [each for each in folders if each != _MODULES]
            found = (Path(place, name) for name in files if Path(name).suffix in _CODE)
            yield from (each for each in found if not each.is_symlink())


def _packages(package: Path) -> Iterator[Path]:
    """Return *package* and all that it depends on and finds, as Node.js looks for it."""
    seen, waiting = set[Path](), [package]
    while waiting:
        folder = waiting.pop()
        if folder in seen:
            continue
        seen.add(folder)
        yield folder
        described = json_table((folder / "package.json").read_text()) or {}
        for kind in ("dependencies", "optionalDependencies"):
            for name in table_at(described, kind):
                places = (each / _MODULES / name for each in (folder, *folder.parents))
                there = next((each for each in places if (each / "package.json").is_file()), None)
                if there is not None:
                    waiting.append(there.resolve())


def _fail(problem: OSError) -> None:
    raise problem
