"""The scenes of the demo fit the screen and the pages."""

import re

import pytest

from aileron_tui.draw.guide import GuideLine, guide_rows
from aileron_tui.draw.text import plain_text
from examples.demo.scenes import AGENTS, SCENES, Scene, drafts
from tests.support.server_harness import ROOT


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.draft_id)
def test_an_introduction_is_whole_on_a_line_of_80_columns(scene: Scene) -> None:
    step = f"{len(SCENES)} of {len(SCENES)}"
    (row,) = guide_rows(GuideLine(step=step, sentence=scene.sentence), 80)
    assert plain_text(row).endswith(scene.sentence)


def test_every_agent_asks_and_every_scene_has_a_draft_of_its_own() -> None:
    assert {scene.agent for scene in SCENES} == set(AGENTS)
    assert len(dict(drafts())) == len(SCENES)


def test_the_demos_own_action_is_the_tutorials() -> None:
    page = (ROOT / "docs" / "first-approval.md").read_text(encoding="utf-8")
    (action,) = re.findall(r"```\n(\+\+\+.*?)```", page, re.DOTALL)
    file = ROOT / "examples" / "demo" / "actions" / "readdress-draft.md"
    assert file.read_text(encoding="utf-8") == action
