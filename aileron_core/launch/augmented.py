"""Launching any program whose model gets Aileron's tools: by the base URLs in its environment, without a sandbox."""

import contextlib
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from aileron_core.console_port.session_terms import SessionTerms
from aileron_core.errors import NotFound
from aileron_core.launch import agent_job
from aileron_core.launch.foreground import job_argv, run_foreground
from aileron_core.launch.interfaces import LaunchedSession, Prompter, SessionPort
from aileron_core.launch.model_traffic import bypass_proxies
from aileron_core.launch.plan import ProviderName
from aileron_core.text import escape

_BASE_URLS: Mapping[ProviderName, tuple[str, str]] = {
    "openai": ("OPENAI_BASE_URL", "/v1"),
    "anthropic": ("ANTHROPIC_BASE_URL", ""),
}
"""The variable that the provider's SDK takes its address from, and what it expects behind the host."""
_KEYS: Mapping[ProviderName, tuple[str, ...]] = {
    "openai": ("OPENAI_API_KEY",),
    "anthropic": ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"),
}
"""The first gets the placeholder; the others would go before it."""
_AGENT_LENGTH = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class AugmentedLaunch:
    """What the person asked for on the command line."""

    program: str
    args: tuple[str, ...]
    project: Path
    env: Mapping[str, str] = field(repr=False)
    label: str = ""


def launch_augmented(request: AugmentedLaunch, console: SessionPort, prompter: Prompter) -> int:
    """Run the program in the foreground and return its exit code; its session ends with it.

    Raises:
        NotFound: there is no such program.
        ConsoleUnavailable: no console owns the home.
    """
    program = _found(request)
    console.require_console()
    with contextlib.ExitStack() as stack:
        session = console.open(
            agent=Path(request.program).name[:_AGENT_LENGTH],
            label=request.label or request.project.name,
            cwd=request.project,
            contained=False,
            terms=SessionTerms(key_providers=tuple(_KEYS), augment=True),
        )
        stack.callback(console.end, session.session_id)
        hold = console.hold(session, lambda _: None)
        stack.callback(hold.stop)
        for sentence in _differences(request, session):
            prompter.say(escape(sentence))
        command = [*job_argv(str(agent_job.__file__), sandbox=False), program, *request.args]
        return run_foreground(
            command,
            env=augmented_environment(request.env, session),
            cwd=str(request.project),
            started=lambda _: hold.start(),
        )


def augmented_environment(env: Mapping[str, str], session: LaunchedSession) -> dict[str, str]:
    """Return the person's *env* with the session's addresses, and placeholders for the keys in the vault."""
    given = {name: value for name, value in env.items() if not name.startswith("AILERON_")}
    gateway = f"{session.url}/gw/{session.gateway_token}"
    for variable, suffix in _BASE_URLS.values():
        given[variable] = gateway + suffix
    for provider, (first, *others) in _KEYS.items():
        if provider in session.key_providers:
            given = {name: value for name, value in given.items() if name not in others}
            given[first] = session.placeholder
    return given | bypass_proxies(given, urlsplit(session.url).hostname or "")


def _found(request: AugmentedLaunch) -> str:
    path = request.env.get("PATH", os.defpath)
    found = shutil.which(request.program, path=path)
    if found is None:
        raise NotFound(f"There is no program {request.program!r} on PATH.")
    return str(Path(found).absolute())


def _differences(request: AugmentedLaunch, session: LaunchedSession) -> tuple[str, ...]:
    """Return what is different from a start without Aileron, a sentence each, not yet escaped."""
    name = Path(request.program).name
    said = [
        f"{name} is not contained: --augment has no sandbox, so it can do whatever you can.",
        (
            "Aileron reads its requests to models at /v1/messages, /v1/chat/completions and /v1/responses, "
            "and adds your actions to their tools."
        ),
    ]
    replaced = [variable for variable, _ in _BASE_URLS.values() if request.env.get(variable)]
    if replaced:
        said.append(
            f"Your own {' and '.join(replaced)} is not used. Set the address under [gateway] in config.toml."
        )
    if session.key_providers:
        providers = ", ".join(session.key_providers)
        said.append(
            f"{name} gets a placeholder for its key of {providers}; the key stays in the vault, which does not "
            "lock by itself until this session ends."
        )
    return tuple(said)
