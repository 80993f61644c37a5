"""The network of one launch with `--sandbox=hosts`: what it may reach, and who learns what it refused."""

from aileron_core.console_port.view_models import RefusedHost
from aileron_core.launch.interfaces import LaunchedSession, Prompter, SessionPort
from aileron_core.launch.network.host_network import HostNetwork
from aileron_core.launch.network.host_resolver import HostList
from aileron_core.launch.prepare import LaunchRequest
from aileron_core.text import escape

_MAX_NAMED = 10


def listed_hosts(request: LaunchRequest) -> HostList:
    """Return the hosts that the agent would reach with `--sandbox=hosts`."""
    return HostList(request.hosts, request.agent.hosts)


def host_network(
    request: LaunchRequest, session: LaunchedSession, console: SessionPort
) -> HostNetwork | None:
    """Return the network of a sandbox that reaches listed hosts only, not yet started; None for any other."""
    if request.sandbox != "hosts":
        return None

    def report(refused: RefusedHost) -> bool:
        return console.report_refused_host(session.session_id, refused.host, refused.problem)

    return HostNetwork(listed_hosts(request), report)


def end_network(network: HostNetwork, prompter: Prompter) -> None:
    """End *network*, and tell the person what it refused."""
    network.stop()
    if network.failure:
        prompter.say(f"The sandbox's network could not be opened: {escape(network.failure)}.")
    for bug in sorted(network.bugs):
        prompter.say(
            f"A connection of the sandbox failed because of an error in Aileron ({bug}). Please report it."
        )
    refused = [each for each in network.refused if each not in network.hosts]
    if refused:
        named = ", ".join(escape(each) for each in refused[:_MAX_NAMED])
        more = len(refused) - _MAX_NAMED
        prompter.say(
            f"Hosts that the agent could not reach: {named}{f' and {more} more' if more > 0 else ''}. "
            "To list one, add it to `hosts` under [launch] in config.toml."
        )
