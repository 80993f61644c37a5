"""What is said to a click."""


def press_it(face: str, label: str) -> str:
    """Return what does what was clicked."""
    return f"Press {face} to {label}. The mouse decides nothing."
