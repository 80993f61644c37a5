"""The words of files that a person accepts, one or several together: what they allow, what differs, their problems."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final, Literal

from aileron_core.console_port.file_views import ChangeDirection, ChangeKind, ServerView

FILE_EFFECT: Final = "FILE"
FILE_SECTION: Final = "THE FILE"
PROBLEM_TITLE: Final = "A file has a problem"
THEN_GATED: Final = "agents can request it; you approve every run"
THEN_FREE: Final = "▲ agents can run it at any time without asking you"
READ_SECTION: Final = "THE REQUEST"
ACCEPT_READ: Final = "Let this connector send POST requests in previews?"
READ_WHY: Final = "a preview tried this and was refused"
READ_ROW: Final = "by POST: "
THEN_GRAPHQL: Final = (
    "its previews may send GraphQL by POST; Aileron checks that each request is a single query"
)
THEN_AWS: Final = "its previews may call exactly this AWS operation by POST; Aileron cannot check that it only reads"
WARN_READS_UNCHECKED: Final = (
    "its preview sends POST requests; Aileron cannot check that they only read"
)
WARN_READS_UNSEEN: Final = (
    "its preview sends POST requests, accepted without review (--accept-installed)"
)
THEN_SETTINGS: Final = "these settings are used, and calls go on"
ACCEPT_SETTINGS: Final = "Accept these settings?"
THEN_POLICY: Final = "▲ calls that these rules allow run without asking you"
ACCEPT_POLICY: Final = "Accept these rules?"
THEN_CONNECTOR: Final = "your actions can use it; it can reach only these hosts"
THEN_SERVER: Final = "your agents get these tools; it is started when the first of them is called"
TOOL_WORDS: Final[Mapping[str, tuple[str, Literal["attn", "fact", "muted"]]]] = MappingProxyType(
    {
        "run": ("Run unasked", "attn"),
        "ask": ("Ask you", "fact"),
        "look": ("For previews", "fact"),
        "off": ("Off", "muted"),
    }
)
THEN_PUBLISHER: Final = (
    "what this key signed can be added and accepted, and nothing that another key signed"
)
KEY_SECTION: Final = "THE KEY"
KEY_WHY: Final = "a release is signed with it instead of the accepted one; the command installed nothing of that release"
KEY_QUESTION: Final = "Accept another key of this publisher?"
FIRST_KEY: Final = "seen for the first time: compare it with the one that the publisher shows"
ACCEPTED_KEY: Final = "the key that you accepted"
KEY_BEFORE: Final = "Accepted key"
"""The label of the key that counts, beside another one."""
NO_KEY: Final = "none"
KEY_VOUCHED: Final = "the accepted key signed the new one"
WARN_KEY: Final = (
    "the accepted key did not sign the new one: ask the publisher before you accept it"
)
WARN_FREE: Final = "runs without asking you"
CONNECTOR_SECTION: Final = "THE CONNECTOR"
ADDED_TOGETHER: Final = "added together"
BY_ONE_ADD: Final = " with one command"
CANNOT_RUN: Final = "cannot run as it is"
CHANGED_SINCE: Final = "differs from what you accepted"
LOOK_FIRST: Final = "REVIEW THESE FIRST"
SUITE_GATED: Final = "ASK YOU BEFORE EACH RUN"
SUITE_READS: Final = "RUN WITHOUT ASKING YOU, DECLARED READ-ONLY"
SUITE_FILES: Final = "THE FILES"
DIGEST_REMARK: Final = "SHA-256 of what sha256sum prints for these files"
OUTCOMES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "accepted": "accepted",
        "removed": "removed",
        "changed": "changed: see below",
        "solved": "no longer a problem",
    }
)
"""What became of a file or problem whose row is over."""
CHANGED_NOW: Final = "changed just now"
NO_HOSTS: Final = "unknown: their connectors are not installed"


def run_time(seconds: int, usual: int, argument: str) -> str:
    """Return what accepting a file allows beyond the usual time; *argument*: where a call says how long."""
    return f"▲ it may run up to {seconds} s instead of {usual} s; {_who_names(argument)}"


def run_time_missing(seconds: int, usual: int, argument: str) -> str:
    """Return that an accepted file names more time than it has."""
    return (
        f"it may run up to {usual} s; it needs up to {seconds} s ({_who_names(argument)}): "
        "withdraw the acceptance, then accept the file again"
    )


def run_time_given(seconds: int) -> str:
    return f"it may run up to {seconds} s"


def _who_names(argument: str) -> str:
    if not argument:
        return "its connector names that time"
    return f"each call says how long, in {argument}"


def suite_run_time(seconds: int) -> str:
    """Return a file's remark in a suite."""
    return f"may run up to {seconds} s"


def known_key(names: str) -> str:
    """Return that a key seen for the first time is known of other publishers."""
    return f"the key that you accepted for {names}"


def warn_resembles(name: str, accepted: str) -> str:
    return f"the name {name} resembles {accepted}, which you accepted"


def warn_refused(name: str, *, signed: bool) -> str:
    """Return why a file of the publisher *name* cannot be accepted."""
    how = "is signed with another key than the one" if signed else "is not signed with the key"
    return f"cannot be accepted: it {how} that you accepted for {name}"


def warn_unsigned(name: str = "", count: int = 1, total: int = 0) -> str:
    """Return that a file, or *count* of *total*, is not signed; *name*: its publisher, if a key of that is accepted."""
    is_, it = ("is", "it") if count == 1 else ("are", "them")
    of = f"{of_all(count, total)} " if total else ""
    said = f", though you accepted a key for {name}" if name else f": nobody vouches for {it}"
    return f"{of}{is_} not signed{said}"


def warn_earlier_key(name: str) -> str:
    """Return what is to be known of an accepted file that another key than the accepted one of *name* signed."""
    return f"signed with an earlier key of {name}"


def warn_other_key(name: str) -> str:
    """Return what is to be known of a first key whose owner has *name*, too, with another key."""
    return f"you accepted another key for {name}"


def accepted(name: str) -> str:
    return f"✓ Accepted: {name}."


def asked_again(calls: int) -> str:
    """Return, to stand behind what a key accepts, what becomes of *calls*, which wait under what counts now."""
    if not calls:
        return ""
    return f" {calls} waiting {'call' if calls == 1 else 'calls'} then must be made again."


def accept(key: str, kind: str, name: str) -> str:
    """Return what the accept key would do."""
    if kind == "preview":
        return f"{key} lets previews send this POST: {name}."
    if kind == "publisher":
        return (
            f"{key} accepts this key of {name} in place of the other. Then add the release again."
        )
    what = f"the rules of {name}" if kind == "policy" else f"the {kind} {name}"
    return f"{key} accepts {what}, exactly as {'they are' if kind == 'policy' else 'it is'}."


def then_unchecked(op: str, place: str) -> str:
    """Return what follows from accepting the unchecked requests of an op to a host and path."""
    return f"{op} reads by POST to {place}; Aileron cannot check that it only reads"


def problem_why(severity: str) -> str:
    if severity == "warning":
        return "it works, but read this warning"
    return "this file cannot be used until it is fixed"


def why_not_accepted(kind: str, why: str, *, is_update: bool = False) -> str:
    """Return why a file does not count; *is_update*: what was accepted of that name does."""
    if kind == "preview":
        return "A preview tried to send this POST request. It was refused, because you have not accepted it."
    if kind == "settings":
        return "It is not what you accepted. Until you accept it, or put it back and restart, every call waits."
    if kind == "policy":
        return "Until you accept it, it only restricts: what it denies is denied, and nothing that it allows counts."
    if is_update:
        return f"Another version of this {kind}. What you accepted before counts until you accept this."
    rule = "Agents can't use it until you accept it"
    if why == "changed":
        return f"This {kind} changed on disk after it was accepted. {rule} again."
    return f"New {kind}. {rule}."


def actions(count: int) -> str:
    return "1 action" if count == 1 else f"{count} actions"


def accounts_go_along(versions: str) -> str:
    return f"the accounts of version {versions} go along"


def suite_question(count: int, connectors: int = 0) -> str:
    return f"Accept {_with_connectors(count, connectors)}?"


def _with_connectors(count: int, connectors: int) -> str:
    these = f"these {count} actions" if count > 1 else "this action"
    if not connectors:
        return these
    return (
        f"{'this connector' if connectors == 1 else f'these {connectors} connectors'} and {these}"
    )


def of_all(count: int, total: int) -> str:
    """Return how many of the files stand below."""
    return f"{count} of {total}"


def first_in_row(count: int) -> str:
    """Return how many of them a person should look at first, for a row of the list."""
    return f"{count} to review first"


def suite_warning(count: int) -> str:
    """Return the warning of the head."""
    runs = "runs" if count == 1 else "run"
    are = "is not declared read-only" if count == 1 else "are not declared read-only"
    return f"{count} {runs} without asking you and {are}"


def accept_suite(
    all_key: str, rest_key: str, total: int, left_out: int, connectors: int = 0
) -> str:
    """Return what the keys would do; *left_out*: how many *rest_key* leaves out."""
    every = _with_connectors(total, connectors) if connectors else f"all {total}"
    text = f"{all_key} accepts {every}, exactly as they are"
    if not left_out:
        return f"{text}."
    these = "the 1 listed first" if left_out == 1 else f"the {left_out} listed first"
    return f"{text}; {rest_key} accepts all but {these}."


def suite_accepted(count: int, connectors: int = 0) -> str:
    of_connectors = ["1 connector" if connectors == 1 else f"{connectors} connectors"]
    counts = [
        *of_connectors[: bool(connectors)],
        f"{count} {'action' if count == 1 else 'actions'}",
    ]
    return f"✓ Accepted: {' and '.join(counts)}."


def acceptance_withdrawn(kind: str, name: str) -> str:
    if kind == "preview":
        return f"✓ Acceptance withdrawn: {name}. Previews can no longer send this POST."
    if kind == "publisher":
        return f"✓ Acceptance withdrawn: {name}. Its next key counts as seen for the first time."
    return f"✓ Acceptance withdrawn: {name}. Agents can no longer see it."


def withdraws_acceptance(key: str, kind: str, name: str) -> str:
    if kind == "preview":
        return f"{key} withdraws it: previews can no longer send this POST: {name}."
    if kind == "publisher":
        return f"{key} withdraws it: the next key of {name} counts as seen for the first time."
    return f"{key} withdraws acceptance: agents can no longer see {name}."


PAST: Final = "Past"


def denied(reason: str) -> str:
    return f'  you denied: "{reason}"' if reason else "  you denied"


SHOWN_ARGUMENT: Final = (
    "A secret in an argument can be read by every user of this machine while the server runs."
)


def server_remarks(server: ServerView, *, has_hosts: bool) -> Iterator[str]:
    """Yield what a person should know of an MCP server before they accept it."""
    reads = {"run", "look"} & server.tools.keys()
    if reads:
        yield "That a tool only reads is its author's claim. A tool that runs unasked cannot write the listed files."
    if reads and has_hosts:
        yield "Aileron does not check what it sends to its hosts. That such a tool only reads is the server's claim."
    if server.secrets:
        yield "The server itself holds the secrets, and can send them to its hosts."
    if "${secret." in server.program:
        yield SHOWN_ARGUMENT
    if server.is_rehearsed:
        yield "Its changes are rehearsed and shown before you decide."
    if server.is_remote:
        yield "It runs elsewhere: what it does behind these descriptions can change, and nobody here sees it."
    shared = "session there" if server.is_remote else "process"
    yield f"All sessions share one {shared}, so one may see what another left in its memory."


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
