"""What chooses an agent's model, where its requests go and with which key: carried into the sandbox, or refused by name.

Each agent's module has a table of such settings. A launch obeys it, and its page in docs/agents shows it.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Literal

_OFF = frozenset(("", "0", "false", "no", "off"))
_PROVIDERS_OWN = frozenset(
    f"https://{host}{path}"
    for host in (
        "api.anthropic.com",
        "api.openai.com",
        "generativelanguage.googleapis.com",
    )
    for path in ("", "/v1", "/v1beta")
)
"""The gateway's own upstreams: a setting that names one of them changes no destination."""

YOUR_ENVIRONMENT = "Your environment"


@dataclass(frozen=True, slots=True)
class Condition:
    """What has to be set for a route to count."""

    text: str
    """A clause: "Bedrock is chosen"."""
    patterns: tuple[str, ...]
    """`NAME`, or `NAME=value`, one of which a setting in effect matches; `*` stands for any text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """A setting that chooses which model answers an agent, where its requests go, or with which key."""

    name: str
    """A variable, a key of its settings, or the folder of a login; `*` stands for any text."""
    chooses: str
    """What it chooses, a noun phrase: "the model"."""
    source: Literal["environment", "settings", "login"] = "environment"
    refused: str = ""
    """Why it cannot be carried into the sandbox and what to do instead; empty where it is carried."""
    runs_program: bool = False
    """Whether it names a program; it is refused only if that is not in the sandbox."""
    names_variables: bool = False
    """Its values are names of variables, which are carried too."""
    only_while: Condition | None = None
    unless: tuple[str, ...] = ()
    """Patterns as of a condition: the route does not count while a setting matches one of them."""
    left_out: str = ""
    """What to do where it is set and does not count, which a launch then says; empty where it does not."""
    path: str = ""
    """Below the home: where a login is, or the value of a variable that changes nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteSetting:
    """A setting as it was found: in the environment, in a settings file or among the arguments."""

    name: str
    value: str = field(repr=False)
    where: str
    """`Your environment`, or the file that sets it."""
    from_project: bool = False
    outside: bool = False
    """Its file is not in the sandbox, so that its value has to be carried as a variable."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteJudgement:
    """What becomes of the settings that choose an agent's model, address and key."""

    carried: Mapping[str, str] = field(repr=False)
    """Variables of the person's for the agent's environment."""
    refusals: tuple[str, ...]
    """Why the agent cannot be started in a sandbox, a sentence or more each, not yet escaped."""
    notices: tuple[str, ...] = ()
    """What of them the sandbox does not have all the same, a sentence or more each, not yet escaped."""


def is_in_effect(value: object) -> bool:
    """Return whether a setting is on, or names an address other than a provider's own."""
    text = str(value or "").strip().lower().rstrip("/")
    return text not in _OFF and text not in _PROVIDERS_OWN


def judge_routes(
    title: str,
    routes: Sequence[Route],
    env: Mapping[str, str],
    settings: Iterable[RouteSetting],
    *,
    chosen: Mapping[str, str],
    home: Path,
    programs: Collection[tuple[str, str]] = (),
) -> RouteJudgement:
    """Return which variables of *env* the agent gets, and which settings it would lose in the sandbox.

    A project's settings can only lead to a refusal: they bring nothing into the sandbox.

    Args:
        title: the agent's name for display.
        chosen: variables that the person sets for this agent in `config.toml`; they are carried
            whatever they are, so nothing is refused because of them.
        programs: settings that name a program which the sandbox has, by file and value.
    """
    known = [
        RouteSetting(name=name, value=value, where=YOUR_ENVIRONMENT)
        for name, value in env.items()
        if name not in chosen
    ]
    known += [
        RouteSetting(name=name, value=value, where="config.toml") for name, value in chosen.items()
    ]
    known += settings
    own = [each for each in known if not each.from_project]
    values = {**{each.name: each.value for each in own if each.outside}, **env}
    carried: dict[str, str] = {}
    refusals: list[str] = []
    for route in routes:
        if route.refused:
            there = programs if route.runs_program else ()
            lost = [each for each in known if (each.where, each.value) not in there]
            refusals += _refusals(title, route, lost, chosen, home)
        elif _counts(route, own):
            for each in _matching(route, own):
                name = each.value if route.names_variables else each.name
                if name in values and name not in chosen:
                    carried[name] = values[name]
    for route in routes:
        if route.names_variables:
            refusals += [
                f"{each.where} names the variable {each.value}. A project's settings bring nothing into "
                "the sandbox: move that setting to your own settings, or remove it."
                for each in _matching(route, known)
                if each.from_project and each.value in values and each.value not in carried
            ]
    left_out = [
        route
        for route in routes
        if route.left_out and env.get(route.name) and route.name not in chosen
        if not _counts(route, own)
    ]
    notices = (_left_out_notice(title, left_out),) if left_out else ()
    return RouteJudgement(carried=carried, refusals=tuple(dict.fromkeys(refusals)), notices=notices)


def _left_out_notice(title: str, routes: Sequence[Route]) -> str:
    names = ", ".join(route.name for route in routes)
    return (
        f"Not in the sandbox: {names}. {title} would take it as a model provider's key, but neither your settings "
        f"nor its arguments choose a model of that provider. {routes[0].left_out}"
    )


def _refusals(
    title: str,
    route: Route,
    known: Sequence[RouteSetting],
    chosen: Mapping[str, str],
    home: Path,
) -> list[str]:
    if not _counts(route, known):
        return []
    if route.source == "login":
        if not (home / route.path).exists():
            return []
        return [
            f"{each.where} sets {each.name}, for which {title} uses {route.name}. {route.refused}"
            for each in _triggers(route, known)
        ][:1]
    found = _matching(route, known)
    return [
        f"{each.where} sets {each.name}, which chooses {route.chooses}. {route.refused}"
        for each in _triggers(route, found) or found
        if each.name not in chosen
        and is_in_effect(each.value)
        and not (route.path and Path(each.value) == home / route.path)
    ][:1]


def _matching(route: Route, known: Iterable[RouteSetting]) -> list[RouteSetting]:
    return [each for each in known if each.value and fnmatchcase(each.name, route.name)]


def _counts(route: Route, known: Iterable[RouteSetting]) -> bool:
    effective = [each for each in known if is_in_effect(each.value)]
    if any(_matches(each, pattern) for each in effective for pattern in route.unless):
        return False
    return route.only_while is None or bool(_triggers(route, effective))


def _triggers(route: Route, known: Iterable[RouteSetting]) -> list[RouteSetting]:
    """Return the settings in effect with which *route* counts."""
    patterns = route.only_while.patterns if route.only_while is not None else ()
    return [
        each
        for each in known
        if is_in_effect(each.value) and any(_matches(each, pattern) for pattern in patterns)
    ]


def _matches(setting: RouteSetting, pattern: str) -> bool:
    name, assigned, value = pattern.partition("=")
    return fnmatchcase(setting.name, name) and (not assigned or fnmatchcase(setting.value, value))


def flat(table: Mapping[str, object], prefix: str = "") -> Iterable[tuple[str, str]]:
    """Return every value in nested tables, under the dotted path of its keys; lists item by item."""
    for key, value in table.items():
        path = f"{prefix}{key}"
        if isinstance(value, Mapping):
            yield from flat(value, f"{path}.")  # pyright: ignore[reportUnknownArgumentType]
        elif isinstance(value, list):
            yield from ((path, str(item)) for item in value)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        elif value is not None:
            yield path, str(value)
