"""The gate: the only way from a call to an effect."""

from aileron_core.runs.decisions import ApprovalService
from aileron_core.runs.gate import Call, Gate, GateAnswer
from aileron_core.runs.interfaces import GateSettings, Library, ResolvedAction
from aileron_core.runs.live_run import LiveRun, PreviewResult

__all__ = [
    "ApprovalService",
    "Call",
    "Gate",
    "GateAnswer",
    "GateSettings",
    "Library",
    "LiveRun",
    "PreviewResult",
    "ResolvedAction",
]
