"""A paired device as it is drawn, in the sessions view and in the question about it; and a link as a QR code."""

from collections.abc import Iterable
from functools import lru_cache

from aileron_core.console_port.devices import DeviceView
from aileron_tui import words
from aileron_tui.draw.blocks import Block, heading, value
from aileron_tui.draw.foreign_text import foreign_text
from aileron_tui.draw.text import Line, Piece, Role, line
from aileron_tui.draw.times import clock_seconds, day

_said = words.devices


def device_name(device: DeviceView, role: Role = "strong") -> Line:
    """Return its three words, or that it has none yet."""
    return (Piece(_said.named(device.words), role),)


def device_status(device: DeviceView) -> Line:
    if device.confirmed:
        return (Piece(f"● {_said.IS_OWNERS if device.is_owners else _said.CONFIRMED}", "ok"),)
    return (Piece(f"▲ {_said.NOT_CONFIRMED}", "attn"),)


def device_program(device: DeviceView) -> Line:
    """Return the program at the other end, as the kernel knows it, or that it does not."""
    if device.pid is None:
        return (Piece(_said.NOT_KNOWN, "attn"),)
    hidden = (Piece(_said.HIDDEN),)
    program = foreign_text(device.program, "strong") if device.program else hidden
    pid = Piece(_said.process(device.pid), "muted")
    return line(*program, pid, Piece(_said.OVER_SSH if device.over_ssh else "", "attn"))


def device_head(device: DeviceView) -> tuple[Line, ...]:
    kind = Piece(f"{_said.KINDS[device.kind]} ", "muted")
    return (line(" ", kind, *device_name(device), "  ", *device_status(device)),)


def device_blocks(device: DeviceView) -> Iterable[Block]:
    """Yield all that is known of it; its words and its program were found by Aileron."""
    remark = _said.OWNERS_REMARK if device.is_owners else _said.DEVICE_REMARK
    remark = remark if device.confirmed else _said.UNCONFIRMED_REMARK
    yield heading(_said.DEVICE, (Piece(remark, "muted"),))
    yield value(_said.WORDS, device_name(device))
    yield value(_said.PROGRAM, device_program(device))
    for label, at in ((_said.PAIRED, device.paired_at), (_said.USED, device.used_at)):
        yield value(label, line(f"{day(at)} {clock_seconds(at)}"))


_BORDER = 2
"""Blank squares around it: the ground beyond is dark, or the paper's own."""
_HALVES = {(0, 0): " ", (1, 0): "▀", (0, 1): "▄", (1, 1): "█"}


@lru_cache(maxsize=1)
def qr_code(text: str) -> tuple[Line, ...]:
    """Return the rows of the smallest QR code of *text*."""
    import segno  # takes a while, and is needed only for a link

    made = segno.make(text, error="l", micro=False)
    rows = [bytes(row) for row in made.matrix_iter(border=_BORDER)]
    rows += [bytes(len(rows[0]))] * (len(rows) % 2)
    drawn = (
        "".join(_HALVES[pair] for pair in zip(upper, lower, strict=True))
        for upper, lower in zip(rows[::2], rows[1::2], strict=True)
    )
    # No sign of it is ours: none has a form in ASCII.
    return tuple((Piece(each, "qr", foreign=True),) for each in drawn)
