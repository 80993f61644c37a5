"""The gate: the one way from a call to an effect."""

from aileron_core.gate.desk import Desk
from aileron_core.gate.gate import Call, Gate, RunAnswer
from aileron_core.gate.held import Held, Look
from aileron_core.gate.ports import GateSettings, Library, Loaded

__all__ = ["Call", "Desk", "Gate", "GateSettings", "Held", "Library", "Loaded", "Look", "RunAnswer"]
