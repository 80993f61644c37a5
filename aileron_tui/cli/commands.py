"""The tree of commands; each imports what it needs when it runs."""

import contextlib
import gc
from pathlib import Path
from typing import Any, Literal

import click

from aileron_core import __version__
from aileron_core.agent_names import AGENT_NAMES
from aileron_core.text import escape
from aileron_tui.cli import binding_commands, subcommands
from aileron_tui.cli.examples import add_examples
from aileron_tui.cli.options import (
    LaunchCommand,
    OneOf,
    OneOfUnlessAugmented,
    Program,
    WholeNumber,
    command_options,
    limit_option,
    passphrase_options,
    paths,
    shared_options,
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

_BUILTINS: dict[bool | None, Literal["off", "beside"] | None] = {
    None: None,
    True: "beside",
    False: "off",
}


@click.group(cls=Program, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="aileron %(version)s")
@shared_options
def aileron(home: str | None, as_json: bool, no_color: bool) -> None:
    """The control plane and approval console for AI agents.

    For the terms, see the glossary: docs/glossary.md in the repository.
    """


@aileron.command()
@click.option("--example", is_flag=True, help="Add an example connector with three actions.")
@command_options
def init(context: CommandContext, example: bool) -> int:
    """Create Aileron's home folder and print the next steps."""
    from aileron_tui.cli.init import init_home

    return init_home(context, example=example)


@aileron.command()
@command_options
def demo(context: CommandContext) -> int:
    """Play six scenes in the real console, in a temporary home.

    It starts three agents and a mail service, and does not touch your own home.
    """
    from aileron_tui.cli.demo import run_demo

    return run_demo(context)


@aileron.command("example")
@click.option(
    "--port",
    type=WholeNumber(0, 65535),
    default=EXAMPLE_PORT,
    show_default=True,
    metavar="PORT",
    help="The port on 127.0.0.1; 0 picks a free one.",
)
@command_options
def example_service(context: CommandContext, port: int) -> int:
    """Run the example mail service that `init --example` uses."""
    from aileron_tui.cli.example import run_example

    return run_example(context, port)


def _console_options(function: Any) -> Any:
    function = passphrase_options("Unlock the vault at the start with the passphrase that")(
        function
    )
    function = click.option(
        "--accept-installed",
        is_flag=True,
        help="Accept every installed action and connector, and every POST request of a preview, without review. The screen and the audit show this.",
    )(function)
    return click.option(
        "--route",
        "routes",
        multiple=True,
        metavar="HOST:PORT=127.0.0.1:PORT",
        help="For tests: send a host's requests to a service on this machine, over plain HTTP and without credentials.",
    )(function)


@aileron.command()
@_console_options
@click.option(
    "--plain",
    is_flag=True,
    help="Print line by line instead, for screen readers and simple terminals.",
)
@click.option(
    "--keyring",
    "use_keyring",
    is_flag=True,
    help="Let the system's keyring unlock the vault when you press U and enter (see `aileron vault keyring`).",
)
@command_options
def console(
    context: CommandContext,
    routes: tuple[str, ...],
    accept_installed: bool,
    plain: bool,
    use_keyring: bool,
    passphrase: Given,
) -> int:
    """Open the console. It also runs the server."""
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

        return run_console(
            context,
            routes,
            accept_installed=accept_installed,
            plain=plain,
            before_screen=erase,
            passphrase=secret,
            use_keyring=use_keyring,
        )


@aileron.command()
@_console_options
@command_options
def serve(
    context: CommandContext,
    routes: tuple[str, ...],
    accept_installed: bool,
    passphrase: Given,
) -> int:
    """Run the server without a console. Gated calls wait, because nobody can approve them."""
    close_memory()
    gc.disable()  # until it serves, as for the console
    from aileron_tui.cli.runtime import run_serve

    return run_serve(
        context,
        routes,
        accept_installed=accept_installed,
        passphrase=given_passphrase(passphrase),
    )


@aileron.command(cls=LaunchCommand)
@click.argument("agent", type=OneOfUnlessAugmented(AGENT_NAMES), metavar="AGENT")
@click.argument("args", nargs=-1, type=click.UNPROCESSED, metavar="[-- AGENT ARGUMENTS]")
@click.option(
    "--augment",
    is_flag=True,
    is_eager=True,
    help=(
        "AGENT is any program on the OpenAI or Anthropic SDK, followed by its arguments. Its model gets your "
        "actions as tools. There is no sandbox."
    ),
)
@click.option(
    "--dry-run", is_flag=True, help="Print what a launch would do, without starting anything."
)
@click.option(
    "--sandbox",
    type=click.Choice(["on", "hosts", "offline"]),
    default="on",
    show_default=True,
    help="hosts: network access only to the agent's own hosts and those under [launch] in config.toml. "
    "offline: none except to Aileron and, through it, to the agent's models.",
)
@click.option(
    "--no-sandbox",
    is_flag=True,
    help="Run without a sandbox. The agent can then do whatever you can.",
)
@click.option(
    "--read",
    multiple=True,
    metavar="PATH",
    shell_complete=paths,
    help="Let the agent read PATH. Repeat the option for more.",
)
@click.option(
    "--write",
    multiple=True,
    metavar="PATH",
    shell_complete=paths,
    help="Let the agent write PATH. Refused for what your own programs run or obey.",
)
@click.option(
    "--hide",
    multiple=True,
    metavar="PATH",
    shell_complete=paths,
    help="Hide PATH from the agent, also in the project.",
)
@click.option(
    "--builtins/--no-builtins",
    default=None,
    help=(
        "Give the agent Aileron's own, gated Read, Write, Edit, Bash, Glob and Grep. --no-builtins: not "
        "even if the project asks for them."
    ),
)
@click.option(
    "--intercept-builtins",
    is_flag=True,
    help="Like --builtins, and switch off the agent's own tools, as far as it can do without them.",
)
@click.option("--no-gateway", is_flag=True, help="Do not send model traffic through Aileron.")
@click.option(
    "--allow-abstract-sockets",
    is_flag=True,
    help="Launch even if this kernel cannot keep the agent from abstract sockets.",
)
@click.option(
    "--accept-project",
    is_flag=True,
    help="Accept the project's launch settings (aileron.toml) without asking.",
)
@click.option(
    "--accept-missing-checks",
    is_flag=True,
    help="Launch without asking even if hooks that can block the agent's calls cannot run in the sandbox.",
)
@click.option(
    "--console", is_flag=True, help="Open a console in a new tmux pane if none is running."
)
@click.option(
    "--label", default="", help="The session's name in the console (default: the folder's name)."
)
@click.option(
    "--export-session",
    metavar="FOLDER",
    shell_complete=paths,
    help=(
        "Start nothing; copy the agent's newest conversation in this project to a new FOLDER. For "
        "another one, put part of its id after --."
    ),
)
@command_options
def launch(
    context: CommandContext,
    agent: str,
    args: tuple[str, ...],
    augment: bool,
    dry_run: bool,
    sandbox: Literal["on", "hosts", "offline"],
    no_sandbox: bool,
    read: tuple[str, ...],
    write: tuple[str, ...],
    hide: tuple[str, ...],
    builtins: bool | None,
    intercept_builtins: bool,
    no_gateway: bool,
    allow_abstract_sockets: bool,
    accept_project: bool,
    accept_missing_checks: bool,
    console: bool,
    label: str,
    export_session: str | None,
) -> int:
    """Start an AI agent in a sandbox, connected to the console.

    AGENT is codex, claude, opencode, goose, pi or gemini. The agent's settings in your home stay as they are.
    """
    from aileron_core.settings import LaunchPaths
    from aileron_tui.cli.launching import export_session as export
    from aileron_tui.cli.launching import launch_agent, launch_program

    if augment:
        _refuse_beside_augment()
        return launch_program(context, agent, args, console=console, label=label)
    if no_sandbox and (sandbox != "on" or read or write or hide):
        raise CliError(
            EXIT.USAGE,
            "--no-sandbox leaves nothing for --sandbox, --read, --write or --hide to do. Leave out one or the other.",
        )
    if intercept_builtins and builtins is False:
        raise CliError(
            EXIT.USAGE,
            "--no-builtins leaves nothing for --intercept-builtins to do. Leave out one.",
        )
    if export_session is not None:
        return export(context, agent, args, Path(export_session))
    return launch_agent(
        context,
        agent,
        args,
        sandbox="off" if no_sandbox else sandbox,
        gateway=not no_gateway,
        allow_abstract=allow_abstract_sockets,
        accept_project=accept_project,
        accept_missing_checks=accept_missing_checks,
        console=console,
        label=label,
        dry_run=dry_run,
        paths=LaunchPaths(read=read, write=write, hide=hide),
        builtins="instead" if intercept_builtins else _BUILTINS[builtins],
    )


def _refuse_beside_augment() -> None:
    """Refuse the options of `launch` that mean nothing with `--augment`.

    Raises:
        CliError: there is one.
    """
    given = click.get_current_context()
    kept = (
        "agent",
        "args",
        "augment",
        "no_sandbox",
        "console",
        "label",
        "home",
        "as_json",
        "no_color",
    )
    typed = [
        name
        for name in given.params
        if name not in kept
        and given.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE
    ]
    if typed:
        option = "--" + typed[0].replace("_", "-")
        raise CliError(EXIT.USAGE, f"{option} has no effect with --augment. Leave out one of them.")


@aileron.command()
@click.option("--model", required=True, metavar="MODEL", help="The model's name at its provider.")
@click.option(
    "--api",
    type=OneOf(["openai", "anthropic"]),
    metavar="API",
    help="openai (Chat Completions) or anthropic (Messages). Default: anthropic for a model that begins with claude, otherwise openai.",
)
@click.option(
    "--base-url",
    metavar="URL",
    help="Ask this server, such as http://127.0.0.1:11434/v1, instead of the provider.",
)
@click.option(
    "--key-variable",
    metavar="NAME",
    help="The environment variable with the key for --base-url. Without it no key is sent.",
)
@click.option(
    "--system",
    metavar="FILE",
    shell_complete=paths,
    help="A text file with the system prompt.",
)
@click.option(
    "--max-tokens",
    type=WholeNumber(1, 1_000_000),
    metavar="N",
    help="The most tokens of one answer (anthropic API only; default: 8192).",
)
@click.argument("prompt", required=False)
@command_options
def run(context: CommandContext, **options: Any) -> int:
    """Let a model use your actions as its tools, through the gate.

    With PROMPT, or a prompt on standard input, the model answers that. Without one, at a terminal, you
    have a conversation until Ctrl-D. Ctrl-C stops an answer and says what was called.

    The key is the one in the vault (`aileron gateway key set`), or that of OPENAI_API_KEY or
    ANTHROPIC_API_KEY.
    """
    from aileron_tui.cli.agent_run import RunOptions, run_agent

    return run_agent(context, RunOptions(**options))


@aileron.command()
@click.argument("file", default="aileron.toml", shell_complete=paths)
@command_options
def validate(context: CommandContext, file: str) -> int:
    """Check a project's aileron.toml. Print what a launch would refuse, and why.

    FILE is the project's aileron.toml (default: that of the current folder).
    """
    from aileron_tui.cli.check import validate_project

    return validate_project(context, Path(file))


@aileron.command("mcp-relay")
@click.option(
    "--zip",
    "file",
    required=True,
    metavar="FILE",
    shell_complete=paths,
    help="The file to write. It runs on Python 3.11 or newer.",
)
@command_options
def mcp_relay(context: CommandContext, file: str) -> int:
    """Write `aileron-mcp` as a single file, for use in a container.

    The file needs only Python's standard library. The agent starts it with python3 -I FILE.
    """
    from aileron_mcp.relay_copies import write_zipapp

    write_zipapp(Path(file))
    context.show({"file": file})
    context.say(f"Wrote {escape(file)}. An agent starts it with: python3 -I {escape(file)}")
    return EXIT.DONE


@aileron.command(short_help="Check the installed agents and this machine's sandbox.")
@click.argument(
    "agent",
    required=False,
    type=OneOf(AGENT_NAMES),
    metavar="[AGENT]",
)
@command_options
def doctor(context: CommandContext, agent: str | None) -> int:
    """Check which agents are installed and how well this machine can sandbox them.

    With AGENT, also show what Aileron controls in it and what it does not. Changes nothing. The exit code is 1
    if something is broken.
    """
    from aileron_tui.cli.doctor import show_doctor

    return show_doctor(context, agent)


@aileron.command()
@command_options
def status(context: CommandContext) -> int:
    """Show whether a console is running and which calls are waiting."""
    from aileron_tui.cli.status import show_status

    return show_status(context)


@aileron.command()
@limit_option("lines", least=0)
@click.option("-f", "--follow", is_flag=True, help="Keep printing new lines until Ctrl-C.")
@command_options
def logs(context: CommandContext, limit: int, follow: bool) -> int:
    """Print Aileron's own log. It contains no arguments, previews or secrets.

    --json prints one object; --json --follow prints one object per line.
    """
    from aileron_tui.cli.logfile import show_logs

    return show_logs(context, limit, follow=follow)


@aileron.command()
@command_options
def version(context: CommandContext) -> int:
    """Print the version."""
    context.show({"version": __version__})
    context.say(f"aileron {__version__}")
    return EXIT.DONE


@aileron.command()
@click.argument("shell", type=OneOf(["bash", "zsh", "fish"]), metavar="SHELL")
@command_options
def completion(context: CommandContext, shell: str) -> int:
    """Print the completion script for your shell.

    \b
    bash: eval "$(aileron completion bash)"     in ~/.bashrc
    zsh:  eval "$(aileron completion zsh)"      in ~/.zshrc, after compinit
    fish: aileron completion fish > ~/.config/fish/completions/aileron.fish
    """  # noqa: D301 - click takes this very character for "leave the lines as they are"
    from click.shell_completion import get_completion_class

    of_shell = get_completion_class(shell)
    assert of_shell is not None
    script = of_shell(aileron, {}, "aileron", "_AILERON_COMPLETE").source()
    context.show({"shell": shell, "script": script})
    context.say(script)
    return EXIT.DONE


for _group in (
    subcommands.action,
    subcommands.connector,
    subcommands.audit,
    subcommands.vault,
    binding_commands.binding,
    binding_commands.gateway,
    subcommands.open_,
):
    aileron.add_command(_group)
add_examples(aileron)
