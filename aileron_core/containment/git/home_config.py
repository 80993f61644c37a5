"""The `~/.gitconfig` of a contained agent: the person's name and habits, and nothing that runs or names a program.

It counts in every repository that the agent makes or clones; that of the project also has the
person's settings for it (`settings.py`).
"""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from aileron_core.containment.git.sandboxed_git import GitFailed
from aileron_core.containment.git.settings import GitSetting, read_settings, settings_text
from aileron_core.containment.safe_paths import read_small_file

_SAFE = frozenset(
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
_MAX_BYTES = 1024 * 1024


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
    return setting.name in _SAFE or (is_alias and not setting.value.lstrip().startswith(("!", "-")))


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
            os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), _MAX_BYTES
        )
    except OSError:
        return None
    return None if content is None else content.decode("utf-8", "replace")
