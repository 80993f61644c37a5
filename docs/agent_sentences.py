"""What the pages of docs/agents say of each agent that no command prints."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Sentences:
    """What of its own tools `--intercept-builtins` switches off, and what stays; when its model traffic passes the gateway, and when not."""

    own_tools: tuple[str, ...]
    passes_gateway: str
    bypasses_gateway: str


SENTENCES = {
    "codex": Sentences(
        own_tools=(
            "Its shell, view_image and its tools for images, browsers and other programs are off, for its sub-agents too, whatever their roles say.",
            "apply_patch stays with gpt-5.5 and newer models, and models in code mode call it from their programs. Codex's own sandbox is read-only, so `codex exec` refuses each patch; a terminal session asks you in Codex, and a patch that you allow there is not gated.",
            "These stay as well: sub-agents (which have Aileron's tools), goals, questions, the resources of MCP servers, and its web search. A program of code mode has no files and no network but through tools.",
            "Aileron's tools are offered by name to each model from the start, without a search and outside code mode.",
            "`--sandbox`, `-c`, `--enable` and a managed_config.toml count over this, and the launch says so. Commands that you type with `!`, hooks and MCP servers of your own run outside the gate.",
        ),
        passes_gateway="With an OpenAI API key, its model traffic goes through the gateway.",
        bypasses_gateway="With a ChatGPT account or another provider, its model traffic bypasses the gateway.",
    ),
    "claude": Sentences(
        own_tools=(
            "Its tools for files and commands are off, for its sub-agents and for commands in skills too. `--tools`, your settings and the project's cannot bring them back.",
            "These stay: sub-agents (which have Aileron's tools), skills, to-do lists, plans and questions, and WebFetch and WebSearch, which reach the network and no file.",
            "Commands that you type with `!`, hooks and MCP servers of your own run outside the gate.",
        ),
        passes_gateway="Its model traffic goes through the gateway, with an Anthropic API key or account.",
        bypasses_gateway="With your own base URL, Bedrock, Vertex or Foundry, its model traffic bypasses the gateway.",
    ),
    "opencode": Sentences(
        own_tools=(
            "Its tools for files and commands are off, for each of its agents: bash, edit, write, patch, read, glob, grep, list and lsp. A plugin of Aileron's sees to it, whatever your configuration and the project's say.",
            "These stay: sub-agents (which have Aileron's tools), skills, to-do lists and questions, and webfetch and websearch, which reach the network and no file.",
            "Commands that you type with `!`, commands and language servers that your configuration names, plugins and MCP servers of your own run outside the gate.",
        ),
        passes_gateway="With an API key, traffic to models of Anthropic, OpenAI and Google goes through the gateway.",
        bypasses_gateway="With an account, another provider or a base URL of your own, traffic bypasses the gateway.",
    ),
    "goose": Sentences(
        own_tools=(
            "Its extensions that act on files or run commands are off: developer, analyze, summon, apps, the extension manager and its other built-in ones. Your extensions that are programs of their own or servers stay.",
            "These stay: the to-do list, skills, earlier conversations, and what top of mind adds to each turn.",
            "Sub-agents and recipes within a session are off with summon, since a recipe may bring its own extensions. `--with-builtin`, `--recipe` and `--resume` bring tools back, and the launch says so.",
        ),
        passes_gateway="Traffic to models of Anthropic, OpenAI and Google goes through the gateway.",
        bypasses_gateway="Traffic to other providers, or to a host of your own, bypasses the gateway.",
    ),
    "pi": Sentences(
        own_tools=(
            "All of its own tools are off: read, bash, edit, write, grep, find and ls. Aileron's extension takes them away again whoever adds them, and refuses a call to one.",
            "A tool of an extension of yours by one of these names is refused alike. Your extensions, and the commands that you type with `!`, run outside the gate.",
        ),
        passes_gateway="Traffic to models of Anthropic, OpenAI and Google goes through the gateway.",
        bypasses_gateway="Traffic to other providers, or to a base URL of your own, bypasses the gateway.",
    ),
    "gemini": Sentences(
        own_tools=(
            "Its tools for files and commands are denied by Aileron's policy, for its sub-agents and in every approval mode; only a policy of your system's, or one that you pass with `--admin-policy`, counts over it.",
            "These stay: sub-agents (which have Aileron's tools), skills, plans and to-do lists, and web_fetch and google_web_search, which reach the network.",
            "Commands that you type with `!`, files that you name with `@`, hooks, MCP servers and `tools.discoveryCommand` of your own run outside the gate.",
        ),
        passes_gateway="With an API key, its model traffic goes through the gateway.",
        bypasses_gateway="With a Google account, Vertex AI or a proxy, its model traffic bypasses the gateway.",
    ),
}
