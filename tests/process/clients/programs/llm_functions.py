"""The tool that a person gives the program `llm`, which takes whatever can be called here."""

import pathlib


def own_note(text: str) -> str:
    """Write a note down."""
    with pathlib.Path("notes").open("a", encoding="utf-8") as file:
        file.write(text + "\n")
    return f"noted: {text}"
