"""What the workers' results look like to an agent, as text, and to a person, as fields of a preview. Pure."""

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from aileron_core.canonical import Json, JsonObject

_GIT_OBJECT = re.compile(r"(?:^|/)\.git/objects/[0-9a-f]{2}(?:/[0-9a-f]{38}|/[0-9a-f]{62})?\Z")


def agent_text(op: str, result: Mapping[str, Any]) -> str:
    """Return what an agent is told of an op that was done."""
    match op:
        case "read":
            return _read_text(result)
        case "glob":
            paths: list[str] = result.get("paths", [])
            more = "\n(More files match; only the newest are listed. Use a narrower pattern.)"
            text = "\n".join(paths) or "No file matches."
            return f"{text}{more if result.get('truncated') else ''}"
        case "grep":
            text = result.get("text") or "Nothing matches."
            cut = "\n(More matches were left out. Use a narrower pattern or head_limit.)"
            return f"{text}{cut if result.get('truncated') else ''}"
        case "bash":
            return _command_text(result)
        case _:
            path, size = result.get("path"), result.get("bytes", 0)
            done = "Created" if result.get("created") else "Wrote"
            return f"{done} {path} ({size:,} bytes)."


def _read_text(result: Mapping[str, Any]) -> str:
    if "text" not in result:
        return f"{result.get('path')} is not text: {_summary(result)}."
    text: str = result["text"]
    if not result.get("lines"):
        return f"{result.get('path')} is empty."
    if result.get("truncated"):
        text += f"\n(The file has {result['lines']:,} lines. Use offset and limit to read others.)"
    return text


def _command_text(result: Mapping[str, Any]) -> str:
    parts = [str(result.get("stdout", "")).rstrip("\n")]
    if errors := str(result.get("stderr", "")).rstrip("\n"):
        parts.append(errors)
    if result.get("timed_out"):
        parts.append(
            f"The command was ended after {result.get('duration_ms', 0) / 1000:.0f} s, its time limit."
        )
    elif result.get("signal"):
        parts.append(f"The command was ended by signal {result['signal']}.")
    elif result.get("exit_code"):
        parts.append(f"Exit code {result['exit_code']}.")
    return "\n".join(part for part in parts if part) or "The command printed nothing. Exit code 0."


def file_preview(found: Mapping[str, Any]) -> Json:
    """Return the preview of a change of a file, as its action's `render` names the fields."""
    binary: Mapping[str, Any] | None = found.get("binary")
    change = f"{'changes' if found.get('exists') else 'creates'} the file"
    preview: dict[str, Json] = {"file": found.get("path"), "base": found.get("base")}
    if binary is None:
        added, removed = found.get("added", 0), found.get("removed", 0)
        return {
            **preview,
            "change": f"{change}: +{added} −{removed} lines",
            "diff": found.get("diff", ""),
        }
    preview |= {"change": change, "after": _summary(binary)}
    if before := binary.get("before"):
        preview["before"] = _summary(before)
    return preview


def _summary(found: Mapping[str, Any]) -> str:
    return f"{found.get('type')}, {found.get('bytes', 0):,} bytes, SHA-256 {found.get('sha256')}"


def place_preview(found: Mapping[str, Any]) -> Json:
    """Return what a call that reads is about, as its action's `render` names the fields."""
    kind = {"file": "a file", "folder": "a folder", None: "nothing that can be seen"}
    where = "outside the project" if found.get("outside") else "in the project"
    what = kind.get(found.get("kind"), "a device, a pipe or a socket")
    return {"path": found.get("path") or found.get("target"), "kind": f"{what} {where}"}


def command_preview(
    args: JsonObject, words: Mapping[str, Any], rehearsed: Mapping[str, Any]
) -> Json:
    """Return the preview of a command, as its action's `render` names the fields.

    Args:
        rehearsed: what the command did on overlays, or why it was not rehearsed as `fallback`.
    """
    named: list[list[str]] = words.get("words", [])
    preview: dict[str, Json] = {
        "command": args["command"],
        "folder": "the project",
    }
    if named:
        preview["words"] = [f"{word}: {what}" for word, what in named]
    if why := rehearsed.get("fallback"):
        preview["rehearsal"] = f"Not rehearsed. {why}"
        return preview
    preview["rehearsal"] = _ended(rehearsed)
    printed, errors = (str(rehearsed.get(each, "")) for each in ("stdout", "stderr"))
    between = "\n" if errors and printed and not printed.endswith("\n") else ""
    if output := f"{printed}{between}{errors}":
        preview["output"] = output
    return {**preview, **rehearsed_changes(rehearsed, _own_changes(rehearsed))}


def rehearsed_changes(rehearsed: Mapping[str, Any], others: Sequence[str] = ()) -> dict[str, Json]:
    """Return each path that a rehearsal changed, with *others*, and the difference of the texts among them."""
    changes: list[Mapping[str, Any]] = rehearsed.get("changes", [])
    shown: dict[str, Json] = {"changes": [*_changes(changes), *others] or ["none"]}
    if diff := rehearsed.get("diff"):
        shown["diff"] = diff
    return shown


def _changes(changes: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield each change, but one line for what git stores under the hash of its content, which says nothing alone."""
    stored: list[str] = []
    for change in changes:
        is_object = _GIT_OBJECT.search(str(change.get("path"))) and change.get("kind") == "made"
        if is_object and any(change.get(each) for each in ("binary", "folder", "git")):
            stored.append(_change(change))
        else:
            yield _change(change)
    if stored:
        digest = hashlib.sha256("\n".join(stored).encode("utf-8", "backslashreplace")).hexdigest()
        yield f"made {len(stored):,} files and folders of git's objects; SHA-256 of their list {digest}"


def _change(change: Mapping[str, Any]) -> str:
    """Return all that is known of a change but the lines of its diff: a yes keeps exactly what is said here."""
    parts = [f"{change.get('kind')} {change.get('path')}"]
    for name, what in (("target", "leads to"), ("previous_target", "led to")):
        if value := change.get(name):
            parts.append(f"{what} {value}")
    if mode := change.get("mode"):
        previous = change.get("previous_mode")
        parts.append(f"mode {mode}{f', was {previous}' if previous else ''}")
    for name, what in (("binary", ""), ("previous_binary", "was ")):
        if binary := change.get(name):
            parts.append(f"{what}{binary.get('type')}, {binary.get('bytes'):,} bytes")
            if digest := binary.get("sha256"):
                parts.append(f"SHA-256 {digest}")
    return "; ".join(parts)


def _own_changes(rehearsed: Mapping[str, Any]) -> list[str]:
    """Return what the command leaves in the home and /tmp of the tools, which later commands find there."""
    named: list[str] = rehearsed.get("own_paths", [])
    more = rehearsed.get("own_changes", 0) - len(named)
    rest = [f"and {more:,} more in the tools' own folders"] if more > 0 else []
    return [*(f"outside the project: {each}" for each in named), *rest]


def _ended(result: Mapping[str, Any]) -> str:
    how = f"exit code {result.get('exit_code')}"
    if result.get("signal"):
        how = f"ended by signal {result['signal']}"
    return f"{how}. Approving keeps exactly these changes; the command does not run again."
