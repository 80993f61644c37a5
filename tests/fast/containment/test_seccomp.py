"""The filter of system calls, read as the kernel reads it: instruction by instruction."""

import errno
import struct
from functools import partial

import pytest

from aileron_core.containment.seccomp import REFUSED_CALLS, build_filter

ALLOW, KILL, ENOSYS = 0x7FFF0000, 0x80000000, 0x00050000 | errno.ENOSYS
UNSUPPORTED = 0x00050000 | errno.EAFNOSUPPORT
X86_64, AARCH64, I386, ARM = 0xC000003E, 0xC00000B7, 0x40000003, 0x40000028
ARCHITECTURES = {"x86_64": X86_64, "aarch64": AARCH64}
KEYCTL = {"x86_64": 250, "aarch64": 219}
"""From man pages and headers, not from the table that is tested."""


def filter_answer(
    machine: str, architecture: int, number: int, *arguments: int, unix_sockets: bool = True
) -> int:
    """Return what the filter for *machine* says to a call with these first *arguments*, two at most."""
    program = build_filter(machine, unix_sockets=unix_sockets)
    assert program is not None
    lines = list(struct.iter_unpack("=HBBI", program))
    number = number if number < 2**31 else number - 2**32
    data = struct.pack("=iIQQQ", number, architecture, 0, *(*arguments, 0, 0)[:2])
    at, loaded = 0, 0
    while True:
        code, then, otherwise, value = lines[at]
        at += 1
        if code == 0x20:
            (loaded,) = struct.unpack_from("=I", data, value)
        elif code == 0x15:
            at += then if loaded == value else otherwise
        elif code == 0x35:
            at += then if loaded >= value else otherwise
        else:
            assert code == 0x06
            return value


@pytest.mark.parametrize("machine", sorted(REFUSED_CALLS))
def test_the_refused_calls_and_no_others_do_not_exist(machine: str) -> None:
    """Every number of a call that there is or will be soon."""
    said = {each: filter_answer(machine, ARCHITECTURES[machine], each) for each in range(1024)}
    refused = {each for each, code in said.items() if code != ALLOW}
    assert refused == {*REFUSED_CALLS[machine].values()}
    assert {said[each] for each in refused} == {ENOSYS}
    assert KEYCTL[machine] in refused
    assert len(refused) == 11


@pytest.mark.parametrize(("machine", "socket"), [("x86_64", 41), ("aarch64", 198)])
@pytest.mark.parametrize(("unix_sockets", "families"), [(True, {40}), (False, {1, 40})])
def test_only_sockets_to_a_virtual_machines_host_are_unsupported(
    machine: str, socket: int, unix_sockets: bool, families: set[int]
) -> None:
    """By the lower half of the argument, which is all that the kernel looks at. Unix sockets are, where asked for."""
    ask = partial(filter_answer, machine, ARCHITECTURES[machine], socket, unix_sockets=unix_sockets)
    said = {each: ask(each) for each in range(64)}
    refused = {each: code for each, code in said.items() if code != ALLOW}
    assert refused == dict.fromkeys(families, UNSUPPORTED)
    assert ask(2**32 + 40) != ALLOW


@pytest.mark.parametrize(("machine", "pair"), [("x86_64", 53), ("aarch64", 199)])
def test_of_pairs_those_that_reach_nobody_else_are_left(machine: str, pair: int) -> None:
    """Streams and packets in order: a pair of datagrams, and what the kernel takes for one, can send anywhere."""
    ask = partial(filter_answer, machine, ARCHITECTURES[machine], unix_sockets=False)
    for flags in (0, 0x800, 0x80000, 0x80800):
        said = {kind: ask(pair, 1, kind | flags) for kind in range(16)}
        assert {kind for kind, code in said.items() if code == ALLOW} == {1, 5}
        assert {*said.values()} == {ALLOW, UNSUPPORTED}
    assert ask(pair, 1, 2, unix_sockets=True) == ALLOW
    assert {ask(each) for each in range(30)} == {ALLOW}


@pytest.mark.parametrize(("machine", "foreign"), [("x86_64", I386), ("aarch64", ARM)])
def test_a_process_of_another_architecture_is_killed(machine: str, foreign: int) -> None:
    """Its numbers mean other calls: i386's 288 is keyctl, and x86_64's is accept4."""
    assert {filter_answer(machine, foreign, each) for each in range(1024)} == {KILL}


def test_x32_has_no_calls() -> None:
    """The same calls by other numbers; -1 is what a debugger skips a call with."""
    assert {filter_answer("x86_64", X86_64, 0x40000000 | each) for each in range(1024)} == {ENOSYS}
    assert filter_answer("x86_64", X86_64, 2**32 - 1) == ENOSYS


def test_an_unknown_architecture_has_no_filter() -> None:
    assert build_filter("s390x") is None
