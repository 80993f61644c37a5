"""The port between the core and a front end: intents go in, events come out, nothing is awaited.

All values are frozen because they cross threads. Text in them is hostile unless a field says otherwise;
`aileron_core.text` draws it.
"""

from collections.abc import Callable
from typing import Protocol

from aileron_core.console_port.events import (
    ApprovalsRead,
    ApprovalUpdated,
    AuditExported,
    AuditVerified,
    CallRead,
    CoreEvent,
    CoreLost,
    EverythingStopped,
    IntentRefused,
    LibraryUpdated,
    PauseChanged,
    Recorded,
    RecordRead,
    RecordsRead,
    SessionsUpdated,
    Snapshot,
    StorageHealth,
)
from aileron_core.console_port.file_views import (
    AcceptanceChangeView,
    AcceptedBeforeView,
    ChangeDirection,
    ChangeKind,
    FileContentView,
)
from aileron_core.console_port.intents import (
    Accept,
    AcceptSuite,
    Acknowledge,
    Approve,
    Deny,
    EndSession,
    ExportAudit,
    Intent,
    MarkReadBackSeen,
    ReadApprovals,
    ReadCall,
    ReadRecord,
    ReadRecords,
    RefetchPreview,
    RefreshPreview,
    SetPause,
    StopEverything,
    VerifyAudit,
    WithdrawAcceptance,
)
from aileron_core.console_port.view_models import (
    FINAL_STATES,
    WAITING_STATES,
    ApprovalView,
    CallView,
    Containment,
    DecidedScreenView,
    DriftView,
    FieldChangeView,
    FieldView,
    LibraryItemView,
    LookView,
    NotAcceptedView,
    PreviewView,
    ProcessView,
    ReadBackFieldView,
    ReadBackView,
    RecordView,
    SessionView,
    ShownState,
    StepView,
    SuiteView,
    TrafficView,
)

__all__ = [
    "FINAL_STATES",
    "WAITING_STATES",
    "Accept",
    "AcceptSuite",
    "AcceptanceChangeView",
    "AcceptedBeforeView",
    "Acknowledge",
    "ApprovalUpdated",
    "ApprovalView",
    "ApprovalsRead",
    "Approve",
    "AuditExported",
    "AuditVerified",
    "CallRead",
    "CallView",
    "ChangeDirection",
    "ChangeKind",
    "ConsolePort",
    "Containment",
    "CoreEvent",
    "CoreLost",
    "DecidedScreenView",
    "Deny",
    "DriftView",
    "EndSession",
    "EverythingStopped",
    "ExportAudit",
    "FieldChangeView",
    "FieldView",
    "FileContentView",
    "Intent",
    "IntentRefused",
    "LibraryItemView",
    "LibraryUpdated",
    "LookView",
    "MarkReadBackSeen",
    "NotAcceptedView",
    "PauseChanged",
    "PreviewView",
    "ProcessView",
    "ReadApprovals",
    "ReadBackFieldView",
    "ReadBackView",
    "ReadCall",
    "ReadRecord",
    "ReadRecords",
    "RecordRead",
    "RecordView",
    "Recorded",
    "RecordsRead",
    "RefetchPreview",
    "RefreshPreview",
    "SessionView",
    "SessionsUpdated",
    "SetPause",
    "ShownState",
    "Snapshot",
    "StepView",
    "StopEverything",
    "StorageHealth",
    "SuiteView",
    "TrafficView",
    "VerifyAudit",
    "WithdrawAcceptance",
]


class ConsolePort(Protocol):
    """The core, which runs on another thread and loop.

    An intent is handed over and never cancelled from outside, so a screen that goes away cannot stop a
    decision half-way; its answer arrives as an event like any other.
    """

    def submit(self, intent: Intent) -> None:
        """Hand *intent* over and return at once. Answers come as events. After CoreLost: no effect."""
        ...

    def subscribe(self, sink: Callable[[CoreEvent], None]) -> Snapshot:
        """Return the present state and have *sink* called, on the core's thread, for every later event.

        *sink* must return at once (`App.post_message` does). Blocks for at most 5 s.

        Raises:
            Unavailable: the core has ended.
        """
        ...
