"""Whether an agent's model traffic can pass the gateway, by its settings files; what the launch says if it goes past.

The rule belongs to the agent's module (`Agent.traffic`); here the files that it names are read.
They may hold credentials, so their content goes to that module and nowhere else.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

from aileron_core.launch.plan import Agent, ModelTraffic, PlanContext
from aileron_core.launch.settings_files import read_settings


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSettings:
    """The contents of an agent's existing settings files, the person's before the project's."""

    texts: Mapping[str, str] = field(repr=False)
    unreadable: tuple[str, ...] = ()

    @classmethod
    def read(
        cls,
        agent: Agent,
        env: Mapping[str, str],
        home: Path,
        project: Path,
        args: tuple[str, ...] = (),
    ) -> "AgentSettings":
        """Read the settings files of *agent* on this machine; *env* is the environment that it will get."""
        named: dict[str, Path] = {}
        for path in agent.settings_paths(env, args):
            shown = path.parent if path.is_absolute() else PurePosixPath("~") / path.parent
            folder = home / path.parent
            names = [path.name]
            if "*" in path.name:
                names = sorted(each.name for each in folder.glob(path.name))
            named |= {str(shown / name): folder / name for name in names}
        named |= {name: project / name for name in agent.project_files}
        texts: dict[str, str] = {}
        unreadable: list[str] = []
        for name, path in named.items():
            try:
                text = read_settings(path)
            except (OSError, UnicodeDecodeError):
                unreadable.append(name)
                continue
            if text is not None:
                texts[name] = text
        return cls(texts=texts, unreadable=tuple(unreadable))


def model_traffic(agent: Agent, context: PlanContext, own: AgentSettings) -> ModelTraffic:
    """Return which of *agent*'s model traffic can pass; none if a settings file cannot be read."""
    if own.unreadable:
        reasons = tuple(f"{name} cannot be read" for name in own.unreadable)
        return ModelTraffic(providers=frozenset(), bypass_reasons=reasons)
    return agent.traffic(context)


def predict_traffic(
    agent: Agent,
    env: Mapping[str, str],
    home: Path,
    project: Path,
    settings_args: tuple[str, ...] = (),
) -> ModelTraffic:
    """Return which of *agent*'s model traffic would pass if it were launched in *project* now."""
    own = AgentSettings.read(agent, env, home, project, settings_args)
    context = PlanContext(
        relay="",
        launch_dir=PurePosixPath("/"),
        env=env,
        project=PurePosixPath(project),
        settings_args=settings_args,
        settings=own.texts,
    )
    return model_traffic(agent, context, own)


def bypass_warnings(
    agent: Agent, traffic: ModelTraffic, *, offline: bool = False
) -> tuple[str, ...]:
    """Return the warnings about traffic that bypasses the gateway, not yet escaped; none if nothing does."""
    if not traffic.bypass_reasons:
        return ()
    why = "; ".join(traffic.bypass_reasons)
    if traffic.providers:
        return (f"Some of {agent.title}'s model traffic bypasses Aileron's gateway: {why}.",)
    warning = f"{agent.title}'s model traffic bypasses Aileron's gateway: {why}."
    return (
        (warning, "With --sandbox=offline, the agent cannot reach a model outside the sandbox.")
        if offline
        else (warning,)
    )


def with_placeholder(
    agent: Agent,
    context: PlanContext,
    own: AgentSettings,
    placeholder: str,
    providers: Collection[str],
) -> tuple[PlanContext, ModelTraffic, tuple[str, ...]]:
    """Put *placeholder* in the place of the agent's API keys for *providers*, as far as their traffic passes.

    A login of the agent's own is left alone: it counts for the agent, and the gateway forwards it.

    Returns:
        The context, its traffic, and why the vault's keys are not used, a sentence each, not yet escaped.
    """
    unused: list[str] = []
    logins = agent.traffic(context).logins
    for provider, (first, *others) in agent.key_variables.items():
        if provider not in providers:
            continue
        if (login := logins.get(provider)) is not None:
            unused.append(f"The vault's key for {provider} is not used: {login}.")
            continue
        kept = {name: value for name, value in context.env.items() if name not in others}
        tried = replace(context, env={**kept, first: placeholder})
        if provider in model_traffic(agent, tried, own).providers:
            context = tried
    return context, model_traffic(agent, context, own), tuple(unused)


PROXY_VARIABLES = (
    "HTTP_PROXY",
    "http_proxy",
    "HTTPS_PROXY",
    "https_proxy",
    "ALL_PROXY",
    "all_proxy",
)


def bypass_proxies(env: Mapping[str, str], host: str) -> dict[str, str]:
    """Return the `no_proxy` variables that exempt *host*; empty if *env* configures no proxy.

    The gateway listens on loopback and speaks plain HTTP: a proxy could not reach it, and would see
    the agent's key and the gateway token.
    """
    if not any(env.get(name) for name in PROXY_VARIABLES):
        return {}
    exempt = env.get("no_proxy") or env.get("NO_PROXY") or ""
    listed = [each.strip() for each in exempt.split(",") if each.strip()]
    if host not in listed:
        listed.append(host)
    return dict.fromkeys(("no_proxy", "NO_PROXY"), ",".join(listed))
