"""A value as what it is: JSON laid out and in colour, a difference, addresses one a line, HTML and Markdown.

What a text is, an accepted action file says; only JSON and lists of addresses are recognised besides.

Only colour depends on what is a name or a value in code, never which text is drawn or how it is marked. Text from
outside chooses the language and its length, so a few are read, line by line, and no more than `MAX_LINE` of one.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby, pairwise
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final, Literal

from aileron_core.console_port.field_views import FieldView
from aileron_core.console_port.file_views import FileContentView
from aileron_core.console_port.view_models import ApprovalView
from aileron_core.text import render
from aileron_tui import words
from aileron_tui.draw.changes import changed_fields, field_text, several_line, value_kind
from aileron_tui.draw.hidden_characters import HiddenCharacters
from aileron_tui.draw.markup import ReadableText, convert
from aileron_tui.draw.styled_text import StyledLine, StyledText, draw_styled, linked_lines
from aileron_tui.draw.text import Line, Piece, Role, line

if TYPE_CHECKING:
    from pygments.lexer import Lexer
from collections.abc import Sequence

from aileron_tui.draw.blocks import Block, Gutter, blank, value
from aileron_tui.draw.foreign_text import foreign_text

MAX_LINE: Final = 300
"""Characters; a longer line stays as it is."""
Kind = Literal["name", "value"]
_LANGUAGES: Final = {
    ".c": "c", ".cc": "cpp", ".cpp": "cpp", ".h": "c", ".css": "css", ".go": "go", ".java": "java",
    ".js": "javascript", ".jsx": "javascript", ".json": "json", ".kt": "kotlin", ".mjs": "javascript",
    ".py": "python", ".pyi": "python", ".rb": "ruby", ".rs": "rust", ".sh": "bash", ".toml": "toml",
    ".ts": "typescript", ".tsx": "typescript", ".yaml": "yaml", ".yml": "yaml", ".zig": "zig",
}  # fmt: skip
RECIPIENT_LABELS = frozenset({"to", "cc", "bcc", "sent to", "recipient", "recipients"})
"""Labels, in lower case, of fields that say who gets a mail."""
ADDRESS_LABELS = RECIPIENT_LABELS | {"from", "sender", "reply-to"}
"""Labels, in lower case, of fields that hold mail addresses."""
MAX_JSON = 200_000
"""Characters of a text that is laid out as JSON."""
_MAX_INDENT = 20
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+')
_DIFF_ROLES: tuple[tuple[str, Role], ...] = (
    ("+++ ", "strong"),
    ("--- ", "strong"),
    ("diff ", "strong"),
    ("@@", "syntax-name"),
    ("+", "add"),
    ("-", "del"),
)
MAX_COLOURED = 20_000
"""Characters of a difference whose code is in colour; what is beyond is read as well without."""
_CODE_ROLES: Mapping[str, Mapping[Kind, Role]] = {
    "+": {"name": "add-name", "value": "add-value"},
    "-": {"name": "del-name", "value": "del-value"},
    " ": {"name": "syntax-name", "value": "syntax-value"},
}
IDENTITY_LABELS = frozenset(
    {"to", "cc", "bcc", "from", "amount", "file", "path", "channel", "host", "command", "recipient"}
)
"""Labels whose values say whom or what it hits; they are drawn bold."""


def language(path: str) -> str:
    """Return the language of a file, by its name; empty if it is none of those that are read."""
    return _LANGUAGES.get(PurePosixPath(path).suffix.lower(), "")


def coloured(text: str, name: str) -> Iterator[tuple[str, Kind | None]]:
    """Yield the stretches of the line *text* of the language *name*, which together are exactly *text*."""
    if not name or len(text) > MAX_LINE:
        yield text, None
        return
    from pygments import token as tokens

    parts: list[tuple[str, Kind | None]] = []
    for _, token, part in _lexer(name).get_tokens_unprocessed(f"{text}\n"):
        named = (
            token in tokens.Keyword or token in tokens.Name.Tag or token in tokens.Name.Attribute
        )
        parts.append((part, "name" if named else "value" if token in tokens.Literal else None))
    whole = "".join(part for part, _ in parts)
    if whole != f"{text}\n":
        yield text, None
        return
    left = len(text)
    for kind, alike in groupby(parts, key=_kind):
        if kept := "".join(part for part, _ in alike)[:left]:
            yield kept, kind
        left -= len(kept)


def _kind(part: tuple[str, Kind | None]) -> Kind | None:
    return part[1]


@lru_cache(maxsize=32)
def _lexer(name: str) -> "Lexer":
    from pygments import lexers

    lexer: Lexer = lexers.get_lexer_by_name(name)  # pyright: ignore[reportUnknownMemberType]
    return lexer


@dataclass(frozen=True, slots=True)
class _Form:
    """What a value was made into: its lines, after one that says what it was."""

    name: str
    """That line; empty: it needs none."""
    lines: tuple[StyledLine, ...]


def field_lines(
    field: FieldView, found: HiddenCharacters, role: Role = "text", *, unfold: bool = False
) -> Iterator[Line]:
    """Yield the lines of *field*, which is not missing, as what it is; *found* counts what it hides.

    *unfold*: its source, with the code point of every mark.
    """
    form = None if unfold else _form(field)
    if form is None:
        text = field_text(field, unfold=unfold)
        found.add(text)
        yield from _source_lines(field, linked_lines(text, field.value, role), unfold=unfold)
        return
    if field.spellings:
        yield several_line(field)
    if form.name:
        yield (Piece(form.name, "form"),)
    for each in form.lines or ((),):
        pieces, rendered = draw_styled(each, role)
        found.add(rendered)
        yield pieces
    if (readable := readable_text(field)) is not None:
        found.add_readable(readable)
        if readable.not_drawn:
            yield (Piece(words.item.not_drawn(readable.not_drawn), "form"),)


def add_hidden(found: HiddenCharacters, field: FieldView) -> None:
    """Count in *found* what drawing *field* would find."""
    readable = readable_text(field)
    if readable is None:
        found.add(render(field.value), field.label)
        return
    for each in readable.lines:
        found.add(draw_styled(each, "text")[1], field.label)
    found.add_readable(readable, field.label)


def readable_text(field: FieldView) -> ReadableText | None:
    """Return *field* as readable text; None if it is no HTML or Markdown, or too long for it."""
    if field.missing or field.format not in ("html", "markdown"):
        return None
    return convert(field.value, field.format)


def _source_lines(field: FieldView, lines: tuple[Line, ...], *, unfold: bool) -> Iterator[Line]:
    if field.spellings:
        yield several_line(field)
    kind = value_kind(field)
    if not unfold and field.format in ("html", "markdown"):
        yield (Piece(words.item.only_source(field.format), "attn"),)
    if kind and field.shape == "lines":
        yield (Piece(kind, "muted"),)
    elif kind:
        lines = (line(Piece(kind, "attn"), " ", *lines[0]), *lines[1:])
    yield from lines


def _form(field: FieldView) -> _Form | None:
    """Return what *field* is drawn as; None: as it is."""
    readable = readable_text(field)
    if readable is not None:
        return _Form(words.item.drawn_as_text(field.format), readable.lines)
    if field.shape == "json":
        return _Form("", tuple(_coloured(each) for each in field.value.split("\n")))
    if field.shape != "text" or field.count > 1:
        return None
    if field.format == "diff":
        return _Form("", tuple(_of_diff(field.value)))
    if field.format == "json" or value_kind(field):
        made = _laid_out(field.value)
        return _Form(words.item.VALUE_JSON, made) if made is not None else None
    if field.format == "addresses" or field.label.casefold() in ADDRESS_LABELS:
        return _addresses(field.value)
    return None


def _of_diff(text: str) -> Iterator[StyledLine]:
    """Yield the lines of a difference: by what they do, and their code in the colours of its language."""
    code, left = "", MAX_COLOURED
    for each in text.split("\n"):
        role: Role | None = next((r for start, r in _DIFF_ROLES if each.startswith(start)), None)
        if role == "strong" and (of_file := language(each.split("\t")[0])):
            code = of_file
        elif role == "strong" and each.startswith("diff "):
            code = ""
        kinds = _CODE_ROLES.get(each[:1])
        if role == "strong" or kinds is None or not code or left <= 0:
            yield (StyledText(each, role),)
            continue
        left -= len(each)
        rest = (StyledText(part, kinds[k] if k else role) for part, k in coloured(each[1:], code))
        yield (StyledText(each[:1], role), *rest)


def _addresses(text: str) -> _Form | None:
    """Return a list of mail addresses with one a line; None if *text* is none.

    Every character is kept, the commas too: a list that another program would divide in another way
    can still be read as it is.
    """
    parts = _divided(text)
    if len(parts) < 2:
        return None
    return _Form(words.item.list_of(len(parts)), tuple((StyledText(part),) for part in parts))


def _divided(text: str) -> list[str]:
    """Return the mail addresses of *text*, each with the comma behind it; none if it is no list of them."""
    if "@" not in text or "\n" in text or text != text.strip():
        return []
    cuts, quoted, depth = [0], False, 0
    for at, char in enumerate(text):
        if char == '"':
            quoted = not quoted
        elif not quoted and char in "(<":
            depth += 1
        elif not quoted and char in ")>":
            depth -= 1
        elif char in ",;" and not quoted and depth == 0:
            cuts.append(at + 1)
    if quoted or depth:
        return []
    parts = [text[start:end].removeprefix(" ") for start, end in pairwise([*cuts, len(text)])]
    return [part for part in parts if part]


def count_recipients(view: ApprovalView) -> int:
    """Return how many mail addresses the fetched fields of recipients have, each as it is listed.

    0 where that is not certain: nobody is to read a number that is too small.
    """
    total = 0
    for field in view.preview.fields:
        label = field.label.casefold()
        named = label in RECIPIENT_LABELS
        declared = field.format == "addresses" and label not in ADDRESS_LABELS
        if not (named or declared) or field.missing or not field.value:
            continue
        parts = _divided(field.value) if field.shape == "text" and field.count == 1 else []
        if not parts or any(part.count("@") != 1 for part in parts):
            return 0
        total += len(parts)
    return total


def _laid_out(text: str) -> tuple[StyledLine, ...] | None:
    """Return a JSON text with one value a line; None if it is no JSON.

    Only blanks between the tokens differ: a key that is there twice is shown twice.
    """
    if len(text) > MAX_JSON or text != text.strip():
        return None  # blanks at its ends would be lost
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return None
    return tuple(_coloured(each) for each in _indented(_TOKEN.findall(text)))


def _indented(parts: list[str]) -> Iterator[str]:
    depth, current = 0, ""
    for at, part in enumerate(parts):
        following = parts[at + 1] if at + 1 < len(parts) else ""
        if part in "}]" and not current.rstrip(" ").endswith(("{", "[")):
            if current.strip(" "):
                yield current
            depth -= 1
            current = _indent(depth) + part
        elif part in "}]":
            depth -= 1
            current += part
        elif part in "{[" and following not in ("}", "]"):
            yield current + part
            depth += 1
            current = _indent(depth)
        elif part in "{[":
            depth += 1
            current += part
        elif part == ",":
            yield current + part
            current = _indent(depth)
        else:
            current += ": " if part == ":" else part
    if current:
        yield current


def _indent(depth: int) -> str:
    return "  " * min(depth, _MAX_INDENT)


def _coloured(text: str) -> StyledLine:
    """Return one line of JSON with its names and values in their roles."""
    texts: list[StyledText] = []
    at = 0
    for match in _TOKEN.finditer(text):
        if match.start() > at:
            texts.append(StyledText(text[at : match.start()]))
        is_name = match[0][0] == '"' and text[match.end() : match.end() + 1] == ":"
        is_sign = match[0] in "{}[],:"
        role: Role | None = None if is_sign else "syntax-name" if is_name else "syntax-value"
        texts.append(StyledText(match[0], role))
        at = match.end()
    return (*texts, StyledText(text[at:]))


def hidden_characters_of(*shown: ApprovalView | FileContentView) -> HiddenCharacters:
    """Return what hides in everything that was fetched or sent, and in the hosts; and in files."""
    total = HiddenCharacters()
    for each in shown:
        if isinstance(each, ApprovalView):
            _add_hidden_of(each, total)
        else:
            total.add(render(each.text), words.item.THE_FILE)
    return total


def _add_hidden_of(view: ApprovalView, total: HiddenCharacters) -> None:
    drift = view.drift.changed if view.drift is not None else ()
    compared = {old.label for old, _ in changed_fields(view)}
    inputs = [field for step in view.steps for field in step.inputs]
    for field in (*view.preview.fields, *view.agent_fields, *inputs):
        if field.label in compared:  # its source is shown, not what is made of it
            total.add(render(field.value), field.label)
        else:
            add_hidden(total, field)
    for host in view.hosts:
        total.add(render(host), words.item.THE_HOSTS)
    for change in drift:
        for text in (change.before, change.after):
            total.add(render(text or ""), change.label)


def field_blocks(
    fields: Sequence[FieldView],
    gutter: Gutter,
    *,
    unfold: bool,
    same: frozenset[str] = frozenset(),
) -> Iterator[Block]:
    """Yield the lines of *fields*, then the hidden characters in them.

    *same*: labels of those to which the agent sends the value that they have.
    """
    hidden = HiddenCharacters()
    for field in fields:
        label = foreign_text(field.label, "muted")
        foreign = gutter == "claim"
        if field.missing:
            yield value(label, (Piece(words.item.MISSING, "muted"),), gutter, label_outside=foreign)
            continue
        role = _value_role(field, gutter)
        for row, pieces in enumerate(field_lines(field, hidden, role, unfold=unfold)):
            named = label if row == 0 else ()
            yield value(named, pieces, gutter, label_outside=foreign)
        if field.label in same:
            yield value("", (Piece(words.item.SAME_VALUE, "muted"),), gutter)
    rows = tuple(hidden.blocks())
    if rows:
        yield blank()
        yield from rows


def _value_role(field: FieldView, gutter: Gutter) -> Role:
    if gutter == "claim":
        return "claim"
    return "strong" if field.label.casefold() in IDENTITY_LABELS else "text"
