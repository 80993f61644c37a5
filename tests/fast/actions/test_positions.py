"""Line and column of keys in TOML, valid or not."""

from aileron_core.actions.positions import locate

TEXT = '''# a comment
name = "x" # [not.a.table]
"quoted \\u0041 key" . 'lit' = 1

[a.b]
c = """
[fake]
d = 1 """
e = [ 1, # one
  { f = "}", g = [[2]] },
]
[[t]]
x = \'\'\'it's ]\'\'\'
[[t]]
  x = 2026-01-02 03:04:05Z
[t.sub]
y = { z.w = 'a,b' }
[[t.sub2]]
[[t.sub2]]
k = true
'''


def test_every_key_table_and_element_has_its_place() -> None:
    """Text inside strings and comments is no key, whatever it looks like."""
    places = locate(TEXT)
    expected = {
        ("name",): (2, 1),
        ("quoted A key",): (3, 1),
        ("quoted A key", "lit"): (3, 23),
        ("a",): (5, 1),
        ("a", "b"): (5, 1),
        ("a", "b", "c"): (6, 1),
        ("a", "b", "e"): (9, 1),
        ("a", "b", "e", 0): (9, 7),
        ("a", "b", "e", 1): (10, 3),
        ("a", "b", "e", 1, "f"): (10, 5),
        ("a", "b", "e", 1, "g"): (10, 14),
        ("a", "b", "e", 1, "g", 0): (10, 19),
        ("a", "b", "e", 1, "g", 0, 0): (10, 20),
        ("t",): (12, 1),
        ("t", 0): (12, 1),
        ("t", 0, "x"): (13, 1),
        ("t", 1): (14, 1),
        ("t", 1, "x"): (15, 3),
        ("t", 1, "sub"): (16, 1),
        ("t", 1, "sub", "y"): (17, 1),
        ("t", 1, "sub", "y", "z"): (17, 7),
        ("t", 1, "sub", "y", "z", "w"): (17, 9),
        ("t", 1, "sub2"): (18, 1),
        ("t", 1, "sub2", 0): (18, 1),
        ("t", 1, "sub2", 1): (19, 1),
        ("t", 1, "sub2", 1, "k"): (20, 1),
    }
    assert dict(places) == expected


def test_what_comes_before_a_fault_keeps_its_place() -> None:
    """Where the thread is lost the finder stops; it never raises."""
    places = locate("a = 1\nb = [1, }\nc = 2\n")
    assert places["a",] == (1, 1)
    assert ("c",) not in places
