"""Whether an agent's model traffic can pass the gateway: reading its settings, and saying so.

The rule is the agent's module's (`Agent.traffic`); this reads the files that it names. What is read
may hold credentials: it goes to that module and nowhere else.
"""

import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from aileron_core.launch.plan import Agent, ModelTraffic, PlanContext

_MOST_BYTES = 16 * 1024 * 1024
"""Larger than any settings; Claude Code keeps its history in one of these files too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSettings:
    """The settings files of an agent that are there, the person's before the project's."""

    texts: Mapping[str, str] = field(repr=False)
    unreadable: tuple[str, ...] = ()

    @classmethod
    def read(
        cls, agent: Agent, env: Mapping[str, str], home: Path, project: Path
    ) -> "AgentSettings":
        """Read those of *agent* on this machine; *env* is what it will get."""
        named = {
            str(path) if path.is_absolute() else f"~/{path}": home / path
            for path in agent.settings_paths(env)
        }
        named |= {name: project / name for name in agent.project_files}
        texts: dict[str, str] = {}
        unreadable: list[str] = []
        for name, path in named.items():
            try:
                text = _read(path)
            except (OSError, UnicodeDecodeError):
                unreadable.append(name)
                continue
            if text is not None:
                texts[name] = text
        return cls(texts=texts, unreadable=tuple(unreadable))


def _read(path: Path) -> str | None:
    """Return a file's text; None where there is none.

    Raises:
        OSError: it is no file, too large, or cannot be read.
        UnicodeDecodeError: it is no text.
    """
    try:
        status = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    if not stat.S_ISREG(status.st_mode) or status.st_size > _MOST_BYTES:
        raise OSError(0, "is no file of settings")
    return path.read_bytes().decode("utf-8")


def model_traffic(agent: Agent, context: PlanContext, own: AgentSettings) -> ModelTraffic:
    """Return what of *agent*'s model traffic can pass; nothing does where a file cannot be read."""
    if own.unreadable:
        told = tuple(f"{name} cannot be read" for name in own.unreadable)
        return ModelTraffic(through=frozenset(), bypass_reasons=told)
    return agent.traffic(context)


def traffic_here(
    agent: Agent,
    env: Mapping[str, str],
    home: Path,
    project: Path,
    settings_args: tuple[str, ...] = (),
) -> ModelTraffic:
    """Return what of *agent*'s model traffic would pass if it were launched in *project* now."""
    own = AgentSettings.read(agent, env, home, project)
    context = PlanContext(
        relay="",
        launch_dir=PurePosixPath("/"),
        env=env,
        settings_args=settings_args,
        settings=own.texts,
    )
    return model_traffic(agent, context, own)


def sentences(agent: Agent, traffic: ModelTraffic, *, offline: bool = False) -> tuple[str, ...]:
    """Return what a person is told of traffic that goes past, not yet escaped; nothing where none does."""
    if not traffic.bypass_reasons:
        return ()
    why = "; ".join(traffic.bypass_reasons)
    if traffic.through:
        return (f"Not all of {agent.title}'s model traffic passes Aileron: {why}.",)
    told = f"{agent.title}'s model traffic does not pass Aileron: {why}."
    return (told, "Offline it reaches no model outside the sandbox.") if offline else (told,)


_PROXIES = ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy")


def bypass_proxies(env: Mapping[str, str], host: str) -> dict[str, str]:
    """Return the variables that keep requests to *host* from the proxy that *env* names; none without one.

    The gateway is on loopback and spoken to in plain HTTP: a proxy would see the agent's key and the
    gateway token, and could not reach it.
    """
    if not any(env.get(name) for name in _PROXIES):
        return {}
    told = env.get("no_proxy") or env.get("NO_PROXY") or ""
    listed = [each.strip() for each in told.split(",") if each.strip()]
    if host not in listed:
        listed.append(host)
    return dict.fromkeys(("no_proxy", "NO_PROXY"), ",".join(listed))
