"""The files of a project's settings, each beside what was accepted of it before."""

from pathlib import Path

from aileron_core.console_port.file_views import (
    AcceptanceChangeView,
    AcceptedBeforeView,
    FileContentView,
)
from aileron_core.errors import FileProblems
from aileron_core.launch.interfaces import AcceptedSettings
from aileron_core.launch.plan import Agent
from aileron_core.launch.project import ProjectSettings, settings_in
from aileron_core.library.accepted_contents import AcceptedContents
from aileron_core.library.comparison import Row, compare, rows_of


def keep_settings(aileron_home: Path, settings: ProjectSettings) -> None:
    """Keep what was accepted, so that a change can be shown beside it. The acceptance comes first.

    Raises:
        OSError: it cannot be written.
    """
    copies = AcceptedContents(aileron_home)
    copies.keep([settings.document])
    copies.keep(text.encode() for text in settings.texts.values())


def settings_contents(
    settings: ProjectSettings,
    agent: Agent,
    aileron_home: Path,
    accepted: AcceptedSettings | None,
) -> tuple[tuple[str, FileContentView], ...]:
    """Return each file that asks for something with its content, and those that no longer do, empty.

    Args:
        accepted: what was accepted for this project and agent before, if anything.
    """
    if accepted is None:
        return tuple((n, FileContentView(text=text)) for n, text in settings.texts.items())
    kept = AcceptedContents(aileron_home).listed(accepted.digest)
    names = dict.fromkeys((*settings.texts, *kept))
    return tuple(
        (name, _content(name, settings, agent, accepted, known=bool(kept), old=kept.get(name, b"")))
        for name in names
    )


def _content(
    name: str,
    settings: ProjectSettings,
    agent: Agent,
    accepted: AcceptedSettings,
    *,
    known: bool,
    old: bytes | None,
) -> FileContentView:
    """Return the content of one file.

    Args:
        known: which files were accepted is known.
        old: as it was accepted, empty where it was not among them; None where that was not kept.
    """
    text = settings.texts.get(name, "")
    before = old.decode("utf-8", "backslashreplace") if known and old is not None else None
    if before == text:
        return FileContentView(text=text)
    changes: tuple[AcceptanceChangeView, ...] = ()
    if before is not None:
        one, two = (_asked(name, each, settings.path, agent) for each in (before, text))
        changes = compare(one, two)
    accepted_before = AcceptedBeforeView(
        name=name,
        digest=accepted.digest,
        accepted_at=accepted.accepted_at,
        text=before,
        changes=changes,
    )
    return FileContentView(text=text, before=accepted_before)


def _asked(name: str, text: str, project: Path, agent: Agent) -> list[Row]:
    try:
        found = settings_in(project, agent, {name: text}) if text else None
    except FileProblems:  # an earlier version of Aileron allowed it
        found = None
    if found is None:
        return []
    return [
        *rows_of("project_args", found.settings.args),
        *rows_of("project_env", (f"{name}={value}" for name, value in found.settings.env)),
        *rows_of("project_settings", found.sentences),
    ]
