"""`aileron update`: a newer release waits as one item beside what counts, and the version before can be offered again."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from aileron_core.releases.suite import LIST_FILE, archive_of
from tests.core.releases.conftest import NAME, rewrite
from tests.core.releases.test_publishers import Repository, accept, accept_suite, repository
from tests.support.core_harness import Core
from tests.support.http_service import HttpRequest, http_server, reply
from tests.support.server_harness import aileron, aileron_json

__all__ = ["repository"]

PLACE = "/aileron/mail-drafts/releases"
pytestmark = pytest.mark.skipif(not shutil.which("ssh-keygen"), reason="needs OpenSSH")


class GitHub:
    """Its newest release is 1.5.0, until another one is."""

    def __init__(self) -> None:
        self.archive, self.newest = b"", "1.5.0"
        self.asked: list[str] = []

    def answer(self, asked: HttpRequest, _body: bytes) -> None:
        self.asked.append(asked.path)
        if asked.path == f"{PLACE}/latest":
            reply(asked, 302, b"", {"Location": f"https://github.com{PLACE}/tag/v{self.newest}"})
        elif asked.path.endswith("/v1.5.0/aileron-suite.tar.gz"):
            reply(asked, 200, self.archive, {})
        else:
            reply(asked, 200 if "/tag/" in asked.path else 404, b"", {})


@pytest.fixture
def github() -> Iterator[tuple[GitHub, tuple[str, ...]]]:
    """GitHub, and the words of a command that is led there."""
    made = GitHub()
    with http_server(made.answer) as server:
        port = server.server_address[1]
        yield made, ("--route", f"github.com:443=127.0.0.1:{port}")


async def accept_all(core: Core) -> None:
    """Accept all that waits, which is one item."""
    await accept_suite(core, core.app.library.not_accepted())


def versions(core: Core) -> dict[str, str]:
    return {each.name: each.version for each in core.app.library.ready()}


async def test_a_newer_release_waits_until_it_is_accepted_and_the_one_before_is_kept(
    repository: Repository, home: Path, github: tuple[GitHub, tuple[str, ...]]
) -> None:
    """What is not in it any more stays; nothing is fetched where there is nothing newer."""
    service, led = github
    repository.add(repository.release("1.4.0", "key"))
    async with Core.open(home, accept=False) as core:
        await accept_all(core)
    rewrite(repository.folder / "actions/send-draft/action.md", "already written", "written")
    shutil.rmtree(repository.folder / "actions" / "list-drafts")
    rewrite(repository.folder / LIST_FILE, ', "actions/list-drafts"', "")
    service.archive = archive_of(repository.release("1.5.0", "key"))
    said = aileron("update", *led, home=home).stdout
    assert "list-drafts is not in this release any more" in said
    assert "what you accepted before counts until then" in said
    assert "installed github://aileron/mail-drafts@1.5.0" in said
    async with Core.open(home, accept=False) as core:
        assert set(versions(core).values()) == {"1.4.0"}
        gone = {each.suite and each.suite.gone for each in core.app.library.not_accepted()}
        assert gone == {("list-drafts",)}
        await accept_all(core)
        now = {"get-draft": "1.5.0", "list-drafts": "1.4.0", "send-draft": "1.5.0"}
        assert versions(core) == now
    service.asked.clear()
    body = aileron_json("update", "aileron/mail-drafts", *led, home=home)
    assert body["looked"] == [{"name": NAME, "accepted": "1.5.0", "newest": "1.5.0", "gone": []}]
    service.newest = "1.4.0"
    said = aileron("update", *led, home=home, code=1).stdout
    assert "older than the accepted 1.5.0" in said
    assert not [each for each in service.asked if each.endswith(".gz")]

    for offered, other in (("1.4.0", "1.5.0"), ("1.5.0", "1.4.0")):
        aileron("update", "send-draft", "--back", home=home)
        async with Core.open(home, accept=False) as core:
            assert versions(core)["send-draft"] == other
            (waits,) = core.app.library.not_accepted()
            await accept(core, waits)
            assert versions(core)["send-draft"] == offered
    nowhere = ("--route", "github.com:443=127.0.0.1:1")
    assert f"✗ {NAME}: github.com" in aileron("update", *nowhere, home=home, code=1).stdout
    said = aileron("update", "list-drafts", "--back", home=home, code=1).stderr
    assert "No version of list-drafts was accepted before" in said


def test_what_is_not_accepted_is_not_looked_up(
    home: Path, github: tuple[GitHub, tuple[str, ...]]
) -> None:
    service, led = github
    assert "Nothing to look up" in aileron("update", *led, home=home).stdout
    assert service.asked == []
    said = aileron("update", "nothing", *led, home=home, code=1).stderr
    assert "Nothing called nothing is accepted" in said
