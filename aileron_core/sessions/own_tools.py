"""The agents' own tools, by the names under which models call them, and which calls go around the gate.

What a launch switches off is in `aileron_core/launch/agents`; a test holds these tables to it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final


@dataclass(frozen=True, slots=True)
class _OwnTools:
    """One agent's own tools."""

    writing: frozenset[str]
    """Those that write files or run commands."""
    reading: frozenset[str]
    """Others that a launch with `--intercept-builtins` switches off."""


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_OWN_TOOLS: Final[Mapping[str, _OwnTools]] = MappingProxyType(
    {
        "codex": _OwnTools(
            # The last three are calls that the provider's own format has a kind for.
            _names(
                "apply_patch exec_command shell shell_command write_stdin "
                "apply_patch_call local_shell_call shell_call"
            ),
            _names("view_image"),
        ),
        "claude": _OwnTools(
            _names(
                "Bash Edit EnterWorktree ExitWorktree Monitor MultiEdit NotebookEdit PowerShell Workflow Write"
            ),
            _names("BashOutput Glob Grep KillShell LSP NotebookRead Read"),
        ),
        "opencode": _OwnTools(
            _names("apply_patch bash edit multiedit patch write"),
            _names("glob grep list lsp read"),
        ),
        "goose": _OwnTools(
            _names(
                "apps__create_app apps__delete_app apps__iterate_app developer__shell developer__text_editor "
                "edit shell text_editor write"
            ),
            _names(
                "analyze apps__list_apps delegate extensionmanager__list_resources "
                "extensionmanager__manage_extensions extensionmanager__read_resource "
                "extensionmanager__search_available_extensions load tree"
            ),
        ),
        "pi": _OwnTools(_names("bash edit powershell write"), _names("find grep ls read")),
    }
)
"""Of the agents whose models answer in a format that Aileron reads."""


def own_tools(agent: str) -> frozenset[str]:
    """Return the names of the tools of *agent* that act on files or run commands; none if it is not known."""
    found = _OWN_TOOLS.get(agent)
    return found.writing | found.reading if found is not None else frozenset()


def goes_around(agent: str, builtins: str, name: str) -> bool:
    """Return whether a call of the tool *name* is one of the agent's own that should have come to the gate.

    That is so of each tool that writes files or runs commands, and with `--intercept-builtins`
    (*builtins* is `instead`) of each that was switched off. Aileron's tools have a prefix in each of
    these agents, so none of theirs is called like one of ours.
    """
    found = _OWN_TOOLS.get(agent)
    if found is None:
        return False
    return name in found.writing or (builtins == "instead" and name in found.reading)
