"""The placeholder of published action files, replaced with the hash of the installed connector."""

import tomllib
from collections.abc import Sequence

import tomlkit
from tomlkit.exceptions import TOMLKitError

from aileron_core.actions.load import locate_problems
from aileron_core.actions.model import UNBOUND_HASH, Action, ConnectorRequirement
from aileron_core.connectors.store import InstalledConnector
from aileron_core.errors import FileProblems, Problem


def bind_placeholders(
    data: bytes, action: Action, installed: tuple[InstalledConnector, ...]
) -> tuple[bytes, dict[str, str]]:
    """Return the file with each placeholder bound, and what was bound (connector -> hash).

    Comments and layout of the front matter stay as they are.

    Raises:
        FileProblems: none or several installed connectors fit a placeholder.
    """
    bound: dict[str, str] = {}
    problems: list[Problem] = []
    for index, requirement in enumerate(action.requires):
        if requirement.hash != UNBOUND_HASH:
            continue
        named = [each.identity for each in installed if each.identity.fqn == requirement.fqn]
        fitting = [each.hash for each in named if each.version == requirement.version]
        if len(fitting) == 1:
            bound[requirement.fqn] = fitting[0]
            continue
        key = f"requires.connectors[{index}].hash"
        message = _refusal(requirement, fitting, sorted({each.version for each in named}))
        problems.append(Problem(file=action.file, key=key, message=message))
    if problems:
        raise FileProblems(locate_problems(problems, data))
    return (_rewritten(data, bound, action) if bound else data), bound


def _refusal(
    requirement: ConnectorRequirement, fitting: Sequence[str], versions: Sequence[str]
) -> str:
    ref = f"{requirement.fqn}@{requirement.version}"
    if fitting:
        return (
            f"{UNBOUND_HASH} needs exactly one installed {ref}, but several are installed: "
            f"{', '.join(fitting)}. Write the hash of one into the file, or remove the others with "
            "`aileron connector remove HASH`"
        )
    others = f", only version {', '.join(versions)}" if versions else ""
    return (
        f"{UNBOUND_HASH} needs an installed {ref}, and there is none{others}. Run `aileron connector "
        "install FOLDER`, then add the file again"
    )


def _rewritten(data: bytes, bound: dict[str, str], action: Action) -> bytes:
    lines = data.decode("utf-8-sig").split("\n")
    fences = [number for number, line in enumerate(lines) if line.strip() == "+++"][:2]
    head = "\n".join(lines[fences[0] + 1 : fences[1]]) + "\n"
    tail = "\n".join(lines[fences[1] :])
    front = _replaced(head, bound, action) or _edited(head, bound, action)
    return ("\n".join(lines[: fences[0] + 1]) + "\n" + front + tail).encode()


def _replaced(head: str, bound: dict[str, str], action: Action) -> str | None:
    """Return *head* with the placeholder's text replaced; None if that would change anything else.

    It takes a third of the time of an edit, and published suites have hundreds of files.
    """
    intended = [
        bound[each.fqn] if each.hash == UNBOUND_HASH else each.hash for each in action.requires
    ]
    hashes = set(bound.values())
    unbound = sum(each.hash == UNBOUND_HASH for each in action.requires)
    if len(hashes) > 1 or head.count(UNBOUND_HASH) != unbound:
        return None
    front = head.replace(UNBOUND_HASH, hashes.pop())
    try:
        written = [each["hash"] for each in tomllib.loads(front)["requires"]["connectors"]]
    except (ValueError, KeyError, TypeError):
        return None
    return front if written == intended else None


def _edited(head: str, bound: dict[str, str], action: Action) -> str:
    """Return *head* with each placeholder replaced, whatever else the front matter holds."""
    try:
        document = tomlkit.parse(head)
    except TOMLKitError as error:  # tomllib read it, so this is a difference between two parsers
        message = f"the front matter cannot be rewritten: {error}; write the hash into the file"
        raise FileProblems([Problem(file=action.file, message=message)]) from error
    for requirement in document["requires"]["connectors"]:
        if requirement["hash"] == UNBOUND_HASH:
            requirement["hash"] = bound[str(requirement["name"])]
    return tomlkit.dumps(document)
