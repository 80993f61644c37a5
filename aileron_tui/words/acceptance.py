"""The words of what a file allows, and of how it differs from what was accepted before it."""

from collections.abc import Mapping
from typing import Final

from aileron_core.console_port.file_views import ChangeDirection, ChangeKind

ALLOWS: Final = "ALLOWS"
WIDER: Final = "ALLOWS MORE"
CHANGED: Final = "WHAT CHANGED"
OTHERWISE: Final = "ALSO DIFFERENT"
DIFFERENCE: Final = "DIFFERENCE"
CONTENT: Final = "CONTENT"
NOTHING_WIDER: Final = "Aileron found nothing that allows more. Read the difference."
ONLY_RENUMBERED: Final = "only its version, its source and its connector's hash differ"
SAME_CODE: Final = "the same as before"
NOT_KEPT: Final = (
    "The text accepted before was not kept, so no difference can be shown. Read the whole file."
)
NOT_COMPARED: Final = (
    "This version of Aileron cannot read what was accepted before. Read the difference."
)
ASKS_NO_MORE: Final = "accepted before; it now asks for nothing"
ALLOWS_MORE: Final = "allows more than before: "
SIGNS: Final = "− accepted before, + offered now"
WHOLE_FILE: Final = "the whole file, as it is on disk"
WHOLE_KEPT: Final = "what you accepted; its file on disk differs"
WHOLE_MANIFEST: Final = "the whole manifest, as installed"
WHOLE_SERVER: Final = "its manifest, and each tool as the server describes it"
WHOLE_FILES: Final = "each file in full"
ASKED_NOTHING: Final = "none"
NOT_SET: Final = "not set"
ALL_ARGUMENTS: Final = "all arguments of the call"

_Words = tuple[str, str, str]
"""For what allows more, is merely different, or allows less."""

_CHANGES: Final[Mapping[ChangeKind, _Words]] = {
    "asks_no_more": ("no longer asks you", "", "now asks you before each run"),
    "setting": ("setting", "setting", "setting"),
    "rule_opens": ("+ allows, with any other arguments:", "", "− allows, with any:"),
    "rule_allows": ("+ allows", "", "− allows"),
    "rule_asks": ("− asks you about", "", "+ asks you about"),
    "rule_denies": ("− denies", "", "+ denies"),
    "secret_except": ("+ not secret:", "", "− not secret:"),
    "ops": ("+ op", "", "− op"),
    "hosts": ("+ host", "", "− host"),
    "effect": ("different effect:", "effect:", "effect:"),
    "declared_read": ("now declared read-only", "", "no longer declared read-only"),
    "connectors": ("+ connector", "", "− connector"),
    "program": ("starts something else:", "", ""),
    "tools": ("+ tool", "", "− tool"),
    "files_write": ("+ writes", "", "− writes"),
    "files_read": ("+ reads", "", "− reads"),
    "secrets": ("+ secret", "", "− secret"),
    "environment": ("variable", "", ""),
    "credential": ("asks for a different credential:", "", "no longer asks for a credential:"),
    "credential_part": ("credential,", "", "credential,"),
    "scopes": ("+ scope", "", "− scope"),
    "imports": ("+ host function", "", "− host function"),
    "no_grants": ("can be granted, so that you are not asked", "", "can no longer be granted"),
    "reach": ("a grant may keep only these fields:", "", "no grant keeps only these fields:"),
    "preview": ("no longer shows you a preview", "", "now shows you a preview"),
    "preview_op": ("uses a different op for the preview:", "", ""),
    "preview_args": ("uses different arguments for the preview:", "", ""),
    "shown_fields": ("no longer shows you", "", "+ shows you"),
    "shown_from": ("shows you a different value as", "", ""),
    "before_after": ("shows differently what it changes:", "", "now shows you what it changes:"),
    "idempotent": ("may repeat a step without asking:", "", "no longer repeats a step:"),
    "arguments": ("+ argument", "", "− argument"),
    "argument_optional": ("argument no longer required:", "", "argument now required:"),
    "argument_type": ("takes different values:", "", "takes fewer values:"),
    "wall_seconds": ("may run longer, seconds:", "", "must end sooner, seconds:"),
    "memory_mib": ("may use more memory, MiB:", "", "may use less memory, MiB:"),
    "project_args": ("+ option for the agent", "", "− option for the agent"),
    "project_env": ("+ variable", "", "− variable"),
    "project_settings": ("+ setting of the agent", "", "− setting of the agent"),
    "step_inputs": ("", "sends different inputs:", ""),
    "steps": ("runs more steps:", "runs different steps:", ""),
    "connector_bytes": ("", "a different build of", ""),
    "version": ("", "version", ""),
    "default_idempotency": ("", "idempotent by default:", ""),
    "module": ("", "different code:", ""),
    "text": ("", "different text:", ""),
}
_DIRECTIONS: Final[Mapping[ChangeDirection, int]] = {"wider": 0, "other": 1, "narrower": 2}


def change(kind: ChangeKind, direction: ChangeDirection) -> str:
    """Return the start of the sentence on one difference; what it is about follows."""
    return _CHANGES[kind][_DIRECTIONS[direction]]


def than_accepted(day: str, time: str) -> str:
    return f"than the version accepted on {day} at {time}"


def since_accepted(day: str, time: str) -> str:
    return f"since it was accepted on {day} at {time}"


def and_others(count: int) -> str:
    """Return how many more differences there are than the one that is named."""
    return f", and {count} more" if count else ""


def renumbered(versions: str, files: int) -> str:
    """Return that nothing else differs in so many *files*; *versions*: each change of one."""
    which = "1 file" if files == 1 else f"{files} files"
    return f"{versions}, with source and connector's hash: nothing else differs in {which}"


def line_number(number: int) -> str:
    return f"line {number}"


def more_in_suite(count: int) -> str:
    return "1 file" if count == 1 else f"{count} files"
