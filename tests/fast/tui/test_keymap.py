"""`[console.keys]`: what a person may give to which action, and what is refused in a sentence."""

from pathlib import Path

import pytest

from aileron_core.errors import FileProblems
from aileron_tui.pages import keymap
from aileron_tui.pages.keymap import COMMANDS, DEFAULT_REGISTRY, remap_keys
from docs.keys_page import keys_page

CONFIG = Path(keymap.__file__).parents[1] / "suite"
EARLIER = {"accept": ("T",), "withdraw_acceptance": ("X",)}


def keymap_problems(**keys: str) -> dict[str, str]:
    with pytest.raises(FileProblems) as caught:
        remap_keys(keys.items())
    assert {problem.file for problem in caught.value.problems} == {"config.toml"}
    return {problem.key: problem.message for problem in caught.value.problems}


@pytest.mark.parametrize(
    ("given", "keys"),
    [
        ({"approve": "y", "copy": "c"}, {"approve": ("y",)}),
        ({"next": "n"}, {"next": ("n", "down")}),  # second keys stay: the arrows go on moving
        ({"page_down": "ctrl+f"}, {"page_down": ("ctrl+f",)}),
        ({"quit": "Q"}, {"quit": ("Q", "ctrl+q", "ctrl+c")}),
        ({"approve": "!", "deny": "-"}, {"approve": ("exclamation_mark",), "deny": ("minus",)}),
        # Who moves the one has moved the other; the whole table counts; names of earlier versions.
        ({"pause": "H"}, {"pause": ("H",), "go_on": ("H",)}),
        ({"approve": "d", "deny": "a"}, {"approve": ("d",), "deny": ("a",)}),
        ({"take_in": "T", "take_in_rest": "R", "hold_back": "X"}, EARLIER),
    ],
)
def test_an_action_has_a_given_key(given: dict[str, str], keys: dict[str, tuple[str, ...]]) -> None:
    registry = remap_keys(given.items())
    assert {name: registry.command(name).keys for name in keys} == keys


@pytest.mark.parametrize("key", ["escape", "enter", "ctrl+a", "alt+a", "f5", "space", " ", "up"])
def test_a_key_that_decides_is_one_character_alone(key: str) -> None:
    for action in ("approve", "accept", "withdraw_acceptance", "pause"):
        message = keymap_problems(**{action: key})[f"console.keys.{action}"]
        assert "cannot be a key that decides" in message


def test_two_actions_of_one_place_do_not_share_a_key() -> None:
    refusals = keymap_problems(approve="t")
    assert "two actions that decide cannot share a key" in refusals["console.keys.approve"]
    assert "accept" in refusals["console.keys.approve"]
    assert "is already the key of deny" in keymap_problems(approve="d")["console.keys.approve"]
    assert "is already the key of approve" in keymap_problems(copy="a")["console.keys.copy"]
    assert remap_keys((("approve", "r"), ("refresh", "R"))).key_label("refresh") == "R"


def test_an_action_that_decides_nothing_makes_way() -> None:
    example = 'approve = "y"'
    for text in (keys_page(), (CONFIG / "config.toml").read_text("utf-8"), keymap.__doc__ or ""):
        assert example in text
    registry = remap_keys((("approve", "y"),))
    assert (registry.key_label("approve"), registry.key_label("copy")) == ("y", "a")
    keys = {registry.key_label(each.id) for each in registry.in_context("waiting")}
    default = DEFAULT_REGISTRY.in_context("waiting")
    assert len(keys) == len({DEFAULT_REGISTRY.key_label(each.id) for each in default})
    # The key that became free is taken by who asked for it.
    refusals = keymap_problems(approve="y", unfold="a")
    assert "is already the key of copy" in refusals["console.keys.approve"]


def test_what_does_not_exist_is_named_with_what_is_meant() -> None:
    refusals = keymap_problems(aprove="a", deny="nokey", deny_enter="x", go_on="G")
    assert "did you mean approve?" in refusals["console.keys.aprove"]
    assert "is not a key" in refusals["console.keys.deny"]
    assert "always has the key enter" in refusals["console.keys.deny_enter"]
    assert "console.keys.go_on" in refusals


def test_every_action_that_may_move_can_be_moved() -> None:
    for each in COMMANDS:
        if not each.fixed:
            assert remap_keys(((each.id, "é"),)).key_label(each.id) == "é"
