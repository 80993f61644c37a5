"""Whether each answer that a paired device gave is the one that its key signed, as the records have both. Pure."""

import json
from collections.abc import Mapping
from typing import Any, Final, cast

from aileron_core.audit.events import AuditEvent
from aileron_core.audit.owners import DEVICE_ENDS, OWNERS_REQUESTS, only_stops
from aileron_core.devices import CONSOLE
from aileron_core.devices.signed import Decision, SignedDecision, SignedIntent

_VERDICTS: Final[Mapping[object, str]] = {
    AuditEvent.APPROVAL_APPROVED: "approve",
    AuditEvent.APPROVAL_DENIED: "deny",
}
_ABOUT: Final[Mapping[object, Mapping[str, str]]] = {
    AuditEvent.RUN_HAS_ACCOUNT: {"approval": "approval_id"},
    AuditEvent.BINDING_REMEMBERED: {"binding": "binding"},
    AuditEvent.BINDING_FORGOTTEN: {"for_action": "action", "binding": "name"},
    AuditEvent.BINDING_CREATED: {"connector_hash": "connector_hash"},
    AuditEvent.BINDING_REBOUND: {"binding": "name", "connector_hash": "connector_hash"},
    AuditEvent.BINDING_REVOKED: {"binding": "name"},
    AuditEvent.SESSION_ENDED: {"session": "session_id"},
    AuditEvent.DEVICE_ENDED: {"device": "device_id"},
}
"""Members of the record of an event, each the same as the field of the intent, where its kind has that."""
_FILES: Final = ("action", "connector", "preview", "settings", "policy", "publisher")
_SIGNED: Final = ("signed", "device_key", "signature")


class DeviceAnswers:
    """Reads records in their order: a device counts from its pairing until its end, or the next start of a console."""

    def __init__(self) -> None:
        self._paired: dict[object, tuple[object, object]] = {}
        """By device, its key and the name of its hand."""
        self._ended: set[object] = set()
        """The devices that have ended since."""
        self._owners: set[object] = set()
        """The devices that were confirmed as the owner's."""
        self._asked: dict[object, tuple[object, str, str]] = {}
        """By the signature of each intent so far, the name of the hand that gave it, its kind, and what was signed."""
        self._given: set[str] = set()
        """What was signed so far: none is given twice, and a signature can be written in two ways."""

    def problem(self, body: Mapping[str, Any]) -> str:
        """Return what is wrong with the answer in this record, as a clause; empty where it has none, or it holds."""
        try:
            return self._found(body)
        except (AttributeError, KeyError, TypeError, ValueError, RecursionError):
            return "what it says of a device cannot be read"

    def _found(self, body: Mapping[str, Any]) -> str:
        event, device = body.get("event"), str(body.get("device"))
        if event == AuditEvent.CONSOLE_STARTED:
            self._paired.clear()
            self._owners.clear()
            self._ended.clear()
            self._asked.clear()
        elif event == AuditEvent.DEVICE_PAIRED:
            self._paired[device] = (body.get("device_key"), body.get("hand"))
            if body.get("owners") is True:
                self._owners.add(device)
        elif event == AuditEvent.DEVICE_ASKED:
            return self._intent_problem(body)
        elif event in DEVICE_ENDS:
            wrong = self._proof_problem(body, body.get("asked_by"))
            self._ended.add(device)
            return wrong
        else:
            return self._proof_problem(body, body.get("hand"))
        return ""

    def _proof_problem(self, body: Mapping[str, Any], hand: object) -> str:
        """Return what is wrong with what a person did, by the record with *hand*; older records name none."""
        if "asked" in body:  # it came of an intent that a device signed
            return self._effect_problem(body)
        if hand not in (None, CONSOLE.name):
            if body["event"] in _VERDICTS:
                return self._problem(body)
            return "it was done with a device, and no intent that the device signed is named"
        if body.get("event") in _VERDICTS and any(name in body for name in _SIGNED):
            return "it is signed, and is said to have been given in the console"
        return ""

    def _intent_problem(self, body: Mapping[str, Any]) -> str:
        try:
            signed = SignedIntent.from_record(*(str(body[name]) for name in _SIGNED))
            text = str(body["signed"])
            said = json.loads(text)
            if dict(signed.to_record()) != {name: body[name] for name in _SIGNED}:
                return "its signature is not written as Aileron writes it"
            device, (kind,) = said["device"], said["intent"]
        except (KeyError, TypeError, ValueError, RecursionError):
            return "it was asked for on a device, and no signature of one can be read"
        if not signed.holds:
            return "the device's key did not sign it"
        if text in self._given:
            return "what was signed is that of an earlier answer"
        self._given.add(text)
        if device in self._ended:
            return "its device had ended before"
        if kind not in OWNERS_REQUESTS:
            return "it is nothing that a device may ask for"
        named = (body["device_key"], body.get("hand"))
        if self._paired.get(device) != named or device not in self._owners:
            return "it is signed by a key that nobody confirmed as the owner's"
        if (body.get("device"), body.get("intent")) != (device, kind):
            return "the device signed another intent"
        self._asked[body["signature"]] = (body.get("hand"), kind, text)
        return ""

    def _effect_problem(self, body: Mapping[str, Any]) -> str:
        # A stop is carried out though it could not be recorded: what came of it brings what was signed.
        unrecorded = body.get("unrecorded")
        if isinstance(unrecorded, dict) and body["asked"] not in self._asked:
            intent = cast("dict[str, Any]", unrecorded)
            if wrong := self._intent_problem(intent):
                return wrong
            kind = str(intent["intent"])
            paused = json.loads(str(intent["signed"]))["intent"][kind].get("paused")
            if not only_stops(kind, paused):
                return "it was done without a record before it"
        hand, kind, text = self._asked.get(body["asked"], ("", "", ""))
        if not kind or hand != body.get("asked_by", body.get("hand")):
            return "no intent that a device signed is on record before it"
        if body["event"] not in OWNERS_REQUESTS[kind].leads_to:
            return "the device signed another intent"
        fields = json.loads(text)["intent"][kind]
        if not _is_about_file(body, fields, text):
            return "the device signed another file"
        if body["event"] == AuditEvent.BINDING_REBOUND and kind != "RebindAccount":
            named = f'"{body.get("connector_hash")}"' in text
            return "" if named else "the device signed another file"
        if kind == "SetPause" and fields["paused"] is not (
            body["event"] == AuditEvent.CONSOLE_PAUSED
        ):
            return "the device signed the opposite"
        about = _ABOUT.get(body["event"], {}).items()
        if (
            body["event"] == AuditEvent.RUN_HAS_ACCOUNT
            and fields["binding"] not in body["accounts"]
        ):
            return "the device signed another account"
        if any(name in fields and body.get(member) != fields[name] for member, name in about):
            return "the device signed this for another one"
        return ""

    def _problem(self, body: Mapping[str, Any]) -> str:
        try:
            text, key, signature = (str(body[name]) for name in _SIGNED)
            decision = Decision.from_json(json.loads(text))
            signed = SignedDecision(
                decision=decision, key=bytes.fromhex(key), signature=bytes.fromhex(signature)
            )
            if dict(signed.to_record()) != {name: body[name] for name in _SIGNED}:
                return "its signature is not written as Aileron writes it"
        except (KeyError, ValueError, RecursionError):
            return "it was given on a device, and no signature of one can be read"
        if not signed.holds:
            return "the device's key did not sign it"
        if text in self._given:
            return "what was signed is that of an earlier answer"
        self._given.add(text)
        if decision.device in self._ended:
            return "its device had ended before"
        if self._paired.get(decision.device) != (key, body["hand"]):
            return "it is signed by a key that nobody confirmed"
        said = (body.get("approval"), body.get("digest", ""), _VERDICTS[body["event"]])
        if (decision.approval, decision.digest, decision.verdict) != said:
            return "the device signed another answer"
        if decision.verdict == "approve" and decision.unseen != body.get("unseen_lines"):
            return "the device signed another number of unseen lines"
        return ""


def _is_about_file(body: Mapping[str, Any], fields: Mapping[str, Any], text: str) -> bool:
    """Return whether *text*, the intent with *fields*, names the file or key that is accepted in the record *body*."""
    kind, name, digest = (body.get(member) for member in ("kind", "name", "digest"))
    if kind not in _FILES:
        return True
    if kind != "publisher":
        return f'"{digest}"' in text
    # By itself, or with a file of which it is the publisher's first key.
    alone = (fields.get("kind"), fields.get("name"), fields.get("digest"))
    return alone == (kind, name, digest) or f'"{name} {digest}"' in text
