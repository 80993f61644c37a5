"""What the sandboxes of the built-in tools have of this machine: the person's tools, and nothing of the agent's own."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from aileron_core.containment.bubblewrap import sandbox_environment
from aileron_core.containment.mounts import Mount, refuse_nested
from aileron_core.containment.programs import mount_roots, own_interpreter
from aileron_core.containment.toolchains import find_tools
from aileron_core.launch.caches import CACHE_ENVIRONMENT, cache_mounts
from aileron_core.launch.model_traffic import PROXY_VARIABLES

SYSTEM_PATH = ("/usr/local/bin", "/usr/bin", "/bin", "/usr/local/sbin", "/usr/sbin", "/sbin")
"""The last folders of a sandbox's PATH."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedTools:
    """The mounts and variables of the built-in tools; without a sandbox only the variables."""

    env: Mapping[str, str] = field(repr=False)
    mounts: tuple[Mount, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict[str, str])
    """Relative path -> text, for their private home."""


def prepare_tools(
    env: Mapping[str, str],
    *,
    home: Path,
    project: Path,
    aileron_home: Path,
    named: tuple[Mount, ...],
    of_project: Mapping[str, str],
    own_network: bool,
) -> PreparedTools:
    """Return what the tools' sandboxes have besides the project.

    Args:
        env: the person's environment.
        named: the paths that the person and the project named.
        of_project: the variables that the project sets for the agent.
        own_network: no proxy can be reached.

    Raises:
        Forbidden, NotFound: Python, which the workers run on, cannot be in a sandbox.
    """
    path = env.get("PATH", os.defpath)
    roots = mount_roots(own_interpreter(), path, home=home, excluded=(aileron_home, project))
    tools = find_tools(env, home, project, excluded=(aileron_home,), mounted=roots)
    mounts = (
        *(Mount(path=root, how="read-only", why="runs the built-in tools") for root in roots),
        *tools.mounts,
        *named,
        *cache_mounts(aileron_home, home, project),
    )
    refuse_nested(mounts, project)
    given = {**sandbox_environment(env), **tools.env, **of_project, **CACHE_ENVIRONMENT}
    if own_network:
        given = {name: value for name, value in given.items() if name not in PROXY_VARIABLES}
    search = os.pathsep.join(dict.fromkeys((*tools.path, *SYSTEM_PATH)))
    return PreparedTools(
        env={**given, "HOME": str(home), "PATH": search}, mounts=mounts, files=tools.files
    )


def prepare_uncontained_tools(env: Mapping[str, str]) -> PreparedTools:
    """Return what the tools get of the person's environment without a sandbox: all but what is Aileron's."""
    return PreparedTools(
        env={name: value for name, value in env.items() if not name.startswith("AILERON_")}
    )
