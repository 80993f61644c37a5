"""`aileron-mcp`: what an agent starts; stdio JSON-RPC on one side, the console's `/mcp` on the other.

An agent waits for it at its start, so it imports the standard library alone, and of Aileron the check
of a home's owner: an MCP server on the official package needs over a second to import. It forwards
what the client sends, in either protocol era ("old" 2025-03-26 to 2025-11-25, "new" 2026-07-28),
holds no state but the old era's session, and carries the agent over a restart of the console.

Where the console is, and why it is believed before a byte is sent to it:
    AILERON_URL=unix:PATH   a contained session's own socket; it was bound into the sandbox
    AILERON_HOME            (or ~/.aileron) `run/console.sock`, if the kernel says that the process
                            behind it is the one that holds the home's lock
    AILERON_URL=https://... only where the home has neither lock nor socket; AILERON_CERT_SHA256 is
                            the certificate's SHA-256
    AILERON_URL=http://127.0.0.1:PORT
                            likewise; the console proves that it knows the token, by HMAC
Whose session it is: AILERON_TOKEN, or the content of AILERON_TOKEN_FILE, or one that the relay opens
for itself (its name: AILERON_AGENT, else the parent's program) and ends when it ends.
AILERON_WAIT_SECONDS (0 to 300, default 30): how long to look for an absent console.

Exit codes: 0 stdin ended or SIGTERM, 2 usage, 69 no console, 70 a bug, 130 SIGINT.
"""
