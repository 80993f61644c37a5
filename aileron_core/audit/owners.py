"""What a paired device may ask for as its owner's, by the name of each `OwnersIntent`. Never for a yes."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from aileron_core.audit.events import AuditEvent


class OwnersRequest(NamedTuple):
    """One thing that an owner's device may ask for."""

    says: str
    """As it stands after `A person asked to`."""
    leads_to: tuple[AuditEvent, ...] = ()
    """What the records may say came of it."""
    stops: bool = False
    """It only takes away: it is carried out though it could not be recorded before."""


DEVICE_ENDS: Final = (AuditEvent.DEVICE_ENDED, AuditEvent.DEVICE_REFUSED)
_ACCEPTED: Final = (AuditEvent.LIBRARY_ACCEPTED, AuditEvent.BINDING_REBOUND)
"""An account goes with its connector to a newer one."""
OWNERS_REQUESTS: Final[Mapping[str, OwnersRequest]] = {
    "SetPause": OwnersRequest(
        "put all calls on hold, or let them go on",
        (AuditEvent.CONSOLE_PAUSED, AuditEvent.CONSOLE_RESUMED),
        stops=True,
    ),
    "StopEverything": OwnersRequest(
        "stop everything",
        (
            AuditEvent.CONSOLE_EVERYTHING_STOPPED,
            AuditEvent.APPROVAL_DENIED,
            AuditEvent.SESSION_ENDED,
            *DEVICE_ENDS,
        ),
        stops=True,
    ),
    "EndSession": OwnersRequest("end a session", (AuditEvent.SESSION_ENDED,)),
    "EndDevice": OwnersRequest("end a device's pairing", DEVICE_ENDS),
    "Accept": OwnersRequest("accept a file", _ACCEPTED),
    "AcceptSuite": OwnersRequest("accept files that were added together", _ACCEPTED),
    "ChooseAccount": OwnersRequest(
        "pick the account of a call",
        (
            AuditEvent.RUN_HAS_ACCOUNT,
            AuditEvent.BINDING_REMEMBERED,
            AuditEvent.BINDING_FORGOTTEN,
        ),
    ),
    "BindAccount": OwnersRequest("bind an account", (AuditEvent.BINDING_CREATED,)),
    "RebindAccount": OwnersRequest("bind an account again", (AuditEvent.BINDING_REBOUND,)),
    "RevokeAccount": OwnersRequest("delete an account", (AuditEvent.BINDING_REVOKED,)),
    "ForgetChoice": OwnersRequest(
        "be asked again which account an action uses", (AuditEvent.BINDING_FORGOTTEN,)
    ),
    "BeginLogin": OwnersRequest("begin a login"),
    "FinishLogin": OwnersRequest(
        "store the account of a login",
        (AuditEvent.BINDING_CREATED, AuditEvent.BINDING_REAUTHORIZED),
    ),
    "CancelLogin": OwnersRequest("cancel a login", stops=True),
    "LockVault": OwnersRequest("lock the vault", (AuditEvent.VAULT_LOCKED,), stops=True),
}


def only_stops(kind: str, paused: object) -> bool:
    """Whether an intent of *kind* is done though it was not recorded; *paused*: of `SetPause`, whether it holds."""
    return OWNERS_REQUESTS[kind].stops and (kind != "SetPause" or paused is True)
