"""The allow-lists of the person's git settings that an agent gets: none of them runs or names a program.

One is for the project's repositories. The other is for the `~/.gitconfig` of a private home, which counts in
every repository that the agent makes or clones.
"""

import os
import re
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from aileron_core.containment.git.sandboxed_git import GitFailed
from aileron_core.containment.safe_paths import read_small_file
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
_HOME = frozenset(
    ("user.name", "user.email", "author.name", "author.email", "committer.name", "committer.email",
     "init.defaultbranch", "pull.rebase", "pull.ff", "merge.ff", "merge.conflictstyle", "merge.log",
     "rebase.autosquash", "rebase.autostash", "rebase.updaterefs", "push.default",
     "push.autosetupremote", "push.followtags", "fetch.prune", "fetch.prunetags", "branch.sort",
     "branch.autosetuprebase", "branch.autosetupmerge", "tag.sort", "diff.algorithm", "diff.renames",
     "diff.colormoved", "diff.mnemonicprefix", "diff.noprefix", "diff.submodule", "diff.context",
     "status.short", "status.branch", "status.showuntrackedfiles", "log.date", "log.decorate",
     "log.abbrevcommit", "commit.verbose", "commit.cleanup", "core.autocrlf", "core.eol",
     "core.safecrlf", "core.abbrev", "core.quotepath", "core.whitespace", "core.commentchar",
     "apply.whitespace", "color.ui", "column.ui", "rerere.enabled", "rerere.autoupdate")
)  # fmt: skip
_SIGNING = ("commit.gpgsign", "tag.gpgsign", "push.gpgsign")
_MAX_IGNORE_BYTES = 1024 * 1024
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


@dataclass(frozen=True, slots=True, kw_only=True)
class HomeConfig:
    """What of the person's git settings a private home gets."""

    files: Mapping[str, str] = field(default_factory=dict[str, str])
    """Relative path -> text."""
    notices: tuple[str, ...] = ()
    """What the agent does without, a sentence each, escaped."""


def home_config(
    bwrap: str, env: Mapping[str, str], git_dir: Path | None, excluded: Iterable[Path]
) -> HomeConfig:
    """Return the git settings for a private home.

    Args:
        git_dir: the project's, where it has one: its settings may ask for signatures.
        excluded: folders that an agent may write: no file of theirs is copied.
    """
    try:
        settings = read_settings(bwrap, None, env)
        here = settings if git_dir is None else read_settings(bwrap, git_dir, env)
    except (GitFailed, OSError) as error:
        return HomeConfig(notices=(f"Your git settings cannot be read for the agent: {error}",))
    safe = [(each.name, each.value) for each in settings if _is_safe(each)]
    files = {".gitconfig": settings_text([*safe, *((name, "false") for name in _SIGNING)])}
    if (ignored := _ignored_files(settings, env, excluded)) is not None:
        files[".config/git/ignore"] = ignored
    last = {each.name: each.value.casefold() for each in here}
    signs = [
        name
        for name in _SIGNING
        if last.get(name, "false") in ("true", "yes", "on", "1", "if-asked")
    ]
    notices = (
        (
            f"The agent's commits are not signed ({', '.join(signs)}): your keys are not in the sandbox.",
        )
        if signs
        else ()
    )
    return HomeConfig(files=files, notices=notices)


def _is_safe(setting: GitSetting) -> bool:
    """Return whether *setting* can run nothing: of aliases those of git's own commands."""
    if "\0" in setting.value:
        return False
    is_alias = setting.name.startswith("alias.")
    return setting.name in _HOME or (is_alias and not setting.value.lstrip().startswith(("!", "-")))


def _ignored_files(
    settings: Iterable[GitSetting], env: Mapping[str, str], excluded: Iterable[Path]
) -> str | None:
    """Return the person's patterns of files that git ignores everywhere: without them an agent would add such files."""
    home = Path(env.get("HOME", "/nonexistent"))
    named = [each.value for each in settings if each.name == "core.excludesfile"]
    usual = Path(env.get("XDG_CONFIG_HOME") or home / ".config", "git", "ignore")
    path = home / named[-1].removeprefix("~/") if named else usual
    if any(path.resolve().is_relative_to(each.resolve()) for each in excluded):
        return None
    try:
        content = read_small_file(
            os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), _MAX_IGNORE_BYTES
        )
    except OSError:
        return None
    return None if content is None else content.decode("utf-8", "replace")
