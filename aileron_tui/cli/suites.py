"""`aileron suite check|pack|sign|verify`: a connector and its actions, as their publisher releases them."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from aileron_core.actions.catalog import read_plain
from aileron_core.connectors.manifest import parse_manifest
from aileron_core.errors import FileProblems, Problem
from aileron_core.releases.rules import suite_problems
from aileron_core.releases.signing import (
    publisher_of,
    read_private_key,
    sign_sums,
    verify_sums,
)
from aileron_core.releases.suite import (
    SIGNATURE_FILE,
    SUMS_FILE,
    Release,
    archive_of,
    bound_for_check,
    pack,
    portable_archives,
    portable_problems,
    read_suite,
)
from aileron_core.text import escape
from aileron_core.vault.atomic_file import replace_file
from aileron_tui.cli.output import EXIT, CliError, CommandContext, say_connector

_MAX_KEY = 64 * 1024


def check_suite(context: CommandContext, path: str) -> int:
    """Print everything that keeps the suite in *path* from being published; return 1 if anything does."""
    suite = read_suite(Path(path))
    if SUMS_FILE not in suite.files:
        suite = bound_for_check(suite)
    problems = suite_problems(suite, tries_ops=True)
    failed = _errors(problems)
    context.show(
        {**_body(suite), "ok": not failed, "problems": [each.to_json() for each in problems]}
    )
    _say_problems(context, problems)
    if not failed:
        say_connector(context, f"✓ {_counted(suite)}", _body(suite))
    return EXIT.FAILED if failed else EXIT.DONE


def pack_suite(
    context: CommandContext, path: str, version: str, output: str, key: str, *, portable: bool
) -> int:
    """Write the archive of the suite in *path*, unless it breaks a rule.

    With *portable*, also write those that the original project reads, signed with *key*, to a folder beside it.
    """
    if portable != bool(key):
        raise CliError(
            EXIT.USAGE, "Give --portable and --key FILE together: those archives are signed."
        )
    suite = pack(read_suite(Path(path)), version)
    _require(suite)
    files = {Path(output): archive_of(suite)}
    folder = Path(output).parent / "portable"
    if portable:
        if problems := list(portable_problems(suite)):
            raise FileProblems(problems)
        archives = portable_archives(suite, version, read_private_key(_read(Path(key)), key))
        files |= {folder / name: data for name, data in archives.items()}
    for file, data in files.items():
        _write(file, data)
    context.show({**_body(suite), "file": output, "portable": str(folder) if portable else None})
    say_connector(context, f"packed {escape(output)}, {_counted(suite)}", _body(suite))
    if portable:
        context.say(f"{escape(str(folder))}: what the original project reads, by release.")
    context.say(f"Sign it with `aileron suite sign {escape(output)} --key FILE`.")
    return EXIT.DONE


def sign_suite(context: CommandContext, path: str, key: str, signature: str) -> int:
    """Add a signature of its sums to the archive *path*; a suite that breaks a rule is not signed."""
    if bool(key) == bool(signature):
        raise CliError(
            EXIT.USAGE, "Give either --key FILE, or --signature FILE that ssh-keygen made."
        )
    suite = read_suite(Path(path))
    if SUMS_FILE not in suite.files:
        raise CliError(EXIT.USAGE, f"{path} is no archive. Pack the suite first.")
    _require(suite)
    sums = suite.files[SUMS_FILE]
    given = _read(Path(key or signature))
    signed = sign_sums(sums, read_private_key(given, key)) if key else given
    publisher = verify_sums(sums, signed, signature or path)
    _write(Path(path), archive_of(replace(suite, files={**suite.files, SIGNATURE_FILE: signed})))
    context.show({**_body(suite), "file": path, "key": publisher.fingerprint})
    context.say(f"signed {escape(path)} with {publisher.fingerprint}")
    return EXIT.DONE


def verify_suite(context: CommandContext, path: str, key: str) -> int:
    """Print which key signed the archive *path*; return 1 if none did, if the signature is wrong, or if it is not *key*."""
    suite = read_suite(Path(path))
    publisher = publisher_of(suite)
    if publisher is None:
        raise FileProblems([Problem(file=path, message="is not signed")])
    if key and key != publisher.fingerprint:
        message = f"is signed with {publisher.fingerprint}, not with {key}"
        raise FileProblems([Problem(file=path, message=message, class_="signature_failure")])
    context.show({**_body(suite), "key": publisher.fingerprint})
    say_connector(context, f"✓ {_counted(suite)}", _body(suite))
    context.say(f"    signed with {publisher.fingerprint}")
    if not key:
        context.say("    Compare it with the one that its publisher shows, or give it with --key.")
    return EXIT.DONE


def _require(suite: Release) -> None:
    if errors := _errors(suite_problems(suite, tries_ops=True)):
        raise FileProblems(errors)


def _errors(problems: tuple[Problem, ...]) -> list[Problem]:
    return [each for each in problems if each.severity == "error"]


def _body(suite: Release) -> dict[str, Any]:
    try:
        manifest = parse_manifest(suite.manifest, suite.place("manifest.toml"))
    except FileProblems:  # as the problems say
        return {"name": None, "version": None, "hash": None, "hosts": [], "actions": []}
    return {
        "name": manifest.name,
        "version": manifest.version,
        "hash": suite.connector_hash,
        "hosts": list(manifest.hosts),
        "actions": [Path(name).stem for name in suite.actions],
    }


def _counted(suite: Release) -> str:
    return f"{len(suite.actions)} action{'' if len(suite.actions) == 1 else 's'} of"


def _say_problems(context: CommandContext, problems: tuple[Problem, ...]) -> None:
    for each in problems:
        failed = each.severity == "error"
        mark = "✗" if failed else "!"
        context.say(f"{mark} {escape(str(each))}", fg="red" if failed else "yellow")


def _read(path: Path) -> bytes:
    try:
        return read_plain(path, _MAX_KEY)
    except OSError as error:
        message = f"cannot be read: {error.strerror or error}"
        raise FileProblems([Problem(file=str(path), message=message)]) from error


def _write(path: Path, data: bytes) -> None:
    """Replace *path* with *data* in one step, readable as the umask allows."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, data, mode=0o666)
    except (OSError, ValueError) as error:
        raise CliError(EXIT.FAILED, f"{path} cannot be written: {error}.") from error
