"""`aileron-mcp`: relays MCP between an agent's stdin and stdout and the console's `/mcp`.

Usage: aileron-mcp [--home DIR | --help | --version]. DIR is Aileron's home, instead of AILERON_HOME:
many agents pass only a few variables on.

It forwards what the client sends, keeps no state except the session of older MCP clients (versions
2025-03-26 to 2025-11-25), and reconnects when the console restarts.

Environment variables:
    AILERON_HOME            Aileron's home (default: ~/.aileron). The relay connects to its
                            run/console.sock, if the kernel confirms that the process there holds
                            the home's lock.
    AILERON_URL=unix:PATH   The socket of a contained session, mounted into its sandbox.
    AILERON_URL=https://HOST:PORT
                            Used only if the home has neither lock nor socket. Needs
                            AILERON_CERT_SHA256, the SHA-256 of the console's certificate.
    AILERON_URL=http://127.0.0.1:PORT
                            Likewise. The console proves by HMAC that it knows the token.
    AILERON_TOKEN, AILERON_TOKEN_FILE
                            The session's token, or a file that contains it. Without them, the relay
                            opens its own session and ends it when it exits.
    AILERON_AGENT           The name of that session (default: what the client calls itself, else its program).
    AILERON_WAIT_SECONDS    How long to wait for a missing console, 0 to 300 (default: 30).

No token and no call is sent before the console has been verified in one of these ways.

Exit codes: 0 stdin closed or SIGTERM, 2 wrong usage, 69 no console, 70 internal error, 130 SIGINT.
"""

# An agent waits for the relay when it starts, so this package imports only the standard library and
# the check of a home's owner: an MCP server on the official package needs over a second to import.
