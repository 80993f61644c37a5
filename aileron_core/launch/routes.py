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


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What decides whose models an agent asks; until then, it takes any provider of which it finds a variable."""

    patterns: tuple[str, ...]
    """As of a condition: settings with one of which it is decided."""
    instead: str
    """How to decide it, the beginning of a sentence."""
    table: str
    """The agent's table in `config.toml`."""


@dataclass(frozen=True, slots=True)
class Condition:
    """What has to be set for a route to count."""

    text: str
    """A clause: "Bedrock is chosen"."""
    patterns: tuple[str, ...]
    """`NAME`, or `NAME=value`, one of which a setting in effect matches; `*` stands for any text."""
    choice: Choice | None = None
    """For an agent that may use a provider which nothing chooses."""


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
    only_named: bool = False
    """The agent may do without it: its loss is said at the launch, which goes on."""
    runs_program: bool = False
    """Whether it names a program; it is refused only if that is not in the sandbox."""
    names_variables: bool = False
    """Its values are names of variables, which are carried too."""
    only_while: Condition | None = None
    unless: tuple[str, ...] = ()
    """Patterns as of a condition: the route does not count while a setting matches one of them."""
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
    lost_notices: list[str] = []
    for route in routes:
        if route.refused:
            there = programs if route.runs_program else ()
            lost = [each for each in known if (each.where, each.value) not in there]
            sentences = lost_notices if route.only_named else refusals
            sentences += _refusals(title, route, lost, chosen, home)
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
    idle = _idle(routes, env, own, chosen)
    of_project, rest = _with_projects(title, idle, known)
    undecided, notices = _named(title, rest, known)
    return RouteJudgement(
        carried=carried,
        refusals=tuple(dict.fromkeys((*refusals, *of_project, *undecided))),
        notices=(*lost_notices, *notices),
    )


_Idle = Mapping[str, Route]
"""Variables of the person's that are set -> the row that would count if its provider were chosen."""


def _idle(
    routes: Iterable[Route],
    env: Mapping[str, str],
    own: Sequence[RouteSetting],
    chosen: Collection[str],
) -> _Idle:
    effective = [each for each in own if is_in_effect(each.value)]
    return {
        name: route
        for route in routes
        if route.source == "environment" and route.only_while is not None
        if not _triggers(route, effective)
        if not any(_matches(each, pattern) for each in effective for pattern in route.unless)
        for name, value in env.items()
        if value and name not in chosen and fnmatchcase(name, route.name)
    }


def _with_projects(
    title: str, idle: _Idle, known: Iterable[RouteSetting]
) -> tuple[list[str], _Idle]:
    """Return the refusals of what only a project's settings would bring into the sandbox, and the rest of *idle*."""
    triggers = {name: _triggers(route, known) for name, route in idle.items()}
    refusals = [
        f"{found[0].where} sets {found[0].name}, for which {title} uses {name}. A project's settings bring "
        "nothing into the sandbox: move that setting to your own settings, or remove it."
        for name, found in triggers.items()
        if found and not idle[name].refused
    ]
    return refusals, {name: route for name, route in idle.items() if not triggers[name]}


def _named(
    title: str, idle: _Idle, known: Sequence[RouteSetting]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return a refusal for variables that may be what chooses the provider, or a notice once another is chosen."""
    choices = {
        name: route.only_while.choice
        for name, route in idle.items()
        if route.only_while is not None and route.only_while.choice is not None
    }
    names = ", ".join(sorted(choices))
    choice = next(iter(choices.values()), None)
    if choice is None:
        return (), ()
    table = f"under `env` of `[launch.{choice.table}]` in config.toml"
    if any(
        _matches(each, pattern)
        for each in known
        for pattern in choice.patterns
        if is_in_effect(each.value)
    ):
        sentence = (
            f"Not in the sandbox: {names}. {title} would take it as a model provider's key or address, but neither "
            f"your settings nor its arguments choose a model of that provider. Choose one, or set the variable {table}."
        )
        return (), (sentence,)
    sentence = (
        f"{YOUR_ENVIRONMENT} sets {names}, which {title} takes as a model provider's key or address, and no model is "
        f'chosen. {choice.instead}, or set each variable {table} ("" to do without it), or unset it.'
    )
    return (sentence,), ()


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
        if route.only_while is None:
            return [f"{title} uses {route.name}. {route.refused}"]
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
            for item in value:  # pyright: ignore[reportUnknownVariableType]
                if isinstance(item, Mapping):
                    yield from flat(item, f"{path}.")  # pyright: ignore[reportUnknownArgumentType]
                else:
                    yield path, str(item)  # pyright: ignore[reportUnknownArgumentType]
        elif value is not None:
            yield path, str(value)
