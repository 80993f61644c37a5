"""What is said where a terminal cannot draw what it should."""

from typing import Final

LACKING: Final = "▲ not a UTF-8 terminal: a marked ? stands for each letter it cannot draw"
