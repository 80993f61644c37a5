"""What of the person's git settings a session gets: a list, and nothing on it can name a program."""

import os
import re
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

from aileron_core.containment.git.sandboxed_git import GitFailed
from aileron_core.text import escape

_PLAIN = frozenset(
    ("core.filemode", "core.ignorecase", "core.precomposeunicode", "core.symlinks", "core.autocrlf",
     "core.eol", "core.safecrlf", "core.sparsecheckout", "core.sparsecheckoutcone",
     "extensions.objectformat", "user.name", "user.email")
)  # fmt: skip
_BELOW = {
    "remote": frozenset(("url", "pushurl", "fetch", "tagopt")),
    "branch": frozenset(("remote", "merge")),
    "submodule": frozenset(("url", "active")),
}
_EXTENSIONS = frozenset(
    ("objectformat", "worktreeconfig", "refstorage", "noop", "noop-v1", "preciousobjects",
     "relativeworktrees")
)  # fmt: skip
_LOGIN = re.compile(r"\A(https?://)[^/@]*@", re.IGNORECASE)
_SECONDS = 20


def effective(bwrap: str, git: Path, env: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return the person's settings for a repository, the global and the system's included, in git's order.

    Read in a sandbox that can write nothing and has no network; no setting is followed but `include`.

    Raises:
        GitFailed: git cannot read them.
    """
    return [
        _setting(each) for each in _git(bwrap, git, env, "config", "--list", "-z").split("\0")[:-1]
    ]


def included(bwrap: str, git: Path, env: Mapping[str, str]) -> list[Path]:
    """Return the files that the person's settings for a repository include, there or not.

    Raises:
        GitFailed: git cannot read the settings.
    """
    words = _git(bwrap, git, env, "config", "--list", "--show-origin", "-z").split("\0")[:-1]
    home = env.get("HOME", "")
    found: list[Path] = []
    for origin, each in zip(words[::2], words[1::2], strict=True):
        name, value = _setting(each)
        if name.startswith(("include.", "includeif.")) and name.endswith(".path"):
            above = Path(origin.removeprefix("file:")).parent
            said = f"{home}/{value[2:]}" if value.startswith("~/") else value
            found.append(Path(os.path.normpath(above / said)))
    return list(dict.fromkeys(found))


def _setting(text: str) -> tuple[str, str]:
    name, separator, value = text.partition("\n")
    return name, value if separator else "true"


def _git(bwrap: str, git: Path, env: Mapping[str, str], *words: str) -> str:
    command = [bwrap, "--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-net"]
    command += ["--disable-userns", "--die-with-parent", "--cap-drop", "ALL", "--ro-bind", "/", "/"]
    command += ["--proc", "/proc", "--dev", "/dev", "--chdir", "/", "--"]
    passed = {name: env[name] for name in ("HOME", "XDG_CONFIG_HOME") if name in env}
    try:
        done = subprocess.run(
            [*command, "git", "--no-pager", *words],
            env={**passed, "PATH": "/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C",
                 "GIT_DIR": str(git), "GIT_WORK_TREE": "/"},
            cwd="/", stdin=subprocess.DEVNULL, capture_output=True, timeout=_SECONDS, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise GitFailed(f"git config took longer than {_SECONDS} s.") from None
    if done.returncode != 0:
        raise GitFailed(escape(done.stderr.decode("utf-8", "replace").strip()[:300]))
    return done.stdout.decode("utf-8", "surrogateescape")


def unfit(settings: Iterable[tuple[str, str]]) -> str | None:
    """Return why a session cannot have a git folder of its own over such a repository, or None."""
    for name, _ in settings:
        if name.startswith("extensions."):
            extension = name.removeprefix("extensions.")
            if extension == "partialclone":
                return "it is a partial clone, which fetches what is missing as it goes"
            if extension not in _EXTENSIONS:
                return f"it uses an extension that is not known here ({escape(extension)})"
        if name.startswith("remote.") and name.endswith(".promisor"):
            return "it is a partial clone, which fetches what is missing as it goes"
    return None


def allowed(settings: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return those that a session gets; a login in a URL is left out."""
    kept: list[tuple[str, str]] = []
    for name, value in settings:
        section, _, rest = name.partition(".")
        below, _, key = rest.rpartition(".")
        if name in _PLAIN:
            kept.append((name, value))
        elif below and key in _BELOW.get(section, ()):
            if key in ("url", "pushurl"):
                if "::" in value:  # a program that carries, `ext::` for one
                    continue
                value = _LOGIN.sub(r"\1", value)
            kept.append((name, value))
    return kept


def written(settings: Iterable[tuple[str, str]]) -> str:
    """Return *settings* as the text of a config file."""
    settings = list(settings)
    formats = any(name == "extensions.objectformat" for name, _ in settings)
    lines = ["[core]", f"\trepositoryformatversion = {int(formats)}", "\tbare = false"]
    lines.append("\tlogallrefupdates = true")
    for name, value in settings:
        section, _, rest = name.partition(".")
        below, _, key = rest.rpartition(".")
        lines.append(f'[{section} "{_escaped(below)}"]' if below else f"[{section}]")
        quoted = _escaped(value).replace("\n", "\\n").replace("\t", "\\t")
        lines.append(f'\t{key} = "{quoted}"')
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
