"""The allow-list of the person's git settings that a session gets: none of them can name a program."""

import os
import re
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True, kw_only=True)
class GitSetting:
    """One git setting of the person's."""

    name: str
    value: str
    file: Path
    """The file that says so; a relative path of an `include` is relative to its folder."""


def read_settings(bwrap: str, git_dir: Path | None, env: Mapping[str, str]) -> list[GitSetting]:
    """Return the person's settings for a repository, global and system ones included, in git's order.

    Without a repository (None) they are those that count everywhere. They are read in a sandbox without write access or network; no setting takes effect except
    `include`.

    Raises:
        GitFailed: git cannot read them.
    """
    listed = _git_config(bwrap, git_dir, env, "--list", "--show-origin", "-z").split("\0")[:-1]
    settings: list[GitSetting] = []
    for origin, line in zip(listed[::2], listed[1::2], strict=True):
        name, separator, value = line.partition("\n")
        file = Path(origin.removeprefix("file:"))
        settings.append(GitSetting(name=name, value=value if separator else "true", file=file))
    return settings


def included_files(settings: Iterable[GitSetting], env: Mapping[str, str]) -> list[Path]:
    """Return the files that *settings* include, whether they exist or not."""
    home = env.get("HOME", "")
    files: list[Path] = []
    for each in settings:
        if each.name.startswith(("include.", "includeif.")) and each.name.endswith(".path"):
            path = f"{home}/{each.value[2:]}" if each.value.startswith("~/") else each.value
            files.append(Path(os.path.normpath(each.file.parent / path)))
    return list(dict.fromkeys(files))


def _git_config(bwrap: str, git_dir: Path | None, env: Mapping[str, str], *args: str) -> str:
    command = [bwrap, "--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-net"]
    command += ["--disable-userns", "--die-with-parent", "--cap-drop", "ALL", "--ro-bind", "/", "/"]
    command += ["--proc", "/proc", "--dev", "/dev", "--chdir", "/", "--"]
    passed = {name: env[name] for name in ("HOME", "XDG_CONFIG_HOME") if name in env}
    if git_dir is not None:
        passed |= {"GIT_DIR": str(git_dir), "GIT_WORK_TREE": "/"}
    try:
        result = subprocess.run(
            [*command, "git", "--no-pager", "config", *args],
            env={**passed, "PATH": "/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C"},
            cwd="/", stdin=subprocess.DEVNULL, capture_output=True, timeout=_SECONDS, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise GitFailed(f"git config took longer than {_SECONDS} s.") from None
    if result.returncode != 0:
        raise GitFailed(escape(result.stderr.decode("utf-8", "replace").strip()[:300]))
    return result.stdout.decode("utf-8", "surrogateescape")


def unsupported_reason(settings: Iterable[GitSetting]) -> str | None:
    """Return why a repository with these settings cannot have a session git directory, None if it can."""
    for name in (each.name for each in settings):
        if name.startswith("extensions."):
            extension = name.removeprefix("extensions.")
            if extension == "partialclone":
                return "it is a partial clone, which fetches missing objects on demand"
            if extension not in _EXTENSIONS:
                return (
                    f"it uses a git extension that Aileron does not support ({escape(extension)})"
                )
        if name.startswith("remote.") and name.endswith(".promisor"):
            return "it is a partial clone, which fetches missing objects on demand"
    return None


def allowed_settings(settings: Iterable[GitSetting]) -> list[tuple[str, str]]:
    """Return the settings that a session gets, with credentials removed from URLs."""
    allowed: list[tuple[str, str]] = []
    for name, value in ((each.name, each.value) for each in settings):
        section, _, rest = name.partition(".")
        below, _, key = rest.rpartition(".")
        if name in _PLAIN:
            allowed.append((name, value))
        elif below and key in _BELOW.get(section, ()):
            if key in ("url", "pushurl"):
                if "::" in value:  # a remote helper, a program: `ext::` for one
                    continue
                value = _LOGIN.sub(r"\1", value)
            allowed.append((name, value))
    return allowed


def config_text(settings: Iterable[tuple[str, str]]) -> str:
    settings = list(settings)
    formats = any(name == "extensions.objectformat" for name, _ in settings)
    lines = ["[core]", f"\trepositoryformatversion = {int(formats)}", "\tbare = false"]
    lines.append("\tlogallrefupdates = true")
    return "\n".join(lines) + "\n" + settings_text(settings)


def settings_text(settings: Iterable[tuple[str, str]]) -> str:
    """Return *settings* in the form of a git config file."""
    lines: list[str] = []
    for name, value in settings:
        section, _, rest = name.partition(".")
        below, _, key = rest.rpartition(".")
        lines.append(f'[{section} "{_escaped(below)}"]' if below else f"[{section}]")
        quoted = _escaped(value).replace("\n", "\\n").replace("\t", "\\t")
        lines.append(f'\t{key} = "{quoted}"')
    return "".join(f"{line}\n" for line in lines)


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
