"""A suite as its repository has it."""

import re
import shutil
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from aileron_core.connectors.store import MANIFEST_FILE
from tests.support.http_service import HttpRequest, http_server, reply

EXAMPLES = Path(__file__).parents[3] / "examples"
NAME = "github://aileron/mail-drafts"
ACTIONS = ("get-draft", "list-drafts", "send-draft")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The example's suite as its repository would have it, with placeholders."""
    suite = tmp_path / "suite"
    (suite / "connector").mkdir(parents=True)
    for name in ("connector.wasm", MANIFEST_FILE):
        shutil.copy(EXAMPLES / "connectors/mail-drafts" / name, suite / "connector" / name)
    rewrite_file(suite / "connector" / MANIFEST_FILE, 'version = "0.1.0"', 'version = "0.0.0-dev"')
    for name in ACTIONS:
        target = suite / "actions" / name / "action.md"
        target.parent.mkdir(parents=True)
        text = (EXAMPLES / "actions" / f"{name}.md").read_text().replace("0.1.0", "0.0.0-dev")
        target.write_text(re.sub(r"sha256:[0-9a-f]{64}", "sha256:bound-at-release", text))
    listed = ", ".join(f'"actions/{name}"' for name in ACTIONS)
    (suite / "suite.toml").write_text(f'name = "mail-drafts"\nactions = [{listed}]\n')
    return suite


def rewrite_file(file: Path, before: str, after: str) -> None:
    text = file.read_text()
    assert before in text
    file.write_text(text.replace(before, after))


@contextmanager
def served_release(there: Mapping[str, bytes], *hosts: str) -> Generator[list[str]]:
    """Serve what is there, by its path; yield the words that lead a command there in the place of *hosts*."""

    def answer(asked: HttpRequest, _body: bytes) -> None:
        found = there.get(asked.path)
        reply(asked, 404 if found is None else 200, found or b"", {})

    with http_server(answer) as server:
        place = f":443=127.0.0.1:{server.server_address[1]}"
        yield [word for host in hosts for word in ("--route", host + place)]


def published_as(folder: Path, name: str = NAME) -> None:
    """Let the suite in *folder* be that of the repository *name*."""
    for file in [folder / "connector" / MANIFEST_FILE, *folder.glob("actions/*/action.md")]:
        file.write_text(file.read_text().replace("local://aileron/mail-drafts", name))
