"""Who cannot be contained: root, by whatever number."""

import pytest

from aileron_core.containment.support import is_root_outside

INITIAL = "         0          0 4294967295\n"


@pytest.mark.parametrize(
    ("euid", "uid_map", "root"),
    [
        (0, INITIAL, True),
        (1000, INITIAL, False),
        (1000, "      1000          0          1\n", True),  # unshare --map-user=1000, by root
        (0, "         0       1000          1\n", False),  # root of a container of an ordinary user
        (1, "         0       1000          1\n         1     100000      65536\n", False),
        (7, "         0       1000          1\n", False),
        (0, "", True),
        (1000, "", False),
    ],
)
def test_root_is_who_root_is_outside(euid: int, uid_map: str, root: bool) -> None:
    """Another number inside changes nothing, and neither does the number 0 inside."""
    assert is_root_outside(euid, uid_map) is root
