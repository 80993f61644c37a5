"""The footer is never wrong about the selected item, and the registry never contradicts itself."""

import re
from itertools import product

from driving import NOW, Console, drive, mail, short, start

from aileron_core.control_plane.port import PreviewView
from aileron_tui.actions import ACTIONS, DEFAULT
from aileron_tui.presenters.chrome import footer_line
from aileron_tui.presenters.lines import cells, plain
from aileron_tui.presenters.situation import Situation, availability
from aileron_tui.styles.tokens import LOOKS

BLIND = PreviewView(status="unavailable", reason="timed out", since=NOW)


def situations() -> list[Situation]:
    views = (mail(), mail(preview=BLIND))
    blocks = ("none", "lost", "storage", "small", "sending", "checking", "fetching", "deadline")
    return [
        Situation(
            approval=view, block=block, deny_block=block, armed=armed, unseen=unseen,
            total=9, confirmed=confirmed, several=True,
        )
        for view, block, armed, unseen, confirmed in product(
            views, blocks, (True, False), (0, 4), (True, False)
        )
    ]  # fmt: skip


def test_approve_is_filled_exactly_when_the_next_press_decides() -> None:
    """Filled means: at rest, nothing in the way, nothing left to say first."""
    for now in situations():
        blind = now.approval is not None and now.approval.preview.status == "unavailable"
        told = now.confirmed or not (now.unseen or blind)
        state = availability("approve", now)
        assert state.filled == (now.block == "none" and now.armed and told)
        assert state.shown == (now.block == "none")


def test_the_footer_fits_and_always_offers_help() -> None:
    """What does not fit drops from the right; `? help` never drops."""
    for now in situations():
        for width in (60, 80, 120, 200):
            pieces = footer_line("waiting", now, width)
            assert cells(pieces) == width
            assert plain(pieces).endswith("? help ")


def test_the_footer_names_only_keys_that_do_something() -> None:
    """No dead keys: what is not possible is not in the footer."""
    for now in situations():
        text = plain(footer_line("waiting", now, 300))
        for each in DEFAULT.footer_order("waiting"):
            if each.id in ("help", "view_waiting"):
                continue
            shown = (
                re.search(rf"(^|\s){re.escape(DEFAULT.faces(each))}\s+{each.label}", text)
                is not None
            )
            assert shown == availability(each.id, now).shown, (each.id, text)


def test_no_decide_key_is_shared_has_a_modifier_or_is_escape() -> None:
    """One key decides one thing, and leaving never decides."""
    for context in ("waiting", "activity", "deny", "help"):
        keys = [key for each in ACTIONS if context in each.contexts for key in each.keys]
        assert len(keys) == len(set(keys)), context
    deciding = [key for each in ACTIONS if each.decides for key in each.keys]
    assert sorted(deciding) == ["a", "enter", "t"]


def test_the_key_is_filled_on_screen_exactly_while_it_decides() -> None:
    """On the real screen: hollow while fresh, filled at rest, gone while the core works."""

    async def scenario(shown: Console) -> None:
        await shown.shows("WILL HAPPEN")
        assert not shown.armed
        await shown.rest()
        await shown.until(lambda: "  a  approve " in shown.keys)
        await shown.press_alone("a")
        await shown.until(lambda: bool(shown.port.intents))
        await shown.until(lambda: "approve" not in shown.keys)
        assert "Handing it over" in shown.voice

    drive(scenario, start(short()))


def luminance(colour: str) -> float:
    channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, two: str) -> float:
    high, low = sorted((luminance(one), luminance(two)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_every_text_is_readable_on_every_ground() -> None:
    """At least 4.5:1 wherever a token stands; `faint` is decoration and exempt."""
    for look in LOOKS:
        colours = look.colours
        for token in ("strong", "text", "muted", "fact", "claim", "attn", "danger", "ok"):
            for ground in ("ground", "queue", "bar", "sel"):
                ratio = contrast(colours[token], colours[ground])
                assert ratio >= 4.5, (look.name, token, ground, round(ratio, 2))
        for ground in ("attn", "fact", "danger"):
            assert contrast(colours["ink"], colours[ground]) >= 4.5
        for ground in ("add", "del", "chip", "addword", "delword"):
            assert contrast(colours["strong"], colours[ground]) >= 4.5
