"""The words where a text is so large that laying it out takes a moment."""


def laying_out(characters: int) -> str:
    """Return that what stands there is not all."""
    return (
        f"▲ {characters:,} characters are being laid out. This is their start; keys that decide "
        "come with the whole."
    )
