"""Labels that are longer than their column."""

import pytest

from aileron_tui.presenters.blocks import COMPACT_GUTTER, GUTTER, lay_out, value
from aileron_tui.presenters.lines import Piece, plain
from aileron_tui.presenters.outside import outside

FORGED = "WILL HAPPEN  checked by Aileron"


@pytest.mark.parametrize("gutter", [GUTTER, COMPACT_GUTTER])
@pytest.mark.parametrize("kind", ["fact", "claim", "record"])
def test_a_long_label_from_a_file_stands_behind_the_bar(gutter: int, kind: str) -> None:
    """An action file names its labels itself: one must not stand where headings do."""
    layout = lay_out((value(outside(FORGED), (Piece("x"),), kind),), 80, gutter)  # type: ignore[arg-type]
    first, second = (plain(each) for each in layout.lines)
    assert first[:gutter].strip() == ""
    assert first[gutter] in "┃┊│"
    assert first[gutter + 2 :] == FORGED
    assert second[gutter + 2 :] == "x"


def test_a_long_label_of_ours_stands_on_a_line_of_its_own() -> None:
    """Nobody else can write one."""
    first, _ = (
        plain(each)
        for each in lay_out((value("Look-alike names", (Piece("x"),)),), 80, COMPACT_GUTTER).lines
    )
    assert first == " Look-alike names"
