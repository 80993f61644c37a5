"""`[console.keys]`: what a person may give to which action, and what is refused in a sentence."""

from pathlib import Path

import pytest

from aileron_core.errors import FileProblems
from aileron_tui.pages import keymap
from aileron_tui.pages.keymap import remap_keys
from aileron_tui.pages.registry import COMMANDS, DEFAULT_REGISTRY
from docs.keys_page import keys_page

CONFIG = Path(keymap.__file__).parents[1] / "suite"


def keymap_problems(**keys: str) -> dict[str, str]:
    with pytest.raises(FileProblems) as caught:
        remap_keys(keys.items())
    assert {problem.file for problem in caught.value.problems} == {"config.toml"}
    return {problem.key: problem.message for problem in caught.value.problems}


def test_nothing_given_changes_nothing() -> None:
    """The default table is itself without a clash."""
    assert remap_keys(()) == DEFAULT_REGISTRY


def test_a_key_takes_the_place_of_the_one_that_the_footer_names() -> None:
    """Second keys stay: the arrows go on moving."""
    registry = remap_keys((("approve", "y"), ("copy", "c"), ("next", "n"), ("page_down", "ctrl+f")))
    assert registry.command("approve").keys == ("y",)
    assert registry.key_label("approve") == "y"
    assert registry.command("next").keys == ("n", "down")
    assert registry.key_labels(registry.command("next")) == "n k"
    assert registry.command("page_down").keys == ("ctrl+f",)


def test_characters_have_the_names_that_the_terminal_layer_gives_them() -> None:
    """A sign is written as itself."""
    registry = remap_keys((("approve", "!"), ("deny", "-"), ("help", "f1"), ("quit", "Q")))
    assert registry.command("approve").keys == ("exclamation_mark",)
    assert registry.command("deny").keys == ("minus",)
    assert registry.command("quit").keys == ("Q", "ctrl+q", "ctrl+c")


def test_pausing_and_going_on_keep_one_key() -> None:
    """Who moves the one has moved the other."""
    registry = remap_keys((("pause", "H"),))
    assert registry.command("pause").keys == registry.command("go_on").keys == ("H",)


@pytest.mark.parametrize("key", ["escape", "enter", "ctrl+a", "alt+a", "f5", "space", " ", "up"])
def test_a_key_that_decides_is_one_character_alone(key: str) -> None:
    """Nothing that leaves, that a burst makes, or that a modifier turns into another key."""
    for action in ("approve", "accept", "withdraw_acceptance", "pause"):
        message = keymap_problems(**{action: key})[f"console.keys.{action}"]
        assert "cannot be a key that decides" in message


def test_two_actions_of_one_place_do_not_share_a_key() -> None:
    """Least of all two that decide."""
    refusals = keymap_problems(approve="t")
    assert "two actions that decide cannot share a key" in refusals["console.keys.approve"]
    assert "accept" in refusals["console.keys.approve"]
    assert "is already the key of deny" in keymap_problems(approve="d")["console.keys.approve"]
    assert "is already the key of approve" in keymap_problems(copy="a")["console.keys.copy"]
    assert remap_keys((("approve", "r"), ("refresh", "R"))).key_label("refresh") == "R"


def test_an_action_that_decides_nothing_makes_way() -> None:
    """The example of the page, of a new `config.toml` and of the module: `copy` has `y` at first."""
    example = 'approve = "y"'
    for text in (keys_page(), (CONFIG / "config.toml").read_text("utf-8"), keymap.__doc__ or ""):
        assert example in text
    registry = remap_keys((("approve", "y"),))
    assert (registry.key_label("approve"), registry.key_label("copy")) == ("y", "a")
    assert len({registry.key_label(each.id) for each in registry.in_context("waiting")}) == len(
        {DEFAULT_REGISTRY.key_label(each.id) for each in DEFAULT_REGISTRY.in_context("waiting")}
    )


def test_the_key_that_became_free_is_taken_by_who_asked_for_it() -> None:
    """Then nobody can know what should make way, and how."""
    refusals = keymap_problems(approve="y", unfold="a")
    assert "is already the key of copy" in refusals["console.keys.approve"]


def test_a_swap_is_no_clash() -> None:
    """What counts is the whole table."""
    registry = remap_keys((("approve", "d"), ("deny", "a")))
    assert (registry.key_label("approve"), registry.key_label("deny")) == ("d", "a")


def test_what_does_not_exist_is_named_with_what_is_meant() -> None:
    """Action and key alike; a panel keeps its keys; all problems come at once."""
    refusals = keymap_problems(aprove="a", deny="nokey", deny_enter="x", go_on="G")
    assert "did you mean approve?" in refusals["console.keys.aprove"]
    assert "is not a key" in refusals["console.keys.deny"]
    assert "always has the key enter" in refusals["console.keys.deny_enter"]
    assert "console.keys.go_on" in refusals


def test_every_action_that_may_move_can_be_moved() -> None:
    """To a key that nothing has, without a clash."""
    for each in COMMANDS:
        if not each.fixed:
            assert remap_keys(((each.id, "é"),)).key_label(each.id) == "é"


def test_a_name_that_an_action_had_before_still_gives_it_a_key() -> None:
    """A settings file outlives a change of words."""
    assert remap_keys((("take_in", "T"), ("take_in_rest", "R"))).key_label("accept") == "T"
    assert remap_keys((("hold_back", "X"),)).key_label("withdraw_acceptance") == "X"
