"""The questions about a device: the link that pairs one, and whether the one that redeemed it may decide."""

from collections.abc import Callable

from aileron_core.console_port.devices import ConfirmDevice, EndDevice
from aileron_tui import words
from aileron_tui.draw import bars
from aileron_tui.draw.devices import device_name, device_program, qr_code
from aileron_tui.draw.text import Line, Piece, Role, justify, wrap
from aileron_tui.pages.account_questions import labelled
from aileron_tui.pages.asking import Answer, Asking, Question
from aileron_tui.pages.command import unless
from aileron_tui.state.model import Model
from aileron_tui.state.situation import Situation

_said = words.devices
_ROWS_BESIDE_LINK = 3
"""Rows of the screen that are no part of the question."""
_TEXT_CELLS = 34
"""The least cells beside a QR code."""


def _link_rows(asking: Asking, now: Situation, width: int) -> tuple[Line, ...]:
    """Return the link as text, and beside it as a QR code where there is room for it."""
    pairing = asking.model.pairing
    if not pairing.is_made:
        return ((Piece(f" {_said.MAKING}"),),)
    if not (address := pairing.code(now.now)):
        return ((Piece(f" {_said.EXPIRED}", "attn"),),)
    code = () if asking.surface.lacks_letters else qr_code(address)
    size = len(code[0][0].text) if code else 0
    beside = width - size - 2
    room = asking.model.size[1] - _ROWS_BESIDE_LINK - asking.rows_around
    fits = 0 < len(code) <= room and beside >= _TEXT_CELLS
    text = _link_text(asking.model, now.now, beside if fits else width)
    if not fits:
        return (*text, *_wrapped(_said.NO_ROOM, "muted", width))
    rows = (*text, *(() for _ in range(len(code) - len(text))))
    drawn = (*code, *(() for _ in range(len(rows) - len(code))))
    return tuple(justify(left, right, width) for left, right in zip(rows, drawn, strict=True))


def link_sentences(model: Model, now: float) -> tuple[tuple[str, Role], ...]:
    """Return what the link does, where it was opened, and the addresses, these in the role `link`."""
    pairing = model.pairing
    opened = {None: _said.OPENING, True: _said.OPENED, False: _said.NOT_OPENED}[pairing.browser]
    if not model.account_panel.has_browser:
        opened = _said.NO_BROWSER
    remote = pairing.remote_address(now)
    elsewhere: tuple[tuple[str, Role], ...] = ((_said.ELSEWHERE, "text"), (remote, "link"))
    return (
        (_said.link(round(pairing.seconds_left(now))), "strong"),
        (opened, "text"),
        (pairing.address(now), "link"),
        *(elsewhere if remote else ()),
        (_said.THEN, "muted"),
        (_said.NEVER_TYPED, "muted"),
    )


def _link_text(model: Model, now: float, width: int) -> list[Line]:
    rows: list[Line] = []
    for text, role in link_sentences(model, now):
        if role == "link":
            address = wrap((Piece(text, role),), width - 6)
            rows += [(Piece("   "), Piece("┃ ", "fact-bar"), *each.pieces) for each in address]
        else:
            rows += _wrapped(text, role, width)
    return rows


def _wrapped(text: str, role: Role, width: int) -> list[Line]:
    return [(Piece(" "), *each.pieces) for each in wrap((Piece(text, role),), width - 2)]


def _copy(asking: Asking) -> None:
    pairing, now = asking.model.pairing, asking.clock.now()
    asking.surface.copy(pairing.remote_address(now) or pairing.address(now))
    asking.refuse(_said.COPIED)


PAIR = Question(
    "pair", rows=_link_rows, leave="close", is_over=lambda now: not now.can_change,
    answers=(
        Answer(
            "pair_copy", ("c",), "copy the link", help="send the link to the clipboard", footer_rank=0,
            why_not=unless(lambda now: now.model.pairing.address(now.now), "there is no link"), do=_copy,
        ),
    ),
)  # fmt: skip


def device_question(now: Situation, width: int) -> tuple[Line, ...]:
    """Return the question about a device: its words, and the program at the other end."""
    device = now.asked_device
    if device is None:
        return ()
    if device.confirmed:
        return bars.panel_question(_said.ends(device.words), "", width)
    same = _said.SAME_WORDS if device.kind == "page" else _said.SAME_WORDS_CONSOLE
    shown = device_name(device) if device.words else (Piece(_said.NO_KEY_YET, "muted"),)
    return (
        *bars.panel_question(_said.asks(device.kind), "", width),
        *labelled(_said.WORDS.lower(), shown, width),
        *labelled(_said.PROGRAM.lower(), device_program(device), width),
        *_wrapped(same, "attn", width),
        *(_wrapped(_said.AS_MINE, "muted", width) if device.kind == "console" else ()),
    )


def _not_confirmable(now: Situation) -> str:
    if now.asked_device is None or now.asked_device.confirmed:
        return _said.IS_CONFIRMED
    return "" if now.asked_device.words else _said.NO_KEY_YET


def _not_owners(now: Situation) -> str:
    is_page = now.asked_device is not None and now.asked_device.kind == "page"
    return _said.PAGES_ANSWER if is_page else _not_confirmable(now)


def _confirmed(*, as_owners: bool) -> Callable[[Situation], tuple[ConfirmDevice, ...]]:
    def intents(now: Situation) -> tuple[ConfirmDevice, ...]:
        if (device := now.asked_device) is None:
            return ()
        id_, shown = device.device_id, device.words
        return (ConfirmDevice(device_id=id_, words=shown, as_owners=as_owners),)

    return intents


def ended(now: Situation) -> tuple[EndDevice, ...]:
    """Return what ends the device that is asked about, or that is selected."""
    device = now.asked_device or now.device
    return (EndDevice(device_id=device.device_id),) if device is not None else ()


DEVICE = Question(
    "device", rows=lambda _, now, width: device_question(now, width), leave="later",
    is_over=lambda now: not now.can_change or now.asked_device is None,
    answers=(
        Answer(
            "device_confirm", ("y",), "the words are the same", help="confirm the device: it may decide",
            decides=True, footer_rank=0, needs="core", intents=_confirmed(as_owners=False),
            why_not=_not_confirmable,
        ),
        Answer(
            "device_owners", ("o",), "as mine",
            help="confirm the console as yours: it may also accept files, bind accounts, pause and stop",
            decides=True, footer_rank=1, needs="core", intents=_confirmed(as_owners=True),
            why_not=_not_owners,
        ),
        Answer(
            "device_refuse", ("x",), "refuse", help="refuse the device: its pairing ends", footer_rank=2,
            label_now=lambda now: "end it" if now.asked_device and now.asked_device.confirmed else "",
            needs="core", intents=ended,
        ),
    ),
)  # fmt: skip
