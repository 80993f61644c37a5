"""`aileron doctor`: whether launches work here, what they contain, and what stays open."""

import contextlib
import importlib.util
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from aileron_core.clock import SystemClock
from aileron_core.containment.hard_links import own_folders
from aileron_core.errors import AileronError, ConsoleUnavailable, FileProblems
from aileron_core.home.client import HomeClient
from aileron_core.home.layout import Home
from aileron_core.launch.agents import AGENTS
from aileron_core.launch.doctor import Finding
from aileron_core.launch.doctor.agents import (
    AgentReport,
    inspect_agent,
    running_agents,
    uncontained_sessions,
)
from aileron_core.launch.doctor.machine import (
    check_code,
    check_git,
    check_hard_links,
    check_home,
    check_machine,
    check_terminal,
)
from aileron_core.launch.launcher import check_launch
from aileron_core.launch.model_traffic import bypass_warnings, predict_traffic
from aileron_core.launch.named_programs import missing_checks_digest, missing_sentences
from aileron_core.launch.plan import Agent, ModelTraffic
from aileron_core.launch.prepare import LaunchRequest, PreparedLaunch
from aileron_core.launch.variables import agent_environment
from aileron_core.settings import LaunchSettings, load_settings
from aileron_core.text import escape
from aileron_tui.cli.accepted import accepted_launch_settings, require_accepted_settings
from aileron_tui.cli.output import EXIT, UNATTENDED, CliError, CommandContext, did_you_mean

_PACKAGES = ("aileron_core", "aileron_mcp", "aileron_tui")
_SIGNS = {"ok": "✓", "note": "·", "warning": "▲", "broken": "✗"}


def show_doctor(
    context: CommandContext, names: tuple[str, ...], *, attack: bool, notify: bool
) -> int:
    """Print the report on every agent, or on the one named.

    Args:
        attack: try the attacks of *names*, or all, instead.
        notify: send a notice instead.

    Raises:
        CliError: there is no such agent, or several are named.
        NotFound: there is no such attack.
    """
    if attack:
        from aileron_tui.cli.attacks import show_attacks

        return show_attacks(context, names)
    if notify:
        from aileron_tui.cli.notices import send_notice

        return send_notice(context)
    agent, *more = names or (None,)
    if more or (agent and agent not in AGENTS):
        wrong = more[0] if agent in AGENTS else agent or ""
        text = f"Name one agent or none: {', '.join(AGENTS)}.{did_you_mean(wrong, AGENTS)}"
        raise CliError(EXIT.USAGE, text)
    return _report(context, agent)


def _report(context: CommandContext, agent: str | None) -> int:
    project, env = Path.cwd(), dict(os.environ)
    wanted = [AGENTS[agent]] if agent else list(AGENTS.values())
    reports = [inspect_agent(each, env, project) for each in wanted]
    findings = [*_findings(context, env)]
    refused = _launch_findings(context, [report.agent for report in reports if report.program])
    findings += [each for each in refused if each.text not in {known.text for known in findings}]
    if agent and reports[0].program is None:
        missing, trouble = wanted[0], escape(reports[0].problem)
        absent = f"{missing.title} is not installed. Run {missing.package}."
        text = f"{trouble}." if trouble else absent
        findings.insert(0, Finding(level="broken", topic=agent, text=text))
    broken = any(each.level == "broken" for each in findings)
    if context.json:
        context.show(
            {
                "ok": not broken,
                "agents": [
                    _report_json(report, _traffic(context, report.agent)) for report in reports
                ],
                "findings": [each.to_json() for each in findings],
            }
        )
    else:
        for report in reports:
            _say_agent(context, report)
            if agent is not None:
                _say_controls(context, report.agent)
        _say_findings(context, findings)
    return EXIT.FAILED if broken else EXIT.DONE


def _findings(context: CommandContext, env: dict[str, str]) -> Iterable[Finding]:
    home, uid = Home(context.home), os.getuid()
    yield from check_machine()
    yield from check_git(env)
    yield from check_terminal(env, Path.home())
    yield from uncontained_sessions(home, SystemClock())
    programs = {agent.name for agent in AGENTS.values()}
    yield from running_agents(programs, uid=uid, home=home.path)
    yield check_code(_packages(), uid=uid)
    if (shared := check_hard_links(own_folders())) is not None:
        yield shared
    yield from check_home(home, uid=uid)
    with contextlib.suppress(ConsoleUnavailable):
        if HomeClient(context.home).request("GET", "/v1/status")[1]["unattended"]:
            yield Finding(level="note", topic="vault", text=UNATTENDED)


def _program_findings(context: CommandContext, prepared: PreparedLaunch) -> Iterable[Finding]:
    """Report the programs of an agent's own settings that a sandbox would not have."""
    name, programs = prepared.agent.name, prepared.named_programs
    for sentence in missing_sentences(programs):
        yield Finding(level="warning", topic=name, text=sentence)
    digest = missing_checks_digest(name, programs)
    if digest is None:
        return
    try:
        accepted = accepted_launch_settings(context.home, name, Path.home())
    except ConsoleUnavailable:
        return  # nobody to ask what was accepted
    if accepted is None or accepted.digest != digest:
        text = "A launch asks you first, because checks of yours would not run, or needs --accept-missing-checks."
        yield Finding(level="warning", topic=name, text=text)


def _traffic(context: CommandContext, agent: Agent) -> ModelTraffic:
    """Return what of the agent's model traffic would pass the gateway, launched here and now."""
    try:
        own = load_settings(Home(context.home).config).launch.get(agent.name, LaunchSettings())
    except FileProblems:  # a launch reports the error
        own = LaunchSettings()
    found = agent_environment(
        agent,
        dict(os.environ),
        home=Path.home(),
        project=Path.cwd(),
        of_person=own,
        of_project=LaunchSettings(),
        args=(),
        has=(lambda _: False) if sys.platform == "linux" else None,
    )
    return predict_traffic(agent, found.env, Path.home(), Path.cwd(), own.args)


def _launch_findings(context: CommandContext, agents: Iterable[Agent]) -> Iterable[Finding]:
    """Report whether `aileron launch` would start each of *agents* in this folder, by the launcher's own plan."""
    try:
        settings = load_settings(Home(context.home).config)
    except FileProblems:  # reported with the home
        return
    startable: list[str] = []
    reasons: dict[str, list[str]] = {}
    for agent in agents:
        request = LaunchRequest(
            agent=agent,
            args=(),
            project=Path.cwd().resolve(),
            home=Path.home(),
            aileron_home=context.home,
            env=dict(os.environ),
            relay={},
            sandbox="on" if sys.platform == "linux" else "off",
            settings=settings.launch,
            paths=settings.paths,
        )
        try:
            prepared = check_launch(request)
            with contextlib.suppress(ConsoleUnavailable):  # without one nothing is verified yet
                require_accepted_settings(context.home, settings, agent.name)
        except AileronError as error:
            reasons.setdefault(error.message, []).append(agent.name)
            continue
        startable.append(agent.name)
        for sentence in prepared.agent_files.notices:
            yield Finding(level="note", topic=agent.name, text=sentence)
        yield from _program_findings(context, prepared)
    for reason, names in reasons.items():
        topic = names[0] if len(names) == 1 else "launch"
        yield Finding(level="broken", topic=topic, text=reason)
    if startable:
        text = f"`aileron launch` can start these in this folder: {', '.join(startable)}."
        yield Finding(level="ok", topic="launch", text=text)


def _packages() -> list[Path]:
    folders: list[Path] = []
    for name in _PACKAGES:
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.origin is not None:
            folders.append(Path(spec.origin).parent)
    return folders


def _report_json(report: AgentReport, traffic: ModelTraffic) -> dict[str, Any]:
    return {
        "name": report.agent.name,
        "program": str(report.program) if report.program else None,
        "version": report.version,
        "tried": list(report.agent.tested_versions),
        "trouble": report.problem,
        "controls": list(report.agent.controls),
        "outside": list(report.agent.not_controlled),
        "gateway": {"providers": sorted(traffic.providers), "past": list(traffic.bypass_reasons)},
    }


def _say_agent(context: CommandContext, report: AgentReport) -> None:
    agent = report.agent
    if report.program is None:
        why = escape(report.problem) or f"not installed ({agent.package})"
        context.say(f"{agent.title}: {why}")
    else:
        tried = (
            "tested"
            if report.is_tested_version
            else f"tested with {', '.join(agent.tested_versions)}"
        )
        version = f"{report.version}, {tried}" if report.version else report.problem
        context.say(f"{agent.title}: {escape(version)}  {escape(str(report.program))}", bold=True)


def _say_controls(context: CommandContext, agent: Agent) -> None:
    traffic = _traffic(context, agent)
    context.say("  Controlled by Aileron:")
    for sentence in agent.controls:
        context.say(f"  ✓ {sentence}")
    if traffic.providers:
        passing = ", ".join(sorted(traffic.providers))
        context.say(
            f"  ✓ When launched here, its model traffic goes through Aileron's gateway: {passing}."
        )
    context.say("  Not controlled by Aileron:")
    for sentence in agent.not_controlled:
        context.say(f"  ▲ {sentence}")
    for sentence in bypass_warnings(agent, traffic):
        context.say(f"  ▲ {escape(sentence)}")


def _say_findings(context: CommandContext, findings: Iterable[Finding]) -> None:
    for each in findings:
        context.say(f"{_SIGNS[each.level]} {each.topic}: {escape(each.text)}")
