"""The programs that an agent's own settings name: which of them a sandbox can contain, and what is said of the others."""

import json
import shlex
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aileron_core.launch import named_programs
from aileron_core.launch.agents import AGENTS
from aileron_core.launch.named_programs import HomeSettings, NamedProgram, ResolvedProgram
from aileron_core.launch.resolve_programs import (
    SandboxPaths,
    literal_words,
    resolve_programs,
    settings_programs,
)
from tests.support.making import program


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "me/bin").mkdir(parents=True)
    (tmp_path / "me/work").mkdir()
    return tmp_path / "me"


def paths_in(home: Path, own: str, *copied: str) -> SandboxPaths:
    return SandboxPaths(
        home=home,
        project=home / "work",
        own_folders=(home / own,),
        copied=tuple(home / own / name for name in copied),
        mounted=(Path("/usr"), Path("/bin"), Path("/etc"), home / "work"),
        hidden=(home / "hidden",),
        excluded=(home / ".aileron", home / "aileron"),
        search_path=f"{home}/work:{home}/bin:{home}/.local/bin:relative:/usr/bin:/bin",
    )


def resolved(home: Path, command: str | tuple[str, ...], **more: Any) -> ResolvedProgram:
    more = {"check": True, **more}
    named = NamedProgram(file="f", key="k", command=command, **more)
    (found,) = resolve_programs([named], paths_in(home, ".claude", "settings.json", "skills"))
    return found


def test_a_program_of_the_home_is_mounted_at_its_path(home: Path) -> None:
    """By its path, from the home, or by its name on PATH; nothing else of its folder."""
    check = program(home / "bin" / "check")
    written = "~/bin/check -v", "$HOME/bin/check", '"${HOME}/bin/check" x', "check"
    for command in (*written, str(check), (str(check), "a b;c")):
        found = resolved(home, command)
        assert (found.problem, found.mounts) == ("", ((check, check),)), command
    for command in ("/bin/sh", "sh -x", ("env",), "/usr/bin/env sh"):
        found = resolved(home, command)
        assert (found.problem, found.mounts) == ("", ()), command


@pytest.mark.parametrize(
    "command",
    ["~/bin/check | tee log", "~/bin/check; true", "FOO=1 ~/bin/check", "~/bin/$X", "~/bin/chec*",
     "`~/bin/check`", "~/bin/check &", "~/bin/check > /dev/null", "(~/bin/check)", "~other/bin/check",
     "~/bin/check \\n", "~/bin/check\ntrue", '"~/bin/check"', "'$HOME/bin/check'", "~/bin/check #x",
     "{~/bin/check,}", "=check", "!~/bin/check", "~/bin/check 'open", "", "  ", "~", '"$HOME" x',
     "~/bin/check \u200b", "bash -c '~/bin/check'", "python3 -c 'import os'"],
)  # fmt: skip
def test_only_literal_words_bring_a_program_in(home: Path, command: str) -> None:
    """Whatever a shell would make something else of names nothing that is mounted."""
    program(home / "bin" / "check")
    found = resolved(home, command)
    assert found.problem
    assert found.mounts == ()


@given(st.text(alphabet=st.sampled_from("ab/.-_ '\"$`\\|;&<>(){}*?[]~#!=\n\t"), max_size=24))
def test_what_counts_as_literal_is_what_a_shell_reads(line: str) -> None:
    """Python's own shell splitter agrees on every line that is accepted, and no active sign is outside of quotes."""
    words = literal_words(line, Path("/home/me"))
    if words is not None:
        plain = line.replace('"$HOME/', '"/home/me/').replace("$HOME/", "/home/me/")
        expected = [
            f"/home/me{word[1:]}" if word[:2] == "~/" else word for word in shlex.split(plain)
        ]
        assert list(words) == expected


def test_a_dot_folder_stays_outside_and_no_link_is_followed(home: Path) -> None:
    """A hook could name a private key. A link directly in the home was made by its owner."""
    for name in (".ssh/id_rsa", ".local/bin/tool", ".config/x/y", "a/.b/c", ".netrc"):
        program(home / name)
        found = resolved(home, f"~/{name}")
        assert "dot folder" in found.problem
        assert found.mounts == ()
    own = program(home / ".claude" / "hooks" / "check")
    assert resolved(home, "~/.claude/hooks/check").mounts == ((own, own),)
    assert "dot folder" in resolved(home, "tool").problem
    secret = program(home / ".ssh" / "id_rsa")
    real = program(home / "dotfiles" / "bin" / "check")
    (home / "work" / "tool").symlink_to(secret)
    (home / "bin" / "check").symlink_to(real)
    (home / "scripts").symlink_to("dotfiles/bin")
    (home / "keys").symlink_to(".ssh")
    for command in ("~/work/tool", "./tool", "~/bin/check", "~/bin/check/../check"):
        found = resolved(home, command)
        assert "link" in found.problem, command
        assert found.mounts == ()
    assert resolved(home, "~/scripts/check").mounts == ((home / "scripts" / "check", real),)
    assert "dot folder" in resolved(home, "~/keys/id_rsa").problem


def test_a_folder_or_what_is_neither_executable_nor_loaded_stays_outside(home: Path) -> None:
    """A folder as a check is a plugin's, which finds its programs itself; an extension is known by its name."""
    program(home / "bin" / "text", mode=0o644)
    program(home / "aileron" / "token")
    refused = {
        "~/bin/text": "not executable",
        "~/bin": "needs the folder",
        "~/bin/none": "does not exist",
        "~/aileron/token": "does not mount",
        "~/bin/../aileron/token": "does not mount",
        "no-such-program": "not on your PATH",
    }
    for command, why in refused.items():
        found = resolved(home, command)
        assert why in found.problem, command
        assert found.mounts == ()
    for folder, missing in (("dev/plugin", True), (".claude/skills/check", False)):
        (home / folder).mkdir(parents=True)
        assert resolved(home, str(home / folder)).is_missing_check == missing
    plugin = program(home / "dev" / "mine.ts", mode=0o644)
    key = program(home / "dev" / "key", mode=0o600)
    assert resolved(home, (str(plugin),), module=True).mounts == ((plugin, plugin),)
    assert resolved(home, (str(key),), module=True).is_missing_check
    assert "folder" in resolved(home, (str(home / "dev"),), module=True).problem


def test_the_interpreter_of_a_script_comes_with_it_and_the_script_with_its_interpreter(
    home: Path,
) -> None:
    """A virtual environment as a whole. Any other file among the arguments is named, for the program needs it."""
    venv = home / "venvs" / "x"
    (venv / "bin").mkdir(parents=True)
    (venv / "pyvenv.cfg").touch()
    (venv / "bin" / "python").symlink_to("/bin/sh")
    tool = program(venv / "bin" / "tool", f"#!{venv}/bin/python\n")
    assert dict(resolved(home, str(tool)).mounts) == {venv: venv, tool: tool}
    lost = program(home / "bin" / "lost", "#!/opt/none/bin/python\n")
    assert "is a script for /opt/none/bin/python" in resolved(home, str(lost)).problem
    hidden = program(home / "bin" / "hidden", f"#!{home}/.pyenv/bin/python\n")
    program(home / ".pyenv" / "bin" / "python", "\x7fELF")
    assert "dot folder" in resolved(home, str(hidden)).problem
    whole = program(home / "bin" / "whole", f"#!{home}/bin/mine\n")
    program(home / "bin" / "mine", "\x7fELF")
    found = resolved(home, str(whole))
    assert found.problem
    assert home not in dict(found.mounts)
    guard = program(home / "bin" / "guard.py", mode=0o644)
    own = program(home / ".claude" / "hooks" / "guard", mode=0o644)
    data = program(home / "notes.txt", mode=0o644)
    assert resolved(home, "sh -x ~/bin/guard.py").mounts == ((guard, guard),)
    assert resolved(home, "sh ~/.claude/hooks/guard").mounts == ((own, own),)
    assert "not a script by its name" in resolved(home, "sh ~/notes.txt").problem
    for command in ("sh ~/bin/guard.py ~/notes.txt", f"sh ~/bin/guard.py --data={data}"):
        found = resolved(home, command)
        assert f"the argument {data}" in found.problem
        assert found.is_missing_check
        assert found.unknown
        assert found.mounts == ((guard, guard),)
    assert "the argument" in resolved(home, "env ~/bin/guard.py").problem


def test_what_is_missing_is_said_with_what_follows(home: Path) -> None:
    """Checks first; the digest covers these alone, and changes with them."""
    found = [
        resolved(home, "~/none x", check=False),
        resolved(home, "~/none"),
        resolved(home, ("none", "x"), check=False),
        resolved(home, "sh", check=False),
    ]
    first, *others = named_programs.missing_sentences(found)
    assert first.endswith("does not exist; this check does not run, so it refuses nothing.")
    assert "f, k (~/none)" in first
    assert ["give it with --read" in each for each in others] == [True, True]
    digest = named_programs.missing_checks_digest("claude", found)
    assert digest == named_programs.missing_checks_digest("claude", found[1:2]) is not None
    assert digest != named_programs.missing_checks_digest("codex", found)
    assert digest != named_programs.missing_checks_digest("claude", [resolved(home, "~/other")])
    assert named_programs.missing_checks_digest("claude", [found[0], found[3]]) is None


def programs_named(agent: str, home: Path, project: str = "/p") -> tuple[NamedProgram, ...]:
    settings = HomeSettings(home)
    found = settings_programs(AGENTS[agent], settings, PurePosixPath(project), {})
    return settings.complete(found)


def commands_named(agent: str, home: Path) -> dict[str, tuple[str, bool]]:
    """Return what an agent's settings in *home* name: where -> command, and whether it is a check."""
    named = programs_named(agent, home)
    return {f"{each.file} {each.key}".strip(): (each.shown_command, each.check) for each in named}


def write(home: Path, name: str, value: object) -> None:
    path = home / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(value if isinstance(value, str) else json.dumps(value))


def hook(command: str, **more: object) -> list[object]:
    return [{"matcher": "Bash", "hooks": [{"type": "command", "command": command, **more}]}]


def test_claude_code(home: Path) -> None:
    hooks = {
        "PreToolUse": hook("~/bin/check"),
        "UserPromptSubmit": hook("later", **{"async": True}),
        "PermissionRequest": hook("exec", args=["a b"]),
        "Stop": [*hook("bell"), {"hooks": [{"type": "prompt", "prompt": "done?"}]}],
    }
    line = {"type": "command", "command": "line"}
    write(
        home, ".claude/settings.json", {"hooks": hooks, "statusLine": line, "apiKeyHelper": "key"}
    )
    server = {"type": "stdio", "command": "npx", "args": ["-y", "x"]}
    servers = {"one": server, "aileron": server, "far": {"type": "http", "url": "https://x"}}
    here = {"/p": {"mcpServers": {"two": server}}, "/q": {"mcpServers": {"no": server}}}
    write(home, ".claude.json", {"mcpServers": servers, "projects": here})
    root = home / ".claude/plugins/cache/shop/on/1"
    listed = {"on@shop": [{"scope": "user", "installPath": str(root)}]}
    write(home, ".claude/plugins/installed_plugins.json", {"version": 2, "plugins": listed})
    inner = {"PreToolUse": hook("${CLAUDE_PLUGIN_ROOT}/guard.sh")}
    write(root, "hooks/hooks.json", {"hooks": inner})
    write(root, ".mcp.json", {"mcpServers": {"plugged": {"command": "$CLAUDE_PLUGIN_ROOT/s"}}})
    text = "---\nname: x\nhooks:\n  PreToolUse:\n  - hooks:\n    - {type: command, command: own}\n---\ntext"
    write(home, ".claude/agents/x.md", text)
    write(home, ".claude/skills/y/SKILL.md", text.replace("own", "skilled"))
    write(home, ".claude/commands/none.md", "---\n: [\n---\n")
    plugin = "~/.claude/plugins/cache/shop/on/1"
    assert commands_named("claude", home) == {
        "~/.claude/settings.json hooks.PreToolUse": ("~/bin/check", True),
        "~/.claude/settings.json hooks.UserPromptSubmit": ("later", False),
        "~/.claude/settings.json hooks.PermissionRequest": ("exec a b", True),
        "~/.claude/settings.json hooks.Stop": ("bell", False),
        "~/.claude/settings.json statusLine": ("line", False),
        "~/.claude/settings.json apiKeyHelper": ("key", False),
        "~/.claude.json mcpServers.one": ("npx -y x", False),
        "~/.claude.json projects./p.mcpServers.two": ("npx -y x", False),
        "~/.claude/agents/x.md hooks.PreToolUse": ("own", True),
        "~/.claude/skills/y/SKILL.md hooks.PreToolUse": ("skilled", True),
        "~/.claude/plugins/installed_plugins.json plugins.on@shop.installPath": (str(root), True),
        f"{plugin}/hooks/hooks.json hooks.PreToolUse": (f"{root}/guard.sh", True),
        f"{plugin}/.mcp.json mcpServers.plugged": (f"{root}/s", False),
    }


def test_codex(home: Path) -> None:
    text = (
        'notify = ["bell", "now"]\n[mcp_servers.one]\ncommand = "uvx"\nargs = ["x"]\n'
        '[mcp_servers.off]\ncommand = "x"\nenabled = false\n[mcp_servers.far]\nurl = "https://x"\n'
        '[model_providers.mine.auth]\ncommand = "token"\nargs = ["get"]\n'
        '[hooks.state."x"]\ntrusted_hash = "y"\n'
        '[[hooks.PreToolUse]]\n[[hooks.PreToolUse.hooks]]\ntype = "command"\ncommand = "check"\n'
    )
    write(home, ".codex/config.toml", text)
    write(home, ".codex/hooks.json", {"hooks": {"SessionStart": hook("hello")}})
    assert commands_named("codex", home) == {
        "~/.codex/config.toml notify": ("bell now", False),
        "~/.codex/config.toml mcp_servers.one": ("uvx x", False),
        "~/.codex/config.toml model_providers.mine.auth": ("token get", False),
        "~/.codex/config.toml hooks.PreToolUse": ("check", True),
        "~/.codex/hooks.json hooks.SessionStart": ("hello", False),
    }


def test_opencode(home: Path) -> None:
    """Plugins by path and by folder, not those of a registry."""
    write(
        home, ".config/opencode/opencode.json",
        {"mcp": {"one": {"type": "local", "command": ["npx", "x"]}, "far": {"type": "remote"}},
         "formatter": {"black": {"command": ["black", "$FILE"]}, "off": {"disabled": True}},
         "lsp": {"mine": {"command": ["ls"], "extensions": [".x"]}},
         "plugin": ["npm-package@1", "./dev/a.ts", [f"file://{home}/b.ts", {}]]},
    )  # fmt: skip
    write(home, ".config/opencode/plugins/c.ts", "")
    write(home, ".config/opencode/plugins/readme.md", "")
    file = "~/.config/opencode/opencode.json"
    plugins = [each.command[0] for each in programs_named("opencode", home) if each.module]
    own = home / ".config/opencode"
    assert plugins == [f"{own}/dev/a.ts", f"{home}/b.ts", f"{own}/plugins/c.ts"]
    found = commands_named("opencode", home)
    assert found[f"{file} mcp.one"] == ("npx x", False)
    assert found[f"{file} formatter.black"] == ("black $FILE", False)
    assert found[f"{file} lsp.mine"] == ("ls", False)
    assert len(found) == 5


def test_goose(home: Path) -> None:
    text = (
        "extensions:\n  one: {enabled: true, type: stdio, cmd: npx, args: [-y, x]}\n"
        "  off: {enabled: false, type: stdio, cmd: y}\n  developer: {enabled: true, type: builtin}\n"
    )
    write(home, ".config/goose/config.yaml", text)
    hooks, plugin = {"PreToolUse": hook("${PLUGIN_ROOT}/c")}, ".agents/plugins/p"
    write(home, f"{plugin}/hooks/hooks.json", {"hooks": hooks})
    assert commands_named("goose", home) == {
        "~/.config/goose/config.yaml extensions.one": ("npx -y x", False),
        f"~/{plugin}/hooks/hooks.json hooks.PreToolUse": (f"{home}/{plugin}/c", True),
    }


def test_pi(home: Path) -> None:
    write(
        home, ".pi/agent/settings.json",
        {"extensions": ["~/dev/a.ts", "!x"], "packages": ["npm:x", {"source": "./p"}],
         "shellPath": "~/bin/sh", "npmCommand": ["mise", "npm"]},
    )  # fmt: skip
    write(home, ".pi/agent/extensions/b.ts", "")
    write(home, ".pi/agent/auth.json", {"anthropic": {"type": "api_key", "key": "!pass show x"}})
    write(home, ".pi/agent/models.json", {"providers": {"mine": {"apiKey": "!get key"}}})
    named, own = programs_named("pi", home), f"{home}/.pi/agent"
    checks = {each.shown_command for each in named if each.check}
    assert checks == {f"{own}/extensions/b.ts", f"{own}/p", "~/dev/a.ts"}
    assert {each.shown_command for each in named} - checks == {"get key", "mise npm", "~/bin/sh"}


def test_gemini_cli(home: Path) -> None:
    write(
        home, ".gemini/settings.json",
        {"hooks": {"BeforeTool": hook("check"), "AfterTool": hook("fmt")},
         "mcpServers": {"one": {"command": "npx", "args": ["x"]}},
         "tools": {"discoveryCommand": "find-tools"}},
    )  # fmt: skip
    extension = {"mcpServers": {"two": {"command": "node", "args": ["${extensionPath}/s.js"]}}}
    a, b = ".gemini/extensions/a", ".gemini/extensions/b/.gemini-extension-install.json"
    write(home, f"{a}/gemini-extension.json", extension)
    write(home, b, {"type": "link", "source": str(home / "dev")})
    write(home, f"{a}/hooks/hooks.json", {"hooks": {"BeforeModel": hook("${extensionPath}/c")}})
    assert commands_named("gemini", home) == {
        "~/.gemini/settings.json hooks.BeforeTool": ("check", True),
        "~/.gemini/settings.json hooks.AfterTool": ("fmt", False),
        "~/.gemini/settings.json mcpServers.one": ("npx x", False),
        "~/.gemini/settings.json tools.discoveryCommand": ("find-tools", False),
        f"~/{a}/gemini-extension.json mcpServers.two": (f"node {home}/{a}/s.js", False),
        f"~/{a}/hooks/hooks.json hooks.BeforeModel": (f"{home}/{a}/c", True),
        f"~/{b} source": (f"{home}/dev", True),
    }


MAIN = {
    "claude": ".claude/settings.json", "codex": ".codex/config.toml",
    "opencode": ".config/opencode/opencode.json", "goose": ".config/goose/config.yaml",
    "pi": ".pi/agent/settings.json", "gemini": ".gemini/settings.json",
}  # fmt: skip


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize("text", ["{", "[1", "x: [", "\udcff", '{"a":' * 900 + "1" + "}" * 900])
def test_settings_that_cannot_be_parsed_are_named(agent: str, text: str, home: Path) -> None:
    """What they name is not known, so a check may be among it: that too stops the launch once."""
    path = home / MAIN[agent]
    path.parent.mkdir(parents=True)
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    (found,) = programs_named(agent, home)
    assert found.file == f"~/{MAIN[agent]}"
    assert found.check
    assert found.problem


WORDS = st.sampled_from(
    ["hooks", "mcpServers", "mcp", "command", "args", "PreToolUse", "plugin", "extensions",
     "statusLine", "packages", "enabledPlugins", "tools", "formatter", "cmd", "type"]
)  # fmt: skip
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=4),
    max_leaves=20,
)


@pytest.mark.parametrize("agent", AGENTS)
@given(value=VALUES)
def test_settings_of_any_shape_are_read(
    agent: str, value: object, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """An earlier agent without a sandbox may have written them: whatever they hold raises nothing."""
    home = tmp_path_factory.mktemp("any")
    if agent != "codex":
        write(home, MAIN[agent], dict.fromkeys(("hooks", "mcpServers", "plugin", "mcp"), value))
    commands_named(agent, home)


@pytest.mark.parametrize(
    ("agent", "name"),
    [("codex", ".codex/auth.json"), ("codex", ".codex/models_cache.json"), ("claude", ".claude/skills/x/plugin.json"),
     ("gemini", ".gemini/gemini-credentials.json"), ("claude", ".claude/agents/x.md")],
)  # fmt: skip
def test_a_token_or_a_cache_may_have_any_form(agent: str, name: str, home: Path) -> None:
    """None of them names a check: a half-written or encrypted one asks nobody."""
    write(home, name, "---\n: [\n---\n{")
    assert programs_named(agent, home) == ()
    (home / name).write_bytes(b"\xff")
    assert programs_named(agent, home) == ()


def test_neither_settings_behind_a_link_nor_a_projects_bring_anything_in(home: Path) -> None:
    """The sandbox does not get such a file; a project could name a private key as a hook."""
    write(home, "dotfiles/settings.json", {"hooks": {"PreToolUse": hook("~/bin/check")}})
    (home / ".claude").mkdir()
    (home / ".claude/settings.json").symlink_to("../dotfiles/settings.json")
    (found,) = programs_named("claude", home)
    assert "link" in found.problem
    assert found.check
    key = program(home / "keys" / "id")
    hooks = f"[[hooks.PreToolUse]]\n[[hooks.PreToolUse.hooks]]\ncommand = '{key}'\n"
    said = files_named(home, "codex", "", config=hooks)
    assert f"{key} (.codex/config.toml: hooks.PreToolUse)" in said
    project = home / "work"
    for name in MAIN.values():
        write(project, name, {"hooks": {"PreToolUse": hook(str(key))}})
    (home / ".codex/config.toml").unlink()
    (home / ".claude/settings.json").unlink()
    for agent in AGENTS:
        assert programs_named(agent, home, str(project)) == ()


def files_named(home: Path, agent: str, text: str, **of_project: str) -> str:
    """Return what the launch says of the files that *text*, the agent's own settings, and the project's name."""
    for name in ("own.pem", ".codex/prompt.md", "work/in.md"):
        write(home, name, "")
    write(home, MAIN[agent], text)
    settings = HomeSettings(home)
    texts = {f".codex/{name}.toml": each for name, each in of_project.items()}
    found = settings_programs(AGENTS[agent], settings, PurePosixPath(home / "work"), texts)
    resolved = resolve_programs(settings.complete(found), paths_in(home, ".codex", "prompt.md"))
    assert not [each for each in resolved if each.mounts and each.named.from_project]
    files = named_programs.missing_files("Codex", resolved)
    return " ".join((*files, *named_programs.missing_sentences(resolved)))


@pytest.mark.parametrize(
    "value",
    ["~/own.pem", "$HOME/own.pem", "${HOME}/own.pem", "HERE/own.pem", "file:~/own.pem", "file://HERE/own.pem",
     "{file:~/own.pem}", "HERE/work/../own.pem"],
)  # fmt: skip
def test_a_file_outside_is_named_with_its_setting(home: Path, value: str) -> None:
    """By whichever way of writing a path, in a table or a list; with what to do."""
    text = f'a = 1\n[[mine]]\nca = ["{value.replace("HERE", str(home))}"]\n'
    assert files_named(home, "codex", text) == (
        f"Not in the sandbox, but named in Codex's settings: {home}/own.pem (~/.codex/config.toml: mine.ca). What Codex "
        "needs of that, give it with --read, or under `[launch] read` in config.toml."
    )


def test_files_are_named_also_of_a_variables_file_and_of_many_the_first(home: Path) -> None:
    """Not a copy, a system's file, the project's own, what is hidden; a folder, a sentence, what does not exist."""
    write(home, "hidden", "")
    values = ["~/.codex/prompt.md", "/etc/passwd", "~/work/in.md", "~/.codex", "see ~/own.pem", "~/none", "~/none x",
              "~/hidden", "/a\\u0000b", "~/bin/now"]  # fmt: skip
    program(home / "bin" / "now")
    text = "".join(f'v{n} = "{value}"\n' for n, value in enumerate(values))
    assert files_named(home, "codex", text) == ""
    for number in range(11):
        write(home, f"{number}.pem", "")
    text = "".join(f'v{number} = "~/{number}.pem"\n' for number in range(11))
    assert "7.pem (~/.codex/config.toml: v7); and 3 more. " in files_named(home, "codex", text)
    write(home, ".codex/.env", 'SSL_CERT_FILE="~/own.pem"\n')
    assert f"{home}/own.pem (~/.codex/.env: SSL_CERT_FILE)" in files_named(home, "codex", "")
