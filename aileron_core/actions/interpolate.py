"""References: `${args.NAME}` and `${STEP.path}` in the inputs of steps and previews.

A reference that is the whole string keeps its value's type; inside other text it becomes text. One to
an optional input that was not given drops its key or element. What a reference brought in is never
read as a reference again.
"""

import json
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

from aileron_core.actions.json_paths import is_array, lookup
from aileron_core.actions.model import Step
from aileron_core.actions.problems import quoted
from aileron_core.canonical import Json, JsonObject
from aileron_core.errors import MissingValue
from aileron_core.text import escape

_REFERENCE = re.compile(r"\$\{([^{}]*)\}")
_OPEN = "${"
_ARGS = "args"
_ID_PARTS = 64
_SHOWN = 40
_SHOWN_NAMES = 6


class _Absent:
    """An optional input that was not given; its reference alone drops the key or element."""


_ABSENT = _Absent()


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """One `${...}`: what stands between the braces, up to its first dot and after it."""

    head: str
    """`args`, or a step's id (an id with dots in it goes on in `path`)."""
    path: str

    @property
    def is_argument(self) -> bool:
        """Whether it names an argument of the call, and not an earlier step's output."""
        return self.head == _ARGS

    def __str__(self) -> str:
        return f"${{{self.head}.{self.path}}}"


def references(template: Json) -> tuple[Reference, ...]:
    """Return every well-formed reference in the strings of *template*, in order."""
    return tuple(reference for _, reference in placed_references(template))


def placed_references(template: Json) -> Iterator[tuple[tuple[str | int, ...], Reference]]:
    """Yield (place in *template*, reference) for every well-formed reference, in order."""
    for place, text in _strings(template, ()):
        for match in _REFERENCE.finditer(text):
            head, dot, path = match[1].partition(".")
            if head and dot and path:
                yield place, Reference(head=head, path=path)


def template_problems(
    template: Json, *, declared: Collection[str], steps: Collection[str]
) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Yield (place in *template*, what is wrong) for each reference that could never be filled in.

    Args:
        template: a TOML value as JSON.
        steps: the ids of the earlier steps.
    """
    for place, text in _strings(template, ()):
        for match in _REFERENCE.finditer(text):
            if problem := _reference_problem(match[1], declared, steps):
                yield place, f"{quoted(match[0])} {problem}"
        if _OPEN in _REFERENCE.sub("", text):
            yield place, "a `${` is not closed: write ${args.NAME} or ${STEP.path}"


def argument_problems(text: str, declared: Collection[str]) -> Iterator[str]:
    """Yield what is wrong with each reference in *text*, which may name arguments alone."""
    for match in _REFERENCE.finditer(text):
        head, dot, path = match[1].partition(".")
        if head != _ARGS or not (dot and path):
            yield f"{quoted(match[0])} names no argument: write ${{args.NAME}}"
        elif problem := _reference_problem(match[1], declared, ()):
            yield f"{quoted(match[0])} {problem}"
    if _OPEN in _REFERENCE.sub("", text):
        yield "a `${` is not closed: write ${args.NAME}"


def interpolate(
    template: JsonObject,
    args: JsonObject,
    outputs: Mapping[str, Json] | None,
    *,
    declared: Collection[str],
    unknown: Collection[str] = (),
) -> dict[str, Json]:
    """Return *template* with its references filled in.

    Args:
        args: the call's arguments, checked.
        outputs: the outputs of the earlier steps by id; None leaves `${STEP.path}` as written
            (for the digest, before any step has run).
        declared: the names of the action's inputs; one of them that is not in *args* is absent.
        unknown: ids of steps that have not run, beside those in *outputs*; their references stay
            as written (for the digest of a run that halted half-way).

    Raises:
        MissingValue: a step's output has no value at the path.
    """
    filling = _Interpolation(
        args=args, outputs=outputs, declared=frozenset(declared), unknown=frozenset(unknown)
    )
    return filling.table(template)


def op_arguments(
    step: Step,
    args: JsonObject,
    outputs: Mapping[str, Json] | None,
    declared: Collection[str],
    unknown: Collection[str] = (),
) -> dict[str, Json]:
    """Return the arguments of *step*'s op: its own inputs, else the call's declared arguments.

    A step with an `inputs` table states its arguments fully; the call adds nothing to it. See
    `interpolate` for *outputs*, *unknown* and for what is raised.
    """
    if step.takes_any:
        return dict(args)
    if step.inputs is None:
        return {name: args[name] for name in declared if name in args}
    return interpolate(step.inputs, args, outputs, declared=declared, unknown=unknown)


def whole_argument(template: str) -> str | None:
    """Return the name of the argument that *template* is, type and all; None for any other text."""
    whole = _REFERENCE.fullmatch(template)
    head, _, name = whole[1].partition(".") if whole else ("", "", "")
    return name if head == _ARGS else None


def uses_earlier_output(step: Step) -> bool:
    """Return whether *step*'s arguments hold an earlier step's output, so that they are not known before."""
    return any(not reference.is_argument for reference in references(dict(step.inputs or {})))


def number_text(number: float) -> str:
    """Return *number* in digits, without the exponent that would hide its size."""
    if isinstance(number, int):
        return str(number)
    if number.is_integer() and abs(number) < 1e21:
        return str(int(number))
    text = repr(number)
    mantissa, marker, exponent = text.partition("e-")
    if not marker or int(exponent) > 12:
        return text
    sign = "-" if mantissa.startswith("-") else ""
    digits = mantissa.lstrip("-").replace(".", "")
    return f"{sign}0.{'0' * (int(exponent) - 1)}{digits}"


def json_text(value: Json, *, indent: int | None = None) -> str:
    """Return *value* as JSON with plain numbers (1 and not 1.0); compact without *indent*.

    Raises:
        RecursionError: *value* is nested deeper than the interpreter's stack.
    """
    separators = (",", ": ") if indent else (",", ":")
    plain = _plain_numbers(value)
    return json.dumps(plain, ensure_ascii=False, indent=indent, separators=separators)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Interpolation:
    args: JsonObject
    outputs: Mapping[str, Json] | None
    declared: frozenset[str]
    unknown: frozenset[str]

    def table(self, template: JsonObject) -> dict[str, Json]:
        filled = ((key, self.value(item)) for key, item in template.items())
        return {key: value for key, value in filled if not isinstance(value, _Absent)}

    def value(self, template: Json) -> "Json | _Absent":
        if isinstance(template, str):
            return self.text(template)
        if isinstance(template, Mapping):
            return self.table(template)
        if is_array(template):
            filled = map(self.value, template)
            return [value for value in filled if not isinstance(value, _Absent)]
        return template

    def text(self, template: str) -> "Json | _Absent":
        whole = _REFERENCE.fullmatch(template)
        if whole is not None:
            return self.referenced(whole)
        try:
            return _REFERENCE.sub(lambda match: _as_text(self.referenced(match)), template)
        except RecursionError as error:  # a hostile output; our own limits are far below
            raise MissingValue(
                "A value for a step's text input is nested too deeply to convert to text, so "
                "the step did not run; reference a value further inside it"
            ) from error

    def referenced(self, match: re.Match[str]) -> "Json | _Absent":
        head, _, name = match[1].partition(".")
        if head == _ARGS:
            if name in self.declared:
                return self.args.get(name, _ABSENT)
        elif self.outputs is None:
            return match[0]
        elif step := _step_of(match[1], self.unknown.union(self.outputs)):
            if step in self.unknown:
                return match[0]
            located = lookup(self.outputs[step], match[1][len(step) + 1 :])
            if located is not None:
                return located.value
        raise MissingValue(
            f"{quoted(match[0])} has no value in the output of the earlier steps, so the step that "
            "needs it did not run; compare the path with the op's output and correct the action file"
        )


def _as_text(value: "Json | _Absent") -> str:
    if isinstance(value, _Absent):
        return ""
    return value if isinstance(value, str) else json_text(value)


def _reference_problem(inner: str, declared: Collection[str], steps: Collection[str]) -> str | None:
    head, dot, path = inner.partition(".")
    if not (head and dot and path):
        return "is not a reference: write ${args.NAME} or ${STEP.path}"
    if head == _ARGS:
        if path in declared:
            return None
        return f"references an input that no [[inputs]] block declares; {_declared(declared)}"
    return None if _step_of(inner, steps) else "names no earlier step"


def _declared(names: Collection[str]) -> str:
    shown = [escape(name[:_SHOWN]) for name in islice(names, _SHOWN_NAMES)]
    more = f" and {len(names) - len(shown)} more" if len(names) > len(shown) else ""
    return (
        f"the declared inputs are {', '.join(shown)}{more}" if shown else "the file declares none"
    )


def _step_of(inner: str, steps: Collection[str]) -> str | None:
    """Return the step that *inner* begins with; ids may hold dots, so the longest one counts."""
    found, dot = None, inner.find(".")
    for _ in range(_ID_PARTS):
        if dot < 0 or dot == len(inner) - 1:
            break
        if inner[:dot] in steps:
            found = inner[:dot]
        dot = inner.find(".", dot + 1)
    return found


def _strings(
    template: Json, place: tuple[str | int, ...]
) -> Iterator[tuple[tuple[str | int, ...], str]]:
    if isinstance(template, str):
        yield place, template
    elif isinstance(template, Mapping):
        for key, item in template.items():
            yield from _strings(item, (*place, key))
    elif is_array(template):
        for index, item in enumerate(template):
            yield from _strings(item, (*place, index))


def _plain_numbers(value: Json) -> Json:
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e21:
        return int(value)
    if isinstance(value, Mapping):
        return {key: _plain_numbers(item) for key, item in value.items()}
    if is_array(value):
        return [_plain_numbers(item) for item in value]
    return value
