"""The tree of commands: what each is called, takes and says of itself, and which function it calls."""

import contextlib
import gc
from pathlib import Path
from typing import Any

import click
from click import argument, option

from aileron_core import __version__
from aileron_core.agent_names import AGENT_NAMES
from aileron_core.text import escape
from aileron_tui.cli import completing
from aileron_tui.cli.options import (
    LaunchCommand,
    OneOf,
    OneOfUnlessAugmented,
    Program,
    WholeNumber,
    flag,
    group,
    limit_option,
    passphrase_options,
    paths,
    published_options,
)
from aileron_tui.cli.output import EXIT, CliError, CommandContext
from aileron_tui.cli.process import (
    Given,
    close_memory,
    drop_key_variables,
    given_passphrase,
    opening_line,
)
from aileron_tui.cli.scaffold import EXAMPLE_PORT


def _open_console(
    context: CommandContext, *, plain: bool, passphrase: Given, **options: Any
) -> int:
    if context.json:
        raise CliError(
            EXIT.USAGE,
            "The console draws on the terminal and cannot print JSON. Use `aileron status --json` for "
            "its status, or `aileron serve --json` to run without a screen.",
        )
    close_memory()
    drop_key_variables()
    secret = given_passphrase(passphrase)
    with contextlib.ExitStack() as stack:
        erase = None if plain else stack.enter_context(opening_line(context.home))
        # Only now: what it imports takes most of the start. Imports make no garbage; the first frame
        # ends this.
        gc.disable()
        from aileron_tui.cli.runtime import run_console

        return run_console(context, plain=plain, before_screen=erase, passphrase=secret, **options)


def _serve(context: CommandContext, *, passphrase: Given, **options: Any) -> int:
    close_memory()
    gc.disable()  # until it serves, as for the console
    from aileron_tui.cli.runtime import run_serve

    return run_serve(context, passphrase=given_passphrase(passphrase), **options)


def _write_relay(context: CommandContext, file: str) -> int:
    from aileron_mcp.relay_copies import write_zipapp

    write_zipapp(Path(file))
    context.show({"file": file})
    context.say(f"Wrote {escape(file)}. An agent starts it with: python3 -I {escape(file)}")
    return EXIT.DONE


def _show_version(context: CommandContext) -> int:
    context.show({"version": __version__})
    context.say(f"aileron {__version__}")
    return EXIT.DONE


def _show_completion(context: CommandContext, shell: str) -> int:
    from click.shell_completion import get_completion_class

    of_shell = get_completion_class(shell)
    assert of_shell is not None
    script = of_shell(aileron, {}, "aileron", "_AILERON_COMPLETE").source()
    context.show({"shell": shell, "script": script})
    context.say(script)
    return EXIT.DONE


def _path_option(name: str, what: str) -> Any:
    return option(name, multiple=True, metavar="PATH", shell_complete=paths, help=what)


_console_options = (
    option("--route", "routes", multiple=True, metavar="HOST:PORT=127.0.0.1:PORT", help="For tests: send a host's requests to a service on this machine, over plain HTTP and without credentials."),
    flag("--accept-installed", "Accept every installed action and connector, and every POST request of a preview, without review. The screen and the audit show this."),
    passphrase_options("Unlock the vault at the start with the passphrase that"),
)  # fmt: skip


class _Aileron(Program):
    """The root. Its groups are imported once one of them is asked for: a console needs none of them."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.commands:
            self.list_commands(ctx)
        return super().get_command(ctx, cmd_name)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return every name."""
        from aileron_tui.cli import subcommands

        for each in subcommands.GROUPS:
            self.add_command(each)
        return super().list_commands(ctx)


aileron = group(
    "aileron",
    """The control plane and approval console for AI agents.

    For the terms, see the glossary: docs/glossary.md in the repository.
    """,
    click.version_option(__version__, message="aileron %(version)s"),
    examples=("aileron demo", "aileron init --example", "aileron console", "aileron launch codex"),
    cls=_Aileron,
    context_settings={"help_option_names": ["-h", "--help"]},
)
aileron.add(
    "init",
    "init.init_home",
    "Create Aileron's home folder and print the next steps.",
    flag("--example", "Add an example connector with three actions."),
    examples=("aileron init --example",),
)
aileron.add(
    "demo",
    "demo.run_demo",
    """Play six scenes in the real console, in a temporary home.

    It starts three agents and a mail service, and does not touch your own home.
    """,
    examples=("aileron demo",),
)
aileron.add(
    "example",
    "init.run_example",
    "Run the example mail service that `init --example` uses.",
    option("--port", type=WholeNumber(0, 65535), default=EXAMPLE_PORT, show_default=True, metavar="PORT", help="The port on 127.0.0.1; 0 picks a free one."),
    examples=("aileron example",),
)  # fmt: skip
aileron.add(
    "console",
    _open_console,
    "Open the console. It also runs the server.",
    *_console_options,
    flag("--plain", "Print line by line instead, for screen readers and simple terminals."),
    option("--keyring", "use_keyring", is_flag=True, help="Let the system's keyring unlock the vault when you press U and enter (see `aileron vault keyring`)."),
    examples=(
        "aileron console",
        "aileron console --plain",
        "aileron console --route gmail.googleapis.com:443=127.0.0.1:8025",
    ),
)  # fmt: skip
aileron.add(
    "serve",
    _serve,
    "Run the server without a console. Gated calls wait, because nobody can approve them.",
    *_console_options,
    examples=(
        "aileron serve",
        "aileron serve --json",
        "aileron serve --passphrase-file ~/passphrase",
    ),
)
aileron.add(
    "attach",
    "attach.attach_console",
    """Attach another console to the one that runs, or to `aileron serve`, on this machine or another.

    It shows three words; confirm it in the open console. With `aileron serve` the vault's passphrase confirms it.
    It shows what the console shows, and approves and denies. Closing it ends nothing.
    With ssh://[USER@]HOST[:PORT] ssh runs `aileron attach --stdio` there; keys and screen stay here.
    """,
    argument("address", required=False, metavar="[ssh://HOST]"),
    flag("--plain", "Print line by line instead, for screen readers and simple terminals."),
    option(
        "--confirm",
        default="",
        metavar="WORDS",
        help="Confirm the console of these words with the vault's passphrase: one that another machine attaches to `aileron serve` here.",
    ),
    flag(
        "--stdio",
        "Pass bytes on between a console on another machine and the home here; ssh runs it.",
    ),
    examples=(
        "aileron attach",
        "aileron attach --plain",
        "aileron attach ssh://box",
        "aileron attach --confirm amber-canoe-violet",
    ),
    short_help="Attach another console to the server that runs.",
)
aileron.add(
    "launch",
    "launching.launch_command",
    """Start an AI agent in a sandbox, connected to the console.

    AGENT is codex, claude, opencode, goose, pi or gemini. The agent's settings in your home stay as they are.
    """,
    argument("agent", type=OneOfUnlessAugmented(AGENT_NAMES), metavar="AGENT"),
    argument("args", nargs=-1, type=click.UNPROCESSED, metavar="[-- AGENT ARGUMENTS]"),
    option("--augment", is_flag=True, is_eager=True, help="AGENT is any program on the OpenAI or Anthropic SDK, followed by its arguments. Its model gets your actions as tools. There is no sandbox."),
    flag("--dry-run", "Print what a launch would do, without starting anything."),
    option("--sandbox", type=click.Choice(["on", "hosts", "offline"]), default="on", show_default=True, help="hosts: network access only to the agent's own hosts and those under [launch] in config.toml. offline: none except to Aileron and, through it, to the agent's models."),
    flag("--no-sandbox", "Run without a sandbox. The agent can then do whatever you can."),
    _path_option("--read", "Let the agent read PATH. Repeat the option for more."),
    _path_option("--write", "Let the agent write PATH. Refused for what your own programs run or obey."),
    _path_option("--hide", "Hide PATH from the agent, also in the project."),
    option("--builtins/--no-builtins", default=None, help="Give the agent Aileron's own, gated Read, Write, Edit, Bash, Glob and Grep. --no-builtins: not even if the project asks for them."),
    flag("--intercept-builtins", "Like --builtins, and switch off the agent's own tools, as far as it can do without them."),
    flag("--no-gateway", "Do not send model traffic through Aileron."),
    flag("--allow-abstract-sockets", "Launch even if this kernel cannot keep the agent from abstract sockets."),
    flag("--accept-project", "Accept the project's launch settings (aileron.toml) without asking."),
    flag("--accept-missing-checks", "Launch without asking even if hooks that can block the agent's calls cannot run in the sandbox."),
    flag("--console", "Open a console in a new tmux pane if none is running."),
    option("--label", default="", help="The session's name in the console (default: the folder's name)."),
    option("--export-session", metavar="FOLDER", shell_complete=paths, help="Start nothing; copy the agent's newest conversation in this project to a new FOLDER. For another one, put part of its id after --."),
    examples=(
        "aileron launch codex",
        "aileron launch claude --console -- --model opus",
        "aileron launch codex --dry-run",
    ),
    cls=LaunchCommand,
)  # fmt: skip
aileron.add(
    "run",
    "agent_run.run_agent",
    """Let a model use your actions as its tools, through the gate.

    With PROMPT, or a prompt on standard input, the model answers that. Without one, at a terminal, you
    have a conversation until Ctrl-D. Ctrl-C stops an answer and says what was called.

    The key is the one in the vault (`aileron gateway key set`), or that of OPENAI_API_KEY or
    ANTHROPIC_API_KEY.
    """,
    option("--model", required=True, metavar="MODEL", help="The model's name at its provider."),
    option("--api", type=OneOf(["openai", "anthropic"]), metavar="API", help="openai (Chat Completions) or anthropic (Messages). Default: anthropic for a model that begins with claude, otherwise openai."),
    option("--base-url", metavar="URL", help="Ask this server, such as http://127.0.0.1:11434/v1, instead of the provider."),
    option("--key-variable", metavar="NAME", help="The environment variable with the key for --base-url. Without it no key is sent."),
    option("--system", metavar="FILE", shell_complete=paths, help="A text file with the system prompt."),
    option("--max-tokens", type=WholeNumber(1, 1_000_000), metavar="N", help="The most tokens of one answer (anthropic API only; default: 8192)."),
    argument("prompt", required=False),
    examples=(
        'aileron run --model claude-sonnet-4-5 "Which drafts are waiting?"',
        "aileron run --model qwen3 --base-url http://127.0.0.1:11434/v1",
    ),
)  # fmt: skip
aileron.add(
    "validate",
    "check.validate_project",
    """Check a project's aileron.toml. Print what a launch would refuse, and why.

    FILE is the project's aileron.toml (default: that of the current folder).
    """,
    argument("file", default="aileron.toml", shell_complete=paths),
    examples=("aileron validate", "aileron validate my-project/aileron.toml --json"),
)
aileron.add(
    "mcp-relay",
    _write_relay,
    """Write `aileron-mcp` as a single file, for use in a container.

    The file needs only Python's standard library. The agent starts it with python3 -I FILE.
    """,
    option("--zip", "file", required=True, metavar="FILE", shell_complete=paths, help="The file to write. It runs on Python 3.11 or newer."),
    examples=("aileron mcp-relay --zip aileron-mcp.pyz",),
)  # fmt: skip
aileron.add(
    "doctor",
    "doctor.show_doctor",
    """Check which agents are installed and how well this machine can sandbox them.

    With AGENT, also show what Aileron controls in it and what it does not. Changes nothing. The exit code is 1
    if something is broken.

    With --attack, try attacks on Aileron itself, all of them or those named, and say of each what stopped
    it. They have a home of their own, in a temporary folder, with a mail service and a call that waits;
    your own home, accounts and vault are not touched. The exit code is 1 if one broke through.
    """,
    argument(
        "names",
        nargs=-1,
        metavar="[AGENT | ATTACKS]",
        shell_complete=OneOf(AGENT_NAMES).shell_complete,
    ),
    flag("--attack", "Try attacks instead, each on a temporary home. It takes about two minutes."),
    flag("--notify", "Send a notice as for a waiting call instead, and say which ways it took."),
    examples=(
        "aileron doctor",
        "aileron doctor codex",
        "aileron doctor --attack",
        "aileron doctor --attack typed-ahead two-hosts",
    ),
    short_help="Check the installed agents and this machine's sandbox.",
)
aileron.add(
    "update",
    "updating.update",
    """Add newer releases of the suites that you accepted.

    They wait in the console beside what you accepted, which counts until you accept them. NAME is an action, or
    OWNER/REPO; without it, every suite is looked up. With --back, the version that you accepted before is offered.
    """,
    argument("name", default="", required=False, shell_complete=completing.ready_actions),
    *published_options,
    flag("--back", "Offer the version of NAME that you accepted before, from this machine."),
    examples=("aileron update", "aileron update owner/repo", "aileron update send-draft --back"),
)
aileron.add(
    "status",
    "status.show_status",
    "Show whether a console is running and which calls are waiting.",
    examples=("aileron status", "aileron status --json"),
)
aileron.add(
    "logs",
    "logfile.show_logs",
    """Print Aileron's own log. It contains no arguments, previews or secrets.

    --json prints one object; --json --follow prints one object per line.
    """,
    limit_option("lines", least=0),
    option("-f", "--follow", is_flag=True, help="Keep printing new lines until Ctrl-C."),
    examples=("aileron logs -n 200", "aileron logs --follow"),
)
aileron.add("version", _show_version, "Print the version.", examples=("aileron version",))
aileron.add(
    "completion",
    _show_completion,
    """Print the completion script for your shell.

    \b
    bash: eval "$(aileron completion bash)"     in ~/.bashrc
    zsh:  eval "$(aileron completion zsh)"      in ~/.zshrc, after compinit
    fish: aileron completion fish > ~/.config/fish/completions/aileron.fish
    """,
    argument("shell", type=OneOf(["bash", "zsh", "fish"]), metavar="SHELL"),
    examples=('eval "$(aileron completion bash)"',),
)
