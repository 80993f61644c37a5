"""A file that an agent's settings name is named at the launch, if the sandbox lacks it."""

from pathlib import Path

import pytest

from aileron_core.launch.named_files import missing_files
from aileron_core.launch.named_programs import NamedProgram, ResolvedProgram
from aileron_core.launch.resolve_programs import SandboxPaths

CONFIG = "~/.codex/config.toml"


def missing(
    home: Path, *programs: ResolvedProgram, hidden: tuple[Path, ...] = (), **texts: str
) -> str:
    """Return what the launch says of settings; `toml` is the text of Codex' own file."""
    files = {CONFIG if name == "toml" else name: text for name, text in texts.items()}
    for name in ("own.pem", "second.pem", ".codex/prompt.md", "work/in.md"):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).touch()
    paths = SandboxPaths(
        home=home,
        project=home / "work",
        own_folders=(home / ".codex",),
        copied=(home / ".codex" / "prompt.md",),
        mounted=(Path("/usr"), Path("/etc"), home / "work"),
        hidden=hidden,
        excluded=(),
        search_path="",
    )
    return " ".join(missing_files("Codex", files, paths, programs))


@pytest.mark.parametrize(
    "value",
    ["~/own.pem", "$HOME/own.pem", "${HOME}/own.pem", "HERE/own.pem", "file:~/own.pem", "file://HERE/own.pem",
     "{file:~/own.pem}", "HERE/work/../own.pem"],
)  # fmt: skip
def test_a_file_outside_is_named_with_its_setting(tmp_path: Path, value: str) -> None:
    """By whichever way of writing a path, in a table or a list; with what to do."""
    text = f'a = 1\n[[mine]]\nca = ["{value.replace("HERE", str(tmp_path))}"]\n'
    assert missing(tmp_path, toml=text) == (
        f"Not in the sandbox, but named in Codex's settings: {tmp_path}/own.pem ({CONFIG}: mine.ca). What Codex needs "
        "of that, give it with --read, or under `[launch] read` in config.toml."
    )


@pytest.mark.parametrize("suffix", ["json", "jsonc", "yaml", "env"])
def test_every_form_of_settings_is_read(tmp_path: Path, suffix: str) -> None:
    """A file that is no settings, or cannot be parsed, names nothing."""
    texts = {"yaml": "ca: ~/own.pem", "env": 'CA="~/own.pem"'}
    text = texts.get(suffix, '{"ca": "~/own.pem"}')
    assert "own.pem (" in missing(tmp_path, **{f"x.{suffix}": text})
    assert missing(tmp_path, **{f"x.{suffix}": "{", "notes.md": "~/own.pem"}) == ""


def test_nothing_is_said_of_what_is_there_or_is_no_file(tmp_path: Path) -> None:
    """A copy, a system's file, the project's own; a folder, a sentence, what does not exist, a key."""
    values = [
        "~/.codex/prompt.md",
        "/etc/passwd",
        "~/work/in.md",
        "~/.codex",
        "see ~/own.pem",
        "~/none",
        "/a\\u0000b",
    ]
    text = "".join(f'v{n} = "{value}"\n' for n, value in enumerate(values))
    assert missing(tmp_path, toml=f'{text}[projects."{tmp_path}/own.pem"]\nx = 1\n') == ""


def test_what_is_said_elsewhere_is_not_said_again(tmp_path: Path) -> None:
    """What the person hides; a program, which has a mount or a sentence of its own."""
    path = tmp_path / "own.pem"
    named = NamedProgram(file="f", key="k", command=f"{path} x", kind="hook")
    mounted = ResolvedProgram(named=named, mounts=((path, path),))
    text = 'ca = "~/own.pem"\n'
    assert missing(tmp_path, toml=text, hidden=(path,)) == ""
    assert missing(tmp_path, mounted, toml=text) == ""
    assert missing(tmp_path, ResolvedProgram(named=named, problem="is x"), toml=text) == ""
    assert "own.pem" in missing(tmp_path, ResolvedProgram(named=named), toml=text)


def test_of_many_files_the_first_are_named_and_the_rest_counted(tmp_path: Path) -> None:
    """A sentence has an end."""
    for number in range(11):
        (tmp_path / f"{number}.pem").touch()
    text = "".join(f'v{number} = "~/{number}.pem"\n' for number in range(11))
    assert "7.pem (~/.codex/config.toml: v7); and 3 more. " in missing(tmp_path, toml=text)
