"""Whether the connectors that an accepted action requires are installed and accepted."""

from collections.abc import Mapping

from aileron_core.actions.model import Action, ConnectorIdentity, ConnectorRequirement
from aileron_core.errors import Problem


def availability_problems(
    action: Action, installed: Mapping[str, ConnectorIdentity], accepted: Mapping[str, str]
) -> list[Problem]:
    """Return the reasons why *action* cannot be offered to agents.

    Args:
        action: an action whose file is accepted.
        installed: the connectors in the store, by hash.
        accepted: the hash that a person accepted, by `fqn@version`.
    """
    problems: list[Problem] = []
    for index, requirement in enumerate(action.requires):
        if message := _unusable(requirement, installed.get(requirement.hash), accepted):
            key = f"requires.connectors[{index}].hash"
            problems.append(Problem(file=action.file, key=key, message=message))
    return problems


def _unusable(
    requirement: ConnectorRequirement,
    identity: ConnectorIdentity | None,
    accepted: Mapping[str, str],
) -> str | None:
    ref = f"{requirement.fqn}@{requirement.version}"
    if identity is None:
        return f"{ref} with this hash is not installed; install it with `aileron connector install FOLDER`"
    if identity.ref != ref:
        return f"the connector with this hash is {identity.ref}, not {ref}"
    if accepted.get(ref) != requirement.hash:
        return f"{ref} is not accepted: accept it in the console"
    return None
