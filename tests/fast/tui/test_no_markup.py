"""Nothing in the console hands text to anything that parses markup, or past the one painter.

Text from outside is everywhere; so the rule is about every text. Textual and Rich read `[bold]`,
`[@click=...]` and `[link=...]` in much that takes a `str`: `Static`, `Label`, `Option`, `notify`,
titles of borders, tooltips, what `render` returns, what is printed on a console.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
ROOM = ROOT / "aileron_tui"

IMPORTS: dict[str, frozenset[str]] = {
    "textual.widgets": frozenset({"Input", "TextArea"}),
    "rich.cells": frozenset({"cell_len", "set_cell_size", "split_graphemes"}),
    "rich.console": frozenset({"RenderableType"}),
    "rich.segment": frozenset({"Segment"}),
    "rich.style": frozenset({"Style"}),
    "rich.text": frozenset({"Text"}),
}
"""What may be imported of the modules that draw text; everything else of Rich may not."""
FORBIDDEN_MODULES = (
    "textual.command", "textual.content", "textual.markup", "textual.notifications",
    "textual.visual", "textual.widgets.",
)  # fmt: skip
FORBIDDEN_NAMES = frozenset(
    {"border_subtitle", "border_title", "console", "from_ansi", "from_markup", "markup", "notify",
     "print", "render_markup", "render_str", "sub_title", "tooltip", "with_tooltip"}
)  # fmt: skip
"""Attributes and functions that parse a text, or lead to something that does."""
FORBIDDEN_KEYWORDS = frozenset({"border_title", "link", "markup", "meta", "tooltip"})
WRITERS = {
    "app.py",
    "terminal/line_terminal.py",
    "terminal/background_color.py",
    "terminal/driver.py",
}
ONLY_IN: dict[str, frozenset[str]] = {
    "Segment": frozenset({"widgets/line_view.py", "styles/choosing.py"}),
    "Text": frozenset({"app.py"}),
    "write": frozenset(WRITERS),
}
"""The places that turn text into cells or bytes themselves; each has a test of its own."""


class _Finder(ast.NodeVisitor):
    """Collects what breaks the rule in one file."""

    def __init__(self, path: str) -> None:
        self._path = path
        self.found: list[str] = []

    def _tell(self, node: ast.AST, what: str) -> None:
        self.found.append(f"{self._path}:{getattr(node, 'lineno', 0)}: {what}")

    def _module(self, node: ast.AST, module: str) -> None:
        drawing = module == "rich" or module.startswith("rich.") or module == "textual.widgets"
        if (drawing and module not in IMPORTS) or module.startswith(FORBIDDEN_MODULES):
            self._tell(node, f"imports {module}")

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            self._module(node, alias.name)
            if alias.name in IMPORTS:
                self._tell(node, f"imports the whole of {alias.name}")

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        module = node.module or ""
        self._module(node, module)
        for alias in node.names:
            if alias.name not in IMPORTS.get(module, {alias.name}):
                self._tell(node, f"imports {module}.{alias.name}")
            if f"{module}.{alias.name}" in ("textual.widgets", "textual.markup", "textual.content"):
                self._tell(node, f"imports {module}.{alias.name}")

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if node.attr in FORBIDDEN_NAMES:
            self._tell(node, f"uses .{node.attr}")
        if node.attr == "write" and self._path not in ONLY_IN["write"]:
            self._tell(node, "writes past the painter")
        self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> None:
        limited = node.id in ("Segment", "Text") and self._path not in ONLY_IN[node.id]
        if node.id == "print" or limited:
            self._tell(node, f"uses {node.id}")

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        if node.name in ("render", "__rich__", "__rich_console__"):
            self._tell(node, f"defines {node.name}: a str that it returns is read as markup")
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        for keyword in node.keywords:
            if keyword.arg in FORBIDDEN_KEYWORDS:
                self._tell(node, f"passes {keyword.arg}=")
            ends = isinstance(node.func, ast.Attribute) and node.func.attr == "exit"
            if ends and keyword.arg == "message" and not _is_text(keyword.value):
                self._tell(node, "passes a message that is printed as markup; wrap it in Text")
        self.generic_visit(node)


def _is_text(value: ast.expr) -> bool:
    return isinstance(value, ast.Call) and ast.unparse(value.func) == "Text"


def breaches(path: str, source: str) -> list[str]:
    finder = _Finder(path)
    finder.visit(ast.parse(source))
    return finder.found


def _drawing_files() -> Iterator[tuple[str, str]]:
    """The files that draw: all but the command line, which has no markup at all (the next test)."""
    for file in sorted(ROOM.rglob("*.py")):
        path = file.relative_to(ROOM).as_posix()
        if not path.startswith(("cli/", "suite/")):
            yield path, file.read_text(encoding="utf-8")


def test_the_console_hands_no_text_to_what_parses_markup() -> None:
    """A breach is mended by painting pieces, not by listing it here."""
    files = list(_drawing_files())
    assert len(files) > 40
    assert [breach for path, source in files for breach in breaches(path, source)] == []


def test_the_command_line_knows_neither_rich_nor_textual() -> None:
    """Its text goes through click, which parses nothing; the console itself is started in one place."""
    found: list[str] = []
    for file in sorted((ROOM / "cli").rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            module = node.module or "" if isinstance(node, ast.ImportFrom) else ""
            names = [each.name for each in node.names] if isinstance(node, ast.Import) else [module]
            found += [f"{file.name}: {n}" for n in names if n.split(".")[0] in ("rich", "textual")]
    assert found == []


PLANTED = (
    "from textual.widgets import Static", "from textual.widgets import Input, Label",
    "from textual.widgets import OptionList", "from textual.widgets.option_list import Option",
    "import textual.widgets", "from textual import widgets", "import rich",
    "from rich import print", "from rich.markup import escape", "from rich.console import Console",
    "from rich.panel import Panel", "from textual.content import Content",
    "from rich.text import Text\nlabel = Text('x')", "self.notify(view.title)",
    "self.app.notify(view.title, markup=False)", "widget.border_title = view.title",
    "widget.border_subtitle = view.title", "widget.tooltip = view.title",
    "Lines(id='x').with_tooltip(view.title)", "Text.from_markup(view.title)",
    "Text.from_ansi(view.title)", "self.app.console.print(view.title)", "print(view.title)",
    "Lines(id='x', markup=True)", "Style(link=view.title)", "Style(meta={'@click': view.title})",
    "Segment(view.title)", "self.app._driver.write(view.title)", "self.exit(1, message=view.title)",
    "class A(Widget):\n    def render(self):\n        return self.title",
    "class A:\n    def __rich__(self):\n        return self.title", "self.sub_title = view.title",
    "self.render_str(view.title)",
)  # fmt: skip


@pytest.mark.parametrize("planted", PLANTED)
def test_a_planted_breach_is_found(planted: str) -> None:
    assert breaches("presenters/planted.py", planted) != []
