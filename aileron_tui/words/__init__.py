"""Every sentence of the console, by where it appears. Second person, present tense; digits for counts.

Functions take text that was rendered before (`aileron_core.text.escape`) where it comes from
outside, and return plain strings; the caller chooses the role.
"""

from aileron_tui.words import (
    acceptance,
    accounts,
    bars,
    context,
    files,
    filters,
    item,
    keys,
    panels,
    plain,
    refusals,
    status,
    terminal,
    vault,
    views,
)

__all__ = [
    "acceptance",
    "accounts",
    "bars",
    "context",
    "files",
    "filters",
    "item",
    "keys",
    "panels",
    "plain",
    "refusals",
    "status",
    "terminal",
    "vault",
    "views",
]
