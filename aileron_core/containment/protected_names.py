"""Names in a project through which an agent reaches the person's own tools; standard library alone."""

PROTECTED_NAMES = (
    "aileron.toml", ".mcp.json", ".claude", ".codex", ".gemini", ".pi",
    "opencode.json", "opencode.jsonc", ".opencode", ".envrc", ".vscode", ".idea",
    # Agents, editors, shells and other version control: what runs when a person opens or enters the
    # folder and is asked nothing, or was asked once for another content.
    ".cursor", ".windsurf", ".kiro", ".continue", ".roo", ".amazonq", ".qwen", ".aider.conf.yml",
    "crush.json", ".crush.json", ".zed", ".fleet", ".helix", ".devcontainer", ".devcontainer.json",
    ".vimrc", ".gvimrc", ".exrc", ".nvimrc", ".nvim.lua", ".dir-locals.el", ".dir-locals-2.el",
    ".Rprofile", "mise.toml", ".mise.toml", "mise.local.toml", ".mise.local.toml", ".mise",
    ".tool-versions", ".hg", ".jj",
)  # fmt: skip
