"""With a vault, no launch or download gets settings of a `config.toml` that the console has not verified."""

from pathlib import Path

from tests.support.http_service import HttpRequest, http_server, reply
from tests.support.server_harness import Serve, aileron
from tests.support.vaults import make_vault

PHRASE = "correct horse battery staple"
MINE = '[launch.codex]\nargs = ["--mine"]\n'
REFUSED = "config.toml has settings for this launch"


def launch_codex(home: Path, *options: str) -> str:
    return aileron("launch", "codex", *options, home=home, code=None).stderr


def test_a_launch_is_refused_until_its_settings_have_verified(home: Path, serve: Serve) -> None:
    """Changed ones, and those of a locked vault; a launch that has none of its own is not asked about."""
    config = home / "config.toml"
    config.write_text(MINE, encoding="utf-8")
    make_vault(home, PHRASE)
    serve(accept=False)
    assert REFUSED in launch_codex(home)
    aileron("vault", "unlock", "--passphrase-fd", "0", home=home, stdin=PHRASE)
    assert REFUSED not in launch_codex(home)
    config.write_text(MINE.replace("--mine", "--its-own"), encoding="utf-8")
    assert REFUSED in launch_codex(home)
    config.write_text('[launch]\nhosts = ["github.com"]\n', encoding="utf-8")
    assert REFUSED in launch_codex(home, "--sandbox=hosts")
    assert REFUSED not in launch_codex(home)
    config.write_text("", encoding="utf-8")
    assert REFUSED not in launch_codex(home, "--sandbox=hosts")


def test_a_path_that_is_hidden_no_more_is_a_change_like_others(home: Path, serve: Serve) -> None:
    """A program that takes the line away, and its copy with it, gains nothing."""
    config = home / "config.toml"
    config.write_text('[launch]\nhide = [".env"]\n', encoding="utf-8")
    make_vault(home, PHRASE)
    serve(accept=False)
    assert REFUSED in launch_codex(home)
    aileron("vault", "unlock", "--passphrase-fd", "0", home=home, stdin=PHRASE)
    assert REFUSED not in launch_codex(home)
    config.write_text("", encoding="utf-8")
    assert REFUSED in launch_codex(home)
    (home / "store" / "accepted-config.toml").unlink()
    assert REFUSED in launch_codex(home)


def test_nothing_is_fetched_from_a_mirror_that_is_not_verified(home: Path, serve: Serve) -> None:
    """Not without a console, with a locked vault, or after a change; GitHub needs no settings."""
    config = home / "config.toml"
    config.write_text('[store]\nmirror = "https://files.example"\n', encoding="utf-8")
    make_vault(home, PHRASE)
    asked: list[str] = []

    def answer(request: HttpRequest, _body: bytes) -> None:
        asked.append(request.path)
        reply(request, 404, b"", {})

    with http_server(answer) as server:
        place = f"127.0.0.1:{server.server_address[1]}"

        def add() -> str:
            routes = ("--route", f"files.example:443={place}", "--route", f"github.com:443={place}")
            source = "github://owner/repo"
            return aileron("action", "add", *routes, source, home=home, code=None).stderr

        assert "No console" in add()
        serve(accept=False)
        assert "names a mirror, and is not verified" in add()
        aileron("vault", "unlock", "--passphrase-fd", "0", home=home, stdin=PHRASE)
        assert asked == []
        assert "has no release" in add()
        assert asked.pop() == "/owner/repo/latest"
        config.write_text('[store]\nmirror = "https://files.example/evil"\n', encoding="utf-8")
        assert "names a mirror, and is not verified" in add()
        assert asked == []
        config.write_text("", encoding="utf-8")
        assert "has no release" in add()
        assert asked == ["/owner/repo/releases/latest"]
