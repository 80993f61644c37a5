"""`aileron launch AGENT --dry-run`: what a launch would set and mount, as a table. Nothing is opened or written."""

import shlex
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from aileron_core.containment.mounts import Mount, MountHow
from aileron_core.home.layout import Home
from aileron_core.home.owner import read_daemon_file
from aileron_core.ids import PLACEHOLDER_END, is_placeholder
from aileron_core.launch.contained_run import listed_hosts
from aileron_core.launch.launcher import key_sentences
from aileron_core.launch.model_traffic import bypass_warnings
from aileron_core.launch.named_programs import ResolvedProgram, missing_sentences
from aileron_core.launch.prepare import LaunchRequest, PreparedLaunch, prepare
from aileron_core.launch.sandbox import planned_mounts
from aileron_core.launch.tools.sandboxes import planned_tool_mounts, tool_networks
from aileron_core.launch.variables import fits
from aileron_core.settings import load_settings
from aileron_core.text import escape
from aileron_tui.cli.accepted import stored_model_keys
from aileron_tui.cli.output import EXIT, CommandContext

_HIDDEN = "HIDDEN"
"""Printed in place of the gateway token and of a placeholder's random part."""
_WIDEST_PATH = 48
"""Columns of a path in the table of mounts; a longer one pushes the rest of its line to the right."""


def _address(home: Path) -> str:
    """Return where the console's gateway is, or would be; a URL is no secret."""
    url: object = read_daemon_file(home).get("url")
    return url if isinstance(url, str) and url else "http://127.0.0.1:PORT"


def mount_table(mounts: Iterable[Mount], home: Path) -> list[str]:
    """Return a table of *mounts*: path, how, why. The person's *home* is written `~`.

    Those in a row that share how and why are on one line, as far as their paths fit.
    """
    rows: list[tuple[str, MountHow, str]] = []
    for each in mounts:
        inside = each.path.is_relative_to(home)
        path = escape(str(Path("~", each.path.relative_to(home)) if inside else each.path))
        if rows and rows[-1][1:] == (each.how, each.why):
            both = f"{rows[-1][0]}, {path}"
            if len(both) <= _WIDEST_PATH:
                path = both
                rows.pop()
        rows.append((path, each.how, each.why))
    short = [len(path) for path, _, _ in rows if len(path) <= _WIDEST_PATH]
    width = max(short, default=0)
    return [f"{path:<{width}}  {how:<9}  {why}" for path, how, why in rows]


def show_dry_run(context: CommandContext, request: LaunchRequest) -> int:
    """Print what would be set. Nothing is opened, written or started."""
    prepared = prepare(request, PurePosixPath("<private>"))
    gateway = f"{_address(context.home)}/gw/{_HIDDEN}"
    stored = stored_model_keys(context.home, load_settings(Home(context.home).config))
    keys = tuple(each.provider for each in stored if not each.problem)
    prepared = prepared.with_gateway(gateway, _HIDDEN + PLACEHOLDER_END, keys)
    if context.json:
        context.show(_json(request, prepared, gateway))
        return EXIT.DONE
    context.say(
        f"Would start {escape(str(prepared.program))} in {escape(str(request.project))}", bold=True
    )
    _show_sandbox(context, request, prepared)
    _show_tools(context, request, prepared)
    _show_start(context, request, prepared, gateway)
    _show_control(context, request, prepared)
    return EXIT.DONE


def _providers(prepared: PreparedLaunch) -> list[str]:
    """Return whose model traffic goes through the gateway."""
    return sorted(prepared.traffic.providers) if prepared.traffic else []


def _hosts(request: LaunchRequest) -> list[str]:
    return list(listed_hosts(request)) if request.sandbox == "hosts" else []


_OWN = "(your own value, with Aileron's settings added)"


def _own_variables(request: LaunchRequest, prepared: PreparedLaunch) -> dict[str, str]:
    """Return the variables that differ from the person's.

    A merged setting may contain a secret of the person's, and so may what only a file sets; only what
    is Aileron's alone is shown.
    """
    given, plan = request.env, prepared.plan
    of_files = {
        name
        for name in prepared.env.keys() - plan.env.keys()
        if fits(name, request.agent.variables)
    }
    own = {*given, *of_files, *plan.private}
    return {
        name: _OWN if name in own and not is_placeholder(value) else value
        for name, value in sorted(prepared.env.items())
        if given.get(name) != value
    }


def _json(request: LaunchRequest, prepared: PreparedLaunch, gateway: str) -> dict[str, object]:
    plan, project, through = prepared.plan, prepared.project_settings, _providers(prepared)
    return {
        "agent": request.agent.name,
        "program": str(prepared.program),
        "argv": list(plan.argv),
        "env": _own_variables(request, prepared),
        "files": {**plan.files, **dict.fromkeys(plan.private & plan.files.keys(), _OWN)},
        "additions": {str(each.path): each.content for each in plan.injected_files},
        "sandbox": request.sandbox,
        "hosts": _hosts(request),
        "left_out": list(prepared.tools.left_out),
        "mounts": _mounts_json(planned_mounts(request, prepared)),
        "builtins": prepared.context.builtins,
        "tool_sandboxes": _tool_sandboxes(request, prepared),
        "copies": [str(path) for path in prepared.agent_files.copied],
        "gateway": {
            "url": gateway if through else None,
            "providers": through,
            "past": list(prepared.traffic.bypass_reasons) if prepared.traffic else [],
            "placeholders": list(prepared.placeholder_providers),
        },
        "programs": [
            _program_json(each) for each in prepared.named_programs if each.missing_file is None
        ],
        "project": list(project.lines()) if project else [],
    }


def _mounts_json(mounts: Iterable[Mount]) -> list[dict[str, str]]:
    return [{"path": str(each.path), "how": each.how, "why": each.why} for each in mounts]


def _tool_sandboxes(
    request: LaunchRequest, prepared: PreparedLaunch
) -> dict[str, dict[str, object]]:
    """Return the sandbox of each worker of the built-in tools; nothing without them, or without a sandbox."""
    if prepared.builtin_tools is None or prepared.support is None:
        return {}
    mounts = planned_tool_mounts(request, prepared)
    return {
        kind: {"network": shared, "mounts": _mounts_json(mounts)}
        for kind, shared in tool_networks(request).items()
    }


def _show_tools(context: CommandContext, request: LaunchRequest, prepared: PreparedLaunch) -> None:
    if prepared.builtin_tools is None:
        return
    how = "instead of" if prepared.context.builtins == "instead" else "besides"
    context.say(
        f"  tools     Aileron's Read, Write, Edit, Bash, Glob and Grep, {how} the agent's own"
    )
    if prepared.support is None:
        context.say("    they run as processes of yours, without a sandbox")
        return
    for kind, shared in tool_networks(request).items():
        network = "this machine's network" if shared else "no network"
        context.say(f"    a sandbox for {kind}, with {network}")
    context.say("    both have:")
    for line in mount_table(planned_tool_mounts(request, prepared), request.home):
        context.say(f"    {line}")


def _show_sandbox(
    context: CommandContext, request: LaunchRequest, prepared: PreparedLaunch
) -> None:
    context.say(f"  sandbox   {request.sandbox}")
    for host in _hosts(request):
        context.say(f"  reaches   {escape(host)}")
    why = "a copy of the agent's own settings"
    copies = [
        Mount(path=request.home / path, how="copy", why=why) for path in prepared.agent_files.copied
    ]
    for line in mount_table([*planned_mounts(request, prepared), *copies], request.home):
        context.say(f"    {line}")
    for clause in prepared.tools.left_out:
        context.say(f"    not in the sandbox, but on PATH: {escape(clause)}")


def _show_start(
    context: CommandContext, request: LaunchRequest, prepared: PreparedLaunch, gateway: str
) -> None:
    plan = prepared.plan
    context.say(f"  command   {escape(shlex.join(plan.argv))}")
    if _providers(prepared):
        context.say(f"  gateway   {escape(gateway)}")
    for name, value in _own_variables(request, prepared).items():
        context.say(f"  sets      {name}={escape(value)}")
    for name in plan.files:
        context.say(f"  writes    <private>/{name}, removed at the end")
    for each in plan.injected_files:
        context.say(f"  adds      ~/{each.path}, removed at the end")
    for each in prepared.named_programs:
        if not each.problem and each.missing_file is None:
            named = each.named
            what = f"{named.file}, {named.key}" if named.key else named.file
            context.say(f"  program   {escape(named.shown_command)}   ({escape(what)})")
    for line in prepared.project_settings.lines() if prepared.project_settings else ():
        context.say(f"  project   {line}   (once you accept it)")


def _program_json(each: ResolvedProgram) -> dict[str, object]:
    return {
        "file": each.named.file,
        "key": each.named.key,
        "command": each.named.shown_command,
        "kind": "check" if each.named.check else "program",
        "mounts": [str(path) for path, _ in each.mounts],
        "problem": each.problem,
        "stops_launch": each.is_missing_check,
    }


def _show_control(
    context: CommandContext, request: LaunchRequest, prepared: PreparedLaunch
) -> None:
    """Print what Aileron controls of the agent, and what it does not."""
    through, traffic = _providers(prepared), prepared.traffic
    past = bypass_warnings(request.agent, traffic, offline=request.offline) if traffic else ()
    context.say("  Controlled by Aileron:")
    for sentence in (*prepared.agent.controls, *key_sentences(prepared)):
        context.say(f"  ✓ {sentence}")
    if through:
        context.say(f"  ✓ Its model traffic goes through Aileron's gateway: {', '.join(through)}.")
    context.say("  Not controlled by Aileron:")
    for sentence in prepared.agent.not_controlled:
        context.say(f"  ▲ {sentence}")
    for sentence in (
        *prepared.agent_files.notices,
        *prepared.paths.notices,
        *past,
        *prepared.left_out_keys,
        *prepared.unused_keys,
        *prepared.servers.sentences,
        *prepared.plan.beside,
        *([prepared.plan.lost_key] if prepared.plan.lost_key else []),
        *missing_sentences(prepared.named_programs),
    ):
        context.say(f"  ▲ {escape(sentence)}")
    if traffic is None:
        context.say("  ▲ Its model traffic: --no-gateway is set.")
