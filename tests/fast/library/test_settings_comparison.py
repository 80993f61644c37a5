"""What another `config.toml` is said to allow."""

import pytest

from aileron_core.library.settings_comparison import compare_settings


@pytest.mark.parametrize(
    ("old", "new", "direction"),
    [
        ("[console]\narm_ms = 400", "[console]\narm_ms = 250", "wider"),
        ("", "[console]\narm_ms = 250", "wider"),
        ("[console]\narm_ms = 300", "", "narrower"),
        ("[vault]\nlock_minutes = 5", "[vault]\nlock_minutes = 0", "wider"),
        ("[vault]\nlock_minutes = 0", "", "narrower"),
        ("[approval]\nexpires_seconds = 60", "", "wider"),
        ("[history]\ndays = 1", "[history]\ndays = 0", "narrower"),
        ("[mcp]\ntools = ['a']", "[mcp]\ntools = ['*']", "wider"),
        ("", "[launch.claude]\nargs = ['--x']", "wider"),
        ("[launch.claude]\nargs = ['--x']", "", "wider"),
        ("", "[launch]\nread = ['~/a']", "wider"),
        ("[launch]\nread = ['~/a', '~/b']", "[launch]\nread = ['~/b']", "narrower"),
        ("[launch]\nwrite = ['~/a']", "[launch]\nwrite = ['~/b']", "wider"),
        ("", "[launch]\nhide = ['.env']", "narrower"),
        ("[launch]\nhide = ['.env', 'a']", "[launch]\nhide = ['.env']", "wider"),
        ("", "[notify]\ncommand = ['sh']", "wider"),
        ("", "[gateway]\nopenai = 'https://a.example'", "wider"),
        ("[gateway]\nopenai = 'https://a.example'", "", "narrower"),
        ("[gateway]\nrequire_unlocked = true", "", "wider"),
        ("", "[gateway]\nrequire_unlocked = true", "narrower"),
        ("[gateway]\ninspect = true", "", "wider"),
        ("", "[gateway]\ninspect = true", "narrower"),
        ("", "[builtin.bash]\nrehearse = 'never'", "wider"),
        ("[builtin.bash]\nrehearse = 'never'", "", "narrower"),
        ("", "[builtin.bash]\nrehearse = 'always'", "other"),
        ("", "[console.keys]\ndeny = 'a'", "wider"),
        ("", "[console]\ntheme = 'dark'", "other"),
        ("", "[of_a_later_version]\nsetting = true", "wider"),
    ],
)
def test_each_setting_has_a_direction(old: str, new: str, direction: str) -> None:
    """One that nobody thought of allows more."""
    (change,) = compare_settings(old, new)
    assert change.direction == direction


def test_what_is_written_differently_and_says_the_same_is_no_difference() -> None:
    assert compare_settings("console = {arm_ms = 300}", "# mine\n[console]\narm_ms = 300\n") == ()
