"""`config.toml`: strict, every problem with its key."""

from pathlib import Path

import pytest

from aileron_core.errors import FileProblems
from aileron_core.settings import (
    ConsoleSettings,
    LaunchPaths,
    NotifySettings,
    Settings,
    load_settings,
)


def load_text(folder: Path, text: str) -> Settings:
    path = folder / "config.toml"
    path.write_text(text, encoding="utf-8")
    return load_settings(path)


def setting_problems(folder: Path, text: str) -> dict[str, str]:
    with pytest.raises(FileProblems) as caught:
        load_text(folder, text)
    return {problem.key: problem.message for problem in caught.value.problems}


def test_without_a_file_the_defaults_hold(tmp_path: Path) -> None:
    assert load_settings(tmp_path / "config.toml") == Settings()
    assert Settings().console == ConsoleSettings(arm_ms=400, lock_minutes=0, bell=True)


@pytest.mark.usefixtures("no_collection")
def test_a_file_that_is_nested_too_deeply_is_refused_as_one_that_is_no_toml(tmp_path: Path) -> None:
    """The parser gives up in another way than at a fault."""
    assert "cannot be read" in setting_problems(tmp_path, "a = " + "[" * 5000)[""]


@pytest.mark.parametrize("url", ["http://a.example", "a.example", "https://me@a.example", 1])
def test_a_mirror_is_an_https_url(tmp_path: Path, url: object) -> None:
    found = load_text(tmp_path, '[store]\nmirror = "https://files.example/aileron"')
    assert found.mirror == "https://files.example/aileron"
    problems = setting_problems(tmp_path, f"[store]\nmirror = {url!r}")
    assert "must be an https URL" in problems["store.mirror"]


def test_paths_of_launches_every_key_of_the_console_and_the_words_of_a_command_are_read(
    tmp_path: Path,
) -> None:
    """A list, as a program gets it: no shell will split it."""
    text = '[launch]\nread = ["~/a", "/b"]\nwrite = ["~/c"]\nhide = [".env", "~/d"]\n[launch.codex]\nargs = ["-x"]'
    found = load_text(tmp_path, text)
    assert found.paths == LaunchPaths(read=("~/a", "/b"), write=("~/c",), hide=(".env", "~/d"))
    assert [*found.launch] == ["codex"]
    text = """
    [console]
    theme = "dark"
    glyphs = "ascii"
    arm_ms = 600
    bell = false
    lock_minutes = 10
    [console.keys]
    approve = "y"
    take_in = "T"
    """
    keys = (("approve", "y"), ("take_in", "T"))
    assert load_text(tmp_path, text).console == ConsoleSettings(
        theme="dark", glyphs="ascii", arm_ms=600, bell=False, lock_minutes=10, keys=keys
    )
    text = '[notify]\nosc9 = "never"\ncommand = ["notify-send", "a b", "{count}"]'
    said = NotifySettings(osc9="never", command=("notify-send", "a b", "{count}"))
    assert load_text(tmp_path, text).notify == said
    assert Settings().notify == NotifySettings(osc9="auto", command=())


@pytest.mark.parametrize(
    ("text", "key", "says"),
    [
        ("[builtin.bash]\nrehearse = 'no'", "builtin.bash.rehearse", "one of ask"),
        ("[builtin.bash]\nrun = 1", "builtin.bash.run", "not a key here"),
        ("[builtin]\nbash = 1", "builtin.bash", "must be a table"),
        ("[console]\narm_ms = 249", "console.arm_ms", "from 250"),
        ("[console]\narm_ms = true", "console.arm_ms", "from 250"),
        ("[console]\nbell = 1", "console.bell", "true or false"),
        ('[notify]\nosc9 = "yes"', "notify.osc9", "auto, always, never"),
        ('[notify]\ncommand = "notify-send it"', "notify.command", "list of strings"),
        ("[notify]\ncommand = [1]", "notify.command", "list of strings"),
        ('[notify]\ncommand = ["", "x"]', "notify.command", "list of strings"),
        ('[notify]\ncommand = ["a\\u0000b"]', "notify.command", "list of strings"),
        ("[notify]\nshell = true", "notify.shell", "command, osc9"),
        ('[console]\nglyphs = "emoji"', "console.glyphs", "auto, unicode, ascii"),
        ("[console]\nglyphs = []", "console.glyphs", "auto, unicode, ascii"),
        ("[console]\ntheme = 3", "console.theme", "name of a theme"),
        ("[console]\nlock_minutes = -1", "console.lock_minutes", "from 0"),
        ('[launch]\nread = ["notes"]', "launch.read", "begin with / or ~/"),
        ('[launch]\nwrite = "~/a"', "launch.write", "list of paths"),
        ('[launch]\nhide = ["../a"]', "launch.hide", "relative to the project"),
        ("[console]\ncolour = 1", "console.colour", "is not a key here"),
        ("[console]\nkeys = 1", "console.keys", "a table of keys"),
        ("[console.keys]\napprove = 1", "console.keys.approve", "the name of one key"),
        ('[console.keys]\napprove = ""', "console.keys.approve", "the name of one key"),
        ('[server]\nlisten = "0.0.0.0:1"', "server.listen", "127.0.0.1:PORT"),
        ("[history]\ndays = 3651", "history.days", "from 0 to 3650"),
        ("[history]\ndays = -1", "history.days", "from 0 to 3650"),
        ("[history]\ndays = 1.5", "history.days", "a whole number"),
        ("[history]\ndays = true", "history.days", "a whole number"),
        ("[history]\nhours = 1", "history.hours", "is not a key here"),
        ("[mcp]\nhold_seconds = 601", "mcp.hold_seconds", "from 0 to 600"),
        ('[mcp]\ntools = "issue-*"', "mcp.tools", "list of action names"),
        ("[mcp]\ntools = [1]", "mcp.tools", "list of action names"),
    ],
)
def test_what_is_no_setting_is_refused(tmp_path: Path, text: str, key: str, says: str) -> None:
    """A rest under 250 ms would let a key decide that no person meant."""
    assert says in setting_problems(tmp_path, text)[key]


@pytest.mark.parametrize(
    ("tools", "named"),
    [
        (None, {"issue-create", "issue-get", "Issues"}),
        ('["*"]', {"issue-create", "issue-get", "Issues"}),
        ('["issue-*"]', {"issue-create", "issue-get"}),
        ('["issue_get", "Iss?es"]', {"issue-get", "Issues"}),
        ('["issues"]', {"Issues"}),
        ("[]", set[str]()),
    ],
)
def test_agents_get_the_tools_named(tmp_path: Path, tools: str | None, named: set[str]) -> None:
    settings = load_text(tmp_path, f"[mcp]\ntools = {tools}\n" if tools else "")
    actions = {"issue-create": "issue_create", "issue-get": "issue_get", "Issues": "issues"}
    assert {name for name, tool in actions.items() if settings.is_tool(name, tool)} == named


def test_all_problems_are_reported_at_once(tmp_path: Path) -> None:
    text = '[console]\narm_ms = 1\nbell = "loud"\n[approval]\nexpires_seconds = -1\n[nothing]\n'
    keys = {"console.arm_ms", "console.bell", "approval.expires_seconds", "nothing"}
    assert set(setting_problems(tmp_path, text)) == keys
