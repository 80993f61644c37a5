"""The environment that an agent is launched with: which of the person's variables it gets, and what it misses in the sandbox.

An agent has patterns of what it takes (`Agent.variables`), and keys of its settings that name more.
What fits reaches it as it is, so that it chooses its model, provider and key as it does outside.
"""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

from aileron_core.containment.bubblewrap import sandbox_environment
from aileron_core.launch.model_traffic import AgentSettings
from aileron_core.launch.plan import Agent
from aileron_core.launch.settings_files import (
    flat,
    is_in_effect,
    is_project_file,
    parse_env_file,
    settings_in,
    toml_table,
)
from aileron_core.settings import LaunchSettings

NEVER_CARRIED = (
    # logins to more than models
    "AWS_*ACCESS_KEY*", "AWS_*SESSION_TOKEN", "AWS_SECURITY_TOKEN", "AWS_*PROFILE", "AWS_*_FILE", "AWS_ROLE_*",
    "AWS_CONTAINER_*", "AWS_EC2_*", "AWS_SSO_*", "AZURE_*", "IDENTITY_*", "MSI_*", "GOOGLE_APPLICATION_CREDENTIALS",
    "*_ACCESS_TOKEN", "*_REFRESH_TOKEN", "CLOUDSDK_*", "GCE_*", "METADATA_SERVER_*", "CLOUDFLARE_*", "DATABRICKS_TOKEN",
    "GITHUB_*", "GH_*", "*_GITHUB_TOKEN", "GITHUB_COPILOT_*", "GITLAB_*", "HF_TOKEN", "VERCEL_*", "AICORE_SERVICE_KEY",
    "*_KEYFILE*", "*_CREDENTIALS*", "*ACCESS_KEY*", "*SECURITY_TOKEN", "*_CLIENT_SECRET", "*_PASSWORD", "*_PRIVATE_KEY*",
    "*_IAM_TOKEN", "*_ADMIN_*", "*_MANAGEMENT_*", "*_PROVISIONING_*", "*_MASTER_KEY", "SNOWFLAKE_TOKEN",
    # open descriptors and sockets
    "*_FD", "*_FDS", "*_FILE_DESCRIPTOR", "*_SOCK", "*_SOCKET", "*_SSE_PORT", "*_IDE_*", "DBUS_*", "DISPLAY", "*_DISPLAY",
    # a sandbox of its own, which cannot start in this one
    "GEMINI_SANDBOX*",
    # what loaders, interpreters and shells obey
    "LD_*", "DYLD_*", "NODE_OPTIONS", "BUN_*", "PYTHON*", "PERL5*", "RUBY*", "BASH_ENV", "ENV", "GIT_*", "PATH", "HOME",
)  # fmt: skip
"""For no agent, unless `env` of its table in `config.toml` sets the variable."""
_FOR_MODELS_ALONE = (
    "AZURE_OPENAI_*", "AZURE_COGNITIVE_SERVICES_*", "AZURE_API_KEY", "AZURE_RESOURCE_NAME", "CODEX_ACCESS_TOKEN",
)  # fmt: skip
"""What fits one of these patterns all the same, and opens nothing but models."""
_LOGINS = (
    ("~/.aws", re.compile(r"bedrock|sagemaker|_mantle|anthropic_aws", re.IGNORECASE)),
    ("~/.config/gcloud", re.compile(r"vertex|gcp_|anthropic_google_cloud", re.IGNORECASE)),
    ("~/.azure", re.compile(r"foundry", re.IGNORECASE)),
    (
        "the system's keyring",
        re.compile(r"(?<!DISABLE_)keyring|credentials_store=auto", re.IGNORECASE),
    ),
)
"""A login that no sandbox has, and the words of variables and settings that ask for it."""
_OF_SANDBOX = frozenset(("HOME", "PATH", "PWD", "OLDPWD", "SHLVL", "TMPDIR", "_"))
"""Variables that a sandbox has of its own."""
_NAMES = re.compile(r"\$\{?([A-Za-z_]\w*)|\{env:\s*(\w+)\s*\}|^([A-Za-z_]\w*)$", re.ASCII)


def is_carried(name: str) -> bool:
    """Return whether a variable may be in a sandbox because an agent takes it, or its settings name it."""
    return fits(name, _FOR_MODELS_ALONE) or not (
        name.startswith("AILERON_") or fits(name.upper(), NEVER_CARRIED)
    )


def fits(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def carried_variables(
    agent: Agent, env: Mapping[str, str], has: Callable[[Path], bool]
) -> dict[str, str]:
    """Return what of *env* the patterns of *agent* carry into its sandbox.

    Args:
        has: whether the sandbox has a path: a variable that names another one would lead nowhere.
    """
    return {
        name: value
        for name, value in env.items()
        if fits(name, agent.variables) and is_carried(name) and not _leads_nowhere(value, has)
    }


def named_by_settings(
    agent: Agent, settings: Iterable[tuple[str, str]]
) -> Iterator[tuple[str, bool]]:
    """Yield the variables that the keys and values of *settings* name, and whether it takes what a value there names."""
    for key, value in settings:
        takes = fits(key, agent.variable_keys)
        for match in _NAMES.finditer(value):
            name = match[1] or match[2] or match[3]
            if name not in _OF_SANDBOX:
                yield name, takes or match[2] is not None


def typed_settings(args: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield the keys and values of arguments, which may be settings (`-c KEY=VALUE`)."""
    for word in args:
        setting = word.removeprefix("--config=").removeprefix("-c").strip()
        key, _, value = setting.partition("=")
        yield from flat(toml_table(setting) or {key: value})


def missing_of_environment(
    agent: Agent,
    env: Mapping[str, str],
    given: Mapping[str, str],
    named: Iterable[str],
    settings: Iterable[tuple[str, str]],
    home: Path,
) -> tuple[str, ...]:
    """Return a sentence about what *agent* asks for and its sandbox has not, none if there is nothing.

    Args:
        env: the person's environment.
        given: what of it the agent gets, with what is set for it in `config.toml`.
        named: variables that its settings name.
        settings: the keys and values of its own settings and arguments.
    """
    asked = (*agent.variables, *agent.other_variables, *named)
    names = sorted(
        name
        for name, value in env.items()
        if value and name not in given and not name.startswith("AILERON_") and fits(name, asked)
    )
    words = [f"{key}={value}" for key, value in (*given.items(), *settings) if is_in_effect(value)]
    for login, asking in _LOGINS:
        there = not login.startswith("~") or (home / login[2:]).exists()
        if there and any(map(asking.search, words)):
            names.append(login)
    names += [f"~/{each}" for each in agent.other_logins if (home / each).exists()]
    if not names:
        return ()
    sentence = (
        f"Not in the sandbox: {', '.join(names)}. {agent.title} may need it for its models. Set a variable under "
        f"`env` of `[launch.{agent.name}]` in config.toml, and give it a file with --read."
    )
    return (sentence,)


def _leads_nowhere(value: str, has: Callable[[Path], bool]) -> bool:
    """Return whether *value* is a path, or several, one of which is outside and not in the sandbox."""
    if not value.startswith(("/", "~/")):
        return False
    paths = [Path(each).expanduser() for each in value.split(os.pathsep) if each]
    return any(os.path.lexists(each) and not has(each) for each in paths)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentEnvironment:
    """What an agent gets of the person's environment and settings."""

    env: Mapping[str, str] = field(repr=False)
    settings: AgentSettings = field(repr=False)
    notices: tuple[str, ...] = ()
    """What of them the sandbox does not have, a sentence or more each, not yet escaped."""


def agent_environment(
    agent: Agent,
    env: Mapping[str, str],
    *,
    home: Path,
    project: Path,
    of_person: LaunchSettings,
    of_project: LaunchSettings,
    args: tuple[str, ...],
    has: Callable[[Path], bool] | None,
) -> AgentEnvironment:
    """Return the environment for *agent*, from the person's *env* and what settings add to it.

    Args:
        args: those that are typed.
        has: whether its sandbox has a path; None where it has no sandbox.
    """
    chosen, asked = dict(of_person.env), dict(of_project.env)
    own_args = (*of_person.args, *args)
    all_args = (*of_person.args, *of_project.args, *args)
    known = {name: value for name, value in env.items() if not name.startswith("AILERON_")}
    if has is None:
        given = {**known, **chosen, **asked}
        settings = AgentSettings.read(agent, given, home, project, all_args)
        return AgentEnvironment(env=given, settings=settings)
    nearest = _nearest_env_file(agent, project)
    if nearest is not None and nearest == home / ".env":  # it is not copied
        known = {**parse_env_file(_text(nearest)), **known}
    given = {
        **carried_variables(agent, known, has),
        **sandbox_environment(env),
        **chosen,
        **asked,
    }
    settings = AgentSettings.read(agent, given, home, project, all_args)
    own, of_projects = [*typed_settings(own_args)], list[tuple[str, str]]()
    agent_logins = {Path(each).name for folder in agent.folders for each in folder.credentials}
    for path, text in settings.texts.items():
        inside = is_project_file(path) or Path(path).is_relative_to(project)
        # A login comes back from the sandbox: like a project's settings, it brings nothing in.
        foreign = inside or Path(path).name in agent_logins
        (of_projects if foreign else own).extend(settings_in(path, text))
    for value in given.values():  # settings may be in a variable
        own += settings_in(".json", value) if value.startswith("{") else ()
    named = [*named_by_settings(agent, own)]
    taken = {name for name, takes in named if takes and name in known and is_carried(name)}
    given = {name: known[name] for name in taken} | given
    asked_for = [name for name, _ in (*named, *named_by_settings(agent, of_projects))]
    return AgentEnvironment(
        env=given,
        settings=settings,
        notices=(
            *missing_of_environment(agent, known, given, asked_for, own, home),
            *_left_above(agent, home, project, nearest),
        ),
    )


def _left_above(agent: Agent, home: Path, project: Path, env_file: Path | None) -> tuple[str, ...]:
    """Return a sentence about the settings in the repository above *project*, which the sandbox does not have."""
    if ".env" in agent.reads_above:
        return _env_file_above(agent, home, project, env_file)
    above = project.parents if agent.reads_above and not (project / ".git").exists() else ()
    root = next((each for each in above if (each / ".git").exists()), None)
    if root is None:
        return ()
    found = [
        str(folder / name)
        for folder in above
        if folder != home and folder.is_relative_to(root)
        for name in agent.reads_above
        if (folder / name).exists()
    ]
    if not found:
        return ()
    sentence = (
        f"Not in the sandbox: {', '.join(found)}. Outside, {agent.title} reads settings in the repository above the "
        f"project too. Launch it in {root}, or put what you need into your own settings."
    )
    return (sentence,)


def _nearest_env_file(agent: Agent, project: Path) -> Path | None:
    """Return the `.env` file that *agent* reads, None if it reads none or there is none."""
    names = agent.reads_above if ".env" in agent.reads_above else ()
    files = (folder / name for folder in (project, *project.parents) for name in names)
    return next((each for each in files if each.is_file()), None)


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8", errors="replace")
    except OSError:
        return ""


def _env_file_above(
    agent: Agent, home: Path, project: Path, nearest: Path | None
) -> tuple[str, ...]:
    """Return a sentence about the *nearest* `.env` file above *project*, if it sets what *agent* would obey."""
    if nearest is None or nearest.is_relative_to(project):
        return ()
    if nearest in [home / name for name in agent.reads_above]:
        return ()
    if not os.access(nearest, os.R_OK):
        return (f"Not in the sandbox: {nearest}, which cannot be read.",)
    set_there = [name for name in parse_env_file(_text(nearest)) if fits(name, agent.variables)]
    if not set_there:
        return ()
    sentence = (
        f"Not in the sandbox: {nearest}. Outside, {agent.title} takes {', '.join(set_there)} from it. Put what "
        "you need into a .env file of the project, or into your environment."
    )
    return (sentence,)
