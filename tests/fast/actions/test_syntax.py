"""Front matter that is no TOML: each fault with its place and key, and the rest read all the same."""

import time
from collections.abc import Callable

import pytest

from aileron_core.actions.load import read_action
from aileron_core.actions.syntax import MAX_SYNTAX_PROBLEMS

Build = Callable[..., bytes]
Place = tuple[int, int, str]


def faults_of(data: bytes) -> list[Place]:
    problems = read_action(data, "send-note.md").problems
    assert all(problem.message.startswith("invalid TOML front matter: ") for problem in problems)
    return [(problem.line, problem.column, problem.key) for problem in problems]


def places_of(data: bytes) -> list[Place]:
    problems = read_action(data, "send-note.md").problems
    return [(problem.line, problem.column, problem.key) for problem in problems]


@pytest.mark.parametrize(
    ("old", "new", "place", "said"),
    [
        ('version = "1.2.3"\nsource', "version = 1.2.3\nsource", (3, 14, "version"), "strings need quotes"),
        ('"send a note"', "send a note", (13, 10, "match.intent"), "strings need quotes"),
        ('"send a note"', '"send a note', (13, 10, "match.intent"), "not closed on its line"),
        ('"send a note"', '"a\\qb"', (13, 12, "match.intent"), "write \\\\"),
        ('"send a note"', '"a\x01"', (13, 12, "match.intent"), "Illegal character"),
        ('"send a note"', '"""\nsend', (13, 10, "match.intent"), "begins here is not closed"),
        ('"send a note"', "'''\nsend", (13, 10, "match.intent"), "begins here is not closed"),
        ('intent = "', 'intent "', (13, 8, "match.intent"), "Expected '='"),
        ("[match]", "[match", (12, 7, "match"), "Expected ']'"),
        ("[match]", "[match] # ok\n[match]", (13, 1, "match"), '"match" is defined twice, first on line 12'),
        ("[match]", '[[inputs]]\nname = "a"\ntype = "string"\ndescription = "d"\n[inputs]\n[match]', (16, 1, "inputs"), "first on line 12"),
        ('op = "send"', 'op = "send"\nop = "x"', (19, 1, "execute[0].op"), "first on line 18"),
        ('op = "send"', 'op = "send"\n"o\\u0070" = 2', (19, 1, "execute[0].op"), "first on line 18"),
        ('op = "send"', 'op = "send"\n \tinputs . a.b = 1\ninputs.a.b = 2', (20, 10, "execute[0].inputs.a.b"), "first on line 19"),
        ('op = "send"', 'op = "send"\ninputs = { "é" = 1, x = 1, x = 2 }', (19, 28, "execute[0].inputs.x"), "defined twice"),
        ('["send", "read"]', '["send", "read"', (10, 1, "requires.connectors[0].capabilities"), "Unclosed"),
        ('["send", "read"]', '["send" "read"]', (10, 1, "requires.connectors[0].capabilities"), "Unclosed"),
        ('["send", "read"]', "[\n 'send', # ]\n read ]", (12, 2, "requires.connectors[0].capabilities[1]"), "Invalid value"),
        ('op = "send"', "op = " + "9" * 5000, (18, 6, "execute[0].op"), "too many digits"),
        ('op = "send"', "op = " + "[" * 3000, (18, 1, "execute[0].op"), "nested too deeply"),
        ('op = "send"', "op = 2026-13-45", (18, 10, "execute[0].op"), "Expected newline"),
        ('op = "send"', "= 1", (18, 1, ""), "Invalid statement"),
    ],
)  # fmt: skip
def test_a_fault_stands_where_a_person_has_to_look(
    manifest: Build, old: str, new: str, place: Place, said: str
) -> None:
    """Line, column and key of every kind, and nothing that only follows from it."""
    data = manifest(old=old, new=new)
    assert faults_of(data) == [place]
    assert said in read_action(data, "send-note.md").problems[0].message


def test_faults_and_broken_rules_are_reported_together(manifest: Build) -> None:
    """One look is enough: several faults, and what is wrong with what can be read."""
    data = manifest(
        'inputs = {\n  to = "${args.to}",\n  n = 1\n}\nretry = 3\n'
        "[approval\nrequired = 3\n[[inputs]]\nname = to\ntype = 'text'\ndescription = 'd'\n",
        old='name = "send-note"\nversion = "1.2.3"',
        new='name = "Send note"\nversion = v1\nversion = "1"',
    )
    assert places_of(data) == [
        (3, 11, "version"),
        (21, 11, "execute[0].inputs"),
        (26, 10, "approval"),
        (29, 8, "inputs[0].name"),
        (25, 1, "execute[0].retry"),
        (27, 1, "approval.required"),
        (2, 1, "name"),
        (4, 1, "version"),
        (30, 1, "inputs[0].type"),
    ]


def test_what_was_taken_out_is_not_called_missing(manifest: Build) -> None:
    """`version = 1.0` is no reason to say that a version is required, nor that no input is declared."""
    taken_out = manifest(
        'inputs = { to = "${args.to}", x = "${args.no}" }\n[[inputs]]\nname = to\ntype = "string"\n'
        'description = "d"\n[approval.preview]\nop = read\nrender = { A = "a" }\nmultiline = ["B"]\n'
    )
    assert places_of(taken_out) == [(22, 8, "inputs[0].name"), (26, 6, "approval.preview.op")]
    elsewhere = manifest('inputs = { to = "${args.to}" }\n', old='"send a note"', new="a note")
    assert places_of(elsewhere) == [(13, 10, "match.intent"), (20, 12, "execute[0].inputs.to")]


@pytest.mark.parametrize(
    ("new", "places"),
    [
        ("intent = a\nversion = b", [(13, 10, "match.intent"), (14, 11, "match.version")]),
        ("intent = 'a\n= 2\nb c", [(13, 10, "match.intent"), (14, 1, ""), (15, 3, "match.b")]),
        ("intent = [\n 1 2\n 3\n]\nx = y", [(13, 1, "match.intent"), (17, 5, "match.x")]),
        ('intent = """\na = b\n\\q"""\nx = y', [(15, 1, "match.intent"), (16, 5, "match.x")]),
        ("intent = [\n 'a',\n {x = 1}\n\n", [(13, 1, "match.intent")]),
    ],
)
def test_a_fault_hides_no_other(manifest: Build, new: str, places: list[Place]) -> None:
    """Line by line, and after a statement of several lines."""
    found = places_of(manifest(old='intent = "send a note"', new=new))
    assert found[: len(places)] == places
    assert len(found) <= len(places)


def test_crlf_a_byte_order_mark_and_tabs_move_no_place(manifest: Build) -> None:
    """Lines count as the editor counts them; a column is a character, whatever its width."""
    data = manifest(old='op = "send"', new="\top = send\n\tidempotent = tru").decode()
    marked = "\N{BYTE ORDER MARK}\r\n" + data.replace("\n", "\r\n")
    expected = [(18, 7, "execute[0].op"), (19, 15, "execute[0].idempotent"),
                (20, 1, "execute[0].idempotent")]  # fmt: skip
    assert places_of(data.encode())[:2] == expected[:2]
    assert places_of(marked.encode())[:2] == [
        (line + 1, column, key) for line, column, key in expected[:2]
    ]


def test_only_so_many_faults_are_looked_for(manifest: Build) -> None:
    """Each look parses the file again: a hostile file holds nobody up, however it is made."""
    many = "".join(f"k{number} = v\n" for number in range(3 * MAX_SYNTAX_PROBLEMS))
    assert len(faults_of(manifest(many))) == MAX_SYNTAX_PROBLEMS
    assert len(faults_of(manifest(many + f"# {'long ' * 20_000}\n"))) == 1
    begun = time.process_time()
    for line in ("a = b\n", "a = 1\n", "[a]\n", "a = [\n", "a = {\n", 'a = """\n', "[a\n"):
        assert places_of(b"+++\n" + line.encode() * 4_000 + b"+++\n")
    assert time.process_time() - begun < 20


def test_long_lists_are_judged_in_a_time_that_grows_with_their_length() -> None:
    """Thousands of inputs, references, steps and capabilities: each was looked up in a list."""
    inputs = "".join(f"[[inputs]]\nname='a{number}'\n" for number in range(20_000))
    steps = "[[execute]]\nconnector='github://a/b'\nop='o'\n"
    references = "".join(f"x{number}='{'${args.b}' * 1000}'\n" for number in range(100))
    capabilities = "".join(f"'c{number}',\n" for number in range(150_000))
    front = (
        f"[[requires.connectors]]\nname='github://a/b'\ncapabilities=[\n{capabilities}]\n"
        f"{inputs}{steps * 10_000}[execute.inputs]\n{references}"
    )
    begun = time.process_time()
    assert read_action(f"+++\n{front}+++\n".encode(), "long.md").action is None
    assert time.process_time() - begun < 20
