"""With a vault, a launch gets no settings of a `config.toml` that the console has not verified."""

from pathlib import Path

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
