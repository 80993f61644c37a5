"""Codex's own tools: what switches them off, and what brings them back."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from aileron_core.launch.agents.settings_files import option_value, table_at

_FEATURES = (
    "shell_tool", "unified_exec", "view_image", "image_generation", "browser_use", "computer_use",
)  # fmt: skip
"""Its features with tools that act on files or run commands. None removes apply_patch, which the model decides."""
WITHOUT_OWN_TOOLS = (*(f"features.{name}=false" for name in _FEATURES), 'sandbox_mode="read-only"')
"""Settings of a session in which Aileron's tools stand in place of its own; the sandbox is for apply_patch."""
PLAIN_TOOLS = ["deferred", "code_mode"]
"""Where a server's tools are not put, so that every model is offered them from the start, by their names."""
STAYS = (
    "Codex keeps apply_patch with newer models (gpt-5.5 and later). Its own sandbox is read-only in this session, so "
    "Codex refuses a patch or asks you itself, outside Aileron's gate."
)
_BYPASSES = ("--dangerously-bypass-approvals-and-sandbox", "--full-auto", "--yolo")


def brought_back(
    args: Iterable[str], typed: Mapping[str, Any], managed: Mapping[str, Mapping[str, Any]]
) -> Iterator[str]:
    """Yield a sentence for each setting that counts over `WITHOUT_OWN_TOOLS`.

    Args:
        typed: the settings among *args*, as a configuration has them.
        managed: the configurations that count over arguments, by path.
    """
    words = list(args)
    found = [f"the arguments set {name}" for name in _settings(typed)]
    if option_value(words, "-s", "--sandbox") not in (None, "read-only"):
        found.append("the arguments contain --sandbox")
    found += [f"the arguments contain {word}" for word in words if word in _BYPASSES]
    found += [
        f"the arguments contain --enable {feature}"
        for option, feature in zip(["", *words], words, strict=False)
        if feature in _FEATURES and option == "--enable"
    ]
    found += [f"{path} sets {name}" for path, table in managed.items() for name in _settings(table)]
    for clause in found:
        yield f"Codex may use tools of its own, because {clause}. What they do is not gated."


def _settings(table: Mapping[str, Any]) -> Iterator[str]:
    features = table_at(table, "features")
    yield from (f"features.{name}" for name in _FEATURES if features.get(name) is True)
    if table.get("sandbox_mode", "read-only") != "read-only":
        yield "sandbox_mode"
