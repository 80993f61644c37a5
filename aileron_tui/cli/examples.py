"""Examples at the end of each command's help: the command lines as a person types them."""

from collections.abc import Mapping

import click

EXAMPLES: Mapping[str, tuple[str, ...]] = {
    "": ("aileron demo", "aileron init --example", "aileron console", "aileron launch codex"),
    "action": ("aileron action list", "aileron action run list-drafts"),
    "action add": ("aileron action add send-draft.md", "aileron action add ~/actions"),
    "action check": ("aileron action check send-draft.md", "aileron action check --portable ."),
    "action list": ("aileron action list", "aileron action list --json"),
    "action remove": ("aileron action remove send-draft",),
    "action show": ("aileron action show send-draft", "aileron action show send-draft --json"),
    "action run": (
        "aileron action run list-drafts",
        "aileron action run send-draft --arg draft_id=r-7719003417 --wait 300",
        "aileron action run send-draft --args @arguments.json",
    ),
    "audit": ("aileron audit list", "aileron audit verify"),
    "audit list": ("aileron audit list", "aileron audit list -n 500 --json"),
    "audit show": ("aileron audit show act-20260102T030405-0123456789abcdef",),
    "audit verify": ("aileron audit verify",),
    "binding": ("aileron binding setup todoist", "aileron binding list"),
    "binding forget": ("aileron binding forget api_key/todoist/work close-task",),
    "binding inspect": ("aileron binding inspect api_key/todoist/default",),
    "binding list": ("aileron binding list", "aileron binding list --json"),
    "binding reauthorize": ("aileron binding reauthorize oauth2/gmail/default",),
    "binding rebind": ("aileron binding rebind api_key/todoist/default",),
    "binding revoke": ("aileron binding revoke api_key/todoist/default",),
    "binding setup": (
        "aileron binding setup todoist",
        "aileron binding setup todoist --identity work --account ana@example.com --secret-file ~/key",
    ),
    "completion": ('eval "$(aileron completion bash)"',),
    "connector": ("aileron connector list", "aileron connector install ./mail-drafts"),
    "connector check": ("aileron connector check ./mail-drafts",),
    "connector install": ("aileron connector install ./mail-drafts",),
    "connector list": ("aileron connector list",),
    "connector new": (
        "aileron connector new my-notes",
        "aileron connector new my-notes --lang zig",
    ),
    "connector remove": ("aileron connector remove mail-drafts",),
    "connector run": (
        "aileron connector run . list_drafts --route gmail.googleapis.com:443=127.0.0.1:8025",
    ),
    "connector show": ("aileron connector show mail-drafts",),
    "console": (
        "aileron console",
        "aileron console --plain",
        "aileron console --route gmail.googleapis.com:443=127.0.0.1:8025",
    ),
    "demo": ("aileron demo",),
    "doctor": ("aileron doctor", "aileron doctor codex"),
    "example": ("aileron example",),
    "gateway": ("aileron gateway key list",),
    "gateway key": ("aileron gateway key set openai", "aileron gateway key list"),
    "gateway key list": ("aileron gateway key list", "aileron gateway key list --json"),
    "gateway key remove": ("aileron gateway key remove openai",),
    "gateway key set": (
        "aileron gateway key set openai",
        "aileron gateway key set anthropic --secret-file ~/key",
    ),
    "init": ("aileron init --example",),
    "launch": (
        "aileron launch codex",
        "aileron launch claude --console -- --model opus",
        "aileron launch codex --dry-run",
    ),
    "logs": ("aileron logs -n 200", "aileron logs --follow"),
    "validate": ("aileron validate", "aileron validate my-project/aileron.toml --json"),
    "mcp-relay": ("aileron mcp-relay --zip aileron-mcp.pyz",),
    "open": ("aileron open approval act-20260102T030405-0123456789abcdef",),
    "open approval": ("aileron open approval act-20260102T030405-0123456789abcdef",),
    "serve": (
        "aileron serve",
        "aileron serve --json",
        "aileron serve --passphrase-file ~/passphrase",
    ),
    "run": (
        'aileron run --model claude-sonnet-4-5 "Which drafts are waiting?"',
        "aileron run --model qwen3 --base-url http://127.0.0.1:11434/v1",
    ),
    "status": ("aileron status", "aileron status --json"),
    "vault": ("aileron vault init", "aileron vault unlock"),
    "vault change-passphrase": ("aileron vault change-passphrase",),
    "vault keyring": ("aileron vault keyring on", "aileron vault keyring off"),
    "vault init": ("aileron vault init", "aileron vault init --import ~/.aileron/secrets.json"),
    "vault lock": ("aileron vault lock",),
    "vault status": ("aileron vault status", "aileron vault status --json"),
    "vault unlock": ("aileron vault unlock", "aileron vault unlock --passphrase-file ~/passphrase"),
    "version": ("aileron version",),
}
"""Command lines by the command's words."""


def add_examples(command: click.Command, words: tuple[str, ...] = ()) -> None:
    """Let the help of *command*, and of every command below it, end in its examples."""
    lines = EXAMPLES.get(" ".join(words), ())
    command.epilog = "\n".join(("\b", "Examples:", *(f"  {line}" for line in lines)))
    if isinstance(command, click.Group):
        for word, each in command.commands.items():
            add_examples(each, (*words, word))
