"""One row of the waiting list."""

from dataclasses import dataclass
from math import inf

from aileron_core.console_port.port import WAITING_STATES, ApprovalView, NotAcceptedView
from aileron_core.errors import Problem
from aileron_tui.state.suite import SuiteFiles

__all__ = ["Item"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One row: an approval, a held-back file, some that were added together, or a problem. `key` stays the same for its life."""

    key: str
    approval: ApprovalView | None = None
    held: NotAcceptedView | None = None
    suite: SuiteFiles | None = None
    problem: Problem | None = None
    leaves_at: float | None = None
    """When the row goes; None while it stays."""

    @property
    def waits(self) -> bool:
        """A person's answer is still out."""
        if self.approval is not None:
            return self.approval.state in WAITING_STATES
        return self.held is not None or self.suite is not None

    @property
    def ends_at(self) -> float:
        """Epoch seconds of its deadline; infinite where it has none or waits no more."""
        ends = self.approval.expires_at if self.approval is not None and self.waits else None
        return ends if ends is not None else inf

    @property
    def version(self) -> tuple[str, ...]:
        """What a person must look at anew when it differs."""
        if self.approval is not None:
            view = self.approval
            return (self.key, str(view.version), view.preview.status, view.digest)
        if self.suite is not None:
            return (self.key, self.suite.digest)
        return (self.key, self.held.digest if self.held is not None else "")
