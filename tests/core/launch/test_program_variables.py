"""A variable that no table knows is named at the launch, if the agent's program asks for it."""

import json
from pathlib import Path

import pytest

from aileron_core.launch.agents import AGENTS
from aileron_core.launch.program_variables import left_out_variables

CODEX = AGENTS["codex"]


def package(folder: Path, code: str = "", **dependencies: str) -> Path:
    """Make a package of npm with *code*; return its program."""
    folder.mkdir(parents=True)
    (folder / "package.json").write_text(json.dumps({"dependencies": dependencies}))
    (folder / "main.js").write_text(f"#!/usr/bin/env node\n{code}")
    return folder / "main.js"


def binary(folder: Path, text: bytes) -> Path:
    path = folder / "codex"
    path.write_bytes(b"\x7fELF\x00" + text + b"\x00")
    return path


def left_out(program: Path, *names: str, given: tuple[str, ...] = ()) -> str:
    """Return what the launch says about variables of these *names*."""
    texts = ("[]", "key = { env = 'ONLY_IN_SETTINGS' }")
    return " ".join(left_out_variables(CODEX, program, texts, dict.fromkeys(names, "x"), given))


def test_only_what_the_program_names_is_said(tmp_path: Path) -> None:
    """With what to do about it."""
    program = binary(tmp_path, b"...NEW_MODEL_URLOTHER")
    assert left_out(program, "NEW_MODEL_URL", "COMPANY_THING") == (
        "Not in the sandbox: NEW_MODEL_URL. Codex's program, or its settings, names it. If one of them chooses its model, address or "
        "key, set it under `env` of `[launch.codex]` in config.toml."
    )
    assert left_out(program, "COMPANY_THING") == ""
    assert left_out(program, "ONLY_IN_SETTINGS").startswith("Not in the sandbox: ONLY_IN_SETTINGS.")


def test_nothing_is_said_of_what_reaches_it_or_is_judged_by_its_table(tmp_path: Path) -> None:
    """Nor of a terminal's or a desktop's variables, of Aileron's own, and of those without a value."""
    names = ("NEW_URL", "OPENAI_API_KEY", "TMUX_PANE", "PWD", "AILERON_HOME", "EMPTY_URL")
    program = binary(tmp_path, " ".join(names).encode())
    env = {**dict.fromkeys(names, "x"), "EMPTY_URL": ""}
    assert left_out_variables(CODEX, program, (), env, ("NEW_URL",)) == ()


def test_a_proxy_of_one_program_alone_is_named(tmp_path: Path) -> None:
    """Those of all programs reach the agent, or the launch says why not."""
    names = ("HTTPS_PROXY", "all_proxy", "NEW_HTTPS_PROXY")
    program = binary(tmp_path, " ".join(names).encode())
    assert left_out(program, *names).startswith("Not in the sandbox: NEW_HTTPS_PROXY. ")


def test_what_a_package_depends_on_belongs_to_the_program(tmp_path: Path) -> None:
    """Where Node.js finds it, also without end in a circle; another package does not."""
    modules = tmp_path / "node_modules"
    program = package(modules / "codex", "process.env.IN_ITSELF", binary="1", absent="1")
    package(modules / "binary", "process.env.IN_DEPENDENCY", codex="1", deeper="1")
    package(modules / "binary" / "node_modules" / "deeper", "process.env.IN_NESTED")
    package(modules / "other", "process.env.IN_ANOTHER")
    said = left_out(program, "IN_ITSELF", "IN_DEPENDENCY", "IN_NESTED", "IN_ANOTHER")
    assert said.startswith("Not in the sandbox: IN_DEPENDENCY, IN_ITSELF, IN_NESTED. Codex's")


@pytest.mark.parametrize("broken", ["a script of no package", "a dangling file", "a folder"])
def test_a_program_that_cannot_be_searched_leaves_every_variable_named(
    tmp_path: Path, broken: str
) -> None:
    """A wrapper may start anything."""
    program = tmp_path / "codex"
    if broken == "a script of no package":
        program.write_text("#!/bin/sh\nexec /opt/codex\n")
    elif broken == "a folder":
        program.mkdir()
    assert left_out(program, "NEW_URL", "COMPANY_THING") == (
        f"Not in the sandbox: COMPANY_THING, NEW_URL. {program} cannot be searched, so Codex may ask for them. If one "
        "of them chooses its model, address or key, set it under `env` of `[launch.codex]` in config.toml."
    )
