"""Loads an action file: its form (`+++`, UTF-8, line length), then its content or all its problems."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import cast

from aileron_core.actions.compat import STRICT_NAME, is_compat_type, merge_declarations, normalize
from aileron_core.actions.front_matter import read_front_matter
from aileron_core.actions.interpolate import placed_references
from aileron_core.actions.model import INPUT_TYPES, Action
from aileron_core.actions.positions import load_toml, locate, nearest
from aileron_core.actions.problems import KeyPath, KeyProblem, key_text, quoted
from aileron_core.actions.validate import validate
from aileron_core.canonical import sha256_hex
from aileron_core.errors import FileProblems, Problem

MAX_LINE = 1024 * 1024
"""Bytes of one line."""

MAX_PROBLEMS = 1000
"""Problems that are spelt out for one file; the last one then counts the rest."""

_DELIMITER = "+++"
# Keys of Aileron's own: upstream's schema is closed and does not know them.
_OUR_KEYS: tuple[tuple[str, ...], ...] = (
    ("limits", "wall_seconds"),
    ("limits", "memory_mib"),
    ("approval", "effect"),
    ("approval", "grants"),
    ("approval", "preview", "gist"),
    ("approval", "preview", "formats"),
    ("approval", "preview", "changes"),
    ("approval", "preview", "reach"),
    ("approval", "preview", "read_back"),
    ("approval", "preview", "recheck"),
)


def load_action(data: bytes, file: str) -> Action:
    """Return the action that *data* states.

    Raises:
        FileProblems: with every problem found, those of the file's form first.
    """
    reading = read_action(data, file)
    if reading.action is None:
        raise FileProblems([each for each in reading.problems if each.severity == "error"])
    return reading.action


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedFile:
    """The result of parsing an action file.

    Places are looked up when `problems` is asked for: that takes as long as the parsing, and most
    files of a generated suite are only ever offered, warnings and all.
    """

    file: str
    data: bytes = field(repr=False)
    action: Action | None = None
    """The action, where nothing is an error."""
    key_problems: tuple[KeyProblem, ...] = ()
    """Problems, and spellings that were accepted leniently; errors first."""
    form_problems: tuple[Problem, ...] = ()
    """Why it is not an action file at all."""

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Every problem with its place; errors first, of them those of the file's form."""
        problems = locate_key_problems(self.key_problems[:MAX_PROBLEMS], self.data, self.file)
        if more := len(self.key_problems) - len(problems):
            message = f"and {more} more problems"
            first = self.key_problems[MAX_PROBLEMS]
            problems += (
                Problem(
                    file=self.file, message=message, class_=first.class_, severity=first.severity
                ),
            )
        return self.form_problems + problems


def read_action(data: bytes, file: str, *, portable: bool = False) -> ParsedFile:
    """Return the action that *data* states, or what is wrong with it, with every warning.

    Args:
        portable: report also what upstream would refuse, each as an error; the action is there
            all the same if it runs here.
    """
    try:
        frame = _split(data, file)
        document = load_toml(frame.front, file, first_line=frame.first_line)
    except FileProblems as error:
        return ParsedFile(file=file, data=data, form_problems=error.problems)
    raw, form = read_front_matter(document, body=frame.body, sha256=sha256_hex(data), file=file)
    action, found = normalize(raw)
    wrong = [finding for finding in found if finding.severity == "error"]
    errors = form + _not_covered([*wrong, *validate(action)], form)
    warnings = [finding for finding in found if finding.severity == "warning"]
    upstream = list(portability_problems(document, raw)) if portable else []
    shown = [*errors, *_not_covered([*upstream, *warnings], form)]
    if len(shown) > 1:
        shown.sort(key=lambda each: (each.severity == "warning", each.class_ != "parse_error"))
    return ParsedFile(
        file=file,
        data=data,
        action=None if errors else merge_declarations(action),
        key_problems=tuple(shown),
    )


def locate_key_problems(
    findings: Iterable[KeyProblem], data: bytes, file: str
) -> tuple[Problem, ...]:
    """Return *findings* as problems of *file*, with line and column where *data* shows them."""
    findings = tuple(findings)
    if not findings:
        return ()
    frame = _split(data, file)
    places = locate(frame.front)
    return tuple(
        Problem(
            file=file,
            message=finding.message,
            class_=finding.class_,
            severity=finding.severity,
            line=frame.first_line - 1 + line,
            column=column or 1,
            key=key_text(finding.path),
        )
        for finding in findings
        for line, column in [nearest(finding.path, places)]
    )


def locate_problems(problems: Iterable[Problem], data: bytes) -> tuple[Problem, ...]:
    """Return *problems* that others found in the action that *data* states, with their places.

    A problem that has a line keeps it; one whose key does not stand in *data* stays without.
    """
    problems = tuple(problems)
    if all(problem.line or not problem.key for problem in problems):
        return problems
    frame = _split(data, "")
    places = {key_text(path): place for path, place in locate(frame.front).items()}
    return tuple(_at_key(problem, places.get(problem.key), frame) for problem in problems)


def _at_key(problem: Problem, place: tuple[int, int] | None, frame: "_Frame") -> Problem:
    if problem.line or place is None:
        return problem
    return replace(problem, line=place[0] + frame.first_line - 1, column=place[1])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Frame:
    front: str
    body: str
    first_line: int
    """The line of the file, from 1, that the front matter's first line is."""


def _split(data: bytes, file: str) -> _Frame:
    """Return the parts before and after the closing delimiter."""
    lines = data.split(b"\n") if len(data) > MAX_LINE else ()
    for number, line in enumerate(lines, 1):
        if len(line) > MAX_LINE:
            raise FileProblems([_parse_problem(file, "has a line longer than 1 MiB", number)])
    try:
        # Not utf-8-sig: the place of its errors leaves the mark out of account.
        text = data.decode().removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line, column = data.count(b"\n", 0, error.start) + 1, _column(data, error.start)
        raise FileProblems([_parse_problem(file, "is not UTF-8 text", line, column)]) from error
    lines = text.split("\n")
    if "\r" in text:
        lines = [line.removesuffix("\r") for line in lines]
    opening = next((index for index, line in enumerate(lines) if line.strip()), len(lines))
    if opening == len(lines):
        raise FileProblems([_parse_problem(file, 'missing "+++" opening delimiter', 1)])
    if lines[opening].strip() != _DELIMITER:
        raise FileProblems([_parse_problem(file, 'expected "+++" at start', opening + 1)])
    for index in range(opening + 1, len(lines)):
        if lines[index].strip() == _DELIMITER:
            return _Frame(
                front="\n".join(lines[opening + 1 : index]),
                body="\n".join(lines[index + 1 :]),
                first_line=opening + 2,
            )
    message = 'missing "+++" closing delimiter'
    raise FileProblems([_parse_problem(file, message, len(lines))])


def _column(data: bytes, at: int) -> int:
    """Return the column, in characters from 1, of the byte *at*; the line before it is UTF-8."""
    start = data.rfind(b"\n", 0, at) + 1
    return len(data[start:at].decode("utf-8-sig" if not start else "utf-8")) + 1


def _not_covered(findings: Iterable[KeyProblem], known: list[KeyProblem]) -> list[KeyProblem]:
    """Return the findings that do not merely repeat that a key has the wrong form."""
    covered = {finding.path for finding in known}
    return [
        finding
        for finding in findings
        if not any(finding.path[:length] in covered for length in range(1, len(finding.path) + 1))
    ]


def _parse_problem(file: str, message: str, line: int, column: int = 1) -> Problem:
    return Problem(file=file, message=message, class_="parse_error", line=line, column=column)


def portability_problems(document: Mapping[str, object], action: Action) -> Iterator[KeyProblem]:
    """Yield what upstream refuses (errors) or runs otherwise (warnings).

    Args:
        document: the front matter as parsed.
        action: what it states, as written, without any leniency.
    """
    for path in _OUR_KEYS:
        if _states(document, path):
            yield _refused(
                path, "is an extension: the schema of upstream Aileron does not have this key"
            )
    if document.get("limits") == {}:
        yield _refused(
            ("limits",), "is an extension: the schema of upstream Aileron does not have this table"
        )
    yield from _inputs(action)
    for index, step in enumerate(action.steps):
        for place, reference in placed_references(step.inputs or {}):
            if not reference.is_argument:
                yield KeyProblem(
                    path=("execute", index, "inputs", *place),
                    message=f"{quoted(str(reference))} reaches the op as this literal text upstream",
                    class_="portability",
                    severity="warning",
                )


def _inputs(action: Action) -> Iterator[KeyProblem]:
    seen: set[str] = set()
    for index, entry in enumerate(action.inputs):
        path = ("inputs", index)
        if entry.format is not None:
            yield _refused((*path, "format"), "is an extension")
        if entry.name and not STRICT_NAME.fullmatch(entry.name):
            yield _refused(
                (*path, "name"), f"{quoted(entry.name)} must match {STRICT_NAME.pattern}"
            )
        if entry.name and entry.name in seen:
            yield _refused((*path, "name"), f"{quoted(entry.name)} is duplicated")
        seen.add(entry.name)
        if is_compat_type(entry.type):
            yield _refused(
                (*path, "type"), f"{quoted(entry.type)} must be one of {'|'.join(INPUT_TYPES)}"
            )
        if not entry.description.strip():
            yield _refused((*path, "description"), "must not be blank: it is what the agent reads")


def _states(document: Mapping[str, object], path: tuple[str, ...]) -> bool:
    first, *rest = path
    value = document.get(first)
    if not rest:
        return value is not None
    return isinstance(value, dict) and _states(cast("dict[str, object]", value), tuple(rest))


def _refused(path: KeyPath, message: str) -> KeyProblem:
    return KeyProblem(
        path=path, message=f"{message} (upstream refuses the file)", class_="portability"
    )
