"""What another `config.toml` or `policy.toml` allows that the accepted one does not, and what else differs. Pure."""

import json
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final, cast

from aileron_core.canonical import sha256_hex
from aileron_core.console_port.file_views import AcceptanceChangeView, ChangeDirection, ChangeKind
from aileron_core.errors import FileProblems
from aileron_core.library.comparison import DIRECTIONS, Row, compare, rows_of
from aileron_core.policy.model import Decision, Policy, Rule, rule_in_words
from aileron_core.policy.policy_file import parse_policy

_DEFAULTS: Final[Mapping[str, float]] = {
    "approval.expires_seconds": 1800,
    "console.arm_ms": 400,
    "console.lock_minutes": 0,
    "history.days": 30,
    "vault.lock_minutes": 60,
}
"""Of the settings whose direction is a number's (docs/wire.md#defaults)."""
_ZERO_IS_NEVER: Final = frozenset(
    {"approval.expires_seconds", "console.lock_minutes", "vault.lock_minutes"}
)
_LESS_ALLOWS_MORE: Final = frozenset({"console.arm_ms"})
_LOOKS: Final = ("console.theme", "console.glyphs", "console.bell", "notify.osc9")
"""How the console looks and sounds: they allow nothing and decide nothing, so nobody has to accept them."""
_ALLOWS_NOTHING: Final = ("server.", "log.", "mcp.hold_seconds", *_LOOKS)
_PATHS: Final = frozenset({"launch.read", "launch.write", "launch.hide"})
_FIRST: Final = ("gateway.", "launch.", "notify.", "console.keys.", "vault.", "approval.")
"""Where traffic goes, what an agent gets, what is started, what a key does; in this order."""
_KINDS: dict[Decision, ChangeKind] = {
    "allow": "rule_allows",
    "ask": "rule_asks",
    "deny": "rule_denies",
}


def compare_settings(old: str, new: str) -> tuple[AcceptanceChangeView, ...]:
    """Return what differs between two `config.toml`, what allows more first.

    A setting that this list does not know counts as allowing more.

    Raises:
        ValueError: one of them is not TOML.
    """
    found = compare(*(_setting_rows(text) for text in (old, new)), rule=_direction)
    return tuple(sorted(found, key=_rank))


def _setting_rows(text: str) -> list[Row]:
    return [
        Row("setting", name, _shown(each), each) for name, each in _flat("", tomllib.loads(text))
    ]


def settings_sha256(text: str) -> str:
    """Return the hash of what *text*, a `config.toml`, sets, less what only changes how the console looks.

    Raises:
        ValueError: it is not TOML.
    """
    content = tomllib.loads(text)
    for section, _, key in (name.partition(".") for name in _LOOKS):
        if isinstance(table := content.get(section), dict):
            cast("dict[str, Any]", table).pop(key, None)
    set_ = {section: table for section, table in content.items() if table != {}}
    return sha256_hex(json.dumps(set_, sort_keys=True, default=str).encode())


def _flat(prefix: str, table: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    for name, value in table.items():
        if isinstance(value, dict):
            yield from _flat(f"{prefix}{name}.", cast("dict[str, Any]", value))
        else:
            yield f"{prefix}{name}", value


def _direction(old: Row | None, new: Row | None) -> ChangeDirection:
    name = next(each.name for each in (old, new) if each is not None)
    before, after = (each.value if each is not None else None for each in (old, new))
    if name.startswith(_ALLOWS_NOTHING):
        return "other"
    if name in _DEFAULTS:
        less, more = (_number(name, each) for each in (before, after))
        return "narrower" if (more > less) == (name in _LESS_ALLOWS_MORE) else "wider"
    if name == "builtin.bash.rehearse":
        return "wider" if after == "never" else "narrower" if before == "never" else "other"
    if name in ("gateway.require_unlocked", "gateway.inspect"):
        return "narrower" if after is True else "wider"
    if name in _PATHS:
        had, has = (_elements(each) for each in (before, after))
        return "narrower" if (had <= has if name == "launch.hide" else has <= had) else "wider"
    if name.startswith(("gateway.", "store.")) and after in (None, ""):
        return "narrower"  # the provider's own address, or GitHub's
    return "wider"


def _elements(value: object) -> set[str]:
    found = cast("list[object]", value) if isinstance(value, list) else [value]
    return {_shown(each) for each in found if each is not None}


def _number(name: str, value: object) -> float:
    number = value if isinstance(value, int | float) else _DEFAULTS[name]
    return float("inf") if name in _ZERO_IS_NEVER and not number else number


def _shown(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _rank(change: AcceptanceChangeView) -> tuple[int, int, str]:
    place = next((n for n, each in enumerate(_FIRST) if change.name.startswith(each)), len(_FIRST))
    return DIRECTIONS[change.direction], place, change.name


def compare_policies(old: str, new: str) -> tuple[AcceptanceChangeView, ...]:
    """Return what differs between two `policy.toml`, what allows more first.

    Raises:
        ValueError: one of them cannot be read.
    """
    try:
        before, after = parse_policy(old), parse_policy(new)
    except FileProblems as error:
        raise ValueError(str(error)) from error
    found = compare(_policy_rows(before), _policy_rows(after))
    if not found and old != new:
        return (AcceptanceChangeView(kind="text", direction="other", name="reasons or comments"),)
    return found


def _policy_rows(policy: Policy) -> Iterator[Row]:
    """Yield the rules, whatever their reasons, and the exceptions."""
    for rule in policy.rules:
        key = repr(replace(rule, reason="", source=""))
        yield Row(_KINDS[rule.decision], key, rule_text(rule))
    for rule in policy.action_rules:
        where = dict(sorted(rule.where.items()))
        key = repr(replace(rule, where=where, reason="", source=""))
        kind = "rule_opens" if rule.is_open else _KINDS[rule.decision]
        yield Row(kind, key, rule_in_words(rule))
    yield from rows_of("secret_except", policy.secret_exceptions)


def rule_text(rule: Rule) -> str:
    """Return what a rule is about, in one line: its tools, its paths or command, and its changes."""
    about = (
        [*map(repr, rule.argv)]
        if any(" " in word or not word for word in rule.argv)
        else [*rule.argv]
    )
    words = ", for ".join(filter(None, (" ".join(about), ", ".join(rule.paths))))
    tools = ", ".join(rule.tools)
    text = f"{tools}: {words}" if words else tools
    if rule.changes is None:
        return text
    return (
        f"{text}, if it changes {'only ' + ', '.join(rule.changes) if rule.changes else 'nothing'}"
    )
