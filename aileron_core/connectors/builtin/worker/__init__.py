"""The programs that do a session's file operations and run its commands, each in a sandbox of its own.

A copy of this folder, and of the few modules of the core that it imports, is run there by `python -I`, so
all of them import the standard library and each other only.
"""

NEEDED = (
    "aileron_core",
    "aileron_core.connectors",
    "aileron_core.connectors.builtin",
    "aileron_core.containment",
    "aileron_core.containment.linux_syscalls",
    "aileron_core.containment.safe_paths",
    "aileron_core.path_patterns",
)
"""The modules of the core that such a copy has besides this folder, and the packages around them."""
