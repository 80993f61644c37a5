"""`aileron connector new`: a folder with a connector that builds, its action, a test and a service for it."""

import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from aileron_core.errors import Conflict, InvalidArguments
from aileron_tui.cli.output import EXIT, CommandContext
from aileron_tui.cli.scaffold import connector_templates

LANGUAGES: Final = {
    "python": ("build.py", "connector.py", "nothing but Python is needed"),
    "zig": ("build.sh", "main.zig", "with Zig 0.16"),
    "go": ("build.sh", "main.go", "with Go 1.21 or newer"),
    "rust": ("build.sh", "src/main.rs", "with Rust and its target wasm32-wasip1"),
}
"""What `--lang` may be: the file that builds, the one to read first, and what building takes."""
_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_MAX_NAME: Final = 40


def new_connector(context: CommandContext, name: str, language: str) -> int:
    """Write a new connector into the folder *name*, which must not exist.

    Raises:
        InvalidArguments: the name cannot be one.
        Conflict: there is such a folder or file.
    """
    if len(name) > _MAX_NAME or not _NAME.fullmatch(name):
        raise InvalidArguments(
            f"A connector's name has lowercase letters, digits and single hyphens, begins with a "
            f"letter and has at most {_MAX_NAME} characters; {name!r} does not."
        )
    folder = Path(name)
    try:
        folder.mkdir()
    except FileExistsError:
        raise Conflict(
            f"{name} is already there, and nothing in it was changed. Choose another name, or remove it."
        ) from None
    build, source, needs = LANGUAGES[language]
    runner = "python3" if build.endswith(".py") else "sh"
    words = {
        "@NAME@": name,
        "@SOURCES@": f"`{source}`",
        "@NEEDS@": needs,
        "@BUILD@": f"{runner} {build}",
    }
    try:
        for template in (connector_templates() / "shared", connector_templates() / language):
            _copy(template, folder, words)
    except BaseException:
        shutil.rmtree(folder)
        raise
    following = [
        f"{runner} {name}/{build}",
        f"python3 {name}/test.py",
        f"aileron connector install {name}",
    ]
    if context.json:
        context.show({"folder": str(folder.resolve()), "language": language, "next": following})
        return EXIT.DONE
    context.say(
        f"Created {name}, a connector in {language.capitalize()}. {name}/README.md says how to begin."
    )
    context.say("Build, test and install it:")
    for line in following:
        context.say(f"    {line}")
    return EXIT.DONE


def _copy(template: Path, folder: Path, words: Mapping[str, str]) -> None:
    """Copy the files of *template* into *folder*, with *words* in place of their marks."""
    for file in template.rglob("*"):
        # An installer compiles the templates that are Python, as it does with all modules.
        if "__pycache__" in file.parts or not file.is_file():
            continue
        data = file.read_bytes()
        for mark, word in words.items():
            data = data.replace(mark.encode(), word.encode())
        target = folder / file.relative_to(template)
        target.parent.mkdir(exist_ok=True)
        target.write_bytes(data)
