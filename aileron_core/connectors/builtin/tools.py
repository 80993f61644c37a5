"""The actions of the built-in tools, with the arguments that agents know from their own.

They are part of the program, so no file is accepted for them. Whether a call is asked is not theirs to
say but the rules' (`aileron_core.policy`).
"""

import functools
from collections.abc import Mapping
from dataclasses import replace

from aileron_core import __version__
from aileron_core.actions.model import (
    BUILTIN_PREFIX,
    Action,
    ActionLimits,
    Approval,
    ConnectorRequirement,
    Input,
    Preview,
    Step,
)
from aileron_core.canonical import sha256_hex
from aileron_core.connectors.builtin.connector import FQN, MAX_TIMEOUT_MS, identity

_LIMITS = ActionLimits(wall_seconds=MAX_TIMEOUT_MS // 1000 + 30, has_wall_seconds=True)
_FILE = Input(name="file_path", type="string", description="The file: a path in the project.")
_FILE_PREVIEW = (
    ("File", "file"), ("Change", "change"), ("Before", "before"), ("After", "after"), ("Diff", "diff"),
)  # fmt: skip
_PLACE_PREVIEW = (("Path", "path"), ("Is", "kind"))
_COMMAND_PREVIEW = (
    ("Command", "command"), ("In", "folder"), ("Names", "words"), ("Rehearsal", "rehearsal"),
    ("Output", "output"), ("Changes", "changes"), ("Diff", "diff"),
)  # fmt: skip


def _optional(name: str, type_: str, description: str) -> Input:
    return Input(name=name, type=type_, description=description, required=False)


def _place_preview(op: str, argument: str) -> Preview:
    return Preview(
        op=f"preview_{op}",
        args={argument: f"${{args.{argument}}}"},
        render=_PLACE_PREVIEW,
        gist="${Path}",
    )


def _file_preview(op: str, *arguments: str) -> Preview:
    return Preview(
        op=f"preview_{op}",
        args={name: f"${{args.{name}}}" for name in arguments},
        render=_FILE_PREVIEW,
        multiline=frozenset(("Diff",)),
        formats=(("Diff", "diff"),),
        gist="${File}",
        omits_missing=True,
    )


_INPUTS: Mapping[str, tuple[Input, ...]] = {
    "Read": (
        _FILE,
        _optional("offset", "integer", "The first line to read, from 1."),
        _optional("limit", "integer", "How many lines to read; 2,000 if it is left out."),
    ),
    "Write": (
        _FILE,
        Input(
            name="content", type="string", description="All that the file is to contain.", multiline=True
        ),
    ),
    "Edit": (
        _FILE,
        Input(
            name="old_string",
            type="string",
            description="The text to replace, exactly as it is in the file, and only once there.",
            multiline=True,
        ),
        Input(name="new_string", type="string", description="What to put in its place.", multiline=True),
        _optional("replace_all", "boolean", "Replace every occurrence."),
    ),
    "Bash": (
        Input(name="command", type="string", description="The command, for a shell.", multiline=True),
        _optional("timeout", "integer", "Milliseconds until it is ended: 120,000 by default, 600,000 at most."),
        _optional("description", "string", "What it does, in a few words."),
    ),
    "Glob": (
        Input(name="pattern", type="string", description="Such as **/*.py."),
        _optional("path", "string", "The folder to search; the project if it is left out."),
    ),
    "Grep": (
        Input(name="pattern", type="string", description="A regular expression, as Python has them."),
        _optional("path", "string", "The file or folder to search; the project if it is left out."),
        _optional("glob", "string", "Search only files that match this, such as *.ts."),
        _optional("output_mode", "string", "content, files_with_matches (the default) or count."),
        _optional("-i", "boolean", "Ignore case."),
        _optional("-n", "boolean", "Show line numbers, with content."),
        _optional("-A", "integer", "Lines to show after each match, with content."),
        _optional("-B", "integer", "Lines to show before each match, with content."),
        _optional("-C", "integer", "Lines to show around each match, with content."),
        _optional("multiline", "boolean", "Let . match line ends too, and patterns span lines."),
        _optional("head_limit", "integer", "Show only the first so many lines or files."),
    ),
}  # fmt: skip

_BODIES: Mapping[str, str] = {
    "Read": "Read a text file of the project. Lines are numbered from 1.",
    "Write": "Write a whole file of the project, in place of what it contains. A person is shown the difference first.",
    "Edit": "Replace a text in a file of the project. A person is shown the difference first.",
    "Bash": (
        "Run a command in the project. It begins in the project's folder each time and runs in a sandbox of its own: "
        "nothing that it starts outlives it, and variables or a folder that it changes to do not last. A person may be "
        "asked first, and is shown what it will do."
    ),
    "Glob": "Find files of the project by a pattern of their paths, the newest first.",
    "Grep": "Search the contents of the project's files.",
}
_INTENTS: Mapping[str, str] = {
    "Read": "Read a file", "Write": "Write a file", "Edit": "Change a file", "Bash": "Run a command",
    "Glob": "Find files", "Grep": "Search files",
}  # fmt: skip
_EFFECTS: Mapping[str, str] = {"Write": "change", "Edit": "change", "Bash": "run"}
_PREVIEWS: Mapping[str, Preview] = {
    "Read": _place_preview("read", "file_path"),
    "Glob": _place_preview("glob", "path"),
    "Grep": _place_preview("grep", "path"),
    "Write": _file_preview("write", "file_path", "content"),
    "Edit": _file_preview("edit", "file_path", "old_string", "new_string", "replace_all"),
    "Bash": Preview(
        op="preview_bash",
        args={"command": "${args.command}"},
        render=_COMMAND_PREVIEW,
        multiline=frozenset(("Command", "Output", "Diff")),
        formats=(("Diff", "diff"),),
        gist="${Command}",
        omits_missing=True,
    ),
}


@functools.cache
def builtin_actions() -> Mapping[str, Action]:
    """Return the actions of the tools by their names, `builtin.read` and so on."""
    return {action.name: action for action in map(_action, _INPUTS)}


def _action(tool: str) -> Action:
    op, whose = tool.lower(), identity()
    action = Action(
        name=f"{BUILTIN_PREFIX}{op}",
        tool=tool,
        version=__version__,
        source=FQN,
        requires=(
            ConnectorRequirement(fqn=FQN, version=__version__, hash=whose.hash, capabilities=(op,)),
        ),
        intent=_INTENTS[tool],
        inputs=_INPUTS[tool],
        steps=(Step(id=op, connector=FQN, op=op),),
        approval=Approval(effect=_EFFECTS.get(tool, "read"), preview=_PREVIEWS.get(tool)),
        limits=_LIMITS,
        body=_BODIES[tool],
        file=f"{BUILTIN_PREFIX}{op}",
    )
    return replace(action, sha256=sha256_hex(f"{action.name} {__version__} {whose.hash}".encode()))
