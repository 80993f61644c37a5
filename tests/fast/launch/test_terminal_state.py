"""What is set again for an agent that stopped without resetting it, and goes on."""

import pytest

from aileron_core.launch.terminal import TerminalState


@pytest.mark.parametrize(
    ("written", "replayed"),
    [
        (b"plain", b""),
        (b"\x1b[?1049h\x1b[?1000;1006h\x1b[?25l", b"\x1b[?1049h\x1b[?1000h\x1b[?1006h\x1b[?25l"),
        (b"\x1b[?1049h\x1b[?25l\x1b[?25h\x1b[?1049l", b""),
        (b"\x1b[?7l\x1b[?2004h\x1bc", b""),
        (b"\x1b=", b"\x1b="),
        (b"\x1b=\x1b>", b""),
        (b"\x1b[>1u\x1b[>7u\x1b[>4;2m", b"\x1b[>7u\x1b[>4;2m"),
        (b"\x1b[>1u\x1b[>7u\x1b[<u", b"\x1b[>1u"),
        (b"\x1b[>1u\x1b[<9u\x1b[>4;2m\x1b[>4m", b""),
        (b"\x1b[?12345h\x1b[?3h", b""),
    ],
)
def test_what_the_agent_had_set_is_set_again(written: bytes, replayed: bytes) -> None:
    """And only that: an agent that reset its modes before it stopped sets them itself."""
    for cut in range(len(written)):
        state = TerminalState()
        state.scan(written[:cut])
        state.scan(written[cut:])
        assert state.replay_sequences() == replayed
